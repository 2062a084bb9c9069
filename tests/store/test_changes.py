"""What changed in a session between two commits: all of it, each thing once, and an honest None."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.toy_agent import line, session_id
from support.toy_store import ToyStore
from turnlog.store import open_store
from turnlog.store.base import Store
from turnlog.store.sqlite import changes
from turnlog.store.writing import sessions
from turnlog.sync.rebuild import rebuild

S = session_id("s")


def prompt(message: str, parent: str | None = None, **fields: Any) -> bytes:
    return line(kind="prompt", id=f"r-{message}", parent=parent, message=message, text=message, **fields)


def answer(message: str, parent: str | None = None, **fields: Any) -> bytes:
    known = {"model": "opus", "tokens": [10, 5], "stop": "end", **fields}
    return line(kind="text", id=f"r-{message}", parent=parent, message=message, text=message, **known)


@pytest.fixture
def toys(tmp_path: Path) -> Iterator[ToyStore]:
    with ToyStore(tmp_path) as found:
        yield found


@pytest.fixture
def store(toys: ToyStore) -> Iterator[Store]:
    with open_store(toys.path) as found:
        yield found


class Reported:
    """What a span of the change sequence has of a session."""

    def __init__(self, store: Store, after: int, session: str = S) -> None:
        found = store.session_changes(session, after, store.last_change())
        assert found is not None
        messages = [msgspec.json.decode(message) for message in found.messages]
        self.messages = [message["id"] for message in messages]
        self.rows = msgspec.json.decode(found.rows)
        self.fates = {row["message_id"]: row["fate"] for row in self.rows}
        self.gone, self.gone_events = found.gone_messages, found.gone_events
        self.events = [event["type"] for event in msgspec.json.decode(found.events)]


def test_new_messages_are_reported_with_their_places(toys: ToyStore, store: Store) -> None:
    toys.add("s.log", prompt("m1"))
    before = store.last_change()
    toys.add("s.log", answer("m2", "r-m1"), prompt("m3", "r-m2"))
    reported = Reported(store, before)
    assert reported.messages == ["m2", "m3"]
    assert [row["message_id"] for row in reported.rows] == ["m2", "m3"]
    assert [row["turn"] for row in reported.rows] == [1, 2]


def test_a_result_names_its_call_again(toys: ToyStore, store: Store) -> None:
    toys.add("s.log", prompt("m1"), line(kind="call", id="r-m2", message="m2", call="c1", tool="Bash", model="opus"))
    before = store.last_change()
    toys.add("s.log", line(kind="result", id="r-1", call="c1", text="done"))
    reported = Reported(store, before)
    assert reported.messages == ["m2"]
    assert [result for result, _ in reported.rows[0]["results"]] != []


def test_a_rewind_names_fates_without_bodies(toys: ToyStore, store: Store) -> None:
    toys.add("s.log", prompt("m1"), answer("m2", "r-m1"), prompt("m3", "r-m2"), answer("m4", "r-m3"))
    before = store.last_change()
    toys.add("s.log", prompt("m5", "r-m2"))
    reported = Reported(store, before)
    assert reported.messages == ["m5"]
    assert reported.fates == {"m5": "active", "m3": "rewound", "m4": "rewound"}


def test_a_compaction_names_its_event_and_the_fates(toys: ToyStore, store: Store) -> None:
    toys.add("s.log", prompt("m1"), answer("m2", "r-m1"))
    before = store.last_change()
    toys.add("s.log", line(kind="compact", id="r-c", parent="r-m2"), prompt("m3", "r-c"))
    reported = Reported(store, before)
    assert reported.events == ["compaction"]
    assert reported.fates["m1"] == reported.fates["m2"] == "compacted"


def test_spans_that_meet_have_everything_once(toys: ToyStore, store: Store) -> None:
    toys.add("s.log", prompt("m0"))
    places = [store.last_change()]
    for number in range(1, 6):
        toys.add("s.log", prompt(f"m{number}", f"r-m{number - 1}"))
        toys.add("other.log", prompt(f"o{number}"))
        places.append(store.last_change())
    found: list[str] = []
    for after, until in pairwise(places):
        changes = store.session_changes(S, after, until)
        assert changes is not None
        found += [msgspec.json.decode(message)["id"] for message in changes.messages]
    assert found == [f"m{number}" for number in range(1, 6)]


def test_a_copy_in_a_fork_is_a_change_of_the_fork(toys: ToyStore, store: Store) -> None:
    toys.add("s.log", prompt("m1"), answer("m2", "r-m1"))
    toys.add("fork.log", prompt("f0"), prompt("f1", "r-f0"))
    before = store.last_change()
    toys.add("fork.log", prompt("m1"), answer("m2", "r-m1"))
    reported = Reported(store, before, session_id("fork"))
    assert reported.messages == ["m1", "m2"]
    assert reported.fates == {"m1": "active", "m2": "active", "f0": "rewound", "f1": "rewound"}


def test_too_many_changes_are_not_listed(toys: ToyStore, store: Store) -> None:
    before = store.last_change()
    toys.add("s.log", *[prompt(f"m{number}") for number in range(8)])
    assert store.session_changes(S, before, store.last_change(), limit=7) is None
    assert store.session_changes(S, before, store.last_change(), limit=8) is not None


def test_what_is_gone_is_reported(toys: ToyStore, store: Store) -> None:
    """A stream gives way to the log: its messages and events are no longer part of the session."""
    toys.add("s.stream", prompt("p1"), answer("p2", "r-p1"), line(kind="strange", id="e1"))
    (event,) = store.events(S)
    before = store.last_change()
    toys.add("s.log", prompt("m1"), answer("p2", "r-m1"))
    reported = Reported(store, before)
    assert reported.messages == ["m1"]
    assert reported.gone == ["p1"]
    assert [position for position, _ in reported.gone_events] == [event.position]
    assert Reported(store, store.last_change()).gone == []


def test_what_left_is_forgotten_after_a_while(toys: ToyStore, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "LONGEST_MEMORY", 3)
    toys.add("s.stream", prompt("p1"))
    toys.add("s.log", prompt("m1"))
    toys.add("t.stream", prompt("q1"))
    for number in range(4):
        toys.add("t.log", prompt(f"n{number}"))
    toys.add("u.stream", prompt("r1"))
    toys.add("u.log", prompt("o1"))
    assert [row[0] for row in toys.rows("SELECT id FROM gone")] == ["r1"]


def test_after_a_rebuild_everything_is_read_again(toys: ToyStore, store: Store) -> None:
    toys.add("s.log", prompt("m1"))
    before = store.last_change()
    rebuild(toys.path, agents=[toys.agent])
    assert store.session_changes(S, before, store.last_change()) is None


def test_parents_are_those_of_subagents(toys: ToyStore, store: Store) -> None:
    toys.add("s.log", prompt("m1"))
    toys.add("s.child.sub", prompt("c1"))
    children = [session.id for session in store.children(S)]
    assert store.parents([S, *children, "toy:nobody"]) == dict.fromkeys(children, S)


def test_a_long_session_is_not_walked(toys: ToyStore) -> None:
    """Each query goes along the numbers of changes, however long the session and the store."""
    for statement in (
        changes.CHANGED,
        changes.JOINED,
        changes.MOVED_ALONE,
        changes.CHANGED_EVENTS,
        changes.GONE_MESSAGES,
    ):
        plan = [row[3] for row in toys.rows(f"EXPLAIN QUERY PLAN {statement}", 1, 1, 1, 1)]
        assert "_by_change (changed_seq>? AND changed_seq<?)" in plan[0] or "PRIMARY KEY (seq>?" in plan[0], plan
        assert not [step for step in plan[1:] if "(session_key=?)" in step], plan


def test_changes_of_long_ago_are_not_walked(toys: ToyStore) -> None:
    """The same plan can begin at the first change of all: what counts is how many steps it takes."""
    toys.add("s.log", b"".join(prompt(f"m{number}") for number in range(300)))
    with closing(sqlite3.connect(toys.path)) as connection:
        connection.execute("UPDATE memberships SET changed_seq = 1")
        connection.execute("UPDATE events SET changed_seq = 1")
        steps = 0

        def count() -> None:
            nonlocal steps
            steps += 1

        connection.set_progress_handler(count, 1)
        for statement in (changes.CHANGED, changes.JOINED, changes.MOVED_ALONE, changes.CHANGED_EVENTS):
            steps = 0
            assert connection.execute(statement, (1, 1000, 1001, 200)).fetchall() == []
            assert 0 < steps < 200, statement
