"""What an agent deletes of its databases or files stays in the history, and is counted once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.agent_cases import CASES, one_per_package
from turnlog.agents import agent
from turnlog.agents.base import RowAgent
from turnlog.agents.databases import is_database
from turnlog.model import Usage
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync


def databases_in(home: Path) -> Iterator[Path]:
    files = (path for path in sorted(home.rglob("*")) if path.is_file())
    return (path for path in files if is_database(path.read_bytes()[:16]))


def cases() -> list[tuple[str, str]]:
    """Recorded homes of the agents that keep databases, or many files: a tour, and what was compacted."""
    return [
        (case.name, recorded)
        for case in one_per_package()
        for recorded in case.recorded
        if isinstance(agent(case.name), RowAgent) and (recorded == case.recorded[0] or "compact" in recorded)
    ]


def delete_in(home: Path, *, all_of_it: bool) -> None:
    found = list(databases_in(home))
    for database in found:
        delete_rows(database, "TRUE" if all_of_it else "rowid % 2")
    if not found:
        for file in [path for path in sorted(home.rglob("*")) if path.is_file()][:: 1 if all_of_it else 2]:
            file.unlink()


def delete_rows(database: Path, condition: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        tables = connection.execute("SELECT name, type FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        for name in (name for name, kind in tables if kind == "trigger"):
            connection.execute(f'DROP TRIGGER "{name}"')
        for name in (name for name, kind in tables if kind == "table" and not name.startswith("sqlite_")):
            connection.execute(f'DELETE FROM "{name}" WHERE {condition}')


def history(path: Path, home: Path, name: str) -> tuple[set[str], dict[str, Usage | None]]:
    """The messages that a store has after a sync, and what each session used."""
    sync(path, roots=[home], agents=[agent(name)])
    with open_store(path) as store:
        sessions = store.sessions(SessionFilter(), limit=200).items
        return (
            {one.message.id for session in sessions for one in store.messages(session.id)},
            {session.id: session.usage.usage for session in sessions},
        )


@pytest.mark.parametrize("all_of_it", [True, False], ids=["all", "every second"])
@pytest.mark.parametrize(("name", "recorded"), cases(), ids=str)
def test_what_is_deleted_stays_in_the_history(name: str, recorded: str, all_of_it: bool, tmp_path: Path) -> None:
    home = CASES[name].write_home(recorded, tmp_path / CASES[name].home)
    messages, usage = history(tmp_path / "store.db", home, name)
    delete_in(home, all_of_it=all_of_it)
    left, used = history(tmp_path / "store.db", home, name)
    assert messages
    assert messages <= left
    assert used == usage
