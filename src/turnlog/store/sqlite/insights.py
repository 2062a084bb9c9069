"""Insights in SQLite: activity, projects over time, tools, commands, files, models, compactions and errors.

Calls and cost come from `usage`, which every write updates. Counts of tools and commands are read along an index that
contains all they need, so no message is read.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, timedelta, tzinfo
from decimal import Decimal
from statistics import median
from typing import Any, Final, NamedTuple

import msgspec

from turnlog.model import CompactionEvent, ErrorEvent, ToolState
from turnlog.model.codec import decode_event
from turnlog.store import zstd
from turnlog.store.base import ALL_INSIGHTS, InsightFilter, ToolCallFilter
from turnlog.store.insights import (
    LONGEST_LIST,
    ActivityHour,
    CommandFigures,
    CompactionFigures,
    ErrorFigures,
    Granularity,
    Insights,
    ModelFigures,
    ProjectPeriod,
    SubagentShare,
)
from turnlog.store.periods import PERIODS, start_of
from turnlog.store.rows import moment
from turnlog.store.sqlite.reading import aware_milliseconds
from turnlog.store.sqlite.tool_calls import FileQueries, ToolCallQueries
from turnlog.store.usage_report import NANO, Dollars

_QUARTER_HOUR: Final = 900_000

_DAYS: Final = timedelta(days=92) / timedelta(minutes=15)
"""Quarter hours up to which projects are divided by day."""

_LIMIT_WORDS: Final = ("rate_limit", "rate limit", "usage_limit", "usage limit", "quota", "overloaded")

_TOO_MANY_REQUESTS: Final = frozenset({429, 529})
"""HTTP statuses of limits; 529 is Anthropic's for an overloaded service."""


class _Row(NamedTuple):
    """What one session used of one model in a quarter hour."""

    quarter_hour: int
    session: int
    model: str | None
    project: str | None
    label: str | None
    is_subagent: int
    calls: int
    unknown: int
    unpriced: int
    lower_bound: int
    uncached: int
    cache_read: int
    output: int
    cost: int


_ROWS: Final = (
    "SELECT u.quarter_hour, u.session_key, d.name, p.path, p.name, s.relationship IS 'subagent', u.calls,"
    " u.unknown_calls, u.unpriced_calls, u.lower_bound,"
    " u.input + u.cache_write + u.cache_write_5m + u.cache_write_1h + u.tool_prompt, u.cache_read,"
    " u.output + u.reasoning, u.cost"
    " FROM usage u JOIN sessions s ON s.key = u.session_key LEFT JOIN projects p ON p.key = s.project_key"
    " LEFT JOIN models d ON d.key = u.model_key WHERE u.calls > 0"
)


class InsightQueries(ToolCallQueries, FileQueries):
    """The query of `Store` for insights."""

    def insights(self, filter: InsightFilter = ALL_INSIGHTS, *, zone: tzinfo | None = UTC) -> Insights:
        with self._snapshot() as connection:
            rows = _usage_rows(connection, filter)
            dated = [row for row in rows if row.quarter_hour]
            granularity = _granularity(dated)
            return Insights(
                zone="local" if zone is None else str(zone),
                granularity=granularity,
                activity=_activity(_prompts(connection, filter), dated, zone),
                undated_calls=sum(row.calls for row in rows if not row.quarter_hour),
                projects=_projects(dated, granularity, zone),
                tools=self.tool_usage(ToolCallFilter(**filter._asdict())),
                commands=_commands(connection, filter),
                files=self._most_edited(filter, LONGEST_LIST),
                models=_models(connection, filter, rows),
                subagents=_subagents(rows),
                compactions=_compactions(connection, filter),
                errors=_errors(connection, filter),
                notes=_notes(rows),
            )


def _of_session(filter: InsightFilter, column: str) -> tuple[str, list[Any]]:
    """The condition that a column has the key of a session that the filter selects."""
    conditions: list[str] = []
    values: list[Any] = []
    if filter.agent is not None:
        conditions.append("agent = ?")
        values.append(filter.agent)
    if filter.project is not None:
        conditions.append("project_key IN (SELECT key FROM projects WHERE path = ? OR name = ?)")
        values += [filter.project] * 2
    if not conditions:
        return "1", []
    return f"{column} IN (SELECT key FROM sessions WHERE {' AND '.join(conditions)})", values


def _in_time(filter: InsightFilter, column: str, unit: int = 1) -> tuple[str, list[Any]]:
    """The condition that a column with milliseconds, or with so many of them as a unit, is within the filter's time."""
    conditions: list[str] = []
    values: list[Any] = []
    if filter.since is not None:
        conditions.append(f"{column} >= ?")
        values.append(aware_milliseconds(filter.since) // unit)
    if filter.until is not None:
        # What is cut is counted whole.
        conditions.append(f"{column} < ?")
        values.append(-(-aware_milliseconds(filter.until) // unit))
    return " AND ".join(conditions) or "1", values


def _where(filter: InsightFilter, session: str, time: str, unit: int = 1) -> tuple[str, list[Any]]:
    of_session, values = _of_session(filter, session)
    in_time, times = _in_time(filter, time, unit)
    return f"{of_session} AND {in_time}", [*values, *times]


def _usage_rows(connection: sqlite3.Connection, filter: InsightFilter) -> list[_Row]:
    condition, values = _where(filter, "u.session_key", "u.quarter_hour", _QUARTER_HOUR)
    dated = " AND u.quarter_hour > 0" if filter.until is not None else ""
    return [_Row(*row) for row in connection.execute(f"{_ROWS}{dated} AND {condition}", values)]


def _granularity(rows: Sequence[_Row]) -> Granularity:
    times = [row.quarter_hour for row in rows]
    return "week" if times and max(times) - min(times) > _DAYS else "day"


# -- activity and projects


def _prompts(connection: sqlite3.Connection, filter: InsightFilter) -> list[tuple[int, int]]:
    """Quarter hours, and how many prompts of a person are in each."""
    condition, values = _where(filter, "billed_key", "created_at")
    return connection.execute(
        f"SELECT created_at / {_QUARTER_HOUR}, count(*) FROM messages WHERE role = 'user' AND created_at IS NOT NULL"
        f" AND origin IN ('prompt', 'command', 'shell') AND billed_key IS NOT NULL AND {condition} GROUP BY 1",
        values,
    ).fetchall()


def _activity(prompts: Iterable[tuple[int, int]], rows: Iterable[_Row], zone: tzinfo | None) -> list[ActivityHour]:
    calls: Counter[int] = Counter()
    for row in rows:
        calls[row.quarter_hour] += row.calls
    by_hour: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for index, counts in enumerate((prompts, calls.items())):
        for quarter_hour, count in counts:
            at = start_of(quarter_hour, zone)
            by_hour[at.isoweekday(), at.hour][index] += count
    return [ActivityHour(*hour, *counts) for hour, counts in sorted(by_hour.items())]


def _projects(rows: Iterable[_Row], granularity: Granularity, zone: tzinfo | None) -> list[ProjectPeriod]:
    name = PERIODS[granularity]
    periods: dict[int, str] = {}
    found: defaultdict[tuple[str, str | None, str | None], list[_Row]] = defaultdict(list)
    for row in rows:
        period = periods.get(row.quarter_hour)
        if period is None:
            period = periods[row.quarter_hour] = name(start_of(row.quarter_hour, zone))
        found[period, row.project, row.label].append(row)
    return [
        ProjectPeriod(
            *key,
            sessions=len({row.session for row in each if not row.is_subagent}),
            calls=sum(row.calls for row in each),
            cost=_cost(each),
            unpriced_calls=_unpriced(each),
        )
        for key, each in sorted(found.items(), key=lambda item: (item[0][0], item[0][1] or ""))
    ]


def _cost(rows: Sequence[_Row]) -> Dollars | None:
    """The cost of all calls of known price; None if there is none."""
    is_priced = any(row.calls > row.unknown + row.unpriced for row in rows)
    return _dollars(sum(row.cost for row in rows)) if is_priced else None


def _unpriced(rows: Iterable[_Row]) -> int:
    return sum(row.unknown + row.unpriced for row in rows)


def _dollars(nanos: int | Decimal) -> Dollars:
    return Dollars(Decimal(nanos) / NANO)


def _subagents(rows: Sequence[_Row]) -> SubagentShare:
    below = [row for row in rows if row.is_subagent]
    cost, total = _cost(below), _cost(rows)
    if not below:
        cost = Dollars(0)
    return SubagentShare(
        sessions=len({row.session for row in below}),
        calls=sum(row.calls for row in below),
        total_calls=sum(row.calls for row in rows),
        cost=cost,
        total_cost=total,
        share=None if cost is None or not total else float(cost / total),
    )


# -- commands

_CALLS_OF: Final = " FROM parts p{join} WHERE p.tool_name IS NOT NULL AND p.tool_kind = 'execute' AND {condition}"


class _Command:
    """The calls of one head while they are counted."""

    def __init__(self) -> None:
        self.calls = self.failed = self.unknown = 0
        self.durations: list[int] = []
        self.longest: tuple[int, int] = (-1, 0)
        """Milliseconds and message of the longest call."""

    def add(self, state: str, duration: int | None, message: int) -> None:
        self.calls += 1
        self.failed += state == ToolState.OUTPUT_ERROR
        if duration is None:
            self.unknown += 1
        else:
            self.durations.append(duration)
        self.longest = max(self.longest, (-1 if duration is None else duration, message))


def _of_message(filter: InsightFilter, time: str) -> tuple[str, str, list[Any]]:
    """A join of parts with messages where the filter needs it, the condition, and its values."""
    condition, values = _where(filter, "m.billed_key", time)
    needs_session = filter.agent is not None or filter.project is not None
    return (" JOIN messages m ON m.key = p.message_key" if needs_session else "", condition, values)


def _commands(connection: sqlite3.Connection, filter: InsightFilter) -> list[CommandFigures]:
    join, condition, values = _of_message(filter, "p.started_at")
    found: defaultdict[str | None, _Command] = defaultdict(_Command)
    select = "SELECT p.command, p.tool_state, p.duration_ms, p.message_key"
    for head, state, duration, message in connection.execute(
        select + _CALLS_OF.format(join=join, condition=condition), values
    ):
        found[head].add(state, duration, message)
    half = LONGEST_LIST // 2
    by_time = sorted(found, key=lambda head: (-sum(found[head].durations), -found[head].calls, head or ""))
    by_failures = sorted(found, key=lambda head: (-found[head].failed, by_time.index(head)))
    listed = {*by_time[:half], *by_failures[:half]}
    places = _places(connection, [found[head].longest[1] for head in listed])
    return [_command(head, found[head], places) for head in by_time if head in listed]


def _command(head: str | None, each: _Command, places: Mapping[int, tuple[str, str]]) -> CommandFigures:
    longest, message = each.longest
    session_id, message_id = places.get(message, (None, None))
    return CommandFigures(
        command=head,
        calls=each.calls,
        failed=each.failed,
        duration_ms=sum(each.durations),
        median_ms=median(each.durations) if each.durations else None,
        longest_ms=None if longest < 0 else longest,
        unknown_durations=each.unknown,
        longest_session_id=session_id,
        longest_message_id=message_id,
    )


def _places(connection: sqlite3.Connection, messages: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Message -> id of the billed session and of the message."""
    return {
        key: (session_id, message_id)
        for key, session_id, message_id in connection.execute(
            "SELECT m.key, s.agent || ':' || s.external_id, m.external_id FROM messages m"
            " JOIN sessions s ON s.key = m.billed_key WHERE m.key IN (SELECT value FROM json_each(?))",
            (msgspec.json.encode(list(messages)).decode(),),
        )
    }


# -- models


class _Session(NamedTuple):
    """A session of one model, whole."""

    prompts: int
    steps: int
    cost: int
    is_priced: int


def _models(connection: sqlite3.Connection, filter: InsightFilter, rows: Iterable[_Row]) -> list[ModelFigures]:
    by_model: defaultdict[str | None, list[_Row]] = defaultdict(list)
    for row in rows:
        by_model[row.model].append(row)
    failed = _failed_calls(connection, filter)
    sessions = _comparable_sessions(connection)
    found = [_model(model, each, failed[model], sessions) for model, each in by_model.items()]
    return sorted(found, key=lambda each: (-(each.cost or Decimal(0)), -each.calls, each.model or ""))


def _model(model: str | None, rows: Sequence[_Row], failed: int, comparable: Mapping[int, _Session]) -> ModelFigures:
    calls, unknown = sum(row.calls for row in rows), sum(row.unknown for row in rows)
    cached, uncached = sum(row.cache_read for row in rows), sum(row.uncached for row in rows)
    used = {row.session for row in rows}
    compared = [comparable[key] for key in used if key in comparable]
    priced = [each for each in compared if each.is_priced]
    return ModelFigures(
        model=model,
        calls=calls,
        sessions=len(used),
        cost=_cost(rows),
        unpriced_calls=_unpriced(rows),
        cache_share=_ratio(cached, cached + uncached),
        output_per_call=_ratio(sum(row.output for row in rows), calls - unknown),
        is_lower_bound=any(row.lower_bound for row in rows),
        failed_tool_calls=failed,
        compared_sessions=len(compared),
        cost_per_prompt=_dollars(Decimal(sum(each.cost for each in priced)) / sum(each.prompts for each in priced))
        if priced
        else None,
        steps_per_prompt=_ratio(sum(each.steps for each in compared), sum(each.prompts for each in compared)),
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _failed_calls(connection: sqlite3.Connection, filter: InsightFilter) -> Counter[str | None]:
    """Model -> failed tool calls of its messages."""
    condition, values = _where(filter, "m.billed_key", "p.started_at")
    # CROSS JOIN: only the few failed calls are looked up among the messages.
    rows = connection.execute(
        "SELECT d.name, count(*) FROM parts p CROSS JOIN messages m ON m.key = p.message_key"
        " LEFT JOIN models d ON d.key = m.model_key"
        f" WHERE p.tool_name IS NOT NULL AND p.tool_state = 'output-error' AND {condition} GROUP BY m.model_key",
        values,
    )
    return Counter(dict(rows.fetchall()))


def _comparable_sessions(connection: sqlite3.Connection) -> dict[int, _Session]:
    """Session -> its totals, for those in which one model answered the prompts of a person and nothing is copied."""
    rows = connection.execute(
        "SELECT s.key, s.prompts, s.steps, s.cost, s.unknown_calls + s.unpriced_calls = 0 FROM sessions s"
        " JOIN usage u ON u.session_key = s.key WHERE s.prompts > 0 AND s.shares = 0"
        " AND s.relationship IS NOT 'subagent' AND s.relationship IS NOT 'fork'"
        " GROUP BY s.key HAVING count(DISTINCT u.model_key) = 1"
    )
    return {key: _Session(*totals) for key, *totals in rows}


# -- events


class _Happened(NamedTuple):
    """An event, and where it happened."""

    event: CompactionEvent | ErrorEvent
    agent: str
    session_id: str
    created_at: int | None


def _happened(connection: sqlite3.Connection, filter: InsightFilter, type: str) -> list[_Happened]:
    condition, values = _where(filter, "e.session_key", "e.created_at")
    # Repeats the condition of the partial index, which SQLite otherwise would not use.
    rows = connection.execute(
        "SELECT e.body, s.agent, s.agent || ':' || s.external_id, e.created_at FROM events e"
        " JOIN sessions s ON s.key = e.session_key"
        f" WHERE e.type = ? AND e.type NOT IN ('record', 'run-metadata') AND {condition} ORDER BY e.created_at, e.key",
        (type, *values),
    )
    found: list[_Happened] = []
    for body, agent, session_id, created_at in rows:
        event = decode_event(zstd.decompress(body))
        assert isinstance(event, CompactionEvent | ErrorEvent)
        found.append(_Happened(event, agent, session_id, created_at))
    return found


def _compactions(connection: sqlite3.Connection, filter: InsightFilter) -> list[CompactionFigures]:
    found: defaultdict[tuple[str, str | None], list[_Happened]] = defaultdict(list)
    for each in _happened(connection, filter, "compaction"):
        assert isinstance(each.event, CompactionEvent)
        found[each.agent, each.event.trigger].append(each)
    return [
        CompactionFigures(
            agent,
            trigger,
            compactions=len(each),
            sessions=len({one.session_id for one in each}),
            median_tokens_before=_median_before(one.event for one in each),
        )
        for (agent, trigger), each in sorted(found.items(), key=lambda item: -len(item[1]))
    ]


def _median_before(events: Iterable[CompactionEvent | ErrorEvent]) -> float | None:
    known = [
        event.tokens_before
        for event in events
        if isinstance(event, CompactionEvent) and event.tokens_before is not None
    ]
    return median(known) if known else None


def _errors(connection: sqlite3.Connection, filter: InsightFilter) -> list[ErrorFigures]:
    found: defaultdict[tuple[str, str | None, int | None, bool], list[_Happened]] = defaultdict(list)
    for each in _happened(connection, filter, "error"):
        event = each.event
        assert isinstance(event, ErrorEvent)
        found[each.agent, event.kind, event.status, _is_limit(event)].append(each)
    most = sorted(found.items(), key=lambda item: (-len(item[1]), str(item[0])))[:LONGEST_LIST]
    return [
        ErrorFigures(
            *key,
            errors=len(each),
            sessions=len({one.session_id for one in each}),
            last_at=moment(each[-1].created_at),
            last_session_id=each[-1].session_id,
        )
        for key, each in most
    ]


def _is_limit(event: ErrorEvent) -> bool:
    if event.status in _TOO_MANY_REQUESTS:
        return True
    said = f"{event.kind or ''} {event.error_text[:500]}".lower()
    return any(word in said for word in _LIMIT_WORDS)


def _notes(rows: Iterable[_Row]) -> list[str]:
    notes = [
        "Cost is computed from tokens and the prices of the day.",
        "Commands are grouped by program and subcommand; of several in one call, the first one counts.",
        "Figures per prompt are approximate: they come from whole sessions of one model, without subagents.",
        "Limits are recognised by status and by words of the error, so they are approximate. A model call that failed"
        " without an event of its own is not among the errors.",
    ]
    unpriced = _unpriced(rows)
    if unpriced:
        notes.append(f"{unpriced:,} call{'' if unpriced == 1 else 's'} of unknown cost: no sum of costs contains them.")
    return notes
