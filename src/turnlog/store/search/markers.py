"""Markers: words that no text can hold, put before a document's text so that a filter is one more word of the query.

Each begins with a private-use character, which `tokens` removes from texts and queries. A document carries the marker
of one session that holds its message, its home session, and of that session's project (`HomeSessions`).
"""

from __future__ import annotations

import sqlite3

from turnlog.store.search.documents import FAILED, HAS_IMAGE

_KIND, _SESSION, _PROJECT, _TOOL, _FLAG, _FILLER = (chr(0xE000 + number) for number in range(6))

_FLAG_MARKERS = {FAILED: f"{_FLAG}f", HAS_IMAGE: f"{_FLAG}i"}


def kind(key: int) -> str:
    """Marks agent, role and field in one (`Kinds`)."""
    return f"{_KIND}{key}"


def session(key: int) -> str:
    """Marks a document's home: one of the sessions that hold the message."""
    return f"{_SESSION}{key}"


def project(key: int) -> str:
    """Marks the project of a document's home."""
    return f"{_PROJECT}{key}"


def tool(name: str) -> str:
    """Marks the tool of a call, in any case; what is no letter or digit in its name becomes a filler."""
    return _TOOL + "".join([character if character.isalnum() else _FILLER for character in name])


def flags(value: int) -> list[str]:
    """Marks each flag that is set."""
    return [marker for flag, marker in _FLAG_MARKERS.items() if value & flag]


class Kinds:
    """The numbers that stand for agent, role and field together."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        rows = connection.execute("SELECT agent, role, field, key FROM kinds")
        self._keys = {(agent, role, field): key for agent, role, field, key in rows}

    def ensure(self, agent: str, role: str, field: int) -> int:
        """The number of a kind, given out when it is new."""
        key = self._keys.get((agent, role, field))
        if key is None:
            cursor = self._connection.execute(
                "INSERT INTO kinds (agent, role, field) VALUES (?, ?, ?)", (agent, role, field)
            )
            key = self._keys[agent, role, field] = cursor.lastrowid or 0
        return key

    def matching(self, agent: str | None, role: str | None, fields: tuple[int, ...] | None) -> list[int]:
        """The numbers of all kinds that fit; what is None does not matter."""
        return [
            key
            for (its_agent, its_role, its_field), key in self._keys.items()
            if agent in (None, its_agent) and role in (None, its_role) and (fields is None or its_field in fields)
        ]


class HomeSessions:
    """Which project each home has had in the index since it was first met."""

    def __init__(self, search: sqlite3.Connection) -> None:
        self._search = search
        self._projects: dict[int, int | None] = {}

    def settle(self, home: int, project: int | None) -> None:
        """Know the project that documents of this home are marked with; the first one stands until `set_project`."""
        if home in self._projects:
            return
        known = self._search.execute("SELECT project_key FROM homes WHERE session_key = ?", (home,)).fetchone()
        if known is None:
            self._search.execute("INSERT INTO homes (session_key, project_key) VALUES (?, ?)", (home, project))
            known = (project,)
        self._projects[home] = known[0]

    def markers(self, home: int) -> list[str]:
        """What documents of a settled home are marked with."""
        return [session(home), *_project_marker(self._projects[home])]

    def set_project(self, home: int, project: int | None) -> tuple[list[str], list[str]] | None:
        """Give a home another project; return the old and the new marker, None when nothing is to be marked anew."""
        known = self._search.execute("SELECT project_key FROM homes WHERE session_key = ?", (home,)).fetchone()
        if known is None or known[0] == project:
            return None
        self._search.execute("UPDATE homes SET project_key = ? WHERE session_key = ?", (project, home))
        self._projects[home] = project
        return _project_marker(known[0]), _project_marker(project)

    def drop(self, home: int) -> None:
        """Forget that documents were marked with this home."""
        self._search.execute("DELETE FROM homes WHERE session_key = ?", (home,))


def _project_marker(project_key: int | None) -> list[str]:
    return [] if project_key is None else [project(project_key)]
