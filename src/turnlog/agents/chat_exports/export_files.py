"""The files of an export, in a folder or in a zip: its conversations, and images and other files that they name."""

from __future__ import annotations

import hashlib
import re
import zipfile
import zlib
from bisect import bisect_left
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from turnlog.agents.decoding import REPLACED, clean_json, object_of, text_of
from turnlog.agents.files import read_regular_file
from turnlog.agents.jsonl import REPAIRED, UNREADABLE
from turnlog.agents.zip_members import refuse_too_large
from turnlog.errors import SourceError
from turnlog.model.lenient_json import without_lone_surrogates

LISTS: Final = re.compile(r"conversations(?:-\d+)?\.json")
"""The files with conversations: one, or in large exports several."""

LARGEST_FILE: Final = 32 << 20
"""Bytes of an image or another file that are read; a larger one is left out, with a diagnostic."""

_LARGEST_LIST: Final = 2 << 30
"""Bytes of a list in a zip that is read."""

_MOST_FILES: Final = 100_000
"""Names of a zip that are looked at."""

_ENCRYPTED: Final = 1
"""The flag of a file in a zip that needs a password."""

_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},]', re.DOTALL)
"""A string, or what opens, closes or separates."""

_BETWEEN: Final = re.compile(rb"[\s,]*")
"""What is between two items of a list."""


class Service(NamedTuple):
    """How the exports of a service look."""

    agent: str
    version: str
    id_fields: tuple[str, ...]
    """Fields of a conversation with its id; the first that is there counts."""
    time_field: str
    """The field with the time of the last change."""
    first_of: Callable[[Any], tuple[str | None, str | None]]
    """The time at which a conversation begins, and the id of its first message: both stay as it goes on."""
    marks: tuple[bytes, ...]
    """What is at the beginning of a list of conversations, and in no other export."""
    files_of: Callable[[Any], Iterable[str]]
    """Beginnings of the names of files that a conversation names."""


class Listed(NamedTuple):
    """A conversation in an export."""

    identity: str
    changed: Any
    """The time of its last change, as the service writes it."""
    json: Raw


def is_zip(head: bytes) -> bool:
    """Whether a file with this beginning is a zip."""
    return head.startswith(b"PK\x03\x04")


def is_list(service: Service, head: bytes) -> bool:
    """Whether a file with this beginning is a list of conversations of the service."""
    return head.lstrip(b" \t\r\n\xef\xbb\xbf").startswith(b"[") and all(mark in head for mark in service.marks)


class ExportFiles:
    """An export that is open: a zip, or the folder of a list of conversations."""

    def __init__(self, path: Path) -> None:
        """Open a zip or a list. Raises OSError if there is no such file, SourceError for a zip that is damaged."""
        self._path = path
        self._zip: zipfile.ZipFile | None = None
        self._kept: list[tuple[str, str]] | None = None
        with path.open("rb") as file:
            head = file.read(4)
        if is_zip(head):
            try:
                self._zip = zipfile.ZipFile(path)
            except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
                raise SourceError(f"no whole zip: {error}", path=path) from error

    def close(self) -> None:
        """Close the zip."""
        if self._zip is not None:
            self._zip.close()

    def lists(self) -> Iterator[tuple[str, bytes]]:
        """The names and contents of the files with conversations."""
        if self._zip is None:
            yield self._path.name, read_regular_file(self._path, -1)
            return
        # Two of one name are two lists.
        for info in sorted(self._zip.infolist()[:_MOST_FILES], key=lambda each: each.filename):
            if not info.is_dir() and LISTS.fullmatch(PurePosixPath(info.filename).name):
                refuse_too_large(info, self._path, _LARGEST_LIST)
                yield info.filename, self._unpacked(self._zip, info)

    def conversations(self, service: Service) -> tuple[dict[str, Listed], tuple[str, ...]]:
        """The conversations of all lists by their ids, and what the lists have lost.

        Of several with one id the last one counts. Of a list that is cut off, those before the cut are there.
        """
        found: dict[str, Listed] = {}
        losses: list[str] = []
        for name, data in self.lists():
            try:
                items = list(_items(data, name, losses))
            except UNREADABLE as error:
                raise SourceError(f"no list of conversations: {error}", path=self._path) from error
            again = 0
            for each in (_listed(service, *item) for item in items):
                before = found.get(each.identity)
                again += before is not None and memoryview(before.json) != memoryview(each.json)
                found[each.identity] = each
            if again:
                losses.append(f"{name}: conversations that are left out, since a later one has their id: {again}")
        return found, tuple(losses)

    def files(self, beginnings: Iterable[str]) -> Iterator[tuple[str, bytes | None]]:
        """The name and the content of the file whose name begins with each of these; None for one that is too large."""
        wanted = sorted({each for each in beginnings if each})
        named = self._named() if wanted else []
        for beginning in wanted:
            # The first one that is not before a beginning has it, or none has.
            found = bisect_left(named, (beginning, ""))
            name, place = named[found] if found < len(named) else ("", "")
            if name.startswith(beginning):
                yield name, self._content(place)

    def _named(self) -> list[tuple[str, str]]:
        """The name and the place of each file that is no list, sorted; of a zip they are looked up once."""
        if self._kept is None or self._zip is None:
            named = ((PurePosixPath(place).name, place) for place in self._names())
            self._kept = sorted(each for each in named if not LISTS.fullmatch(each[0]))
        return self._kept

    def _names(self) -> list[str]:
        if self._zip is not None:
            return [each.filename for each in self._zip.infolist()[:_MOST_FILES] if not each.is_dir()]
        folder = self._path.parent
        # Images are beside the list, or in folders of their own.
        places = (folder, *(each for each in folder.iterdir() if each.is_dir() and not each.is_symlink()))
        return [
            str(file.relative_to(folder))
            for place in places
            for file in place.iterdir()
            if file.is_file() and not file.is_symlink()
        ]

    def _content(self, name: str) -> bytes | None:
        """The content of a file that is no list; None if it is too large."""
        if self._zip is not None:
            # The last one of its name.
            info = self._zip.getinfo(name)
            return None if info.file_size > LARGEST_FILE else self._unpacked(self._zip, info)
        data = read_regular_file(self._path.parent / name, LARGEST_FILE + 1)
        return None if len(data) > LARGEST_FILE else data

    def _unpacked(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
        """The content of a file in a zip."""
        try:
            if info.flag_bits & _ENCRYPTED:
                raise SourceError(f"{info.filename} is encrypted: unpack the zip with its password", path=self._path)
            return archive.read(info)
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, RuntimeError, NotImplementedError) as error:
            raise SourceError(f"{info.filename}: {error}", path=self._path) from error


def _items(data: bytes, name: str, losses: list[str]) -> Iterable[tuple[Raw, Raw]]:
    """The items of a list: each so that it can be decoded, and as it is. `losses` gets what it has lost."""
    # Whoever opened the list in an editor may have saved it with a byte order mark.
    text = data.removeprefix(BOM_UTF8)
    try:
        items = msgspec.json.decode(text, type=list[Raw])
    except UNREADABLE:
        pass
    else:
        return zip(items, items, strict=True)
    try:
        return _odd_items(text, msgspec.json.decode(without_lone_surrogates(text), type=list[Raw]))
    except UNREADABLE:
        if not text.lstrip().startswith(b"["):
            raise
    cuts = list(_cuts(data))
    lost = _lost(data, cuts)
    if lost is not None:
        losses.append(f"{name}: {lost}")
    return _items_apart(data, cuts)


def _lost(data: bytes, cuts: Sequence[tuple[int, int | None]]) -> str | None:
    """What is lost of a list that does not end as one; None where nothing is."""
    start, end = cuts[-1]
    if end is None:
        return (
            f"the list is cut off at byte {len(data)}: its conversation {len(cuts)}, which begins at byte {start}, is"
            " lost, and so are those behind it; those before it are read"
        )
    left = len(data) - end - 1
    return (
        f"{left} bytes behind the end of the list, at byte {end + 1}, are not read" if data[end + 1 :].strip() else None
    )


def _items_apart(data: bytes, cuts: Iterable[tuple[int, int | None]]) -> Iterator[tuple[Raw, Raw]]:
    """The items of a list of which one cannot be decoded, as where it is nested too deeply: only that one is lost."""
    view = memoryview(data)
    for start, end in cuts:
        item = b"" if end is None else data[start:end]
        if item.strip():
            yield Raw(without_lone_surrogates(item)), Raw(view[start:end])


def _cuts(data: bytes) -> Iterator[tuple[int, int | None]]:
    """Where each item of a list begins and ends; the end is None where the list stops before it does."""
    depth = start = 0
    for token in _TOKEN.finditer(data):
        kind = token[0]
        if kind in b"[{":
            depth += 1
            start = token.end() if depth == 1 else start
        elif kind in b"]}":
            depth -= 1
            if depth == 0:
                yield start, token.start()
                return
        elif kind == b"," and depth == 1:
            yield start, token.start()
            start = token.end()
    yield start, None


def _odd_items(data: bytes, readable: Iterable[Raw]) -> Iterator[tuple[Raw, Raw]]:
    """The items of a list with lone surrogates: each without them, and as the list has it."""
    view, end = memoryview(data), data.find(b"[") + 1
    for item in readable:
        between = _BETWEEN.match(data, end)
        start = end if between is None else between.end()
        end = start + memoryview(item).nbytes
        yield item, Raw(view[start:end])


def _listed(service: Service, readable: Raw, item: Raw) -> Listed:
    try:
        fields = msgspec.json.decode(readable, type=dict[str, Raw])
    except UNREADABLE:
        fields = {}
    names = (*service.id_fields, service.time_field)
    values = {name: _value(fields[name]) for name in names if name in fields}
    identity = given_id(service, values) or _made_id(service, item)
    return Listed(identity, values.get(service.time_field), item)


def _value(raw: Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except UNREADABLE:
        return None


def given_id(service: Service, conversation: Mapping[str, Any]) -> str | None:
    """The id that a conversation has; None if it has none."""
    return next(filter(None, (text_of(conversation.get(name)) for name in service.id_fields)), None)


def _made_id(service: Service, item: Raw) -> str:
    """An id for a conversation without one, which stays the same as it goes on."""
    time, first = service.first_of(object_in(item))
    data = memoryview(item) if first is None else f"{time} {first}".encode()
    return f"no-id-{hashlib.sha256(data).hexdigest()[:32]}"


def object_in(raw: Raw) -> dict[str, Any]:
    """A conversation; empty if it cannot be read."""
    return read_object(memoryview(raw))[0]


def read_object(data: bytes | memoryview) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A conversation, empty if it cannot be read, and what of its text was replaced."""
    try:
        return object_of(msgspec.json.decode(data)), ()
    except UNREADABLE:
        pass
    given = bytes(data)
    text = clean_json(given)
    made = without_lone_surrogates(text)
    try:
        found = object_of(msgspec.json.decode(made))
    except UNREADABLE:
        return {}, ()
    replaced = ((REPLACED, text is not given), (REPAIRED, bytes(made) != text))
    return found, tuple(reason for reason, is_so in replaced if is_so)
