"""Keys and ids of stored sessions, and which sessions belong to one: the subagents it started, theirs, and so on."""

from __future__ import annotations

import sqlite3

from turnlog.errors import NotFoundError


def session_key(connection: sqlite3.Connection, session_id: str) -> int:
    """The key of a session; raise NotFoundError when it is not stored."""
    agent, _, external_id = session_id.partition(":")
    # The index on ids begins with the owner: a look-up for each of the few owners instead of a scan of all sessions.
    row = connection.execute(
        "SELECT s.key FROM owners o CROSS JOIN sessions s"
        " ON s.owner_key = o.key AND s.agent = ? AND s.external_id = ? ORDER BY o.key LIMIT 1",
        (agent, external_id),
    ).fetchone()
    if row is None:
        raise NotFoundError(f"there is no session {session_id}")
    return row[0]


def family(connection: sqlite3.Connection, key: int) -> list[int]:
    """The session and all subagent sessions below it."""
    rows = connection.execute(
        "WITH RECURSIVE below (key) AS (SELECT ? UNION SELECT s.key FROM sessions s JOIN below b"
        " ON s.parent_key = b.key WHERE s.relationship = 'subagent') SELECT key FROM below",
        (key,),
    )
    return [row[0] for row in rows]


def find_key(connection: sqlite3.Connection, session_id: str) -> int | None:
    """The key of a session as the store's own owner has it; None when it is not stored."""
    row = connection.execute(
        "SELECT key FROM sessions WHERE owner_key = 1 AND agent = ? AND external_id = ?",
        session_id.partition(":")[::2],
    ).fetchone()
    return None if row is None else row[0]


def session_id_of(connection: sqlite3.Connection, key: int) -> str:
    """The id of the session with this key."""
    return connection.execute("SELECT agent || ':' || external_id FROM sessions WHERE key = ?", (key,)).fetchone()[0]
