"""Sums of days that are kept: whatever happens to a store, a report says what it says row by row."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, tzinfo
from pathlib import Path
from random import Random
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest

from support.changing_history import DAY, HAPPENINGS, History
from support.plain_store import at
from turnlog.store import open_store
from turnlog.store.base import Store, UsageFilter
from turnlog.store.choices import UsageBy
from turnlog.store.sqlite.usage import UsageStore
from turnlog.store.usage_report import UsageReport

# One that is never a whole number of hours from UTC, one west of it, and one whose clocks change within the history.
ZONES: Final[tuple[tzinfo, ...]] = (
    UTC,
    *map(ZoneInfo, ("Asia/Kathmandu", "America/Los_Angeles", "Pacific/Kiritimati", "Australia/Lord_Howe")),
)

DIVISIONS: Final[tuple[tuple[UsageBy, UsageBy | None], ...]] = (
    ("day", None),
    ("week", "model"),
    ("month", "agent"),
    ("model", None),
    ("project", "day"),
    ("agent", "project"),
)

FILTERS: Final = (
    UsageFilter(),
    UsageFilter(since=at(3 * DAY + 17)),
    UsageFilter(until=at(20 * DAY)),
    UsageFilter(since=at(2 * DAY), until=at(15 * DAY + 700)),
    UsageFilter(project="/w/shop"),
    UsageFilter(model="large", since=at(DAY)),
    UsageFilter(agent="plain", user="ann"),
)


class RowByRow(UsageStore):
    """Reports that read no sums."""

    _keeps_days = False


def reports(store: Store | RowByRow, random: Random) -> Iterator[tuple[Any, UsageReport]]:
    for zone in ZONES:
        for by, then_by in DIVISIONS:
            wanted = random.choice(FILTERS)
            yield (zone, by, then_by, wanted), store.usage(by, wanted, then_by=then_by, zone=zone)


def check(path: Path, seed: int) -> None:
    with open_store(path) as store, RowByRow(path) as other:
        # Twice: the first reports keep days that the second ones read.
        for _ in range(2):
            for (asked, found), (_, expected) in zip(
                reports(store, Random(seed)), reports(other, Random(seed)), strict=True
            ):
                assert found == expected, asked


def kept(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT count(*) FROM usage_by_day").fetchone()[0]


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_a_report_says_what_it_says_row_by_row(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path, seed)
    check(history.path, seed)
    assert kept(history.path) > 0
    happenings = [*HAPPENINGS]
    history.random.shuffle(happenings)
    for happening in happenings:
        happening(history)
        check(history.path, seed)


def test_rows_of_any_time_are_in_the_day_that_their_clocks_show(tmp_path: Path) -> None:
    history = History(tmp_path, 0)
    random = Random(4)
    times = [0, 1, -1, -95, -96, -97, 95, 96, 97, *(random.randrange(-3000, 3000) for _ in range(200))]
    with closing(sqlite3.connect(history.path)) as connection:
        with connection:
            connection.execute("DELETE FROM usage")
            connection.executemany(
                "INSERT INTO usage (quarter_hour, model_key, session_key, calls, input)"
                " SELECT ?, 1, key, 1, 7 FROM sessions LIMIT 1",
                [(time,) for time in sorted({*times})],
            )
        check(history.path, 0)
        for statement in (
            "UPDATE usage SET quarter_hour = quarter_hour + 10000 WHERE quarter_hour % 5 = 0 AND quarter_hour > 0",
            "UPDATE usage SET input = 8 WHERE quarter_hour % 3 = 0",
            "DELETE FROM usage WHERE quarter_hour % 7 = 0",
            "INSERT INTO usage (quarter_hour, model_key, session_key, calls, input)"
            " SELECT quarter_hour, 2, session_key, 1, 1 FROM usage WHERE quarter_hour % 11 = 0",
        ):
            with connection:
                connection.execute(statement)
            check(history.path, 1)


def test_only_the_day_of_a_new_message_is_added_up_again(tmp_path: Path) -> None:
    history = History(tmp_path, 1)
    with open_store(history.path) as store:
        store.usage()
    before = kept(history.path)
    with closing(sqlite3.connect(history.path)) as connection:
        day, rows = connection.execute(
            "SELECT day, count(*) FROM usage_by_day WHERE shift = 0 GROUP BY day LIMIT 1"
        ).fetchone()
        with connection:
            connection.execute("UPDATE usage SET calls = calls + 1 WHERE quarter_hour / 96 = ?", (day,))
    assert kept(history.path) == before - rows


def test_a_store_that_is_being_written_answers_without_keeping_days(tmp_path: Path) -> None:
    history = History(tmp_path, 2)
    with closing(sqlite3.connect(history.path, isolation_level=None)) as writer, open_store(history.path) as store:
        writer.execute("BEGIN IMMEDIATE")
        assert store.usage().totals.calls > 0
        writer.execute("ROLLBACK")
    assert kept(history.path) == 0


def test_a_store_that_may_not_be_written_answers_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(tmp_path, 2)

    def no(path: Path) -> bool:
        return False

    monkeypatch.setattr("turnlog.store.sqlite.days.can_be_written", no)
    with open_store(history.path) as store:
        assert store.usage().totals.calls > 0
    assert kept(history.path) == 0
