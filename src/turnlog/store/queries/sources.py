"""What was read: sources, their bytes, what of them could not be understood; and what there is of each kind."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from turnlog.errors import NotFoundError
from turnlog.model import RecordEvent
from turnlog.model.codec import decode_event
from turnlog.store import zstd
from turnlog.store.archive import Archive
from turnlog.store.base import (
    AgentSummary,
    DiagnosticFilter,
    ModelSummary,
    Page,
    ProjectSummary,
    RawSource,
    SourceInfo,
    StoredDiagnostic,
)
from turnlog.store.packed_columns import unpack_data
from turnlog.store.queries.paging import decode_cursor, encode_cursor
from turnlog.store.rows import moment
from turnlog.store.session_keys import session_key

_SELECT = (
    "SELECT f.path, f.agent, f.kind, f.session_id, f.size, f.generation, f.cursor, f.lines, f.read_at, f.vanished_at,"
    " f.problem, f.key FROM sources f"
)

_DIAGNOSTICS = " FROM sources f JOIN diagnostics d ON d.source_key = f.key AND d.generation = f.generation"

_KIND_ORDER = "CASE f.kind WHEN 'session' THEN 0 WHEN 'subagent' THEN 1 WHEN 'sidecar' THEN 2 ELSE 3 END, f.path"


def load_sources(connection: sqlite3.Connection, session_id: str | None) -> list[SourceInfo]:
    """Sources of one session, its log first, or of all, by path."""
    if session_id is None:
        return [_source(row) for row in connection.execute(f"{_SELECT} ORDER BY f.path")]
    return [_source(row) for row in _source_rows(connection, session_id)]


def iter_raw(connection: sqlite3.Connection, session_id: str) -> Iterator[RawSource]:
    """The bytes of every source of a session from the archive."""
    archive = Archive(connection)
    for row in _source_rows(connection, session_id):
        source = _source(row)
        yield RawSource(source, archive.iter_bytes(row[-1], source.generation))


def load_record(connection: sqlite3.Connection, path: str, offset: int, length: int) -> bytes:
    """Bytes of a source as they were read; raise NotFoundError for a path or a range that the store does not hold."""
    row = connection.execute("SELECT key, generation FROM sources WHERE path = ?", (path,)).fetchone()
    if row is None:
        raise NotFoundError(f"{path} was never read")
    return Archive(connection).read(row[0], row[1], offset, length)


def load_diagnostics(
    connection: sqlite3.Connection, wanted: DiagnosticFilter, limit: int, cursor: str | None
) -> Page[StoredDiagnostic]:
    """A page of diagnostics by path and place, of the files as they are now."""
    conditions = {
        "f.agent = ?": wanted.agent,
        "f.session_id = ?": wanted.session,
        "f.path = ?": wanted.path,
        "d.severity = ?": wanted.severity,
    }
    where = " AND ".join(condition for condition, value in conditions.items() if value is not None) or "1"
    values: list[Any] = [value for value in conditions.values() if value is not None]
    last = decode_cursor("diagnostics", (str, int, str), cursor) or ("", -1, "")
    rows = connection.execute(
        "SELECT f.path, f.agent, f.session_id, d.offset, d.length, d.line, d.json_path, d.severity, d.reason"
        f"{_DIAGNOSTICS} WHERE {where} AND (f.path, d.offset, d.reason) > (?, ?, ?)"
        " ORDER BY f.path, d.offset, d.reason LIMIT ?",
        (*values, *last, limit + 1),
    ).fetchall()
    found = tuple(StoredDiagnostic(*row) for row in rows[:limit])
    following = (
        encode_cursor("diagnostics", found[-1].path, found[-1].offset, found[-1].reason) if len(rows) > limit else None
    )
    total = connection.execute(f"SELECT count(*){_DIAGNOSTICS} WHERE {where}", values).fetchone()[0]
    return Page(found, following, total)


def load_projects(connection: sqlite3.Connection) -> list[ProjectSummary]:
    """Projects and their sessions, the last used first."""
    rows = connection.execute(
        "SELECT p.path, p.name, count(s.key), max(s.updated_at) FROM projects p"
        " JOIN sessions s ON s.project_key = p.key AND s.relationship IS NOT 'subagent'"
        " GROUP BY p.key ORDER BY max(s.updated_at) DESC, p.path"
    )
    return [ProjectSummary(path, name, sessions, moment(updated)) for path, name, sessions, updated in rows]


def load_models(connection: sqlite3.Connection) -> list[ModelSummary]:
    """Models and their calls, the most called first."""
    rows = connection.execute(
        "SELECT d.name, sum(u.calls), count(DISTINCT u.session_key) FROM usage u JOIN models d ON d.key = u.model_key"
        " GROUP BY d.key HAVING sum(u.calls) > 0 ORDER BY sum(u.calls) DESC, d.name"
    )
    return [ModelSummary(*row) for row in rows]


def load_agents(connection: sqlite3.Connection) -> list[AgentSummary]:
    """Agents and how much of them there is, by name."""
    sources: dict[str, int] = dict(connection.execute("SELECT agent, count(*) FROM sources GROUP BY agent").fetchall())
    sessions = {
        agent: (top, subagents, updated)
        for agent, top, subagents, updated in connection.execute(
            "SELECT agent, sum(relationship IS NOT 'subagent'), sum(relationship IS 'subagent'), max(updated_at)"
            " FROM sessions GROUP BY agent"
        )
    }
    return [
        AgentSummary(agent, top, subagents, sources.get(agent, 0), moment(updated))
        for agent in sorted({*sources, *sessions})
        for top, subagents, updated in [sessions.get(agent, (0, 0, None))]
    ]


def load_versions(connection: sqlite3.Connection) -> dict[str, list[tuple[str, int]]]:
    """Agent -> its versions that wrote sessions, and how many; the most common first."""
    found: dict[str, list[tuple[str, int]]] = {}
    for agent, version, count in connection.execute(
        "SELECT agent, agent_version, count(*) FROM sessions WHERE agent_version IS NOT NULL"
        " GROUP BY 1, 2 ORDER BY 1, 3 DESC, 2 DESC"
    ):
        found.setdefault(agent, []).append((version, count))
    return found


def load_unknown_kinds(connection: sqlite3.Connection) -> list[tuple[str, str, int]]:
    """(agent, kind, count) of records that this version has never heard of."""
    return connection.execute(
        "SELECT s.agent, coalesce(e.kind, ''), count(*) FROM events e JOIN sessions s ON s.key = e.session_key"
        " WHERE e.known = 0 GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2"
    ).fetchall()


def load_unknown_record(connection: sqlite3.Connection, agent: str, kind: str) -> Any:
    """One record of such a kind as plain values, where its event has it; None otherwise."""
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


def _source_rows(connection: sqlite3.Connection, session_id: str) -> list[tuple[Any, ...]]:
    """Sources that name the session; for one that stands inside another's log, the files its messages are in."""
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
