"""The project of a session: the folder that its own log names, or, for a subagent without one, that of its parent.

A folder in a git worktree stands for its repository (`projects.repository_key`), and a project that the user has merged
into another for that one (`projects.merged_key`). `sessions.folder_key` is what the logs say. `sessions.project_key`
follows from all of these, and is what lists, search and usage select and group by.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

from turnlog.store.keys import Names
from turnlog.store.worktrees import find_worktree

_PROJECT = (
    "coalesce((SELECT coalesce(r.merged_key, r.key) FROM projects f"
    " JOIN projects r ON r.key = coalesce(f.repository_key, f.key) WHERE f.key = sessions.folder_key),"
    " (SELECT p.project_key FROM sessions p WHERE p.key = sessions.parent_key AND sessions.relationship = 'subagent'))"
)
_SETTLE = (
    f"UPDATE sessions SET project_key = {_PROJECT} WHERE key IN (SELECT value FROM json_each(?))"
    f" AND project_key IS NOT {_PROJECT} RETURNING key"
)
_SUBAGENTS = (
    "SELECT key FROM sessions WHERE parent_key IN (SELECT value FROM json_each(?)) AND relationship = 'subagent'"
)


def place_folders(connection: sqlite3.Connection) -> set[int]:
    """Find the repositories of new folders; return the keys of the sessions in worktrees."""
    names, worktrees = Names(connection), list[int]()
    # A repository may be a new folder itself: it is looked at in the next round.
    while folders := connection.execute("SELECT key, path FROM projects WHERE repository_key IS NULL").fetchall():
        for key, path in folders:
            # Looked up once and stored: a worktree that is deleted later keeps its repository.
            found = find_worktree(path)
            repository_key = key if found is None or found.repository == path else names.project(found.repository)
            connection.execute(
                "UPDATE projects SET repository_key = ?, worktree = ? WHERE key = ?",
                (repository_key, found.name if found is not None and repository_key != key else None, key),
            )
            if repository_key != key:
                worktrees.append(key)
    if not worktrees:
        return set()
    marks = ", ".join(map(str, worktrees))
    rows = connection.execute(f"SELECT key FROM sessions WHERE folder_key IN ({marks})").fetchall()
    return {key for (key,) in rows}


def settle_projects(connection: sqlite3.Connection, keys: Iterable[int]) -> set[int]:
    """Set `project_key` of these sessions and of the subagents below them; return the keys of those it changed."""
    pending, changed = list(keys), set[int]()
    while pending:
        settled: list[int] = [key for (key,) in connection.execute(_SETTLE, (json.dumps(pending),)).fetchall()]
        changed.update(settled)
        # A subagent without a folder has its parent's project: it follows in the next round.
        pending = [key for (key,) in connection.execute(_SUBAGENTS, (json.dumps(settled),))] if settled else []
    return changed
