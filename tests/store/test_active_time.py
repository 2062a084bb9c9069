"""Sums of several-day sessions that are kept: whatever happens to a store, days are as active as without them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, date
from pathlib import Path
from random import Random
from typing import Final
from zoneinfo import ZoneInfo

import msgspec
import pytest

from support.changing_history import DAY, HAPPENINGS, History
from support.plain_agent import Log, PlainAgent
from support.plain_store import at
from turnlog.model import Message
from turnlog.store import open_store
from turnlog.store.base import UsageFilter
from turnlog.store.connection import connect
from turnlog.store.sqlite import active_time
from turnlog.store.sqlite.usage import UsageStore
from turnlog.sync.rebuild import rebuild

ZONES: Final = (UTC, ZoneInfo("Asia/Kathmandu"), ZoneInfo("Australia/Lord_Howe"))

FILTERS: Final = (
    UsageFilter(),
    UsageFilter(since=at(3 * DAY + 17), until=at(20 * DAY + 700)),
    UsageFilter(project="/w/shop"),
    UsageFilter(agent="plain", user="ann"),
)


class AddedUp(UsageStore):
    """Reports that read no sums."""

    _keeps_days = False


@pytest.fixture(autouse=True)
def one_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(active_time, "_FEW", 0)


def check(path: Path) -> int:
    """Milliseconds of the first report."""
    found: list[int] = []
    with open_store(path) as store, AddedUp(path) as other:
        for zone in ZONES:
            for wanted in FILTERS:
                expected = other.usage("day", wanted, zone=zone, active=True)
                # Twice: the first report keeps what the second one reads.
                assert store.usage("day", wanted, zone=zone, active=True) == expected
                assert store.usage("day", wanted, zone=zone, active=True) == expected
                found.append(expected.active_ms or 0)
    return found[0]


def kept(path: Path) -> dict[str, int]:
    """Sums that count, by session, and how many do not as `""`."""
    with closing(sqlite3.connect(path)) as connection:
        return dict(
            connection.execute(
                "SELECT iif(k.changed_seq = s.changed_seq, s.external_id, ''), count(*) FROM kept_activity k"
                " LEFT JOIN sessions s ON s.key = k.session_key GROUP BY 1"
            ).fetchall()
        )


def works(history: History) -> None:
    """Somebody works with a session around midnight, with pauses that are too long now and then."""
    name, minute = history.random.choice(list(history.written)), DAY * history.random.randrange(30) + 850
    for _ in range(20):
        minute += history.random.choice((0.2, 3, 8, 9.9, 10.1, 40))
        message = Message(id=f"w{history.random.getrandbits(48)}", role="assistant", created_at=at(minute))
        Log(history.home, name).message(message)
        history.written[name].append(message)
    history.read()


def is_timed_anew(history: History) -> None:
    """A message turns out to be of another time."""
    name = history.random.choice([name for name, messages in history.written.items() if messages])
    message = history.random.choice(history.written[name])
    moved = at(history.random.uniform(0, 30 * DAY))
    Log(history.home, name).message(msgspec.structs.replace(message, created_at=moved))
    history.read()


def is_rebuilt(history: History) -> None:
    rebuild(history.path, agents=[PlainAgent()])


@pytest.mark.parametrize("seed", range(2))
def test_whatever_happens_days_are_as_active_as_without_kept_sums(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path, seed)
    for _ in range(4):
        works(history)
    assert check(history.path) > 0
    assert kept(history.path)
    happenings = [works, works, is_timed_anew, is_timed_anew, is_rebuilt, *HAPPENINGS]
    Random(seed).shuffle(happenings)
    for happening in happenings:
        happening(history)
        check(history.path)
    works(history)
    check(history.path)


def test_only_a_session_that_has_changed_is_added_up_again(tmp_path: Path) -> None:
    history = History(tmp_path, 1)
    for _ in range(6):
        works(history)
    check(history.path)
    before = kept(history.path)
    assert "" not in before
    works(history)
    assert kept(history.path) == {"": 1} | {name: 1 for name in before if name in kept(history.path)}
    assert len(kept(history.path)) == len(before)
    check(history.path)
    assert "" not in kept(history.path)


def test_a_forgotten_session_leaves_no_sums(tmp_path: Path) -> None:
    history = History(tmp_path, 1)
    for _ in range(6):
        works(history)
    check(history.path)
    while before := set(kept(history.path)):
        with open_store(history.path) as store:
            gone = next(session for session in store.sessions().items if session.external_id in before)
            store.forget(gone.id)
        assert set(kept(history.path)) == before - {gone.external_id}


def test_a_store_that_is_being_written_answers_without_keeping_sums(tmp_path: Path) -> None:
    history = History(tmp_path, 2)
    works(history)
    with closing(sqlite3.connect(history.path, isolation_level=None)) as writer, open_store(history.path) as store:
        writer.execute("BEGIN IMMEDIATE")
        assert store.usage(active=True).active_ms
        writer.execute("ROLLBACK")
    assert kept(history.path) == {}


def test_times_that_no_calendar_has_are_of_its_last_day(tmp_path: Path) -> None:
    """A damaged log may say any time."""
    history = History(tmp_path, 2)
    works(history)
    with closing(sqlite3.connect(history.path)) as connection, connection:
        connection.execute("UPDATE messages SET created_at = created_at + (1 << 60)")
        connection.execute("UPDATE sessions SET updated_at = NULL")
    with closing(connect(history.path)) as connection:
        for zone in ZONES:
            found = active_time.active_by_day(connection, UsageFilter(), zone, reads_kept=False)
            assert set(found.by_day) == {date.max}
