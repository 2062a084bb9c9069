"""The row log of a session: the bytes of its files, and the rows that they come to.

Files are kept as in `turnlog.agents.file_rows`, so a journal that the program deletes stays. A row is one line for each
time that it said something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from turnlog.agents.base import RowUpdate, Source
from turnlog.agents.file_rows import FileRow, changed_files, restore_files
from turnlog.agents.mistral_vibe.rows import FILE, VibeRow, rows_of
from turnlog.agents.mistral_vibe.store import parse_session, read_files

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(VibeRow).decode


def new_lines(source: Source, log: Iterable[bytes]) -> RowUpdate:
    """The lines that a log does not have yet. Raises OSError or SourceError."""
    folder = Path(source.path).parent
    files, known = read_files(folder), list(_rows_in(log))
    rows = {row.id: row for row in known if row.row != FILE}
    lines = [VibeRow(row=FILE, file=file) for file in changed_files(files, _files_in(known))]
    lines += [row for row in rows_of(parse_session(files, folder), rows) if rows.get(row.id) != row]
    return RowUpdate(lines=[_encode(line) + b"\n" for line in lines])


def restore_rows(source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
    """Write the files of a session as they were last. Raises ConflictError if there are others in their place."""
    return restore_files(source, _files_in(_rows_in(log)), to)


def _rows_in(log: Iterable[bytes]) -> Iterator[VibeRow]:
    for line in b"".join(log).split(b"\n"):
        try:
            if line:
                yield _decode(line)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            continue


def _files_in(rows: Iterable[VibeRow]) -> list[FileRow]:
    return [row.file for row in rows if row.row == FILE and row.file is not None]
