"""Sums of insights that are kept: those of sessions that have been quiet for some days, as one row.

A report adds to them what the other sessions have, so it does not take longer with every year of history. Whatever
changes a session that is among them deletes them (triggers of the schema); the next report adds them up again.
"""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing, suppress
from datetime import tzinfo
from pathlib import Path
from typing import Final

import msgspec

from turnlog.store.connection import can_be_written, open_file
from turnlog.store.sqlite.call_figures import EVERYTHING
from turnlog.store.sqlite.insight_sums import Division, Sums, add_sums, divide, read_sums

_FORMAT: Final = 2
"""Grows with every change of `Sums`: an earlier turnlog may have kept the row."""

_FEW: Final = 200
"""Quiet sessions that are not among those kept, because they have just been read."""

_QUIET: Final = 7 * 86_400_000
"""Milliseconds without a change, after which an agent rarely goes on with a session."""

_ENCODE: Final = msgspec.msgpack.Encoder().encode
_DECODE: Final = msgspec.msgpack.Decoder(Sums).decode


def is_due(connection: sqlite3.Connection, zone: tzinfo | None) -> bool:
    """Whether a report would read many sessions one by one that have been quiet for long."""
    row = _row(connection, divide(connection, EVERYTHING, zone))
    (lately,) = connection.execute(
        "SELECT (SELECT count(*) FROM sessions WHERE updated_at >= ?)"
        " + (SELECT count(*) FROM sessions WHERE updated_at IS NULL)",
        (_now() - _QUIET,),
    ).fetchone()
    # Those kept are all quiet, or what changed one had deleted them: none needs to be looked for among them.
    return _count(connection) - lately - (0 if row is None else row[1]) > _FEW


def load(connection: sqlite3.Connection, division: Division) -> Sums | None:
    """What all sessions have; None if nothing is kept, or so little that reading all rows is faster."""
    row = _row(connection, division)
    if row is None:
        return None
    sums, sessions = row
    missing = _count(connection) - sessions
    if missing > sessions:
        return None
    # Most of them are the newest, so that few of those kept are looked at.
    rows = connection.execute(f"SELECT key FROM sessions WHERE 1{_OTHERS} ORDER BY updated_at DESC LIMIT ?", (missing,))
    others = [key for (key,) in rows]
    few = EVERYTHING._replace(
        sessions="SELECT value FROM json_each(:others)", values={"others": json.dumps(others)}, is_few=True
    )
    return add_sums(_DECODE(sums), read_sums(connection, few, division))


def keep(path: Path, zone: tzinfo | None) -> None:
    """Keep the sums of all quiet sessions, unless somebody writes to the store meanwhile, or it cannot be written."""
    if not can_be_written(path):
        return
    with suppress(sqlite3.Error), closing(open_file(path, "rw")) as connection:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA busy_timeout = 0")
        # Not the lock of a writer, who would have to wait: SQLite refuses to write after what is no longer the latest.
        connection.execute("BEGIN")
        division = divide(connection, EVERYTHING, zone)
        quiet = _quiet()
        # Another zone may have sums of the same sessions.
        begins = connection.execute(f"SELECT count(*) FROM ({quiet}{_OTHERS} LIMIT {_FEW + 1})").fetchone()[0] > _FEW
        chosen = EVERYTHING._replace(sessions=quiet if begins else "SELECT session_key FROM kept_sessions")
        sums = _ENCODE(read_sums(connection, chosen, division))
        if begins:
            connection.execute("DELETE FROM kept_insights")
            connection.execute("DELETE FROM kept_sessions")
            connection.execute(f"INSERT INTO kept_sessions (session_key) {quiet}")
        connection.execute(
            "INSERT OR REPLACE INTO kept_insights (division, sums, sessions)"
            " VALUES (?, ?, (SELECT count(*) FROM kept_sessions))",
            (_name(division), sums),
        )
        connection.execute("COMMIT")


_OTHERS: Final = " AND key NOT IN (SELECT session_key FROM kept_sessions)"


def _quiet() -> str:
    """A query of the keys of the quiet sessions."""
    return f"SELECT key FROM sessions WHERE updated_at < {_now() - _QUIET}"


def _now() -> int:
    return int(time.time() * 1000)


def _count(connection: sqlite3.Connection) -> int:
    return connection.execute("SELECT count(*) FROM sessions").fetchone()[0]


def _row(connection: sqlite3.Connection, division: Division) -> tuple[bytes, int] | None:
    """The kept sums, and of how many sessions they are."""
    return connection.execute(
        "SELECT sums, sessions FROM kept_insights WHERE division = ?", (_name(division),)
    ).fetchone()


def _name(division: Division) -> str:
    return f"{_FORMAT} {division.granularity} {division.clock.name}"
