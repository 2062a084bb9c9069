"""Files that an agent writes again itself, from its rows: who may read them, and what is in their place."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from support.agent_cases import CASES, one_per_package
from support.database_rows import databases_in, opened
from turnlog.agents import agent
from turnlog.agents.base import RowAgent
from turnlog.errors import ConflictError
from turnlog.model import Message, MessageEvent
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.sync.syncer import sync

WITH_ROWS = [name for name in CASES if isinstance(agent(name), RowAgent)]
ONE_EACH = {case.name for case in one_per_package()}
FOUND = [name for name in WITH_ROWS if name in ONE_EACH and not CASES[name].home.startswith(".local/share/turnlog")]
"""Those whose sessions are found where they are. An export is imported, and what is restored of it too."""


@pytest.mark.parametrize("name", WITH_ROWS)
def test_restored_files_are_for_the_user_alone_and_wait_for_no_pipe(name: str, tmp_path: Path) -> None:
    """As the store is, whose bytes they are."""
    case = CASES[name]
    home = case.write_home(case.recorded[0], tmp_path / case.home)
    sync(tmp_path / "turnlog.db", roots=[home], agents=[agent(name)])
    old = os.umask(0o022)
    try:
        with open_store(tmp_path / "turnlog.db") as store:
            session = store.sessions().items[0].id
            files = [file.path for file in store.restore(session, tmp_path / "back")]
            assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
            assert store.restore(session, tmp_path / "back")
            files[0].unlink()
            os.mkfifo(files[0])
            with pytest.raises(ConflictError, match="pipe"):
                store.restore(session, tmp_path / "back")
    finally:
        os.umask(old)


@pytest.mark.parametrize("name", FOUND)
def test_restored_sessions_are_read_again_as_they_were(name: str, tmp_path: Path) -> None:
    """Of every recording: a database that is written from rows has what its agent is known by."""
    case = CASES[name]
    for recording in case.recorded:
        folder = tmp_path / recording.replace("/", "-")
        home = case.write_home(recording, folder / case.home)
        sync(folder / "turnlog.db", roots=[home], agents=[agent(name)])
        back = folder / "back" / case.home
        with open_store(folder / "turnlog.db") as store:
            stored = messages_of(store)
            for session in stored:
                store.restore(session, back)
        summary = sync(folder / "again.db", roots=[back], agents=[agent(name)])
        assert summary.problems == []
        with open_store(folder / "again.db") as store:
            assert messages_of(store) == stored


OLDER = {"llm": ("llm/0.27.1/tour",)}
"""Recordings of versions with other tables."""


@pytest.mark.parametrize("name", FOUND)
def test_the_tables_of_an_agent_stay_as_they_are(name: str, tmp_path: Path) -> None:
    """A later version of the agent adds tables and columns itself, and fails where it finds them."""
    case = CASES[name]
    for recording in (*case.recorded, *OLDER.get(name, ())):
        folder = tmp_path / recording.replace("/", "-")
        home = case.write_home(recording, folder / case.home)
        sync(folder / "turnlog.db", roots=[home], agents=[agent(name)])
        before = [tables_of(database) for database in databases_in(home)]
        for database in databases_in(home):
            with opened(database) as (connection, _):
                for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                    if not table.startswith("sqlite_"):
                        connection.execute(f'DELETE FROM "{table}"')
        with open_store(folder / "turnlog.db") as store:
            stored = messages_of(store)
            for session in stored:
                store.restore(session, home)
        assert [tables_of(database) for database in databases_in(home)] == before
        sync(folder / "again.db", roots=[home], agents=[agent(name)])
        with open_store(folder / "again.db") as store:
            assert messages_of(store).keys() == stored.keys()


def tables_of(database: Path) -> set[tuple[str, str]]:
    """Each table, as it was made."""
    with closing(sqlite3.connect(database)) as connection:
        return {*connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()}


def messages_of(store: Store) -> dict[str, list[Message]]:
    every = SessionFilter(subagents=True)
    return {
        session.id: [event.message for event in store.history(session.id) if isinstance(event, MessageEvent)]
        for session in store.sessions(every, limit=200).items
    }


@pytest.mark.parametrize("name", [name for name in FOUND if CASES[name].empty is not None])
def test_a_restored_session_without_messages_is_readable(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    home = case.write_home(case.recorded[0], tmp_path / case.home)
    sync(tmp_path / "turnlog.db", roots=[home], agents=[agent(name)])
    for database in databases_in(home):
        with opened(database) as (connection, _):
            connection.executescript(case.empty or "")
    sync(tmp_path / "turnlog.db", roots=[home], agents=[agent(name)])
    back = tmp_path / "back" / case.home
    with open_store(tmp_path / "turnlog.db") as store:
        for session in messages_of(store):
            store.restore(session, back)
    assert sync(tmp_path / "again.db", roots=[back], agents=[agent(name)]).problems == []
