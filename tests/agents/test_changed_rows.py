"""A row that a program changes in place reads as it is now. What it said before is archived, and counts once."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from support.agent_cases import CASES, one_per_package
from support.database_rows import databases_in, delete_rows, opened
from turnlog.agents import agent
from turnlog.agents.base import RowAgent
from turnlog.model import Fate, TextPart, ToolCallPart, Usage
from turnlog.store import open_store
from turnlog.store.archive import Archive
from turnlog.store.base import SessionFilter
from turnlog.store.connection import connect
from turnlog.sync.syncer import sync

LENGTHS = {"longer": "{0} And more.", "shorter": "So.", "as long": "{1}"}
"""What a text becomes: it has grown, or it is another one."""


class Shown(NamedTuple):
    """What a store shows of the sessions of a home."""

    texts: Counter[str]
    calls: Counter[str]
    counts: dict[str, tuple[int, ...]]
    usage: dict[str, Usage | None]


def shown(path: Path, home: Path, name: str) -> Shown:
    assert sync(path, roots=[home], agents=[agent(name)]).diagnostics == 0
    with open_store(path) as store:
        sessions = store.sessions(SessionFilter(subagents=True), limit=200).items
        placed = [one for session in sessions for one in store.messages(session.id)]
        parts = [
            part for one in placed if one.membership.fate in (Fate.ACTIVE, Fate.COMPACTED) for part in one.message.parts
        ]
        return Shown(
            Counter(part.text for part in parts if isinstance(part, TextPart)),
            Counter(part.tool_call_id for part in parts if isinstance(part, ToolCallPart)),
            {one.id: (one.counts.prompts, one.counts.steps, one.counts.tool_calls) for one in sessions},
            {session.id: session.usage.usage for session in sessions},
        )


def row_cases() -> list[str]:
    return [
        case.name for case in one_per_package() if isinstance(agent(case.name), RowAgent) and case.touch is not None
    ]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", row_cases())
def test_a_changed_row_reads_as_it_is_now_and_counts_once(name: str, length: str, tmp_path: Path) -> None:
    """R-S13"""
    case = CASES[name]
    home = case.write_home(case.recorded[0], tmp_path / case.home)
    before = shown(tmp_path / "store.db", home, name)
    # JSON has such a text as it is.
    plain = (each for each, count in before.texts.items() if count == 1 and repr(each) == f"'{each}'")
    text = max((each for each in plain if '"' not in each), key=len)
    changed = LENGTHS[length].format(text, "X" * len(text))
    for database in databases_in(home):
        case.change_text(database, text, changed)
        run(database, case.touch or "")
    after = shown(tmp_path / "store.db", home, name)
    assert changed in after.texts
    assert after == shown(tmp_path / "fresh.db", home, name)
    assert text in archived(tmp_path / "store.db")


@pytest.mark.parametrize("name", [case.name for case in one_per_package() if case.empty is not None])
def test_sessions_with_deleted_messages_are_empty_and_counted_once(name: str, tmp_path: Path) -> None:
    """R-S13: the messages stay in the history, as what the rows said before."""
    case = CASES[name]
    home = case.write_home(case.recorded[0], tmp_path / case.home)
    before = shown(tmp_path / "store.db", home, name)
    for database in databases_in(home):
        run(database, case.empty or "")
    after = shown(tmp_path / "store.db", home, name)
    assert (after.texts, after.calls, after.usage) == (Counter(), Counter(), before.usage)
    with open_store(tmp_path / "store.db") as store:
        sessions = store.sessions(SessionFilter(subagents=True), limit=200).items
        kept = "".join(str(one.message.parts) for session in sessions for one in store.messages(session.id))
    assert [text for text in before.texts if repr(text)[1:-1] not in kept] == []


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.said is not None])
def test_rows_that_vanish_and_return_are_as_before(name: str, tmp_path: Path) -> None:
    """R-S13"""
    case = CASES[name]
    home = case.write_home(case.recorded[0], tmp_path / case.home)
    recorded = {database: database.read_bytes() for database in databases_in(home)}
    before = shown(tmp_path / "store.db", home, name)
    for database in recorded:
        delete_rows(database, "rowid % 3 = 1", [case.said or ""])
    after = shown(tmp_path / "store.db", home, name)
    assert after != before
    assert (after.texts - before.texts, after.calls - before.calls) == (Counter(), Counter())
    for database, data in recorded.items():
        database.write_bytes(data)
    assert shown(tmp_path / "store.db", home, name) == before


def run(database: Path, statements: str) -> None:
    with opened(database) as (connection, _):
        connection.executescript(statements)


def archived(path: Path) -> str:
    """Everything that a store has archived, older generations included."""
    with closing(connect(path, checked=False)) as connection:
        archive = Archive(connection)
        keys = [key for (key,) in connection.execute("SELECT key FROM sources")]
        return b"".join(data for key in keys for data in archive.iter_all(key)).decode(errors="replace")
