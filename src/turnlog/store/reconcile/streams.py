"""What a stream says of a session is superseded by the session's own log, whichever was read first.

A stream (`SourceKind.STREAM`) is what an agent printed while it ran. Its ids need not be those of the log, so its
messages count, cost and are found only in a session that has no log. As soon as there is one, all of them that the log
does not have are superseded, and the events of the stream go. The same holds for a subagent that a stream names after
its call, where that call's subagent has a log under its own id.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from turnlog.store.reconcile.precedence import STREAMED, drop_held_again, log_path
from turnlog.store.writing.messages import supersede
from turnlog.store.writing.sessions import SessionRows
from turnlog.store.writing.transaction import Transaction


def note_stream(connection: sqlite3.Connection, source_key: int, session_keys: Iterable[int]) -> None:
    """Keep that a stream describes these sessions."""
    rows = [(session_key, source_key) for session_key in session_keys]
    connection.executemany("INSERT OR IGNORE INTO streams (session_key, source_key) VALUES (?, ?)", rows)


def supersede_streams(transaction: Transaction) -> set[int]:
    """Supersede what only streams say of those of the transaction's sessions that have a log; the keys of these."""
    connection, sessions = transaction.connection, transaction.sessions
    streamed = {row[0] for row in connection.execute("SELECT DISTINCT session_key FROM streams")}
    logs = {key: log for key in streamed & sessions.keys if (log := log_path(connection, key)) is not None}
    for key, session_id, log in _named_after_calls(connection, sessions) if streamed - set(logs) else ():
        sessions.key(session_id)
        logs[key] = log
    for session_key, log in sorted(logs.items()):
        _drop_events(connection, sessions, session_key)
        rows = connection.execute(
            f"SELECT message_key FROM memberships WHERE session_key = ?1 AND {STREAMED}", (session_key,)
        )
        for (message_key,) in rows.fetchall():
            supersede(transaction, session_key, message_key, log)
        drop_held_again(connection, session_key)
        # A stream may count turns otherwise than the log.
        connection.execute(
            "UPDATE sessions SET turns = (SELECT coalesce(max(turn), 0) FROM memberships WHERE session_key = ?1)"
            " WHERE key = ?1",
            (session_key,),
        )
    return set(logs)


def _named_after_calls(connection: sqlite3.Connection, sessions: SessionRows) -> list[tuple[int, str, str]]:
    """Subagents' sessions that a stream named after the call, where the call's subagent has a log: key, id, the log.

    Older streams of Claude Code (2.1.33 and before) do not have the ids of subagents.
    """
    rows = connection.execute(
        "SELECT DISTINCT s.key, own.child_id, own.parent_id, log.key, log.agent || ':' || log.external_id"
        " FROM streams JOIN sessions s ON s.key = streams.session_key"
        " JOIN links own ON own.child_id = s.agent || ':' || s.external_id AND own.kind = 'subagent'"
        " JOIN links other ON other.parent_id = own.parent_id AND other.kind = 'subagent'"
        " AND other.tool_call_id = own.tool_call_id AND other.child_id <> own.child_id"
        " JOIN sessions log ON log.agent || ':' || log.external_id = other.child_id"
    ).fetchall()
    touched = sessions.ids
    found = [
        (key, child, log_path(connection, log))
        for key, child, parent, log, log_id in rows
        if not touched.isdisjoint((child, parent, log_id)) and log_path(connection, key) is None
    ]
    return [(key, child, log) for key, child, log in found if log is not None]


def _drop_events(connection: sqlite3.Connection, sessions: SessionRows, session_key: int) -> None:
    gone = connection.execute(
        f"DELETE FROM events WHERE session_key = ?1 AND {STREAMED} RETURNING position, external_id", (session_key,)
    ).fetchall()
    sessions.draft(session_key).events -= len(gone)
    sessions.note_gone(session_key, gone, events=True)
