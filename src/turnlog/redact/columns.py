"""Secrets in a column whose heading says so: CSV, tab-separated values, tables of Markdown.

A heading is a line of two or more short cells, of which one is a name of a secret (`names.secret_name`). Its column
ends with the first line that has another number of cells. A cell is masked by the rule of its heading, if it looks like
a secret of that kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from turnlog.redact.names import Assignment, Name, secret_name
from turnlog.redact.placeholders import is_placeholder

_NAMED_CELL = re.compile(
    r"(?:p(?:ass(?:word|wd|phrase)?|wd)|secret|token|key|credentials?)(?:\\{0,3}[\"'])?[ \t]{0,20}"
    r"(?:[,;\t|\r\n]|\\[nrt])"
)
"""What a heading with a secret contains, in lower case."""

_LINE_END = re.compile(r"\r?\n|\\r?\\n|\\n")

_NUMBER = re.compile(r"\s{0,8}\d{1,7}(?:\t|→|:|\\t)")
"""What a program that reads files writes before each line."""

_HEADING = re.compile(r"\|?(?:[ ]{0,20}(?:\\{0,3}[\"'])?[\w .-]{1,40}(?:\\{0,3}[\"'])?[ ]{0,20}(?P<mark>[,;\t|]|\\t))")
"""The first cell of a heading, and the mark behind it."""

_STATEMENT = re.compile(
    r"\s{0,40}(?:from|import|return|raise|yield|def|const|let|var|export|use|for|if|while|with|assert|del)\s"
)
"""A line of code that has commas, too."""

_LABEL = re.compile(r"\s{0,20}(?P<quote>(?:\\{0,3}[\"'])?)(?P<name>[A-Za-z][\w .-]{0,39}?)(?P=quote)\s{0,20}\Z")

_RULE = re.compile(r"[\s|:+-]{3,}\Z")
"""The line below the heading of a table of Markdown."""

_QUOTED = re.compile(r'\s{0,8}(?P<quote>\\{0,3}")(?:[^"\\]|""){0,2000}(?P=quote)\s{0,8}')

_CLOSING = re.compile(r"(?<!\\)\"")
"""The end of a string of JSON."""

_LONGEST_LINE = 4000
_MOST_CELLS = 64


def find_columns(text: str, lowered: str) -> Iterator[Assignment]:
    """The secrets in columns with telling headings. `lowered` is the text in lower case, with the same length."""
    if "\n" not in text and "\\n" not in text:
        return
    position = closed = 0
    while (match := _NAMED_CELL.search(lowered, position)) is not None:
        begun = match.start()
        start, in_string = _line_start(text, begun)
        if in_string and closed <= begun:
            end_of_string = _CLOSING.search(text, begun)
            closed = len(text) if end_of_string is None else end_of_string.start()
        limit = closed if in_string else len(text)
        end = _line_end(text, begun, limit)
        position = max(end, match.end())
        heading = _heading(text[start:end])
        if heading is not None:
            for found in _in_rows(text, end, limit, heading):
                yield found
                position = max(position, found.end)


def _line_start(text: str, position: int) -> tuple[int, bool]:
    """Start of a line, without the number before it, and whether it begins a string of exact JSON."""
    least = max(0, position - _LONGEST_LINE)
    real, escaped = text.rfind("\n", least, position) + 1, text.rfind("\\n", least, position)
    start = max(least, real, 0 if escaped < 0 else escaped + 2)
    quote = max(text.rfind(':"', start, position) + 2, text.rfind(': "', start, position) + 3)
    in_string = quote > 3
    start = max(start, quote if in_string else 0)
    number = _NUMBER.match(text, start)
    return (start if number is None else number.end()), in_string


def _line_end(text: str, position: int, limit: int) -> int:
    limit = min(limit, position + _LONGEST_LINE)
    end = _LINE_END.search(text, position, limit)
    return limit if end is None else end.start()


class _Heading(NamedTuple):
    mark: str
    """What is between its cells."""
    width: int
    """How many cells it has."""
    columns: dict[int, Name]
    """Those of secrets, by number."""


def _heading(line: str) -> _Heading | None:
    """What a line says of the rows below it; None if it is no heading, or names no secret."""
    first = _HEADING.match(line)
    if first is None or _STATEMENT.match(line):
        return None
    mark = "|" if line.startswith("|") else first["mark"]
    cells = line.split(mark)
    if not 2 <= len(cells) <= _MOST_CELLS:
        return None
    inner = range(1, len(cells) - 1) if mark == "|" and not cells[0].strip() else range(len(cells))
    labels = {number: _LABEL.match(cells[number]) for number in inner}
    if not all(labels.values()):
        return None
    named = {number: secret_name(label["name"].replace(" ", "_")) for number, label in labels.items() if label}
    columns = {number: name for number, name in named.items() if name is not None}
    return _Heading(mark, len(cells), columns) if columns else None


def _in_rows(text: str, position: int, limit: int, heading: _Heading) -> Iterator[Assignment]:
    """The secrets in the rows below a heading that ends here; the table ends at the limit."""
    while (line_end := _LINE_END.match(text, position, limit)) is not None:
        start = line_end.end()
        number = _NUMBER.match(text, start, limit)
        start = start if number is None else number.end()
        position = _line_end(text, start, limit)
        row = text[start:position]
        if heading.mark == "|" and _RULE.match(row):
            continue
        cells = list(_cells(row, heading.mark))
        if len(cells) != heading.width:
            return
        found = [
            _secret_in(text, start + cells[index][0], start + cells[index][1], name)
            for index, name in heading.columns.items()
        ]
        secrets = [each for each in found if each is not None]
        yield from secrets
        # Of a table below this one. Without an end here, many headings in a row would each be read to the last of them.
        if not secrets and _NAMED_CELL.search(f"{row}\n".lower()) is not None and _heading(row) is not None:
            return


def _cells(row: str, mark: str) -> Iterator[tuple[int, int]]:
    """Start and end of each cell of a row. A quoted cell may hold the mark."""
    start = 0
    while True:
        quoted = _QUOTED.match(row, start)
        end = row.find(mark, start if quoted is None else quoted.end())
        yield start, len(row) if end < 0 else end
        if end < 0:
            return
        start = end + len(mark)


def _secret_in(text: str, start: int, end: int, name: Name) -> Assignment | None:
    cell = text[start:end]
    value = cell.strip(" \t\"'`\\")
    if not 6 <= len(value) <= 512 or is_placeholder(value) or not name.check(value):
        return None
    start += cell.index(value)
    return Assignment(start, start + len(value), name.rule)
