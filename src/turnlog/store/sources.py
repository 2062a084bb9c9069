"""The table of sources: which files were read, how far, and whether a file has changed; and turnlog's own files."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from os import stat_result
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from turnlog.agents.base import Source, SourceKind, Version
from turnlog.hooks.send import SPOOLS
from turnlog.store import zstd


def imports_folder(store_path: Path) -> Path:
    """The folder for single files that were imported. A file is deleted with the session that it describes."""
    return store_path.absolute().parent / "imports"


def hooks_folder(store_path: Path) -> Path:
    """The folder with the spools of hooks, one folder per agent."""
    return store_path.absolute().parent / SPOOLS


SAMPLE_SIZE = 4096
"""Bytes hashed at the beginning of a file and before the end of its archived part, to recognise it."""


class Fingerprint(NamedTuple):
    """Values of `stat` that show that a file has not changed, without opening it."""

    size: int
    mtime_ns: int
    device: int
    inode: int

    @classmethod
    def of(cls, status: stat_result) -> Fingerprint:
        """The fingerprint for the result of a `stat` call."""
        return cls(status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino)


class SourceState(msgspec.Struct, kw_only=True):
    """A row of the sources table."""

    key: int
    fingerprint: Fingerprint
    generation: int = 0
    archived: int = 0
    """Archived bytes of this generation; never less than `cursor`."""
    cursor: int = 0
    """Folded bytes of this generation."""
    head_hash: bytes | None = None
    tail_hash: bytes | None = None
    state: bytes | None = None
    parser_version: int = 0
    problem: str | None = None
    lines: int = 0
    """Number of folded records."""
    is_new: bool = False
    """It has no row yet; `save_source` inserts one."""


def known_versions(connection: sqlite3.Connection) -> dict[str, Version]:
    """Path -> the four numbers of the fingerprint of the sources that were read without a problem and still exist."""
    # What kept a source from being read may be mended without a change of the file, so every pass tries it again.
    rows = connection.execute(
        "SELECT path, size, mtime_ns, device, inode FROM sources WHERE problem IS NULL AND vanished_at IS NULL"
    )
    # One statement and no call for each: there may be a hundred thousand.
    return {row[0]: row[1:] for row in rows}


def known_sessions(connection: sqlite3.Connection, agent: str) -> dict[str, str | None]:
    """Path -> session of the sources of an agent."""
    return dict(connection.execute("SELECT path, session_id FROM sources WHERE agent = ?", (agent,)).fetchall())


def move_source(connection: sqlite3.Connection, path: str, session_id: str | None) -> None:
    """Store a source for another session than before. Everything is read again after that."""
    connection.execute("UPDATE sources SET session_id = ? WHERE path = ?", (session_id, path))


def known_roots(connection: sqlite3.Connection, agent: str) -> list[str]:
    """The homes of an agent in which sources were found."""
    return [row[0] for row in connection.execute("SELECT DISTINCT root FROM sources WHERE agent = ?", (agent,))]


def unreadable_paths(connection: sqlite3.Connection) -> list[str]:
    """Paths of the sources that could not be read and are not known to be deleted."""
    rows = connection.execute("SELECT path FROM sources WHERE problem IS NOT NULL AND vanished_at IS NULL")
    return [path for (path,) in rows]


def load_source(connection: sqlite3.Connection, path: str) -> SourceState | None:
    """The state of a source; None if it was never read."""
    row = connection.execute(
        "SELECT s.key, s.size, s.mtime_ns, s.device, s.inode, s.generation, g.size, s.cursor, s.head_hash, s.tail_hash,"
        " s.state, s.parser_version, s.problem, s.lines FROM sources s"
        " JOIN generations g ON g.source_key = s.key AND g.generation = s.generation WHERE s.path = ?",
        (path,),
    ).fetchone()
    if row is None:
        return None
    key, size, mtime_ns, device, inode, *rest = row
    found = SourceState(key=key, fingerprint=Fingerprint(size, mtime_ns, device, inode))
    for name, value in zip(_STATE, rest, strict=True):
        setattr(found, name, value)
    found.state = None if found.state is None else zstd.decompress(found.state)
    return found


def load_known(connection: sqlite3.Connection, path: str) -> Source | None:
    """The source at a path, as discovery described it when it was first read."""
    row = connection.execute(
        "SELECT agent, path, root, kind, session_id, appendable FROM sources WHERE path = ?", (path,)
    ).fetchone()
    return None if row is None else _source_of(row)


def _source_of(columns: Sequence[Any]) -> Source:
    agent, path, root, kind, session_id, appendable = columns
    return Source(
        agent=agent,
        path=path,
        root=root,
        kind=SourceKind(kind),
        session_id=session_id,
        appendable=bool(appendable),
    )


class ArchivedSource(NamedTuple):
    """A source as discovery described it, and how much of its newest generation was folded."""

    key: int
    source: Source
    cursor: int
    """Bytes."""


def archived_sources(connection: sqlite3.Connection) -> list[ArchivedSource]:
    """All sources, last modified first."""
    rows = connection.execute(
        "SELECT key, cursor, agent, path, root, kind, session_id, appendable FROM sources ORDER BY mtime_ns DESC"
    )
    return [ArchivedSource(key, _source_of(columns), cursor) for key, cursor, *columns in rows.fetchall()]


def look_again(connection: sqlite3.Connection, key: int, problem: str | None = None) -> None:
    """Let the next sync read a source again, although its file has not changed; with `problem`, say why."""
    connection.execute("UPDATE sources SET mtime_ns = 0, problem = coalesce(?, problem) WHERE key = ?", (problem, key))


def note_unread(connection: sqlite3.Connection, key: int, problem: str) -> None:
    """Note that no reader has read a source, and why: once its file grows, all of it is read, not only what is new."""
    connection.execute("UPDATE sources SET problem = ?, parser_version = 0 WHERE key = ?", (problem, key))


def next_source_key(connection: sqlite3.Connection) -> int:
    """The key that the next new source will get."""
    return (connection.execute("SELECT max(key) FROM sources").fetchone()[0] or 0) + 1


def is_source_key(connection: sqlite3.Connection, key: int) -> bool:
    """Whether a source has this key."""
    return connection.execute("SELECT 1 FROM sources WHERE key = ?", (key,)).fetchone() is not None


def known_paths(connection: sqlite3.Connection) -> set[str]:
    """Paths of all sources that were ever read, or could not be."""
    return {path for (path,) in connection.execute("SELECT path FROM sources")}


def is_any_known(connection: sqlite3.Connection) -> bool:
    """Whether any source was ever read, or could not be."""
    return connection.execute("SELECT 1 FROM sources LIMIT 1").fetchone() is not None


def is_any_forgotten(connection: sqlite3.Connection) -> bool:
    """Whether the user has forgotten any session."""
    return connection.execute("SELECT 1 FROM tombstones LIMIT 1").fetchone() is not None


def outdated_sources(connection: sqlite3.Connection, parser_versions: Mapping[str, int]) -> dict[str, int]:
    """Agent -> number of its sources that an older reader has read, given today's version of each."""
    rows = connection.execute(
        "SELECT agent, parser_version, count(*) FROM sources WHERE cursor > 0 GROUP BY agent, parser_version"
    )
    found: dict[str, int] = {}
    for agent, version, count in rows:
        if version < parser_versions.get(agent, 0):
            found[agent] = found.get(agent, 0) + count
    return found


def left_of_forgotten(connection: sqlite3.Connection) -> list[str]:
    """Paths of sources of forgotten sessions that still have bytes in the archive, although nothing is read from them.

    Forgetting deletes them; a version that did not, or a disk that failed meanwhile, has left them.
    """
    rows = connection.execute(
        "SELECT f.path FROM sources f WHERE EXISTS (SELECT 1 FROM tombstones t WHERE t.session_id = f.session_id)"
        " AND EXISTS (SELECT 1 FROM archive a WHERE a.source_key = f.key)"
        " AND NOT EXISTS (SELECT 1 FROM memberships m WHERE m.source_key = f.key)"
        " AND NOT EXISTS (SELECT 1 FROM streams s WHERE s.source_key = f.key) ORDER BY f.path"
    )
    return [path for (path,) in rows]


def save_source(connection: sqlite3.Connection, source: Source, state: SourceState, now: int) -> None:
    """Write the progress of a sync in a source."""
    row = (
        *state.fingerprint,
        state.generation,
        state.cursor,
        state.head_hash,
        state.tail_hash,
        _packed(state.state),
        state.parser_version,
        state.problem,
        state.lines,
        now,
    )
    if not state.is_new:
        connection.execute(_UPDATE, (*row, state.key))
        return
    place = (source.agent, source.path, source.root, source.kind, source.session_id, source.appendable)
    connection.execute(_INSERT, (*row, state.key, *place))
    state.is_new = False


def note_sessions(connection: sqlite3.Connection, key: int, session_ids: Iterable[str]) -> None:
    """Write that a source describes these sessions, of which its path does not say so."""
    connection.executemany(
        "INSERT OR IGNORE INTO source_sessions (session_id, source_key) VALUES (?, ?)",
        [(session_id, key) for session_id in session_ids],
    )


_STATE = ("generation", "archived", "cursor", "head_hash", "tail_hash", "state", "parser_version", "problem", "lines")
_COLUMNS = (
    "size",
    "mtime_ns",
    "device",
    "inode",
    "generation",
    "cursor",
    "head_hash",
    "tail_hash",
    "state",
    "parser_version",
    "problem",
)
_UPDATE = (
    f"UPDATE sources SET {', '.join(f'{name} = ?' for name in _COLUMNS)},"
    " lines = ?, read_at = ?, vanished_at = NULL WHERE key = ?"
)
_INSERT = (
    f"INSERT INTO sources ({', '.join(_COLUMNS)}, lines, read_at, key, agent, path, root, kind, session_id, appendable)"
    f" VALUES ({', '.join('?' * (len(_COLUMNS) + 9))})"
)


def save_fold_state(connection: sqlite3.Connection, key: int, state: bytes, parser_version: int, lines: int) -> None:
    """Write the state of a fold after the archived bytes, its parser version, and the number of records it found."""
    connection.execute(
        "UPDATE sources SET state = ?, parser_version = ?, lines = ? WHERE key = ?",
        (_packed(state), parser_version, lines, key),
    )


def _packed(state: bytes | None) -> bytes | None:
    return None if state is None else zstd.compress(state)


def mark_vanished(connection: sqlite3.Connection, paths: list[str], now: int) -> None:
    """Mark files as deleted. What was read from them stays, and their problems are cleared."""
    connection.executemany(
        "UPDATE sources SET vanished_at = ?, problem = NULL WHERE path = ? AND vanished_at IS NULL",
        [(now, path) for path in paths],
    )


def sample_hash(data: bytes) -> bytes:
    """The hash by which beginnings and ends of files are compared."""
    return hashlib.sha256(data).digest()
