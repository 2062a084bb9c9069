"""The row log of a session, one line for each record, and that of what other tables say about it, one line in all.

A line of a record has its number, its time and the record itself, whose JSON is kept exactly. OpenClaw compresses old
records in place; the log has them as they were. Records are only added, so offsets in the log are the same whichever
passes saw them. If OpenClaw rewrites a transcript, the log is written anew, and its older generation stays in the
archive.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from turnlog.agents.base import RowUpdate, Source, SourceKind
from turnlog.agents.openclaw.database import (
    EVENTS,
    NODES,
    SPAWN,
    WATERMARKS,
    WINDOWS,
    Row,
    events_of,
    facts_of,
    record_text,
    spawn_of,
)
from turnlog.agents.row_files import restore_database
from turnlog.atomic_files import make_folders, refuse_other_than_file
from turnlog.errors import ConflictError, StoreError


class OpenClawRowLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line. Every field has a default, because a damaged line may lack any."""

    table: str = ""
    seq: int = 0
    created_at: int = 0
    event: Raw = Raw(b"null")
    """The record, if it is JSON of one line."""
    text: str | None = None
    """The record, if it is not."""
    facts: Raw = Raw(b"null")
    """What other tables say about the session: table -> row."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(OpenClawRowLine).decode


def event_of(line: bytes) -> bytes:
    """The record in a line of the log; a line of an older log is the record itself."""
    try:
        found = _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return line
    return bytes(found.event) if found.table == EVENTS else line


def new_lines(connection: sqlite3.Connection, session: str, log: Iterable[bytes]) -> RowUpdate:
    """The records of a session that its log does not have yet; all of them if it has others."""
    known = b"".join(log).splitlines(keepends=True)
    events = [_encode(_event_line(row)) + b"\n" for row in events_of(connection, session)]
    # OpenClaw can rewrite a transcript. The log is then another generation, and the older one stays in the archive.
    if events[: len(known)] != known:
        return RowUpdate(lines=events, anew=True)
    return RowUpdate(lines=events[len(known) :])


def new_facts(connection: sqlite3.Connection, session: str, log: Iterable[bytes]) -> RowUpdate:
    """What other tables say about a session, if it is not what the log says."""
    facts = facts_of(connection, session)
    spawn = spawn_of(connection, session)
    if spawn:
        facts[SPAWN] = spawn
    now = _encode(OpenClawRowLine(table=WINDOWS, facts=Raw(_encode(facts)))) + b"\n"
    return RowUpdate() if b"".join(log) == now else RowUpdate(lines=[now], anew=True)


def _event_line(row: Row) -> OpenClawRowLine:
    # The same whether it is compressed, so that the log does not change when OpenClaw does that.
    text = record_text(row)
    line = OpenClawRowLine(table=EVENTS, seq=row["seq"], created_at=_whole(row.get("created_at")))
    try:
        msgspec.json.decode(text.encode(), type=dict[str, Raw])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return msgspec.structs.replace(line, text=text)
    # A record with white space between its fields is still JSON, but a log has one line for each row.
    if "\n" in text or "\r" in text:
        return msgspec.structs.replace(line, text=text)
    return msgspec.structs.replace(line, event=Raw(text.encode()))


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0


# -- restoring rows


def restore_rows(source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
    """Write what a source has of a session into a database: its records, or what other tables say about it.

    Records that were compressed are plain again. Raises ConflictError if the database has other rows with
    the same keys.
    """
    if source.kind is SourceKind.SIDECAR:
        try:
            return restore_database(source, _facts_in(log), to, _KEYS, _NEEDED)
        except StoreError as error:
            if not isinstance(error.__cause__, sqlite3.IntegrityError):
                raise
            # OpenClaw's own tables want more of a row than is read: there it gets the records alone.
            return []
    database, _, session = source.path.rpartition("#")
    # A database by itself has no records.
    if not database:
        return []
    target = to / os.path.relpath(database, source.root)
    make_folders(target.parent, to)
    try:
        refuse_other_than_file(target)
    except OSError as error:
        raise ConflictError(f"{target}: {error.strerror}") from error
    target.touch(0o600)
    lines = [_decode(line) for line in b"".join(log).split(b"\n") if line]
    with closing(sqlite3.connect(target)) as connection, connection:
        connection.execute(
            f'CREATE TABLE IF NOT EXISTS "{EVENTS}" (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT,'
            " created_at INTEGER NOT NULL, event_zstd BLOB, event_utf8_bytes INTEGER, navigation_json TEXT,"
            " PRIMARY KEY (session_id, seq))"
        )
        for line in (line for line in lines if line.table == EVENTS):
            text = bytes(line.event).decode() if line.text is None else line.text
            _insert(connection, target, (session, line.seq, text, line.created_at))
    return [target]


_NEEDED = {EVENTS: {"session_id", "seq", "event_json", "created_at", "event_utf8_bytes"}}
"""A session of which there are no records is in a database that has their table."""

_KEYS = {WINDOWS: ("session_id",), NODES: ("session_key",), WATERMARKS: ("session_id",)}


def _facts_in(log: Iterable[bytes]) -> Iterator[tuple[str, Row]]:
    for line in b"".join(log).split(b"\n"):
        if line:
            yield from (msgspec.json.decode(_decode(line).facts, type=dict[str, Row] | None) or {}).items()


def _insert(connection: sqlite3.Connection, target: Path, row: tuple[str, int, str, int]) -> None:
    found = connection.execute(f"SELECT event_json FROM {EVENTS} WHERE session_id = ? AND seq = ?", row[:2]).fetchone()
    if found is None:
        connection.execute(
            f"INSERT INTO {EVENTS} (session_id, seq, event_json, created_at, event_utf8_bytes)"
            " VALUES (?, ?, ?, ?, length(CAST(?3 AS BLOB)))",
            row,
        )
    elif found[0] != row[2]:
        raise ConflictError(f"{target} has another record {row[1]} of {row[0]} already")
