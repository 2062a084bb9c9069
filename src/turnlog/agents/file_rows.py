"""Sessions that are a folder of files: their bytes as lines of a row log, and back.

A file is one line for each time that it was new or had changed. What was added to a file is a line with that alone. So
the log keeps what an agent deletes, and the files can be restored as they were last.
"""

from __future__ import annotations

import hashlib
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.base import Source, Version
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.row_files import restore_file


class FileRow(msgspec.Struct, omit_defaults=True):
    """A version of a file. Every field has a default, because a damaged line may lack any."""

    path: str = ""
    """Relative to the folder of the session."""
    json: Raw | UnsetType = UNSET
    """The content, if it is an object of JSON on one line."""
    text: str | None = None
    """The content otherwise, or what was added."""
    base64: str | None = None
    """The same where it is no text."""
    start: int | None = None
    """Where it was added; None if it is the whole file."""
    modified: float | None = None
    """When the file was last written, in Unix seconds, where a reader needs it."""
    is_gone: bool = False

    def content(self) -> bytes:
        """The bytes that the row holds. Raises ValueError if they are damaged."""
        if not isinstance(self.json, UnsetType):
            return bytes(self.json)
        return b64decode(self.base64) if self.base64 is not None else (self.text or "").encode()


def file_row(path: str, data: bytes, start: int | None = None, modified: float | None = None) -> FileRow:
    """A row for the content of a file, or for what was added at `start`."""
    if start is None and is_one_object(data):
        return FileRow(path=path, json=Raw(data), modified=modified)
    try:
        return FileRow(path=path, start=start, text=data.decode(), modified=modified)
    except UnicodeDecodeError:
        return FileRow(path=path, start=start, base64=b64encode(data).decode(), modified=modified)


def is_one_object(data: bytes) -> bool:
    """Whether bytes are an object of JSON on one line, so that they can be part of a line."""
    if not data.startswith(b"{") or b"\n" in data or b"\r" in data:
        return False
    try:
        data.decode()
        msgspec.json.decode(data, type=dict[str, Raw])
    except (UnicodeError, *UNREADABLE):
        return False
    return True


def changed_files(files: Mapping[str, bytes], rows: Iterable[FileRow]) -> Iterator[FileRow]:
    """What is new in files since the rows of a log, in the order of `files`; those that are gone come last."""
    before = contents(rows)
    for name, data in files.items():
        old = before.get(name)
        if old == data:
            continue
        # An object of which only the beginning was read: its reader needs it whole.
        is_log = old and data.startswith(old) and not is_one_object(data)
        start = len(old) if old and is_log else None
        yield file_row(name, data[start or 0 :], start)
    for name in sorted(before.keys() - files.keys()):
        yield FileRow(path=name, is_gone=True)


def contents(rows: Iterable[FileRow]) -> dict[str, bytes]:
    """The newest content of each file that is not gone."""
    found: dict[str, bytes] = {}
    for row in rows:
        if row.is_gone:
            found.pop(row.path, None)
        else:
            kept = b"" if row.start is None else found.get(row.path, b"")[: row.start]
            found[row.path] = kept + row.content()
    return found


def version_of_files(folder: Path, names: Iterable[str]) -> Version:
    """The version of the files of a session, from their sizes and times. None is opened."""
    digest = hashlib.blake2b(digest_size=14)
    size = newest = 0
    for name in names:
        try:
            status = (folder / name).stat()
        except FileNotFoundError:
            continue
        size += status.st_size
        newest = max(newest, status.st_mtime_ns)
        digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ino}\n".encode(errors="replace"))
    found = digest.digest()
    return size, newest, int.from_bytes(found[:7], "big"), int.from_bytes(found[7:], "big")


def restore_files(source: Source, rows: Iterable[FileRow], to: Path) -> list[Path]:
    """Write the files of a session as they were last, below `to`; return them.

    Raises ConflictError if others are in their place.
    """
    folder = to / os.path.relpath(Path(source.path).parent, source.root)
    return [restore_file(folder / name, data, to) for name, data in sorted(contents(rows).items())]
