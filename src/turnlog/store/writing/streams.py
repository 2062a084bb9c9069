"""What only a stream tells of a session gives way to the session's own log, whichever was read first.

A stream (`SourceKind.STREAM`) is what an agent printed while it ran. Its ids need not be those of the log, so its
messages count, cost and are found only in a session that has no log. As soon as there is one, those that the log does
not have leave `memberships` for `superseded`, and the events of the stream go. The bytes stay in the archive. The same
holds for a subagent that a stream calls by its call, where that call's subagent has a log under its own id.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from turnlog.agents.base import HOOKED_FROM
from turnlog.store import bodies
from turnlog.store.frames import BodyReader
from turnlog.store.rows import message_facts
from turnlog.store.writing.new_messages import drop_parts
from turnlog.store.writing.sessions import SessionRows
from turnlog.store.writing.totals import Totals

_KEPT = "session_key, position, message_key, source_key, generation, parent_id, turn, step, records"

_STREAMED = "source_key IN (SELECT source_key FROM streams WHERE session_key = ?1)"


def note_stream(connection: sqlite3.Connection, source_key: int, session_keys: Iterable[int]) -> None:
    """A stream tells of these sessions."""
    rows = [(session_key, source_key) for session_key in session_keys]
    connection.executemany("INSERT OR IGNORE INTO streams (session_key, source_key) VALUES (?, ?)", rows)


def give_way(connection: sqlite3.Connection, sessions: SessionRows, totals: Totals) -> set[int]:
    """Supersede what only streams told of those of the transaction's sessions that have a log; the keys of these."""
    streamed = {row[0] for row in connection.execute("SELECT DISTINCT session_key FROM streams")}
    logged = {key: log for key in streamed & sessions.keys if (log := log_of(connection, key)) is not None}
    for key, session_id, log in _twins(connection, sessions) if streamed - set(logged) else ():
        sessions.key(session_id)
        logged[key] = log
    for session_key, log in sorted(logged.items()):
        _drop_events(connection, sessions, session_key)
        rows = connection.execute(
            f"SELECT message_key FROM memberships WHERE session_key = ?1 AND {_STREAMED}", (session_key,)
        )
        for (message_key,) in rows.fetchall():
            supersede(connection, sessions, totals, session_key, message_key, log)
        connection.execute(
            "DELETE FROM superseded WHERE session_key = ?1 AND message_key IN"
            " (SELECT message_key FROM memberships WHERE session_key = ?1)",
            (session_key,),
        )
        # A stream may count turns otherwise than the log.
        connection.execute(
            "UPDATE sessions SET turns = (SELECT coalesce(max(turn), 0) FROM memberships WHERE session_key = ?1)"
            " WHERE key = ?1",
            (session_key,),
        )
    return set(logged)


def log_of(connection: sqlite3.Connection, session_key: int) -> str | None:
    """Path of a log that holds messages of the session; of several the one that sorts first."""
    return connection.execute(
        "SELECT min(path) FROM sources WHERE key IN"
        f" (SELECT source_key FROM memberships WHERE session_key = ?1 AND position < ?2 AND NOT {_STREAMED})",
        (session_key, HOOKED_FROM),
    ).fetchone()[0]


def _twins(connection: sqlite3.Connection, sessions: SessionRows) -> list[tuple[int, str, str]]:
    """Subagents' sessions that a stream named after the call, where the call's subagent has a log: key, id, the log.

    Older streams of Claude Code (2.1.33 and before) do not tell the ids of subagents.
    """
    rows = connection.execute(
        "SELECT DISTINCT s.key, own.child_id, own.parent_id, log.key, log.agent || ':' || log.external_id"
        " FROM streams JOIN sessions s ON s.key = streams.session_key"
        " JOIN links own ON own.child_id = s.agent || ':' || s.external_id AND own.kind = 'subagent'"
        " JOIN links other ON other.parent_id = own.parent_id AND other.kind = 'subagent'"
        " AND other.tool_call_id = own.tool_call_id AND other.child_id <> own.child_id"
        " JOIN sessions log ON log.agent || ':' || log.external_id = other.child_id"
    ).fetchall()
    touched = sessions.touched
    found = [
        (key, child, log_of(connection, log))
        for key, child, parent, log, log_id in rows
        if not touched.isdisjoint((child, parent, log_id)) and log_of(connection, key) is None
    ]
    return [(key, child, log) for key, child, log in found if log is not None]


def _drop_events(connection: sqlite3.Connection, sessions: SessionRows, session_key: int) -> None:
    gone = connection.execute(
        f"DELETE FROM events WHERE session_key = ?1 AND {_STREAMED} RETURNING position, external_id", (session_key,)
    ).fetchall()
    sessions.counts.add_events(session_key, -len(gone))
    sessions.lose(session_key, gone, events=True)


def supersede(
    connection: sqlite3.Connection,
    sessions: SessionRows,
    totals: Totals,
    session_key: int,
    message_key: int,
    log: str,
    *,
    keeps_fate: bool = False,
) -> None:
    """Take a message out of a session in favour of what its log has; with its fate its own session still shows it."""
    place = (session_key, message_key)
    connection.execute(
        f"INSERT OR REPLACE INTO superseded ({_KEPT}, fate_cause, fate)"
        f" SELECT {_KEPT}, ?3, iif(?4, fate, NULL) FROM memberships WHERE session_key = ?1 AND message_key = ?2",
        (*place, log, keeps_fate),
    )
    connection.execute("DELETE FROM memberships WHERE session_key = ? AND message_key = ?", place)
    id, payer, other = connection.execute(
        "SELECT external_id, pays_key, (SELECT min(session_key) FROM memberships WHERE message_key = ?1)"
        " FROM messages WHERE key = ?1",
        (message_key,),
    ).fetchone()
    sessions.lose(session_key, [(0, id)])
    message = bodies.decode(BodyReader(connection).of(message_key))
    sessions.counts.add(session_key, message_facts(message, message_key).counts, -1)
    if payer == session_key:
        totals.move(message_key, payer, other)
    if other is None:
        drop_parts(connection, message_key)
    connection.execute(
        "UPDATE messages SET changed_seq = ? WHERE key = ?", (sessions.sequence(session_key), message_key)
    )
