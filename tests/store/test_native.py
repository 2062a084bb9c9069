"""Sessions that no log has: written, written again, taken back, and left alone by everything else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from support.toy_agent import ToyAgent, line
from support.toy_store import ToyStore
from turnlog.errors import ConflictError
from turnlog.model import Message, Origin, Part, TextPart, ToolCallPart, ToolResult, ToolState
from turnlog.model.message import Role
from turnlog.store import bodies, open_store
from turnlog.store.base import ToolCallFilter
from turnlog.store.frames import BodyReader
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.store.writing.native import NativeSessions, open_native
from turnlog.sync.rebuild import rebuild

START = datetime(2026, 1, 1, tzinfo=UTC)
CHAT = "turnlog:chat"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ToyStore]:
    with ToyStore(tmp_path) as found:
        yield found


@pytest.fixture
def native(store: ToyStore) -> Iterator[NativeSessions]:
    found = open_native(store.path, lambda usage, model, provider, time: None, "test")
    yield found
    found.close()


def text_message(id: str, role: Role, text: str, seconds: int = 0) -> Message:
    time = START + timedelta(seconds=seconds)
    part = TextPart(id=f"{id}/0", text=text)
    return Message(id=id, role=role, parts=(part,), created_at=START, updated_at=time)


def rows(store: ToyStore) -> list[tuple[object, ...]]:
    return store.connection.execute(
        "SELECT g.external_id, m.position, m.turn, m.step, m.fate, m.source_key, g.key FROM memberships m"
        " JOIN messages g ON g.key = m.message_key JOIN sessions s ON s.key = m.session_key"
        " WHERE s.native = 1 ORDER BY m.position"
    ).fetchall()


def texts(store: ToyStore) -> dict[object, str]:
    found: dict[object, str] = {}
    read = BodyReader(store.connection)
    for message_id, *_, key in rows(store):
        assert isinstance(key, int)
        part = bodies.decode(read.of(key)).parts[0]
        assert isinstance(part, TextPart)
        found[message_id] = part.text
    return found


def test_messages_are_saved_in_order_and_replaced_by_later_ones(store: ToyStore, native: NativeSessions) -> None:
    """R-S24."""
    native.save(CHAT, [text_message("u", "user", "hello"), text_message("a", "assistant", "half", 1)])
    native.save(CHAT, [text_message("a", "assistant", "half and whole", 2)])
    native.save(CHAT, [text_message("a", "assistant", "half", 1)])
    assert texts(store) == {"u": "hello", "a": "half and whole"}
    assert [row[1:6] for row in rows(store)] == [(1, 1, None, "active", None), (2, 1, 1, "active", None)]
    assert store.row("SELECT messages FROM sessions WHERE native = 1") == 2


def test_what_a_user_says_is_a_prompt_unless_its_program_says_otherwise(
    store: ToyStore, native: NativeSessions
) -> None:
    summary = msgspec.structs.replace(text_message("s", "user", "So far"), origin=Origin.COMPACTION)
    prompts = [text_message("u", "user", "hello"), text_message("v", "user", "go on")]
    native.save_messages(CHAT, [prompts[0], text_message("a", "assistant", "hm"), summary, prompts[1]])
    native.save_messages(CHAT, [prompts[0]])
    with open_store(store.path) as found:
        [session] = found.sessions().items
        origins = {placed.message.id: placed.message.origin for placed in found.messages(CHAT)}
        outline = [entry.message_id for entry in found.outline(CHAT) if entry.kind == "prompt"]
    assert origins == {"u": Origin.PROMPT, "a": None, "s": Origin.COMPACTION, "v": Origin.PROMPT}
    assert session.counts.prompts == 2
    assert outline == ["u", "v"]


def test_sessions_messages_and_calls_are_made_or_renewed(store: ToyStore, native: NativeSessions) -> None:
    """R-C14: saving the same again changes nothing; saving more of it adds what is more."""
    question = text_message("a", "assistant", "looking", 1)
    call = ToolCallPart(id="a/1", tool_call_id="c", tool_name="Search", input=msgspec.Raw(b'{"q":"x"}'))
    found = ToolResult(id="r", content=(TextPart(text="nothing"),))
    done = msgspec.structs.replace(call, results=(found,), state=ToolState.OUTPUT_AVAILABLE)
    with_call = msgspec.structs.replace(question, parts=(*question.parts, call))
    answered = msgspec.structs.replace(text_message("a", "assistant", "looking", 2), parts=(*question.parts, done))
    for messages in (
        [text_message("u", "user", "find x"), with_call],
        [with_call],
        [answered],
        [answered],
        [with_call],
    ):
        native.save(CHAT, messages)
    with open_store(store.path) as reading:
        [session] = reading.sessions().items
        [one] = reading.tool_calls(ToolCallFilter(session=CHAT)).items
        assert (session.id, session.title, session.counts.messages) == (CHAT, "find x", 2)
        assert (one.tool_call_id, one.tool_name, one.message_id, one.state) == ("c", "Search", "a", "output-available")
        assert [part.type for part in reading.message("a").parts] == ["text", "tool-call"]


def test_a_retracted_message_stays_and_says_so(store: ToyStore, native: NativeSessions) -> None:
    native.save(CHAT, [text_message("u", "user", "hello"), text_message("a", "assistant", "bad")])
    native.save(CHAT, [text_message("b", "assistant", "better")], retracted=["a"])
    assert [(row[0], row[4]) for row in rows(store)] == [("u", "active"), ("a", "retracted"), ("b", "active")]


def test_other_sessions_and_their_messages_are_out_of_reach(store: ToyStore, native: NativeSessions) -> None:
    native.save(CHAT, [text_message("u", "user", "hello")])
    with pytest.raises(ConflictError):
        native.save("turnlog:other", [text_message("u", "user", "forged", 9)])
    with pytest.raises(ConflictError):
        native.save("claude-code:s", [text_message("x", "user", "forged")])
    assert texts(store) == {"u": "hello"}
    assert store.row("SELECT count(*) FROM sessions") == 1


def test_a_forgotten_session_does_not_come_back(store: ToyStore, native: NativeSessions) -> None:
    native.save(CHAT, [text_message("u", "user", "hello")])
    forget_for_good(store.path, CHAT)
    with pytest.raises(ConflictError):
        native.save(CHAT, [text_message("v", "user", "again")])
    assert store.row("SELECT count(*) FROM sessions") == 0


def test_neither_reading_logs_nor_a_rebuild_touches_them(store: ToyStore, native: NativeSessions) -> None:
    native.save(CHAT, [text_message("u", "user", "hello"), text_message("a", "assistant", "bad")])
    native.save(CHAT, [text_message("b", "assistant", "better")], retracted=["a"])
    before = rows(store), store.row("SELECT messages FROM sessions WHERE native = 1")
    store.add("s.log", line(kind="text", id="r", message="m", block=0, text="of a log"))
    assert (rows(store), store.row("SELECT messages FROM sessions WHERE native = 1")) == before
    rebuild(store.path, agents=[ToyAgent()])
    assert (rows(store), store.row("SELECT messages FROM sessions WHERE native = 1")) == before
    assert store.row("SELECT count(*) FROM messages") == 4


BAD_PARTS = {
    "content of a result": ToolCallPart(
        tool_call_id="c",
        tool_name="n",
        results=(ToolResult(id="r", content="hi"),),  # pyright: ignore[reportArgumentType]  # wrong on purpose
    ),
    "state": ToolCallPart(tool_call_id="c", tool_name="n", state="bogus"),  # pyright: ignore[reportArgumentType]  # wrong on purpose
    "text": TextPart(text=3),  # pyright: ignore[reportArgumentType]  # wrong on purpose
}


@pytest.mark.parametrize("part", BAD_PARTS.values(), ids=list(BAD_PARTS))
def test_a_message_that_could_not_be_read_again_is_refused(part: Part, tmp_path: Path) -> None:
    with open_store(tmp_path / "bot.db", create=True) as store:
        store.save_session("bot:1")
        store.save_messages("bot:1", [Message(id="m0", role="user", parts=(TextPart(text="hello"),))])
        with pytest.raises(TypeError, match=r"messages\[0\]\.parts\[0\]\.\S+ cannot be .*: expected "):
            store.save_messages("bot:1", [Message(id="m1", role="assistant", parts=(part,))])
        with pytest.raises(TypeError, match=r"messages\[0\] cannot be dict: expected a Message"):
            store.save_messages("bot:1", [{"id": "m2"}])  # pyright: ignore[reportArgumentType]  # wrong on purpose
        assert [placed.message.id for placed in store.messages("bot:1")] == ["m0"]
