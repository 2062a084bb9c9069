"""What insights are made of, added up for some sessions: what two groups of sessions have is the sum of both.

Everything comes from totals that every write updates, and from events and failed model calls: no other message is read.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta, tzinfo
from operator import add
from typing import Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from turnlog.model import CompactionEvent, ErrorEvent, MessageError
from turnlog.model.codec import decode_event
from turnlog.store import zstd
from turnlog.store.frames import BODY_COLUMNS, BodyReader
from turnlog.store.insights import Granularity
from turnlog.store.sqlite.call_figures import (
    QUARTER_HOUR,
    CallCounts,
    Calls,
    Chosen,
    Edits,
    read_calls,
    read_edits,
)
from turnlog.store.sqlite.hours import TYPED, Clock

_LIMIT_WORDS: Final = ("rate_limit", "rate limit", "usage_limit", "usage limit", "quota", "overloaded")

_TOO_MANY_REQUESTS: Final = frozenset({429, 529})
"""HTTP statuses of limits; 529 is Anthropic's for an overloaded service."""

_BILLED = "usage u JOIN sessions s ON s.key = u.session_key"

_INPUT = "u.input + u.cache_write + u.cache_write_5m + u.cache_write_1h + u.tool_prompt"

_UNPRICED = "sum(u.unknown_calls + u.unpriced_calls)"

_PRICED = "sum(u.calls - u.unknown_calls - u.covered_calls + u.session_totals - u.unpriced_calls)"
"""How many calls and totals of sessions have a cost."""

_USED = "(u.calls > 0 OR u.is_total)"


class PeriodSums(NamedTuple):
    """What one project used in one day or week."""

    sessions: int
    """Without subagents."""
    calls: int
    cost: int
    """In nano-dollars."""
    unpriced: int
    priced: int


class ModelSums(NamedTuple):
    """What one model used."""

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
    """Not 0 if some output is known only as "at least"."""


class ComparedSums(NamedTuple):
    """Whole sessions of one model, in which it alone answered the prompts of a person and nothing is copied."""

    sessions: int
    prompts: int
    steps: int
    priced_prompts: int
    """Prompts of the sessions whose calls all have a known price."""
    cost: int
    """Of these, in nano-dollars."""


class SubagentSums(NamedTuple):
    """What subagents used."""

    sessions: int
    calls: int
    cost: int
    """In nano-dollars."""
    priced: int


class CompactionSums(NamedTuple):
    """The compactions of one agent and trigger."""

    compactions: int
    sessions: int
    tokens_before: list[int]
    """Of those where they are known."""


class LastError(NamedTuple):
    """Where an error happened last."""

    at: int
    """Milliseconds; 0 if the time is unknown."""
    session_id: str
    message_id: str
    """The message in the place of an answer; empty for an event."""


class ErrorSums(NamedTuple):
    """Errors of one kind."""

    errors: int
    sessions: int
    last: LastError


ErrorKey: TypeAlias = tuple[str, str | None, int | None, bool]
"""Agent, kind, status, and whether it is a limit."""


class Sums(msgspec.Struct, array_like=True):
    """What some sessions have."""

    undated: int
    """Model calls of unknown time."""
    prompts: dict[int, int]
    """Hour of the week, from that of Monday at 0:00 -> what a person typed."""
    called: dict[int, int]
    """Hour of the week -> model calls."""
    projects: dict[tuple[int, int | None], PeriodSums]
    """Day since 1970, or Monday of the week, and key of the project."""
    models: dict[int, ModelSums]
    compared: dict[int, ComparedSums]
    subagents: SubagentSums
    compactions: dict[tuple[str, str | None], CompactionSums]
    """Agent and trigger -> its compactions."""
    errors: dict[ErrorKey, ErrorSums]
    calls: Calls
    edits: Edits


class Division(NamedTuple):
    """What times are divided by."""

    clock: Clock
    granularity: Granularity


_DAYS: Final = timedelta(days=92) / timedelta(minutes=15)
"""Quarter hours up to which projects are divided by day."""


def divide(connection: sqlite3.Connection, chosen: Chosen, zone: tzinfo | None) -> Division:
    """How a report divides the time in which there are model calls."""
    # Each end is looked up in the key.
    first, last = connection.execute(
        f"SELECT (SELECT min(quarter_hour) FROM usage WHERE quarter_hour > 0 AND {chosen.of_totals()}),"
        f" (SELECT max(quarter_hour) FROM usage WHERE {chosen.of_totals()})",
        chosen.values,
    ).fetchone()
    return Division(Clock(connection, chosen, zone), "week" if (last or 0) - (first or 0) > _DAYS else "day")


def read_sums(connection: sqlite3.Connection, chosen: Chosen, division: Division) -> Sums:
    """Add up what the chosen sessions have in the chosen time."""
    clock, granularity = division
    return Sums(
        undated=_undated(connection, chosen),
        prompts=_prompts(connection, chosen, clock),
        called=_called(connection, chosen, clock),
        projects=_projects(connection, chosen, clock, granularity),
        models=_models(connection, chosen),
        compared=_compared(connection, chosen),
        subagents=_subagents(connection, chosen),
        compactions=_compactions(connection, chosen),
        errors=_errors(connection, chosen),
        calls=read_calls(connection, chosen),
        edits=read_edits(connection, chosen),
    )


def add_sums(one: Sums, other: Sums) -> Sums:
    """What two groups of sessions have that have no session in common."""
    return Sums(
        undated=one.undated + other.undated,
        prompts=_joined(one.prompts, other.prompts, add),
        called=_joined(one.called, other.called, add),
        projects=_joined(one.projects, other.projects, _adding(PeriodSums)),
        models=_joined(one.models, other.models, _adding(ModelSums)),
        compared=_joined(one.compared, other.compared, _adding(ComparedSums)),
        subagents=_adding(SubagentSums)(one.subagents, other.subagents),
        compactions=_joined(one.compactions, other.compactions, _all_compactions),
        errors=_joined(one.errors, other.errors, _all_errors),
        calls=_joined(one.calls, other.calls, _adding(CallCounts)),
        edits=Edits(
            _joined(one.edits.spellings, other.edits.spellings, add),
            _joined(one.edits.sessions, other.edits.sessions, add),
        ),
    )


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_Numbers = TypeVar("_Numbers", bound=Iterable[int])


def _joined(
    one: Mapping[_Key, _Value], other: Mapping[_Key, _Value], plus: Callable[[_Value, _Value], _Value]
) -> dict[_Key, _Value]:
    found = dict(one)
    for key, value in other.items():
        known = found.get(key)
        found[key] = value if known is None else plus(known, value)
    return found


def _adding(make: Callable[..., _Numbers]) -> Callable[[_Numbers, _Numbers], _Numbers]:
    """Adds up each of the numbers by itself."""
    return lambda one, other: make(*map(add, one, other))


def _all_compactions(one: CompactionSums, other: CompactionSums) -> CompactionSums:
    return CompactionSums(
        one.compactions + other.compactions, one.sessions + other.sessions, one.tokens_before + other.tokens_before
    )


def _all_errors(one: ErrorSums, other: ErrorSums) -> ErrorSums:
    return ErrorSums(one.errors + other.errors, one.sessions + other.sessions, max(one.last, other.last))


# -- activity and projects


def _undated(connection: sqlite3.Connection, chosen: Chosen) -> int:
    return connection.execute(
        f"SELECT coalesce(sum(calls), 0) FROM usage WHERE quarter_hour <= 0 AND {chosen.of_totals()}", chosen.values
    ).fetchone()[0]


def _prompts(connection: sqlite3.Connection, chosen: Chosen, clock: Clock) -> dict[int, int]:
    rows = connection.execute(
        f"SELECT {clock.hour_of_week(f'(created_at / {QUARTER_HOUR})')}, count(*) FROM messages"
        f" WHERE {TYPED} AND billed_key IS NOT NULL AND {chosen.of_times('billed_key', 'created_at')} GROUP BY 1",
        chosen.values,
    )
    return dict(rows.fetchall())


def _called(connection: sqlite3.Connection, chosen: Chosen, clock: Clock) -> dict[int, int]:
    rows = connection.execute(
        f"SELECT {clock.hour_of_week('quarter_hour')}, sum(calls) FROM usage"
        f" WHERE quarter_hour > 0 AND calls > 0 AND {chosen.of_totals()} GROUP BY 1",
        chosen.values,
    )
    return dict(rows.fetchall())


def _projects(
    connection: sqlite3.Connection, chosen: Chosen, clock: Clock, granularity: Granularity
) -> dict[tuple[int, int | None], PeriodSums]:
    rows = connection.execute(
        f"SELECT {clock.period('u.quarter_hour', granularity)}, s.project_key,"
        " count(DISTINCT iif(s.relationship IS 'subagent', NULL, s.key)), sum(u.calls), sum(u.cost),"
        f" {_UNPRICED}, {_PRICED} FROM {_BILLED}"
        f" WHERE u.quarter_hour > 0 AND {_USED} AND {chosen.of_totals('u.')} GROUP BY 1, s.project_key",
        chosen.values,
    )
    return {(day, project): PeriodSums(*sums) for day, project, *sums in rows}


# -- models and subagents


def _models(connection: sqlite3.Connection, chosen: Chosen) -> dict[int, ModelSums]:
    rows = connection.execute(
        f"SELECT u.model_key, sum(u.calls), count(DISTINCT u.session_key), sum(u.cost), {_UNPRICED}, {_PRICED},"
        f" sum(u.unknown_calls), sum({_INPUT}), sum(u.cache_read), sum(u.output + u.reasoning), max(u.lower_bound)"
        f" FROM usage u WHERE {_USED} AND {chosen.of_totals('u.')} GROUP BY u.model_key",
        chosen.values,
    )
    return {model: ModelSums(*sums) for model, *sums in rows}


def _compared(connection: sqlite3.Connection, chosen: Chosen) -> dict[int, ComparedSums]:
    is_priced = "unknown_calls + unpriced_calls = 0"
    # Of chosen sessions all models count, at any time.
    of_sessions = chosen._replace(since=None, until=None).of_totals()
    rows = connection.execute(
        "WITH one (session_key, model_key, is_chosen) AS (SELECT session_key, min(model_key),"
        f" max({chosen.of_totals()}) FROM usage WHERE {of_sessions} GROUP BY session_key"
        " HAVING min(model_key) = max(model_key))"
        " SELECT o.model_key, count(*), sum(s.prompts), sum(s.steps),"
        f" sum(iif({is_priced}, s.prompts, 0)), sum(iif({is_priced}, s.cost, 0))"
        " FROM one o JOIN sessions s ON s.key = o.session_key WHERE o.is_chosen AND s.prompts > 0 AND s.shares = 0"
        " AND s.relationship IS NOT 'subagent' AND s.relationship IS NOT 'fork' GROUP BY 1",
        chosen.values,
    )
    return {model: ComparedSums(*sums) for model, *sums in rows}


def _subagents(connection: sqlite3.Connection, chosen: Chosen) -> SubagentSums:
    row = connection.execute(
        "SELECT count(DISTINCT s.key), coalesce(sum(u.calls), 0), coalesce(sum(u.cost), 0),"
        f" coalesce({_PRICED}, 0) FROM {_BILLED} WHERE {_USED} AND {chosen.of_totals('u.')}"
        " AND s.relationship IS 'subagent'",
        chosen.values,
    ).fetchone()
    return SubagentSums(*row)


# -- events


class _Happened(NamedTuple):
    """An event, and where it happened."""

    event: CompactionEvent | ErrorEvent
    agent: str
    session_id: str
    created_at: int | None


def _happened(connection: sqlite3.Connection, chosen: Chosen, type: str) -> Iterator[_Happened]:
    # Repeats the condition of the partial index, which SQLite otherwise would not use.
    # Of a few sessions all events are looked up, which are fewer than those of the type in a large store.
    of_type = "+e.type" if chosen.is_few else "e.type"
    rows = connection.execute(
        "SELECT e.body, s.agent, s.agent || ':' || s.external_id, e.created_at FROM events e"
        f" JOIN sessions s ON s.key = e.session_key WHERE {of_type} = :type"
        " AND e.type NOT IN ('record', 'run-metadata')"
        f" AND {chosen.of_times('e.session_key', 'e.created_at')} ORDER BY e.created_at, e.key",
        {"type": type, **chosen.values},
    )
    for body, *place in rows:
        event = decode_event(zstd.decompress(body))
        assert isinstance(event, CompactionEvent | ErrorEvent)
        yield _Happened(event, *place)


def _compactions(connection: sqlite3.Connection, chosen: Chosen) -> dict[tuple[str, str | None], CompactionSums]:
    found: defaultdict[tuple[str, str | None], list[_Happened]] = defaultdict(list)
    for each in _happened(connection, chosen, "compaction"):
        assert isinstance(each.event, CompactionEvent)
        found[each.agent, each.event.trigger].append(each)
    return {
        key: CompactionSums(len(each), len({one.session_id for one in each}), list(_tokens_before(each)))
        for key, each in found.items()
    }


def _tokens_before(compactions: Iterable[_Happened]) -> Iterator[int]:
    for each in compactions:
        if isinstance(each.event, CompactionEvent) and each.event.tokens_before is not None:
            yield each.event.tokens_before


# -- errors


def _errors(connection: sqlite3.Connection, chosen: Chosen) -> dict[ErrorKey, ErrorSums]:
    found: defaultdict[ErrorKey, list[LastError]] = defaultdict(list)
    for failures in (_failures(connection, chosen), _failed_calls(connection, chosen)):
        for key, where in failures:
            found[key].append(where)
    return {key: ErrorSums(len(each), len({one.session_id for one in each}), max(each)) for key, each in found.items()}


def _failures(connection: sqlite3.Connection, chosen: Chosen) -> Iterator[tuple[ErrorKey, LastError]]:
    """What agents logged as an error of its own: also each attempt that they repeated."""
    for event, agent, session_id, created_at in _happened(connection, chosen, "error"):
        assert isinstance(event, ErrorEvent)
        is_limit = _is_limit(event.kind, event.status, event.error_text)
        yield (agent, event.kind, event.status, is_limit), LastError(created_at or 0, session_id, "")


class _FailedCall(msgspec.Struct):
    """What a body says of a model call that failed."""

    error: MessageError | None = None


def _failed_calls(connection: sqlite3.Connection, chosen: Chosen) -> Iterator[tuple[ErrorKey, LastError]]:
    """What agents logged in the place of an answer."""
    read = BodyReader(connection)
    # The keys come from the partial index, whose condition is repeated; SQLite otherwise goes through all billed
    # messages. Bodies that follow each other are read in that order.
    in_time = chosen._replace(sessions=None).of_times("billed_key", "created_at")
    of_session = chosen._replace(since=None, until=None, is_few=False).of_times("m.billed_key", "m.created_at")
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
        yield (agent, error.kind, error.status, is_limit), LastError(created_at or 0, session_id, message_id)


def _is_limit(kind: str | None, status: int | None, text: str) -> bool:
    if status in _TOO_MANY_REQUESTS:
        return True
    said = f"{kind or ''} {text[:500]}".lower()
    return any(word in said for word in _LIMIT_WORDS)
