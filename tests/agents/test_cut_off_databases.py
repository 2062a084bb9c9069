"""A database whose last write was cut short is read as it was before, and one without a byte is empty."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from support.agent_cases import CASES, one_per_package
from support.database_rows import databases_in
from turnlog.agents import agent, databases
from turnlog.agents.base import RowAgent
from turnlog.errors import SourceError
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.summary import SyncSummary
from turnlog.sync.syncer import sync


def write(name: str, home: Path) -> list[Path]:
    """Write a recorded home; return its databases."""
    case = CASES[name]
    return list(databases_in(case.write_home(case.recorded[0], home / case.home)))


NAMES = [case.name for case in one_per_package() if isinstance(agent(case.name), RowAgent) and case.touch is not None]
"""Agents whose sessions are found by `turnlog.agents.databases`."""


def read(name: str, home: Path, store: str = "store.db") -> SyncSummary:
    return sync(home / store, agents=[agent(name)])


def said(store: Path) -> Counter[bytes]:
    """Every message in a store, without what it is called there."""
    with open_store(store) as opened:
        sessions = opened.sessions(SessionFilter(subagents=True), limit=200).items
        return Counter(msgspec.json.encode(one.message) for each in sessions for one in opened.messages(each.id))


def cut_short(database: Path, journal: str) -> None:
    """Leave a database as a process does that is killed in the middle of a transaction that deletes every row."""
    work = database.with_name(f"{database.name}.work")
    shutil.copyfile(database, work)
    with closing(sqlite3.connect(work, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("PRAGMA cache_size = 2")
        connection.execute("CREATE TABLE filler (text)")
        for trigger in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute('DROP TRIGGER "{}"'.format(*trigger))
        connection.execute("BEGIN IMMEDIATE")
        kinds = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'")
        for (table,) in kinds.fetchall():
            if not table.startswith("sqlite_"):
                connection.execute(f'DELETE FROM "{table}"')
        # More than the cache holds: the pages before are written to the file.
        connection.executemany("INSERT INTO filler VALUES (zeroblob(5000))", [()] * 200)
        for ending in ("", "-journal"):
            shutil.copyfile(f"{work}{ending}", f"{database}{ending}")
    for ending in ("", "-journal", "-wal", "-shm"):
        Path(f"{work}{ending}").unlink(missing_ok=True)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("journal", ["delete", "persist", "truncate"])
@pytest.mark.parametrize("name", NAMES)
def test_what_was_written_whole_is_read_and_the_files_stay_as_they_are(name: str, journal: str, home: Path) -> None:
    """R-S13: SQLite writes the journal back, but not into the agent's file."""
    files = write(name, home)
    read(name, home, "whole.db")
    for file in files:
        cut_short(file, journal)
    before = contents(home / CASES[name].home)
    assert read(name, home).problems == []
    assert said(home / "store.db") == said(home / "whole.db") != Counter()
    assert read(name, home).changed == 0
    assert contents(home / CASES[name].home) == before


@pytest.mark.parametrize("name", NAMES)
def test_a_journal_that_its_program_has_written_back_changes_nothing(name: str, home: Path) -> None:
    for file in (files := write(name, home)):
        cut_short(file, "delete")
    read(name, home)
    before = said(home / "store.db")
    for file in files:
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("SELECT * FROM sqlite_master").fetchall()
    assert read(name, home).problems == []
    assert said(home / "store.db") == before


def test_a_copy_is_made_once_for_all_sessions(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [file] = write("opencode", home)
    cut_short(file, "delete")
    copied: list[Path] = []
    name = "_copied"
    copy: Callable[[Path], object] = getattr(databases, name)

    def note(path: Path) -> object:
        copied.append(path)
        return copy(path)

    monkeypatch.setattr(databases, name, note)
    assert read("opencode", home).sources > 2
    assert copied == [file]


def test_a_database_that_changes_while_copied_is_a_problem_until_it_rests(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [file] = write("opencode", home)
    cut_short(file, "delete")
    copy = shutil.copyfile

    def copy_and_change(source: str, target: Path) -> object:
        with Path(f"{file}-journal").open("ab") as journal:
            journal.write(b"\0")
        return copy(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(databases.shutil, "copyfile", copy_and_change)
        with (
            pytest.raises(SourceError, match="changes while it is being copied"),
            databases.open_snapshot(file, frozenset(), databases.replacing_text),
        ):
            pass
    assert read("opencode", home).problems == []


@pytest.mark.parametrize("name", NAMES)
def test_a_file_without_a_byte_is_an_empty_database(name: str, home: Path) -> None:
    for file in write(name, home):
        file.write_bytes(b"")
    for _ in range(2):
        found = read(name, home)
        assert (found.problems, found.new_sessions) == ([], 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_database_that_loses_every_byte_loses_nothing_that_was_read(name: str, home: Path) -> None:
    files = write(name, home)
    read(name, home)
    before = said(home / "store.db")
    for file in files:
        file.write_bytes(b"")
    assert read(name, home).problems == []
    assert said(home / "store.db") == before
