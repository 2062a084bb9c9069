"""Giving back a session's rows: into a database of the original's tables, or as the files that they were.

Rows go into the tables that today's OpenCode has for them, made with the columns that the rows have. Several sessions
of one database may be restored into one file, one after the other.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path, PurePosixPath

from turnlog.agents.base import Source
from turnlog.agents.opencode.rows import (
    MESSAGE,
    TO_DOS,
    Line,
    Row,
    bytes_of,
    decode_line,
    is_blob,
    newest_lines,
    object_of,
)
from turnlog.agents.opencode.session_messages import SESSION_MESSAGE, is_session_message
from turnlog.agents.opencode.sources import in_database
from turnlog.errors import ConflictError, StoreError

_KEYS = {
    "event": ("id",),
    "event_sequence": ("aggregate_id",),
    "message": ("id",),
    "part": ("id",),
    "project": ("id",),
    "session": ("id",),
    "session_context_epoch": ("session_id",),
    "session_input": ("id",),
    "session_message": ("id",),
    "todo": ("session_id", "position"),
}
"""Primary keys."""


def restore_rows(source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
    """See `RowAgent.restore_rows`."""
    lines = [decode_line(line) for line in newest_lines(log).values()]
    rows = [(table, row) for line in lines if not line.deleted for table, row in _rows(line)]
    place = in_database(source.path)
    if place is None:
        return [_write_file(row, to) for _, row in rows if "file" in row]
    target = to / os.path.relpath(place[0], source.root)
    target.parent.mkdir(parents=True, exist_ok=True)
    _write_tables(rows, target)
    return [target]


def _rows(line: Line) -> Iterator[tuple[str, Row]]:
    """The rows in a line, by table."""
    if line.row:
        yield SESSION_MESSAGE if is_session_message(line.row) else line.table, line.row
    part_table = "part" if line.table == MESSAGE else line.table
    for row in line.parts:
        yield part_table, row
    if line.table == TO_DOS:
        for row in line.rows:
            yield TO_DOS, row


def _write_tables(rows: Iterable[tuple[str, Row]], target: Path) -> None:
    with closing(sqlite3.connect(target)) as connection, connection:
        for table, row in rows:
            _ensure_columns(connection, table, row)
            if not _is_there(connection, table, row, target):
                columns = ", ".join(f'"{name}"' for name in row)
                marks = ", ".join("CAST(? AS TEXT)" if _is_odd_text(value) else "?" for value in row.values())
                values = [_bound(value) for value in row.values()]
                connection.execute(f'INSERT INTO "{table}" ({columns}) VALUES ({marks})', values)


def _ensure_columns(connection: sqlite3.Connection, table: str, row: Row) -> None:
    known = {name: kind for _, name, kind, *_ in connection.execute(f'PRAGMA table_info("{table}")')}
    if not known:
        columns = ", ".join(f'"{name}" {_type_of(value)}'.rstrip() for name, value in row.items())
        keys = ", ".join(f'"{name}"' for name in _KEYS[table])
        connection.execute(f'CREATE TABLE "{table}" ({columns}, PRIMARY KEY ({keys}))')
    for name in row.keys() - known.keys() if known else ():
        connection.execute(f'ALTER TABLE "{table}" ADD COLUMN "{name}"')


def _is_there(connection: sqlite3.Connection, table: str, row: Row, target: Path) -> bool:
    """Whether the row is there already; raise ConflictError when it is there and says something else."""
    keys = _KEYS[table]
    condition = " AND ".join(f'"{name}" = ?' for name in keys)
    cursor = connection.execute(f'SELECT * FROM "{table}" WHERE {condition}', [row[name] for name in keys])
    found = cursor.fetchone()
    if found is None:
        return False
    there = {name[0]: value for name, value in zip(cursor.description, found, strict=True)}
    if any(there[name] != _bound(value) for name, value in row.items() if not _is_odd_text(value)):
        raise ConflictError(f"{target} has another row {[row[name] for name in keys]} in {table} already")
    return True


def _type_of(value: object) -> str:
    return "INTEGER" if isinstance(value, int) else "REAL" if isinstance(value, float) else ""


def _bound(value: object) -> object:
    return bytes_of(object_of(value)) if object_of(value) else value


def _is_odd_text(value: object) -> bool:
    # JSON of any shape: the checker cannot know what a dict holds.
    return isinstance(value, dict) and not is_blob(value)  # pyright: ignore[reportUnknownArgumentType]


def _write_file(row: Row, to: Path) -> Path:
    relative = PurePosixPath(row["file"])
    if relative.is_absolute() or ".." in relative.parts:
        raise StoreError(f"{relative} has no place in {to}")
    target = to / relative
    data = bytes_of(row["text"]) or b""
    if target.is_symlink() or target.exists():
        if target.is_symlink() or not target.is_file() or target.read_bytes() != data:
            raise ConflictError(f"{target} is there already with other content")
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.parent.resolve().is_relative_to(to.resolve()):
        raise StoreError(f"{target} leads out of {to} through a symbolic link")
    target.write_bytes(data)
    target.chmod(row["mode"] & 0o777)
    os.utime(target, ns=(row["mtime_ns"], row["mtime_ns"]))
    return target
