"""Which sessions belong to a session: the subagents it started, theirs, and so on."""

from __future__ import annotations

import sqlite3

from turnlog.errors import NotFoundError


def session_key(connection: sqlite3.Connection, session_id: str) -> int:
    """The key of a session; raise NotFoundError when it is not stored."""
    agent, _, external_id = session_id.partition(":")
    row = connection.execute(
        "SELECT key FROM sessions WHERE agent = ? AND external_id = ?", (agent, external_id)
    ).fetchone()
    if row is None:
        raise NotFoundError(f"no session {session_id}")
    return row[0]


def family(connection: sqlite3.Connection, key: int) -> list[int]:
    """The session and all subagent sessions below it."""
    rows = connection.execute(
        "WITH RECURSIVE below (key) AS (SELECT ? UNION SELECT s.key FROM sessions s JOIN below b"
        " ON s.parent_key = b.key WHERE s.relationship = 'subagent') SELECT key FROM below",
        (key,),
    )
    return [row[0] for row in rows]
