"""Numbers as people read them; unknown is a dash."""

import time
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from turnlog.cli import formatting


@pytest.mark.parametrize(
    ("amount", "unpriced", "shown"),
    [
        (None, 3, formatting.UNKNOWN),
        (Decimal(0), 0, "$0.00"),
        (Decimal(0), 2, "$0.00+"),
        (Decimal("0.000000001"), 0, "<$0.0001"),
        (Decimal("0.0042"), 0, "$0.0042"),
        (Decimal("1234.567"), 0, "$1,234.57"),
        (Decimal("12.3"), 1, "$12.30+"),
    ],
)
def test_money(amount: Decimal | None, unpriced: int, shown: str) -> None:
    assert formatting.money(amount, unpriced) == shown


@pytest.mark.parametrize(
    ("number", "shown"), [(None, formatting.UNKNOWN), (0, "0"), (999, "999"), (12_345, "12.3k"), (4_560_000, "4.56M")]
)
def test_tokens(number: int | None, shown: str) -> None:
    assert formatting.tokens(number) == shown


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (None, formatting.UNKNOWN),
        (85, "85 ms"),
        (2345, "2.3 s"),
        (59_960, "1 min 0 s"),
        (245_000, "4 min 5 s"),
        (3_720_000, "1 h 2 min"),
    ],
)
def test_durations(milliseconds: int | None, shown: str) -> None:
    assert formatting.duration(milliseconds) == shown


def test_sizes_and_counts() -> None:
    assert [formatting.size(number) for number in (0, 999, 1500, 2_500_000, 3 * 10**9)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "2.5 MB",
        "3.0 GB",
    ]
    assert [formatting.plural(number, "reply", "replies") for number in (0, 1, 1200)] == [
        "0 replies",
        "1 reply",
        "1,200 replies",
    ]


def test_unknown_times_are_dashes_for_people_and_null_for_machines() -> None:
    assert formatting.moment(None) == formatting.clock(None) == formatting.UNKNOWN
    assert formatting.iso(None) is None
    assert formatting.iso(datetime(2026, 11, 20, 9, 30, tzinfo=UTC)) == "2026-11-20T09:30:00Z"


@pytest.mark.parametrize(
    ("zone", "at"),
    [("Asia/Tokyo", datetime.max.replace(tzinfo=UTC)), ("America/New_York", datetime.min.replace(tzinfo=UTC))],
)
def test_a_time_that_no_clock_here_can_show_is_shown_in_its_own(
    zone: str, at: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    assert formatting.moment(at).endswith(f"{at:%m-%d %H:%M}")
    assert formatting.clock(at) == f"{at:%H:%M:%S}"
    monkeypatch.undo()
    time.tzset()
