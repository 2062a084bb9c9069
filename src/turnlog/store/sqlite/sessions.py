"""Sessions in SQLite: lists, lookups, relationships and annotations."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import add
from typing import Any, NamedTuple, Unpack

import msgspec

from turnlog.errors import NotFoundError
from turnlog.model import Cost, Ownership, Project, Relationship, Session, SessionCounts
from turnlog.model.usage import BUCKETS
from turnlog.plain_text import one_line
from turnlog.store.base import EVERY_SESSION, SessionFilter
from turnlog.store.choices import SessionHaving, SessionSort
from turnlog.store.damaged import read_value
from turnlog.store.keys import OWN, session_key
from turnlog.store.reconcile.lineage import NEAREST
from turnlog.store.rows import USAGE_COUNTS, counted_totals, decode_totals, dollars, moment, priced, usage_total
from turnlog.store.sqlite.listed import NOT_ANSWERED_ELSEWHERE, NOT_NAMED_TWICE, USED
from turnlog.store.sqlite.reading import (
    Connections,
    aware_milliseconds,
    check_limit,
    decode_cursor,
    encode_cursor,
    phases,
)
from turnlog.store.sqlite.usage_rows import estimated_calls
from turnlog.store.values import Annotations, AnnotationsChange, Page, SessionLink, SessionPreview

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
    worktree: str | None
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
    totals: str | None
    reported_cost: int | None

    @property
    def id(self) -> str:
        return f"{self.agent}:{self.external_id}"


_COLUMNS = (
    "s.key, s.agent, s.external_id, s.native, s.title, s.title_source, a.title, p.path, p.name, f.worktree, s.cwd,"
    " s.git_branch, s.git_commit, s.agent_version, s.created_at, s.updated_at, o.user, o.team, o.task, o.machine,"
    " s.metadata, s.totals, s.reported_cost, " + ", ".join(f"s.{name}" for name in (*_COUNTS, *USAGE_COUNTS))
)

_FROM = (
    " FROM sessions s JOIN owners o ON o.key = s.owner_key LEFT JOIN projects p ON p.key = s.project_key"
    " LEFT JOIN projects f ON f.key = s.folder_key"
    " LEFT JOIN annotations a ON a.session_id = s.agent || ':' || s.external_id"
)

_COUNTED = "s.calls - s.unknown_calls - s.covered_calls + s.session_totals"
"""SQL: `usage_report.counted` of a session."""

_SORT_VALUES: dict[SessionSort, str] = {
    "updated": "s.updated_at",
    "created": "s.created_at",
    "cost": f"CASE WHEN {_COUNTED} > s.unpriced_calls THEN s.cost END",
    "tokens": f"CASE WHEN {_COUNTED} > 0 THEN {' + '.join(f's.{name}' for name in BUCKETS)} END",
    "messages": "s.messages",
}

_CONDITIONS = {
    "agent": "s.agent = ?",
    "project": "s.project_key IN (SELECT key FROM projects WHERE path = ? OR name = ?)",
    "model": "EXISTS (SELECT 1 FROM usage u JOIN models d ON d.key = u.model_key"
    " WHERE u.session_key = s.key AND d.name = ?)",
    "branch": "(s.git_branch = ? OR s.folder_key IN (SELECT key FROM projects WHERE worktree = ?)"
    " OR (s.git_branch IS NULL AND s.key IN (WITH RECURSIVE found (key) AS (SELECT key FROM sessions"
    " WHERE git_branch = ? UNION SELECT x.key FROM found JOIN sessions x ON x.parent_key = found.key"
    " WHERE x.git_branch IS NULL) SELECT key FROM found)))",
    "title": "instr(casefold(coalesce(a.title, s.title)), casefold(?)) > 0",
    "relationship": "s.relationship = ?",
    "user": "s.owner_key IN (SELECT key FROM owners WHERE user = ?)",
    "team": "s.owner_key IN (SELECT key FROM owners WHERE team = ?)",
    "task": "s.owner_key IN (SELECT key FROM owners WHERE task = ?)",
    "machine": "s.owner_key IN (SELECT key FROM owners WHERE machine = ?)",
    "owned": "EXISTS (SELECT 1 FROM owners w WHERE w.key = s.owner_key"
    " AND (w.user <> '' OR w.team <> '' OR w.task <> '')) = ?",
    "native": "s.native = ?",
    "imported": "EXISTS (SELECT 1 FROM runs r"
    " WHERE r.session_id = s.agent || ':' || s.external_id AND r.origin = 'import') = ?",
    "starred": "coalesce(a.starred, 0) = ?",
    "archived": "coalesce(a.archived, 0) = ?",
    "tag": "EXISTS (SELECT 1 FROM json_each(iif(json_valid(a.tags), a.tags, '[]')) WHERE value = ?)",
}
"""Fields of `SessionFilter` that compare with one value, which each `?` in the condition stands for."""

_EVENTS = "SELECT session_key FROM events WHERE type NOT IN ('record', 'run-metadata') AND type"
"""Repeats the condition of the partial index, which SQLite otherwise would not use."""

_HAVING: dict[SessionHaving, str] = {
    "compaction": f"{_EVENTS} = 'compaction'",
    "error": f"{_EVENTS} = 'error' UNION SELECT billed_key FROM messages"
    " WHERE stop_reason = 'error' AND billed_key IS NOT NULL",
    "failed-call": "SELECT session_key FROM call_totals WHERE failed > 0",
    "subagent": "SELECT parent_key FROM sessions WHERE relationship = 'subagent' AND parent_key IS NOT NULL",
}
"""Queries of the keys of sessions."""

_WITH_PARENTS = (
    "s.key IN (WITH RECURSIVE found (key) AS ({keys} UNION SELECT x.parent_key FROM found JOIN sessions x"
    " ON x.key = found.key WHERE x.relationship = 'subagent' AND x.parent_key IS NOT NULL) SELECT key FROM found)"
)
"""Of subagents, also the sessions that they belong to: those are listed."""

_PAIRS = (
    "(SELECT DISTINCT json_extract(value, '$[0]') AS first, json_extract(value, '$[1]') AS second FROM json_each(?)) w"
)
"""SQL: rows for a JSON array of pairs of texts.

`DISTINCT` keeps the query apart: below policies of its rows, PostgreSQL compares in an index only what cannot tell
anything of rows that nobody may see, which functions of JSON might.
"""

WANTED_SESSIONS = f"{_PAIRS} CROSS JOIN sessions s ON s.agent = w.first AND s.external_id = w.second"
"""SQL: the sessions `s` for the parameter that `wanted_sessions` makes."""


def wanted_sessions(session_ids: Iterable[str]) -> str:
    """The parameter of `WANTED_SESSIONS`."""
    # One parameter for any number of sessions: SQLite bounds how many a statement has.
    return json.dumps([session_id.partition(":")[::2] for session_id in session_ids])


_LAST = "\U0010ffff"
"""What no character of an id comes behind."""

_PRICED = ("cost", "calls", "unknown_calls", "covered_calls", "session_totals", "unpriced_calls")
"""What decides whether a cost is known."""

_BELOW = (
    "WITH RECURSIVE below (top, key) AS (SELECT c.parent_key, c.key FROM sessions c"
    " WHERE c.parent_key IN (SELECT value FROM json_each(?)) AND c.relationship = 'subagent'"
    " UNION SELECT b.top, c.key FROM below b JOIN sessions c ON c.parent_key = b.key"
    " WHERE c.relationship = 'subagent')"
    f" SELECT b.top, {', '.join(f'sum(x.{name})' for name in _PRICED)}"
    " FROM below b JOIN sessions x ON x.key = b.key GROUP BY b.top"
)
"""SQL: sums (`_PRICED`) of all subagents below each of the sessions of a JSON array of keys that has any."""


def _with_subagents(own: Sequence[int], below: Sequence[int] | None) -> tuple[Cost | None, int]:
    """The fields of `SessionPreview` for a session, from its sums (`_PRICED`) and those of all its subagents."""
    if below is None:
        return None, 0
    sums: dict[str, int] = dict(zip(_PRICED, map(add, own, below), strict=True))
    return priced(sums), sums["unknown_calls"] + sums["unpriced_calls"]


class SessionQueries(Connections):
    """The queries of `Store` about sessions."""

    def sessions(
        self,
        filter: SessionFilter = EVERY_SESSION,
        *,
        sort: SessionSort = "updated",
        limit: int = 50,
        cursor: str | None = None,
        count: bool = False,
    ) -> Page[Session]:
        check_limit(limit)
        value = _SORT_VALUES.get(sort)
        if value is None:
            raise ValueError(f"{sort!r} is no order of sessions: expected one of {', '.join(_SORT_VALUES)}")
        rows: list[tuple[Any, ...]] = []
        with self._snapshot() as connection:
            chosen = _chosen(connection, filter)
            last = decode_cursor(sort, (int | None, str, str), cursor)
            # Keys are an engine's own: sessions of equal values are in the order of their ids.
            for phase in phases(value, "(s.agent, s.external_id) > (?, ?)", last):
                missing = limit + 1 - len(rows)
                if missing > 0:
                    rows += connection.execute(
                        f"SELECT {_COLUMNS}, {value}{_FROM} WHERE {chosen.shown} AND {phase.condition}"
                        f" ORDER BY {value} DESC, s.agent, s.external_id LIMIT ?",
                        (*chosen.parameters, *phase.parameters, missing),
                    )
            shown = rows[:limit]
            following = encode_cursor(sort, shown[-1][-1], *shown[-1][1:3]) if len(rows) > limit else None
            total = _count(connection, chosen) if count else None
            return Page(tuple(_sessions(connection, shown)), following, total)

    def session(self, session_id: str) -> Session:
        with self._snapshot() as connection:
            return _sessions(connection, _select(connection, "s.key = ?", (session_key(connection, session_id),)))[0]

    def find_session(self, agent: str, external_id: str) -> Session | None:
        with self._snapshot() as connection:
            found = _select(connection, "s.agent = ? AND s.external_id = ?", (agent, external_id))
            return _sessions(connection, found)[0] if found else None

    def ids_beginning(self, beginnings: Iterable[str]) -> list[tuple[str, bool]]:
        # A range of the index of ids for each agent.
        with self._snapshot() as connection:
            rows = connection.execute(
                "SELECT DISTINCT s.agent || ':' || s.external_id, s.relationship IS 'subagent'"
                f" FROM {_PAIRS} CROSS JOIN (SELECT DISTINCT agent FROM sessions) a CROSS JOIN sessions s"
                " ON s.agent = a.agent AND s.external_id >= w.first AND s.external_id <= w.second",
                (json.dumps([(beginning, beginning + _LAST) for beginning in beginnings], ensure_ascii=False),),
            )
            return sorted((session_id, bool(is_subagent)) for session_id, is_subagent in rows.fetchall())

    def children(self, session_id: str) -> list[Session]:
        with self._snapshot() as connection:
            key = session_key(connection, session_id)
            rows = _select(connection, f"s.parent_key = ? AND {NOT_NAMED_TWICE}", (key,))
            # A chat has no relationship with sessions that answered it; the table `answers` names those.
            logs = connection.execute("SELECT DISTINCT log_id FROM answers WHERE session_id = ?", (session_id,))
            for (log_id,) in logs.fetchall():
                agent, _, external_id = log_id.partition(":")
                condition = "s.agent = ? AND s.external_id = ?"
                rows += _select(connection, condition, (agent, external_id))
            found = _sessions(connection, rows)
        return sorted(found, key=lambda child: (child.created_at is None, child.created_at, child.id))

    def relationships(self, session_id: str) -> list[SessionLink]:
        # Without subagents known only from a stream.
        hidden = (
            f"SELECT s.agent || ':' || s.external_id FROM sessions s WHERE s.parent_key = ? AND NOT ({NOT_NAMED_TWICE})"
        )
        with self._snapshot() as connection:
            key = session_key(connection, session_id)
            return [
                *_links(connection, "child_id = ?", (session_id,)),
                *_links(connection, f"parent_id = ? AND child_id NOT IN ({hidden})", (session_id, key)),
            ]

    def previews(self, session_ids: Iterable[str]) -> dict[str, SessionPreview]:
        with self._snapshot() as connection:
            rows = connection.execute(
                "SELECT s.agent || ':' || s.external_id, s.key,"
                " (SELECT m.text_preview FROM memberships p CROSS JOIN messages m ON m.key = p.message_key"
                "  WHERE p.session_key = s.key AND m.origin IN ('prompt', 'subagent_prompt') AND m.text_preview <> ''"
                "  ORDER BY p.position LIMIT 1),"
                " (SELECT count(*) FROM sessions c WHERE c.parent_key = s.key), s.active_ms,"
                f" {', '.join(f's.{name}' for name in _PRICED)} FROM {WANTED_SESSIONS}",
                (wanted_sessions(session_ids),),
            ).fetchall()
            parents = [key for _, key, _, children, *_ in rows if children]
            below = {top: sums for top, *sums in connection.execute(_BELOW, (json.dumps(parents),))}
            return {
                session_id: SessionPreview(prompt, children, *_with_subagents(own, below.get(key)), active)
                for session_id, key, prompt, children, active, *own in rows
            }

    def parents(self, session_ids: Iterable[str]) -> dict[str, str]:
        with self._snapshot() as connection:
            rows = connection.execute(
                "SELECT s.agent || ':' || s.external_id, p.agent || ':' || p.external_id"
                f" FROM {WANTED_SESSIONS} JOIN sessions p ON p.key = s.parent_key WHERE s.relationship = 'subagent'",
                (wanted_sessions(session_ids),),
            )
            return dict(rows.fetchall())

    def annotations(self, session_ids: Iterable[str]) -> dict[str, Annotations]:
        with self._snapshot() as connection:
            return _annotations(connection, session_ids)

    def annotate(self, session_id: str, **change: Unpack[AnnotationsChange]) -> Annotations:
        # Imports what reads messages, which lists do not.
        from turnlog.store.sqlite.messages import position_of

        with self._writing() as connection:
            key = session_key(connection, session_id)
            now = int(time.time() * 1000)
            before = _annotations(connection, [session_id]).get(session_id, Annotations())
            after = msgspec.structs.replace(before, **change)
            tags, pins = tuple(dict.fromkeys(after.tags)), tuple(dict.fromkeys(after.pins))
            for pin in pins:
                # A message that was pinned before may have left the session since.
                if pin not in before.pins and position_of(connection, session_id, pin) is None:
                    raise NotFoundError(f"session {session_id} contains no message {pin}")
            connection.execute(
                "INSERT OR REPLACE INTO annotations"
                " (session_id, title, starred, archived, tags, note, pins, changed_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    session_id,
                    one_line(after.title or "") or None,
                    after.starred,
                    after.archived,
                    json.dumps(tags),
                    after.note or None,
                    json.dumps(pins) if pins else None,
                    now,
                ),
            )
            connection.execute("INSERT INTO changes (session_key, kind, at) VALUES (?, 'session', ?)", (key, now))
            return _annotations(connection, [session_id])[session_id]


class _Chosen(NamedTuple):
    """What a filter chooses, as conditions of SQL."""

    filtered: str
    listed: str
    """It hides only sessions without messages, and has no parameters."""
    parameters: list[Any]

    @property
    def shown(self) -> str:
        return f"{self.listed} AND {self.filtered}"


def _count(connection: sqlite3.Connection, chosen: _Chosen) -> int:
    """How many sessions are shown."""
    # What hides sessions looks at each of them, which takes ten times as long as to count them: only those without
    # messages, which are few and have an index, are looked at.
    tables = _FROM if "a." in chosen.filtered else " FROM sessions s"
    every, empty, listed = (
        f"(SELECT count(*){tables} WHERE {chosen.filtered}{condition})"
        for condition in ("", " AND s.messages = 0", f" AND s.messages = 0 AND {chosen.listed}")
    )
    return connection.execute(f"SELECT {every} - {empty} + {listed}", chosen.parameters * 3).fetchone()[0]


def _chosen(connection: sqlite3.Connection, wanted: SessionFilter) -> _Chosen:
    """Raises NotFoundError for a parent that is not stored."""
    conditions: list[str] = []
    listed = [OWN, USED] if wanted.native else [OWN, USED, NOT_ANSWERED_ELSEWHERE]
    parameters: list[Any] = []
    for name, condition in _CONDITIONS.items():
        value = getattr(wanted, name)
        if value is not None:
            conditions.append(condition)
            parameters += [value] * condition.count("?")
    if wanted.since is not None:
        conditions.append("s.updated_at >= ?")
        parameters.append(aware_milliseconds(wanted.since))
    if wanted.until is not None:
        conditions.append("s.created_at < ?")
        parameters.append(aware_milliseconds(wanted.until))
    if wanted.having is not None:
        conditions.append(_WITH_PARENTS.format(keys=_HAVING[wanted.having]))
    if wanted.hour is not None:
        from turnlog.store.sqlite.hours import active_in, in_quarter_hours

        keys = active_in(connection, wanted.hour, in_quarter_hours(wanted.since, wanted.until))
        conditions.append(_WITH_PARENTS.format(keys=keys))
    if wanted.parent is not None:
        conditions.append("s.parent_key = ?")
        parameters.append(session_key(connection, wanted.parent))
    if not wanted.subagents and wanted.parent is None and wanted.relationship is None:
        conditions.append("s.relationship IS NOT 'subagent'")
    else:
        listed.append(NOT_NAMED_TWICE)
    return _Chosen(" AND ".join(conditions) or "1 = 1", " AND ".join(listed), parameters)


def _select(connection: sqlite3.Connection, condition: str, parameters: Iterable[Any]) -> list[tuple[Any, ...]]:
    return connection.execute(
        f"SELECT {_COLUMNS}{_FROM} WHERE {condition} ORDER BY s.key", tuple(parameters)
    ).fetchall()


def _sessions(connection: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> list[Session]:
    """Sessions from their rows; values from other tables are fetched for all of them at once."""
    found = [_Row(*row[: len(_Row._fields)]) for row in rows]
    ids = [row.id for row in found]
    models = _models(connection, [row.key for row in found])
    relationships: dict[str, list[Relationship]] = defaultdict(list)
    for link in _links(connection, f"child_id IN ({_marks(ids)})", ids):
        relationships[link.child_session_id].append(link.relationship)
    diagnostics = _diagnostic_counts(connection, ids)
    estimated = estimated_calls(connection, [row.key for row in found])
    sessions: list[Session] = []
    for row, values in zip(found, rows, strict=True):
        counts = values[len(_Row._fields) :]
        sessions.append(
            _session(
                row,
                SessionCounts(**dict(zip(_COUNTS, counts, strict=False)), diagnostics=diagnostics.get(row.id, 0)),
                dict(zip(USAGE_COUNTS, counts[len(_COUNTS) :], strict=False)),
                estimated.get(row.key, 0),
                tuple(models[row.key]),
                tuple(relationships[row.id]),
            )
        )
    return sessions


def _session(
    row: _Row,
    counts: SessionCounts,
    sums: Mapping[str, int],
    estimated: int,
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
        worktree=row.worktree,
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
        usage=usage_total(sums, estimated),
        totals=counted_totals(read_value(decode_totals, row.totals, {}, f"what {row.id} used as a whole")),
        cost=priced(sums),
        unpriced_calls=sums["unpriced_calls"] + sums["unknown_calls"],
        reported_cost=None if row.reported_cost is None else dollars(row.reported_cost, reported=True),
        metadata=read_value(_facts.decode, row.metadata, {}, f"metadata of {row.id}"),
    )


def _models(connection: sqlite3.Connection, keys: list[int]) -> dict[int, list[str]]:
    """The models of each session, most called first."""
    found: dict[int, list[str]] = {key: [] for key in keys}
    # An index has all that this takes. Most sessions have one model, so that calls are counted only of the others.
    # Asked session by session, PostgreSQL looks at the policy of these rows only, and not at all sessions first.
    ends = connection.execute(
        "SELECT e.key, e.least, e.greatest, d.name FROM (SELECT s.key,"
        " (SELECT min(u.model_key) FROM usage u WHERE u.session_key = s.key) AS least,"
        " (SELECT max(u.model_key) FROM usage u WHERE u.session_key = s.key) AS greatest"
        f" FROM sessions s WHERE s.key IN ({_marks(keys)})) e LEFT JOIN models d ON d.key = e.least",
        keys,
    )
    several: list[int] = []
    for key, least, greatest, name in ends:
        if least != greatest:
            several.append(key)
        elif name is not None:
            found[key].append(name)
    if several:
        rows = connection.execute(
            "SELECT u.session_key, d.name FROM usage u JOIN models d ON d.key = u.model_key"
            f" WHERE u.session_key IN ({_marks(several)})"
            " GROUP BY u.session_key, d.name ORDER BY sum(u.calls) DESC, d.name",
            several,
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


def _annotations(connection: sqlite3.Connection, session_ids: Iterable[str]) -> dict[str, Annotations]:
    rows = connection.execute(
        "SELECT session_id, title, starred, archived, tags, note, pins, changed_at FROM annotations"
        " WHERE session_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(session_ids)),),
    )
    return {
        session_id: Annotations(
            title,
            bool(starred),
            bool(archived),
            read_value(_strings.decode, tags, (), f"tags of {session_id}"),
            note,
            read_value(_strings.decode, pins, (), f"pins of {session_id}"),
            moment(changed_at),
        )
        for session_id, title, starred, archived, tags, note, pins, changed_at in rows
    }


_strings = msgspec.json.Decoder(tuple[str, ...])
_facts = msgspec.json.Decoder(dict[str, Any])
