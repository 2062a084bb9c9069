"""Numbers as people read them; unknown is a dash."""

import json
import time
from datetime import UTC, datetime
from decimal import Decimal

import msgspec
import pytest

from support.agent_cases import DATA
from turnlog.cli import formatting
from turnlog.model import Relationship, Session
from turnlog.model.session import RelationshipKind

FORMATS: dict[str, list[tuple[float, str]]] = json.loads((DATA / "number_formats.json").read_text())
"""The page's tests read the same table (`web/tests/formats.test.ts`)."""


def test_numbers_have_one_format_on_the_terminal_and_on_the_page() -> None:
    tokens, dollars, durations = FORMATS["tokens"], FORMATS["dollars"], FORMATS["milliseconds"]
    assert [formatting.tokens(int(number)) for number, _ in tokens] == [shown for _, shown in tokens]
    assert [formatting.money(Decimal(str(number))) for number, _ in dollars] == [shown for _, shown in dollars]
    assert [formatting.duration(number) for number, _ in durations] == [shown for _, shown in durations]
    assert [formatting.share(number) for number, _ in FORMATS["shares"]] == [shown for _, shown in FORMATS["shares"]]


def test_unknown_numbers_are_dashes_and_sums_that_lack_calls_are_marked() -> None:
    assert formatting.tokens(None) == formatting.money(None, 3) == formatting.duration(None) == formatting.UNKNOWN
    assert formatting.money(Decimal("12.3"), 1) == "≥ $12.30"
    assert formatting.money(Decimal(0), 2) == "≥ $0"


def test_a_log_with_one_time_does_not_say_how_long_its_session_took() -> None:
    at = datetime(2026, 11, 26, 11, 43, 55, tzinfo=UTC)
    one = Session(id="demo:one", agent="demo", external_id="one", created_at=at, updated_at=at)
    assert formatting.duration(formatting.span(one)) == formatting.UNKNOWN
    two = msgspec.structs.replace(one, updated_at=at.replace(second=59))
    assert formatting.duration(formatting.span(two)) == "4.0 s"


def test_a_session_of_shared_messages_has_no_cost_an_empty_one_zero() -> None:
    empty = Session(id="demo:new", agent="demo", external_id="new")
    assert formatting.cost_of(empty) == "$0"
    dash = formatting.UNKNOWN
    kinds: dict[RelationshipKind, str] = {"continuation": dash, "fork": dash, "subagent": "$0"}
    for kind, shown in kinds.items():
        link = Relationship(kind=kind, parent_session_id="demo:old")
        assert formatting.cost_of(msgspec.structs.replace(empty, relationships=(link,))) == shown


def test_changes_have_a_sign_and_there_is_none_from_nothing() -> None:
    assert [
        formatting.change(*pair)
        for pair in ((100, 150), (100, 25), (2, 42), (3, 3), (1000, 999), (0, 5), (None, 5), (5, None))
    ] == [
        "+50 %",
        "-75 %",
        "+2,000 %",
        "0 %",
        "0 %",
        *[formatting.UNKNOWN] * 3,
    ]


def test_only_a_change_to_nothing_is_one_of_a_hundred_percent() -> None:
    pairs = ((Decimal("98.81"), Decimal("0.35")), (1000, 5), (100_000, 1), (98.81, 0), (1000, 6))
    assert [formatting.change(*pair) for pair in pairs] == ["-99.6 %", "-99.5 %", "< -99.9 %", "-100 %", "-99 %"]


def test_things_with_one_label_are_distinguished_by_their_names() -> None:
    pairs = [("/a/shop", "shop"), ("/b/shop", "shop"), ("/b/blog", "blog"), ("gpt", None), (None, None)]
    assert formatting.named_apart([*pairs, *pairs]) == {
        "/a/shop": "/a/shop",
        "/b/shop": "/b/shop",
        "/b/blog": "blog",
        "gpt": "gpt",
        None: "unknown",
    }


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
