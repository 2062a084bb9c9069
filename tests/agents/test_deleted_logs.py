"""What an agent deletes of its databases or files stays in the history, and is counted once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.agent_cases import CASES, one_per_package
from support.database_rows import databases_in, delete_rows, opened
from turnlog.agents import agent
from turnlog.agents.base import RowAgent
from turnlog.model import Usage, UsageTotal
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

SINGLE_ROWS = 3
"""How many rows of each table are deleted alone."""


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


def history(path: Path, home: Path, name: str) -> tuple[set[str], dict[str, UsageTotal]]:
    """The messages that a store has after a sync, and what each session used."""
    sync(path, roots=[home], agents=[agent(name)])
    with open_store(path) as store:
        sessions = store.sessions(SessionFilter(), limit=200).items
        return (
            {one.message.id for session in sessions for one in store.messages(session.id)},
            {session.id: session.usage for session in sessions},
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


@pytest.mark.parametrize("name", [case.name for case in one_per_package() if case.touch is not None])
def test_a_single_row_that_is_deleted_adds_no_call_and_no_tokens(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    home = case.write_home(case.recorded[0], tmp_path / case.home)
    _, usage = history(tmp_path / "store.db", home, name)
    for database in databases_in(home):
        with opened(database) as (connection, tables):
            connection.executescript(case.touch or "")
            statement = f"ORDER BY rowid LIMIT {SINGLE_ROWS}"
            rows = [
                (table, number)
                for table in tables
                for (number,) in connection.execute(f'SELECT rowid FROM "{table}" {statement}')
            ]
        kept = database.read_bytes()
        for table, number in rows:
            store = tmp_path / f"{table}-{number}"
            store.mkdir()
            for file in tmp_path.glob("store.db*"):
                shutil.copy(file, store / file.name)
            delete_rows(database, f"rowid = {number}", [table])
            _, used = history(store / "store.db", home, name)
            assert sums_of(used) == sums_of(usage), (table, number)
            database.write_bytes(kept)


def sums_of(usage: dict[str, UsageTotal]) -> tuple[int, ...]:
    """The tokens and calls of all sessions: a fork whose first message is gone may be billed for what it shares."""
    found = [(total.usage or Usage(), total) for total in usage.values()]
    return (
        sum((used.input or 0) + (used.cache_read or 0) + (used.output or 0) for used, _ in found),
        sum(total.calls for _, total in found),
        sum(total.unknown_calls for _, total in found),
    )
