"""Following homes through watchfiles, as on macOS and Windows, with what it offers on Linux."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.toy_agent import ToyAgent, line
from turnlog.errors import TurnlogError
from turnlog.sync.syncer import Syncer
from turnlog.sync.watched_trees import WatchedTrees
from turnlog.sync.watcher import Watcher

SECONDS = 20.0


def append(path: Path, *messages: str) -> None:
    with path.open("ab") as file:
        for each in messages:
            file.write(line(kind="prompt", id=f"r-{each}", message=each, text="hello"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "Home"
    folder.mkdir()
    return folder


@pytest.fixture
def watcher(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watcher]:
    monkeypatch.setenv("TURNLOG_WATCHER", "watchfiles")
    with Watcher(roots=[home], agents=[ToyAgent()]) as watcher:
        yield watcher


def test_lines_files_and_folders_are_read_as_they_are_written(tmp_path: Path, home: Path, watcher: Watcher) -> None:
    append(home / "a.log", "m1")
    with Syncer(tmp_path / "data" / "turnlog.db", agents=[ToyAgent()]) as syncer:
        watcher.cover()
        syncer.scan(roots=[home])
        assert watcher.is_complete
        append(home / "a.log", "m2")
        started = time.monotonic()
        woken = watcher.wait(SECONDS)
        assert woken.paths == {home / "a.log"}
        assert time.monotonic() - started < 2
        assert watcher.read(syncer, woken.paths).messages == 1
        (home / "2026" / "11").mkdir(parents=True)
        append(home / "2026" / "11" / "b.log", "m3")
        read = 0
        while not read and (woken := watcher.wait(SECONDS)).paths:
            read = watcher.read(syncer, woken.paths).messages
        assert read == 1


def test_another_thread_wakes_it(watcher: Watcher) -> None:
    watcher.cover()
    watcher.wake()
    started = time.monotonic()
    assert not watcher.wait(SECONDS).paths
    assert time.monotonic() - started < SECONDS / 2


def test_a_home_that_appears_later_is_followed(home: Path, watcher: Watcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnlog.sync.watcher.HOMES_SECONDS", 0.02)
    home.rmdir()
    watcher.cover()
    home.mkdir()
    assert watcher.wait(SECONDS).needs_pass
    watcher.cover()
    append(home / "a.log", "m1")
    assert watcher.wait(SECONDS).paths == {home / "a.log"}


def test_files_that_reading_a_database_makes_are_no_changes(home: Path) -> None:
    trees = WatchedTrees()
    trees.cover([str(home)], set)
    (home / "a.db-shm").write_bytes(b"index")
    (home / "a.db-wal").touch()
    (home / "b.db-wal").write_bytes(b"frames")
    end = time.monotonic() + SECONDS
    found: set[str] = set()
    while not found and time.monotonic() < end:
        found = trees.read_changes().files
        time.sleep(0.02)
    trees.close()
    assert found == {str(home / "b.db-wal")}


def test_paths_are_reported_by_the_name_of_the_home(tmp_path: Path, home: Path) -> None:
    """macOS tells what a link leads to (`/private/var` for `/var`), and both systems the case of the disk."""
    linked = tmp_path / "linked"
    linked.symlink_to(home)
    trees = WatchedTrees(folds_case=True)
    trees.cover([str(linked)], set)
    assert trees.name_of(f"{home}/a.log") == f"{linked}/a.log"
    assert trees.name_of(f"{tmp_path}/hOME/A.log") == f"{linked}/A.log"
    assert trees.name_of(f"{home}2/a.log") is None
    trees.close()
    exact = WatchedTrees(folds_case=False)
    exact.cover([str(home)], set)
    assert exact.name_of(f"{tmp_path}/hOME/A.log") is None
    exact.close()


def test_a_home_that_cannot_be_watched_is_said(home: Path) -> None:
    trees = WatchedTrees()
    trees.cover([str(home / "gone")], set)
    assert trees.unwatched == {str(home / "gone")}
    trees.close()


@pytest.mark.parametrize("name", ["fsevents", "Inotify"])
def test_an_unknown_way_is_an_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNLOG_WATCHER", name)
    with pytest.raises(TurnlogError, match="TURNLOG_WATCHER may be inotify, watchfiles, passes"):
        Watcher(agents=[ToyAgent()])
