"""How much the store holds, and how fresh it is."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from turnlog.store.base import StoreStatus
from turnlog.store.rows import moment


def load_status(connection: sqlite3.Connection, path: Path) -> StoreStatus:
    """Counts, sizes and freshness of the store at `path`."""
    sessions, subagents = connection.execute(
        "SELECT coalesce(sum(relationship IS NOT 'subagent'), 0), coalesce(sum(relationship IS 'subagent'), 0)"
        " FROM sessions"
    ).fetchone()
    sources, source_bytes, vanished, unreadable, read_at = connection.execute(
        "SELECT count(*), coalesce(sum(size), 0), count(vanished_at), count(problem), max(read_at) FROM sources"
    ).fetchone()
    return StoreStatus(
        path=str(path),
        schema_version=_number(connection, "PRAGMA user_version"),
        file_size=sum(file.stat().st_size for file in (path, path.with_name(f"{path.name}-wal")) if file.exists()),
        sessions=sessions,
        subagents=subagents,
        messages=_number(connection, "SELECT count(*) FROM messages"),
        sources=sources,
        source_bytes=source_bytes,
        archive_bytes=_number(connection, "SELECT coalesce(sum(length(data)), 0) FROM archive"),
        vanished=vanished,
        unreadable=unreadable,
        diagnostics=_number(
            connection,
            "SELECT count(*) FROM sources f JOIN diagnostics d ON d.source_key = f.key AND d.generation = f.generation",
        ),
        last_sync_at=moment(read_at),
        change_sequence=_number(connection, "SELECT coalesce(max(seq), 0) FROM changes"),
    )


def _number(connection: sqlite3.Connection, question: str) -> int:
    return connection.execute(question).fetchone()[0]
