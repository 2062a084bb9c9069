"""Tool calls in SQLite: over many sessions, how often each tool is called, and how much reasoning there is."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

from turnlog.model import ToolState
from turnlog.model.tools import OPEN_STATES
from turnlog.store.base import EVERY_TOOL_CALL, ToolCallFilter
from turnlog.store.rows import moment
from turnlog.store.session_keys import session_key
from turnlog.store.sqlite.connections import Connections
from turnlog.store.sqlite.paging import aware_milliseconds, decode_cursor, encode_cursor, phases
from turnlog.store.values import Page, ReasoningVolume, ToolCall, ToolUsage

_FAILED = ToolState.OUTPUT_ERROR

CALL_COLUMNS = (
    "p.tool_call_id, p.tool_name, p.tool_kind, p.tool_state, m.external_id, s.agent || ':' || s.external_id,"
    " c.position, m.agent, p.started_at, p.completed_at, p.duration_ms, p.exit_code, p.path, p.text_size,"
    " p.output_size"
)
"""Of a part `p`, its message `m`, the session `s` and the membership `c`: the fields of `ToolCall`, in their order."""

_POSITION = ToolCall.__struct_fields__.index("position")

# A message that several sessions hold is listed once: in the session that is billed for it, else in the first.
_BILLED = "coalesce(m.pays_key, (SELECT min(session_key) FROM memberships WHERE message_key = m.key))"

FROM_PARTS = (
    f" FROM parts p CROSS JOIN messages m ON m.key = p.message_key JOIN sessions s ON s.key = {_BILLED}"
    " JOIN memberships c ON c.message_key = m.key AND c.session_key = s.key"
)
_FROM_MESSAGES = (
    f" FROM messages m CROSS JOIN parts p ON p.message_key = m.key JOIN sessions s ON s.key = {_BILLED}"
    " JOIN memberships c ON c.message_key = m.key AND c.session_key = s.key"
)
_FROM_SESSION = (
    " FROM memberships c CROSS JOIN messages m ON m.key = c.message_key JOIN parts p ON p.message_key = m.key"
    " JOIN sessions s ON s.key = c.session_key"
)

_BEFORE_ALL = -(1 << 62)
"""Positions of what a fork shares and has no copy of are below zero."""


class _Plan(NamedTuple):
    """One way to walk the calls, from the newest to the oldest, along an index."""

    tables: str
    time: str
    """The time that the index runs along."""
    condition: str
    parameters: tuple[Any, ...] = ()


class ToolCalls(Connections):
    """The queries of `Store` about tool calls and reasoning."""

    def tool_calls(
        self, filter: ToolCallFilter = EVERY_TOOL_CALL, *, limit: int = 50, cursor: str | None = None
    ) -> Page[ToolCall]:
        with self._snapshot() as connection:
            if filter.session is not None:
                return _session_calls(connection, filter, limit, cursor)
            last = decode_cursor("calls", (int | None, int, int), cursor)
            # Each plan's rows come in order, so that the newest of all are the first of a merge.
            rows = heapq.merge(
                *(_walk(connection, plan, filter, limit, last) for plan in _plans(filter)), key=_recency, reverse=True
            )
            found = [row for row, _ in zip(rows, range(limit + 1), strict=False)]
        following = encode_cursor("calls", *found[limit - 1][-3:]) if len(found) > limit else None
        return Page(tuple(call_of(row) for row in found[:limit]), following)

    def tool_usage(self, filter: ToolCallFilter = EVERY_TOOL_CALL) -> list[ToolUsage]:
        tables, condition, parameters = FROM_PARTS, "1", []
        conditions, values = _conditions_of(filter, "p.started_at")
        with self._snapshot() as connection:
            if filter.session is not None:
                tables, condition = _FROM_SESSION, "c.session_key = ?"
                parameters = [session_key(connection, filter.session)]
            elif filter.agent is None and filter.project is None:
                tables = " FROM parts p"
            rows = connection.execute(
                "SELECT p.tool_name, p.tool_kind, count(*), sum(p.tool_state = ?), sum(p.tool_state = ?),"
                f" sum(p.tool_state = ?), sum(p.tool_state IN ({','.join('?' * len(OPEN_STATES))})),"
                f" coalesce(sum(p.duration_ms), 0), sum(p.duration_ms IS NULL){tables}"
                f" WHERE {condition} AND p.type = 'tool-call' AND {conditions}"
                " GROUP BY p.tool_name, p.tool_kind ORDER BY count(*) DESC, p.tool_name, p.tool_kind",
                (_FAILED, ToolState.OUTPUT_DENIED, ToolState.ABORTED, *OPEN_STATES, *parameters, *values),
            )
            return [ToolUsage(*row) for row in rows]

    def reasoning(self, session_id: str | None = None) -> ReasoningVolume:
        with self._snapshot() as connection:
            if session_id is None:
                # The words of the partial index, without which SQLite does not see that it fits.
                counts = connection.execute(
                    "SELECT count(*), coalesce(sum(text_size), 0), count(DISTINCT message_key) FROM parts"
                    " WHERE type = 'reasoning' AND type NOT IN ('text', 'tool-call')"
                ).fetchone()
                tokens = connection.execute("SELECT coalesce(sum(reasoning), 0) FROM sessions").fetchone()
                return ReasoningVolume(*counts, *tokens)
            key = session_key(connection, session_id)
            counts = connection.execute(
                "SELECT count(*), coalesce(sum(p.text_size), 0), count(DISTINCT p.message_key) FROM memberships s"
                " JOIN parts p ON p.message_key = s.message_key WHERE s.session_key = ? AND p.type = 'reasoning'",
                (key,),
            ).fetchone()
            tokens = connection.execute("SELECT reasoning FROM sessions WHERE key = ?", (key,)).fetchone()
            return ReasoningVolume(*counts, *tokens)


def _session_calls(
    connection: sqlite3.Connection, wanted: ToolCallFilter, limit: int, cursor: str | None
) -> Page[ToolCall]:
    """The calls of one session in their order."""
    position, sequence = decode_cursor("session-calls", (int, int), cursor) or (_BEFORE_ALL, -1)
    conditions, values = _conditions_of(wanted, "p.started_at")
    rows = connection.execute(
        f"SELECT {CALL_COLUMNS}, p.sequence{_FROM_SESSION} WHERE c.session_key = ? AND p.type = 'tool-call'"
        f" AND c.position >= ? AND (c.position, p.sequence) > (?, ?) AND {conditions}"
        " ORDER BY c.position, p.sequence LIMIT ?",
        (session_key(connection, wanted.session or ""), position, position, sequence, *values, limit + 1),
    ).fetchall()
    shown = rows[:limit]
    following = encode_cursor("session-calls", shown[-1][_POSITION], shown[-1][-1]) if len(rows) > limit else None
    return Page(tuple(call_of(row) for row in shown), following)


def _plans(wanted: ToolCallFilter) -> list[_Plan]:
    """A file's calls by path, a tool's by name and state (one walk a state), others along their messages' times."""
    if wanted.path is not None:
        return [_Plan(FROM_PARTS, "p.started_at", "p.path = ?", (wanted.path,))]
    if wanted.tool is not None:
        states = [state for state in ToolState if _fits(state, wanted)]
        condition = "p.tool_name = ? AND p.tool_state = ?"
        return [_Plan(FROM_PARTS, "p.started_at", condition, (wanted.tool, state)) for state in states]
    return [_Plan(_FROM_MESSAGES, "m.created_at", "m.has_tool_calls = 1 AND p.type = 'tool-call'")]


def _fits(state: ToolState, wanted: ToolCallFilter) -> bool:
    if wanted.state is not None and state != wanted.state:
        return False
    return wanted.failed is None or (state == _FAILED) == wanted.failed


def _walk(
    connection: sqlite3.Connection, plan: _Plan, wanted: ToolCallFilter, limit: int, last: list[Any] | None
) -> list[tuple[Any, ...]]:
    conditions, values = _conditions_of(wanted, plan.time)
    tie = "(p.message_key, p.sequence) < (?, ?)"
    rows: list[tuple[Any, ...]] = []
    for phase in phases(plan.time, tie, last):
        missing = limit + 1 - len(rows)
        if missing > 0:
            rows += connection.execute(
                f"SELECT {CALL_COLUMNS}, {plan.time}, p.message_key, p.sequence{plan.tables}"
                f" WHERE {plan.condition} AND {conditions} AND {phase.condition}"
                f" ORDER BY {plan.time} DESC, p.message_key DESC, p.sequence DESC LIMIT ?",
                (*plan.parameters, *values, *phase.parameters, missing),
            )
    return rows


def _recency(row: tuple[Any, ...]) -> tuple[int, int, int]:
    time, message_key, sequence = row[-3:]
    return (-(1 << 62) if time is None else time, message_key, sequence)


def _conditions_of(wanted: ToolCallFilter, time: str) -> tuple[str, list[Any]]:
    """Conditions that hold on every walk (a unary plus keeps them from choosing another index)."""
    conditions: list[str] = []
    values: list[Any] = []

    def add(condition: str, *parameters: Any) -> None:
        conditions.append(condition)
        values.extend(parameters)

    if wanted.tool is not None:
        add("+p.tool_name = ?", wanted.tool)
    if wanted.kind is not None:
        add("p.tool_kind = ?", str(wanted.kind))
    if wanted.state is not None:
        add("+p.tool_state = ?", str(wanted.state))
    if wanted.failed is not None:
        add("(+p.tool_state = ?) = ?", _FAILED, wanted.failed)
    if wanted.path is not None:
        add("+p.path = ?", wanted.path)
    if wanted.agent is not None:
        add("+m.agent = ?", wanted.agent)
    if wanted.project is not None:
        add("s.project_key IN (SELECT key FROM projects WHERE path = ? OR name = ?)", wanted.project, wanted.project)
    if wanted.since is not None:
        add(f"{time} >= ?", aware_milliseconds(wanted.since))
    if wanted.until is not None:
        add(f"{time} < ?", aware_milliseconds(wanted.until))
    return " AND ".join(conditions) or "1", values


def call_of(row: Sequence[Any]) -> ToolCall:
    """A call from a row that begins with `CALL_COLUMNS`."""
    facts = dict(zip(ToolCall.__struct_fields__, row, strict=False))
    for name in ("started_at", "completed_at"):
        facts[name] = moment(facts[name])
    return ToolCall(**facts)
