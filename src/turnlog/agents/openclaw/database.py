"""OpenClaw's database of one agent: listing its sessions with their versions, and reading a session's rows.

Only the tables of `TABLES` can be read: others hold credentials, memories and addresses of people.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from turnlog.agents.base import Version
from turnlog.agents.databases import (
    ROW_SIZE,
    Row,
    SessionListing,
    is_filled,
    open_snapshot,
    replacing_text,
    select_rows,
)
from turnlog.agents.files import decompress
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.strays import Belonging

EVENTS = "transcript_events"
WINDOWS = "session_windows"
NODES = "session_nodes"
WATERMARKS = "transcript_rewrite_watermarks"
SPAWN = "spawn"
"""What is no table of OpenClaw: how a subagent was started, see `spawn_of`."""

TABLES = frozenset({EVENTS, WINDOWS, NODES, WATERMARKS})
"""The tables that may be read."""

_OWN_COLUMNS = {EVENTS: {"session_id", "seq", "event_json"}}
"""Without them nothing is known of a session."""

BELONGINGS = (Belonging(EVENTS, "session_id"), Belonging(WINDOWS, "session_id"))
"""What rows must have to be read with a session. It needs no row of its own."""

NODE_FIELDS = ("session_key", "created_via", "status", "label", "display_name", "parent_session_key", "spawned_by")
"""The columns of a node that are kept. Its `entry_json` repeats the prompts of all skills."""

_LATEST = 1 << 43
"""The year 2248 in Unix milliseconds: a time whose nanoseconds a column still holds."""


@contextmanager
def open_database(path: Path) -> Generator[sqlite3.Connection]:
    """A connection to one consistent snapshot. Raises OSError if there is no file, SourceError if it is unreadable."""
    with open_snapshot(path, TABLES, replacing_text) as connection:
        yield connection


def tables_of(connection: sqlite3.Connection) -> set[str]:
    """Which of `TABLES` this version of the database has."""
    return {
        row["name"] for row in select_rows(connection, "SELECT name FROM sqlite_master WHERE type = 'table'")
    } & TABLES


def list_sessions(path: Path, only: str | None = None) -> list[SessionListing]:
    """Every session of the database, or only one. A session's version changes with its rows.

    Rows are added at the end. When one is rewritten, the watermark of the session changes.

    Raises:
        OSError: There is no such file.
        SourceError: It cannot be read, or has another schema.
    """
    with open_database(path) as connection:
        if not is_filled(connection, _OWN_COLUMNS, path):
            return []
        where, given = (" WHERE session_id = ?", (only,)) if only is not None else ("", ())
        counted = select_rows(
            connection,
            f"SELECT session_id, count(*) AS count, max(seq) AS last FROM {EVENTS}{where} GROUP BY session_id",
            *given,
        )
        found = {row["session_id"]: row for row in counted}
        if WINDOWS in tables_of(connection):
            windows = select_rows(connection, f"SELECT session_id FROM {WINDOWS}{where}", *given)
            empty = [row["session_id"] for row in windows if row["session_id"] not in found]
            found |= {session: {"session_id": session, "count": 0, "last": 0} for session in empty}
        return [
            SessionListing(
                session,
                _version(row, facts),
                is_empty=not row["count"],
                is_subagent=is_subagent((facts.get(WINDOWS) or {}).get("session_key")),
            )
            for session, row in found.items()
            if isinstance(session, str) and session and "#" not in session
            for facts in (facts_of(connection, session),)
        ]


def _version(row: Row, facts: dict[str, Row]) -> Version:
    window: Row = facts.get(WINDOWS) or {}
    updated = window.get("updated_at")
    # A version is stored in 64 bits as nanoseconds.
    updated = min(max(updated, 0), _LATEST) if isinstance(updated, int) else 0
    # A renamed session or a rewritten transcript need not change the number of its rows.
    sign = zlib.crc32(repr((row["count"], sorted(facts.items()))).encode(errors="replace"))
    return row["count"] * ROW_SIZE, updated * 1_000_000, max(0, row["last"]), sign


def facts_of(connection: sqlite3.Connection, session: str) -> dict[str, Row]:
    """What the other tables say about a session: its window, its node, and the watermark of its last rewrite."""
    known = tables_of(connection)
    found: dict[str, Row] = {}
    for table in sorted(known & {WINDOWS, WATERMARKS}):
        row = next(select_rows(connection, f"SELECT * FROM {table} WHERE session_id = ?", session), None)
        if row is not None:
            found[table] = {name: value for name, value in row.items() if value is not None}
    window: Row = found.get(WINDOWS) or {}
    key = window.get("session_key")
    if NODES in known and key is not None:
        node = next(select_rows(connection, f"SELECT * FROM {NODES} WHERE session_key = ?", key), None)
        if node is not None:
            found[NODES] = {name: node[name] for name in NODE_FIELDS if node.get(name) is not None}
    return found


def spawn_of(connection: sqlite3.Connection, session: str) -> Row:
    """The session that started a subagent, and the call with which it did; as far as this database has them."""
    if WINDOWS not in tables_of(connection):
        return {}
    window = next(select_rows(connection, f"SELECT * FROM {WINDOWS} WHERE session_id = ?", session), None) or {}
    key, above = window.get("session_key"), window.get("spawned_by")
    if not is_subagent(key) or above is None:
        return {}
    # A key stays when its conversation begins anew, in another session.
    statement = f"""SELECT session_id FROM {WINDOWS} WHERE session_key = ? AND created_at <= ?
        ORDER BY created_at DESC LIMIT 1"""
    parent = next(select_rows(connection, statement, above, window.get("created_at")), None)
    if parent is None:
        return {}
    statement = f"""SELECT * FROM {EVENTS} WHERE session_id = ?
        AND (event_json IS NULL OR instr(event_json, ?)) ORDER BY seq"""
    calls = (_call_in(record_text(row), key) for row in select_rows(connection, statement, parent["session_id"], key))
    return {"session_id": parent["session_id"], "call": next((call for call in calls if call is not None), None)}


def is_subagent(key: object) -> bool:
    """Whether a session with this key is a subagent's: `agent:<agent>:subagent:<id>`."""
    return isinstance(key, str) and key.split(":")[2:3] == ["subagent"]


class _Details(msgspec.Struct):
    child: str | None = msgspec.field(name="childSessionKey", default=None)


class _Result(msgspec.Struct):
    call: str | None = msgspec.field(name="toolCallId", default=None)
    details: _Details | None = None


class _Record(msgspec.Struct):
    message: _Result | None = None


def _call_in(text: str, key: object) -> str | None:
    """The call whose result, in this record, names the session that it started."""
    try:
        result = msgspec.json.decode(text, type=_Record).message
    except UNREADABLE:
        return None
    return result.call if result is not None and result.details is not None and result.details.child == key else None


def record_text(row: Row) -> str:
    """The text of a record. OpenClaw moves that of old rows from `event_json` to `event_zstd`."""
    text, packed = row.get("event_json"), row.get("event_zstd")
    if text is None and isinstance(packed, bytes):
        text = decompress(".zst", packed).data.decode(errors="replace")
    return text if isinstance(text, str) else ""


def events_of(connection: sqlite3.Connection, session: str) -> Iterator[Row]:
    """The records of a session in their order."""
    return select_rows(connection, f"SELECT * FROM {EVENTS} WHERE session_id = ? ORDER BY seq", session)
