"""JSON with comments, with the place of everything in it: for changing a file and leaving all the rest as it is.

Reads what agents accept in their settings: JSON, `//` and `/* */` comments, commas behind the last item. Numbers and
strings are judged by Python's own decoder. Nothing is written here.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, TypeAlias

from turnlog.errors import FormatError

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null')

_MOST_NESTED = 200


class Scalar(NamedTuple):
    """A string, a number, true, false or null."""

    start: int
    end: int
    value: Any


class Member(NamedTuple):
    """A key of an object and its value."""

    start: int
    key: str
    value: Node


class Object(NamedTuple):
    """An object, from its brace to behind the other."""

    start: int
    end: int
    members: list[Member]

    def get(self, key: str) -> Node | None:
        """The value of a key; of one that stands twice the last, as every reader has it."""
        return next((member.value for member in reversed(self.members) if member.key == key), None)


class Array(NamedTuple):
    """An array, from its bracket to behind the other."""

    start: int
    end: int
    items: list[Node]


Node: TypeAlias = Scalar | Object | Array


def parse(text: str) -> Node:
    """The one value in a text. Raises FormatError with the line of what is wrong."""
    reader = _Reader(text)
    node = reader.value(reader.skip(0), 0)
    if reader.skip(node.end) < len(text):
        raise reader.wrong(reader.skip(node.end), "something stands behind the end")
    return node


def plain(node: Node) -> Any:
    """The value without its places."""
    match node:
        case Object():
            return {member.key: plain(member.value) for member in node.members}
        case Array():
            return [plain(item) for item in node.items]
        case Scalar():
            return node.value


def line_of(text: str, place: int) -> int:
    """The number, from 1, of the line in which a place stands."""
    return text.count("\n", 0, place) + 1


def skip(text: str, place: int) -> int:
    """Behind the blanks and comments that begin at a place."""
    found = _BLANK.match(text, place)
    return found.end() if found else place


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def skip(self, place: int) -> int:
        return skip(self._text, place)

    def wrong(self, place: int, reason: str) -> FormatError:
        return FormatError(reason, line=line_of(self._text, place))

    def value(self, place: int, depth: int) -> Node:
        if depth > _MOST_NESTED:
            raise self.wrong(place, "nested too deep")
        match self._text[place : place + 1]:
            case "{":
                return self._object(place, depth)
            case "[":
                return self._array(place, depth)
            case _:
                return self._scalar(place)

    def _scalar(self, place: int) -> Scalar:
        found = _SCALAR.match(self._text, place)
        if found is None:
            raise self.wrong(place, "not JSON: a value is missing" if place >= len(self._text) else "not JSON")
        try:
            return Scalar(place, found.end(), json.loads(found[0]))
        except ValueError as error:
            raise self.wrong(place, f"not JSON: {error}") from error

    def _object(self, start: int, depth: int) -> Object:
        members: list[Member] = []
        place = self.skip(start + 1)
        while self._text[place : place + 1] != "}":
            key = self._scalar(place)
            if not isinstance(key.value, str):
                raise self.wrong(place, "not JSON: a key is no string")
            colon = self.skip(key.end)
            self._expect(colon, ":")
            value = self.value(self.skip(colon + 1), depth + 1)
            members.append(Member(place, key.value, value))
            place = self._next(value.end, "}")
        return Object(start, place + 1, members)

    def _array(self, start: int, depth: int) -> Array:
        items: list[Node] = []
        place = self.skip(start + 1)
        while self._text[place : place + 1] != "]":
            item = self.value(place, depth + 1)
            items.append(item)
            place = self._next(item.end, "]")
        return Array(start, place + 1, items)

    def _next(self, place: int, closing: str) -> int:
        """Where the next item or the end stands."""
        place = self.skip(place)
        if self._text[place : place + 1] == closing:
            return place
        self._expect(place, ",")
        return self.skip(place + 1)

    def _expect(self, place: int, character: str) -> None:
        if self._text[place : place + 1] != character:
            raise self.wrong(place, f"not JSON: {character!r} is missing")
