"""Two periods of usage beside each other, and why the later one cost more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

import pytest

from support.plain_agent import Log
from support.plain_store import price, read_home
from turnlog.model import Message, Usage
from turnlog.store import open_store
from turnlog.store.usage_comparison import UsageComparison, compare_usage
from turnlog.store.writing.prepared import Pricer

FIRST = datetime(2026, 11, 2, tzinfo=UTC)
DAY = timedelta(days=1)
NEXT = FIRST + DAY

Call = tuple[datetime, str, int | Usage]
"""When, by which model, with how many tokens of input or with which usage."""


def write(folder: Path, sessions: dict[str, list[Call]]) -> None:
    folder.mkdir()
    for name, calls in sessions.items():
        log = Log(folder, name)
        for index, (at, model, tokens) in enumerate(calls):
            usage = Usage(input=tokens) if isinstance(tokens, int) else tokens
            log.message(Message(id=f"{name}{index}", role="assistant", model=model, created_at=at, usage=usage))


def compared(
    path: Path,
    sessions: dict[str, list[Call]],
    since: datetime = NEXT,
    until: datetime = NEXT + DAY,
    zone: tzinfo = UTC,
    pricer: Pricer = price,
) -> UsageComparison:
    write(path / "logs", sessions)
    read_home(path / "turnlog.db", path / "logs", pricer=pricer)
    with open_store(path / "turnlog.db") as store:
        return compare_usage(store, since, until, zone=zone, price=pricer)


def causes(comparison: UsageComparison) -> dict[str, Decimal]:
    return {each.cause: each.cost_change for each in comparison.causes if each.cost_change}


BEFORE: list[Call] = [(FIRST, "large", 100), (FIRST, "large", 100)]
"""Two calls of ten cents each: a token costs a tenth of a cent (`support.plain_store.price`)."""

AFTER: list[Call] = [(NEXT, "large", 100), (NEXT, "large", 100)]


@pytest.mark.parametrize(
    ("cause", "after"),
    [
        ("sessions", {"b": AFTER, "c": AFTER}),
        ("calls_per_session", {"b": [*AFTER, (NEXT, "large", 100)]}),
        ("models", {"b": [(NEXT, "small", 20)] * 2}),
        ("tokens_per_call", {"b": [(NEXT, "large", 250)] * 2}),
    ],
)
def test_a_single_cause_has_all_of_the_change(cause: str, after: dict[str, list[Call]], tmp_path: Path) -> None:
    comparison = compared(tmp_path, {"a": BEFORE, **after})
    assert comparison.cost_change
    assert causes(comparison) == {cause: comparison.cost_change}


def by_kind(usage: Usage | None, model: str | None, provider: str | None, at: datetime | None) -> int | None:
    """A cent for a token of a prompt, a tenth of that from the cache, five cents for output; `dearer` since NEXT."""
    del provider
    if usage is None or model is None:
        return None
    nanos = 10_000_000 * (usage.input or 0) + 1_000_000 * (usage.cache_read or 0) + 50_000_000 * (usage.output or 0)
    return nanos * 2 if model == "dearer" and at is not None and at >= NEXT else nanos


@pytest.mark.parametrize(
    ("cause", "model", "after", "change"),
    [
        # $10 for 1,000 tokens, then $5 + $0.50.
        ("cache_share", "large", Usage(input=500, cache_read=500), "-4.5"),
        # Then $9 + $5.
        ("output_share", "large", Usage(input=900, output=100), "4"),
        ("price", "dearer", Usage(input=1000), "10"),
    ],
)
def test_kinds_of_tokens_and_their_prices_are_causes_of_their_own(
    cause: str, model: str, after: Usage, change: str, tmp_path: Path
) -> None:
    calls: dict[str, list[Call]] = {"a": [(FIRST, model, 1000)], "b": [(NEXT, model, after)]}
    assert causes(compared(tmp_path, calls, pricer=by_kind)) == {cause: Decimal(change)}


def test_several_causes_add_up_as_worked_out_by_hand(tmp_path: Path) -> None:
    """$0.20, then $0.60: one session and two calls of `large`, then two sessions, and a call of the new model `small`.

    The $0.80 of both divided as 1 to 2 sessions rise by 0.8 / 3; as 2 to 3 calls, by 0.8 / 5 = 0.16. By the calls of
    each model, `large` (2 and 2 calls) rises by nothing and `small` by all of its 0.40.
    """
    comparison = compared(tmp_path, {"a": BEFORE, "b": AFTER, "c": [(NEXT, "small", 400)]})
    assert causes(comparison) == {
        "sessions": Decimal("0.266666667"),
        "calls_per_session": Decimal("-0.106666667"),
        "models": Decimal("0.24"),
    }
    measures = {each.cause: (each.earlier, each.later) for each in comparison.causes}
    assert measures["sessions"] == (1, 2)
    assert measures["calls_per_session"] == (2, 1.5)
    assert measures["tokens_per_call"] == (100, 200)
    rows = {row.name: (row.earlier.calls, row.later.calls, row.cost_change) for row in comparison.models}
    assert rows == {"large": (2, 2, 0), "small": (0, 1, Decimal("0.4"))}


@pytest.mark.parametrize(("at", "change"), [(NEXT, Decimal("0.1")), (FIRST, Decimal("-0.1"))])
def test_a_period_without_calls_has_all_of_the_change_in_its_sessions(
    at: datetime, change: Decimal, tmp_path: Path
) -> None:
    comparison = compared(tmp_path, {"b": [(at, "large", 100)]})
    assert causes(comparison) == {"sessions": change} == {"sessions": comparison.cost_change}


def test_two_periods_without_calls_have_no_causes(tmp_path: Path) -> None:
    comparison = compared(tmp_path, {})
    assert (comparison.cost_change, comparison.causes) == (0, ())


def test_calls_and_sessions_without_a_price_are_named_and_cause_nothing(tmp_path: Path) -> None:
    secret: list[Call] = [(NEXT, "secret", 100)]
    comparison = compared(tmp_path, {"a": BEFORE, "b": [*AFTER, *secret], "c": secret})
    assert (comparison.cost_change, causes(comparison)) == (0, {})
    assert comparison.later.sessions == 2
    assert {(each.earlier, each.later) for each in comparison.causes if each.cause == "sessions"} == {(1, 1)}
    assert comparison.later.totals.unpriced_calls == 2
    assert any(sentence.startswith("Later: 2 calls without a known price") for sentence in comparison.missing)


def test_an_unpriced_call_has_the_mean_tokens_of_model_and_session(tmp_path: Path) -> None:
    """300 and 100 tokens, of which only the first call has a price: one call of 200 tokens, as far as is known."""

    def only_long(usage: Usage | None, model: str | None, provider: str | None, at: datetime | None) -> int | None:
        return None if usage is None or usage.input == 100 else price(usage, model, provider, at)

    calls: list[Call] = [(NEXT, "large", 300), (NEXT, "large", 100)]
    comparison = compared(tmp_path, {"a": [(FIRST, "large", 300)], "b": calls}, pricer=only_long)
    measures = {each.cause: (each.earlier, each.later) for each in comparison.causes}
    assert measures["calls_per_session"] == (1, 1)
    assert measures["tokens_per_call"] == (300, 200)
    # The same cost of fewer tokens: each cost more.
    assert causes(comparison) == {"tokens_per_call": Decimal("-0.12"), "price": Decimal("0.12")}


def test_a_period_with_unpriced_calls_has_no_known_change(tmp_path: Path) -> None:
    comparison = compared(tmp_path, {"a": BEFORE, "b": [(NEXT, "secret", 100)]})
    assert comparison.later.totals.cost is None
    assert (comparison.cost_change, comparison.causes) == (None, ())
    assert {row.name: row.cost_change for row in comparison.models} == {"large": Decimal("-0.2"), "secret": None}


def test_causes_add_up_exactly_and_stay_within_twice_their_cost(tmp_path: Path) -> None:
    """Random days, each odd one between two equal ones: what the first change has, the next takes back."""
    random = Random(19)
    pairs = 30
    sessions: dict[str, list[Call]] = {}
    for day in range(2 * pairs):
        for number in range(random.randint(0, 3)):
            calls = [
                (random.choice(("large", "small", "secret", "rare")), some_usage(random))
                for _ in range(random.choice((1, 2, 40)))
            ]
            for copy in (0, 2) if day % 2 == 0 else (0,):
                at = FIRST + (day // 2 * 4 + day % 2 + copy) * DAY
                sessions[f"s{day}-{number}-{copy}"] = [(at, *call) for call in calls]
    write(tmp_path / "logs", sessions)
    read_home(tmp_path / "turnlog.db", tmp_path / "logs", pricer=varied)
    checked = 0
    with open_store(tmp_path / "turnlog.db") as store:
        for pair in range(pairs):
            first = FIRST + pair * 4 * DAY
            there, back = (
                compare_usage(store, first + day * DAY, first + (day + 1) * DAY, zone=UTC, price=varied)
                for day in (1, 2)
            )
            if there.cost_change is None:
                assert (back.cost_change, there.causes) == (None, ())
                continue
            checked += 1
            assert sum(each.cost_change for each in there.causes) == there.cost_change
            bound = 2 * ((there.earlier.totals.cost or 0) + (there.later.totals.cost or 0))
            assert all(abs(each.cost_change) <= bound for each in there.causes)
            assert [each.cost_change for each in back.causes] == [
                pytest.approx(-each.cost_change, abs=Decimal("0.000000002")) for each in there.causes
            ]
    assert checked > pairs / 2


def some_usage(random: Random) -> Usage:
    size = 10 ** random.randint(0, 5)
    return Usage(input=random.randint(0, size), cache_read=random.randint(0, size), output=random.randint(0, size))


def varied(usage: Usage | None, model: str | None, provider: str | None, at: datetime | None) -> int | None:
    """As `by_kind`, with other prices for each model and none for one; long prompts of `rare` cost twice as much."""
    nanos = by_kind(usage, model, provider, at)
    if nanos is None or usage is None or model == "secret":
        return None
    return {"large": nanos, "small": nanos // 100, "rare": nanos * (2 if (usage.input or 0) > 5000 else 1)}[model or ""]


@pytest.mark.parametrize(
    ("since", "until", "before"),
    [
        ("2026-03-01", "2026-04-01", "2026-02-01"),
        ("2026-01-01", "2026-03-01", "2025-11-01"),
        ("2026-03-23", "2026-03-30", "2026-03-16"),
        ("2026-11-10T08:07", "2026-11-11T08:00", "2026-11-09T08:00"),
        ("2026-11-03", "2026-11-06", "2026-10-31"),
    ],
)
def test_months_are_compared_with_months_other_times_by_length(
    since: str, until: str, before: str, tmp_path: Path
) -> None:
    zone = ZoneInfo("Europe/Berlin")
    times = [datetime.fromisoformat(text).replace(tzinfo=zone) for text in (since, until, before)]
    comparison = compared(tmp_path, {}, times[0], times[1], zone)
    assert comparison.earlier.since == times[2]
    assert comparison.earlier.until == comparison.later.since


@pytest.mark.parametrize(
    ("since", "until", "before", "before_end"),
    [
        ("2026-11-23", "2026-11-28", "2026-11-16", "2026-11-21"),
        ("2026-11-23", "2026-11-25T14:30", "2026-11-16", "2026-11-18T14:30"),
        ("2026-11-01", "2026-11-11", "2026-10-01", "2026-10-11"),
        ("2026-03-01", "2026-03-31", "2026-02-01", "2026-03-01"),
        ("2026-01-01", "2026-01-03", "2025-12-01", "2025-12-03"),
        ("2026-02-01", "2026-02-02", "2026-01-31", "2026-02-01"),
        ("2026-11-23", "2026-11-24", "2026-11-22", "2026-11-23"),
    ],
)
def test_first_days_of_a_period_are_compared_with_those_before(
    since: str, until: str, before: str, before_end: str, tmp_path: Path
) -> None:
    """Also where the clocks change in between; February has no 30 days. One day is compared with the one before."""
    zone = ZoneInfo("Europe/Berlin")
    times = [datetime.fromisoformat(text).replace(tzinfo=zone) for text in (since, until, before, before_end)]
    comparison = compared(tmp_path, {}, times[0], times[1], zone)
    assert (comparison.earlier.since, comparison.earlier.until) == (times[2], times[3])


def test_a_period_without_a_length_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ends before it begins"):
        compared(tmp_path, {}, FIRST, FIRST)
