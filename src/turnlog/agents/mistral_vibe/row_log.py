"""The row log of a session: the bytes of its files, and the rows that they come to.

A file is one line for each time that it was new or had grown, so a journal that the program deletes stays. A row is one
line for each time that it said something else.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from turnlog.agents.base import RowUpdate, Source
from turnlog.agents.mistral_vibe.rows import FILE, VibeRow, rows_of
from turnlog.agents.mistral_vibe.store import parse_session, read_files
from turnlog.atomic_files import make_folders, refuse_other_than_file
from turnlog.errors import ConflictError

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(VibeRow).decode


def new_lines(source: Source, log: Iterable[bytes]) -> RowUpdate:
    """The lines that a log does not have yet. Raises OSError or SourceError."""
    folder = Path(source.path).parent
    files, known = read_files(folder), list(_lines(log))
    rows = {row.id: row for row in known if row.row != FILE}
    before = _contents(known)
    lines = [*_file_rows(files, before)]
    for row in rows_of(parse_session(files, folder), rows):
        if rows.get(row.id) != row:
            lines.append(row)
    return RowUpdate(lines=[_encode(line) + b"\n" for line in lines])


def _lines(log: Iterable[bytes]) -> Iterator[VibeRow]:
    for line in b"".join(log).split(b"\n"):
        try:
            if line:
                yield _decode(line)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            continue


def _file_rows(files: dict[str, bytes], before: dict[str, bytes]) -> Iterator[VibeRow]:
    for name, data in files.items():
        old = before.get(name)
        if old == data:
            continue
        start = len(old) if old and data.startswith(old) else None
        yield _file_row(name, start, data[start or 0 :])
    for name in before.keys() - files.keys():
        yield VibeRow(row=FILE, path=name, is_gone=True)


def _file_row(name: str, start: int | None, data: bytes) -> VibeRow:
    try:
        return VibeRow(row=FILE, path=name, start=start, text=data.decode())
    except UnicodeDecodeError:
        return VibeRow(row=FILE, path=name, start=start, base64=b64encode(data).decode())


def _bytes_of(row: VibeRow) -> bytes:
    return b64decode(row.base64) if row.base64 is not None else (row.text or "").encode()


def _contents(rows: Iterable[VibeRow]) -> dict[str, bytes]:
    """The newest content of each file that is not gone."""
    found: dict[str, bytes] = {}
    for row in rows:
        if row.row != FILE:
            continue
        if row.is_gone:
            found.pop(row.path, None)
        else:
            data = _bytes_of(row)
            found[row.path] = data if row.start is None else found.get(row.path, b"")[: row.start] + data
    return found


def restore_rows(source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
    """Write the files of a session as they were last. Raises ConflictError if there are others in their place."""
    folder = to / os.path.relpath(Path(source.path).parent, source.root)
    written: list[Path] = []
    for name, data in sorted(_contents(_lines(log)).items()):
        target = folder / name
        make_folders(target.parent, to)
        try:
            refuse_other_than_file(target)
        except OSError as error:
            raise ConflictError(f"{target}: {error.strerror}") from error
        if target.exists() and target.read_bytes() != data:
            raise ConflictError(f"{target} is there already, with another content")
        target.write_bytes(data)
        written.append(target)
    return written
