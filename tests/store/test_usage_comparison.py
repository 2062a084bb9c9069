"""Two periods of usage beside each other, and why the later one cost more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from support.plain_agent import Log
from support.plain_store import read_home
from turnlog.model import Message, Usage
from turnlog.store import open_store
from turnlog.store.usage_comparison import UsageComparison, compare_usage

FIRST = datetime(2026, 11, 2, tzinfo=UTC)
DAY = timedelta(days=1)


def compared(
    path: Path,
    sessions: dict[str, list[tuple[datetime, str, int]]],
    since: datetime = FIRST + DAY,
    until: datetime = FIRST + 2 * DAY,
    zone: tzinfo = UTC,
) -> UsageComparison:
    """Sessions of model calls: when, by which model, with how many tokens of input."""
    folder = path / "logs"
    folder.mkdir()
    for name, calls in sessions.items():
        log = Log(folder, name)
        for index, (at, model, tokens) in enumerate(calls):
            usage = Usage(input=tokens)
            log.message(Message(id=f"{name}{index}", role="assistant", model=model, created_at=at, usage=usage))
    read_home(path / "turnlog.db", folder)
    with open_store(path / "turnlog.db") as store:
        return compare_usage(store, since, until, zone=zone)


def causes(comparison: UsageComparison) -> dict[str, Decimal]:
    return {each.cause: each.cost_change for each in comparison.causes if each.cost_change}


BEFORE = [(FIRST, "large", 100), (FIRST, "large", 100)]


@pytest.mark.parametrize(
    ("cause", "after"),
    [
        ("sessions", {"b": [(FIRST + DAY, "large", 100)] * 2, "c": [(FIRST + DAY, "large", 100)] * 2}),
        ("calls_per_session", {"b": [(FIRST + DAY, "large", 100)] * 3}),
        ("tokens_per_call", {"b": [(FIRST + DAY, "large", 250)] * 2}),
    ],
)
def test_a_single_cause_has_all_of_the_change(
    cause: str, after: dict[str, list[tuple[datetime, str, int]]], tmp_path: Path
) -> None:
    comparison = compared(tmp_path, {"a": BEFORE, **after})
    assert comparison.cost_change > 0
    assert causes(comparison) == {cause: comparison.cost_change}


def test_a_model_of_another_price_is_a_cause_of_its_own(tmp_path: Path) -> None:
    comparison = compared(tmp_path, {"a": BEFORE, "b": [(FIRST + DAY, "small", 20)] * 2})
    assert causes(comparison) == {"models": comparison.cost_change}
    assert comparison.cost_change < 0
    rows = {row.name: (row.earlier.calls, row.later.calls) for row in comparison.models}
    assert rows == {"large": (2, 0), "small": (0, 2)}


def test_an_empty_period_has_no_causes(tmp_path: Path) -> None:
    comparison = compared(tmp_path, {"b": [(FIRST + DAY, "large", 100)]})
    assert (comparison.earlier.sessions, comparison.later.sessions, comparison.causes) == (0, 1, ())


def test_a_call_without_a_price_is_named_and_changes_no_cost(tmp_path: Path) -> None:
    comparison = compared(tmp_path, {"a": BEFORE, "b": [*BEFORE, (FIRST + DAY, "secret", 100)]})
    assert comparison.later.totals.cost is None
    assert any(sentence.startswith("Later: 1 call without a known price") for sentence in comparison.missing)


@pytest.mark.parametrize(
    ("since", "until", "before"),
    [
        ("2026-03-01", "2026-04-01", "2026-02-01"),
        ("2026-01-01", "2026-03-01", "2025-11-01"),
        ("2026-03-23", "2026-03-30", "2026-03-16"),
        ("2026-11-10T08:07", "2026-11-11T08:00", "2026-11-09T08:00"),
    ],
)
def test_months_are_compared_with_months_and_other_times_with_as_much_before(
    since: str, until: str, before: str, tmp_path: Path
) -> None:
    zone = ZoneInfo("Europe/Berlin")
    times = [datetime.fromisoformat(text).replace(tzinfo=zone) for text in (since, until, before)]
    comparison = compared(tmp_path, {}, times[0], times[1], zone)
    assert comparison.earlier.since == times[2]
    assert comparison.earlier.until == comparison.later.since


def test_a_period_without_a_length_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ends before it begins"):
        compared(tmp_path, {}, FIRST, FIRST)
