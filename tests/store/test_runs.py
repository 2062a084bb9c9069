"""Rows of runs: what is saved comes back, page by page, and goes with its session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from support.plain_store import at, read_home
from support.server_history import FORK, MAIN, write_history
from support.toy_agent import line
from support.toy_store import ToyStore
from turnlog.errors import NotFoundError
from turnlog.model import Usage
from turnlog.store import connect_sql, open_store
from turnlog.store.base import RunFilter, Store
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.store.values import Run
from turnlog.sync.rebuild import rebuild

START = datetime(2026, 11, 21, 10, tzinfo=UTC)


def run(id: str, minute: int = 0, **facts: Any) -> Run:
    made = START + timedelta(minutes=minute)
    known: dict[str, Any] = {"origin": "command", "status": "completed", "created_at": made, **facts}
    return Run(id=id, **known)


def write(path: Path, *found: Run) -> None:
    with open_store(path, create=True) as store:
        for each in found:
            store.save_run(each)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "turnlog.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with open_store(path, create=True) as opened:
        yield opened


WHOLE = run(
    "5d1f",
    agent="claude-code",
    session_id="claude-code:x",
    command=("claude", "-p", "hé\n"),
    cwd="/work",
    prompt="hé",
    model="opus",
    system_prompt="Be short.",
    started_at=START,
    ended_at=START + timedelta(seconds=3),
    exit_code=-15,
    error="ended by SIGTERM",
    result="done",
    log_path="/log",
    log_problem="none was found",
    usage=Usage(input=3, output=4),
    cost=Decimal("0.012345678"),
    tool_calls=7,
    pid=77,
    boot_id="boot",
    process_start="12",
    metadata={"phase": {"id": 1}},
)


def test_a_run_comes_back_as_it_was(path: Path, store: Store) -> None:
    bare = run("0000", 1, status="pending")
    write(path, WHOLE, bare)
    assert [store.run("5d1f"), store.run("0000")] == [WHOLE, bare]
    assert (WHOLE.is_finished, bare.is_finished) == (True, False)


def test_a_run_is_saved_in_its_own_place(path: Path, store: Store) -> None:
    write(path, run("a", status="running", pid=3), run("b"))
    write(path, run("a", status="failed", error="why"))
    page = store.runs()
    assert (page.total, store.run("a").error, store.run("a").pid) == (2, "why", None)


def test_text_that_utf8_cannot_hold_is_repaired(path: Path, store: Store) -> None:
    write(path, run("a", prompt="a \ud800 lone half"))
    assert store.run("a").prompt == "a ? lone half"


def test_a_beginning_of_an_id_is_enough(path: Path, store: Store) -> None:
    write(path, run("aa11"), run("aa22"), run("b%_"))
    assert store.run("aa1").id == "aa11"
    for text in ("aa", "zz", "", "%", "b_"):
        with pytest.raises(NotFoundError):
            store.run(text)


def test_pages_go_from_new_to_old_and_hold_everything_once(path: Path, store: Store) -> None:
    write(path, *(run(f"r{number}", number // 2) for number in range(7)))
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = store.runs(limit=2, cursor=cursor)
        seen += [found.id for found in page.items]
        assert page.total == 7
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == ["r6", "r5", "r4", "r3", "r2", "r1", "r0"]


def test_filters(path: Path, store: Store) -> None:
    write(
        path,
        run("a", 1, agent="codex", session_id="codex:1"),
        run("b", 2, agent="codex", status="failed"),
        run("c", 3, agent="claude-code", session_id="codex:1"),
    )

    def ids(**wanted: Any) -> list[str]:
        return [found.id for found in store.runs(RunFilter(**wanted)).items]

    assert ids(agent="codex") == ["b", "a"]
    assert ids(status="failed") == ["b"]
    assert ids(session="codex:1") == ["c", "a"]
    assert ids(since=START + timedelta(minutes=2)) == ["c", "b"]
    assert ids(until=START + timedelta(minutes=2), agent="codex") == ["a"]


@pytest.mark.parametrize(
    ("wanted", "cursor"), [(RunFilter(), "nonsense"), (RunFilter(status="gone"), None), (RunFilter(), "WyJjYWxscyJd")]
)
def test_what_makes_no_sense_is_a_value_error(store: Store, wanted: RunFilter, cursor: str | None) -> None:
    with pytest.raises(ValueError, match=r"cursor|status"):
        store.runs(wanted, cursor=cursor)


def test_unfinished_runs_are_found_and_changed(path: Path) -> None:
    write(path, run("a", status="pending"), run("b"), run("c", status="running"), run("d", status="cancelled"))
    found: list[str] = []
    with open_store(path) as store:
        assert store.change_unfinished_runs(lambda run: found.append(run.id)) == []
        assert found == ["a", "c"]
        changed = store.change_unfinished_runs(lambda run: replace(run, status="failed") if run.id == "c" else None)
        assert [(each.id, each.status) for each in changed] == [("c", "failed")]
        assert [each.status for each in store.runs().items] == ["cancelled", "failed", "completed", "pending"]


def test_a_rebuild_keeps_runs_and_forgetting_a_session_removes_its_own(tmp_path: Path) -> None:
    with ToyStore(tmp_path) as toy:
        toy.write("one.log", line(kind="text", id="r", message="m", block=0, text="hello"))
        toy.read("one.log")
        write(toy.path, run("a", session_id="toy:one", prompt="hello"), run("b", session_id="toy:two"))
        rebuild(toy.path, agents=[toy.agent])
        with open_store(toy.path) as store:
            assert {found.id for found in store.runs().items} == {"a", "b"}
        forget_for_good(toy.path, "toy:one")
        with open_store(toy.path) as store:
            assert {found.id for found in store.runs().items} == {"b"}


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A store of a session of five messages, in the minutes 0, 1, 4, 7 and 8, its fork and its subagent."""
    (tmp_path / "home").mkdir()
    write_history(tmp_path / "home")
    read_home(tmp_path / "library.db", tmp_path / "home")
    return tmp_path / "library.db"


def test_a_run_has_the_messages_that_it_added_to_its_session(library: Path) -> None:
    """R-S24: also of a session that several runs went on with; where the end of one is unknown, up to the next."""
    first = run("first", session_id=MAIN, created_at=at(0), ended_at=at(3), exit_code=0)
    lost = run("lost", session_id=MAIN, created_at=at(3.5), status="failed")
    last = run("last", session_id=MAIN, created_at=at(6), status="running")
    whole = run("whole", session_id=MAIN, origin="import", created_at=at(900))
    forked = run("forked", session_id=FORK, created_at=at(19), ended_at=at(20), exit_code=0)
    nothing = run("nothing"), run("unknown", session_id="codex:unread"), run("odd", session_id="no session")
    write(library, first, lost, last, whole, forked, *nothing)
    expected = {
        "first": ["m1", "m2"],
        "lost": ["m3"],
        "last": ["m4", "m5/odd"],
        "whole": ["m1", "m2", "m3", "m4", "m5/odd"],
        "forked": ["f1"],
        "nothing": [],
        "unknown": [],
        "odd": [],
    }
    with open_store(library) as store:
        found = {each.id: store.run_messages(each.id).items for each in store.runs().items}
        assert {id: [placed.message.id for placed in items] for id, items in found.items()} == expected
        assert found["first"][1] == store.messages(MAIN)[1]
        assert store.run_messages("fir").items == found["first"]
        with pytest.raises(NotFoundError):
            store.run_messages("f")
    query = "SELECT message_id, session_id FROM v_run_messages WHERE run_id = ? ORDER BY position"
    with closing(connect_sql(library)) as connection:
        for id, items in found.items():
            rows = connection.execute(query, (id,)).fetchall()
            assert rows == [(placed.message.id, placed.membership.session_id) for placed in items]


def test_the_messages_of_a_run_come_in_pages(library: Path) -> None:
    """R-S24."""
    write(library, run("whole", session_id=MAIN, origin="import"))
    with open_store(library) as store:
        seen: list[str] = []
        cursor: str | None = None
        for _ in range(3):
            page = store.run_messages("whole", limit=2, cursor=cursor)
            seen += [placed.message.id for placed in page.items]
            cursor = page.next_cursor
        assert (seen, cursor) == (["m1", "m2", "m3", "m4", "m5/odd"], None)
        with pytest.raises(ValueError, match="cursor"):
            store.run_messages("whole", cursor="nonsense")
