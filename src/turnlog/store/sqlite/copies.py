"""Files that only repeat what other files say. No stored row leads from a session to them, so they are read again."""

from __future__ import annotations

import sqlite3

from turnlog.agents.base import Source, SourceKind
from turnlog.store.archive import Archive
from turnlog.store.reconcile import lineage


def find_copies(connection: sqlite3.Connection, keys: list[int]) -> dict[int, str]:
    """Key -> path of files that repeat what other files say about these sessions, and nothing about others.

    An example is a log that was imported and is also read in place. No stored row refers to the copy, only its records
    do.
    """
    ids = lineage.session_ids(connection, set(keys))
    marks = ",".join("?" * len(keys))
    rows = connection.execute(
        "SELECT s.key, s.agent, s.path, s.root, s.kind, s.appendable FROM sources s WHERE s.session_id IS NULL"
        " AND s.kind IN ('session', 'subagent', 'stream')"
        f" AND s.agent IN (SELECT agent FROM sessions WHERE key IN ({marks}))"
        " AND NOT EXISTS (SELECT 1 FROM memberships m WHERE m.source_key = s.key)"
        " AND NOT EXISTS (SELECT 1 FROM streams t WHERE t.source_key = s.key)",
        keys,
    ).fetchall()
    return {key: path for key, agent, path, *about in rows if _sessions_in(connection, key, agent, path, *about) & ids}


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
