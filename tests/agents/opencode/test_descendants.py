"""MiMo Code and ICodeMate: OpenCode's tables under other names, and what MiMo Code adds (R-C1, R-C2)."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from turnlog.agents import agent, agents, detect
from turnlog.model import Message, Origin, Session
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "opencode"
SAMPLE = ROOT / "src" / "turnlog" / "sample" / "mimo-code" / "mimocode.db"
MIMO = agent("mimo-code")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """MiMo Code's, with the recorded tour: a session that was resumed, one with a subagent, and that."""
    shutil.copytree(DATA / "handwritten-mimo-code" / "tour", tmp_path / "data")
    return tmp_path / "data" / "mimocode.db"


def read(database: Path, store: Path) -> list[tuple[Session, list[Message]]]:
    """The sessions of a database, with their messages."""
    assert sync(store, roots=[database.parent], agents=[MIMO]).diagnostics == 0
    with open_store(store) as opened:
        found = opened.sessions(SessionFilter(subagents=True)).items
        return [(session, [placed.message for placed in opened.messages(session.id)]) for session in found]


def tokens(messages: Sequence[Message]) -> list[tuple[int | None, ...]]:
    return [
        (usage.input, usage.cache_read, usage.output, usage.reasoning)
        for message in messages
        if (usage := message.usage) is not None
    ]


def message_ids(database: Path, session: str) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT id FROM message WHERE session_id = ? ORDER BY id", (session,))
        return [key for (key,) in rows]


def mark_as_imported(database: Path, session: str, made: str | None) -> None:
    row = ("cc", session, session, "/home/dev/.claude/projects/-work/a.jsonl", 1, 2, made)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("INSERT INTO external_import VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def session_of(database: Path, words: str) -> str:
    with closing(sqlite3.connect(database)) as connection:
        query = "SELECT session_id FROM part WHERE instr(data, ?) ORDER BY id LIMIT 1"
        [(found,)] = connection.execute(query, (words,))
        return found


@pytest.mark.parametrize(("name", "file"), [("mimo-code", "mimocode.db"), ("icodemate", "icodemate.db")])
def test_a_database_is_known_by_its_name(name: str, file: str, home: Path) -> None:
    """R-S21"""
    folder = home / ".local/share" / file.removesuffix(".db")
    shutil.copytree(DATA / f"handwritten-{name}" / "tour", folder)
    assert {found.name: list(found.roots()) for found in agents() if list(found.roots())} == {name: [folder]}
    assert {source.agent for source in agent(name).discover()} == {name}
    assert detect(folder / file).agent == name


def test_a_database_of_mimo_code_is_known_by_its_own_table(database: Path) -> None:
    """R-S21"""
    moved = database.rename(database.with_name("copy.db"))
    assert detect(moved).agent == "mimo-code"


def test_variables_name_the_data_and_a_database(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIMOCODE_HOME", str(tmp_path))
    assert list(MIMO.roots()) == [database.parent]
    monkeypatch.delenv("MIMOCODE_HOME")
    monkeypatch.setenv("MIMOCODE_DB", str(database))
    assert list(MIMO.roots()) == [database.parent]


def test_a_session_that_was_only_imported_is_left_out(database: Path, tmp_path: Path) -> None:
    """R-C5: the logs of the other agent have its tokens."""
    before = read(database, tmp_path / "before.db")
    imported = session_of(database, "Resumed: nothing")
    mark_as_imported(database, imported, json.dumps(message_ids(database, imported)))
    after = read(database, tmp_path / "after.db")
    assert {session.id for session, _ in before} - {session.id for session, _ in after} == {f"mimo-code:{imported}"}


def test_a_session_whose_import_names_no_messages_is_left_out(database: Path, tmp_path: Path) -> None:
    imported = session_of(database, "Resumed: nothing")
    mark_as_imported(database, imported, None)
    assert f"mimo-code:{imported}" not in {session.id for session, _ in read(database, tmp_path / "store.db")}


def test_a_session_that_was_continued_after_its_import_is_read_whole(database: Path, tmp_path: Path) -> None:
    imported = session_of(database, "Resumed: nothing")
    made = message_ids(database, imported)
    mark_as_imported(database, imported, json.dumps(made[:2]))
    [messages] = [found for session, found in read(database, tmp_path / "store.db") if session.id.endswith(imported)]
    assert len(messages) >= len(made)


def test_prompts_of_a_subagent_are_not_the_users(tmp_path: Path) -> None:
    """R-C10"""
    (tmp_path / "data").mkdir()
    shutil.copy(SAMPLE, tmp_path / "data")
    [messages] = [
        messages
        for _, messages in read(tmp_path / "data" / SAMPLE.name, tmp_path / "store.db")
        if any("agentID" in message.metadata.get("opencode", {}) for message in messages)
    ]
    origins = [message.origin for message in messages if message.role == "user"]
    assert origins == [Origin.PROMPT, Origin.SUBAGENT_PROMPT]


def test_versions_of_its_own_do_not_change_what_tokens_mean(database: Path, tmp_path: Path) -> None:
    """R-K1: 0.1.15 is not a version of OpenCode that counted cached tokens as input."""
    with closing(sqlite3.connect(database)) as connection, connection:
        for table in ("message", "part"):
            connection.execute(
                f"UPDATE {table} SET data = json_remove(data, '$.tokens.total') WHERE data LIKE '%tokens%'"
            )
    counted = [found for _, messages in read(database, tmp_path / "store.db") for found in tokens(messages)]
    assert (1700, 1500, 15, 0) in counted
