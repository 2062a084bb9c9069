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
from turnlog.agents.files import entries, folders, holds_file, is_file
from turnlog.agents.opencode.rows import PROJECT, TO_DOS, Row, as_text, document_of, time_of
from turnlog.agents.opencode.snapshot import ListedMessage, MessageCopy, MessageRows, Snapshot, list_message

_JSON = ".json"

_LAYOUTS = (
    re.compile(r"(?P<base>storage)/session/(?P<project>[^/]+)/(?P<session>[^/]+)\.json"),
    re.compile(r"(?P<base>storage)/message/(?P<session>[^/]+)"),
    re.compile(r"(?P<base>project/[^/]+/storage/session)/info/(?P<session>[^/]+)\.json"),
    re.compile(r"(?P<base>project/[^/]+/storage/session)/message/(?P<session>[^/]+)"),
)
"""Path of a session, relative to the data folder: its file, or the folder of its messages if it has none."""

_FILES = (
    re.compile(r"storage/(?:session/[^/]+|todo|session_diff)/(?P<session>[^/]+)\.json"),
    re.compile(r"storage/message/(?P<session>[^/]+)/[^/]+\.json"),
    re.compile(r"storage/part/(?P<message>[^/]+)/[^/]+\.json"),
    re.compile(r"project/[^/]+/storage/session/info/(?P<session>[^/]+)\.json"),
    re.compile(r"project/[^/]+/storage/session/(?:message|part)/(?P<session>[^/]+)/.+\.json"),
)
"""Path of any file of a session, with the id of the session or of a message."""


class SessionFiles(NamedTuple):
    """The files of one session."""

    root: Path
    session: str
    file: Path | None
    """None if it has only messages."""
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
        """Further files: table, key and path of each."""
        if self.base.name == "storage":
            if self.project is not None:
                yield PROJECT, "", self.base / "project" / f"{self.project}{_JSON}"
            yield TO_DOS, "", self.base / "todo" / f"{self.session}{_JSON}"
            yield "session_diff", "", self.base / "session_diff" / f"{self.session}{_JSON}"


def session_files_at(path: Path, root: Path) -> SessionFiles | None:
    """The files of the session with this path below the data folder `root`; None for any other path."""
    try:
        relative = path.relative_to(root).as_posix()
    except ValueError:
        return None
    for layout in _LAYOUTS:
        match = layout.fullmatch(relative)
        if match:
            found = match.groupdict()
            file = path if relative.endswith(_JSON) else None
            return SessionFiles(root, found["session"], file, root / found["base"], found.get("project"))
    return None


def session_of_file(path: Path, root: Path) -> str | None:
    """The session of a file of the JSON storage, which may be deleted already; None for any other file."""
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


def find_sessions(root: Path) -> Iterator[tuple[Path, SessionFiles]]:
    """Every session in the JSON storages below a data folder, with its path."""
    for base in (root / "storage", *(folder / "storage" / "session" for folder in _folders(root / "project"))):
        is_old_layout = base.name == "session"
        session_folders = [base / "info"] if is_old_layout else list(_folders(base / "session"))
        found = {file.stem: file for folder in session_folders for file in _files(folder)}
        orphans = {folder.name: folder for folder in _folders(base / "message") if folder.name not in found}
        for path in (*found.values(), *orphans.values()):
            files = session_files_at(path, root)
            if files is not None:
                yield path, files


def files_version(files: SessionFiles) -> Version:
    """The version of all files of a session, from their sizes and times. None is opened."""
    digest = hashlib.blake2b(digest_size=14)
    size = newest = 0
    for path, status in _statuses(files):
        size += status.st_size
        newest = max(newest, status.st_mtime_ns)
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ino}\n".encode(errors="replace"))
    found = digest.digest()
    return size, newest, int.from_bytes(found[:7], "big"), int.from_bytes(found[7:], "big")


class FileRows:
    """One session's files. See `snapshot.RowSource`."""

    def __init__(self, files: SessionFiles) -> None:
        """Nothing is opened yet."""
        self.external_id = files.session
        self._session_files = files

    def read(self, events_after: int) -> Snapshot:
        """See `snapshot.RowSource.read`. A file that is deleted meanwhile is left out."""
        files = self._session_files
        session = self._row(files.file) if files.file else None
        others = {table: self._row(path) for table, _, path in files.others()}
        todo = others.pop(TO_DOS, None)
        return Snapshot(
            session=session,
            info=_document(session) if session else {},
            messages=list(self._messages(files)),
            todo=(todo,) if todo else None,
            others=[(table, "", row) for table, row in others.items() if row is not None],
        )

    def find_originals(self, messages: Sequence[ListedMessage], session: Row) -> dict[str, MessageCopy]:
        """See `TableRows.find_originals`: the same rule, by reading the other sessions of the project."""
        times = {message.created for message in messages}
        originals_at: dict[int, tuple[tuple[int, str], list[ListedMessage]]] = {}
        for other in self._older_sessions(session):
            for message in self._messages_of(other):
                if message.created in times:
                    oldest, found = originals_at.setdefault(message.created, (_age(other), []))
                    # Of several sessions with a message of this time all but the oldest are forks themselves.
                    if oldest == _age(other):
                        found.append(message._replace(info=message.info | {"sessionID": other.get("id")}))
        copies: dict[str, MessageCopy] = {}
        for created, (_, originals) in originals_at.items():
            candidates = sorted((message for message in messages if message.created == created), key=_key)
            # Not strict: a fork may end within the messages of one millisecond.
            for copy, original in zip(candidates, sorted(originals, key=_key), strict=False):
                if all(copy.info.get(name) == original.info.get(name) for name in ("role", "modelID")):
                    copies[copy.key] = MessageCopy(original.key, str(original.info["sessionID"]))
        return copies

    def _older_sessions(self, session: Row) -> list[Row]:
        if self._session_files.file is None:
            return []
        found = [_document(row) for file in _files(self._session_files.file.parent) if (row := self._row(file))]
        return sorted((other for other in found if _age(other) < _age(session)), key=_age)

    def _messages_of(self, session: Row) -> Iterator[ListedMessage]:
        files = self._session_files._replace(session=str(session.get("id")))
        for file in _files(files.message_folder):
            row = self._row(file)
            if row is not None:
                yield list_message(MessageRows(file.stem, row))

    def _messages(self, files: SessionFiles) -> Iterator[MessageRows]:
        for file in _files(files.message_folder):
            row = self._row(file)
            if row is not None:
                parts = (self._row(part) for part in _files(files.part_folder(file.stem)))
                yield MessageRows(file.stem, row, tuple(part for part in parts if part is not None))

    def _row(self, path: Path) -> Row | None:
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                text = as_text(file.read())
        except (FileNotFoundError, IsADirectoryError):
            return None
        name = path.relative_to(self._session_files.root).as_posix()
        return {"file": name, "text": text, "mode": stat.S_IMODE(status.st_mode), "mtime_ns": status.st_mtime_ns}


def _document(row: Row) -> Row:
    try:
        return document_of(row)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return {}


def _age(session: Row) -> tuple[int, str]:
    return time_of(session, "created"), str(session.get("id"))


def _key(message: ListedMessage) -> str:
    return message.key


def _statuses(files: SessionFiles) -> Iterator[tuple[str, os.stat_result]]:
    for path in (*((files.file,) if files.file else ()), *(path for _, _, path in files.others())):
        try:
            yield str(path), path.stat()
        except OSError:
            continue
    for message in entries(str(files.message_folder)):
        if message.name.endswith(_JSON):
            yield message.path, message.stat(follow_symlinks=False)
            for part in entries(str(files.part_folder(message.name.removesuffix(_JSON)))):
                yield part.path, part.stat(follow_symlinks=False)


def _files(folder: Path) -> Iterator[Path]:
    for entry in filter(is_file, entries(str(folder))):
        if entry.name.endswith(_JSON):
            yield Path(entry.path)


def _folders(folder: Path) -> Iterator[Path]:
    for entry in folders(str(folder)):
        yield Path(entry.path)
