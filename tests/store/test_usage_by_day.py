"""Sums of days that are kept: whatever happens to a store, a report says what it says row by row."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, tzinfo
from pathlib import Path
from random import Random
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec
import pytest

from support.plain_agent import Log
from support.plain_store import at, price, read_home
from turnlog.model import Message, Usage
from turnlog.store import open_store
from turnlog.store.base import Store, UsageFilter
from turnlog.store.choices import UsageBy
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.store.sqlite.usage import UsageStore
from turnlog.store.usage_report import UsageReport

DAY = 24 * 60

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


class History:
    """A home and its store, to which anything may happen."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = Random(seed)
        self.home = folder / "home"
        self.home.mkdir()
        self.path = folder / "turnlog.db"
        self.written: dict[str, list[Message]] = {}
        for number in range(3):
            self.begin(f"s{number}")
        self.read()

    def read(self, pricer: Any = price) -> None:
        read_home(self.path, self.home, pricer=pricer)

    def begin(self, name: str, copied: tuple[Message, ...] = ()) -> None:
        log = Log(self.home, name)
        log.session(project_path=self.random.choice(("/w/shop", "/w/site", "/w/tool")))
        self.written[name] = []
        for message in copied:
            log.message(message)
        for _ in range(8):
            self.answer(name)

    def answer(self, name: str) -> None:
        random = self.random
        minute = None if random.random() < 0.05 else random.uniform(0, 30 * DAY)
        message = Message(
            id=f"m{random.getrandbits(48)}",
            role="assistant",
            model=random.choice(("large", "small", "secret", None)),
            created_at=None if minute is None else at(minute),
            usage=None if random.random() < 0.1 else Usage(input=random.randrange(1000), output=random.randrange(99)),
        )
        Log(self.home, name).message(message)
        self.written[name].append(message)

    # -- what happens

    def goes_on(self) -> None:
        self.answer(self.random.choice(list(self.written)))
        self.read()

    def begins(self) -> None:
        self.begin(f"s{len(self.written)}")
        self.read()

    def is_forked(self) -> None:
        original = self.random.choice(list(self.written))
        self.begin(f"s{len(self.written)}", tuple(self.written[original][:5]))
        self.read()

    def is_said_again(self) -> None:
        name = self.random.choice([name for name, messages in self.written.items() if messages])
        message = self.random.choice(self.written[name])
        Log(self.home, name).message(msgspec.structs.replace(message, usage=Usage(input=5000, output=7)))
        self.read()

    def moves(self) -> None:
        Log(self.home, self.random.choice(list(self.written))).session(project_path=f"/w/{self.random.randrange(4)}")
        self.read()

    def is_rewritten(self) -> None:
        path = next(self.home.rglob(f"{self.random.choice(list(self.written))}.*"))
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[: max(1, len(lines) // 2)]))
        self.read()

    def is_forgotten(self) -> None:
        with open_store(self.path) as store:
            sessions = store.sessions().items
        if len(sessions) > 2:
            forget_for_good(self.path, self.random.choice(sessions).id)

    def is_merged(self) -> None:
        with open_store(self.path) as store:
            projects = [each.path for each in store.projects()]
            store.rename_project(projects[0], "another name")
            if len(projects) > 1:
                store.merge_projects(*self.random.sample(projects, 2))

    def changes_price(self) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute("UPDATE usage SET cost = cost * 2 WHERE model_key = 1")

    def changes_owner(self) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute("INSERT OR IGNORE INTO owners (user) VALUES ('ann')")
            connection.execute(
                "UPDATE sessions SET owner_key = (SELECT key FROM owners WHERE user = 'ann') WHERE key % 2 = ?",
                (self.random.randrange(2),),
            )


HAPPENINGS: Final[tuple[Callable[[History], None], ...]] = (
    History.goes_on,
    History.begins,
    History.is_forked,
    History.is_said_again,
    History.moves,
    History.is_rewritten,
    History.is_forgotten,
    History.is_merged,
    History.changes_price,
    History.changes_owner,
)


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
