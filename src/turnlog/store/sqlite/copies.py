"""Files that only repeat what other files say: only `source_sessions` leads from a session to them.

A file that an earlier version read has no session there until a session is forgotten, or the store is rebuilt: it is
folded again to find them.
"""

from __future__ import annotations

import sqlite3

from turnlog.agents.base import Source, SourceKind
from turnlog.store.archive import Archive
from turnlog.store.reconcile import lineage
from turnlog.store.sources import note_sessions

_REPEATING = (
    " FROM source_sessions d JOIN sources s ON s.key = d.source_key WHERE d.session_id IN ({marks})"
    " AND NOT EXISTS (SELECT 1 FROM memberships m WHERE m.source_key = s.key)"
    " AND NOT EXISTS (SELECT 1 FROM streams t WHERE t.source_key = s.key)"
)


def find_copies(connection: sqlite3.Connection, keys: list[int]) -> dict[int, str]:
    """Key -> path of files that repeat what other files say about these sessions.

    An example is a log that was imported and is also read in place.
    """
    ids = tuple(lineage.session_ids(connection, set(keys)))
    repeating = _REPEATING.format(marks=",".join("?" * len(ids)))
    found = dict(connection.execute(f"SELECT s.key, s.path{repeating}", ids).fetchall())
    return found | {key: path for key, path, sessions in _unknown(connection, keys) if not sessions.isdisjoint(ids)}


def settle_copies(connection: sqlite3.Connection, keys: list[int]) -> None:
    """Store what `find_copies` would have to fold for these sessions."""
    # None are found if the agent is not installed: it may be, later.
    for key, sessions in [(key, sessions) for key, _, sessions in _unknown(connection, keys) if sessions]:
        connection.execute("DELETE FROM source_sessions WHERE session_id = '' AND source_key = ?", (key,))
        note_sessions(connection, key, sessions)


def _unknown(connection: sqlite3.Connection, keys: list[int]) -> list[tuple[int, str, set[str]]]:
    """Key, path and sessions of repeating files of the agents of these sessions, as far as they were not stored."""
    marks = ",".join("?" * len(keys))
    rows = connection.execute(
        f"SELECT s.key, s.agent, s.path, s.root, s.kind, s.appendable{_REPEATING.format(marks='?')}"
        f" AND s.agent IN (SELECT agent FROM sessions WHERE key IN ({marks}))",
        ("", *keys),
    ).fetchall()
    return [(key, path, _sessions_in(connection, key, agent, path, *about)) for key, agent, path, *about in rows]


def _sessions_in(
    connection: sqlite3.Connection, key: int, agent: str, path: str, root: str, kind: str, appendable: int
) -> set[str]:
    """The sessions in an archived file, in any generation; empty if its agent is not installed."""
    # Agents of other packages are found through entry points, which is slow: import only when needed.
    from turnlog.agents import agents, fold_bytes

    source = Source(agent=agent, path=path, root=root, kind=SourceKind(kind), appendable=bool(appendable))
    archive = Archive(connection)
    return {
        session_id
        for reader in agents()
        if reader.name == agent
        for generation in archive.generations(key)
        for session_id in fold_bytes(reader, source, b"".join(archive.iter_bytes(key, generation.number))).sessions
    }
