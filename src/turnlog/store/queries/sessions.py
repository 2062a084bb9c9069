"""Sessions: lists, look-ups, relationships."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from turnlog.model import Ownership, Project, Relationship, Session, SessionCounts
from turnlog.model.usage import BUCKETS
from turnlog.store.base import Page, SessionFilter, SessionLink, SessionSort
from turnlog.store.queries.paging import decode_cursor, encode_cursor, phases
from turnlog.store.queries.session_conditions import LISTED, conditions_of
from turnlog.store.reconcile.lineage import NEAREST
from turnlog.store.rows import dollars, moment, priced, usage_total
from turnlog.store.session_keys import session_key

_COUNTS = (
    "messages",
    "prompts",
    "turns",
    "steps",
    "tool_calls",
    "failed_tool_calls",
    "reasoning_parts",
    "files",
    "events",
)


class _Row(NamedTuple):
    key: int
    agent: str
    external_id: str
    native: int
    title: str | None
    title_source: Any
    given_title: str | None
    project_path: str | None
    project_name: str | None
    cwd: str | None
    git_branch: str | None
    git_commit: str | None
    agent_version: str | None
    created_at: int | None
    updated_at: int | None
    user: str
    team: str
    task: str
    machine: str
    metadata: str | None
    calls: int
    unknown_calls: int
    unpriced_calls: int
    lower_bound: int
    cost: int
    reported_cost: int | None

    @property
    def id(self) -> str:
        return f"{self.agent}:{self.external_id}"


_COLUMNS = (
    "s.key, s.agent, s.external_id, s.native, s.title, s.title_source, a.title, p.path, p.name, s.cwd,"
    " s.git_branch, s.git_commit, s.agent_version, s.created_at, s.updated_at, o.user, o.team, o.task, o.machine,"
    " s.metadata, s.calls, s.unknown_calls, s.unpriced_calls, s.lower_bound, s.cost, s.reported_cost, "
    + ", ".join(f"s.{name}" for name in (*_COUNTS, *BUCKETS))
)

_FROM = (
    " FROM sessions s JOIN owners o ON o.key = s.owner_key LEFT JOIN projects p ON p.key = s.project_key"
    " LEFT JOIN annotations a ON a.session_id = s.agent || ':' || s.external_id"
)

_SORT_VALUES: dict[SessionSort, str] = {
    "updated": "s.updated_at",
    "created": "s.created_at",
    "cost": "CASE WHEN s.calls > s.unknown_calls + s.unpriced_calls THEN s.cost END",
    "tokens": f"CASE WHEN s.calls > s.unknown_calls THEN {' + '.join(f's.{name}' for name in BUCKETS)} END",
    "messages": "s.messages",
}


def load_sessions(
    connection: sqlite3.Connection,
    wanted: SessionFilter,
    sort: SessionSort,
    limit: int,
    cursor: str | None,
    count: bool,
) -> Page[Session]:
    """A page of sessions; see `Store.sessions`."""
    where, parameters = conditions_of(connection, wanted)
    value = _SORT_VALUES[sort]
    rows: list[tuple[Any, ...]] = []
    # Rows of one value run by key, which is how an index on the value alone already has them.
    for phase in phases(value, "s.key > ?", decode_cursor(sort, (int | None, int), cursor)):
        missing = limit + 1 - len(rows)
        if missing > 0:
            rows += connection.execute(
                f"SELECT {_COLUMNS}, {value}{_FROM} WHERE {where} AND {phase.condition}"
                f" ORDER BY {value} DESC, s.key LIMIT ?",
                (*parameters, *phase.parameters, missing),
            )
    shown = rows[:limit]
    following = encode_cursor(sort, shown[-1][-1], shown[-1][0]) if len(rows) > limit else None
    total = connection.execute(f"SELECT count(*){_FROM} WHERE {where}", parameters).fetchone()[0] if count else None
    return Page(tuple(_sessions(connection, shown)), following, total)


def load_session(connection: sqlite3.Connection, session_id: str) -> Session:
    """One session by its id."""
    return _sessions(connection, _select(connection, "s.key = ?", (session_key(connection, session_id),)))[0]


def find_session(
    connection: sqlite3.Connection, agent: str, external_id: str, ownership: Ownership | None
) -> Session | None:
    """The session of an agent's own id; of several owners' the named one, else the first."""
    # By owner, agent and id: the order of the index that holds them.
    owner, parameters = "1", ()
    if ownership is not None:
        owner = "(user, team, task, machine) = (?, ?, ?, ?)"
        parameters = tuple(name or "" for name in (ownership.user, ownership.team, ownership.task, ownership.machine))
    condition = f"s.owner_key IN (SELECT key FROM owners WHERE {owner}) AND s.agent = ? AND s.external_id = ?"
    found = _select(connection, condition, (*parameters, agent, external_id))
    return _sessions(connection, found[:1])[0] if found else None


def load_children(connection: sqlite3.Connection, session_id: str) -> list[Session]:
    """Sessions that came out of this one, oldest first; of a chat also those in which its agents tell of it."""
    key = session_key(connection, session_id)
    rows = _select(connection, f"s.parent_key = ? AND {LISTED}", (key,))
    logs = connection.execute("SELECT DISTINCT log_id FROM answers WHERE session_id = ?", (session_id,)).fetchall()
    for (log_id,) in logs:
        agent, _, external_id = log_id.partition(":")
        rows += _select(connection, "s.owner_key = 1 AND s.agent = ? AND s.external_id = ?", (agent, external_id))
    return sorted(_sessions(connection, rows), key=lambda child: (child.created_at is None, child.created_at, child.id))


def load_relationships(connection: sqlite3.Connection, session_id: str) -> list[SessionLink]:
    """Every link of the session, as child first; not to what only a stream called a child of it."""
    key = session_key(connection, session_id)
    hidden = f"SELECT s.agent || ':' || s.external_id FROM sessions s WHERE s.parent_key = ? AND NOT ({LISTED})"
    return [
        *_links(connection, "child_id = ?", (session_id,)),
        *_links(connection, f"parent_id = ? AND child_id NOT IN ({hidden})", (session_id, key)),
    ]


def _select(connection: sqlite3.Connection, condition: str, parameters: Iterable[Any]) -> list[tuple[Any, ...]]:
    return connection.execute(
        f"SELECT {_COLUMNS}{_FROM} WHERE {condition} ORDER BY s.key", tuple(parameters)
    ).fetchall()


def _sessions(connection: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> list[Session]:
    """Sessions from their rows, with what stands in other tables fetched for all of them at once."""
    found = [_Row(*row[: len(_Row._fields)]) for row in rows]
    ids = [row.id for row in found]
    models = _models(connection, [row.key for row in found])
    relationships: dict[str, list[Relationship]] = defaultdict(list)
    for link in _links(connection, f"child_id IN ({_marks(ids)})", ids):
        relationships[link.child_session_id].append(link.relationship)
    diagnostics = _diagnostic_counts(connection, ids)
    sessions: list[Session] = []
    for row, values in zip(found, rows, strict=True):
        counts = values[len(_Row._fields) :]
        sessions.append(
            _session(
                row,
                SessionCounts(**dict(zip(_COUNTS, counts, strict=False)), diagnostics=diagnostics.get(row.id, 0)),
                counts[len(_COUNTS) : len(_COUNTS) + len(BUCKETS)],
                tuple(models[row.key]),
                tuple(relationships[row.id]),
            )
        )
    return sessions


def _session(
    row: _Row,
    counts: SessionCounts,
    buckets: Sequence[int],
    models: tuple[str, ...],
    relationships: tuple[Relationship, ...],
) -> Session:
    return Session(
        id=row.id,
        agent=row.agent,
        external_id=row.external_id,
        title=row.given_title or row.title,
        title_source="user" if row.given_title else row.title_source,
        project=None
        if row.project_path is None
        else Project(path=row.project_path, name=row.project_name or row.project_path),
        cwd=row.cwd,
        git_branch=row.git_branch,
        git_commit=row.git_commit,
        agent_version=row.agent_version,
        models=models,
        created_at=moment(row.created_at),
        updated_at=moment(row.updated_at),
        relationships=relationships,
        ownership=Ownership(
            user=row.user or None, team=row.team or None, task=row.task or None, machine=row.machine or None
        ),
        native=bool(row.native),
        counts=counts,
        usage=usage_total(buckets, row.calls, row.unknown_calls, row.lower_bound),
        cost=priced(row.cost, row.calls, row.unknown_calls, row.unpriced_calls),
        unpriced_calls=row.unpriced_calls + row.unknown_calls,
        reported_cost=None if row.reported_cost is None else dollars(row.reported_cost, reported=True),
        metadata=msgspec.json.decode(row.metadata) if row.metadata else {},
    )


def _models(connection: sqlite3.Connection, keys: list[int]) -> dict[int, list[str]]:
    """The models each session called, the most called first."""
    found: dict[int, list[str]] = {key: [] for key in keys}
    rows = connection.execute(
        "SELECT u.session_key, d.name FROM usage u JOIN models d ON d.key = u.model_key"
        f" WHERE u.session_key IN ({_marks(keys)}) GROUP BY u.session_key, d.name ORDER BY sum(u.calls) DESC, d.name",
        keys,
    )
    for key, name in rows:
        found[key].append(name)
    return found


def _links(connection: sqlite3.Connection, condition: str, parameters: Sequence[str | int]) -> list[SessionLink]:
    rows = connection.execute(
        "SELECT child_id, kind, parent_id, coalesce(tool_call_id, found_call_id),"
        " coalesce(message_id, found_message_id), inferred OR found_call_id IS NOT NULL"
        f" FROM links l WHERE {condition} AND {NEAREST} ORDER BY inferred, kind, parent_id, child_id",
        parameters,
    )
    return [
        SessionLink(
            child,
            Relationship(
                kind=kind,
                parent_session_id=parent,
                parent_tool_call_id=tool_call_id,
                parent_message_id=message_id,
                inferred=bool(inferred),
            ),
        )
        for child, kind, parent, tool_call_id, message_id, inferred in rows
    ]


def _diagnostic_counts(connection: sqlite3.Connection, ids: list[str]) -> dict[str, int]:
    rows = connection.execute(
        "SELECT f.session_id, count(*) FROM sources f JOIN diagnostics d"
        " ON d.source_key = f.key AND d.generation = f.generation"
        f" WHERE f.session_id IN ({_marks(ids)}) GROUP BY f.session_id",
        ids,
    )
    return dict(rows.fetchall())


def _marks(values: Sequence[Any]) -> str:
    return ",".join("?" * len(values))
