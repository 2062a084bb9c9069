"""Zed's database of threads: listing them with their versions, and the row of each as lines.

A row holds a whole thread as JSON, mostly compressed. Its log has a line for the row, with the JSON without messages,
and one for each message. A row that is written back is not compressed; Zed reads both.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from turnlog.agents.base import RowUpdate, Source, Version
from turnlog.agents.databases import (
    Row,
    SessionListing,
    has_columns,
    is_filled,
    open_snapshot,
    replacing_text,
    select_rows,
)
from turnlog.agents.decoding import fields_of
from turnlog.agents.files import decompress
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.row_files import line_of, restore_database, rows_in, update_of
from turnlog.agents.strays import Belonging
from turnlog.agents.zed import NAME

THREADS = "threads"
"""The only table that may be read."""

MESSAGES = "messages"
"""The table of a line with a message of a thread, and its only column, `message`. There is none."""

_MESSAGE = "message"

OWN_COLUMNS = {THREADS: {"id", "summary", "updated_at", "data_type", "data"}}

BELONGINGS = (Belonging(THREADS, "id"),)
"""What a row must have to be read."""

_JSON, _PACKED = "json", "zstd"
"""Values of `data_type`."""

_encode = msgspec.json.Encoder().encode


@contextmanager
def open_database(path: Path) -> Generator[sqlite3.Connection]:
    """A connection to one consistent snapshot. Raises OSError if there is no file, SourceError if it is unreadable."""
    with open_snapshot(path, frozenset({THREADS}), replacing_text) as connection:
        yield connection


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def is_own(connection: sqlite3.Connection) -> bool:
    """Whether the database has Zed's table."""
    return has_columns(connection, OWN_COLUMNS)


def list_sessions(path: Path, only: str | None = None) -> list[SessionListing]:
    """Every thread of the database, or only one. Its version changes with its row.

    Raises:
        OSError: There is no such file.
        SourceError: It cannot be read, or has another schema.
    """
    with open_database(path) as connection:
        if not is_filled(connection, OWN_COLUMNS, path):
            return []
        where, given = ("", ()) if only is None else (" WHERE id = ?", (only,))
        listed = select_rows(
            connection,
            f"SELECT id, summary, updated_at, length(data) AS size FROM {THREADS}{where} ORDER BY id",
            *given,
        )
        return [
            SessionListing(row["id"], _version(row))
            for row in listed
            if isinstance(row["id"], str) and row["id"] and "#" not in row["id"]
        ]


def _version(row: Row) -> Version:
    sign = zlib.crc32(repr(tuple(row.values())).encode(errors="replace"))
    return row["size"] or 0, 0, 0, sign


# -- a row as lines


def new_lines(connection: sqlite3.Connection, session: str, log: Iterable[bytes]) -> RowUpdate:
    """The lines of a thread that its log does not have yet; all of them if its row has changed."""
    row = next(select_rows(connection, f"SELECT * FROM {THREADS} WHERE id = ?", session), None)
    return update_of([] if row is None else _lines_of(row), log)


def _lines_of(row: Row) -> list[bytes]:
    text = thread_in(row)
    fields = fields_of(Raw(text)) if text is not None else {}
    if not fields:
        return [line_of(THREADS, row)]
    header = line_of(THREADS, row | {"data": _with_messages(fields, "null")})
    return [header, *(line_of(MESSAGES, {_MESSAGE: bytes(raw).decode()}) for raw in messages_in(fields))]


def thread_in(row: Row) -> bytes | None:
    """The JSON of a thread; None if it cannot be had."""
    data = row.get("data")
    if isinstance(data, str):
        data = data.encode()
    if not isinstance(data, bytes):
        return None
    if row.get("data_type") != _PACKED:
        return data
    found = decompress(".zst", data)
    return found.data if found.problem is None else None


def messages_in(fields: dict[str, Raw]) -> list[Raw]:
    """The messages of a thread, each as exact JSON."""
    try:
        return msgspec.json.decode(fields.get(MESSAGES, Raw(b"[]")), type=list[Raw])
    except UNREADABLE:
        return []


def _with_messages(fields: dict[str, Raw], messages: str) -> str:
    """An object of fields that are exact JSON, in their order, with other messages if it has some."""
    known = fields | ({MESSAGES: Raw(messages.encode())} if MESSAGES in fields else {})
    return "{" + ",".join(f"{_encode(name).decode()}:{bytes(raw).decode()}" for name, raw in known.items()) + "}"


def message_of(row: Row) -> str:
    """The JSON of the message in a line."""
    found: Any = row.get(_MESSAGE)
    return found if isinstance(found, str) else "null"


# -- restoring rows


def restore_rows(source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
    """Write the row of a thread into a database with its table. Raises ConflictError if that has another one."""
    rows = list(rows_in(log))
    messages = ",".join(message_of(row) for table, row in rows if table == MESSAGES)
    restored: list[tuple[str, Row]] = []
    for table, row in rows:
        data = row.get("data")
        if table == THREADS and isinstance(data, str):
            fields = fields_of(Raw(data.encode()))
            whole = _with_messages(fields, f"[{messages}]").encode()
            restored.append((table, row | {"data_type": _JSON, "data": whole}))
        elif table == THREADS:
            restored.append((table, row))
    return restore_database(source, restored, to, {THREADS: ("id",)}, OWN_COLUMNS)
