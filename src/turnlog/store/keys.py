"""Integer keys, which are private to a store file: those of sessions, and of names such as models and projects."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

from turnlog.errors import NotFoundError

FIND_MESSAGE = (
    "WITH RECURSIVE agents (name) AS (SELECT min(agent) FROM messages UNION ALL"
    " SELECT (SELECT min(agent) FROM messages WHERE agent > name) FROM agents WHERE name IS NOT NULL)"
    " SELECT found.key FROM agents CROSS JOIN messages found"
    " ON found.agent = agents.name AND found.external_id = ?"
)
"""Ids are unique within an agent, so this looks up each of the few agents, found by skipping along the same index."""


def own_messages(connection: sqlite3.Connection) -> str:
    """What a query of messages by their ids says besides, where several people write: only their own are meant."""
    return getattr(connection, "own_messages", "")


def session_key(connection: sqlite3.Connection, session_id: str) -> int:
    """The key of a session. Raises NotFoundError if it is not stored."""
    key = find_key(connection, session_id)
    if key is None:
        raise NotFoundError(f"there is no session {session_id}")
    return key


def family(connection: sqlite3.Connection, key: int) -> list[int]:
    """The session and all subagent sessions below it."""
    rows = connection.execute(
        "WITH RECURSIVE below (key) AS (SELECT ? UNION SELECT s.key FROM sessions s JOIN below b"
        " ON s.parent_key = b.key WHERE s.relationship = 'subagent') SELECT key FROM below",
        (key,),
    )
    return [row[0] for row in rows]


def find_key(connection: sqlite3.Connection, session_id: str) -> int | None:
    """The key of a session; None if it is not stored."""
    row = connection.execute(
        "SELECT key FROM sessions WHERE agent = ? AND external_id = ?", session_id.partition(":")[::2]
    ).fetchone()
    return None if row is None else row[0]


def session_id_of(connection: sqlite3.Connection, key: int) -> str:
    """The id of the session with this key."""
    return connection.execute("SELECT agent || ':' || external_id FROM sessions WHERE key = ?", (key,)).fetchone()[0]


OWN: Final = (
    "NOT (s.messages = 0 AND s.events > 0 AND s.created_at IS NULL AND s.cwd IS NULL AND s.title IS NULL"
    " AND s.native = 0)"
)
"""No log with nothing but facts without times, which belong to other sessions (`reconcile.titles`)."""


def count_sessions(connection: sqlite3.Connection, keys: Sequence[int]) -> tuple[int, int]:
    """How many of these are separate sessions, and how many are subagents; of those that lists have."""
    query = (
        "SELECT count(*), coalesce(sum(s.relationship IS 'subagent'), 0) FROM sessions s"
        f" WHERE s.key IN (SELECT value FROM json_each(?)) AND {OWN}"
    )
    found, subagents = connection.execute(query, (json.dumps(keys),)).fetchone() if keys else (0, 0)
    return found - subagents, subagents


def own_sessions(connection: sqlite3.Connection, session_ids: Iterable[str]) -> list[str]:
    """Those of the ids that lists have, in order."""
    hidden = f"SELECT 1 FROM sessions s WHERE s.agent = ? AND s.external_id = ? AND NOT {OWN}"
    return [each for each in sorted(session_ids) if not connection.execute(hidden, each.split(":", 1)).fetchone()]


class Names:
    """Keys of models, projects and price lists, created on first use and cached for one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._models: dict[str, int] = {}
        self._projects: dict[str, int] = {}
        self._price_versions: dict[str, int] = {}

    def model(self, name: str | None) -> int | None:
        """The key of a model; None for None."""
        if name is None:
            return None
        key = self._models.get(name)
        if key is None:
            key = self._models[name] = self._ensure("models", "name", name)
        return key

    def price_version(self, name: str) -> int:
        """The key of a price list."""
        key = self._price_versions.get(name)
        if key is None:
            key = self._price_versions[name] = self._ensure("price_versions", "name", name)
        return key

    def project(self, path: str) -> int:
        """The key of the project at `path`."""
        # Editors and shells on Windows write the drive of one folder in both cases.
        if path[1:3] in (":\\", ":/"):
            path = path[0].upper() + path[1:]
        key = self._projects.get(path)
        if key is None:
            self._connection.execute(
                "INSERT OR IGNORE INTO projects (path, name) VALUES (?, ?)", (path, project_name(path))
            )
            key = self._projects[path] = self._ensure("projects", "path", path)
        return key

    def _ensure(self, table: str, column: str, name: str) -> int:
        found = self._connection.execute(f"SELECT key FROM {table} WHERE {column} = ?", (name,)).fetchone()
        if found is not None:
            return found[0]
        return self._connection.execute(f"INSERT INTO {table} ({column}) VALUES (?)", (name,)).lastrowid or 0


def project_name(path: str) -> str:
    """The display name of a project: the last folder of its path."""
    return path.rstrip("/\\").replace("\\", "/").rpartition("/")[2] or path
