"""OpenClaw's database against the script of its run, and how rows that are added, compressed or rewritten are read."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from zstandard import ZstdCompressor

from support.pi_files import DATA, answer, call, header, record, result, script, user
from turnlog.agents import agent, detect
from turnlog.agents.base import SourceKind
from turnlog.errors import ConflictError
from turnlog.model import CompactionEvent, Fate, Message, Origin, RewindEvent, TextPart, ToolCallPart, ToolState
from turnlog.model.codec import encode
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.store.connection import connect
from turnlog.store.sqlite.restore import restore_files
from turnlog.sync.summary import SyncSummary
from turnlog.sync.syncer import sync

CLAW = agent("openclaw")
RECORDED = DATA / "openclaw" / "2026.9.6" / "basic"
DATABASE = "agents/main/agent/openclaw-agent.sqlite"

SCHEMA = """
CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT,
  created_at INTEGER NOT NULL, event_zstd BLOB, event_utf8_bytes INTEGER, navigation_json TEXT,
  PRIMARY KEY (session_id, seq));
CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT, updated_at INTEGER, chat_type TEXT,
  channel TEXT, display_name TEXT);
CREATE TABLE auth_profile_store (secret TEXT);
INSERT INTO auth_profile_store VALUES ('do not read');
"""


def write(home: Path, records: list[dict[str, Any]], *, owner: str = "main", packed: int = 0, updated: int = 1) -> Path:
    """A database with these records of one session, the first of them compressed."""
    path = home / DATABASE.replace("main", owner)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(SCHEMA)
        connection.execute("INSERT INTO session_windows VALUES ('s', 'key', ?, 'group', 'telegram', NULL)", (updated,))
        for seq, each in enumerate(records):
            text = json.dumps(each, separators=(",", ":"))
            blob = ZstdCompressor().compress(text.encode()) if seq < packed else None
            row = ("s", seq, None if blob else text, 1000 + seq, blob, len(text))
            connection.execute("INSERT INTO transcript_events VALUES (?, ?, ?, ?, ?, ?, NULL)", row)
    return path


def read(home: Path, folder: Path) -> SyncSummary:
    return sync(folder / "store.db", roots=[home], agents=[CLAW])


def messages(folder: Path, session: str = "openclaw:s", *fates: Fate) -> list[Message]:
    with open_store(folder / "store.db") as store:
        found = list(store.messages(session))
    return [each.message for each in found if not fates or each.membership.fate in fates]


CHAT = [header(version=4, id="s"), user("one", 1), answer(2, {"type": "text", "text": "two"})]


def test_the_recorded_run_is_that_of_the_script(tmp_path: Path) -> None:
    """R-C5, R-K1"""
    shutil.copytree(RECORDED, tmp_path / ".openclaw")
    read(tmp_path / ".openclaw", tmp_path)
    steps = script("openclaw", "2026.9.6", "basic")
    turns = [*steps["01main"], *steps["02resume"]]
    with open_store(tmp_path / "store.db") as store:
        [session] = store.sessions(SessionFilter()).items
    found = messages(tmp_path, session.id)
    answers = [message for message in found if message.role == "assistant"]
    for message, turn in zip(answers, turns, strict=True):
        assert message.usage is not None
        used, thought = turn["usage"], turn["usage"].get("reasoning", 0)
        counted = (message.usage.input, message.usage.cache_read, message.usage.output, message.usage.reasoning)
        assert counted == (used["in"], used.get("cached", 0), used["out"] - thought, thought)
        assert [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)] == [
            block["id"] for block in turn["blocks"] if block["type"] == "tool"
        ]
    calls = {p.tool_call_id: p for message in answers for p in message.parts if isinstance(p, ToolCallPart)}
    # OpenClaw itself calls this a success.
    assert calls["call_fail1"].state is ToolState.OUTPUT_ERROR
    assert (calls["call_fail1"].results[0].exit_code, calls["call_fail1"].results[0].duration_ms) == (3, 857)
    assert [calls[f"call_par{n}"].output_text for n in (1, 2)] == ["one", "two"]
    assert (session.cwd, session.models) == ("/home/dev/work", ("mock-model",))
    assert session.metadata["openclaw"]["session_key"] == "agent:main:explicit:s-main"
    asked = [message for message in found if message.role == "user"]
    assert [message.metadata["openclaw"]["openclaw"]["senderIsOwner"] for message in asked] == [True, True]


def test_a_stopped_command_has_no_result_and_a_stopped_answer_is_not_there(tmp_path: Path) -> None:
    """R-C8: Ctrl-C ended the program in a command and then in an answer; it writes neither down."""
    shutil.copytree(RECORDED.parent / "interrupted", tmp_path / ".openclaw")
    assert read(tmp_path / ".openclaw", tmp_path).diagnostics == 0
    steps: dict[str, list[dict[str, Any]]] = json.loads((RECORDED.parent / "interrupted" / "script.json").read_text())
    turns = [steps["01int"][0], *steps["02after"]]
    found = messages(tmp_path, "openclaw:s-int")
    assert [message.role for message in found] == ["user", "assistant", "user", "assistant", "user"]
    answers = [message for message in found if message.role == "assistant"]
    used = [message.usage for message in answers if message.usage is not None]
    assert [(one.input, one.cache_read, one.output) for one in used] == [
        (turn["usage"]["in"], turn["usage"]["cached"], turn["usage"]["out"]) for turn in turns
    ]
    [stopped] = [part for message in answers for part in message.parts if isinstance(part, ToolCallPart)]
    assert (stopped.tool_call_id, stopped.state, stopped.results) == ("call_long1", ToolState.ABORTED, ())


def test_a_recorded_compaction_is_a_summary_in_the_place_of_the_prompt(tmp_path: Path) -> None:
    """R-C5: the program wrote the summary itself; the answer that it kept stays in the context."""
    shutil.copytree(RECORDED.parent / "compaction", tmp_path / ".openclaw")
    assert read(tmp_path / ".openclaw", tmp_path).diagnostics == 0
    turns = json.loads((RECORDED.parent / "compaction" / "script.json").read_text())["main"]
    with open_store(tmp_path / "store.db") as store:
        [session] = store.sessions(SessionFilter()).items
        [event] = [one for one in store.events(session.id) if isinstance(one, CompactionEvent)]
        placed = list(store.messages(session.id))
    answers = [one.message for one in placed if one.message.role == "assistant"]
    used = [message.usage for message in answers if message.usage is not None]
    assert [(one.input, one.cache_read, one.output) for one in used] == [
        (turn["usage"]["in"], turn["usage"]["cached"], turn["usage"]["out"]) for turn in turns
    ]
    assert [(one.message.role, one.membership.fate) for one in placed] == [
        ("user", Fate.COMPACTED),
        ("assistant", Fate.ACTIVE),
        ("developer", Fate.ACTIVE),
        ("user", Fate.ACTIVE),
        ("assistant", Fate.ACTIVE),
    ]
    assert event.summary_message_id == placed[2].message.id
    # Its window shows the end of its key, which nobody named.
    assert session.title == "And more."


def test_a_recorded_subagent_is_a_session_that_a_call_started(tmp_path: Path) -> None:
    """R-C10: its window names the key of the parent's session, and the result of the call that of its own."""
    shutil.copytree(RECORDED.parent / "subagent", tmp_path / ".openclaw")
    assert read(tmp_path / ".openclaw", tmp_path).diagnostics == 0
    scripts: dict[str, list[dict[str, Any]]] = json.loads((RECORDED.parent / "subagent" / "script.json").read_text())
    with open_store(tmp_path / "store.db") as store:
        [session] = store.sessions(SessionFilter()).items
        [child] = store.children(session.id)
        restored = store.restore(session.id, tmp_path / "restored")
    [relation] = child.relationships
    assert (relation.kind, relation.parent_session_id, relation.parent_tool_call_id, relation.inferred) == (
        "subagent", "openclaw:s-sub", "call_spawn1", False,
    )  # fmt: skip
    for name, turns in ((session.id, scripts["main"]), (child.id, scripts["sub"])):
        answers = [message for message in messages(tmp_path, name) if message.role == "assistant"]
        used = [message.usage for message in answers if message.usage is not None]
        assert [(one.input, one.cache_read, one.output) for one in used] == [
            (turn["usage"]["in"], turn["usage"]["cached"], turn["usage"]["out"]) for turn in turns
        ]
        told = [part.text if isinstance(part, TextPart) else part.tool_call_id for part in parts_in(answers)]
        assert told == [block.get("text", block.get("id")) for turn in turns for block in turn["blocks"]]
    [counted] = [part for part in parts_in(messages(tmp_path, child.id)) if isinstance(part, ToolCallPart)]
    assert (counted.output_text, counted.results[0].exit_code) == ("3 notes.txt", 0)
    [task] = [message for message in messages(tmp_path, child.id) if message.role == "user"]
    assert task.origin is Origin.SUBAGENT_PROMPT
    # Its parent wrote it, not somebody in a channel.
    assert "is_from_others" not in task.metadata["openclaw"]
    assert rows_of(restored[0].path) == rows_of(RECORDED.parent / "subagent" / DATABASE)


def parts_in(found: list[Message]) -> list[TextPart | ToolCallPart]:
    return [part for message in found for part in message.parts if isinstance(part, TextPart | ToolCallPart)]


def rows_of(database: Path) -> list[Any]:
    statement = "SELECT session_id, seq, event_json, created_at FROM transcript_events ORDER BY session_id, seq"
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(statement).fetchall()


def test_a_subagent_is_linked_when_its_rows_are_compressed(tmp_path: Path) -> None:
    """And to the newest conversation with the key that there was when it started."""
    home = tmp_path / ".openclaw"
    shutil.copytree(RECORDED.parent / "subagent", home)
    with closing(sqlite3.connect(home / DATABASE)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for rowid, text in connection.execute("SELECT rowid, event_json FROM transcript_events").fetchall():
            packed = ZstdCompressor().compress(text.encode())
            statement = "UPDATE transcript_events SET event_json = NULL, event_zstd = ? WHERE rowid = ?"
            connection.execute(statement, (packed, rowid))
        connection.execute(
            "INSERT INTO session_windows (session_id, session_key, session_scope, created_at, updated_at)"
            " SELECT 's-later', session_key, session_scope, created_at * 2, updated_at FROM session_windows"
            " WHERE session_id = 's-sub'"
        )
    read(home, tmp_path)
    with open_store(tmp_path / "store.db") as store:
        [child] = store.children("openclaw:s-sub")
    assert [relation.parent_tool_call_id for relation in child.relationships] == ["call_spawn1"]


def test_rows_that_are_added_are_read_alone_and_give_what_all_give(tmp_path: Path) -> None:
    records = [*CHAT, user("three", 3), answer(4, call("c")), result("c", 5)]
    home = tmp_path / ".openclaw"
    for count in range(2, len(records) + 1):
        write(home, records[:count], updated=count)
        read(home, tmp_path)
    write(tmp_path / "other" / ".openclaw", records, updated=len(records))
    read(tmp_path / "other" / ".openclaw", tmp_path / "other")
    assert [*map(encode, messages(tmp_path))] == [*map(encode, messages(tmp_path / "other"))]
    assert read(home, tmp_path).changed == 0
    with open_store(tmp_path / "store.db") as one, open_store(tmp_path / "other" / "store.db") as other:
        [first], [second] = (list(store.sessions(SessionFilter()).items) for store in (one, other))
        assert first == second


def test_rows_that_openclaw_compresses_are_the_same(tmp_path: Path) -> None:
    home = tmp_path / ".openclaw"
    write(home, CHAT)
    read(home, tmp_path)
    before = messages(tmp_path)
    write(home, CHAT, packed=2)
    read(home, tmp_path)
    assert messages(tmp_path) == before
    write(home, CHAT, packed=3, updated=9)
    read(home, tmp_path / "fresh")
    assert messages(tmp_path / "fresh") == before


def test_rows_that_openclaw_rewrites_read_as_they_are_now(tmp_path: Path) -> None:
    """R-S13: what they said before is kept, and superseded."""
    home = tmp_path / ".openclaw"
    write(home, [*CHAT, user("wrong", 3)])
    read(home, tmp_path)
    write(home, [*CHAT, user("right", 4, 2)], updated=2)
    read(home, tmp_path)
    current = messages(tmp_path, "openclaw:s", Fate.ACTIVE)
    assert [str(message.parts) for message in current if "wrong" in str(message.parts)] == []
    assert len(messages(tmp_path)) == 4


def test_what_others_wrote_is_marked(tmp_path: Path) -> None:
    """In a channel, anybody may write to the agent."""
    stranger = user("hello from a group", 3)
    stranger["message"]["__openclaw"] = {"senderIsOwner": False, "senderId": "7"}
    write(tmp_path / ".openclaw", [*CHAT, stranger])
    read(tmp_path / ".openclaw", tmp_path)
    marks = [message.metadata.get("openclaw", {}).get("is_from_others") for message in messages(tmp_path)]
    assert marks == [None, None, True]
    with open_store(tmp_path / "store.db") as store:
        [session] = store.sessions(SessionFilter()).items
    assert {"channel": "telegram", "chat_type": "group"}.items() <= session.metadata["openclaw"].items()


def test_a_leaf_goes_back_and_a_reset_begins_anew(tmp_path: Path) -> None:
    moved = [*CHAT, record("leaf", 3, targetId="00000001"), answer(4, parent=1), record("reset", 5, reason="new")]
    write(tmp_path / ".openclaw", [*moved, user("anew", 6)])
    read(tmp_path / ".openclaw", tmp_path)
    assert ["two" in str(m.parts) for m in messages(tmp_path, "openclaw:s", Fate.REWOUND)] == [True]
    assert [m.role for m in messages(tmp_path, "openclaw:s", Fate.COMPACTED)] == ["user", "assistant"]
    assert ["anew" in str(m.parts) for m in messages(tmp_path, "openclaw:s", Fate.ACTIVE)] == [True]
    with open_store(tmp_path / "store.db") as store:
        events = list(store.events("openclaw:s"))
    assert [event.trigger for event in events if isinstance(event, CompactionEvent)] == ["new"]
    assert len([event for event in events if isinstance(event, RewindEvent)]) == 1


def test_restored_rows_are_those_of_the_database(tmp_path: Path) -> None:
    """R-S40: with the exact text of each record."""
    home = tmp_path / ".openclaw"
    shutil.copytree(RECORDED, home)
    read(home, tmp_path)
    with closing(connect(tmp_path / "store.db", checked=False)) as connection:
        restore_files(connection, "openclaw:s-main", tmp_path / "restored")
        restore_files(connection, "openclaw:s-main", tmp_path / "restored")
    statement = "SELECT session_id, seq, event_json, created_at, event_utf8_bytes FROM transcript_events ORDER BY seq"
    rows: list[list[Any]] = []
    for path in (home / DATABASE, tmp_path / "restored" / DATABASE):
        with closing(sqlite3.connect(path)) as connection:
            rows.append(connection.execute(statement).fetchall())
    assert rows[0] == rows[1]
    # What other tables say of a session has no file.
    assert [path for path in (tmp_path / "restored").rglob("*") if path.is_file()] == [tmp_path / "restored" / DATABASE]
    with closing(sqlite3.connect(tmp_path / "restored" / DATABASE)) as connection, connection:
        connection.execute("UPDATE transcript_events SET event_json = '{}' WHERE seq = 3")
    with (
        closing(connect(tmp_path / "store.db", checked=False)) as connection,
        pytest.raises(ConflictError, match="another record 3"),
    ):
        restore_files(connection, "openclaw:s-main", tmp_path / "restored")


def test_no_other_table_is_read(tmp_path: Path) -> None:
    write(tmp_path / ".openclaw", CHAT)
    read(tmp_path / ".openclaw", tmp_path)
    assert all(b"do not read" not in path.read_bytes() for path in tmp_path.glob("store.db*"))


def test_a_damaged_record_changes_nothing_else(tmp_path: Path) -> None:
    home = tmp_path / ".openclaw"
    path = write(home, [*CHAT, user("three", 3)])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute('UPDATE transcript_events SET event_json = \'{"type": "mess\' WHERE seq = 1')
    read(home, tmp_path)
    assert [message.role for message in messages(tmp_path)] == ["assistant", "user"]
    with open_store(tmp_path / "store.db") as store:
        [session] = store.sessions(SessionFilter()).items
    assert session.counts.diagnostics == 1


def test_a_database_that_cannot_be_read_is_a_problem_that_is_reported(tmp_path: Path) -> None:
    home = tmp_path / ".openclaw"
    path = home / DATABASE
    path.parent.mkdir(parents=True)
    path.write_bytes(b"SQLite format 3\0" + b"\0" * 200)
    assert [problem.path for problem in read(home, tmp_path).problems] == [str(path)]


def test_sessions_of_other_agents_and_older_logs_are_found(tmp_path: Path, home: Path) -> None:
    """R-C2: deleted and reset logs too, which have other names."""
    root = home / ".openclaw"
    write(root, CHAT, owner="work")
    logs = root / "agents/main/sessions"
    logs.mkdir(parents=True)
    text = "".join(json.dumps(each) + "\n" for each in CHAT)
    for name in ("a.jsonl", "b.jsonl.deleted.2026-02-19T08-59-24.951Z", "c.jsonl.full.bak", "sessions.json"):
        (logs / name).write_text(text)
    found = {source.session_id for source in CLAW.discover() if source.kind is SourceKind.SESSION}
    assert found == {"openclaw:a", "openclaw:b", "openclaw:c", "openclaw:s@work"}
    assert detect(logs / "a.jsonl").agent == "openclaw"
    assert detect(write(tmp_path, CHAT)).agent == "openclaw"
    assert list(agent("qclaw").discover([root])) == []


def test_a_session_that_an_older_reader_of_pi_records_began_goes_on(tmp_path: Path) -> None:
    """What is remembered between two reads is that of pi's reader, so it is not read by one of another version."""
    records = [header(), user("Hi", 1), answer(2, call("c"))]
    write(tmp_path / "h", records)
    folder = tmp_path / "s"
    folder.mkdir()
    read(tmp_path / "h", folder)
    with closing(connect(folder / "store.db")) as connection, connection:
        state = ZstdCompressor().compress(json.dumps({"calls": {"c": "2"}}).encode())
        statement = "UPDATE sources SET state = ?, parser_version = 3 WHERE path LIKE '%#s'"
        changed = connection.execute(statement, (state,))
        assert changed.rowcount == 1
    write(tmp_path / "h", [*records, result("c", 3), user("On", 4)], updated=2)
    assert read(tmp_path / "h", folder).problems == []
    assert len(messages(folder)) == 3
