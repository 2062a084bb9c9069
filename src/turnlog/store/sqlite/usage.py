"""Usage in SQLite: tokens and cost by period, model, project, session, agent or subagent, and what exists of each.

It reads totals that every write updates, and imports neither msgspec nor the model: a report must start fast.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Any, NamedTuple

from turnlog.store.base import ALL_USAGE, UsageBy, UsageFilter
from turnlog.store.periods import PERIODS, start_of
from turnlog.store.sqlite.reading import Connections, aware_milliseconds
from turnlog.store.usage_report import (
    NANO,
    AgentSummary,
    Dollars,
    ModelSummary,
    ProjectSummary,
    UsageReport,
    UsageRow,
    UsageTotals,
    usage_report,
)

_QUARTER_HOUR_MILLISECONDS = 900_000

_COLUMNS: dict[str, str] = {
    "calls": "calls",
    "unknown_calls": "unknown_calls",
    "unpriced_calls": "unpriced_calls",
    "lower_bound_calls": "lower_bound",
    "input": "input",
    "cache_read": "cache_read",
    "cache_write_5m": "cache_write_5m",
    "cache_write_1h": "cache_write_1h",
    "cache_write": "cache_write",
    "output": "output",
    "reasoning": "reasoning",
    "tool_prompt": "tool_prompt",
    "cost": "cost",
    "reported_cost": "reported_cost",
}
"""Field of `UsageTotals` -> column of `usage`, which has nano-dollars."""

_TOKENS = frozenset(
    ("input", "cache_read", "cache_write_5m", "cache_write_1h", "cache_write", "output", "reasoning", "tool_prompt")
)
"""Fields with tokens; each token is counted in only one of them."""

_SUMS = ", ".join(f"sum(u.{column})" for column in _COLUMNS.values())


class _Grouping(NamedTuple):
    key: str
    name: str
    label: str = "NULL"
    joins: tuple[str, ...] = ()


_SESSIONS = " JOIN sessions s ON s.key = u.session_key"
_PROJECTS = " LEFT JOIN projects p ON p.key = s.project_key"
_MODELS = " LEFT JOIN models d ON d.key = u.model_key"
_OWNERS = " JOIN owners o ON o.key = s.owner_key"

_GROUPINGS: dict[str, _Grouping] = {
    **dict.fromkeys(PERIODS, _Grouping("u.quarter_hour", "u.quarter_hour")),
    "model": _Grouping("u.model_key", "d.name", joins=(_MODELS,)),
    "project": _Grouping("s.project_key", "p.path", "p.name", (_SESSIONS, _PROJECTS)),
    "session": _Grouping("u.session_key", "s.agent || ':' || s.external_id", "s.title", (_SESSIONS,)),
    "agent": _Grouping("s.agent", "s.agent", joins=(_SESSIONS,)),
    "subagent": _Grouping(
        "iif(s.relationship IS 'subagent', u.session_key, NULL)",
        "iif(s.relationship IS 'subagent', s.agent || ':' || s.external_id, NULL)",
        "iif(s.relationship IS 'subagent', s.title, NULL)",
        (_SESSIONS,),
    ),
}

_CONDITIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "agent": ("s.agent = ?", (_SESSIONS,)),
    "project": ("(p.path = ? OR p.name = ?)", (_SESSIONS, _PROJECTS)),
    "model": ("d.name = ?", (_MODELS,)),
    "session": ("s.agent || ':' || s.external_id = ?", (_SESSIONS,)),
    "user": ("o.user = ?", (_SESSIONS, _OWNERS)),
    "team": ("o.team = ?", (_SESSIONS, _OWNERS)),
    "task": ("o.task = ?", (_SESSIONS, _OWNERS)),
}
"""Fields of `UsageFilter` that compare with one value, and the tables they need."""


class UsageQueries(Connections):
    """The queries of `Store` about tokens and cost, and about agents, models and projects."""

    def usage(
        self,
        by: UsageBy = "day",
        filter: UsageFilter = ALL_USAGE,
        *,
        zone: tzinfo | None = UTC,
    ) -> UsageReport:
        grouping = _GROUPINGS[by]
        conditions, parameters, joins = _where(filter)
        tables = "".join(dict.fromkeys((*grouping.joins, *joins)))
        with self._snapshot() as connection:
            found = connection.execute(
                f"SELECT {grouping.name}, {grouping.label}, {_SUMS} FROM usage u{tables}"
                f" WHERE {' AND '.join(conditions) or '1'} GROUP BY {grouping.key}",
                parameters,
            ).fetchall()
            sums = _by_name(found, _naming(by, zone))
            rows = [UsageRow(name, label, _totals(each)) for (name, label), each in sums.items()]
            if by in ("session", "subagent"):
                rows = _with_titles(connection, rows)
                # The cost that an agent reports covers the whole session.
                if not (filter.since or filter.until or filter.model):
                    rows = _with_reported_costs(connection, rows)
        totals = _totals(_sum(list(sums.values())))
        return usage_report(by, sorted(rows, key=_by_time if by in PERIODS else _by_cost), totals, zone)

    def projects(self) -> list[ProjectSummary]:
        from turnlog.store.rows import moment

        with self._snapshot() as connection:
            rows = connection.execute(
                "SELECT p.path, p.name, count(s.key), max(s.updated_at) FROM projects p"
                " JOIN sessions s ON s.project_key = p.key AND s.relationship IS NOT 'subagent'"
                " GROUP BY p.key ORDER BY max(s.updated_at) DESC, p.path"
            )
            return [ProjectSummary(path, name, sessions, moment(updated)) for path, name, sessions, updated in rows]

    def models(self) -> list[ModelSummary]:
        with self._snapshot() as connection:
            rows = connection.execute(
                "SELECT d.name, sum(u.calls), count(DISTINCT u.session_key) FROM usage u"
                " JOIN models d ON d.key = u.model_key"
                " GROUP BY d.key HAVING sum(u.calls) > 0 ORDER BY sum(u.calls) DESC, d.name"
            )
            return [ModelSummary(*row) for row in rows]

    def agents(self) -> list[AgentSummary]:
        from turnlog.store.rows import moment

        with self._snapshot() as connection:
            sources: dict[str, int] = dict(
                connection.execute("SELECT agent, count(*) FROM sources GROUP BY agent").fetchall()
            )
            sessions = {
                agent: (top, subagents, updated)
                for agent, top, subagents, updated in connection.execute(
                    "SELECT agent, sum(relationship IS NOT 'subagent'), sum(relationship IS 'subagent'),"
                    " max(updated_at) FROM sessions GROUP BY agent"
                )
            }
        return [
            AgentSummary(agent, top, subagents, sources.get(agent, 0), moment(updated))
            for agent in sorted({*sources, *sessions})
            for top, subagents, updated in [sessions.get(agent, (0, 0, None))]
        ]


def _where(wanted: UsageFilter) -> tuple[list[str], list[Any], list[str]]:
    conditions: list[str] = []
    parameters: list[Any] = []
    joins: list[str] = []
    for name, (condition, tables) in _CONDITIONS.items():
        value = getattr(wanted, name)
        if value is not None:
            conditions.append(condition)
            parameters += [value] * condition.count("?")
            joins += tables
    for moment, comparison in ((wanted.since, ">="), (wanted.until, "<")):
        if moment is not None:
            conditions.append(f"u.quarter_hour {comparison} ?")
            parameters.append(_quarter_hour(moment, up=comparison == "<"))
    if wanted.until is not None and wanted.since is None:
        conditions.append("u.quarter_hour > 0")
    return conditions, parameters, joins


def _quarter_hour(moment: datetime, *, up: bool) -> int:
    """Quarter hours since 1970; `until` within one includes it."""
    milliseconds = aware_milliseconds(moment)
    return -(-milliseconds // _QUARTER_HOUR_MILLISECONDS) if up else milliseconds // _QUARTER_HOUR_MILLISECONDS


def _naming(by: UsageBy, zone: tzinfo | None) -> Callable[[Any], str | None]:
    """What names a row: of a time, the period that contains a quarter hour; else the name that was read."""
    name = PERIODS.get(by)
    if name is None:
        return lambda value: value
    return lambda quarter_hour: name(start_of(quarter_hour, zone)) if quarter_hour else None


def _by_name(
    found: list[tuple[Any, ...]], naming: Callable[[Any], str | None]
) -> dict[tuple[str | None, str | None], dict[str, int]]:
    """Name and label of each row -> its sums; the quarter hours of one period are added up."""
    collected: defaultdict[tuple[str | None, str | None], list[dict[str, int]]] = defaultdict(list)
    for name, label, *sums in found:
        collected[naming(name), label].append(dict(zip(_COLUMNS, sums, strict=True)))
    return {key: _sum(rows) for key, rows in collected.items()}


def _sum(rows: list[dict[str, int]]) -> dict[str, int]:
    return {name: sum(row[name] for row in rows) for name in _COLUMNS} if rows else {}


def _totals(sums: Mapping[str, int]) -> UsageTotals:
    """Totals from the sums of `_COLUMNS`. Without rows there were no calls, and the cost is zero."""
    if not sums:
        return UsageTotals(cost=Dollars(0))
    counts = dict(sums)
    cost, reported = counts.pop("cost"), counts.pop("reported_cost")
    calls = counts["calls"]
    is_priced = calls > counts["unknown_calls"] + counts["unpriced_calls"] or calls == 0
    return UsageTotals(
        **counts,
        tokens=sum(count for name, count in counts.items() if name in _TOKENS),
        cost=_dollars(cost) if is_priced else None,
        reported_cost=_dollars(reported) if reported else None,
    )


def _dollars(nanos: int) -> Dollars:
    return Dollars(Decimal(nanos) / NANO)


def _by_time(row: UsageRow) -> tuple[bool, str]:
    return (row.name is None, row.name or "")


def _by_cost(row: UsageRow) -> tuple[Decimal, int, str]:
    return (-(row.totals.cost or Decimal(0)), -row.totals.tokens, row.name or "")


def _with_titles(connection: sqlite3.Connection, rows: list[UsageRow]) -> list[UsageRow]:
    """Rows of sessions with the titles that the user gave them."""
    titles: dict[str | None, str] = dict(
        connection.execute("SELECT session_id, title FROM annotations WHERE title IS NOT NULL").fetchall()
    )
    return [replace(row, label=titles[row.name]) if row.name in titles else row for row in rows]


def _with_reported_costs(connection: sqlite3.Connection, rows: list[UsageRow]) -> list[UsageRow]:
    """Rows of sessions with the total that their agent reported, if it did."""
    reported: dict[str | None, int] = dict(
        connection.execute(
            "SELECT agent || ':' || external_id, reported_cost FROM sessions WHERE reported_cost IS NOT NULL"
        ).fetchall()
    )
    return [
        replace(row, totals=replace(row.totals, reported_cost=_dollars(reported[row.name])))
        if row.name in reported
        else row
        for row in rows
    ]
