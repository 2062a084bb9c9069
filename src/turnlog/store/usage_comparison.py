"""What changed between two periods of usage, and why the later one cost more or less."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from turnlog.store.base import ALL_USAGE, Store, UsageFilter
from turnlog.store.dollars import NANO, Dollars, counted
from turnlog.store.usage_report import UsageRow, UsageTotals

if TYPE_CHECKING:
    from turnlog.store.writing.prepared import Pricer

Cause: TypeAlias = Literal[
    "sessions", "calls_per_session", "models", "tokens_per_call", "output_share", "cache_share", "price"
]


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
    cost_change: Dollars | None
    """US dollars, of the calls with a known price; None if one period has calls, but none with a known price."""


@dataclass(frozen=True)
class CostCause:
    """What one cause has of the change of the cost."""

    cause: Cause
    """`sessions`: more or fewer of them. `calls_per_session`: model calls in each. `models`: other models made the
    calls. Then of the same models: `tokens_per_call`; `output_share`: output among these tokens; `cache_share`: prompts
    more or less from the cache; `price`: of the same kind of token, also tariffs, long prompts and web searches."""
    cost_change: Dollars
    earlier: float | None
    """What the cause is measured by, such as calls per session or a share of 1; None for `models` and `price`."""
    later: float | None


@dataclass(frozen=True)
class UsageComparison:
    """Two periods beside each other."""

    zone: str
    """`UTC`, `Europe/Berlin`, or `local` for this machine's."""
    earlier: ComparedPeriod
    later: ComparedPeriod
    cost_change: Dollars | None
    """Of the calls with a known price; None if one period has calls, but none with a known price."""
    causes: tuple[CostCause, ...]
    """They add up to `cost_change`, to the nano-dollar. Empty if that is None, or neither period has a call."""
    models: tuple[ComparedRow, ...]
    """The largest change of cost first."""
    projects: tuple[ComparedRow, ...]
    """The same."""
    missing: tuple[str, ...]
    """Sentences about what the sums lack."""


def compare_usage(
    store: Store,
    since: datetime,
    until: datetime,
    filter: UsageFilter = ALL_USAGE,
    *,
    zone: tzinfo | None,
    price: Pricer | None = None,
) -> UsageComparison:
    """The usage from `since` to `until`, beside that of the period before it.

    Whole calendar months of the zone (None: of this machine) are compared with as many months before them. The
    first days of a week (from Monday) or of a month, two or more, are compared with the same days of the week or month
    before it, and any other period with as much time before it.
    `since` and `until` replace those of the filter. `price` says what kinds of tokens cost beside each other (None: the
    prices of `turnlog.pricing`). Raises ValueError if the period has no length.
    """
    if since >= until:
        raise ValueError("the period to compare ends before it begins")
    since = since - timedelta(minutes=since.minute % 15, seconds=since.second, microseconds=since.microsecond)
    before, before_end = (
        at.astimezone() if zone is None else at.replace(tzinfo=zone)
        for at in _period_before(_clock(since, zone), _clock(until, zone))
    )
    earlier = _read(store, filter._replace(since=before, until=before_end))
    later = _read(store, filter._replace(since=since, until=until))
    change = _change(earlier.totals, later.totals)
    return UsageComparison(
        zone="local" if zone is None else str(zone),
        earlier=ComparedPeriod(before.astimezone(UTC), before_end.astimezone(UTC), earlier.sessions, earlier.totals),
        later=ComparedPeriod(since.astimezone(UTC), until.astimezone(UTC), later.sessions, later.totals),
        cost_change=change,
        causes=() if change is None else _causes(earlier, later, _rates(price, since)),
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


def _period_before(since: datetime, until: datetime) -> tuple[datetime, datetime]:
    """When the period before this one begins and ends."""
    months = (until.year - since.year) * 12 + until.month - since.month
    if months > 0 and _begins_month(since) and _begins_month(until):
        return _months_before(since, months), since
    if until - since > _DAY:
        if _begins_month(since) and months == 0:
            before = _months_before(since, 1)
            return before, min(before + (until - since), since)
        if since.weekday() == 0 and _begins_day(since) and until - since <= _WEEK:
            return since - _WEEK, until - _WEEK
    before = since - (until - since)
    return before - timedelta(minutes=before.minute % 15, seconds=before.second, microseconds=before.microsecond), since


_DAY: Final = timedelta(days=1)

_WEEK: Final = timedelta(weeks=1)


def _months_before(first: datetime, months: int) -> datetime:
    year, month = divmod(first.year * 12 + first.month - 1 - months, 12)
    return first.replace(year=year, month=month + 1)


def _begins_month(at: datetime) -> bool:
    return at.day == 1 and _begins_day(at)


def _begins_day(at: datetime) -> bool:
    return (at.hour, at.minute, at.second, at.microsecond) == (0, 0, 0, 0)


class _Usage(NamedTuple):
    sessions: int
    totals: UsageTotals
    models: tuple[UsageRow, ...]
    projects: tuple[UsageRow, ...]
    priced: _Priced
    missing: tuple[str, ...]


def _read(store: Store, filter: UsageFilter) -> _Usage:
    models = store.usage("model", filter)
    rows = store.usage("session", filter, then_by="model").rows
    subagents = {row.name for row in store.usage("subagent", filter).rows}
    return _Usage(
        sum(row.name not in subagents for row in rows),
        models.totals,
        models.rows,
        store.usage("project", filter).rows,
        _priced(rows, subagents),
        models.missing,
    )


def _change(earlier: UsageTotals, later: UsageTotals) -> Dollars | None:
    return None if earlier.cost is None or later.cost is None else Dollars(later.cost - earlier.cost)


def _compared(earlier: Iterable[UsageRow], later: Iterable[UsageRow]) -> tuple[ComparedRow, ...]:
    before, after = ({(row.name, row.label): row.totals for row in rows} for rows in (earlier, later))
    nothing = UsageTotals(cost=Dollars(0))
    rows = [
        ComparedRow(*key, old, new, _change(old, new))
        for key in {**before, **after}
        for old, new in [(before.get(key, nothing), after.get(key, nothing))]
    ]
    return tuple(sorted(rows, key=lambda row: (-abs(row.cost_change or 0), -row.later.tokens, row.name or "")))


# -- causes

_OUTPUT = ("output", "reasoning")

_PROMPT = ("input", "tool_prompt", "cache_read", "cache_write_5m", "cache_write_1h", "cache_write")

_Rates: TypeAlias = Callable[[str | None], Mapping[str, int]]
"""Model -> what a token of each kind costs beside one of another; all the same if that is not known."""


class _Calls(NamedTuple):
    """Calls of one model that have a known price, and totals of sessions in place of calls."""

    calls: int = 0
    nanos: int = 0
    tokens: Mapping[str, Fraction | int] = dict.fromkeys((*_PROMPT, *_OUTPUT), 0)
    """Kind -> number."""

    def of(self, kinds: Iterable[str]) -> Fraction | int:
        return sum(self.tokens[kind] for kind in kinds)


class _Priced(NamedTuple):
    """What of a period has a known price."""

    sessions: int
    """Those with such a call of their own; a session of which only subagents ran counts if there is no other."""
    models: Mapping[str | None, _Calls]

    def sum(self, what: Callable[[_Calls], Fraction | int]) -> Fraction:
        return sum((Fraction(what(each)) for each in self.models.values()), Fraction(0))


def _priced(rows: Iterable[UsageRow], subagents: set[str | None]) -> _Priced:
    """From rows of sessions, divided by model. Sessions and calls without a known price are no cause of a cost."""
    sessions: set[str | None] = set()
    models: defaultdict[str | None, _Calls] = defaultdict(_Calls)
    for row in rows:
        for part in row.parts:
            all_calls = counted(vars(part.totals))
            calls = all_calls - part.totals.unpriced_calls
            if part.totals.cost is None or calls <= 0:
                continue
            sessions.add(row.name)
            known = models[part.name]
            # Of calls of one model in one session, some with and some without a price, each has the mean tokens.
            share = 1 if calls == all_calls else Fraction(calls, all_calls)
            models[part.name] = _Calls(
                known.calls + calls,
                known.nanos + int(part.totals.cost * NANO),
                {kind: number + getattr(part.totals, kind) * share for kind, number in known.tokens.items()},
            )
    return _Priced(len(sessions - subagents) or min(1, len(sessions)), models)


def _rates(price: Pricer | None, at: datetime) -> _Rates:
    if price is None:
        from turnlog.pricing import price_nanos

        price = price_nanos
    from msgspec.structs import replace

    from turnlog.model import Usage

    def rates(model: str | None) -> Mapping[str, int]:
        usages = {kind: replace(Usage(input=0, output=0), **{kind: 1000}) for kind in (*_PROMPT, *_OUTPUT)}
        found = {kind: price(usage, model, None, at) for kind, usage in usages.items()}
        return {kind: 1 if None in found.values() else cost or 0 for kind, cost in found.items()}

    return rates


_Pair: TypeAlias = tuple[Fraction, Fraction]
"""Something of the earlier and of the later period."""


def _causes(earlier: _Usage, later: _Usage, rates: _Rates) -> tuple[CostCause, ...]:
    """Divide the cost of both periods between them by one measure after the other, each closer to what they cost.

    By sessions, by calls, by the calls of each model, and so on: what a measure moves from one period to the other is
    the change that has its cause. So the causes add up, exchanging the periods changes only their signs, a model of
    only one period needs no invented price for the other, and no cause exceeds twice the cost of both.
    """
    before, after = earlier.priced, later.priced
    if not before.models and not after.models:
        return ()
    pairs = [
        (old, new, rates(model))
        for model in {**before.models, **after.models}
        for old, new in [(before.models.get(model, _Calls()), after.models.get(model, _Calls()))]
    ]
    cost = before.sum(lambda each: each.nanos) + after.sum(lambda each: each.nanos)
    by_sessions = _divided(cost, (Fraction(before.sessions), Fraction(after.sessions)))
    by_calls = _divided(cost, (before.sum(lambda each: each.calls), after.sum(lambda each: each.calls)))
    reached: dict[Cause, Fraction] = {"sessions": _rise(by_sessions), "calls_per_session": _rise(by_calls)}
    reached |= dict.fromkeys(_MODEL_CAUSES, Fraction(0))
    for old, new, model_rates in pairs:
        for cause, rise in zip(_MODEL_CAUSES, _rises(old, new, model_rates), strict=True):
            reached[cause] += rise
    causes: list[CostCause] = []
    nanos = 0
    for cause, rise in reached.items():
        measure = _MEASURES.get(cause)
        figures = (None, None) if measure is None else (measure(before), measure(after))
        # Rounded after adding up: the last one is exact, and so is the sum of all.
        causes.append(CostCause(cause, Dollars(Decimal(round(rise) - nanos) / NANO), *figures))
        nanos = round(rise)
    return tuple(causes)


_MODEL_CAUSES: tuple[Cause, ...] = ("models", "tokens_per_call", "output_share", "cache_share", "price")
"""Those that are found for each model, in the order of `_rises`."""


def _rises(old: _Calls, new: _Calls, rates: Mapping[str, int]) -> Iterable[Fraction]:
    """How much more the later period has of the cost of one model, by one measure after the other.

    Calls; tokens; tokens of prompts and of output, each at its mean price; tokens of each kind at its price; cost.
    """
    cost = Fraction(old.nanos + new.nanos)
    divided = _divided(cost, (Fraction(old.calls), Fraction(new.calls)))
    yield _rise(divided)
    tokens = (*_PROMPT, *_OUTPUT)
    mean = {kind: _mean_rate(old, new, rates, side) for side in (_PROMPT, _OUTPUT) for kind in side}
    for weights in (dict.fromkeys(tokens, Fraction(1)), mean, {kind: Fraction(rates[kind]) for kind in tokens}):
        old_weight, new_weight = (
            sum((each.tokens[kind] * weights[kind] for kind in tokens), Fraction(0)) for each in (old, new)
        )
        divided = _divided(cost, (old_weight, new_weight), divided)
        yield _rise(divided)
    yield Fraction(new.nanos - old.nanos)


def _mean_rate(old: _Calls, new: _Calls, rates: Mapping[str, int], kinds: Iterable[str]) -> Fraction:
    """What a token of these kinds cost on average, in both periods together."""
    numbers = {kind: old.tokens[kind] + new.tokens[kind] for kind in kinds}
    whole = sum(count * rates[kind] for kind, count in numbers.items())
    return Fraction(whole) / (sum(numbers.values()) or 1)


def _divided(cost: Fraction, by: _Pair, otherwise: _Pair = (Fraction(0), Fraction(0))) -> _Pair:
    """A cost between two periods in proportion to a measure; as `otherwise` if neither has anything of it."""
    whole = sum(by, Fraction(0))
    return (cost * by[0] / whole, cost * by[1] / whole) if whole else otherwise


def _rise(pair: _Pair) -> Fraction:
    return pair[1] - pair[0]


def _ratio(part: Fraction | int, whole: Fraction | int) -> float | None:
    return float(Fraction(part) / whole) if whole else None


_MEASURES: dict[Cause, Callable[[_Priced], float | None]] = {
    "sessions": lambda period: float(period.sessions),
    "calls_per_session": lambda period: _ratio(period.sum(lambda each: each.calls), period.sessions),
    "tokens_per_call": lambda period: _ratio(
        period.sum(lambda each: each.of((*_PROMPT, *_OUTPUT))), period.sum(lambda each: each.calls)
    ),
    "output_share": lambda period: _ratio(
        period.sum(lambda each: each.of(_OUTPUT)), period.sum(lambda each: each.of((*_PROMPT, *_OUTPUT)))
    ),
    "cache_share": lambda period: _ratio(
        period.sum(lambda each: each.tokens["cache_read"]), period.sum(lambda each: each.of(_PROMPT))
    ),
}
