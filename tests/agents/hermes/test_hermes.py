"""Hermes Agent's database against the scripts of its runs, and how rows that change are read."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.agent_cases import DATA
from support.claude_files import gather
from turnlog.agents import detect
from turnlog.agents.base import SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.commands import resume_command
from turnlog.agents.hermes import Hermes
from turnlog.model import (
    CompactionEvent,
    Fate,
    InterruptEvent,
    Message,
    Origin,
    ReasoningPart,
    RewindEvent,
    TextPart,
    ToolCallPart,
)
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.sync.syncer import sync

AGENT = Hermes()
HERMES = DATA / "hermes"
CASES = sorted(str(folder.relative_to(HERMES)) for folder in HERMES.glob("*/*"))
TOUR = "hermes:20261124_002946_fab2ce"


def synced(case: str, folder: Path) -> Store:
    shutil.copytree(HERMES / case, folder / ".hermes", dirs_exist_ok=True)
    return read(folder)


def read(folder: Path) -> Store:
    assert sync(folder / "store.db", roots=[folder / ".hermes"], agents=[AGENT]).diagnostics == 0
    return open_store(folder / "store.db")


def change(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / ".hermes" / "state.db")) as connection, connection:
        connection.execute(statement)


def answers(store: Store, session: str) -> list[Message]:
    """All answers of the session."""
    placed = store.messages(session)
    return [one.message for one in placed if one.message.role == "assistant"]


def calls_of(messages: list[Message]) -> list[ToolCallPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolCallPart)]


def blocks(message: Message) -> Iterator[tuple[str, Any]]:
    for part in message.parts:
        if isinstance(part, ReasoningPart):
            yield "thinking", part.text
        elif isinstance(part, TextPart):
            yield "text", part.text
        elif isinstance(part, ToolCallPart):
            yield "tool", (part.tool_name, part.tool_call_id, part.input_value())


def script(case: str, *names: str) -> list[dict[str, Any]]:
    return [turn for name in names for turn in json.loads((HERMES / case / f"{name}.script.json").read_text())["main"]]


def wanted(turns: list[dict[str, Any]]) -> list[list[tuple[str, Any]]]:
    return [
        [
            (block["type"], (block["name"], block["id"], block["input"]) if "name" in block else block["text"])
            for block in turn["blocks"]
        ]
        for turn in turns
    ]


@pytest.mark.parametrize(
    ("case", "names", "session"),
    [
        ("0.19.0/tour", ("01main", "02resume"), TOUR),
        ("0.19.0/edit", ("03edit",), "hermes:20261124_003045_13bf74"),
        ("0.19.0/compaction", ("10compact",), "hermes:20261124_003441_db6051"),
    ],
)
def test_a_run_has_the_parts_of_the_script_in_their_order(
    case: str, names: tuple[str, ...], session: str, tmp_path: Path
) -> None:
    """R-C5, R-K1: once, also where a compaction wrote messages again."""
    with synced(case, tmp_path) as store:
        found = [list(blocks(message)) for message in answers(store, session)]
    assert found == wanted(script(case, *names))


@pytest.mark.parametrize("case", ["0.19.0/tour", "0.13.0/tour"])
def test_the_totals_are_those_of_the_script(case: str, tmp_path: Path) -> None:
    """R-C5"""
    used = [turn["usage"] for turn in script("0.19.0/tour", "01main", "02resume")]
    with synced(case, tmp_path) as store:
        [session] = store.sessions(SessionFilter()).items
        report = store.usage()
    by_task = {each.task: each for each in session.totals}
    main, side = by_task.pop(None), [*by_task]
    usage = main.usage
    sums = [sum(one.get(name, 0) for one in used) for name in ("in", "cached", "out")]
    assert [usage.input, usage.cache_read, (usage.output or 0) + (usage.reasoning or 0)] == sums
    # 0.13.0 does not count thoughts, nor the calls for titles.
    assert usage.reasoning == (24 if side else None)
    assert side == (["title_generation"] if case == "0.19.0/tour" else [])
    # No answer is unknown: the totals have them all.
    assert (session.usage.unknown_calls, session.usage.covered_calls) == (0, len(used))
    assert report.totals.tokens == session.usage.usage.total
    assert "in no sum" not in " ".join(report.missing)


def test_results_have_their_status_and_exit_code(tmp_path: Path) -> None:
    """R-C8"""
    with synced("0.19.0/tour", tmp_path) as store:
        calls = calls_of(answers(store, TOUR))
    assert {call.tool_call_id: [(one.status, one.exit_code) for one in call.results] for call in calls} == {
        "call_read1": [("success", None)],
        "call_fail1": [("error", 3)],
        "call_par1": [("success", 0)],
        "call_par2": [("success", 0)],
    }
    assert "missing.txt" in (calls[1].results[0].error_text or "")


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with synced("0.19.0/edit", tmp_path) as store:
        calls = {call.tool_call_id: call for call in calls_of(answers(store, "hermes:20261124_003045_13bf74"))}
    assert calls["call_r1"].results[0].status == "error"
    assert (calls["call_r1"].results[0].error_text or "").startswith("File not found")
    assert calls["call_p1"].results[0].status == "success"


def test_a_compaction_keeps_the_originals_of_what_it_wrote_again(tmp_path: Path) -> None:
    """The active messages are those that the database has as active."""
    session = "hermes:20261124_003441_db6051"
    with synced("0.19.0/compaction", tmp_path) as store:
        placed = [one for one in store.messages(session)]
        events = [event for event in store.events(session) if isinstance(event, CompactionEvent)]
    with closing(sqlite3.connect(tmp_path / ".hermes" / "state.db")) as connection:
        rows = connection.execute("SELECT content FROM messages WHERE active AND role != 'tool' ORDER BY id").fetchall()
    assert len(events) == 2
    active = [one.message for one in placed if one.membership.fate is Fate.ACTIVE]
    texts = ["".join(part.text for part in one.parts if isinstance(part, TextPart)) for one in active]
    # The summaries stand where the compaction happened, and so behind the messages that it kept.
    assert sorted(texts) == sorted(content for (content,) in rows)
    assert [one.message.origin for one in placed if one.message.id == events[-1].summary_message_id] == [
        Origin.COMPACTION
    ]


def test_messages_repeated_by_a_compaction_are_shown_if_originals_go(tmp_path: Path) -> None:
    session, place = "20261124_003441_db6051", tmp_path / ".hermes"
    shutil.copytree(HERMES / "0.19.0/compaction", place)
    stores = [tmp_path / "store.db", tmp_path / "fresh.db"]
    sync(stores[0], roots=[place], agents=[Hermes()])
    with closing(sqlite3.connect(place / "state.db")) as connection, connection:
        connection.execute("DELETE FROM messages WHERE session_id = ? AND compacted", (session,))
    shown: list[list[Message]] = []
    for path in stores:
        sync(path, roots=[place], agents=[Hermes()])
        with open_store(path) as store:
            placed = list(store.messages(f"hermes:{session}"))
        shown.append([one.message for one in placed if one.membership.fate is Fate.ACTIVE])
    assert shown[0] == shown[1]
    assert len(shown[0]) > 2


def test_what_was_taken_back_is_rewound_and_a_fork_shares_its_messages(tmp_path: Path) -> None:
    original, fork = "hermes:20261124_003329_02c93d", "hermes:20261124_003423_a36682"
    with synced("0.19.0/undo-and-branch", tmp_path) as store:
        fates = [one.membership.fate for one in store.messages(original)]
        [event] = [event for event in store.events(original) if isinstance(event, RewindEvent)]
        shared = {one.message.id for one in store.messages(original)}
        copied = [one.message.id in shared for one in store.messages(fork)]
        billed = [one.membership.is_billed for one in store.messages(fork)]
        [relation] = store.session(fork).relationships
    assert fates[:4] == [Fate.ACTIVE, Fate.REWOUND, Fate.REWOUND, Fate.ACTIVE]
    assert event.to_message_id == "20261124_003329_02c93d.34"
    assert copied == [True] * 4 + [False] * 2
    assert billed == [False] * 4 + [True] * 2
    assert (relation.kind, relation.parent_session_id) == ("fork", original)


def test_rows_that_are_marked_later_change_what_became_of_them(tmp_path: Path) -> None:
    """The log is written anew, and its older generation stays in the archive."""
    with synced("0.19.0/tour", tmp_path) as store:
        assert {one.membership.fate for one in store.messages(TOUR)} == {Fate.ACTIVE}
    change(tmp_path, "UPDATE messages SET active = 0 WHERE id >= 10")
    change(tmp_path, "UPDATE sessions SET rewind_count = 1")
    with read(tmp_path) as store:
        fates = {one.message.id: one.membership.fate for one in store.messages(TOUR)}
    rewound = [name for name, fate in fates.items() if fate is Fate.REWOUND]
    assert rewound == ["20261124_002946_fab2ce.10", "20261124_002946_fab2ce.11"]


def test_a_new_row_is_added_to_the_log(tmp_path: Path) -> None:
    with synced("0.19.0/tour", tmp_path) as store:
        before = len(list(store.messages(TOUR)))
    change(
        tmp_path,
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES"
        " ('20261124_002946_fab2ce', 'user', 'One more', 1795480300.5)",
    )
    with read(tmp_path) as store:
        placed = [one for one in store.messages(TOUR) if one.membership.fate is Fate.ACTIVE]
        assert len(list(store.messages(TOUR))) == before + 1
    assert placed[-1].message.origin is Origin.PROMPT


@pytest.mark.parametrize("case", ["0.19.0/subagent", "0.13.0/subagent"])
def test_a_subagent_is_linked_to_the_call_with_its_task(case: str, tmp_path: Path) -> None:
    """R-C10"""
    with synced(case, tmp_path) as store:
        [parent] = store.sessions(SessionFilter()).items
        [child] = store.children(parent.id)
        [relation] = child.relationships
        inside = [one.message.origin for one in store.messages(child.id) if one.membership.fate is Fate.ACTIVE]
    assert (relation.kind, relation.parent_tool_call_id, relation.inferred) == ("subagent", "call_task1", True)
    assert inside == [Origin.SUBAGENT_PROMPT, None, None]


def test_a_session_that_a_compaction_ended_is_continued(tmp_path: Path) -> None:
    """0.13.0"""
    with synced("0.13.0/compaction", tmp_path) as store:
        session = store.session("hermes:20261124_004921_3c1767")
        [relation] = session.relationships
        origins = [one.message.origin for one in store.messages(session.id)]
    assert relation.kind == "continuation"
    assert Origin.COMPACTION in origins


def test_a_stopped_answer_is_interrupted_a_stopped_command_open(tmp_path: Path) -> None:
    with synced("0.19.0/stopped", tmp_path) as store:
        events = [
            event
            for session in store.sessions(SessionFilter()).items
            for event in store.events(session.id)
            if isinstance(event, InterruptEvent)
        ]
        [call] = calls_of(answers(store, "hermes:20261124_003127_4434cb"))
    assert [(event.during, event.derived) for event in events] == [("answer", True)]
    assert call.results == ()


@pytest.mark.parametrize("case", CASES)
def test_a_database_is_recognised_by_its_tables(case: str) -> None:
    """R-S21"""
    [database] = (HERMES / case).rglob("state.db")
    found = detect(database)
    assert found.agent == "hermes"
    assert found.sources


def test_a_database_with_tables_of_the_same_names_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE sessions (id TEXT)")
        connection.execute("CREATE TABLE messages (id TEXT, session_id TEXT)")
    assert detect(path).agent is None


@pytest.mark.parametrize("case", CASES)
def test_any_split_equals_the_whole(case: str) -> None:
    """R-S34: also where a fold is put away and taken up again."""
    for source in AGENT.discover([HERMES / case]):
        if source.kind is SourceKind.SIDECAR:
            continue
        log = list(AGENT.read_rows(source, ()).lines)
        whole = gather(AGENT.fold(source).feed(b"".join(log), 0))
        pieces: list[Changes] = []
        state, offset = None, 0
        for line in log:
            fold = AGENT.fold(source, state)
            pieces.append(fold.feed(line, offset))
            state, offset = fold.state(), offset + len(line)
        apart = gather(*pieces)
        assert apart.messages == whole.messages
        assert apart.events == whole.events
        assert apart.counts.total == whole.counts.total == len(log)


@pytest.mark.parametrize("case", CASES)
def test_restored_rows_are_those_of_the_database(case: str, tmp_path: Path) -> None:
    """R-S1"""
    with synced(case, tmp_path) as store:
        files = {
            file.path
            for session in store.sessions(SessionFilter(subagents=True), limit=50).items
            for file in store.restore(session.id, tmp_path / "restored")
        }
    [restored] = files
    [original] = (tmp_path / ".hermes").rglob("state.db")
    for table in ("sessions", "messages"):
        assert rows_in(restored, table) == rows_in(original, table)


def rows_in(path: Path, table: str) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        found = connection.execute(f"SELECT * FROM {table} ORDER BY id").fetchall()
    return [{name: row[name] for name in sorted(row.keys()) if row[name] is not None} for row in found]


def test_a_session_is_resumed_by_its_id() -> None:
    assert AGENT.command is not None
    assert resume_command(AGENT.command, "20261124_1") == ["hermes", "--resume", "20261124_1"]


def test_messages_of_a_channel_say_so(tmp_path: Path) -> None:
    shutil.copytree(HERMES / "0.19.0/tour", tmp_path / ".hermes")
    change(tmp_path, "UPDATE sessions SET source = 'telegram', chat_type = 'group'")
    with read(tmp_path) as store:
        assert store.session(TOUR).metadata["hermes"]["source"] == "telegram"
