"""Rows of a database that belong to no session are counted and reported, until the database is mended."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from support.agent_cases import CASES
from support.cli_runner import call
from support.database_rows import databases_in
from turnlog.agents import agent
from turnlog.agents.base import is_database_itself, reads_rows
from turnlog.server.sample import is_sample_due
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.importing import import_file
from turnlog.sync.rebuild import rebuild
from turnlog.sync.summary import SyncSummary
from turnlog.sync.syncer import sync

STRAYS = [(case.name, *each) for case in CASES.values() for each in case.strays]

NAMES = sorted({name for name, *_ in STRAYS})


def write(name: str, home: Path, recorded: int = 0) -> Path:
    """A recorded home; its database."""
    case = CASES[name]
    [database] = databases_in(case.write_home(case.recorded[recorded], home / case.home))
    return database


def spoil(database: Path, statement: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(statement)


def read(name: str, home: Path) -> SyncSummary:
    return sync(home / "store.db", agents=[agent(name)])


def strays(home: Path) -> dict[str, int]:
    """Column -> how many rows are said to belong to no session."""
    with open_store(home / "store.db") as store:
        found = store.diagnostics(limit=100).items
    said = [(each.json_path or "", each.reason.split(maxsplit=1)) for each in found]
    assert {(each.severity, each.session_id) for each in found} <= {("error", None)}
    assert all(
        words.startswith(("row belongs to no session: ", "rows belong to no session: ")) for _, (_, words) in said
    )
    return {place: int(count) for place, (count, _) in said}


def sessions_of(home: Path) -> list[str]:
    with open_store(home / "store.db") as store:
        return [each.id for each in store.sessions(SessionFilter(subagents=True), limit=200).items]


@pytest.mark.parametrize(("name", "statement", "expected"), STRAYS)
def test_rows_of_no_session_are_reported_until_the_database_is_mended(
    name: str, statement: str, expected: Mapping[str, int], home: Path
) -> None:
    database = write(name, home)
    before = database.read_bytes()
    spoil(database, statement)
    first = read(name, home)
    assert (strays(home), first.diagnostics, first.problems) == (expected, len(expected), [])
    again = read(name, home)
    assert (strays(home), again.changed, again.diagnostics) == (expected, 0, 0)
    rebuild(home / "store.db", agents=[agent(name)])
    assert strays(home) == expected
    database.write_bytes(before)
    read(name, home)
    assert strays(home) == {}


def test_a_deleted_database_has_none_until_it_is_back(home: Path) -> None:
    database = write("hermes", home)
    spoil(database, "DELETE FROM sessions WHERE id = (SELECT min(session_id) FROM messages)")
    data = database.read_bytes()
    read("hermes", home)
    expected = strays(home)
    assert expected
    database.unlink()
    read("hermes", home)
    with open_store(home / "store.db") as store:
        counted = (store.status().diagnostics, store.diagnostic_counts())
    assert (strays(home), *counted) == ({}, 0, [])
    database.write_bytes(data)
    read("hermes", home)
    assert strays(home) == expected


def test_an_agent_has_run_whose_database_has_nothing_but_such_rows(home: Path) -> None:
    database = write("hermes", home)
    spoil(database, "DELETE FROM sessions")
    assert not is_sample_due(home / "store.db")
    spoil(database, "DELETE FROM messages")
    assert is_sample_due(home / "store.db")


def test_an_id_that_is_left_out_is_counted_also_behind_a_nul(home: Path) -> None:
    spoil(write("hermes", home), "UPDATE sessions SET id = 'x' || char(0) || '#y'")
    read("hermes", home)
    assert strays(home) == {"messages.session_id": 11, "sessions.id": 1}


@pytest.mark.parametrize("name", NAMES)
def test_every_row_of_what_was_recorded_belongs_to_a_session(name: str, home: Path) -> None:
    """What an agent itself writes is no fault."""
    reader = agent(name)
    for recorded in CASES[name].recorded:
        for source in reader.find_sources(CASES[name].write_home(recorded, home / recorded)):
            if reads_rows(reader, source) and is_database_itself(source):
                assert list(reader.read_rows(source, ()).lines) == []


@pytest.mark.parametrize("name", ["hermes", "kilo"])
def test_sessions_are_restored_and_forgotten_beside_rows_of_no_session(name: str, home: Path) -> None:
    statement, expected = CASES[name].strays[-1]
    database = write(name, home)
    read(name, home)
    known = sessions_of(home)
    spoil(database, statement)
    read(name, home)
    with open_store(home / "store.db") as store:
        assert store.restore(known[0], home / "restored")
        store.forget(known[0])
    read(name, home)
    assert known[0] not in sessions_of(home)
    assert strays(home) == expected


@pytest.mark.parametrize("name", ["hermes", "kilo"])
def test_an_import_of_a_database_reports_them_too(name: str, home: Path) -> None:
    statement, expected = CASES[name].strays[-1]
    database = write(name, home)
    spoil(database, statement)
    summary = import_file(home / "store.db", database)
    assert (strays(home), summary.diagnostics) == (expected, len(expected))


def test_doctor_says_where_they_are(home: Path) -> None:
    database = write("hermes", home)
    spoil(database, "DELETE FROM sessions")
    assert "1 record could not be understood" in call("sync").output
    [found] = json.loads(call("doctor", "--json").output)["diagnostics"]
    assert (found["path"], found["json_path"]) == (str(database), "messages.session_id")
    assert found["reason"] == "11 rows belong to no session: session_id in messages names nothing in sessions"
