"""The mark of what is being forgotten, where somebody else wrote into it or a disk lost its end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from support.plain_agent import Log
from support.plain_store import at, read_home
from turnlog.errors import StoreError
from turnlog.model import Message, TextPart
from turnlog.store import open_store
from turnlog.store.connection import connect
from turnlog.store.forgetting_mark import Unfinished, locked_mark, mark_path
from turnlog.store.sources import imports_folder

TORN = [
    "",
    "\n",
    "1",
    "[]",
    '["a"]',
    '{"a": 1}',
    "[null, null]",
    "[5, []]",
    '["plain:s0", [',
    "[" * 100_000,
    "\x00" * 50,
]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of two sessions."""
    (tmp_path / "home").mkdir()
    for name in ("s0", "s1"):
        log = Log(tmp_path / "home", name)
        log.session()
        log.message(Message(id=f"{name}.p", role="user", created_at=at(0), parts=(TextPart(text="Go on"),)))
    read_home(tmp_path / "turnlog.db", tmp_path / "home")
    return tmp_path / "turnlog.db"


def sessions(store: Path) -> list[str]:
    with open_store(store) as opened:
        return sorted(session.id for session in opened.sessions().items)


@pytest.mark.parametrize("text", TORN, ids=lambda text: text[:10])
def test_a_mark_that_says_nothing_is_taken_away(store: Path, text: str) -> None:
    mark_path(store).write_text(text, encoding="utf-8")
    assert sessions(store) == ["plain:s0", "plain:s1"]
    assert not mark_path(store).exists()


@pytest.mark.parametrize("text", TORN, ids=lambda text: text[:10])
def test_what_is_noted_after_a_torn_line_is_read(store: Path, text: str) -> None:
    mark_path(store).write_text(text, encoding="utf-8")
    with locked_mark(store, 0) as mark:
        mark.write(Unfinished("plain:s1", []))
    assert sessions(store) == ["plain:s0"]
    assert not mark_path(store).exists()


def test_only_copies_of_turnlog_are_deleted(store: Path, tmp_path: Path) -> None:
    copy, other = imports_folder(store) / "copy.jsonl", tmp_path / "other.jsonl"
    copy.parent.mkdir()
    for path in (copy, other):
        path.write_text("{}", encoding="utf-8")
    with locked_mark(store, 0) as mark:
        mark.write(Unfinished("plain:gone", [str(other), str(copy)]))
    assert sessions(store) == ["plain:s0", "plain:s1"]
    assert (copy.exists(), other.exists()) == (False, True)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs among files")
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_something_else_of_its_name_is_named(store: Path, make: Callable[[Path], None]) -> None:
    make(mark_path(store))
    with pytest.raises(StoreError, match=r"turnlog\.db-forgetting is no file of turnlog's: move it away"):
        sessions(store)
    with closing(connect(store)) as connection:
        assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (2,)
