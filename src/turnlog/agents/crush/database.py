"""Crush's database: listing its sessions with their versions, and the rows of each in the order of the conversation.

Only the tables of `KEYS` can be read. Which columns a table has depends on the version.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

import msgspec

from turnlog.agents.base import RowUpdate, Version
from turnlog.agents.crush import NAME
from turnlog.agents.databases import (
    ROW_SIZE,
    Row,
    SessionListing,
    has_columns,
    is_filled,
    open_snapshot,
    replacing_text,
    select_rows,
)
from turnlog.agents.row_files import line_of, update_of
from turnlog.agents.strays import Belonging

SESSIONS, MESSAGES = "sessions", "messages"

KEYS: dict[str, tuple[str, ...]] = {SESSIONS: ("id",), MESSAGES: ("id",)}
"""The tables that may be read -> their primary keys."""

_OWN_COLUMNS = {SESSIONS: {"completion_tokens"}, MESSAGES: {"parts"}}
"""Columns that tell these tables from those that other programs give the same names."""

READ_COLUMNS = {
    SESSIONS: {"id", "completion_tokens", "cost", "parent_session_id"},
    MESSAGES: {"id", "session_id", "parts", "created_at", "updated_at"},
}
"""What queries name, so a restored database has it also without a row."""

BELONGINGS = (Belonging(SESSIONS, "id"), Belonging(MESSAGES, "session_id", SESSIONS))
"""What rows must have to be read with a session."""

_CALL = "$$"
"""Between the message and the call that started it, in the id of a subagent's session."""


@contextmanager
def open_database(path: Path) -> Generator[sqlite3.Connection]:
    """A connection to one consistent snapshot. Raises OSError if there is no file, SourceError if it is unreadable."""
    with open_snapshot(path, frozenset(KEYS), replacing_text) as connection:
        yield connection


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def call_in(external: str) -> str | None:
    """The call in the id of a subagent's session; None for any other."""
    message, separator, call = external.partition(_CALL)
    return call if message and separator and call else None


def is_own(connection: sqlite3.Connection) -> bool:
    """Whether the database has Crush's tables."""
    return has_columns(connection, _OWN_COLUMNS)


def list_sessions(path: Path, only: str | None = None) -> list[SessionListing]:
    """All sessions, or only one. A session's version changes with its rows.

    Raises:
        OSError: There is no such file.
        SourceError: It cannot be read, or has another schema.
    """
    with open_database(path) as connection:
        if not is_filled(connection, _OWN_COLUMNS, path):
            return []
        where, given = ("", ()) if only is None else (" WHERE s.id = ?", (only,))
        listed = select_rows(
            connection,
            # The time of a row has whole seconds, so that the size of an answer shows more of what is written to it.
            "SELECT s.*, count(m.id) AS count, max(m.updated_at) AS changed, sum(length(m.parts)) AS size"
            f" FROM {SESSIONS} s LEFT JOIN {MESSAGES} m ON m.session_id = s.id{where} GROUP BY s.id ORDER BY s.id",
            *given,
        )
        return [
            SessionListing(row["id"], _version(row), is_empty=not row["count"])
            for row in listed
            if isinstance(row["id"], str) and row["id"] and "#" not in row["id"]
        ]


def _version(row: Row) -> Version:
    sign = zlib.crc32(repr(tuple(row.values())).encode(errors="replace"))
    return row["count"] * ROW_SIZE, 0, row["count"], sign


# -- the rows of a session


def new_lines(connection: sqlite3.Connection, session: str, log: Iterable[bytes]) -> RowUpdate:
    """The messages of a session that its log does not have yet; all of them if a row has changed."""
    # Times have whole seconds; within one the rows stand in the order in which they were written.
    statement = f"SELECT * FROM {MESSAGES} WHERE session_id = ? ORDER BY created_at, rowid"
    return update_of([line_of(MESSAGES, row) for row in select_rows(connection, statement, session)], log)


class CostNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """What only other rows say about a session."""

    cost_of_children: float = 0.0
    """What its subagents cost, which Crush adds to its own."""


def new_facts(connection: sqlite3.Connection, session: str, log: Iterable[bytes]) -> RowUpdate:
    """The row of a session, if it is not what the log says."""
    row = next(select_rows(connection, f"SELECT * FROM {SESSIONS} WHERE id = ?", session), None)
    children = f"SELECT sum(cost) AS cost FROM {SESSIONS} WHERE parent_session_id = ?"
    [below] = select_rows(connection, children, session)
    note = msgspec.json.encode(CostNote(below["cost"] or 0.0)).decode()
    lines = [] if row is None else [line_of(SESSIONS, row, note)]
    return RowUpdate() if b"".join(log) == b"".join(lines) else RowUpdate(lines=lines, anew=True)
