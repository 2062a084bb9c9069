"""A session that is forgotten while another process rebuilds or syncs: nothing of it is left, and it stays away."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.plain_agent import Log, PlainAgent
from support.plain_store import at
from turnlog.model import Message, TextPart
from turnlog.store import open_store
from turnlog.store.connection import connect, write_transaction
from turnlog.store.search.base import search_path
from turnlog.store.search.searcher import Searcher
from turnlog.store.sqlite import forget as module
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import sync

GONE, STAYS = "plain:s1", ["plain:s0", "plain:s2"]

Act = Callable[[Path], object]


def rebuild_store(folder: Path) -> None:
    rebuild(folder / "turnlog.db", agents=[PlainAgent()])


def sync_store(folder: Path) -> None:
    sync(folder / "turnlog.db", roots=[folder / "home"], agents=[PlainAgent()])


def grow(folder: Path) -> None:
    """The agent goes on with the session, and it is read."""
    for log in (folder / "home").rglob("*s1*"):
        log.write_bytes(log.read_bytes() + log.read_bytes().splitlines(keepends=True)[-1])
    sync_store(folder)


def both(folder: Path) -> None:
    grow(folder)
    rebuild_store(folder)


def leave(store: Path) -> None:
    """End nothing."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    for name in ("s0", "s1", "s2"):
        log = Log(tmp_path / "home", name)
        log.session()
        words = f"walrus{name} marker " * 20
        log.message(Message(id=f"{name}.p", role="user", created_at=at(0), parts=(TextPart(text=words),)))
    sync_store(tmp_path)
    return tmp_path


def assert_gone(folder: Path) -> None:
    store = folder / "turnlog.db"
    with open_store(store) as opened:
        assert sorted(session.id for session in opened.sessions().items) == STAYS
    with closing(connect(store)) as connection:
        rows = connection.execute("SELECT path, sum(length) FROM archive JOIN sources ON key = source_key GROUP BY 1")
        assert {Path(path).stem for path, size in rows if size} == {"s0", "s2"}
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with Searcher(store, search_path(store)) as searcher:
        assert [len(searcher.search(f"walrus{name}").hits) for name in ("s0", "s1", "s2")] == [1, 0, 1]
        assert searcher.unindexed() == 0


@pytest.mark.parametrize("act", [rebuild_store, sync_store, grow, both])
@pytest.mark.parametrize("moment", range(3))
def test_another_process_before_between_and_after_the_transactions(
    folder: Path, monkeypatch: pytest.MonkeyPatch, moment: int, act: Act
) -> None:
    begun = 0

    @contextmanager
    def note(connection: Any) -> Generator[None]:
        nonlocal begun
        if begun == moment:
            act(folder)
        begun += 1
        with write_transaction(connection):
            yield

    monkeypatch.setattr(module, "write_transaction", note)
    forget_for_good(folder / "turnlog.db", GONE)
    assert begun == 2
    if moment == 2:
        act(folder)
    assert_gone(folder)
    sync_store(folder)
    rebuild_store(folder)
    sync_store(folder)
    assert_gone(folder)


@pytest.mark.parametrize("act", [rebuild_store, sync_store, grow, both])
@pytest.mark.parametrize("moment", range(2))
def test_a_forgetting_that_was_killed_is_ended_also_after_a_rebuild(
    folder: Path, monkeypatch: pytest.MonkeyPatch, moment: int, act: Act
) -> None:
    begun = 0

    @contextmanager
    def die(connection: Any) -> Generator[None]:
        nonlocal begun
        if begun == moment:
            raise KeyboardInterrupt
        begun += 1
        with write_transaction(connection):
            yield

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_transaction", die)
        # What comes next rebuilds before it ends what was begun: it was opened before.
        with pytest.raises(KeyboardInterrupt):
            forget_for_good(folder / "turnlog.db", GONE)
    with monkeypatch.context() as patch:
        patch.setattr("turnlog.sync.rebuild.end_forgetting", leave)
        patch.setattr("turnlog.sync.syncer.end_forgetting", leave)
        act(folder)
    sync_store(folder)
    assert_gone(folder)


def test_bytes_that_were_left_go_with_the_next_rebuild(folder: Path) -> None:
    """A store in which an earlier version left them."""
    with closing(connect(folder / "turnlog.db")) as connection, write_transaction(connection):
        connection.execute("INSERT INTO tombstones (session_id, forgotten_at) VALUES (?, 0)", (GONE,))
    rebuild_store(folder)
    assert_gone(folder)
