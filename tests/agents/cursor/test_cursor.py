"""Cursor's conversations: bubbles of the editor, chats of the terminal, and the transcripts of both."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.agent_cases import DATA, lines_of
from support.cursor_files import write_chat, write_editor, write_home
from support.format_page import FormatPage, named
from turnlog.agents import agent, detect
from turnlog.agents.base import Source, SourceKind
from turnlog.agents.cursor.bubbles import Bubble
from turnlog.agents.cursor.tools import written_time
from turnlog.agents.cursor.wire import wire_fields
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    Fate,
    InterruptEvent,
    Message,
    Origin,
    ReasoningPart,
    Session,
    TextPart,
    ToolCallPart,
)
from turnlog.model.parts import ToolState
from turnlog.runs.resuming import resume_of
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.store.session_state import session_state
from turnlog.sync.syncer import sync

CURSOR = agent("cursor")
CASES = DATA / "cursor" / "handwritten"
EDITOR = "7f1c0b52-5a41-4d8e-9f0a-3b6f1d2c4e01"
CHAT = "2b9d7c10-1111-4a6b-8c3d-9e5f6a7b8c01"
TRANSCRIPT, SUBAGENT, TEXT = (f"9c3e1a44-2222-4b7c-9d4e-0f6a7b8c9d0{number}" for number in (1, 2, 3))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "turnlog.db"


def read(database: Path, root: Path) -> None:
    assert sync(database, roots=[root], agents=[CURSOR]).problems == []


def messages(store: Store, session: str) -> list[Message]:
    return [placed.message for placed in store.messages(f"cursor:{session}")]


def session_of(store: Store, session: str) -> Session:
    found = store.session(f"cursor:{session}")
    assert found is not None
    return found


def said(message: Message) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            found.append((part.tool_name, [(result.status, result.exit_code) for result in part.results]))
        elif isinstance(part, TextPart | ReasoningPart):
            found.append((part.type, part.text))
    return found


# -- the editor


def test_an_answer_is_a_thought_texts_and_calls_in_this_order(root: Path, database: Path) -> None:
    """R-C5, R-C8: the order of bubbles is that of the conversation's row, not that of their keys."""
    write_home(CASES / "editor", root)
    read(database, root)
    with open_store(database) as store:
        found = messages(store, EDITOR)
        session = session_of(store, EDITOR)
    assert [said(message) for message in found if message.role == "assistant"] == [
        [("reasoning", "The file first."), ("text", "I read the notes."), ("read_file_v2", [("success", None)])],
        [("text", "Now the tests."), ("run_terminal_command_v2", [("error", 4)])],
        [
            ("text", "Two look-ups at once."),
            ("grep", [("success", None)]),
            ("glob_file_search", [("success", None)]),
        ],
        [
            ("text", "An edit, and somebody to check it."),
            ("search_replace", [("success", None)]),
            ("task_v2", [("success", None)]),
        ],
        [("text", "The notes hold alpha and gamma.")],
        [("text", "That needs your consent."), ("run_terminal_command_v2", [("denied", None)])],
        [("text", "Then it stays.")],
    ]
    counted = [(m.usage.input, m.usage.cache_read, m.usage.output, m.usage.exactness) for m in found if m.usage]
    assert counted[:2] == [(1500, None, 60, "estimated"), (1700, None, 40, "estimated")]
    assert {message.model for message in found if message.role == "assistant"} == {"claude-4.5-sonnet"}
    assert (session.title, session.cwd, session.git_branch) == ("Notes and tests", "/home/dev/work", "main")
    assert session.counts.turns == 2


def test_a_bubble_has_the_object_of_its_result(root: Path) -> None:
    write_home(CASES / "editor", root)
    [source] = [each for each in CURSOR.discover([root]) if each.path.endswith(EDITOR)]
    found = [CURSOR.structured_result(line, "toolu_fail1") for line in lines_of(source)]
    assert [msgspec.json.decode(each)["exitCodeV2"] for each in found if each is not None] == [4]


def test_a_conversation_that_grows_keeps_the_ids_of_its_messages(root: Path, database: Path, tmp_path: Path) -> None:
    """A call that runs, then its result, then a further turn; and the same as if read at once."""
    [whole, *_] = json.loads((CASES / "editor" / "editor.json").read_text())
    for size in (1, 4, 6, 17):
        write_part(root, whole, size, is_running=size == 6)
        read(database, root)
    write_part(tmp_path / "other", whole, 17)
    read(tmp_path / "other.db", tmp_path / "other")
    with open_store(database) as grown, open_store(tmp_path / "other.db") as once:
        assert messages(grown, EDITOR) == messages(once, EDITOR)
        assert {placed.membership.fate for placed in grown.messages(f"cursor:{EDITOR}")} == {Fate.ACTIVE}


def test_a_checkpoint_leaves_what_came_after_it_as_rewound(root: Path, database: Path) -> None:
    [whole, *_] = json.loads((CASES / "editor" / "editor.json").read_text())
    write_part(root, whole, 17)
    read(database, root)
    write_part(root, whole, 13)
    read(database, root)
    with open_store(database) as store:
        placed = store.messages(f"cursor:{EDITOR}")
    assert [each.membership.fate for each in placed] == [Fate.ACTIVE] * 6 + [Fate.REWOUND] * 3


def write_part(root: Path, whole: dict[str, Any], size: int, *, is_running: bool = False) -> None:
    """The first bubbles of a conversation; of the last one perhaps no result yet."""
    composer = whole["composer"] | {
        "fullConversationHeadersOnly": whole["composer"]["fullConversationHeadersOnly"][:size]
    }
    names = [header["bubbleId"] for header in composer["fullConversationHeadersOnly"]]
    bubbles = [bubble for bubble in whole["bubbles"] if bubble["bubbleId"] in names]
    if is_running:
        bubbles = [
            bubble | {"toolFormerData": {**bubble["toolFormerData"], "status": "loading", "result": ""}}
            if bubble["bubbleId"] == names[-1]
            else bubble
            for bubble in bubbles
        ]
    (root / "globalStorage" / "state.vscdb").unlink(missing_ok=True)
    write_editor(root, [{"composer": composer, "bubbles": bubbles}])


def test_bubbles_within_the_row_of_their_conversation_are_read(root: Path, database: Path) -> None:
    """As before Cursor 2: there is no list of headers."""
    [whole, *_] = json.loads((CASES / "editor" / "editor.json").read_text())
    composer = {name: value for name, value in whole["composer"].items() if name != "fullConversationHeadersOnly"}
    order = [header["bubbleId"] for header in whole["composer"]["fullConversationHeadersOnly"]]
    inline = sorted(whole["bubbles"], key=lambda bubble: order.index(bubble["bubbleId"]))
    write_editor(root, [{"composer": composer | {"conversation": inline}, "bubbles": []}])
    read(database, root)
    with open_store(database) as store:
        assert len(messages(store, EDITOR)) == 9


def test_credentials_in_the_database_are_not_read(root: Path, database: Path) -> None:
    write_home(CASES / "editor", root)
    read(database, root)
    with closing(sqlite3.connect(database)) as connection:
        assert b"not-a-real-token" not in b"".join(line.encode() for line in connection.iterdump())


# -- chats of the terminal


def test_only_a_chat_of_the_terminal_has_a_command_to_resume_it(root: Path, database: Path) -> None:
    """`cursor-agent` knows no conversation of the editor."""
    write_home(CASES / "chat", root)
    write_home(CASES / "editor", root)
    read(database, root)
    with open_store(database) as store:
        assert resume_of(session_of(store, CHAT)) == ["cursor-agent", "--resume", CHAT]
        assert resume_of(session_of(store, EDITOR)) is None


def test_a_chat_has_its_messages_in_the_order_of_its_root(root: Path, database: Path) -> None:
    """R-C5, R-C8: results that came in another order, a failed command, and the same words twice."""
    write_home(CASES / "chat", root)
    read(database, root)
    with open_store(database) as store:
        found = messages(store, CHAT)
        session = session_of(store, CHAT)
    assert [message.origin for message in found[:3]] == [Origin.HARNESS, Origin.HARNESS, Origin.PROMPT]
    assert [said(message) for message in found[2:]] == [
        [("text", "Run the tests")],
        [
            ("reasoning", "Tests."),
            ("text", "I run them."),
            ("Shell", [("error", 1)]),
            ("Read", [("success", None)]),
        ],
        [("text", "One failed.")],
        *([("text", text)] for text in ("ok", "Done.", "ok", "Done.")),
    ]
    assert found[2].created_at == datetime(2026, 9, 29, 20, 14, tzinfo=UTC)
    assert found[3].model == "gpt-5"
    assert {message.usage for message in found} == {None}
    assert (session.title, session.cwd, session.git_branch) == ("Run the tests", "/home/dev/work", "main")


def test_a_summary_stands_for_the_messages_that_it_replaced(root: Path, database: Path) -> None:
    [(place, chat)] = json.loads((CASES / "chat" / "chats.json").read_text()).items()
    write_chat(root / place, chat)
    read(database, root)
    summary = {"role": "user", "content": "What happened", "providerOptions": {"cursor": {"isSummary": True}}}
    write_chat(root / place, chat | {"archived": chat["messages"], "messages": [summary, chat["messages"][2]]})
    read(database, root)
    with open_store(database) as store:
        placed = store.messages(f"cursor:{CHAT}")
        [event] = [each for each in store.events(f"cursor:{CHAT}") if isinstance(each, CompactionEvent)]
    assert {each.membership.fate for each in placed[:-2]} == {Fate.COMPACTED}
    assert [each.message.id for each in placed[-2:-1]] == [event.summary_message_id]
    assert [each.membership.fate for each in placed[-2:]] == [Fate.ACTIVE] * 2


def test_a_message_that_is_encrypted_is_reported(root: Path, database: Path) -> None:
    write_home(CASES / "chat", root)
    [store_db] = root.rglob("store.db")
    with closing(sqlite3.connect(store_db)) as connection, connection:
        connection.execute("UPDATE blobs SET data = x'00ff17' WHERE CAST(data AS TEXT) LIKE '%One failed%'")
    read(database, root)
    with open_store(database) as store:
        assert len(messages(store, CHAT)) == 8
        assert ["encrypted" in each.reason for each in store.diagnostics().items] == [True]


def test_the_key_of_a_chat_stays_where_it_is(root: Path) -> None:
    write_home(CASES / "chat", root)
    lines = b"".join(line for source in CURSOR.discover([root]) if "#" in source.path for line in lines_of(source))
    assert b"c2VjcmV0".hex().encode() not in lines
    assert lines


@pytest.mark.parametrize("case", ["editor", "chat"])
def test_rows_come_back_as_they_were(case: str, root: Path, database: Path, tmp_path: Path) -> None:
    """R-S25: each row that was read, byte for byte; a chat's facts lack its key."""
    write_home(CASES / case, root)
    read(database, root)
    [original] = [path for path in root.rglob("*") if path.suffix in (".db", ".vscdb")]
    before = dict(rows_in(original))
    original.unlink()
    with open_store(database) as store:
        for session in store.sessions(SessionFilter(subagents=True), limit=20).items:
            store.restore(session.id, tmp_path / "back")
    [restored] = [path for path in (tmp_path / "back").rglob("*") if path.suffix in (".db", ".vscdb")]
    after = dict(rows_in(restored))
    assert {name: value for name, value in after.items() if name[0] != "meta"} == {
        name: value for name, value in before.items() if name[0] not in ("meta", "ItemTable")
    }


def rows_in(database: Path) -> Iterator[tuple[tuple[str, str], Any]]:
    with closing(sqlite3.connect(database)) as connection:
        for table, *_ in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for key, value in connection.execute(f"SELECT * FROM {table}"):
                yield (table, key), value


def test_a_damaged_root_costs_what_is_behind_the_damage() -> None:
    whole = b"\x0a\x02ab\x10\x96\x01\x0a\x01c"
    assert list(wire_fields(whole, 1)) == [b"ab", b"c"]
    assert list(wire_fields(whole + b"\x0a\x7fxyz", 1)) == [b"ab", b"c"]
    assert list(wire_fields(b"\xff" * 20, 1)) == []


# -- transcripts


def test_a_transcript_has_what_was_said_and_asked_for(root: Path, database: Path) -> None:
    write_home(CASES / "transcripts", root)
    read(database, root)
    with open_store(database) as store:
        found = messages(store, TRANSCRIPT)
        session = session_of(store, TRANSCRIPT)
        events = store.events(session.id)
        child = session_of(store, SUBAGENT)
        failed = [each for each in store.events(child.id) if isinstance(each, ErrorEvent)]
    assert [said(message) for message in found] == [
        [("text", "Fix the failing test")],
        [("text", "I run it first."), ("Shell", [])],
        [("Read", []), ("Subagent", [])],
        [("StrReplace", [])],
        [("text", "It passes now.")],
        [("text", "<attached_files>\na.py\n</attached_files>"), ("text", "Thanks, stop")],
    ]
    calls = [part for message in found for part in message.parts if isinstance(part, ToolCallPart)]
    # A transcript leaves out all results: that there is none says nothing of a call.
    assert {call.state for call in calls} == {ToolState.INPUT_AVAILABLE}
    assert [getattr(part, "is_synthetic", None) for part in found[-1].parts] == [True, False]
    assert [message.created_at for message in found[:2]] == [datetime(2026, 9, 29, 20, 14, tzinfo=UTC), None]
    assert (session.cwd, session.title) == ("/home/dev/my.work", "Fix the failing test")
    assert [type(event) for event in events if isinstance(event, InterruptEvent)] == [InterruptEvent]
    assert [event.error_text for event in failed] == ["rate limited"]
    [relationship] = child.relationships
    assert (relationship.parent_session_id, relationship.inferred) == (session.id, True)
    assert relationship.parent_tool_call_id == found[2].parts[1].id


def test_a_transcript_of_text_has_thoughts_calls_and_results(root: Path, database: Path) -> None:
    write_home(CASES / "transcripts", root)
    read(database, root)
    with open_store(database) as store:
        found = messages(store, TEXT)
    assert [said(message) for message in found] == [
        [("text", "What does a.py do?")],
        [
            ("reasoning", "Read it."),
            ("text", "I look at it."),
            ("Read", [("success", None)]),
            ("text", "It prints 1."),
        ],
    ]
    [call] = [part for part in found[1].parts if isinstance(part, ToolCallPart)]
    assert (call.input_value(), call.output_text) == ({"path": "a.py"}, "print(1)")


def test_a_conversation_in_a_database_wins_over_its_transcript(root: Path, database: Path) -> None:
    """In whatever order they are read; the transcript stays in the archive."""
    write_home(CASES / "chat", root)
    folder = root / "projects" / "work" / "agent-transcripts" / CHAT
    folder.mkdir(parents=True)
    (folder / f"{CHAT}.jsonl").write_text('{"role":"user","message":{"content":"Run the tests"}}\n')
    read(database, root)
    with open_store(database) as store:
        assert len(messages(store, CHAT)) == 9
        [session] = store.sessions(SessionFilter(), limit=20).items
    shutil.rmtree(root / "chats")
    read(database.with_name("other.db"), root)
    with open_store(database.with_name("other.db")) as store:
        assert len(messages(store, session.external_id)) == 1


def test_the_end_of_a_turn_is_taken_back_when_the_next_one_begins(root: Path, database: Path) -> None:
    """Cursor keeps only the newest end of a turn in a transcript: it writes the file anew."""
    write_home(CASES / "transcripts", root)
    [log] = root.rglob(f"{TRANSCRIPT}.jsonl")
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:6]))
    read(database, root)
    with open_store(database) as store:
        assert state_of(store, TRANSCRIPT) == ("done", "turn-ended")
    log.write_bytes(b"".join([*lines[:5], lines[6]]))
    read(database, root)
    with open_store(database) as store:
        placed = store.messages(f"cursor:{TRANSCRIPT}")
        assert state_of(store, TRANSCRIPT)[1] != "turn-ended"
    assert [each.membership.fate for each in placed] == [Fate.ACTIVE] * 6


def state_of(store: Store, session: str) -> tuple[str, str]:
    facts = store.turn_facts([f"cursor:{session}"])[f"cursor:{session}"]
    found = session_state(facts, None, datetime.now(UTC))
    return found.state, found.evidence


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("Tuesday, Sep 29, 2026, 9:14 PM (UTC+1)", datetime(2026, 9, 29, 20, 14, tzinfo=UTC)),
        ("Sunday, Aug 2, 2026, 12:05 AM (UTC-7)", datetime(2026, 8, 2, 7, 5, tzinfo=UTC)),
        ("Sunday, Aug 2, 2026, 12:05 PM (UTC+5:30)", datetime(2026, 8, 2, 6, 35, tzinfo=UTC)),
        ("Sunday, Aug 2, 2026, 1:05 PM (UTC)", datetime(2026, 8, 2, 13, 5, tzinfo=UTC)),
        ("2026-05-07T14:30:00Z", datetime(2026, 5, 7, 14, 30, tzinfo=UTC)),
        ("Thu, Jun 18, 2026", None),
        ("Monday, Feb 30, 2026, 1:05 PM (UTC)", None),
    ],
)
def test_a_written_time_is_read_with_its_zone(text: str, time: datetime | None) -> None:
    assert written_time(text) == time


# -- what a file is


def test_files_are_known_by_what_is_in_them(root: Path, tmp_path: Path) -> None:
    """R-S21: also outside of Cursor's folders."""
    for case in ("editor", "chat", "transcripts"):
        write_home(CASES / case, root)
    kinds: set[tuple[str, SourceKind]] = set()
    for number, path in enumerate(
        path for path in root.rglob("*") if path.suffix in (".jsonl", ".txt", ".vscdb", ".db")
    ):
        copy = tmp_path / str(number) / path.name
        copy.parent.mkdir()
        shutil.copy(path, copy)
        found = detect(copy)
        assert (found.agent, found.is_certain) == ("cursor", True), found.reason
        source: Source = found.source or found.sources[0]
        kinds.add((path.suffix, source.kind))
    assert kinds == {
        (".jsonl", SourceKind.STREAM),
        (".txt", SourceKind.STREAM),
        (".vscdb", SourceKind.SESSION),
        (".db", SourceKind.SESSION),
    }


# -- the page


def test_every_field_of_a_bubble_that_is_read_is_on_the_page() -> None:
    """R-S23"""
    described = [name for fields, _ in FormatPage("cursor").rows("### Fields of a bubble") for name in named(fields)]
    assert sorted(described) == sorted(field.encode_name for field in msgspec.structs.fields(Bubble))
