"""A wait for another writer is reported, once, and the write happens all the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Timer

import pytest

from turnlog.errors import StoreBusyError
from turnlog.store import connection as connections
from turnlog.store import write_lock
from turnlog.store.connection import connect, write_transaction
from turnlog.store.search.index_file import IndexFile, IndexLockedError
from turnlog.store.write_lock import reporting_waits

LONG = 0.5
"""Seconds that somebody else writes."""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(write_lock, "SILENT_SECONDS", 0.05)
    return tmp_path / "turnlog.db"


@contextmanager
def writing(path: Path) -> Generator[None]:
    """Somebody else writes, and has ended at the end of the block at the latest."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        timer = Timer(LONG, other.rollback)
        timer.start()
        yield
        timer.join()


def test_who_waits_gets_the_reason_once(path: Path) -> None:
    reported: list[str] = []
    with closing(connect(path)) as connection, reporting_waits(reported.append):
        for _ in range(2):
            with writing(path), write_transaction(connection):
                connection.execute("DELETE FROM changes")
    assert reported == [str(path)]


def test_who_need_not_wait_gets_no_notice(path: Path) -> None:
    reported: list[str] = []
    with closing(connect(path)) as connection, reporting_waits(reported.append), write_transaction(connection):
        pass
    assert reported == []


def test_who_wants_no_report_waits_all_the_same(path: Path) -> None:
    reported: list[str] = []
    with closing(connect(path)) as connection, reporting_waits(reported.append):
        with reporting_waits(None), writing(path), write_transaction(connection):
            pass
        assert reported == []
        with writing(path), write_transaction(connection):
            pass
    assert reported == [str(path)]


def test_waiting_has_an_end_though_it_is_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_SECONDS", 0.1)
    reported: list[str] = []
    with (
        closing(connect(path)) as connection,
        reporting_waits(reported.append),
        writing(path),
        pytest.raises(StoreBusyError),
        write_transaction(connection),
    ):
        pass
    assert reported == [str(path)]


def test_who_does_not_wait_for_the_index_gets_no_notice(path: Path) -> None:
    reported: list[str] = []
    index = IndexFile(path, own_checkpoints=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as other, reporting_waits(reported.append):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(IndexLockedError), index.locked(wait=False):
            pass
        other.rollback()
        assert reported == []
        with writing(path), index.locked(wait=True):
            pass
    index.close()
    assert reported == [str(path)]
