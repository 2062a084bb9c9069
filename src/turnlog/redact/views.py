"""A text without what cuts a secret in pieces: terminal colours, percent codes, line ends, JSON in JSON in JSON.

Secrets are looked for in a view and masked in the original text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

_ESCAPED = r"(?:\x1b|\x9b|\\{1,4}(?:u001[bB]|x1[bB]|033|e))"
_SEQUENCE = (
    rf"{_ESCAPED}(?:\[[0-9;:?]{{0,20}}[ -/]?[@-~]|\][^\x07\x1b\\\n]{{0,300}}(?:\x07|{_ESCAPED}\\{{1,4}})|[()][0-9A-B])"
)
_PERCENT = r"%(?P<code>[2-7][0-9A-Fa-f])"

_DEEP = r"(?<!\\)(?P<deep>\\{4,64})(?=[nrt\"'])"
"""Backslashes before a sign that was escaped more than twice. The rules know up to three."""

_GOES_ON = r"(?:\\\r?\n|(?:\\{3}|\\{6}|\\{12})(?:r\\{1,4})?n)"
_CONTINUED = rf"(?:(?<![\\ \t]){_GOES_ON}|(?<=[ \t]){_GOES_ON}[ \t]{{0,40}})"
"""A backslash at the end of a line, behind which a command goes on; also in escaped JSON."""

_CONTINUED_LINES = re.compile(r"(?:^.*(?<!\\)\\\r?\n)+.*", re.MULTILINE)

_MARKED = re.compile(rf"{_SEQUENCE}|{_PERCENT}|{_CONTINUED}|{_DEEP}")
_HAS_PERCENT = re.compile(_PERCENT)
_HAS_DEEP = re.compile(_DEEP)

_INSIDE = r"A-Za-z0-9_+/=.~:$!%-"
_LINE_END = rf"(?:\r?\n|\\{{1,3}}n)[ \t]{{0,8}}(?=[{_INSIDE}])"
_RUN = re.compile(rf"[{_INSIDE}]{{1,2000}}")
_CUT_RUN = re.compile(rf"[{_INSIDE}]{{1,2000}}(?:{_LINE_END}[{_INSIDE}]{{1,2000}}){{1,12}}")
_WRAPPED = re.compile(rf"{_SEQUENCE}|{_PERCENT}|{_CONTINUED}|{_DEEP}|(?<=[{_INSIDE}]){_LINE_END}")

_ESCAPES = ("u001b[", "x1b[", "033[", "\\e[", "\\\\\\n", "\\\\\\r\\n")


class TextView(NamedTuple):
    """A text made of pieces of the original."""

    text: str
    starts: list[int]
    """Where each piece begins in the view."""
    origins: list[int]
    """Where it begins in the original."""
    sizes: list[int]
    """Its length in the original."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The place in the original of a place in the view."""
        first, last = bisect_right(self.starts, start) - 1, bisect_right(self.starts, end - 1) - 1
        return self._origin(first, start), min(self._origin(last, end), self.origins[last] + self.sizes[last])

    def _origin(self, piece: int, position: int) -> int:
        size = self.starts[piece + 1] - self.starts[piece] if piece + 1 < len(self.starts) else None
        if size is not None and size != self.sizes[piece] and position - self.starts[piece] == size:
            return self.origins[piece] + self.sizes[piece]
        return self.origins[piece] + position - self.starts[piece]


def unmarked(text: str) -> TextView | None:
    """The text without control sequences and continued lines, with decoded percent codes, escaped twice at most.

    None if it has no such signs; `continued` has the lines that go on.
    """
    # Most percent signs are those of numbers and formats, and a view is looked through as the text itself was.
    is_marked = "\x1b" in text or "\x9b" in text or ("%" in text and _HAS_PERCENT.search(text) is not None)
    is_marked = is_marked or ("\\\\\\\\" in text and _HAS_DEEP.search(text) is not None)
    if is_marked or ("\\" in text and any(escape in text for escape in _ESCAPES)):
        return _view(text, _MARKED)
    return None


def continued(text: str) -> Iterator[TextView]:
    """Lines that end with a backslash, each joined with those that it goes on in: files of code have many others."""
    if "\\\n" in text or "\\\r\n" in text:
        for lines in _CONTINUED_LINES.finditer(text):
            yield _view(text, _MARKED, *lines.span())


def run_end(text: str, start: int) -> int:
    """The end of the run of token characters that starts here."""
    run = _RUN.match(text, start)
    return start + 1 if run is None else run.end()


def cut_run(text: str, start: int) -> TextView | None:
    """The token characters from here on without up to twelve line ends; None if no line ends among them."""
    run = _CUT_RUN.match(text, start)
    return None if run is None else _view(run[0], _WRAPPED)


def unwrapped(text: str) -> TextView:
    """The text as in `unmarked`, and without line ends between token characters."""
    return _view(text, _WRAPPED)


def _view(text: str, cuts: re.Pattern[str], begin: int = 0, stop: int | None = None) -> TextView:
    view = TextView("", [], [], [])
    pieces: list[str] = []
    length, end, stop = 0, begin, len(text) if stop is None else stop

    def add(piece: str, origin: int, size: int) -> None:
        nonlocal length
        if piece:
            view.starts.append(length)
            view.origins.append(origin)
            view.sizes.append(size)
            pieces.append(piece)
            length += len(piece)

    for match in cuts.finditer(text, begin, stop):
        add(text[end : match.start()], end, match.start() - end)
        if match["code"] is not None:
            add(chr(int(match["code"], 16)), match.start(), 3)
        if match["deep"] is not None:
            kept = _escaped_less(len(match["deep"]))
            add("\\" * kept, match.end() - kept, kept)
        end = match.end()
    add(text[end:stop], end, stop - end)
    return view._replace(text="".join(pieces))


def _escaped_less(backslashes: int) -> int:
    """How many are left of so many backslashes when JSON is decoded until three are left at most."""
    while backslashes > 3:
        backslashes //= 2
    return backslashes
