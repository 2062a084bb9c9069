"""Rows of agents' databases as lines of a log, and back: the same line for the same row, whichever pass saw it.

A log of rows begins to differ where a row has changed. It is then written anew, and its older generation stays in the
archive (`turnlog.agents.base.RowAgent`).
"""

from __future__ import annotations

import base64
import binascii
import os
import sqlite3
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
from msgspec import Raw

from turnlog.agents.base import RowUpdate, Source
from turnlog.agents.databases import Row
from turnlog.agents.decoding import clean_json, is_utf8, object_of, value_of
from turnlog.agents.jsonl import UNREADABLE, JsonLines
from turnlog.atomic_files import make_folders, refuse_other_than_file, write_atomically
from turnlog.errors import ConflictError, StoreError

FILE = "file:"
"""How the name of a column begins that has a file beside a session; the name of the file follows."""

_BYTES = "$base64"
"""The only field of an object that represents bytes in a column."""

_TYPES: dict[type[int | float | str | bytes], str] = {int: "INTEGER", float: "REAL", str: "TEXT", bytes: "BLOB"}

Keys = Mapping[str, Sequence[str]]
"""Table -> the columns of its primary key."""


class RowLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line: a row with the columns that have a value. Every field has a default, because a line may lack any."""

    table: str = ""
    row: Raw = Raw(b"null")
    json: dict[str, Raw] = {}
    """Columns whose text is an object of JSON: column -> exactly that text."""
    binary: tuple[str, ...] = ()
    """Those among them that the row has as bytes."""
    note: str | None = None
    """What no row says, and only all rows together show."""


ROWS = JsonLines(RowLine, first_keys=("table",), plausible=lambda line: bool(line.table))
"""Reads lines of rows."""

_encode = msgspec.json.Encoder().encode
_encode_lines = msgspec.json.Encoder().encode_lines
_decode = msgspec.json.Decoder(RowLine).decode


def line_of(table: str, row: Row, note: str | None = None) -> bytes:
    """The line of a row."""
    known = {name: value for name, value in row.items() if value is not None}
    json = {name: raw for name, value in known.items() if (raw := _raw_in(value)) is not None}
    line = RowLine(
        table=table,
        row=Raw(_encode({name: _to_json(value) for name, value in known.items() if name not in json})),
        json=json,
        binary=tuple(name for name in json if isinstance(known[name], bytes)),
        note=note,
    )
    # With its end at once: a line may have a hundred megabytes, and is not copied for one byte.
    return _encode_lines([line])


def json_column(data: bytes) -> Raw | None:
    """Text as a column that `line_of` takes as it is; None unless it is an object of JSON on one line."""
    found = _object_in(data)
    return None if found is None else Raw(found)


def _raw_in(value: object) -> Raw | None:
    if isinstance(value, Raw):
        return value
    text = _object_in(value)
    return None if text is None else Raw(text)


def _object_in(value: object) -> bytes | None:
    """The text of a column, if it is an object of JSON on one line."""
    if not isinstance(value, str | bytes) or value[:1] not in ("{", b"{"):
        return None
    try:
        data = value.encode() if isinstance(value, str) else value
        if b"\n" in data or b"\r" in data or (data is value and not is_utf8(data)):
            return None
        msgspec.json.decode(data, type=dict[str, Raw])
    except (UnicodeError, *UNREADABLE):
        return None
    return data


def _to_json(value: object) -> object:
    return {_BYTES: base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def row_of(line: RowLine, *, without: str | None = None) -> Row:
    """The row in a line, perhaps without a large column; empty where that is no object."""
    row = {name: _from_json(value) for name, value in object_of(value_of(line.row)).items() if name != without}
    for name, raw in line.json.items():
        if name == without:
            continue
        text = clean_json(bytes(raw))
        row[name] = text if name in line.binary else text.decode()
    return row


def json_in(line: RowLine, column: str) -> bytes | None:
    """The text of a column that holds JSON, without decoding the rest of the row."""
    raw = line.json.get(column)
    if raw is not None:
        return clean_json(bytes(raw))
    value = row_of(line).get(column)
    return value.encode(errors="replace") if isinstance(value, str) else value if isinstance(value, bytes) else None


def _from_json(value: object) -> object:
    text = object_of(value).get(_BYTES)
    try:
        return base64.b64decode(text) if isinstance(text, str) else value
    except (binascii.Error, ValueError):
        return value


def update_of(lines: Sequence[bytes], log: Iterable[bytes]) -> RowUpdate:
    """What is new in the lines of a session: those behind the log's, or all of them if the log has others."""
    known = b"".join(log).splitlines(keepends=True)
    if list(lines[: len(known)]) != known:
        return RowUpdate(lines=lines, anew=True)
    return RowUpdate(lines=lines[len(known) :])


def rows_in(log: Iterable[bytes]) -> Iterator[tuple[str, Row]]:
    """The rows in a log, each with its table."""
    for line in b"".join(log).split(b"\n"):
        if line:
            found = _decode(line)
            yield found.table, row_of(found)


# -- files beside a session


def files_in(row: Row) -> dict[str, bytes]:
    """The files in a row, by their names."""
    return {
        name.removeprefix(FILE): content
        for name, content in row.items()
        if name.startswith(FILE) and isinstance(content, bytes)
    }


def restore_file(path: Path, data: bytes, to: Path) -> Path:
    """Write a file below the folder `to`, for the user alone, and return its path.

    Raises ConflictError if anything else is there, also a link, which could lead elsewhere.
    """
    make_folders(path.parent, to)
    try:
        refuse_other_than_file(path)
    except OSError as error:
        raise ConflictError(f"{path}: {error.strerror}") from error
    if not path.exists():
        write_atomically(path, data, 0o600)
    elif path.read_bytes() != data:
        raise ConflictError(f"{path} is there already with other content")
    return path


# -- restoring rows


def restore_database(
    source: Source, rows: Iterable[tuple[str, Row]], to: Path, keys: Keys, needed: Mapping[str, Set[str]]
) -> list[Path]:
    """Write rows into the database of a source `<database>#<session>` below the folder `to`.

    A new database's tables are made with the columns that the rows have, and with those (table -> columns) that are
    `needed` to know and read it, also without a row. Rows of tables that `keys` does not name are left out.

    Raises ConflictError if the database has other rows with the same keys.
    """
    database, separator, _ = source.path.partition("#")
    # A database by itself has no rows.
    if not separator:
        return []
    target = to / os.path.relpath(database, source.root)
    make_folders(target.parent, to)
    try:
        refuse_other_than_file(target)
    except OSError as error:
        raise ConflictError(f"{target}: {error.strerror}") from error
    target.touch(0o600)
    with closing(sqlite3.connect(target)) as connection, connection, completed(connection, needed):
        for table, row in rows:
            if row and table in keys:
                _insert(connection, target, table, row, keys[table])
    return [target]


def is_restored(path: Path) -> bool:
    """Whether turnlog has written a database: agents declare their tables otherwise, and have indexes."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            found = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    except sqlite3.Error:
        return False
    return bool(found) and all(sql.startswith(f'CREATE TABLE "{name}" (') for name, sql in found)


@contextmanager
def completed(connection: sqlite3.Connection, needed: Mapping[str, Set[str]]) -> Generator[None]:
    """Give a new database what it lacks of tables (-> columns) after the body.

    One that has tables may be the agent's own, whose next version adds its tables itself. Columns without a type take
    any value as it is.

    Raises StoreError if the body has rows that no agent writes: a log may come from others.
    """
    (is_new,) = connection.execute("SELECT NOT EXISTS (SELECT 1 FROM sqlite_master)").fetchone()
    try:
        yield
    except (sqlite3.Error, OverflowError, KeyError) as error:
        raise StoreError(f"rows of the log cannot be written into a database: {error}") from error
    for table, columns in needed.items() if is_new else ():
        if known := _columns_of(connection, table):
            for name in sorted(columns - known):
                connection.execute(f'ALTER TABLE "{table}" ADD COLUMN "{name}"')
        else:
            names = ", ".join(f'"{name}"' for name in sorted(columns) or ("id",))
            connection.execute(f'CREATE TABLE "{table}" ({names})')


def quoted(name: str) -> str:
    """A name in SQL. That of a column may be any text: a log has it."""
    return '"' + name.replace('"', '""') + '"'


def _columns_of(connection: sqlite3.Connection, table: str) -> set[str]:
    return {name for _, name, *_ in connection.execute(f'PRAGMA table_info("{table}")')}


def _insert(connection: sqlite3.Connection, target: Path, table: str, row: Row, primary: Sequence[str]) -> None:
    known = _columns_of(connection, table)
    keys = [name for name in primary if name in row or name in known]
    if not known:
        columns = ", ".join(f"{quoted(name)} {_type_of(value)}".rstrip() for name, value in row.items())
        primary_key = ", ".join(f'"{name}"' for name in keys)
        connection.execute(f'CREATE TABLE "{table}" ({columns}, PRIMARY KEY ({primary_key}))')
    for name in row.keys() - known if known else ():
        connection.execute(f'ALTER TABLE "{table}" ADD COLUMN {quoted(name)} {_type_of(row[name])}')
    condition = " AND ".join(f'"{name}" IS ?' for name in keys)
    cursor = connection.execute(f'SELECT * FROM "{table}" WHERE {condition}', [row.get(name) for name in keys])
    found = cursor.fetchone()
    if found is None:
        names, marks = ", ".join(map(quoted, row)), ", ".join("?" for _ in row)
        connection.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', list(row.values()))
        return
    present = dict(zip((column[0] for column in cursor.description), found, strict=True))
    if any(present.get(name) != value for name, value in row.items()):
        raise ConflictError(f"{target} has another row {[row.get(name) for name in keys]} in {table} already")


def _type_of(value: object) -> str:
    return next((name for kind, name in _TYPES.items() if isinstance(value, kind)), "")
