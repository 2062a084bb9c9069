"""Projects in SQLite: the list, and the user's names and merges."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable
from typing import Final

from turnlog.errors import ConflictError, NotFoundError
from turnlog.plain_text import one_line
from turnlog.store.keys import project_name
from turnlog.store.reconcile.projects import settle_projects
from turnlog.store.sqlite.reading import Connections
from turnlog.store.usage_report import ProjectSummary

# Sessions are counted before they are joined: every step in their index counts, as they are many.
_SELECT: Final = (
    "SELECT p.path, p.name, s.sessions, s.updated_at,"
    " (SELECT json_group_array(m.path) FROM (SELECT path FROM projects WHERE merged_key = p.key ORDER BY path) m)"
    " FROM (SELECT project_key, count(*) AS sessions, max(updated_at) AS updated_at FROM sessions"
    " WHERE {which} AND relationship IS NOT 'subagent' GROUP BY project_key) s JOIN projects p ON p.key = s.project_key"
)
_OF_PROJECT: Final = "SELECT key FROM sessions WHERE project_key = ?"
_OF_FOLDERS: Final = (
    "SELECT s.key FROM sessions s JOIN projects f ON f.key = s.folder_key WHERE coalesce(f.repository_key, f.key) = ?"
)


class ProjectQueries(Connections):
    """The queries of `Store` about projects."""

    def projects(self) -> list[ProjectSummary]:
        with self._snapshot() as connection:
            rows = connection.execute(
                f"{_SELECT.format(which='project_key IS NOT NULL')} ORDER BY s.updated_at DESC, p.path"
            )
            return [_summary(*row) for row in rows]

    def rename_project(self, project: str, name: str | None) -> ProjectSummary:
        with self._writing() as connection:
            key, path = _find(connection, project)
            new_name = one_line(name or "")
            if new_name:
                _refuse_second(connection, key, path, new_name)
            new_name = new_name or project_name(path)
            connection.execute("UPDATE projects SET name = ? WHERE key = ?", (new_name, key))
            _announce(connection, (session for (session,) in connection.execute(_OF_PROJECT, (key,)).fetchall()))
            return _load(connection, key)

    def merge_projects(self, project: str, into: str) -> ProjectSummary:
        with self._writing() as connection:
            (key, path), (target, _) = _find(connection, project), _find(connection, into)
            if key == target:
                raise ConflictError(f"{path} cannot be merged into itself")
            moved = [session for (session,) in connection.execute(_OF_PROJECT, (key,)).fetchall()]
            # What was merged into it goes along: a project is merged once, never by way of a third.
            connection.execute("UPDATE projects SET merged_key = ?1 WHERE key = ?2 OR merged_key = ?2", (target, key))
            _announce(connection, settle_projects(connection, moved))
            return _load(connection, target)

    def split_project(self, project: str) -> ProjectSummary:
        with self._writing() as connection:
            row = connection.execute(
                "SELECT key FROM projects WHERE path = ? AND merged_key IS NOT NULL", (project,)
            ).fetchone()
            if row is None:
                raise NotFoundError(f"no project {project} is merged into another")
            (key,) = row
            connection.execute("UPDATE projects SET merged_key = NULL WHERE key = ?", (key,))
            own = [session for (session,) in connection.execute(_OF_FOLDERS, (key,)).fetchall()]
            _announce(connection, settle_projects(connection, own))
            return _load(connection, key)


def _find(connection: sqlite3.Connection, project: str) -> tuple[int, str]:
    """The key and path of the project with this path, or the only one with this name."""
    rows = connection.execute(
        "SELECT key, path FROM projects p WHERE (path = ?1 OR name = ?1)"
        " AND EXISTS (SELECT 1 FROM sessions s WHERE s.project_key = p.key) ORDER BY path <> ?1, path",
        (project,),
    ).fetchall()
    if not rows:
        merged = connection.execute(
            "SELECT t.path FROM projects p JOIN projects t ON t.key = p.merged_key WHERE p.path = ?1 OR p.name = ?1",
            (project,),
        ).fetchone()
        raise NotFoundError(
            f"there is no project {project}" if merged is None else f"{project} is merged into {merged[0]}"
        )
    if len(rows) > 1 and rows[0][1] != project:
        paths = ", ".join(path for _, path in rows)
        raise ConflictError(f"{len(rows)} projects are named {project}: give one of their paths, {paths}")
    return rows[0]


def _refuse_second(connection: sqlite3.Connection, key: int, path: str, name: str) -> None:
    """Raise ConflictError if another project is shown under this name: nobody could tell them apart."""
    row = connection.execute(
        "SELECT path FROM projects p WHERE name = ?1 AND key <> ?2 AND ?1 <> ?3"
        " AND EXISTS (SELECT 1 FROM sessions s WHERE s.project_key = p.key)",
        (name, key, project_name(path)),
    ).fetchone()
    if row is not None:
        raise ConflictError(
            f"{row[0]} is named {name} already; if they are one project: `turnlog project merge {path} {row[0]}`"
        )


def _announce(connection: sqlite3.Connection, keys: Iterable[int]) -> None:
    """Record a change of each session, so that pages and the search index follow."""
    now = int(time.time() * 1000)
    connection.executemany(
        "INSERT INTO changes (session_key, kind, at) VALUES (?, 'session', ?)", [(key, now) for key in sorted(keys)]
    )


def _load(connection: sqlite3.Connection, key: int) -> ProjectSummary:
    row = connection.execute(_SELECT.format(which="project_key = ?"), (key,)).fetchone()
    if row is not None:
        return _summary(*row)
    # All of its sessions are subagents of sessions elsewhere.
    path, name = connection.execute("SELECT path, name FROM projects WHERE key = ?", (key,)).fetchone()
    return ProjectSummary(path, name, 0, None)


def _summary(path: str, name: str, sessions: int, updated: int | None, merged: str) -> ProjectSummary:
    from turnlog.store.rows import moment

    return ProjectSummary(path, name, sessions, moment(updated), tuple(json.loads(merged)))
