"""Owners of sessions: whose they are, and the task that they belong to."""

from __future__ import annotations

import sqlite3
import time

from turnlog.model import Ownership

_OF_SESSION = (
    "SELECT o.user, o.team, o.task, o.machine FROM sessions s JOIN owners o ON o.key = s.owner_key WHERE s.key = ?"
)


def change_owner(connection: sqlite3.Connection, session_id: str, ownership: Ownership) -> None:
    """Set the owner of a stored session. The caller owns the transaction."""
    user, team, task, machine = (getattr(ownership, name) or "" for name in ("user", "team", "task", "machine"))
    changed = connection.execute(
        "UPDATE sessions SET owner_key = ?1 WHERE agent = ?2 AND external_id = ?3 AND owner_key <> ?1 RETURNING key",
        (_owner_key(connection, user, team, task, machine), *session_id.partition(":")[::2]),
    ).fetchone()
    if changed is not None:
        announce(connection, changed[0])


def join_task(connection: sqlite3.Connection, session_key: int, task: str) -> None:
    """Put a session into a task, unless it is in one. The caller owns the transaction and announces the change."""
    user, team, current, machine = connection.execute(_OF_SESSION, (session_key,)).fetchone()
    if not current:
        owner = _owner_key(connection, user, team, task, machine)
        connection.execute("UPDATE sessions SET owner_key = ? WHERE key = ?", (owner, session_key))


def leave_task(connection: sqlite3.Connection, task: str, user: str | None) -> None:
    """Take all sessions out of a task, or only those of a user. The caller owns the transaction."""
    rows = connection.execute(
        "SELECT key, user, team, machine FROM owners WHERE task = ?1 AND user = coalesce(?2, user)", (task, user)
    ).fetchall()
    for key, owner, team, machine in rows:
        other = _owner_key(connection, owner, team, "", machine)
        left = connection.execute("UPDATE sessions SET owner_key = ? WHERE owner_key = ? RETURNING key", (other, key))
        for (session_key,) in left.fetchall():
            announce(connection, session_key)


def announce(connection: sqlite3.Connection, session_key: int) -> None:
    """Record a change of a session, so that pages, the search index and hubs follow."""
    now = int(time.time() * 1000)
    connection.execute("INSERT INTO changes (session_key, kind, at) VALUES (?, 'session', ?)", (session_key, now))


def _owner_key(connection: sqlite3.Connection, user: str, team: str, task: str, machine: str) -> int:
    names = (user, team, task, machine)
    query = "SELECT key FROM owners WHERE (user, team, task, machine) = (?, ?, ?, ?)"
    row = connection.execute(query, names).fetchone()
    if row is None:
        insert = "INSERT INTO owners (user, team, task, machine) VALUES (?, ?, ?, ?) RETURNING key"
        row = connection.execute(insert, names).fetchone()
    key: int = row[0]
    return key
