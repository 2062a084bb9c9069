"""A database at an agent's own place that lacks what its sessions are read from is a problem; an empty one is none."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support.agent_cases import CASES
from support.database_rows import databases_in
from turnlog.agents import agent
from turnlog.sync.syncer import Syncer, sync


def problems(name: str, home: Path) -> list[str]:
    return [problem.reason for problem in sync(home / "store.db", agents=[agent(name)]).problems]


def write(name: str, home: Path, *statements: str) -> None:
    case = CASES[name]
    [path] = databases_in(case.write_home(case.recorded[0], home / case.home))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA legacy_alter_table = ON")
        for statement in statements:
            connection.execute(statement)


SPOILT = [(case.name, *each) for case in CASES.values() for each in case.spoilt]


@pytest.mark.parametrize(("name", "statement", "missing"), SPOILT)
def test_what_a_database_lacks_is_named(name: str, statement: str, missing: str, home: Path) -> None:
    write(name, home, statement)
    assert problems(name, home) == [f"a database of another schema: {missing}"]


@pytest.mark.parametrize("name", sorted({name for name, *_ in SPOILT}))
@pytest.mark.parametrize("made", ["nothing", "its migrations"])
def test_a_database_that_its_agent_has_just_made_is_no_problem(name: str, made: str, home: Path) -> None:
    write(name, home)
    [path] = databases_in(home / CASES[name].home)
    path.unlink()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE new_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT)")
        if made == "nothing":
            connection.execute("DROP TABLE new_migrations")
    assert problems(name, home) == []


def test_a_foreign_database_beside_its_own_is_nobodys(home: Path) -> None:
    write("kilo", home)
    root = home / CASES["kilo"].home
    other = root / "other.db"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE things (id INTEGER)")
    with Syncer(home / "store.db", agents=[agent("kilo")]) as syncer:
        assert syncer.scan().problems == []
        other.touch()
        assert syncer.read([other]).problems == []
