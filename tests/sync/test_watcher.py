"""Following homes while they are written: files are told at once, and what no event tells leads to a pass (R-C19)."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from collections.abc import Iterator, Set
from contextlib import closing
from pathlib import Path

import pytest

from support.opencode_files import AGENT as OPENCODE
from support.opencode_files import recorded, write_database
from support.store_dump import open_read_only
from support.toy_agent import ToyAgent, line
from turnlog.sync.syncer import Syncer
from turnlog.sync.watched_folders import WatchedFolders
from turnlog.sync.watcher import Watcher

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel")

SECONDS = 20.0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def saved() -> list[tuple[set[str], int]]:
    return []


@pytest.fixture
def syncer(tmp_path: Path, saved: list[tuple[set[str], int]]) -> Iterator[Syncer]:
    def note(sessions: Set[str], last_change: int) -> None:
        saved.append((set(sessions), last_change))

    with Syncer(tmp_path / "data" / "turnlog.db", agents=[ToyAgent()], on_saved=note) as syncer:
        yield syncer


@pytest.fixture
def watcher(home: Path) -> Iterator[Watcher]:
    with Watcher(roots=[home], agents=[ToyAgent()]) as watcher:
        yield watcher


def prompt(message: str) -> bytes:
    return line(kind="prompt", id=f"r-{message}", message=message, text="hello")


def append(path: Path, *messages: str) -> None:
    with path.open("ab") as file:
        file.write(b"".join(prompt(message) for message in messages))


def begin(watcher: Watcher, syncer: Syncer, home: Path) -> None:
    watcher.cover()
    syncer.scan(roots=[home])


def messages(tmp_path: Path) -> int:
    connection = open_read_only(tmp_path / "data" / "turnlog.db")
    try:
        return connection.execute("SELECT count(*) FROM messages").fetchone()[0]
    finally:
        connection.close()


def test_an_appended_line_is_reported_and_committed(
    tmp_path: Path, home: Path, watcher: Watcher, syncer: Syncer, saved: list[tuple[set[str], int]]
) -> None:
    append(home / "a.log", "m1")
    begin(watcher, syncer, home)
    append(home / "a.log", "m2")
    woken = watcher.wait(SECONDS)
    assert woken.paths == {home / "a.log"}
    assert watcher.read(syncer, woken.paths).messages == 1
    assert messages(tmp_path) == 2
    assert [sessions for sessions, _ in saved] == [{"toy:a"}, {"toy:a"}]
    assert saved[1][1] > saved[0][1] > 0


def test_a_new_file_is_found_and_one_that_is_no_source_is_left_alone(
    home: Path, watcher: Watcher, syncer: Syncer
) -> None:
    begin(watcher, syncer, home)
    append(home / "new.log", "m1")
    assert watcher.read(syncer, watcher.wait(SECONDS).paths).new_sessions == 1
    (home / "other.txt").write_text("nobody's")
    while (woken := watcher.wait(0.5)).paths:
        assert watcher.read(syncer, woken.paths).messages == 0
    (home / "other.txt").write_text("still")
    assert not watcher.wait(0.2).paths


def test_a_file_that_replaces_another_is_read(home: Path, watcher: Watcher, syncer: Syncer) -> None:
    append(home / "a.log", "m1")
    begin(watcher, syncer, home)
    append(home.parent / "draft", "m1", "m2")
    (home.parent / "draft").rename(home / "a.log")
    assert watcher.read(syncer, watcher.wait(SECONDS).paths).messages == 1


def test_a_new_folder_is_watched_with_what_it_already_holds(home: Path) -> None:
    watched = WatchedFolders()
    watched.cover([str(home)], set)
    deep = home / "2026" / "11"
    deep.mkdir(parents=True)
    append(deep / "a.log", "m1")
    assert str(deep / "a.log") in watched.read_changes().files
    append(deep / "b.log", "m1")
    assert watched.read_changes().files == {str(deep / "b.log")}
    watched.close()


def test_a_moved_folder_is_reported_by_its_new_name(home: Path) -> None:
    (home / "old").mkdir()
    append(home / "old" / "a.log", "m1")
    watched = WatchedFolders()
    watched.cover([str(home)], set)
    (home / "old").rename(home / "new")
    assert watched.read_changes().files == {str(home / "new" / "a.log")}
    append(home / "new" / "a.log", "m2")
    assert watched.read_changes().files == {str(home / "new" / "a.log")}
    assert str(home / "old") not in watched
    watched.close()


def test_a_home_that_comes_back_needs_a_pass(
    home: Path, watcher: Watcher, syncer: Syncer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnlog.sync.watcher.HOMES_SECONDS", 0.02)
    begin(watcher, syncer, home)
    home.rmdir()
    assert not watcher.wait(0.1).needs_pass
    home.mkdir()
    assert watcher.wait(SECONDS).needs_pass
    begin(watcher, syncer, home)
    append(home / "a.log", "m1")
    assert watcher.wait(SECONDS).paths == {home / "a.log"}


def test_lost_events_need_a_pass(home: Path, watcher: Watcher) -> None:
    watcher.cover()
    held = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    with (home / "a.log").open("ab", buffering=0) as first, (home / "b.log").open("ab", buffering=0) as second:
        for _ in range(held // 2 + 1):
            first.write(b"\n")
            second.write(b"\n")
    assert watcher.wait(SECONDS).needs_pass


def test_at_the_limit_folders_with_sources_come_first(home: Path) -> None:
    for name in "abc":
        (home / name).mkdir()
    watched = WatchedFolders(limit=2)
    watched.cover([str(home)], lambda: {str(home), str(home / "b")})
    assert str(home) in watched
    assert str(home / "b") in watched
    assert watched.unwatched == {str(home / "a"), str(home / "c")}
    watched.close()


def test_what_is_not_watched_is_said(home: Path) -> None:
    (home / "a").mkdir()
    with Watcher(roots=[home], agents=[ToyAgent()], limit=1) as watcher:
        watcher.cover()
        assert not watcher.is_complete
        assert len(watcher.unwatched_folders) == 1


def test_without_the_kernel_passes_must_find_changes(home: Path) -> None:
    with Watcher(roots=[home], agents=[ToyAgent()], backend="passes") as watcher:
        watcher.cover()
        append(home / "a.log", "m1")
        assert not watcher.is_complete
        assert not watcher.wait(0.05).paths


def test_another_thread_wakes_it(watcher: Watcher) -> None:
    watcher.cover()
    threading.Timer(0.05, watcher.wake).start()
    started = time.monotonic()
    assert not watcher.wait(SECONDS).paths
    assert time.monotonic() - started < SECONDS / 2


def test_reading_a_database_is_no_change_of_it(home: Path, tmp_path: Path) -> None:
    """R-C19: its log and index, which appear when it is read, must not lead to another read."""
    path = write_database(recorded("1.18.33", "subagent"), home / "opencode.db")
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = wal")
    store = tmp_path / "turnlog.db"
    with Syncer(store, agents=[OPENCODE]) as syncer, Watcher(roots=[home], agents=[OPENCODE]) as watcher:
        begin(watcher, syncer, home)
        with closing(sqlite3.connect(path)) as writer:
            writer.execute("UPDATE session SET title = 'live', time_updated = time_updated + 1")
            writer.commit()
            assert watcher.read(syncer, watcher.wait(SECONDS).paths).changed > 0
        reads = 0
        while reads < 9 and (woken := watcher.wait(0.3)).paths:
            watcher.read(syncer, woken.paths)
            reads += 1
        assert reads <= 3


def test_a_top_folder_that_is_a_link_is_watched(home: Path, tmp_path: Path) -> None:
    class Linked(ToyAgent):
        log_folders = ("logs",)

    disk = tmp_path / "disk"
    disk.mkdir()
    append(disk / "a.log", "m1")
    (home / "logs").symlink_to(disk)
    (home / "other").symlink_to(tmp_path)
    with Watcher(roots=[home], agents=[Linked()]) as watcher:
        watcher.cover()
        append(disk / "a.log", "m2")
        assert watcher.wait(SECONDS).paths == {home / "logs" / "a.log"}
