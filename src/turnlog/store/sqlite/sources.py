"""What was read, from SQLite: sources, their bytes, what of them could not be understood, and how much there is.

Files are given back byte for byte from the archive; what is no file as equal rows.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

import msgspec
from msgspec import UNSET

from turnlog.agents.base import RowAgent, Source
from turnlog.errors import ConflictError, NotFoundError, StoreError
from turnlog.model import Json, RecordEvent
from turnlog.model.codec import decode_event
from turnlog.store import zstd
from turnlog.store.archive import Archive
from turnlog.store.base import EVERY_DIAGNOSTIC, DiagnosticFilter
from turnlog.store.external_content import load_blob, load_spill
from turnlog.store.keys import family, session_key
from turnlog.store.packed_columns import unpack_data
from turnlog.store.rows import moment
from turnlog.store.sources import Fingerprint, known_fingerprints
from turnlog.store.sqlite.reading import Connections, decode_cursor, encode_cursor
from turnlog.store.values import (
    AgentVersion,
    BlobContent,
    DiagnosticCount,
    Forgetting,
    Page,
    RawSource,
    RestoredFile,
    SourceInfo,
    StoredDiagnostic,
    StoreStatus,
    UnknownKind,
)

_SELECT = (
    "SELECT f.path, f.agent, f.kind, f.session_id, f.size, f.generation, f.cursor, f.lines, f.read_at, f.vanished_at,"
    " f.problem, f.key FROM sources f"
)

_DIAGNOSTICS = " FROM sources f JOIN diagnostics d ON d.source_key = f.key AND d.generation = f.generation"

_KIND_ORDER = "CASE f.kind WHEN 'session' THEN 0 WHEN 'subagent' THEN 1 WHEN 'sidecar' THEN 2 ELSE 3 END, f.path"


class SourceQueries(Connections):
    """The queries of `Store` about what was read."""

    def sources(self, session_id: str | None = None) -> list[SourceInfo]:
        with self._snapshot() as connection:
            if session_id is None:
                return [_source(row) for row in connection.execute(f"{_SELECT} ORDER BY f.path")]
            return [_source(row) for row in _source_rows(connection, session_id)]

    def fingerprints(self) -> dict[str, Fingerprint]:
        with self._snapshot() as connection:
            return known_fingerprints(connection)

    def diagnostics(
        self, filter: DiagnosticFilter = EVERY_DIAGNOSTIC, *, limit: int = 100, cursor: str | None = None
    ) -> Page[StoredDiagnostic]:
        conditions = {
            "f.agent = ?": filter.agent,
            "f.session_id = ?": filter.session,
            "f.path = ?": filter.path,
            "d.severity = ?": filter.severity,
        }
        where = " AND ".join(condition for condition, value in conditions.items() if value is not None) or "1"
        values: list[Any] = [value for value in conditions.values() if value is not None]
        last = decode_cursor("diagnostics", (str, int, str), cursor) or ("", -1, "")
        with self._snapshot() as connection:
            rows = connection.execute(
                "SELECT f.path, f.agent, f.session_id, d.offset, d.length, d.line, d.json_path, d.severity, d.reason"
                f"{_DIAGNOSTICS} WHERE {where} AND (f.path, d.offset, d.reason) > (?, ?, ?)"
                " ORDER BY f.path, d.offset, d.reason LIMIT ?",
                (*values, *last, limit + 1),
            ).fetchall()
            total = connection.execute(f"SELECT count(*){_DIAGNOSTICS} WHERE {where}", values).fetchone()[0]
        found = tuple(StoredDiagnostic(*row) for row in rows[:limit])
        following = None
        if len(rows) > limit:
            following = encode_cursor("diagnostics", found[-1].path, found[-1].offset, found[-1].reason)
        return Page(found, following, total)

    def diagnostic_counts(self, *, limit: int = 40) -> list[DiagnosticCount]:
        with self._snapshot() as connection:
            rows = connection.execute(
                "SELECT s.agent, d.severity, d.json_path, count(*) FROM diagnostics d"
                " JOIN sources s ON s.key = d.source_key"
                " GROUP BY s.agent, d.severity, d.json_path ORDER BY 4 DESC LIMIT ?",
                (limit,),
            )
            return [DiagnosticCount(*row) for row in rows]

    def unknown_kinds(self) -> list[UnknownKind]:
        with self._snapshot() as connection:
            rows = connection.execute(
                "SELECT s.agent, coalesce(e.kind, ''), count(*) FROM events e JOIN sessions s ON s.key = e.session_key"
                " WHERE e.known = 0 GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2"
            )
            return [UnknownKind(*row) for row in rows]

    def unknown_record(self, agent: str, kind: str) -> Json | None:
        with self._snapshot() as connection:
            row = connection.execute(
                "SELECT e.body, e.data FROM events e JOIN sessions s ON s.key = e.session_key WHERE e.known = 0"
                " AND s.agent = ? AND e.kind = ? AND coalesce(e.body, e.data) IS NOT NULL LIMIT 1",
                (agent, kind),
            ).fetchone()
        if row is None:
            return None
        event = None if row[0] is None else decode_event(zstd.decompress(row[0]))
        data = event.data if isinstance(event, RecordEvent) else unpack_data(row[1])
        return None if data is UNSET else msgspec.json.decode(data)

    def agent_versions(self) -> dict[str, list[AgentVersion]]:
        found: dict[str, list[AgentVersion]] = {}
        with self._snapshot() as connection:
            for agent, version, count in connection.execute(
                "SELECT agent, agent_version, count(*) FROM sessions WHERE agent_version IS NOT NULL"
                " GROUP BY 1, 2 ORDER BY 1, 3 DESC, 2 DESC"
            ):
                found.setdefault(agent, []).append(AgentVersion(version, count))
        return found

    def record(self, source: str, offset: int, length: int) -> bytes:
        with self._snapshot() as connection:
            row = connection.execute("SELECT key, generation FROM sources WHERE path = ?", (source,)).fetchone()
            if row is None:
                raise NotFoundError(f"{source} was never read")
            return Archive(connection).read(row[0], row[1], offset, length)

    def raw(self, session_id: str) -> Iterator[RawSource]:
        # No snapshot: whoever reads it may take as long as they like.
        connection = self._connection()
        archive = Archive(connection)
        for row in _source_rows(connection, session_id):
            source = _source(row)
            yield RawSource(source, archive.iter_bytes(row[-1], source.generation))

    def restore(self, session_id: str, to: Path) -> list[RestoredFile]:
        with self._snapshot() as connection:
            return restore_files(connection, session_id, to)

    def plan_forgetting(self, session_id: str) -> Forgetting:
        # What forgets also indexes: no list waits for its import.
        from turnlog.store.sqlite.forget import plan_forgetting

        with self._snapshot() as connection:
            return plan_forgetting(connection, session_id)

    def forget(self, session_id: str) -> Forgetting:
        from turnlog.store.sqlite.forget import forget_for_good

        return forget_for_good(self.path, session_id)

    def spill(self, session_id: str, name: str) -> bytes:
        with self._snapshot() as connection:
            return load_spill(connection, session_id, name)

    def blob(self, sha256: str) -> BlobContent:
        with self._snapshot() as connection:
            return load_blob(connection, sha256)

    def status(self) -> StoreStatus:
        with self._snapshot() as connection:
            sessions, subagents = connection.execute(
                "SELECT coalesce(sum(relationship IS NOT 'subagent'), 0), coalesce(sum(relationship IS 'subagent'), 0)"
                " FROM sessions"
            ).fetchone()
            sources, source_bytes, vanished, unreadable, read_at = connection.execute(
                "SELECT count(*), coalesce(sum(size), 0), count(vanished_at), count(problem), max(read_at) FROM sources"
            ).fetchone()
            return StoreStatus(
                path=str(self.path),
                schema_version=_number(connection, "PRAGMA user_version"),
                file_size=sum(
                    file.stat().st_size
                    for file in (self.path, self.path.with_name(f"{self.path.name}-wal"))
                    if file.exists()
                ),
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
                    f"SELECT count(*){_DIAGNOSTICS}",
                ),
                last_sync_at=moment(read_at),
                change_sequence=_number(connection, "SELECT coalesce(max(seq), 0) FROM changes"),
            )


def _source_rows(connection: sqlite3.Connection, session_id: str) -> list[tuple[Any, ...]]:
    """Sources that name the session; for one that lies inside another's log, the files its messages are in."""
    key = session_key(connection, session_id)
    rows = connection.execute(f"{_SELECT} WHERE f.session_id = ? ORDER BY {_KIND_ORDER}", (session_id,)).fetchall()
    if any(row[2] in ("session", "subagent") for row in rows):
        return rows
    within = connection.execute(
        f"{_SELECT} WHERE f.key IN (SELECT source_key FROM memberships WHERE session_key = ?) ORDER BY {_KIND_ORDER}",
        (key,),
    ).fetchall()
    return [*within, *(row for row in rows if row not in within)]


def _source(row: tuple[Any, ...]) -> SourceInfo:
    path, agent, kind, session_id, size, generation, cursor, lines, read_at, vanished_at, problem, _ = row
    return SourceInfo(
        path, agent, kind, session_id, size, generation, cursor, lines, moment(read_at), moment(vanished_at), problem
    )


def _number(connection: sqlite3.Connection, query: str) -> int:
    return connection.execute(query).fetchone()[0]


def restore_files(connection: sqlite3.Connection, session_id: str, to: Path) -> list[RestoredFile]:
    """Write every file of a session and of its subagents under `to`, laid out as under the agent's home.

    What hooks told is none of the agent's files. Where several homes have a file at one place, each with bytes of its
    own, those of the later homes lie under the whole path of their home.

    Raises NotFoundError for a session that is not stored or has no files, ConflictError when a file is there already
    with other bytes, StoreError for a path that would leave `to`.
    """
    sources = _sources(connection, session_id)
    if not sources:
        raise NotFoundError(f"session {session_id} was not read from files")
    archive = Archive(connection)
    to = to.absolute()
    restored: list[RestoredFile] = []
    homes: dict[Path, str] = {}
    for key, path, root, agent in sources:
        if (rows := _rows_of(agent, path, root)) is not None:
            restored += _restore_rows(archive, key, *rows, to)
        else:
            target = _inside(to, Path(path), Path(root))
            if homes.setdefault(target, root) != root and not _is_equal(archive, key, target):
                target = _inside(to / PurePath(root).relative_to(PurePath(root).anchor), Path(path), Path(root))
            restored.append(_restore_file(archive, key, Path(path), target, to))
    return list({file.path: file for file in restored}.values())


def _sources(connection: sqlite3.Connection, session_id: str) -> list[tuple[int, str, str, str]]:
    keys = family(connection, session_key(connection, session_id))
    marks = ",".join("?" * len(keys))
    rows = connection.execute(
        f"SELECT DISTINCT s.key, s.path, s.root, s.agent FROM sources s LEFT JOIN sessions own"
        f" ON s.session_id = own.agent || ':' || own.external_id WHERE s.kind <> 'hooks' AND (own.key IN ({marks})"
        f" OR s.key IN (SELECT source_key FROM memberships WHERE session_key IN ({marks}))"
        f" OR s.key IN (SELECT source_key FROM events WHERE session_key IN ({marks}))) ORDER BY s.path",
        (*keys, *keys, *keys),
    )
    return rows.fetchall()


def _rows_of(agent: str, path: str, root: str) -> tuple[RowAgent, Source] | None:
    """Who can give back a source that is no file, and the source; None for a file."""
    # Agents are found through the entry points of all installed packages: only where they are wanted.
    from turnlog.agents import agents

    source = Source(agent=agent, path=path, root=root)
    reader = next((found for found in agents() if found.name == agent), None)
    return (reader, source) if isinstance(reader, RowAgent) and reader.holds_rows(source) else None


def _restore_rows(archive: Archive, key: int, agent: RowAgent, source: Source, to: Path) -> list[RestoredFile]:
    log = archive.iter_bytes(key, archive.generations(key)[-1].number)
    return [RestoredFile(path, source.path, path.stat().st_size) for path in agent.restore_rows(source, log, to)]


def _restore_file(archive: Archive, key: int, path: Path, target: Path, to: Path) -> RestoredFile:
    last = archive.generations(key)[-1]
    if target.is_symlink() or target.exists():
        if not _is_equal(archive, key, target):
            raise ConflictError(f"{target} is there already with other content")
        return RestoredFile(target, str(path), last.size)
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.parent.resolve().is_relative_to(to.resolve()):
        raise StoreError(f"{target} leads out of {to} through a symbolic link")
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    with partial.open("xb") as file:
        for piece in archive.iter_bytes(key, last.number):
            file.write(piece)
    if last.mode is not None:
        partial.chmod(last.mode & 0o777)
    if last.mtime_ns is not None:
        os.utime(partial, ns=(last.mtime_ns, last.mtime_ns))
    partial.rename(target)
    return RestoredFile(target, str(path), last.size)


def _inside(to: Path, path: Path, root: Path) -> Path:
    """Where a file goes: its place under the agent's home, under `to`."""
    relative = PurePosixPath(os.path.relpath(path, root))
    if relative.is_absolute() or ".." in relative.parts:
        raise StoreError(f"{path} does not lie under {root}: it has no place in {to}")
    return to / relative


def _is_equal(archive: Archive, key: int, target: Path) -> bool:
    """Whether the file that is there holds the archived bytes."""
    if target.is_symlink() or not target.is_file():
        raise ConflictError(f"{target} is there already and is no plain file")
    with target.open("rb") as file:
        pieces = archive.iter_bytes(key, archive.generations(key)[-1].number)
        return all(file.read(len(piece)) == piece for piece in pieces) and not file.read(1)
