"""The log of changes to a conversation: applied line by line, they give the conversation and where each request is.

A line is the whole conversation (`kind` 0), a value that is set (1), items behind an array, perhaps in place of its end
(2), or a value that is deleted (3). A line that cannot be read costs only what it changed.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import Raw

from turnlog.agents.decoding import LineContext, clean_json, list_of, object_of
from turnlog.agents.json_file import locate_items
from turnlog.agents.jsonl import JsonLines

_INITIAL, _SET, _PUSH, _DELETE = range(4)

_REQUESTS = "requests"


class ChangeLine(msgspec.Struct):
    """A line of the log."""

    kind: int | None = None
    k: list[str | int] = []
    v: Raw = Raw(b"null")
    i: int | None = None


LINES = JsonLines(ChangeLine, first_keys=("kind",), plausible=lambda line: line.kind is not None)
"""Reads changes out of lines."""

Place = tuple[int, int]
"""Byte offset and length of JSON that says something about a request."""


class LoggedConversation:
    """A conversation, and the places of its requests."""

    def __init__(self) -> None:
        self.value: dict[str, Any] = {}
        self.places: list[list[Place]] = []
        """Of each request, where it was written first, and then the lines that changed it."""

    def apply(self, context: LineContext, line: ChangeLine) -> bool:
        """Apply a change; False if it does not fit."""
        value = _decoded(line.v)
        if line.kind == _INITIAL:
            self.value = object_of(value)
            self.places = [[place] for place in _items_in(line.v, context, _REQUESTS)]
            return bool(self.value)
        if line.kind not in (_SET, _PUSH, _DELETE) or not line.k:
            return False
        if line.k == [_REQUESTS] and line.kind == _PUSH:
            self._push_places(line, context)
        elif line.k[0] == _REQUESTS and len(line.k) > 1:
            self._note(line.k[1], (context.position, context.length))
        parent = self._parent(line.k)
        if line.kind == _PUSH:
            return _push(parent, line.k[-1], list_of(value), line.i)
        return _set(parent, line.k[-1], value, is_deleted=line.kind == _DELETE)

    def _push_places(self, line: ChangeLine, context: LineContext) -> None:
        if line.i is not None:
            del self.places[max(0, line.i) :]
        self.places += [[place] for place in _items_in(line.v, context, None)]

    def _note(self, number: str | int, place: Place) -> None:
        if isinstance(number, int) and 0 <= number < len(self.places):
            self.places[number].append(place)

    def _parent(self, path: list[str | int]) -> Any:
        at: Any = self.value
        for step in path[:-1]:
            at = _child(at, step)
        return at


def _decoded(raw: Raw) -> Any:
    try:
        return msgspec.json.decode(clean_json(bytes(raw)))
    except (msgspec.MsgspecError, RecursionError):
        return None


def _items_in(raw: Raw, context: LineContext, field: str | None) -> list[Place]:
    """The place of each item of an array within the current line: of a field of the value, or of the value."""
    try:
        found = raw if field is None else msgspec.json.decode(raw, type=dict[str, Raw]).get(field, Raw(b"[]"))
        items = msgspec.json.decode(found, type=list[Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []
    start = context.json.find(bytes(found))
    places = locate_items(items, context.json[max(start, 0) :], context.position + max(start, 0))
    return [(position, length) for _, position, length in places]


def _child(value: Any, step: str | int) -> Any:
    if isinstance(step, str):
        return object_of(value).get(step)
    items = list_of(value)
    return items[step] if 0 <= step < len(items) else None


def _push(parent: Any, step: str | int, items: list[Any], at: int | None) -> bool:
    target = _child(parent, step)
    if target is None and isinstance(parent, dict):
        target = cast("dict[str | int, Any]", parent)[step] = []
    if not isinstance(target, list):
        return False
    array = cast("list[Any]", target)
    if at is not None:
        del array[max(0, at) :]
    array += items
    return True


def _set(parent: Any, step: str | int, value: Any, *, is_deleted: bool) -> bool:
    if isinstance(parent, dict):
        fields = cast("dict[str | int, Any]", parent)
        if is_deleted:
            fields.pop(step, None)
        else:
            fields[step] = value
        return True
    items = list_of(parent)
    if not isinstance(step, int) or not 0 <= step <= len(items):
        return False
    items[step : step + 1] = [value]
    return True
