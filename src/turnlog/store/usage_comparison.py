"""What changed between two periods of usage, and why the later one cost more or less."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Literal, NamedTuple, TypeAlias

from turnlog.store.base import ALL_USAGE, Store, UsageFilter
from turnlog.store.usage_report import NANO, Dollars, UsageRow, UsageTotals, counted

Cause: TypeAlias = Literal["sessions", "calls_per_session", "models", "tokens_per_call", "price_per_token"]


@dataclass(frozen=True)
class ComparedPeriod:
    """One of the two periods, with its usage."""

    since: datetime
    until: datetime
    sessions: int
    """Sessions with a model call, without subagents."""
    totals: UsageTotals


@dataclass(frozen=True)
class ComparedRow:
    """What one model or project used in both periods."""

    name: str | None
    label: str | None
    earlier: UsageTotals
    later: UsageTotals
    cost_change: Dollars
    """US dollars, of the calls with a known price."""


@dataclass(frozen=True)
class CostCause:
    """What one cause has of the change of the cost."""

    cause: Cause
    """`sessions`: more or fewer of them. `calls_per_session`: model calls in each. `models`: other models made the
    calls. `tokens_per_call`: of the same models. `price_per_token`: other prices, or other kinds of tokens, such as
    more from the cache."""
    cost_change: Dollars


@dataclass(frozen=True)
class UsageComparison:
    """Two periods beside each other."""

    zone: str
    """`UTC`, `Europe/Berlin`, or `local` for this machine's."""
    earlier: ComparedPeriod
    later: ComparedPeriod
    cost_change: Dollars
    causes: tuple[CostCause, ...]
    """They add up to `cost_change`, except for rounding. Empty if one of the periods has no call with a known price."""
    models: tuple[ComparedRow, ...]
    """The largest change of cost first."""
    projects: tuple[ComparedRow, ...]
    """The same."""
    missing: tuple[str, ...]
    """Sentences about what the sums lack."""


def compare_usage(
    store: Store, since: datetime, until: datetime, filter: UsageFilter = ALL_USAGE, *, zone: tzinfo | None
) -> UsageComparison:
    """The usage from `since` to `until`, beside that of the period before it.

    Before whole calendar months of the zone (None: of this machine) are as many months, otherwise it is as much time.
    `since` and `until` replace those of the filter. Raises ValueError if the period has no length.
    """
    if since >= until:
        raise ValueError("the period to compare ends before it begins")
    since = since - timedelta(minutes=since.minute % 15, seconds=since.second, microseconds=since.microsecond)
    before = _period_before(_clock(since, zone), _clock(until, zone))
    before = before.astimezone() if zone is None else before.replace(tzinfo=zone)
    earlier = _read(store, filter._replace(since=before, until=since))
    later = _read(store, filter._replace(since=since, until=until))
    return UsageComparison(
        zone="local" if zone is None else str(zone),
        earlier=ComparedPeriod(before.astimezone(UTC), since.astimezone(UTC), earlier.sessions, earlier.totals),
        later=ComparedPeriod(since.astimezone(UTC), until.astimezone(UTC), later.sessions, later.totals),
        cost_change=_change(earlier.totals, later.totals),
        causes=_causes(earlier, later),
        models=_compared(earlier.models, later.models),
        projects=_compared(earlier.projects, later.projects),
        missing=(
            *(f"Earlier: {sentence}" for sentence in earlier.missing),
            *(f"Later: {sentence}" for sentence in later.missing),
        ),
    )


def _clock(at: datetime, zone: tzinfo | None) -> datetime:
    """What the clocks of a zone show, without the zone: a day may have 23 or 25 hours, but not on the clock."""
    return at.astimezone(zone).replace(tzinfo=None)


def _period_before(since: datetime, until: datetime) -> datetime:
    """When the period before this one begins."""
    months = (until.year - since.year) * 12 + until.month - since.month
    if months > 0 and _begins_month(since) and _begins_month(until):
        year, month = divmod(since.year * 12 + since.month - 1 - months, 12)
        return since.replace(year=year, month=month + 1)
    before = since - (until - since)
    return before - timedelta(minutes=before.minute % 15, seconds=before.second, microseconds=before.microsecond)


def _begins_month(at: datetime) -> bool:
    return (at.day, at.hour, at.minute, at.second, at.microsecond) == (1, 0, 0, 0, 0)


class _Usage(NamedTuple):
    sessions: int
    totals: UsageTotals
    models: tuple[UsageRow, ...]
    projects: tuple[UsageRow, ...]
    missing: tuple[str, ...]


def _read(store: Store, filter: UsageFilter) -> _Usage:
    models = store.usage("model", filter)
    subagents = sum(row.name is not None for row in store.usage("subagent", filter).rows)
    sessions = len(store.usage("session", filter).rows) - subagents
    return _Usage(sessions, models.totals, models.rows, store.usage("project", filter).rows, models.missing)


def _change(earlier: UsageTotals, later: UsageTotals) -> Dollars:
    return Dollars((later.cost or Decimal(0)) - (earlier.cost or Decimal(0)))


def _compared(earlier: Iterable[UsageRow], later: Iterable[UsageRow]) -> tuple[ComparedRow, ...]:
    before, after = ({(row.name, row.label): row.totals for row in rows} for rows in (earlier, later))
    nothing = UsageTotals(cost=Dollars(0))
    rows = [
        ComparedRow(*key, old, new, _change(old, new))
        for key in {**before, **after}
        for old, new in [(before.get(key, nothing), after.get(key, nothing))]
    ]
    return tuple(sorted(rows, key=lambda row: (-abs(row.cost_change), -row.later.tokens, row.name or "")))


# -- causes


class _Priced(NamedTuple):
    """The calls of one model that have a known price, and totals of sessions in place of calls."""

    calls: int
    tokens: int
    nanos: int


def _priced(rows: Iterable[UsageRow]) -> dict[str | None, _Priced]:
    return {
        row.name: _Priced(calls, row.totals.tokens, int(row.totals.cost * NANO))
        for row in rows
        for calls in [counted(vars(row.totals)) - row.totals.unpriced_calls]
        if row.totals.cost is not None and calls > 0 and row.totals.tokens > 0
    }


def _causes(earlier: _Usage, later: _Usage) -> tuple[CostCause, ...]:
    """One cause after the other takes its later value, in the order of `Cause`; what each step adds is its share."""
    before, after = _priced(earlier.models), _priced(later.models)
    if not (before and after and earlier.sessions and later.sessions):
        return ()
    calls_before, calls_after = (sum(each.calls for each in models.values()) for models in (before, after))
    cost = Fraction(sum(each.nanos for each in before.values()))
    steps: dict[Cause, Fraction] = {
        "sessions": cost * later.sessions / earlier.sessions,
        "calls_per_session": cost * calls_after / calls_before,
        "models": sum((_at_earlier_cost(name, each, before) for name, each in after.items()), Fraction(0)),
        "tokens_per_call": sum((_at_earlier_price(name, each, before) for name, each in after.items()), Fraction(0)),
        "price_per_token": Fraction(sum(each.nanos for each in after.values())),
    }
    causes: list[CostCause] = []
    for cause, reached in steps.items():
        causes.append(CostCause(cause, Dollars(Decimal(round(reached - cost)) / NANO)))
        cost = reached
    return tuple(causes)


def _at_earlier_cost(name: str | None, later: _Priced, before: Mapping[str | None, _Priced]) -> Fraction:
    """The later calls of a model, each at its earlier mean cost; a new model has only its later one."""
    earlier = before.get(name, later)
    return Fraction(later.calls * earlier.nanos, earlier.calls)


def _at_earlier_price(name: str | None, later: _Priced, before: Mapping[str | None, _Priced]) -> Fraction:
    """The later tokens of a model, each at its earlier mean price."""
    earlier = before.get(name, later)
    return Fraction(later.tokens * earlier.nanos, earlier.tokens)
