"""Insights in SQLite: activity, projects over time, tools, commands, files, models, compactions and errors.

Everything comes from totals that every write updates, and from events: no message is read.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, timedelta, tzinfo
from decimal import Decimal
from typing import Final, NamedTuple

import msgspec

from turnlog.model import CompactionEvent, ErrorEvent, MessageError
from turnlog.model.codec import decode_event
from turnlog.store import zstd
from turnlog.store.base import ALL_INSIGHTS, InsightFilter
from turnlog.store.dollars import Dollars, dollars
from turnlog.store.frames import BODY_COLUMNS, BodyReader
from turnlog.store.insights import (
    ActivityHour,
    CompactionFigures,
    ErrorFigures,
    Granularity,
    Insights,
    ModelFigures,
    ProjectPeriod,
    SubagentShare,
    error_label,
)
from turnlog.store.rows import moment
from turnlog.store.sqlite.call_figures import (
    QUARTER_HOUR,
    Chosen,
    commands,
    count_commands,
    edited_files,
    failed_by_model,
    read_call_sums,
    tools,
)
from turnlog.store.sqlite.hours import TYPED, Clock, in_quarter_hours
from turnlog.store.sqlite.reading import Connections

_DAYS: Final = timedelta(days=92) / timedelta(minutes=15)
"""Quarter hours up to which projects are divided by day."""

_LIMIT_WORDS: Final = ("rate_limit", "rate limit", "usage_limit", "usage limit", "quota", "overloaded")

_TOO_MANY_REQUESTS: Final = frozenset({429, 529})
"""HTTP statuses of limits; 529 is Anthropic's for an overloaded service."""


_BILLED = "usage u JOIN sessions s ON s.key = u.session_key"

_INPUT = "u.input + u.cache_write + u.cache_write_5m + u.cache_write_1h + u.tool_prompt"

_UNPRICED = "sum(u.unknown_calls + u.unpriced_calls)"

_PRICED = "sum(u.calls - u.unknown_calls - u.covered_calls + u.session_totals - u.unpriced_calls)"
"""How many calls and totals of sessions have a cost."""

_USED = "(u.calls > 0 OR u.is_total)"


class InsightQueries(Connections):
    """The query of `Store` for insights."""

    def insights(
        self, filter: InsightFilter = ALL_INSIGHTS, *, zone: tzinfo | None = UTC, limit: int | None = None
    ) -> Insights:
        with self._snapshot() as connection:
            chosen = _chosen(filter)
            calls = read_call_sums(connection, chosen)
            first, last, undated = _times(connection, chosen)
            granularity: Granularity = "week" if last - first > _DAYS else "day"
            clock = Clock(connection, chosen, zone)
            sums = _model_sums(connection, chosen)
            models = _models(sums, _compared(connection, chosen), _names(connection), failed_by_model(calls))
            errors = _errors(connection, chosen)
            files, files_found = edited_files(connection, chosen, limit)
            return Insights(
                zone="local" if zone is None else str(zone),
                granularity=granularity,
                activity=_activity(connection, chosen, clock),
                undated_calls=undated,
                projects=_projects(connection, chosen, clock, granularity),
                tools=tools(calls),
                commands=commands(connection, calls, chosen, limit),
                commands_found=count_commands(calls),
                files=files,
                files_found=files_found,
                models=models,
                subagents=_subagents(connection, chosen, sums),
                compactions=_compactions(connection, chosen),
                errors=errors[:limit],
                errors_found=len(errors),
                notes=_notes(sum(model.unpriced_calls for model in models)),
            )


def _chosen(filter: InsightFilter) -> Chosen:
    conditions: list[str] = []
    if filter.agent is not None:
        conditions.append("agent = :agent")
    if filter.project is not None:
        conditions.append("project_key IN (SELECT key FROM projects WHERE path = :project OR name = :project)")
    return in_quarter_hours(filter.since, filter.until)._replace(
        sessions=f"SELECT key FROM sessions WHERE {' AND '.join(conditions)}" if conditions else None,
        values={"agent": filter.agent, "project": filter.project},
    )


def _times(connection: sqlite3.Connection, chosen: Chosen) -> tuple[int, int, int]:
    """The first and the last quarter hour with model calls, and how many calls have no time."""
    return connection.execute(
        "SELECT coalesce(min(iif(u.quarter_hour > 0, u.quarter_hour, NULL)), 0), coalesce(max(u.quarter_hour), 0),"
        f" coalesce(sum(iif(u.quarter_hour > 0, 0, u.calls)), 0) FROM usage u WHERE {chosen.of_totals('u.')}",
        chosen.values,
    ).fetchone()


# -- activity and projects


def _activity(connection: sqlite3.Connection, chosen: Chosen, clock: Clock) -> list[ActivityHour]:
    prompts = connection.execute(
        f"SELECT {clock.hour_of_week(f'(created_at / {QUARTER_HOUR})')}, count(*) FROM messages"
        f" WHERE {TYPED} AND billed_key IS NOT NULL AND {chosen.of_times('billed_key', 'created_at')} GROUP BY 1",
        chosen.values,
    )
    calls = connection.execute(
        f"SELECT {clock.hour_of_week('quarter_hour')}, sum(calls) FROM usage"
        f" WHERE quarter_hour > 0 AND calls > 0 AND {chosen.of_totals()} GROUP BY 1",
        chosen.values,
    )
    by_hour: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
    for index, rows in enumerate((prompts, calls)):
        for hour, count in rows:
            by_hour[hour][index] = count
    return [ActivityHour(hour // 24 + 1, hour % 24, *counts) for hour, counts in sorted(by_hour.items())]


def _projects(
    connection: sqlite3.Connection, chosen: Chosen, clock: Clock, granularity: Granularity
) -> list[ProjectPeriod]:
    # Names are looked up of what is left: SQLite sorts every row to group it, with all that it is to show.
    rows = connection.execute(
        "SELECT g.day, p.path, p.name, g.sessions, g.calls, g.cost, g.unpriced, g.priced FROM"
        f" (SELECT {clock.period('u.quarter_hour', granularity)} AS day, s.project_key AS project_key,"
        " count(DISTINCT iif(s.relationship IS 'subagent', NULL, s.key)) AS sessions, sum(u.calls) AS calls,"
        f" sum(u.cost) AS cost, {_UNPRICED} AS unpriced, {_PRICED} AS priced FROM {_BILLED}"
        f" WHERE u.quarter_hour > 0 AND {_USED} AND {chosen.of_totals('u.')} GROUP BY 1, s.project_key) g"
        " LEFT JOIN projects p ON p.key = g.project_key ORDER BY g.day, coalesce(p.path, '')",
        chosen.values,
    )
    return [
        ProjectPeriod(
            period=_day(day),
            project=path,
            label=name,
            sessions=sessions,
            calls=calls,
            cost=_cost(cost, priced),
            unpriced_calls=unpriced,
        )
        for day, path, name, sessions, calls, cost, unpriced, priced in rows
    ]


_FIRST_DAY: Final = date(1970, 1, 1).toordinal()


def _day(day: int) -> str:
    # A damaged log may have a time after the last day that a calendar has.
    return date.fromordinal(min(_FIRST_DAY + day, date.max.toordinal())).isoformat()


def _cost(nanos: int, priced: int) -> Dollars | None:
    """The cost of so many calls and totals of known price; None if there is none."""
    return dollars(nanos) if priced > 0 else None


def _subagents(connection: sqlite3.Connection, chosen: Chosen, models: Sequence[_ModelSums]) -> SubagentShare:
    sessions, calls, nanos, priced = connection.execute(
        "SELECT count(DISTINCT s.key), coalesce(sum(u.calls), 0), coalesce(sum(u.cost), 0),"
        f" coalesce({_PRICED}, 0) FROM {_BILLED} WHERE {_USED} AND {chosen.of_totals('u.')}"
        " AND s.relationship IS 'subagent'",
        chosen.values,
    ).fetchone()
    cost = _cost(nanos, priced) if sessions else Dollars(0)
    total = _cost(sum(each.cost for each in models), sum(each.priced for each in models))
    return SubagentShare(
        sessions=sessions,
        calls=calls,
        total_calls=sum(each.calls for each in models),
        cost=cost,
        total_cost=total,
        share=None if cost is None or not total else float(cost / total),
    )


# -- models


class _ModelSums(NamedTuple):
    """What one model used."""

    key: int
    calls: int
    sessions: int
    cost: int
    """In nano-dollars."""
    unpriced: int
    priced: int
    unknown: int
    """Calls without tokens."""
    uncached: int
    cached: int
    """Input tokens."""
    output: int
    lower_bound: int


def _model_sums(connection: sqlite3.Connection, chosen: Chosen) -> list[_ModelSums]:
    rows = connection.execute(
        f"SELECT u.model_key, sum(u.calls), count(DISTINCT u.session_key), sum(u.cost), {_UNPRICED}, {_PRICED},"
        f" sum(u.unknown_calls), sum({_INPUT}), sum(u.cache_read), sum(u.output + u.reasoning), max(u.lower_bound)"
        f" FROM usage u WHERE {_USED} AND {chosen.of_totals('u.')} GROUP BY u.model_key",
        chosen.values,
    )
    return list(map(_ModelSums._make, rows))


def _names(connection: sqlite3.Connection) -> dict[int, str]:
    return dict(connection.execute("SELECT key, name FROM models").fetchall())


def _models(
    sums: Iterable[_ModelSums], compared: Mapping[int, _Compared], names: Mapping[int, str], failed: Counter[int]
) -> list[ModelFigures]:
    found = [
        ModelFigures(
            model=names.get(each.key),
            calls=each.calls,
            sessions=each.sessions,
            cost=_cost(each.cost, each.priced),
            unpriced_calls=each.unpriced,
            cache_share=_ratio(each.cached, each.cached + each.uncached),
            output_per_call=_ratio(each.output, each.calls - each.unknown),
            is_lower_bound=bool(each.lower_bound),
            failed_tool_calls=failed[each.key],
            compared_sessions=alone.sessions,
            cost_per_prompt=dollars(Decimal(alone.cost) / alone.priced_prompts) if alone.priced_prompts else None,
            steps_per_prompt=_ratio(alone.steps, alone.prompts),
        )
        for each in sums
        for alone in [compared.get(each.key, _NONE)]
    ]
    return sorted(found, key=lambda each: (-(each.cost or Decimal(0)), -each.calls, each.model or ""))


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


class _Compared(NamedTuple):
    """Whole sessions of one model."""

    sessions: int
    prompts: int
    steps: int
    priced_prompts: int
    """Prompts of the sessions whose calls all have a known price."""
    cost: int
    """Of these, in nano-dollars."""


_NONE: Final = _Compared(0, 0, 0, 0, 0)


def _compared(connection: sqlite3.Connection, chosen: Chosen) -> dict[int, _Compared]:
    """Model -> its sessions in which it alone answered the prompts of a person and nothing is copied."""
    is_priced = "unknown_calls + unpriced_calls = 0"
    rows = connection.execute(
        "WITH one (session_key, model_key, is_chosen) AS (SELECT session_key, min(model_key),"
        f" max({chosen.of_totals()}) FROM usage GROUP BY session_key HAVING min(model_key) = max(model_key))"
        " SELECT o.model_key, count(*), sum(s.prompts), sum(s.steps),"
        f" sum(iif({is_priced}, s.prompts, 0)), sum(iif({is_priced}, s.cost, 0))"
        " FROM one o JOIN sessions s ON s.key = o.session_key WHERE o.is_chosen AND s.prompts > 0 AND s.shares = 0"
        " AND s.relationship IS NOT 'subagent' AND s.relationship IS NOT 'fork' GROUP BY 1",
        chosen.values,
    )
    return {model: _Compared(*totals) for model, *totals in rows}


# -- events


class _Happened(NamedTuple):
    """An event, and where it happened."""

    event: CompactionEvent | ErrorEvent
    agent: str
    session_id: str
    created_at: int | None


def _happened(connection: sqlite3.Connection, chosen: Chosen, type: str) -> list[_Happened]:
    condition = chosen.of_times("e.session_key", "e.created_at")
    # Repeats the condition of the partial index, which SQLite otherwise would not use.
    rows = connection.execute(
        "SELECT e.body, s.agent, s.agent || ':' || s.external_id, e.created_at FROM events e"
        " JOIN sessions s ON s.key = e.session_key"
        f" WHERE e.type = :type AND e.type NOT IN ('record', 'run-metadata') AND {condition}"
        " ORDER BY e.created_at, e.key",
        {"type": type, **chosen.values},
    )
    found: list[_Happened] = []
    for body, agent, session_id, created_at in rows:
        event = decode_event(zstd.decompress(body))
        assert isinstance(event, CompactionEvent | ErrorEvent)
        found.append(_Happened(event, agent, session_id, created_at))
    return found


def _compactions(connection: sqlite3.Connection, chosen: Chosen) -> list[CompactionFigures]:
    found: defaultdict[tuple[str, str | None], list[_Happened]] = defaultdict(list)
    for each in _happened(connection, chosen, "compaction"):
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
    # It imports fractions and random numbers, which no other query needs.
    from statistics import median

    known = [
        event.tokens_before
        for event in events
        if isinstance(event, CompactionEvent) and event.tokens_before is not None
    ]
    return median(known) if known else None


# -- errors


class _Failure(NamedTuple):
    """An error, and where it happened."""

    agent: str
    kind: str | None
    status: int | None
    is_limit: bool
    session_id: str
    message_id: str | None
    """The message in the place of an answer; None for an event."""
    created_at: int | None


def _errors(connection: sqlite3.Connection, chosen: Chosen) -> list[ErrorFigures]:
    found: defaultdict[tuple[str, str | None, int | None, bool], list[_Failure]] = defaultdict(list)
    for each in (*_failures(connection, chosen), *_failed_calls(connection, chosen)):
        found[each[:4]].append(each)
    most = sorted(found.items(), key=lambda item: (-len(item[1]), str(item[0])))
    return [
        ErrorFigures(
            agent,
            kind,
            error_label(kind),
            status,
            is_limit,
            errors=len(each),
            sessions=len({one.session_id for one in each}),
            last_at=moment(last.created_at),
            last_session_id=last.session_id,
            last_message_id=last.message_id,
        )
        for (agent, kind, status, is_limit), each in most
        for last in [max(each, key=lambda one: one.created_at or 0)]
    ]


def _failures(connection: sqlite3.Connection, chosen: Chosen) -> Iterator[_Failure]:
    """What agents logged as an error of its own: also each attempt that they repeated."""
    for event, agent, session_id, created_at in _happened(connection, chosen, "error"):
        assert isinstance(event, ErrorEvent)
        is_limit = _is_limit(event.kind, event.status, event.error_text)
        yield _Failure(agent, event.kind, event.status, is_limit, session_id, None, created_at)


class _FailedCall(msgspec.Struct):
    """What a body says of a model call that failed."""

    error: MessageError | None = None


def _failed_calls(connection: sqlite3.Connection, chosen: Chosen) -> Iterator[_Failure]:
    """What agents logged in the place of an answer."""
    read = BodyReader(connection)
    # The keys come from the partial index, whose condition is repeated; SQLite otherwise goes through all billed
    # messages. Bodies that follow each other are read in that order.
    in_time = chosen._replace(sessions=None).of_times("billed_key", "created_at")
    of_session = chosen._replace(since=None, until=None).of_times("m.billed_key", "m.created_at")
    rows = connection.execute(
        f"SELECT m.agent, s.agent || ':' || s.external_id, m.external_id, m.created_at, {BODY_COLUMNS}"
        " FROM messages m JOIN sessions s ON s.key = m.billed_key"
        f" WHERE m.key IN (SELECT key FROM messages WHERE stop_reason = 'error' AND {in_time}) AND {of_session}"
        " ORDER BY m.key",
        chosen.values,
    ).fetchall()
    for agent, session_id, message_id, created_at, *place in rows:
        # The decoder skips everything else in the body, which may be large.
        error = msgspec.json.decode(read(*place), type=_FailedCall).error or MessageError(text="")
        is_limit = _is_limit(error.kind, error.status, error.text)
        yield _Failure(agent, error.kind, error.status, is_limit, session_id, message_id, created_at)


def _is_limit(kind: str | None, status: int | None, text: str) -> bool:
    if status in _TOO_MANY_REQUESTS:
        return True
    said = f"{kind or ''} {text[:500]}".lower()
    return any(word in said for word in _LIMIT_WORDS)


def _notes(unpriced: int) -> list[str]:
    notes = [
        "Cost is computed from tokens and the prices of the day.",
        "Commands are grouped by program and subcommand; of several in one call, the first one counts"
        " that does more than prepare another, as `cd`, `export` and `echo` do.",
        "Figures per prompt are approximate: they come from whole sessions of one model, without subagents.",
        "Limits are recognised by status and by words of the error, so they are approximate. Attempts that an agent"
        " repeated count too, where it logs them.",
    ]
    if unpriced:
        notes.append(f"{unpriced:,} call{'' if unpriced == 1 else 's'} of unknown cost: no sum of costs contains them.")
    return notes
