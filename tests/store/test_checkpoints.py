"""Checkpoints beside the one who writes: no commit waits for them, and the log does not grow for ever."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from turnlog.store.connection import PAGE_SIZE, Checkpointer, connect
from turnlog.store.search.base import search_path
from turnlog.store.search.indexer import Indexer

SECONDS = 20.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect(path, checked=False, own_checkpoints=False)) as found:
        found.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        yield found


def write(connection: sqlite3.Connection) -> None:
    """More than SQLite lets a log grow to by itself."""
    for number in range(1100):
        name = f"{number:08d}" * (PAGE_SIZE // 8)
        connection.execute("INSERT INTO projects (path, name) VALUES (?, ?)", (name, "name"))


def wait_for(path: Path, size: int) -> None:
    end = time.monotonic() + SECONDS
    while path.stat().st_size < size:
        assert time.monotonic() < end, "nothing is moved into the database"
        time.sleep(0.01)


def test_a_commit_leaves_the_database_alone_and_the_checkpointer_does_not(
    path: Path, connection: sqlite3.Connection
) -> None:
    before = path.stat().st_size
    with Checkpointer([path], rest=0.01) as checkpointer:
        write(connection)
        time.sleep(0.05)
        assert path.stat().st_size == before, "nobody said that anything was committed"
        checkpointer.note()
        wait_for(path, before + 1000 * PAGE_SIZE)


def test_by_default_commits_move_what_has_piled_up(path: Path) -> None:
    with closing(connect(path, checked=False)) as connection:
        before = path.stat().st_size
        write(connection)
        assert path.stat().st_size > before + 500 * PAGE_SIZE


def test_who_writes_does_not_wait_for_a_checkpoint(path: Path, connection: sqlite3.Connection) -> None:
    """Also where a reader holds back a part of the log: the next checkpoint moves it."""
    with Checkpointer([path], rest=0.0) as checkpointer, closing(connect(path, read_only=True)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM projects").fetchone() == (0,)
        write(connection)
        checkpointer.note()
        connection.execute("INSERT INTO projects (path, name) VALUES ('last', 'name')")
        assert reader.execute("SELECT count(*) FROM projects").fetchone() == (0,)
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM projects").fetchone() == (1101,)
        checkpointer.note()
        wait_for(path, 1000 * PAGE_SIZE)


def test_it_ends_at_once_while_it_rests_and_without_its_file(path: Path) -> None:
    started = time.monotonic()
    with Checkpointer([path, path.with_name("other.db")], rest=0.01) as checkpointer:
        checkpointer.note()
        time.sleep(0.05)
    with Checkpointer([path], rest=3600.0) as checkpointer:
        checkpointer.note()
    assert time.monotonic() - started < SECONDS
    assert not path.exists()


def test_an_index_that_is_made_anew_leaves_its_checkpoints_too(path: Path) -> None:
    connect(path).close()
    with Indexer(path, search_path(path), own_checkpoints=False) as indexer:
        indexer.catch_up()
        for file in path.parent.glob(f"{search_path(path).name}*"):
            file.unlink()
        indexer.catch_up()
        connection = indexer._file.connection  # pyright: ignore[reportPrivateUsage] (no query returns it)
        assert connection.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)


def test_an_end_between_the_rest_and_the_checkpoint_is_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpointer = Checkpointer([tmp_path / "store.db"], 0)
    stopped, thread = checkpointer._stopped, checkpointer._thread  # pyright: ignore[reportPrivateUsage]  # on purpose

    def rest(seconds: float) -> bool:
        stopped.set()
        checkpointer.note()
        return False

    monkeypatch.setattr(stopped, "wait", rest)
    checkpointer.note()
    thread.join(10)
    assert not thread.is_alive()
