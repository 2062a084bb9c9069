"""A pass looks for nothing in a database whose files are as they were, and finds every row that has changed."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from support.agent_cases import CASES, one_per_package
from support.database_rows import databases_in, opened
from turnlog.agents import agent, databases
from turnlog.agents.base import RowAgent
from turnlog.model import TextPart
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.store.connection import connect
from turnlog.sync.summary import SyncSummary
from turnlog.sync.syncer import sync

NAMES = [case.name for case in one_per_package() if isinstance(agent(case.name), RowAgent) and case.touch is not None]
"""Agents whose sessions are found by `turnlog.agents.databases`."""


@pytest.fixture
def openings(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each database was opened."""
    counted: Counter[str] = Counter()
    name = "_open_connection"
    open_connection: Callable[..., sqlite3.Connection] = getattr(databases, name)

    def count(path: Path, *more: object) -> sqlite3.Connection:
        counted[str(path)] += 1
        return open_connection(path, *more)

    monkeypatch.setattr(databases, name, count)
    return counted


def read(home: Path, name: str) -> SyncSummary:
    """A pass over the user's own home, as every command makes one."""
    return sync(home / "store.db", agents=[agent(name)])


def write(home: Path, name: str) -> Path:
    case = CASES[name]
    return case.write_home(case.recorded[0], home / case.home)


def texts(home: Path) -> list[str]:
    with open_store(home / "store.db") as store:
        sessions = store.sessions(SessionFilter(subagents=True), limit=200).items
        placed = [one for session in sessions for one in store.messages(session.id)]
    return [part.text for one in placed for part in one.message.parts if isinstance(part, TextPart)]


@pytest.mark.parametrize("name", NAMES)
def test_a_database_whose_files_are_as_they_were_is_not_opened(name: str, home: Path, openings: Counter[str]) -> None:
    write(home, name)
    first = read(home, name)
    assert openings
    openings.clear()
    again = read(home, name)
    assert (again.sources, again.changed, again.vanished) == (first.sources, 0, 0)
    assert openings == Counter()


@pytest.mark.parametrize("journal", ["wal", "delete"])
@pytest.mark.parametrize("name", NAMES)
def test_a_row_that_changes_in_place_is_found_by_the_next_pass(name: str, journal: str, home: Path) -> None:
    """R-S13: also while the program has the database open, and when nothing is longer than it was."""
    case = CASES[name]
    written = write(home, name)
    files = list(databases_in(written))
    for file in files:
        with closing(sqlite3.connect(file)) as connection:
            connection.execute(f"PRAGMA journal_mode = {journal}")
    programs = [sqlite3.connect(file) for file in files]
    for program in programs:
        program.execute("SELECT * FROM sqlite_master").fetchall()
    read(home, name)
    plain = (text for text, count in Counter(texts(home)).items() if count == 1 and repr(text) == f"'{text}'")
    text = max((each for each in plain if '"' not in each), key=len)
    changed = "0" * len(text)
    for file in files:
        case.change_text(file, text, changed)
        with opened(file) as (connection, _):
            connection.executescript(case.touch or "")
    read(home, name)
    assert changed in texts(home)
    for program in programs:
        program.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_session_that_was_not_read_is_looked_for_again(name: str, home: Path, openings: Counter[str]) -> None:
    """As after a pass that was stopped, or one that met an error."""
    write(home, name)
    first = read(home, name)
    with closing(connect(home / "store.db", checked=False)) as connection, connection:
        connection.execute("UPDATE sources SET problem = 'it was locked' WHERE path LIKE '%#%'")
    openings.clear()
    assert read(home, name).sources == first.sources
    assert openings
    with closing(connect(home / "store.db", checked=False)) as connection:
        assert connection.execute("SELECT count(*) FROM sources WHERE problem IS NOT NULL").fetchone() == (0,)
