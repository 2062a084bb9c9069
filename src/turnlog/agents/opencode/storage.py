"""The rows of sessions in OpenCode's JSON storage: a small file for each session, message and part.

Two layouts: `storage/` of about 0.6 to 1.1, and `project/<directory>/storage/` before it. Files that hold secrets
(`session_share`) are not read.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from turnlog.agents.base import Version
from turnlog.agents.folders import entries, folders, holds_file, is_file
from turnlog.agents.opencode.rows import PROJECT, TO_DOS, Row, as_text, document_of, time_of
from turnlog.agents.opencode.snapshot import MessageRows, Snapshot, listed
from turnlog.agents.opencode.timeline import Copy, Listed

_JSON = ".json"

_LAYOUTS = (
    re.compile(r"(?P<base>storage)/session/(?P<project>[^/]+)/(?P<session>[^/]+)\.json"),
    re.compile(r"(?P<base>storage)/message/(?P<session>[^/]+)"),
    re.compile(r"(?P<base>project/[^/]+/storage/session)/info/(?P<session>[^/]+)\.json"),
    re.compile(r"(?P<base>project/[^/]+/storage/session)/message/(?P<session>[^/]+)"),
)
"""Where a session begins, relative to the data folder: its file, or the folder of its messages when it has none."""


_FILES = (
    re.compile(r"storage/(?:session/[^/]+|todo|session_diff)/(?P<session>[^/]+)\.json"),
    re.compile(r"storage/message/(?P<session>[^/]+)/[^/]+\.json"),
    re.compile(r"storage/part/(?P<message>[^/]+)/[^/]+\.json"),
    re.compile(r"project/[^/]+/storage/session/info/(?P<session>[^/]+)\.json"),
    re.compile(r"project/[^/]+/storage/session/(?:message|part)/(?P<session>[^/]+)/.+\.json"),
)
"""Which session a file is of, or which message."""


class Place(NamedTuple):
    """Where one session's files lie."""

    root: Path
    session: str
    file: Path | None
    """None: only its messages are there."""
    base: Path
    project: str | None

    def part_folder(self, message_id: str) -> Path:
        """The folder of a message's parts."""
        if self.base.name == "storage":
            return self.base / "part" / message_id
        return self.base / "part" / self.session / message_id

    @property
    def message_folder(self) -> Path:
        """The folder of the session's messages."""
        return self.base / "message" / self.session

    def others(self) -> Iterator[tuple[str, str, Path]]:
        """Further files: table, key, path."""
        if self.base.name == "storage":
            if self.project is not None:
                yield PROJECT, "", self.base / "project" / f"{self.project}{_JSON}"
            yield TO_DOS, "", self.base / "todo" / f"{self.session}{_JSON}"
            yield "session_diff", "", self.base / "session_diff" / f"{self.session}{_JSON}"


def place_of(path: Path, root: Path) -> Place | None:
    """The session that a path below a data folder is the beginning of."""
    try:
        relative = path.relative_to(root).as_posix()
    except ValueError:
        return None
    for layout in _LAYOUTS:
        match = layout.fullmatch(relative)
        if match:
            found = match.groupdict()
            file = path if relative.endswith(_JSON) else None
            return Place(root, found["session"], file, root / found["base"], found.get("project"))
    return None


def session_at(path: Path, root: Path) -> str | None:
    """The session that a file of the JSON storage, which may be gone, is of."""
    try:
        relative = path.relative_to(root).as_posix()
    except ValueError:
        return None
    for layout in _FILES:
        match = layout.fullmatch(relative)
        if match:
            found = match.groupdict()
            return found.get("session") or _session_of_message(root / "storage" / "message", found["message"])
    return None


def _session_of_message(base: Path, message: str) -> str | None:
    return next((folder.name for folder in _folders(base) if holds_file(folder, f"{message}{_JSON}")), None)


def find_places(root: Path) -> Iterator[tuple[Path, Place]]:
    """Every session in the JSON storages below a data folder, with the path it is known by."""
    for base in (root / "storage", *(folder / "storage" / "session" for folder in _folders(root / "project"))):
        is_flat = base.name == "session"
        shelves = [base / "info"] if is_flat else list(_folders(base / "session"))
        files = {file.stem: file for shelf in shelves for file in _files(shelf)}
        orphans = {folder.name: folder for folder in _folders(base / "message") if folder.name not in files}
        for path in (*files.values(), *orphans.values()):
            place = place_of(path, root)
            if place is not None:
                yield path, place


def version_of(place: Place) -> Version:
    """Of all files of a session: from what a look at each of them tells."""
    digest = hashlib.blake2b(digest_size=14)
    size = newest = 0
    for path, status in _statuses(place):
        size += status.st_size
        newest = max(newest, status.st_mtime_ns)
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ino}\n".encode(errors="replace"))
    found = digest.digest()
    return size, newest, int.from_bytes(found[:7], "big"), int.from_bytes(found[7:], "big")


class FileRows:
    """One session's files. See `snapshot.Rows`."""

    def __init__(self, place: Place) -> None:
        """Nothing is opened yet."""
        self._place = place

    def read(self, events_after: int) -> Snapshot:
        """See `snapshot.Rows.read`. A file that goes away meanwhile is left out."""
        place = self._place
        session = self._row(place.file) if place.file else None
        others = {table: self._row(path) for table, _, path in place.others()}
        todo = others.pop(TO_DOS, None)
        return Snapshot(
            session=session,
            info=_document(session) if session else {},
            messages=list(self._messages(place)),
            todo=(todo,) if todo else None,
            others=[(table, "", row) for table, row in others.items() if row is not None],
        )

    def find_originals(self, messages: Sequence[Listed], session: Row) -> dict[str, Copy]:
        """See `TableRows.find_originals`: the same, by reading the other sessions of the project."""
        wanted = {message.created for message in messages}
        made: dict[int, tuple[tuple[int, str], list[Listed]]] = {}
        for other in self._older_sessions(session):
            for message in self._messages_of(other):
                if message.created in wanted:
                    first, found = made.setdefault(message.created, (_age(other), []))
                    if first == _age(other):
                        found.append(message._replace(info=message.info | {"sessionID": other.get("id")}))
        copies: dict[str, Copy] = {}
        for created, (_, originals) in made.items():
            same_time = sorted((message for message in messages if message.created == created), key=_key)
            for copy, original in zip(same_time, sorted(originals, key=_key), strict=False):
                if all(copy.info.get(name) == original.info.get(name) for name in ("role", "modelID")):
                    copies[copy.key] = Copy(original.key, str(original.info["sessionID"]))
        return copies

    def _older_sessions(self, session: Row) -> list[Row]:
        if self._place.file is None:
            return []
        found = [_document(row) for file in _files(self._place.file.parent) if (row := self._row(file))]
        return sorted((other for other in found if _age(other) < _age(session)), key=_age)

    def _messages_of(self, session: Row) -> Iterator[Listed]:
        place = self._place._replace(session=str(session.get("id")))
        for file in _files(place.message_folder):
            row = self._row(file)
            if row is not None:
                yield listed(MessageRows(file.stem, row))

    def _messages(self, place: Place) -> Iterator[MessageRows]:
        for file in _files(place.message_folder):
            row = self._row(file)
            if row is not None:
                parts = (self._row(part) for part in _files(place.part_folder(file.stem)))
                yield MessageRows(file.stem, row, tuple(part for part in parts if part is not None))

    def _row(self, path: Path) -> Row | None:
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                text = as_text(file.read())
        except (FileNotFoundError, IsADirectoryError):
            return None
        name = path.relative_to(self._place.root).as_posix()
        return {"file": name, "text": text, "mode": stat.S_IMODE(status.st_mode), "mtime_ns": status.st_mtime_ns}


def _document(row: Row) -> Row:
    try:
        return document_of(row)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return {}


def _age(session: Row) -> tuple[int, str]:
    return time_of(session, "created"), str(session.get("id"))


def _key(message: Listed) -> str:
    return message.key


def _statuses(place: Place) -> Iterator[tuple[str, os.stat_result]]:
    for path in (*((place.file,) if place.file else ()), *(path for _, _, path in place.others())):
        try:
            yield str(path), path.stat()
        except OSError:
            continue
    for message in entries(str(place.message_folder)):
        if message.name.endswith(_JSON):
            yield message.path, message.stat(follow_symlinks=False)
            for part in entries(str(place.part_folder(message.name.removesuffix(_JSON)))):
                yield part.path, part.stat(follow_symlinks=False)


def _files(folder: Path) -> Iterator[Path]:
    for entry in filter(is_file, entries(str(folder))):
        if entry.name.endswith(_JSON):
            yield Path(entry.path)


def _folders(folder: Path) -> Iterator[Path]:
    for entry in folders(str(folder)):
        yield Path(entry.path)
