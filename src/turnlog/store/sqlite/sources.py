"""Sources in SQLite: their bytes, diagnostics and unknown records, and the counts of the store.

The code that reads archived bytes is imported where it is used, because commands that list sources do not need it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from turnlog.errors import NotFoundError
from turnlog.model import Json, RecordEvent
from turnlog.store.base import EVERY_DIAGNOSTIC, DiagnosticFilter
from turnlog.store.keys import session_key
from turnlog.store.rows import moment
from turnlog.store.sqlite.reading import Connections, check_limit, decode_cursor, encode_cursor
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

if TYPE_CHECKING:
    from pathlib import Path

    from turnlog.store.sources import Fingerprint

_SELECT = (
    "SELECT f.path, f.agent, f.kind, f.session_id, f.size, f.generation, f.cursor, f.lines, f.read_at, f.vanished_at,"
    " f.problem, f.key FROM sources f"
)

SHOWN_DIAGNOSTICS = (
    " FROM sources f JOIN diagnostics d ON d.source_key = f.key AND d.generation = f.generation"
    # Records of a deleted log are shown with what was wrong in them. A deleted database or list has no such records.
    " AND NOT (f.vanished_at IS NOT NULL AND f.kind = 'sidecar' AND f.session_id IS NULL)"
)
"""Sources with the diagnostics of their newest generation that are shown and counted."""

_KIND_ORDER = "CASE f.kind WHEN 'session' THEN 0 WHEN 'subagent' THEN 1 WHEN 'sidecar' THEN 2 ELSE 3 END, f.path"


class SourceQueries(Connections):
    """The queries of `Store` about what was read."""

    def sources(self, session_id: str | None = None) -> list[SourceInfo]:
        with self._snapshot() as connection:
            if session_id is None:
                return [_source(row) for row in connection.execute(f"{_SELECT} ORDER BY f.path")]
            return [_source(row) for row in _source_rows(connection, session_id)]

    def fingerprints(self) -> dict[str, Fingerprint]:
        from turnlog.store.sources import Fingerprint, known_versions

        with self._snapshot() as connection:
            known = known_versions(connection)
        return {path: Fingerprint(*version) for path, version in known.items()}

    def diagnostics(
        self, filter: DiagnosticFilter = EVERY_DIAGNOSTIC, *, limit: int = 100, cursor: str | None = None
    ) -> Page[StoredDiagnostic]:
        check_limit(limit)
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
                f"{SHOWN_DIAGNOSTICS} WHERE {where} AND (f.path, d.offset, d.reason) > (?, ?, ?)"
                " ORDER BY f.path, d.offset, d.reason LIMIT ?",
                (*values, *last, limit + 1),
            ).fetchall()
            total = connection.execute(f"SELECT count(*){SHOWN_DIAGNOSTICS} WHERE {where}", values).fetchone()[0]
        found = tuple(StoredDiagnostic(*row) for row in rows[:limit])
        following = None
        if len(rows) > limit:
            following = encode_cursor("diagnostics", found[-1].path, found[-1].offset, found[-1].reason)
        return Page(found, following, total)

    def unread_logs(self) -> tuple[int, int]:
        with self._snapshot() as connection:
            (unread,) = connection.execute(
                "SELECT count(*) FROM sources WHERE problem IS NOT NULL AND vanished_at IS NULL"
            ).fetchone()
            (partly,) = connection.execute(
                # CROSS JOIN: errors are few, and sources many.
                "SELECT count(DISTINCT f.key) FROM diagnostics d CROSS JOIN sources f ON f.key = d.source_key"
                " AND f.generation = d.generation WHERE d.severity = 'error' AND f.problem IS NULL"
                " AND f.vanished_at IS NULL"
            ).fetchone()
        return unread, partly

    def diagnostic_counts(self, *, limit: int = 40) -> list[DiagnosticCount]:
        with self._snapshot() as connection:
            rows = connection.execute(
                f"SELECT f.agent, d.severity, d.json_path, count(*){SHOWN_DIAGNOSTICS}"
                " GROUP BY f.agent, d.severity, d.json_path ORDER BY 4 DESC LIMIT ?",
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
        from turnlog.model.codec import decode_event
        from turnlog.store import zstd
        from turnlog.store.packed_columns import unpack_data

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
        from turnlog.store.archive import Archive

        with self._snapshot() as connection:
            row = connection.execute("SELECT key, generation FROM sources WHERE path = ?", (source,)).fetchone()
            if row is None:
                raise NotFoundError(f"{source} was never read")
            return Archive(connection).read(row[0], row[1], offset, length)

    def raw(self, session_id: str) -> Iterator[RawSource]:
        from turnlog.store.archive import Archive

        # Not in a snapshot, because the caller may read the bytes slowly.
        connection = self._connection()
        archive = Archive(connection)
        for row in _source_rows(connection, session_id):
            source = _source(row)
            yield RawSource(source, archive.iter_bytes(row[-1], source.generation))

    def restore(self, session_id: str, to: Path, *, copies: bool = True) -> list[RestoredFile]:
        from turnlog.store.sqlite.restore import restore_files

        with self._snapshot() as connection:
            return restore_files(connection, session_id, to, copies=copies)

    def plan_forgetting(self, session_id: str) -> Forgetting:
        from turnlog.store.sqlite.forget import plan_forgetting

        with self._snapshot() as connection:
            return plan_forgetting(connection, session_id)

    def forget(self, session_id: str) -> Forgetting:
        from turnlog.store.sqlite.forget import forget_for_good

        return forget_for_good(self.path, session_id)

    def spill(self, session_id: str, name: str) -> bytes:
        from turnlog.store.external_content import load_spill

        with self._snapshot() as connection:
            return load_spill(connection, session_id, name)

    def blob(self, sha256: str) -> BlobContent:
        from turnlog.store.external_content import load_blob

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
                    f"SELECT count(*){SHOWN_DIAGNOSTICS}",
                ),
                last_sync_at=moment(read_at),
                change_sequence=_number(connection, "SELECT coalesce(max(seq), 0) FROM changes"),
            )


def _source_rows(connection: sqlite3.Connection, session_id: str) -> list[tuple[Any, ...]]:
    """Sources of the session; for a session within another one's log, the files with its messages."""
    key = session_key(connection, session_id)
    rows = connection.execute(f"{_SELECT} WHERE f.session_id = ? ORDER BY {_KIND_ORDER}", (session_id,)).fetchall()
    # Some agents write subagents into the log of their session: such a session has no file with its id.
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
