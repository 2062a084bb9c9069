"""Writing to a terminal, a pipe or a file: tables and JSON.

Everything that came from a log goes through `plain_text` before it is written. JSON is exact, so it escapes instead of
leaving out.
"""

from __future__ import annotations

import codecs
import json
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from turnlog.paths import has_dumb_terminal
from turnlog.plain_text import columns_of, one_line, replace_unseen

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

PARTIAL = 6
"""Exit code of a command that finished, although some logs could not be read."""

_UNESCAPED = re.compile("[\x7f-\x9f\u2028\u2029]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")


def dim(text: str) -> str:
    """The text in dim style."""
    return click.style(text, dim=True)


def is_terminal() -> bool:
    """Whether standard output is a terminal: only there are colours, fitted tables and a pager used."""
    return sys.stdout.isatty()


def write_json(value: Any) -> None:
    """Write a document of `documents`: on one line into a pipe, indented on a terminal.

    Values of the store and the model in it are encoded as in the HTTP API.
    """
    indent = 2 if is_terminal() else None
    write_json_text(json.dumps(value, ensure_ascii=False, indent=indent, default=_to_json_value) + "\n")


def _to_json_value(value: Any) -> Any:
    # Imported late, as what prints no JSON needs none of these. Usage reports are dataclasses, so that `turnlog usage`
    # does without msgspec.
    from dataclasses import is_dataclass
    from decimal import Decimal

    if isinstance(value, Decimal):
        return float(value)
    if is_dataclass(value):
        return vars(value)
    import msgspec

    from turnlog.store.dollars import to_json_number

    return msgspec.to_builtins(value, enc_hook=to_json_number)


def write_json_text(text: str) -> None:
    """Write JSON that was encoded elsewhere."""
    click.echo(escaped_json(text), nl=False)


def escaped_json(text: str) -> str:
    """JSON that a terminal may get.

    What JSON may hold unescaped and a terminal would obey is escaped. So is everything beyond ASCII where the output
    has another encoding than UTF-8, as a pipe has on Windows: whoever reads JSON takes it for UTF-8.
    """
    escaped = replace_unseen(_UNESCAPED.sub(lambda match: _escape(match[0]), text), _escape)
    try:
        escaped.encode("utf-8" if codecs.lookup(sys.stdout.encoding).name == "utf-8" else "ascii")
    except UnicodeEncodeError:
        escaped = _BEYOND_ASCII.sub(lambda match: _escape(match[0]), escaped)
    return escaped


@contextmanager
def writing_lines() -> Generator[Callable[[str], object]]:
    """A function that writes a line, which may be one of a million: into a pipe or a file in large pieces.

    `click.echo` writes out at every call, which takes as long as all the rest of a line.
    """
    try:
        yield sys.stdout.write
    finally:
        # What follows on standard error comes behind it.
        sys.stdout.flush()


def _escape(characters: str) -> str:
    units = characters.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def write_note(text: str) -> None:
    """Write a sentence to standard error: in one line, or in lines that end between words on a terminal."""
    line = one_line(text)
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        line = "\n".join(textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False))
    click.echo(line, err=True)


SUMMARY_LENGTH = 100
"""Characters of a text that is shown in one line."""

GAP = 2
"""Spaces between columns."""

NARROWEST = 8
"""Width to which a column can shrink."""

_READABLE = 40
"""Columns of a title or a path that say enough to tell it from others."""

_WIDEST = 60
"""Width to which columns are aligned in a pipe: one long title would fill every other line with spaces."""


class Column(NamedTuple):
    """A column of a table."""

    title: str
    right: bool = False
    can_shrink: bool = False
    """Cut on a screen that is too narrow, never in a pipe."""
    is_path: bool = False
    """Cut at the beginning, because paths differ at the end."""
    style: str | None = None
    is_optional: bool = False
    """Left out, the last one first, of a screen on which others would be cut to less than `_READABLE`."""


def write_table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[str]],
    footer: Sequence[str] | None = None,
    rest: Iterable[Sequence[str]] = (),
) -> None:
    """Write rows under their titles: fitted to a terminal, or aligned, whole and without colour in a pipe.

    On a terminal that is too narrow for a line a row, a row is a few lines, one a column. Without
    rows, standard error says so.

    Args:
        columns: What there is.
        rows: Those that say how wide the columns are.
        footer: A last row.
        rest: Further rows, as wide as the others; each is written as it comes. Not together with a footer or with
            optional columns.
    """
    first = list(_cells(rows))
    last = [] if footer is None else list(_cells([footer]))
    if not (first or last):
        click.echo("Nothing found.", err=True)
    elif is_terminal():
        _write_rich_table(columns, first, last, _cells(rest))
    else:
        _write_plain_table(columns, [[column.title for column in columns], *first, *last], _cells(rest))


def _cells(rows: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    return ([one_line(cell) for cell in row] for row in rows)


def _write_rich_table(
    columns: Sequence[Column], rows: list[list[str]], footer: list[list[str]], rest: Iterator[list[str]]
) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    columns, rows, footer = _essential(columns, rows, footer, console.width)
    widths = _widths(columns, [*rows, *footer])
    _shrink(widths, columns, console.width)
    if sum(widths) + GAP * len(widths) > console.width:
        _write_blocks(columns, chain(rows, footer, rest), console.width)
        return
    _write_fitted(console, columns, widths, rows, footer)
    for row in rest:
        _write_fitted(console, columns, widths, [row])


def _write_fitted(
    console: Console,
    columns: Sequence[Column],
    widths: list[int],
    rows: list[list[str]],
    footer: list[list[str]] | None = None,
) -> None:
    """Write rows in columns of these widths; without a footer they are further rows of a table."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0), show_header=footer is not None)
    for column, width in zip(columns, widths, strict=True):
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=not column.right,
            overflow="ellipsis",
            width=width,
            style=column.style,
        )
    for number, row in enumerate((*rows, *(footer or ()))):
        cells = [
            Text(_end_of(cell, width) if column.is_path else cell)
            for cell, column, width in zip(row, columns, widths, strict=True)
        ]
        table.add_row(*cells, style="bold" if number >= len(rows) else None)
    console.print(table)


def _widths(columns: Sequence[Column], rows: list[list[str]]) -> list[int]:
    # Titles of numbers take a line a word: they are longer than the numbers.
    titles = [column.title.split(" ") if column.right else [column.title] for column in columns]
    return [max(columns_of(text) for text in (*title, *cells)) for title, *cells in zip(titles, *rows, strict=True)]


def _essential(
    columns: Sequence[Column], rows: list[list[str]], footer: list[list[str]], screen: int
) -> tuple[Sequence[Column], list[list[str]], list[list[str]]]:
    """The table without as many of its optional columns as it takes to make the others readable."""
    while optional := [number for number, column in enumerate(columns) if column.is_optional]:
        wanted = _widths(columns, [*rows, *footer])
        widths = list(wanted)
        _shrink(widths, columns, screen)
        if all(width >= min(full, _READABLE) for width, full in zip(widths, wanted, strict=True)):
            break
        columns = _without(columns, optional[-1])
        rows = [_without(row, optional[-1]) for row in rows]
        footer = [_without(row, optional[-1]) for row in footer]
    return columns, rows, footer


ItemT = TypeVar("ItemT")


def _without(items: Sequence[ItemT], number: int) -> list[ItemT]:
    return [item for at, item in enumerate(items) if at != number]


def _write_blocks(columns: Sequence[Column], rows: Iterable[list[str]], screen: int) -> None:
    """Write each row as lines of a title and a cell, without empty cells. What may be cut fits the screen."""
    label = max(columns_of(column.title) for column in columns)
    room = max(NARROWEST, screen - label - GAP)
    for number, row in enumerate(rows):
        if number:
            click.echo()
        for column, cell in zip(columns, row, strict=True):
            if cell:
                shown = _cut(cell, room, column) if column.can_shrink else cell
                click.echo(f"{dim(column.title)}{' ' * (label - columns_of(column.title) + GAP)}{shown}")


def _cut(text: str, width: int, column: Column) -> str:
    """As much of a cell as so many columns hold."""
    if column.is_path:
        return _end_of(text, width)
    return text if columns_of(text) <= width else f"{_beginning_of(text, width - 1)}…"


def _beginning_of(text: str, width: int) -> str:
    while columns_of(text) > width:
        text = text[:-1]
    return text.rstrip()


def _end_of(text: str, width: int) -> str:
    """As much of the end of a text as so many columns hold."""
    if columns_of(text) <= width:
        return text
    while columns_of(text) >= width:
        text = text[1:]
    return f"…{text}"


def _shrink(widths: list[int], columns: Sequence[Column], screen: int) -> None:
    """Make columns that may be cut as narrow as a screen needs, always the widest of them."""
    able = [number for number, column in enumerate(columns) if column.can_shrink]
    excess = sum(widths) + GAP * len(widths) - screen
    while excess > 0 and able:
        widest = max(able, key=lambda number: widths[number])
        if widths[widest] <= NARROWEST:
            return
        widths[widest] -= 1
        excess -= 1


def _write_plain_table(columns: Sequence[Column], lines: list[list[str]], rest: Iterator[list[str]]) -> None:
    widths = [min(_WIDEST, max(columns_of(cell) for cell in cells)) for cells in zip(*lines, strict=True)]
    with writing_lines() as write:
        for line in chain(lines, rest):
            cells = [
                " " * (width - columns_of(cell)) + cell if column.right else cell + " " * (width - columns_of(cell))
                for column, cell, width in zip(columns, line, widths, strict=True)
            ]
            write((" " * GAP).join(cells).rstrip() + "\n")


PHASES = {
    "find": "Finding logs",
    "read": "Reading",
    "index": "Indexing",
    "rebuild": "Rebuilding",
    "write": "Writing",
    "push": "Sending",
}
"""Phase of a pass -> title of its progress bar."""


@contextmanager
def progress(patience: float = 0.0) -> Generator[Callable[[str, int, int], None]]:
    """Progress bars on standard error if that is a terminal, a line for each phase on a dumb one; else nothing.

    Yields a function of phase (a key of `PHASES`), units done and units in all. Nothing is shown of work that is done
    within `patience` seconds.
    """
    if not sys.stderr.isatty():
        yield lambda phase, done, total: None
        return
    bars = _Lines(patience) if has_dumb_terminal() else _Bars(patience)
    try:
        yield bars.update
    finally:
        bars.stop()


class _Lines:
    """The title of each phase on a line of its own, for a terminal on which no bar can be drawn again."""

    def __init__(self, patience: float) -> None:
        self._from = time.monotonic() + patience
        self._shown: set[str] = set()

    def update(self, phase: str, done: int, total: int) -> None:
        if phase not in self._shown and time.monotonic() >= self._from:
            self._shown.add(phase)
            click.echo(f"{PHASES.get(phase, phase)}…", err=True)

    def stop(self) -> None:
        """Nothing is left to undo."""


class _Bars:
    """A progress bar for each phase. Nothing is imported before something is shown."""

    def __init__(self, patience: float) -> None:
        self._from = time.monotonic() + patience
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def update(self, phase: str, done: int, total: int) -> None:
        if self._bars is None:
            if time.monotonic() < self._from:
                return
            self._bars = self._start()
        if phase not in self._tasks:
            self._tasks[phase] = self._bars.add_task(PHASES.get(phase, phase))
        self._bars.update(self._tasks[phase], completed=done, total=total)

    def stop(self) -> None:
        if self._bars is not None:
            self._bars.stop()

    def _start(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description:<14}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        bars = Progress(*columns, console=Console(stderr=True), transient=True)
        bars.start()
        return bars
