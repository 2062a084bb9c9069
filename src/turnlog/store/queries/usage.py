"""Tokens and cost by day, model, project, session, agent or subagent, from the totals that every write keeps.

Imports nothing of the model: a report must start fast.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from turnlog.store.base import UsageBy, UsageFilter, UsageReport, UsageRow, UsageTotals
from turnlog.store.queries.paging import aware_milliseconds

_NANO = 1_000_000_000
_DAY_MILLISECONDS = 86_400_000
_EPOCH = date(1970, 1, 1)

_SUMS = ", ".join(
    f"sum(u.{name})"
    for name in (
        "calls",
        "unknown_calls",
        "unpriced_calls",
        "input",
        "cache_read",
        "cache_write_5m",
        "cache_write_1h",
        "cache_write",
        "output",
        "reasoning",
        "tool_prompt",
        "lower_bound",
        "cost",
        "reported_cost",
    )
)
"""In the order of `UsageTotals`."""


class _Grouping(NamedTuple):
    key: str
    name: str
    label: str = "NULL"
    joins: tuple[str, ...] = ()


_SESSIONS = " JOIN sessions s ON s.key = u.session_key"
_PROJECTS = " LEFT JOIN projects p ON p.key = s.project_key"
_MODELS = " LEFT JOIN models d ON d.key = u.model_key"
_OWNERS = " JOIN owners o ON o.key = s.owner_key"

_GROUPINGS: dict[UsageBy, _Grouping] = {
    "day": _Grouping("u.day", "u.day"),
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
"""Fields of `UsageFilter` that compare one value, and the tables they need."""


def load_usage(connection: sqlite3.Connection, by: UsageBy, wanted: UsageFilter) -> UsageReport:
    """Usage by something and in all; see `Store.usage`. Days run forwards, everything else from dear to cheap."""
    grouping = _GROUPINGS[by]
    conditions, parameters, joins = _where(wanted)
    tables = "".join(dict.fromkeys((*grouping.joins, *joins)))
    rows = connection.execute(
        f"SELECT {grouping.name}, {grouping.label}, {_SUMS} FROM usage u{tables}"
        f" WHERE {' AND '.join(conditions) or '1'} GROUP BY {grouping.key}",
        parameters,
    ).fetchall()
    totals = _totals([sum(column) for column in zip(*(row[2:] for row in rows), strict=True)])
    found = [UsageRow(_name(by, row[0]), _totals(row[2:]), row[1]) for row in rows]
    if by in ("session", "subagent"):
        found = _as_told(connection, found, whole=not (wanted.since or wanted.until or wanted.model))
    return UsageReport(by, tuple(sorted(found, key=_forwards if by == "day" else _dearest)), totals)


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
            conditions.append(f"u.day {comparison} ?")
            parameters.append(_day(moment, up=comparison == "<"))
    if wanted.until is not None and wanted.since is None:
        conditions.append("u.day > 0")
    return conditions, parameters, joins


def _day(moment: datetime, *, up: bool) -> int:
    """Days since 1970; an end within a day takes that day in."""
    milliseconds = aware_milliseconds(moment)
    return -(-milliseconds // _DAY_MILLISECONDS) if up else milliseconds // _DAY_MILLISECONDS


def _totals(sums: Sequence[int]) -> UsageTotals:
    if not sums:
        return UsageTotals(cost=Decimal(0))
    *counts, cost, reported = sums
    calls, unknown, unpriced = counts[:3]
    priced = calls > unknown + unpriced or calls == 0
    return UsageTotals(
        *counts,
        cost=Decimal(cost) / _NANO if priced else None,
        reported_cost=Decimal(reported) / _NANO if reported else None,
    )


def _name(by: UsageBy, value: Any) -> str | None:
    if by != "day":
        return value
    return None if value == 0 else (_EPOCH + timedelta(days=value)).isoformat()


def _forwards(row: UsageRow) -> tuple[bool, str]:
    return (row.name is None, row.name or "")


def _dearest(row: UsageRow) -> tuple[Decimal, int, str]:
    return (-(row.totals.cost or Decimal(0)), -row.totals.tokens, row.name or "")


def _as_told(connection: sqlite3.Connection, rows: list[UsageRow], *, whole: bool) -> list[UsageRow]:
    """Sessions under the title the user gave them and, when it is about whole sessions, with the agent's own total."""
    titles: dict[str | None, str] = dict(
        connection.execute("SELECT session_id, title FROM annotations WHERE title IS NOT NULL").fetchall()
    )
    reported: dict[str | None, int] = dict(
        connection.execute(
            "SELECT agent || ':' || external_id, reported_cost FROM sessions WHERE reported_cost IS NOT NULL"
        ).fetchall()
        if whole
        else ()
    )
    for index, row in enumerate(rows):
        if row.name in titles:
            rows[index] = row = row._replace(label=titles[row.name])
        if row.name in reported:
            own = Decimal(reported[row.name]) / _NANO
            rows[index] = row._replace(totals=row.totals._replace(reported_cost=own))
    return rows
