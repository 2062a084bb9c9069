"""JSON with comments: parsing it with the offset of everything in it, and editing it without touching the rest.

Reads what agents accept in their settings: JSON, `//` and `/* */` comments, commas after the last item. Numbers and
strings are checked by Python's own decoder. An `Edit` replaces a stretch of a text. Edits are made for one text, do not
overlap, and are applied together, so that everything they do not name stays byte for byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from turnlog.errors import FormatError

# Readers disagree on whether a lone carriage return or a line separator ends a comment: such a comment is refused.
_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\r\n\u2028\u2029]*(?=\r?\n|\Z)|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null')

_MOST_NESTED = 200


class Scalar(NamedTuple):
    """A string, a number, true, false or null."""

    start: int
    end: int
    value: Any


class ObjectMember(NamedTuple):
    """A key of an object and its value."""

    start: int
    key: str
    value: Node


class Object(NamedTuple):
    """An object, from its opening brace to after the closing one."""

    start: int
    end: int
    members: list[ObjectMember]

    def get(self, key: str) -> Node | None:
        """The value of a key; for a repeated key the last, as every reader has it."""
        return next((member.value for member in reversed(self.members) if member.key == key), None)


class Array(NamedTuple):
    """An array, from its opening bracket to after the closing one."""

    start: int
    end: int
    items: list[Node]


Node: TypeAlias = Scalar | Object | Array


def parse(text: str) -> Node:
    """The one value in a text. Raises FormatError with the line of what is wrong."""
    reader = _Reader(text)
    node = reader.value(reader.skip(0), 0)
    if reader.skip(node.end) < len(text):
        raise reader.wrong(reader.skip(node.end), "there is text after the end")
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
    """The number, from 1, of the line that holds the offset `place`."""
    return text.count("\n", 0, place) + 1


def skip(text: str, place: int) -> int:
    """The offset after the white space and comments that begin at `place`."""
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
        members: list[ObjectMember] = []
        place = self.skip(start + 1)
        while self._text[place : place + 1] != "}":
            key = self._scalar(place)
            if not isinstance(key.value, str):
                raise self.wrong(place, "not JSON: a key is no string")
            colon = self.skip(key.end)
            self._expect(colon, ":")
            value = self.value(self.skip(colon + 1), depth + 1)
            members.append(ObjectMember(place, key.value, value))
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
        """The offset of the next item or the end."""
        place = self.skip(place)
        if self._text[place : place + 1] == closing:
            return place
        self._expect(place, ",")
        return self.skip(place + 1)

    def _expect(self, place: int, character: str) -> None:
        if self._text[place : place + 1] != character:
            raise self.wrong(place, f"not JSON: {character!r} is missing")


_INDENT = re.compile(r"\n([ \t]+)\S")
_LINE_END = re.compile(r"[ \t]*\r?\n")
_REMARK = re.compile(r"[ \t]*(?:(?P<to_line_end>//[^\r\n]*)|/\*[^\r\n]*?\*/)")
_SPACE = " \t\r\n"


class Edit(NamedTuple):
    """`removed`, which is at offset `start`, is replaced by `added`."""

    start: int
    removed: str
    added: str


class Addition(NamedTuple):
    """The edits that add something to settings."""

    edits: list[Edit]
    made: list[list[str]]
    """Places in the settings that did not exist before: removing the addition removes them too."""


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text after the edits. Raises ValueError when it is not the text they were made for."""
    pieces: list[str] = []
    place = 0
    for edit in sorted(edits):
        if edit.start < place or not text.startswith(edit.removed, edit.start):
            raise ValueError("the text is another one")
        pieces += (text[place : edit.start], edit.added)
        place = edit.start + len(edit.removed)
    return "".join([*pieces, text[place:]])


def reverse(edits: Iterable[Edit]) -> list[Edit]:
    """The edits that undo these, in the text after them."""
    undone: list[Edit] = []
    moved = 0
    for edit in sorted(edits):
        undone.append(Edit(edit.start + moved, edit.added, edit.removed))
        moved += len(edit.added) - len(edit.removed)
    return undone


class Style(NamedTuple):
    """How a text breaks and indents its lines."""

    newline: str
    indent: str

    @classmethod
    def of(cls, text: str) -> Style:
        """The style of a text; two spaces where it shows none."""
        found = _INDENT.search(text)
        return cls("\r\n" if "\r\n" in text else "\n", found[1] if found else "  ")


def add_members(text: str, parent: Object, added: dict[str, Any]) -> list[Edit]:
    """Append members to an object."""
    return _append(text, parent, [(member.start, member.value.end) for member in parent.members], list(added.items()))


def add_items(text: str, parent: Array, added: Sequence[Any]) -> list[Edit]:
    """Append items to an array."""
    return _append(text, parent, [(item.start, item.end) for item in parent.items], [(None, item) for item in added])


def _append(
    text: str, parent: Object | Array, places: list[tuple[int, int]], added: Sequence[tuple[str | None, Any]]
) -> list[Edit]:
    if not added:
        return []
    if not places:
        return _fill(text, parent, added)
    style = Style.of(text)
    end = places[-1][1]
    comma = skip(text, end)
    has_comma = text[comma] == ","
    place = _behind_remark(text, comma + 1 if has_comma else end)
    gap = _gap(text, parent.start, places[-1][0], style)
    if gap == " " and _ends_its_line(text, comma + 1 if has_comma else end):
        gap = _line_break(text, parent.start, style) + style.indent
    new = f",{gap}".join(_rendered(key, value, gap, style) for key, value in added)
    if has_comma:  # the new last item gets one too
        return [Edit(place, "", f"{gap}{new},")]
    if place == end:
        return [Edit(end, "", f",{gap}{new}")]
    return [Edit(end, "", ","), Edit(place, "", f"{gap}{new}")]


def _fill(text: str, parent: Object | Array, added: Sequence[tuple[str | None, Any]]) -> list[Edit]:
    """Put the first items into an empty object or array."""
    style = Style.of(text)
    base = _line_break(text, parent.start, style)
    gap = base + style.indent
    new = f",{gap}".join(_rendered(key, value, gap, style) for key, value in added)
    inner = text[parent.start + 1 : parent.end - 1]
    kept = inner.rstrip(_SPACE)
    return [Edit(parent.start + 1 + len(kept), inner[len(kept) :], f"{gap}{new}{base}")]


def _line_break(text: str, place: int, style: Style) -> str:
    """A line break, and the indentation of the line that holds the offset `place`."""
    line = text.rfind("\n", 0, place) + 1
    begin = line + 1 if text.startswith("\ufeff", line) else line
    return style.newline + text[begin : len(text) - len(text[begin:].lstrip(" \t"))]


def _gap(text: str, start: int, last: int, style: Style) -> str:
    """The text between two items: the line break and indentation before the last one, or a space."""
    line = text.rfind("\n", start, last) + 1
    if not line:
        return " "
    before = text[line:last]
    return style.newline + (before if not before.strip() else before[: len(before) - len(before.lstrip())])


def _rendered(key: str | None, value: Any, gap: str, style: Style) -> str:
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    if gap == " ":
        return name + json.dumps(value, ensure_ascii=False)
    return name + json.dumps(value, ensure_ascii=False, indent=style.indent).replace("\n", gap)


def _behind_remark(text: str, place: int) -> int:
    """The offset after a comment on the same line."""
    found = _REMARK.match(text, place)
    return found.end() if found else place


def _ends_its_line(text: str, place: int) -> bool:
    """Whether a comment follows that goes on to the end of the line."""
    found = _REMARK.match(text, place)
    return found is not None and found["to_line_end"] is not None


def cut(text: str, parent: Object | Array, index: int) -> list[Edit]:
    """Take one member or item out, with its comma and its line."""
    places = [
        (item.start, item.value.end) if isinstance(item, ObjectMember) else (item.start, item.end)
        for item in (parent.members if isinstance(parent, Object) else parent.items)
    ]
    start, end = places[index]
    comma = skip(text, end)
    if index + 1 < len(places):
        following = places[index + 1][0]
        return [_removal(text, start, following if _is_blank(text[comma + 1 : following]) else comma + 1)]
    end = comma + 1 if text[comma] == "," else end
    if index == 0:
        inner = text[parent.start + 1 : start] + text[end : parent.end - 1]
        return [_removal(text, parent.start + 1, parent.end - 1) if _is_blank(inner) else _removal(text, start, end)]
    blank = len(text[:start].rstrip(_SPACE))
    if "\n" in text[blank:start] and not _LINE_END.match(text, end):
        # What follows is on this line: it must not end up in a comment above.
        blank = start
    if text[comma] == ",":
        return [_removal(text, blank, end)]
    before = skip(text, places[index - 1][1])
    if before + 1 >= blank:
        return [_removal(text, before, end)]
    return [_removal(text, before, before + 1), _removal(text, blank, end)]


def _removal(text: str, start: int, end: int) -> Edit:
    return Edit(start, text[start:end], "")


def _is_blank(text: str) -> bool:
    return not text.strip()
