"""Samples that a zip has in pieces, put together as one object: the form in which it has the others.

A piece is a file: `sample.json` and `metadata.json` are objects, and `messages/`, `events/`, `calls/` and
`attachments/` have lists, each named by the number of its first item.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from turnlog.agents.decoding import list_of
from turnlog.agents.inspect_logs.contents import decoded
from turnlog.agents.jsonl import UNREADABLE
from turnlog.errors import SourceError

_PIECE: Final = re.compile(
    r"samples/(?P<sample>.+_epoch_\d+)/"
    r"(?:(?P<object>sample|metadata)|(?P<list>messages|events|calls|attachments)/(?P<start>\d{1,12}))\.json"
)

_REFERENCE: Final = re.compile(rb"attachment://(\d{1,12})(?![0-9a-f])")
"""Where a piece names an attachment: by its number. Elsewhere its name is a hash of 32 digits."""

_PAIR: Final = tuple[Annotated[int, msgspec.Meta(ge=0)], Annotated[int, msgspec.Meta(ge=0)]]
_NULL: Final = Raw(b"null")
_ITEMS: Final = list[Raw]
_FIELDS: Final = dict[str, Raw]

_Exact = TypeVar("_Exact", list[Raw], dict[str, Raw])

_LEAST: Final = 256
"""Bytes that a message counts at least, also one that is missing."""

_MOST_TIMES: Final = 4
_SPARE: Final = 1 << 20
"""A conversation has at most so many times the bytes of its messages, and these bytes more. It may name a message
several times: a small file could name billions."""


class Pieces(NamedTuple):
    """The files of a sample."""

    objects: dict[str, str]
    """`sample` and `metadata` -> the name of the file."""
    lists: dict[str, dict[int, str]]
    """`messages` and the others -> number of the first item -> the name of the file."""

    def names(self) -> list[str]:
        """Every file."""
        return [*self.objects.values(), *(name for files in self.lists.values() for name in files.values())]


class Whole(NamedTuple):
    """A sample, and what is missing in it."""

    json: bytes
    lost: tuple[str, ...] = ()
    """A sentence for each piece that cannot be read."""


def find_pieces(names: Iterable[str]) -> dict[str, Pieces]:
    """The samples in pieces, by name, among the files of a zip. One whose `sample.json` is missing is there, too."""
    found: dict[str, Pieces] = {}
    for name in names:
        match = _PIECE.fullmatch(name)
        if match is None:
            continue
        pieces = found.setdefault(match["sample"], Pieces({}, {}))
        if match["object"]:
            pieces.objects[match["object"]] = name
        else:
            pieces.lists.setdefault(match["list"], {})[int(match["start"])] = name
    return found


def put_together(pieces: Pieces, read: Callable[[str], bytes]) -> Whole:
    """A sample as one object.

    Args:
        pieces: Its files; `sample` is among them.
        read: Returns the bytes of a file, or raises SourceError.

    Raises:
        SourceError: `sample.json` cannot be read. Any other piece is left out and named; a message in it is `null`.
    """
    fields: dict[str, Any] | None = _split(_named(read(pieces.objects["sample"])), _FIELDS)
    if fields is None:
        raise SourceError(f"{pieces.objects['sample']} is no object of JSON")
    reading = _Reading(read)
    lists = {name: reading.items(files, is_named=name != "attachments") for name, files in pieces.lists.items()}
    messages = lists.get("messages", {})
    refs = decoded(bytes(fields.pop("message_refs", b"null")))
    fields["messages"] = list(_conversation(refs, messages, reading.lost))
    fields["events"] = list(lists.get("events", {}).values())
    fields["attachments"] = {f"{number:032x}": text for number, text in lists.get("attachments", {}).items()}
    # What the events refer to: Inspect itself reads them with it, from a log that is restored.
    fields["events_data"] = {"messages": _whole(messages), "calls": _whole(lists.get("calls", {}))}
    if "metadata" in pieces.objects:
        fields["metadata"] = reading.piece(pieces.objects["metadata"], _FIELDS) or {}
    return Whole(msgspec.json.encode(fields), tuple(reading.lost))


class _Reading:
    """One reading of pieces."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self._read = read
        self.lost: list[str] = []

    def piece(self, name: str, kind: type[_Exact], *, is_named: bool = True) -> _Exact | None:
        """What a piece has, as exact JSON; None if it cannot be read."""
        try:
            text = self._read(name)
        except SourceError as error:
            self.lost.append(error.reason)
            return None
        found = _split(_named(text) if is_named else text, kind)
        if found is None:
            self.lost.append(f"{name}: no {'list' if kind is _ITEMS else 'object'} of JSON")
        return found

    def items(self, files: dict[int, str], *, is_named: bool) -> dict[int, Raw]:
        """The items of a list by their numbers."""
        found: dict[int, Raw] = {}
        due: int | None = 0
        for start, name in sorted(files.items()):
            # After a piece that is lost nobody knows how many it had.
            if due is not None and start != due:
                self.lost.append(f"{name}: the list has {due} items before it")
            items = self.piece(name, _ITEMS, is_named=is_named)
            found.update(enumerate(items or (), start))
            due = None if items is None else start + len(items)
        return found


def _named(text: bytes) -> bytes:
    """Exact JSON in which attachments have the names that they have in other logs."""
    return _REFERENCE.sub(lambda match: b"attachment://%032x" % int(match[1]), text)


def _split(text: bytes, kind: type[_Exact]) -> _Exact | None:
    """The items of a list or object as exact JSON; None if it is none."""
    try:
        return msgspec.json.decode(text, type=kind)
    except UNREADABLE:
        try:
            return msgspec.json.decode(msgspec.json.encode(decoded(text)), type=kind)
        except UNREADABLE:
            return None


def _conversation(refs: Any, messages: dict[int, Raw], lost: list[str]) -> Iterator[Raw]:
    """The messages that `refs` name by the first number and the one after the last; `null` for one that is lost."""
    left = _SPARE + _MOST_TIMES * sum(map(_size, messages.values()))
    highest = max(messages, default=-1) + 1
    for number, pair in enumerate(list_of(refs)):
        try:
            start, end = msgspec.convert(pair, _PAIR)
        except msgspec.ValidationError:
            lost.append(f"$.message_refs[{number}]: no pair of numbers")
            continue
        stop = min(end, highest)
        if end > max(start, stop):
            lost.append(f"$.message_refs[{number}]: {end - max(start, stop)} messages are missing")
        for each in range(start, stop):
            message = messages.get(each, _NULL)
            left -= _size(message)
            if left < 0:
                lost.append(f"$.message_refs[{number}]: the same messages more than {_MOST_TIMES} times")
                return
            yield message


def _size(message: Raw) -> int:
    return max(_LEAST, len(bytes(message)))


def _whole(items: dict[int, Raw]) -> list[Raw]:
    """All items in their places; none where one is missing, since what refers to them counts."""
    return [items[number] for number in sorted(items)] if len(items) == max(items, default=-1) + 1 else []
