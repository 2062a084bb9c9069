"""Usage in SQLite: tokens and cost by period, model, project, session, agent or subagent, and what exists of each.

It reads totals that every write updates, and imports neither msgspec nor the model: a report must start fast.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from functools import partial
from operator import add
from typing import Any, NamedTuple, TypeVar

from turnlog.store.base import ALL_USAGE, UsageFilter, check_arguments
from turnlog.store.choices import UsageBy
from turnlog.store.dollars import Dollars, dollars, known_cost
from turnlog.store.limited_agent import limited_agent
from turnlog.store.periods import (
    BLOCK,
    DATE_PERIODS,
    PERIODS,
    block_name,
    block_starts,
    date_of,
    shifts,
    shown,
    start_of,
)
from turnlog.store.sqlite import SmallStore, active_time
from turnlog.store.sqlite.days import Days, find_days, is_worth_keeping, keep
from turnlog.store.sqlite.spending import SpendingQueries
from turnlog.store.sqlite.usage_rows import (
    COLUMNS,
    ESTIMATED_ROWS,
    EVERY_ROW,
    HAS_OWN_COST,
    IS_ESTIMATED,
    MODELS,
    OWN_COSTS,
    PROJECTS,
    SUMS,
    Rows,
    Sums,
    first_call,
    quarter_hours,
    select,
    used_quarter_hours,
)
from turnlog.store.usage_report import (
    AgentSummary,
    ModelSummary,
    UsageBlock,
    UsagePart,
    UsageReport,
    UsageRow,
    UsageTotals,
    running_block,
    usage_report,
    with_activity,
)

_TOKENS = slice([*COLUMNS].index("input"), [*COLUMNS].index("tool_prompt") + 1)
"""The fields of `COLUMNS` with tokens; each token is counted in only one of them."""


class _Grouping(NamedTuple):
    key: str
    name: str
    label: str = "NULL"
    joins: tuple[str, ...] = ()


_GROUPINGS: dict[str, _Grouping] = {
    **dict.fromkeys(("hour", "block"), _Grouping("u.quarter_hour", "u.quarter_hour")),
    "model": _Grouping("u.model_key", "d.name", joins=(MODELS,)),
    "project": _Grouping("{of}.project_key", "p.path", "p.name", (PROJECTS,)),
    "session": _Grouping("u.session_key", "{of}.agent || ':' || {of}.external_id", "{of}.title"),
    "agent": _Grouping("{of}.agent", "{of}.agent"),
    "subagent": _Grouping(
        "iif({of}.relationship IS 'subagent', u.session_key, NULL)",
        "iif({of}.relationship IS 'subagent', {of}.agent || ':' || {of}.external_id, NULL)",
        "iif({of}.relationship IS 'subagent', {of}.title, NULL)",
    ),
}


class UsageQueries(SpendingQueries):
    """The queries of `Store` about tokens and cost, and about agents and models."""

    _keeps_days = True
    """Sums of days are kept in `usage_by_day`, and of sessions in `kept_activity`."""

    def usage(
        self,
        by: UsageBy = "day",
        filter: UsageFilter = ALL_USAGE,
        *,
        then_by: UsageBy | None = None,
        zone: tzinfo | None = UTC,
        active: bool = False,
    ) -> UsageReport:
        if by == then_by:
            raise ValueError(f"usage cannot be divided by {by} twice")
        with self._snapshot() as connection:
            if "block" in (by, then_by) and filter.agent is None:
                # Blocks are the windows of one agent's limit: calls of other agents belong to none.
                filter = filter._replace(agent=limited_agent(connection))
            calendar = _Calendar(
                zone, used_quarter_hours(connection, filter.agent, filter.since) if "block" in (by, then_by) else []
            )
            days = self._days(connection, by, then_by, filter, zone)
            table = EVERY_ROW if days is None else days.rows(_needed(by, then_by, filter))
            day = None
            if {by, then_by} & _MADE_OF_DAYS:
                day = _day_of(connection, zone) if days is None else _DAY
            found = _divided(_read(connection, by, then_by, filter, table, day), calendar, by, then_by)
            _add_own_costs(connection, found, by, then_by, filter, calendar, zone)
            if {by, then_by} & {"session", "subagent"}:
                found = _with_titles(connection, found)
            estimated = _estimated(connection, by, then_by, filter, calendar, zone)
            rows = [_row(key, parts, calendar, by, then_by, estimated) for key, parts in found.items()]
            if by == "block":
                rows = [_with_rate(connection, row, calendar, filter.agent) for row in rows]
            # The cost that an agent reports covers the whole session.
            if by in ("session", "subagent") and not (filter.since or filter.until or filter.model):
                rows = _with_reported_costs(connection, rows)
            totals = _totals(_sum([sums for parts in found.values() for sums in parts.values()]), estimated.total())
            unpriced: list[str] = []
            if totals.unpriced_calls:
                table = EVERY_ROW if days is None else days.rows(_needed("model", None, filter))
                unpriced = _unpriced_models(connection, filter, table)
            undated = _left_out(connection, filter)
            has_active = active and by in DATE_PERIODS and filter.model is None
            activity = (
                active_time.active_by_day(connection, filter, zone, reads_kept=self._keeps_days) if has_active else None
            )
        if days is not None and is_worth_keeping(days):
            keep(self.path, days)
        if activity is not None and self._keeps_days and active_time.is_worth_keeping(activity):
            active_time.keep(self.path, activity)
        report = usage_report(by, _sorted(rows, by), totals, zone, then_by, unpriced, undated)
        return report if activity is None else with_activity(report, activity.by_day)

    def _days(
        self,
        connection: sqlite3.Connection,
        by: UsageBy,
        then_by: UsageBy | None,
        filter: UsageFilter,
        zone: tzinfo | None,
    ) -> Days | None:
        """The days that a report reads; None where it needs finer times, or single sessions."""
        if not self._keeps_days or filter.session is not None or not {by, then_by} <= _OF_DAYS:
            return None
        return find_days(connection, zone, *quarter_hours(filter))

    def models(self) -> list[ModelSummary]:
        with self._snapshot() as connection:
            rows = connection.execute(
                "SELECT d.name, sum(u.calls), count(DISTINCT u.session_key) FROM usage u"
                " JOIN models d ON d.key = u.model_key"
                " GROUP BY d.key HAVING sum(u.calls + u.session_totals) > 0 ORDER BY sum(u.calls) DESC, d.name"
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


class _Name(NamedTuple):
    """What names a row."""

    name: str | None
    label: str | None


class _Calendar:
    """Names quarter hours after the periods of a zone and after blocks."""

    def __init__(self, zone: tzinfo | None, used: list[int]) -> None:
        self._zone = zone
        self._used = used
        self._starts = block_starts(used)

    def naming(self, by: UsageBy | None) -> Callable[[Any], str | None]:
        """Names values: a quarter hour or a day after the period or block that contains it, others as they are."""
        if by not in _TIMES:
            return _same
        if by in _MADE_OF_DAYS:
            return partial(_period_of_day, DATE_PERIODS[by])
        return self._block_of if by == "block" else partial(self._period_of, PERIODS[by])

    def _period_of(self, period: Callable[[datetime], str], quarter_hour: int) -> str | None:
        return period(start_of(quarter_hour, self._zone)) if quarter_hour else None

    def _block_of(self, quarter_hour: int) -> str | None:
        if not quarter_hour:
            return None
        return block_name(start_of(self._starts[bisect_right(self._starts, quarter_hour) - 1], self._zone))

    def first_used(self, start: datetime) -> int:
        """The first quarter hour with a call from a time on, at which a block begins."""
        return next(each for each in self._used if start_of(each, UTC) >= start)


def _same(value: Any) -> str | None:
    return value


_TIMES = frozenset((*PERIODS, "block"))
"""What a row is named after that is worked out from its quarter hour."""

_MADE_OF_DAYS = frozenset(DATE_PERIODS)
"""Those whose rows are added up by day in SQL: a day has many quarter hours."""

_TOLD_APART: dict[str, str] = {
    "model": "model_key",
    "project": "project_key",
    "agent": "agent",
    **dict.fromkeys(("user", "team", "task", "machine"), "owner_key"),
}
"""What a report is divided by, and fields of `UsageFilter` -> the column of `usage_by_day` that they need."""

_OF_DAYS = frozenset((*_MADE_OF_DAYS, "model", "project", "agent", None))
"""What a report may be divided by that reads sums of days."""


def _needed(by: UsageBy, then_by: UsageBy | None, filter: UsageFilter) -> set[str]:
    filtered = {name for name in _TOLD_APART if getattr(filter, name, None) is not None}
    return {_TOLD_APART[name] for name in {by, then_by, *filtered} if name in _TOLD_APART}


_DAY = _Grouping("u.day", "u.day")


def _period_of_day(period: Callable[[date], str], day: int | None) -> str | None:
    return None if day is None else period(date_of(day))


def _day_of(connection: sqlite3.Connection, zone: tzinfo | None) -> _Grouping:
    """The day since 1970 of a quarter hour, as the clocks of a zone show it; NULL for an unknown one."""
    at = shown("u.quarter_hour", () if zone is UTC else shifts(_used_days(connection), zone))
    day = f"iif(u.quarter_hour = 0, NULL, {_whole(at)})"
    return _Grouping(day, day)


def _used_days(connection: sqlite3.Connection) -> list[int]:
    """Days since 1970 (UTC) with a call, ascending."""
    found = connection.execute(
        f"SELECT DISTINCT {_whole('quarter_hour')} FROM usage WHERE quarter_hour <> 0 ORDER BY 1"
    )
    return [day for (day,) in found]


def _whole(quarter_hour: str) -> str:
    """SQL: whole days. SQLite rounds towards zero, and a time may lie before 1970."""
    return f"({quarter_hour} - ({quarter_hour} % 96 + 96) % 96) / 96"


def _read(
    connection: sqlite3.Connection,
    by: UsageBy,
    then_by: UsageBy | None,
    filter: UsageFilter,
    rows: Rows,
    days: _Grouping | None,
    sums: str = SUMS,
) -> list[tuple[Any, ...]]:
    """Name, label, name and label of the part, and the sums of `COLUMNS`; `days` is that of `_MADE_OF_DAYS`."""
    groupings = _GROUPINGS if days is None else {**_GROUPINGS, **dict.fromkeys(_MADE_OF_DAYS, days)}
    outer = groupings[by]
    inner = _WHOLE if then_by is None else groupings[then_by]
    # SQLite sorts all rows by what they are grouped by, and a part that is the whole would be sorted with them.
    keys = outer.key if then_by is None else f"{outer.key}, {inner.key}"
    columns = f"{outer.name}, {outer.label}, {inner.name}, {inner.label}, {sums}"
    return select(connection, columns, filter, rows, joins=(*outer.joins, *inner.joins), rest=f"GROUP BY {keys}")


def _unpriced_models(connection: sqlite3.Connection, filter: UsageFilter, rows: Rows) -> list[str]:
    """The models of calls without a known price, most called first."""
    found = select(
        connection,
        "coalesce(d.name, 'model unknown')",
        filter,
        rows,
        joins=(MODELS,),
        condition="u.unpriced_calls > 0",
        rest="GROUP BY 1 ORDER BY sum(u.unpriced_calls) DESC, 1",
    )
    return [name for (name,) in found]


def _left_out(connection: sqlite3.Connection, filter: UsageFilter) -> int:
    """How many calls, and totals of sessions, a period leaves out only because they have no time."""
    since, until = quarter_hours(filter)
    if (since is None or since <= 0) and (until is None or until > 0):
        return 0
    every = filter._replace(since=None, until=None)
    ((number,),) = select(connection, "sum(u.calls + u.session_totals)", every, condition="u.quarter_hour = 0")
    return number or 0


_NAMES = 4
"""Columns before the sums: name and label of a row and of its part."""

_WHOLE = _Grouping("", "''")
"""A row that is not divided."""


def _divided(
    found: list[tuple[Any, ...]], calendar: _Calendar, by: UsageBy, then_by: UsageBy | None
) -> dict[_Name, dict[_Name, Sums]]:
    """Row -> part -> sums; the quarter hours of one period are added up."""
    row_name, part_name = calendar.naming(by), calendar.naming(then_by)
    collected: dict[_Name, dict[_Name, Sums]] = {}
    for row in found:
        name, label, part, part_label = row[:_NAMES]
        parts = collected.setdefault(_Name(row_name(name), label), {})
        key, sums = _Name(part_name(part), part_label), row[_NAMES:]
        known = parts.get(key)
        parts[key] = sums if known is None else tuple(map(add, known, sums))
    return collected


def _add_own_costs(
    connection: sqlite3.Connection,
    found: dict[_Name, dict[_Name, Sums]],
    by: UsageBy,
    then_by: UsageBy | None,
    filter: UsageFilter,
    calendar: _Calendar,
    zone: tzinfo | None,
) -> None:
    """Add what agents reported for whole sessions, and for no call of them."""
    if not connection.execute(f"SELECT EXISTS (SELECT 1 FROM sessions s WHERE {HAS_OWN_COST})").fetchone()[0]:
        return
    day = _day_of(connection, zone) if {by, then_by} & _MADE_OF_DAYS else None
    costs = _read(connection, by, then_by, filter, OWN_COSTS, day, sums="sum(u.reported_cost)")
    nothing = (0,) * _REPORTED
    rows = [(*names, *nothing, cost, *(0,) * (len(COLUMNS) - _REPORTED - 1)) for *names, cost in costs]
    for name, parts in _divided(rows, calendar, by, then_by).items():
        known = found.setdefault(name, {})
        for part, sums in parts.items():
            known[part] = tuple(map(add, known[part], sums)) if part in known else sums


_REPORTED = [*COLUMNS].index("reported_cost")


def _estimated(
    connection: sqlite3.Connection,
    by: UsageBy,
    then_by: UsageBy | None,
    filter: UsageFilter,
    calendar: _Calendar,
    zone: tzinfo | None,
) -> Counter[tuple[str | None, str | None]]:
    """(Name of a row, of its part) -> how many calls are estimated."""
    found: Counter[tuple[str | None, str | None]] = Counter()
    if not connection.execute(f"SELECT EXISTS (SELECT 1 FROM messages m WHERE {IS_ESTIMATED})").fetchone()[0]:
        return found
    day = _day_of(connection, zone) if {by, then_by} & _MADE_OF_DAYS else None
    row_name, part_name = calendar.naming(by), calendar.naming(then_by)
    for name, _, part, _, calls in _read(connection, by, then_by, filter, ESTIMATED_ROWS, day, sums="count(*)"):
        found[row_name(name), part_name(part)] += calls
    return found


def _row(
    key: _Name,
    divided: Mapping[_Name, Sums],
    calendar: _Calendar,
    by: UsageBy,
    then_by: UsageBy | None,
    estimated: Counter[tuple[str | None, str | None]],
) -> UsageRow:
    calls = {part: estimated[key.name, part.name] for part in divided}
    totals = _totals(_sum(list(divided.values())), sum(calls.values()))
    if then_by is None:
        return UsageRow(*key, totals)
    parts = [UsagePart(*part, _totals(sums, calls[part])) for part, sums in divided.items()]
    return UsageRow(*key, totals, tuple(_sorted(parts, then_by)))


def _with_rate(connection: sqlite3.Connection, row: UsageRow, calendar: _Calendar, agent: str | None) -> UsageRow:
    """The row of a block, with its times, and of the running one the rate."""
    if row.name is None:
        return row
    start = datetime.fromisoformat(row.name).astimezone(UTC)
    end, now = start + BLOCK, datetime.now(UTC)
    block = UsageBlock(start, end)
    if start <= now < end:
        first = first_call(connection, calendar.first_used(start), agent)
        block = running_block(start, first, end, now, row.totals)
    return replace(row, block=block)


def _sum(rows: list[Sums]) -> Sums:
    return rows[0] if len(rows) == 1 else tuple(map(sum, zip(*rows, strict=True)))


def _totals(sums: Sums, estimated: int = 0) -> UsageTotals:
    """Totals from the sums of `COLUMNS`, and how many calls are estimated.

    Without rows there were no calls, and the cost is zero.
    """
    if not sums:
        return UsageTotals(cost=Dollars(0))
    counts = dict(zip(COLUMNS, sums, strict=True))
    cost = known_cost(counts)
    del counts["cost"]
    reported = counts.pop("reported_cost")
    if reported and not (counts["calls"] or counts["session_totals"]):
        cost = None  # something was paid for, and no log says for what
    return UsageTotals(
        **counts,
        estimated_calls=estimated,
        tokens=sum(sums[_TOKENS]),
        cost=cost,
        reported_cost=dollars(reported) if reported else None,
    )


_RowT = TypeVar("_RowT", UsageRow, UsagePart)


def _sorted(rows: list[_RowT], by: UsageBy | None) -> list[_RowT]:
    """Periods in their order, everything else descending by cost."""
    return sorted(rows, key=_by_time if by in _TIMES else _by_cost)


def _by_time(row: UsageRow | UsagePart) -> tuple[bool, str]:
    return (row.name is None, row.name or "")


def _by_cost(row: UsageRow | UsagePart) -> tuple[Decimal, int, str]:
    return (-(row.totals.cost or Decimal(0)), -row.totals.tokens, row.name or "")


def _with_titles(
    connection: sqlite3.Connection, found: Mapping[_Name, dict[_Name, Sums]]
) -> dict[_Name, dict[_Name, Sums]]:
    """Rows and parts with the titles that the user gave to sessions."""
    titles: dict[str | None, str] = dict(
        connection.execute("SELECT session_id, title FROM annotations WHERE title IS NOT NULL").fetchall()
    )
    if not titles:
        return dict(found)

    def titled(key: _Name) -> _Name:
        return key._replace(label=titles.get(key.name, key.label))

    return {titled(row): {titled(part): sums for part, sums in parts.items()} for row, parts in found.items()}


def _with_reported_costs(connection: sqlite3.Connection, rows: list[UsageRow]) -> list[UsageRow]:
    """Rows of sessions with the total that their agent reported, if it did."""
    reported: dict[str | None, int] = dict(
        connection.execute(
            "SELECT agent || ':' || external_id, reported_cost FROM sessions WHERE reported_cost IS NOT NULL"
        ).fetchall()
    )
    return [
        replace(row, totals=replace(row.totals, reported_cost=dollars(reported[row.name])))
        if row.name in reported
        else row
        for row in rows
    ]


class UsageStore(UsageQueries, SmallStore):
    """A store that has only imported usage queries."""


check_arguments(UsageStore)
