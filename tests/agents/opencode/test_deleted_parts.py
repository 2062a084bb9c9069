"""A message whose parts are deleted, restored or moved says what its rows say now, each part once."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

from support.agent_cases import CASES
from support.database_rows import databases_in
from turnlog.agents import agent
from turnlog.agents.base import RowAgent, Source
from turnlog.model import Message
from turnlog.model.merge import merge_messages
from turnlog.model.parts import Part
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

STEP_STARTS = "DELETE FROM part WHERE data LIKE '%step-start%'"


def write(home: Path) -> Path:
    """A recorded home; its database."""
    case = CASES["opencode"]
    return next(databases_in(case.write_home(case.recorded[0], home / case.home)))


def change(database: Path, *statements: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def shown(store_path: Path, database: Path) -> dict[str, tuple[Part, ...]]:
    """The parts of each message."""
    assert sync(store_path, roots=[database.parent], agents=[agent("opencode")]).problems == []
    with open_store(store_path) as store:
        sessions = store.sessions(SessionFilter(subagents=True), limit=200).items
        return {one.message.id: one.message.parts for each in sessions for one in store.messages(each.id)}


def deletions(database: Path) -> list[str]:
    """The deletion of a few parts at random, and of one with the newest time."""
    chance = random.Random(0)
    with closing(sqlite3.connect(database)) as connection:
        rows = [row for (row,) in connection.execute("SELECT rowid FROM part ORDER BY time_updated")]
    return [f"DELETE FROM part WHERE rowid = {row}" for row in (*chance.sample(rows, len(rows) // 4), rows[-1])]


def test_a_store_that_saw_parts_come_and_go_equals_a_fresh_one(tmp_path: Path) -> None:
    """R-S13"""
    database = write(tmp_path)
    recorded = database.read_bytes()
    before = shown(tmp_path / "store.db", database)
    for seed, statements in enumerate(([STEP_STARTS], deletions(database))):
        database.write_bytes(recorded)
        change(database, *statements)
        after = shown(tmp_path / "store.db", database)
        assert after == shown(tmp_path / f"fresh{seed}.db", database)
        assert after != before
    database.write_bytes(recorded)
    assert shown(tmp_path / "store.db", database) == before


def test_a_version_that_cannot_be_read_does_not_bring_an_earlier_one_back(tmp_path: Path) -> None:
    """The rows have no later time than before, but for their session."""
    database = write(tmp_path)
    recorded = database.read_bytes()
    before = shown(tmp_path / "store.db", database)
    changes = (
        "UPDATE part SET data = json_set(data, '$.text', 'zzz' || (data ->> '$.text')) WHERE data ->> '$.text' != ''",
        "UPDATE message SET data = json_remove(data, '$.role')",
    )
    for statement in changes:
        change(database, statement, "UPDATE session SET time_updated = time_updated + 1")
        shown(tmp_path / "store.db", database)
    database.write_bytes(recorded)
    assert shown(tmp_path / "store.db", database) == before


def test_a_log_with_both_versions_of_a_message_at_one_time_says_the_later(tmp_path: Path) -> None:
    """As versions of turnlog wrote it that gave a line no time of its own: it is read right when it is read again."""
    database = write(tmp_path)
    reader = agent("opencode")
    assert isinstance(reader, RowAgent)
    # The copies of a fork have no time.
    found = [(lines(reader, source), source) for source in reader.find_sources(database.parent)]
    before, source = max((each for each in found if b'"copy_of"' not in each[0]), key=lambda each: len(each[0]))
    change(database, STEP_STARTS)
    after = lines(reader, source)
    assert read(reader, source, before) != read(reader, source, after)
    assert read(reader, source, before + after) == read(reader, source, after)
    assert read(reader, source, before + after + before) == read(reader, source, before)


def lines(reader: RowAgent, source: Source) -> bytes:
    return b"".join(reader.read_rows(source, ()).lines)


def read(reader: RowAgent, source: Source, log: bytes) -> dict[str, tuple[Part, ...]]:
    """The parts of each message, merged as a store does it."""
    found: dict[str, Message] = {}
    for each in reader.fold(source).feed(log, 0).messages:
        message = each.message
        found[message.id] = merge_messages(found.get(message.id, message), message)
    return {name: message.parts for name, message in found.items()}
