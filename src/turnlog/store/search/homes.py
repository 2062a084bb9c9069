"""Homes: of the sessions that hold a message the one that its documents are marked with, and that one's project."""

from __future__ import annotations

import sqlite3

from turnlog.store.search import markers


class Homes:
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
        return [markers.session(home), *_project_marker(self._projects[home])]

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


def _project_marker(project: int | None) -> list[str]:
    return [] if project is None else [markers.project(project)]
