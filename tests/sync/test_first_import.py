"""The first import: the newest work is there first, and what somebody waits for is read next."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Set
from contextlib import closing
from pathlib import Path

import pytest

from support.environment import hide_places
from support.store_dump import differences, dump
from turnlog.agents import agent, find_sources
from turnlog.agents.base import Source
from turnlog.server.sample import LOGS
from turnlog.store import open_store
from turnlog.store.connection import connect
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.sync import syncer
from turnlog.sync.order import newest_first
from turnlog.sync.syncer import Syncer, fingerprinted, sync
from turnlog.sync.wanted import WantedSessions, is_source_of

NAMES = [f"{number:08d}-aaaa-4aaa-8aaa-{number:012d}" for number in range(60)]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sixty sessions of Claude Code, one a minute, in a tree that was copied just now."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    hide_places(monkeypatch)
    folder = tmp_path / "home/.claude/projects/-w-shop"
    folder.mkdir(parents=True)
    for number, name in enumerate(NAMES):
        record = {
            "type": "user",
            "uuid": name,
            "parentUuid": None,
            "sessionId": name,
            "timestamp": f"2026-11-01T10:{number:02d}:00.000Z",
            "version": "2.1.329",
            "cwd": "/w/shop",
            "message": {"role": "user", "content": f"question {number}"},
        }
        path = folder / f"{name}.jsonl"
        path.write_text(json.dumps(record) + "\n")
        os.utime(path, (1_795_000_000, 1_795_000_000))
    return tmp_path / "home"


@pytest.fixture
def fold_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def use(count: int) -> None:
        def folding_processes(total: int) -> int:
            return count

        monkeypatch.setattr(syncer, "folding_processes", folding_processes)

    return use


def saved_in_order(store: Path, wanted: WantedSessions | None = None) -> list[Set[str]]:
    """The sessions of each transaction of a pass."""
    saved: list[Set[str]] = []

    def note(sessions: Set[str], last_change: int) -> None:
        saved.append(frozenset(sessions))

    with Syncer(store, on_saved=note, wanted=wanted) as each:
        each.scan()
    return saved


def test_a_copied_tree_is_read_from_its_last_records_back(home: Path, tmp_path: Path) -> None:
    first = saved_in_order(tmp_path / "a.db")[0]
    assert first == {f"claude-code:{name}" for name in NAMES[-syncer.FIRST_SOURCES :]}


def test_times_of_files_count_where_they_differ(home: Path, tmp_path: Path) -> None:
    for number, name in enumerate(NAMES):
        path = home / f".claude/projects/-w-shop/{name}.jsonl"
        moment = 1_795_000_000 - 600 * number
        os.utime(path, (moment, moment))
    first = saved_in_order(tmp_path / "a.db")[0]
    assert first == {f"claude-code:{name}" for name in NAMES[: syncer.FIRST_SOURCES]}


def in_order(home: Path) -> list[str]:
    found = list(fingerprinted(find_sources([agent("claude-code")], [home / ".claude"])))
    return [Path(found[place].source.path).stem for place in newest_first((each[1], each[2]) for each in found)]


def test_logs_whose_ends_have_no_time_or_one_of_the_future_come_last(home: Path) -> None:
    folder = home / ".claude/projects/-w-shop"
    texts = {"none": "{}", "future": '{"timestamp":"2099-01-01T00:00:00Z"}', "number": '{"time": 1794999999000}'}
    for name, text in texts.items():
        (folder / f"{name}.jsonl").write_text(text)
        os.utime(folder / f"{name}.jsonl", (1_795_000_000, 1_795_000_000))
    paths = in_order(home)
    assert (paths[:2], {*paths[-2:]}) == (["number", NAMES[-1]], {"none", "future"})


@pytest.mark.parametrize("moment", [0, 315_532_800])
def test_an_old_time_that_all_files_have_says_nothing(home: Path, moment: int) -> None:
    """Archives that can be made again, and images of containers, give their files one time."""
    for path in (home / ".claude").rglob("*.jsonl"):
        os.utime(path, (moment, moment))
    assert in_order(home) == NAMES[::-1]


def test_a_long_last_record_has_its_time_in_front(home: Path) -> None:
    path = home / f".claude/projects/-w-shop/{NAMES[0]}.jsonl"
    record = '{"timestamp":"2026-11-18T23:00:00Z","text":"' + "x" * 20_000 + '"}\n'
    path.write_text(path.read_text() + record)
    os.utime(path, (1_795_000_000, 1_795_000_000))
    assert in_order(home)[0] == NAMES[0]


def differing(one: Path, other: Path) -> list[str]:
    with closing(connect(one)) as first, closing(connect(other)) as second:
        return differences(dump(first), dump(second))


@pytest.mark.parametrize("processes", [0, 2])
def test_a_session_that_somebody_waits_for_is_read_first(
    home: Path, tmp_path: Path, fold_in: Callable[[int], None], processes: int
) -> None:
    fold_in(processes)
    answers: list[tuple[str, bool]] = []
    wanted = WantedSessions(lambda session_id, found: answers.append((session_id, found)))
    wanted.add(f"claude-code:{NAMES[3]}")
    wanted.add("claude-code:00000000-bbbb-4bbb-8bbb-000000000000")
    saved = saved_in_order(tmp_path / "wanted.db", wanted)
    assert saved[0] == {f"claude-code:{NAMES[3]}"}
    assert answers == [(f"claude-code:{NAMES[3]}", True), ("claude-code:00000000-bbbb-4bbb-8bbb-000000000000", False)]
    saved_in_order(tmp_path / "plain.db")
    assert differing(tmp_path / "plain.db", tmp_path / "wanted.db") == []


@pytest.mark.parametrize("processes", [0, 2])
def test_reading_sessions_of_every_agent_early_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fold_in: Callable[[int], None], processes: int
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    hide_places(monkeypatch)
    for name, below in (("claude-code", ".claude"), ("codex", ".codex"), ("gemini-cli", ".gemini")):
        shutil.copytree(LOGS / name, tmp_path / "home" / below, dirs_exist_ok=True)
    sync(tmp_path / "plain.db")
    with open_store(tmp_path / "plain.db") as store:
        sessions = [session.id for session in store.sessions(limit=200).items]
    wanted = WantedSessions()
    for session_id in sessions[::2]:
        wanted.add(session_id)
    fold_in(processes)
    saved_in_order(tmp_path / "wanted.db", wanted)
    assert differing(tmp_path / "plain.db", tmp_path / "wanted.db") == []


def test_nobody_waits_for_ever(home: Path, tmp_path: Path) -> None:
    """A pass that finds nothing new answers, too."""
    sync(tmp_path / "a.db")
    answers: list[bool] = []
    wanted = WantedSessions(lambda session_id, found: answers.append(found))
    wanted.add("codex:0000")
    assert saved_in_order(tmp_path / "a.db", wanted) == []
    assert answers == [False]


def test_what_no_log_is_of_is_said_at_once() -> None:
    """Not when the group that is being read is saved, which takes seconds."""
    answers: list[tuple[str, bool]] = []
    wanted = WantedSessions(lambda session_id, found: answers.append((session_id, found)))
    wanted.add("crush:1")
    with wanted.among([Source(agent="crush", path="/h/crush.db/2", root="/h", session_id="crush:2")]):
        wanted.add("crush:3")
        assert answers == [("crush:3", False)]
        wanted.add("crush:2.a1")
    wanted.add("crush:4")
    assert [wanted.take() for _ in range(4)] == ["crush:1", "crush:2.a1", "crush:4", None]
    assert answers == [("crush:3", False)]


@pytest.mark.parametrize(
    ("session_id", "belongs"),
    [
        ("claude-code:12345678-1", True),
        ("claude-code:12345678-1.a1b2", True),
        ("codex:12345678-1", False),
        ("claude-code:12345678-2", False),
        ("claude-code:w", False),
        ("claude-code:", False),
        ("claude-code", False),
    ],
)
def test_a_path_says_whose_log_it_is(session_id: str, belongs: bool) -> None:
    source = Source(agent="claude-code", path="/h/projects/w/12345678-1/subagents/agent-a1b2.jsonl", root="/h")
    assert is_source_of(source, session_id) is belongs


def test_what_is_forgotten_during_an_import_is_read_no_further(
    home: Path, tmp_path: Path, fold_in: Callable[[int], None]
) -> None:
    """Its other file is folded already, in another process, which knew of no forgetting."""
    fold_in(1)
    last = home / f".claude/projects/-w-shop/{NAMES[-1]}.jsonl"
    other = home / f".claude/projects/-w-other/{NAMES[-1]}.jsonl"
    other.parent.mkdir()
    other.write_text(last.read_text().replace("2026-11-01T10:59", "2026-10-01T10:59").replace(NAMES[-1], "x" * 36, 1))
    os.utime(other, (1_700_000_000, 1_700_000_000))
    store, forgotten = tmp_path / "a.db", f"claude-code:{NAMES[-1]}"

    def forget(sessions: Set[str], last_change: int) -> None:
        if forgotten in sessions:
            forget_for_good(store, forgotten)

    with Syncer(store, on_saved=forget) as each:
        each.scan()
    with closing(connect(store)) as connection:
        query = "SELECT s.path FROM archive a JOIN sources s ON s.key = a.source_key WHERE s.path LIKE ?"
        assert connection.execute(query, (f"%{NAMES[-1]}%",)).fetchall() == []
        assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (len(NAMES) - 1,)
