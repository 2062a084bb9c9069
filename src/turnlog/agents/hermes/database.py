"""Hermes Agent's database: listing its sessions with their versions, and reading the rows of a session.

Only the tables of `TABLES` can be read: others hold addresses of people and work in progress. Which columns a table has
depends on the version, so rows are dicts of the columns that are there.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Raw

from turnlog.agents.base import Version
from turnlog.agents.databases import (
    ROW_SIZE,
    Row,
    SessionListing,
    columns_of,
    has_columns,
    is_filled,
    open_snapshot,
    replacing_text,
    select_rows,
)
from turnlog.agents.decoding import object_of, value_of
from turnlog.agents.strays import Belonging

SESSIONS = "sessions"
MESSAGES = "messages"
USAGE = "session_model_usage"
TABLES = frozenset({SESSIONS, MESSAGES, USAGE})
"""The tables that may be read."""

_OWN_COLUMNS = {SESSIONS: {"system_prompt"}, MESSAGES: {"finish_reason"}}
"""Columns that tell these tables from those that other programs give the same names."""

READ_COLUMNS = {
    SESSIONS: {"id", "system_prompt"},
    MESSAGES: {"id", "session_id", "finish_reason", "timestamp"},
}
"""What queries name, so a restored database has it also without a row."""

BELONGINGS = (Belonging(SESSIONS, "id"), Belonging(MESSAGES, "session_id", SESSIONS))
"""What rows must have to be read with a session."""

_UNVERSIONED = frozenset({"system_prompt"})
"""Columns of a session that are large and do not change without another one."""

_LATEST = 1 << 33
"""The year 2242 in Unix seconds: a time whose nanoseconds a column still holds."""

_MOST_FORKS = 32
"""Sessions that are looked through for the original of a copied message."""


def row_of(json: Raw) -> Row:
    """A row from its JSON; empty where that is no object."""
    return object_of(value_of(json))


@contextmanager
def open_database(path: Path) -> Generator[sqlite3.Connection]:
    """A connection to one consistent snapshot. Raises OSError if there is no file, SourceError if it is unreadable."""
    with open_snapshot(path, TABLES, replacing_text) as connection:
        yield connection


def is_own(connection: sqlite3.Connection) -> bool:
    """Whether the database has Hermes Agent's tables."""
    return has_columns(connection, _OWN_COLUMNS)


def list_sessions(path: Path, only: str | None = None) -> list[SessionListing]:
    """Every session of the database, or only one. A session's version changes with its rows.

    Raises:
        OSError: There is no such file.
        SourceError: It cannot be read, or has another schema.
    """
    with open_database(path) as connection:
        if not is_filled(connection, _OWN_COLUMNS, path):
            return []
        where, given = (" WHERE session_id = ?", (only,)) if only is not None else ("", ())
        # An index has all of these columns. Messages that are compacted or taken back change the session's own counts.
        counted = {
            row["session_id"]: row
            for row in select_rows(
                connection,
                "SELECT session_id, count(*) AS count, max(id) AS last, max(timestamp) AS updated"
                f" FROM {MESSAGES}{where} GROUP BY session_id",
                *given,
            )
        }
        names = [f'"{name}"' for name in columns_of(connection, SESSIONS) if name not in _UNVERSIONED]
        condition = " WHERE id = ?" if only is not None else ""
        listed = select_rows(connection, f"SELECT {', '.join(names)} FROM {SESSIONS}{condition} ORDER BY id", *given)
        return [
            SessionListing(row["id"], _version(row, counted.get(row["id"]) or {}, usage_of(connection, row["id"])))
            for row in listed
            if isinstance(row["id"], str) and row["id"] and "#" not in row["id"]
        ]


def _version(session: Row, counted: Row, usage: list[Row]) -> Version:
    count, last, updated = (counted.get(name) or 0 for name in ("count", "last", "updated"))
    seconds = min(max(float(updated), 0.0), _LATEST) if isinstance(updated, int | float) else 0.0
    sign = zlib.crc32(repr((count, session, usage)).encode(errors="replace"))
    return count * ROW_SIZE, round(seconds * 1000) * 1_000_000, max(0, last), sign


def session_row(connection: sqlite3.Connection, session: str) -> Row | None:
    """The row of a session, with the columns that have a value."""
    row = next(select_rows(connection, f"SELECT * FROM {SESSIONS} WHERE id = ?", session), None)
    return None if row is None else _known(row)


def usage_of(connection: sqlite3.Connection, session: str) -> list[Row]:
    """What the session has used, by model and task. Empty in versions without this table."""
    if not any(select_rows(connection, "SELECT name FROM sqlite_master WHERE type = 'table' AND name = ?", USAGE)):
        return []
    found = select_rows(connection, f"SELECT * FROM {USAGE} WHERE session_id = ?", session)
    return sorted((_known(row) for row in found), key=repr)


def messages_of(connection: sqlite3.Connection, session: str) -> list[Row]:
    """The rows of a session's messages in their order, with the columns that have a value."""
    found = select_rows(connection, f"SELECT * FROM {MESSAGES} WHERE session_id = ? ORDER BY id", session)
    return [_known(row) for row in found]


def _known(row: Row) -> Row:
    return {name: value for name, value in row.items() if value is not None}


# -- how sessions come out of each other


class ModelConfig(msgspec.Struct):
    """What the settings of a session say about where it came from."""

    branched_from: str | None = msgspec.field(name="_branched_from", default=None)
    delegate_from: str | None = msgspec.field(name="_delegate_from", default=None)


def config_of(session: Row) -> ModelConfig:
    """The settings of a session; empty where they are no object."""
    try:
        return msgspec.json.decode(str(session.get("model_config") or "{}"), type=ModelConfig)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ModelConfig()


def ancestors_of(connection: sqlite3.Connection, session: Row) -> list[Row]:
    """The sessions that a fork copied its messages from, the nearest first."""
    found: list[Row] = []
    seen = {session.get("id")}
    at: Row | None = session
    while at is not None and len(found) < _MOST_FORKS:
        parent = config_of(at).branched_from
        at = session_row(connection, parent) if parent is not None and parent not in seen else None
        if at is not None:
            seen.add(parent)
            found.append(at)
    return found
