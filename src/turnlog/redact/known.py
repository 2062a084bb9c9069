"""Values that were recognised as secrets by what was around them, so that they are found where they stand alone.

`DB_PASSWORD=…` shows a password by its name. A title, a prompt or an output of the same session may have the password
alone, where nothing shows what it is.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from html import escape, unescape
from json import dumps
from urllib.parse import quote, unquote

import msgspec

from turnlog.redact.contexts import BLOCKS
from turnlog.redact.edges import RULE as CUT
from turnlog.redact.literals import literal_tree
from turnlog.redact.masking import MNEMONIC, SecretSpan, joined, mask_spans
from turnlog.redact.placeholders import is_distinct, is_key
from turnlog.redact.tokens import TOKENS
from turnlog.redact.triggers import BOUNDARY
from turnlog.redact.views import unmarked

SHORTEST_KNOWN = 8
"""A shorter value may be a word or a number that is somewhere by chance."""

_SHORTEST_CUT = 4
"""Characters of a known value that are masked where a text is cut."""

_MOST_IN_TREE = 200
"""Beginnings of values that are looked for as such: a pattern of thousands takes seconds to compile."""

_RECOGNISED_ANYWHERE = frozenset(rule.name for rule in (*TOKENS, *BLOCKS)) | {MNEMONIC, CUT}
"""Rules that need no name or context; and pieces, of which nobody knows what they are."""

_VAGUE = "named-key"
"""The rule for any name that ends with `key`: what it names may be the hash of a file."""

_SIGNS = ";,.!?:|&)]}"
"""What ends a command or a sentence. Behind a value, nobody knows whether it belongs to it: both are known."""

_COMMAND_END = re.compile(r"[;&|]")

_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")


class KnownValues:
    """The secrets of a session that are masked wherever they stand alone."""

    def __init__(self) -> None:
        """Begin without values."""
        self._rules: dict[str, str] = {}
        self._of_start: dict[str, list[str]] = {}
        """The values by their first characters, in order once there is a pattern."""
        self._ordered: list[str] = []
        self._longest = 0
        self._pattern: re.Pattern[str] | None = None

    def __len__(self) -> int:
        """How many values are known, other notations of them included."""
        return len(self._rules)

    def add(self, found: str, rule: str) -> bool:
        """Remember what a rule found, if it is a secret only by its place and is distinct enough; whether it is."""
        if rule in _RECOGNISED_ANYWHERE:
            return False
        view = unmarked(found)
        values = _values(view.text if view is not None else found, rule)
        distinct = [value for value in values if len(value) >= SHORTEST_KNOWN and is_distinct(value)]
        for value in distinct:
            for written in _notations(value):
                self._add(written, rule)
        return bool(distinct)

    def find(self, text: str) -> list[SecretSpan]:
        """Where known values stand alone in a text, in order and without overlaps: no part of a longer word."""
        if not self._rules or len(text) < SHORTEST_KNOWN:
            return []
        pattern = self._compiled()
        spans: list[SecretSpan] = []
        match = pattern.search(text)
        while match is not None:
            span = self._at(text, match.start())
            if span is not None:
                spans.append(span)
            match = pattern.search(text, match.start() + 1 if span is None else span.end)
        return spans

    def mask(self, text: str, *, is_cut: bool = False) -> str:
        """The text without known values; if it was cut, without the beginning of one at its end."""
        spans = [*self.find(text), *(self.find_cut(text) if is_cut else ())]
        return mask_spans(text, joined(spans))

    def may_be_in_json(self, json: str) -> bool:
        """Whether known values may be in exact JSON, where an escape may stand for any character."""
        return len(self) > 0 and ("\\u" in json or "\\/" in json or bool(self.find(json)))

    def find_cut(self, text: str) -> list[SecretSpan]:
        """The beginning of a known value at the end of a text that was cut there; an ellipsis may replace the rest."""
        self._compiled()
        end = len(text.rstrip().removesuffix("…").removesuffix("..."))
        for start in range(max(0, end - self._longest), end - _SHORTEST_CUT + 1):
            if start and text[start - 1].isalnum():
                continue
            number = bisect_left(self._ordered, text[start:end])
            if number < len(self._ordered) and self._ordered[number].startswith(text[start:end]):
                return [SecretSpan(start, end, CUT)]
        return []

    def _add(self, value: str, rule: str) -> None:
        if value not in self._rules:
            self._rules[value] = rule
            self._of_start.setdefault(value[:SHORTEST_KNOWN], []).append(value)
            self._pattern = None

    def _compiled(self) -> re.Pattern[str]:
        """What finds the beginnings of all values. Looking each of them up is left to `_at`."""
        if self._pattern is None:
            for values in self._of_start.values():
                values.sort()
            self._ordered = sorted(self._rules)
            self._longest = max(map(len, self._ordered), default=0)
            self._pattern = re.compile(_beginnings(self._of_start))
        return self._pattern

    def _at(self, text: str, start: int) -> SecretSpan | None:
        """The longest value that begins here and stands alone. Thousands may begin alike: none is tried in turn."""
        values = self._of_start.get(text[start : start + SHORTEST_KNOWN], ())
        rest = text[start : start + self._longest]
        while (number := bisect_right(values, rest)) > 0:
            # Each value that the rest begins with begins this one, too.
            value = values[number - 1]
            if not rest.startswith(value):
                pairs = enumerate(zip(value, rest, strict=False))
                rest = rest[: next(at for at, (one, other) in pairs if one != other)]
                continue
            end = start + len(value)
            if not (text[end : end + 1].isascii() and text[end : end + 1].isalnum()):
                return SecretSpan(start, end, self._rules[value])
            rest = value[:-1]
        return None


def _beginnings(starts: Iterable[str]) -> str:
    """A pattern for the first characters of values; for the first two of any of them, where there are many."""
    starts = list(starts)
    if len(starts) <= _MOST_IN_TREE:
        return literal_tree(starts, ["", BOUNDARY])
    first, second = ("".join(map(re.escape, sorted({start[at] for start in starts}))) for at in (0, 1))
    return f"[{first}][{second}]{BOUNDARY}"


def _values(found: str, rule: str) -> Iterator[str]:
    """The values in what a rule found, without percent codes: of a cookie header those that are keys."""
    if rule == "cookie":
        yield from (value for pair in found.split(";") if is_key(value := pair.partition("=")[2].strip()))
    elif rule != _VAGUE or _HEX.fullmatch(found) is None:
        for value in dict.fromkeys((found, found.rstrip(_SIGNS), _COMMAND_END.split(found)[0])):
            yield from dict.fromkeys((value, unquote(value), unescape(value), _of_json(value)))


def _notations(value: str) -> Iterator[str]:
    """How a value may be written: as it is, in percent codes, in HTML, and in JSON that is a text, maybe twice."""
    yield value
    yield quote(value, safe="")
    yield escape(value, quote=False)
    yield escape(value)
    for ensure_ascii in (True, False):
        once = dumps(value, ensure_ascii=ensure_ascii)[1:-1]
        yield once
        yield dumps(once, ensure_ascii=ensure_ascii)[1:-1]


def _of_json(value: str) -> str:
    """The value that a string of JSON holds; as it is where it is none."""
    try:
        return msgspec.json.decode(f'"{value}"', type=str) if "\\" in value else value
    except (msgspec.DecodeError, UnicodeEncodeError):
        return value
