"""Chats in a store: what a session knows of them, and that a page's ids and a kill harm nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from support.chat_script import ANSWER, ASKING, GOING_ON, Script, drain, post, user
from turnlog.aisdk import UIMessage, parse_ui_messages, validate_ui_messages
from turnlog.aisdk.codec import to_plain
from turnlog.chat import Chat, ChatKeeper, NativeKeeper, session_id_of
from turnlog.model import Fate, ProviderData, TextPart, ToolCallPart
from turnlog.model.stream import ReasoningDelta, ReasoningEnd, ReasoningStart, RunFinish, StepStart
from turnlog.store import open_store
from turnlog.store.base import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "turnlog.db"


@pytest.fixture
def keeper(path: Path) -> Iterator[NativeKeeper]:
    native = NativeKeeper(path)
    yield native
    native.close()


@pytest.fixture
def store(keeper: NativeKeeper, path: Path) -> Iterator[Store]:
    with open_store(path) as found:
        yield found


def one(**fields: Any) -> UIMessage:
    return parse_ui_messages([{"id": "a", "role": "assistant", "parts": [], **fields}])[0]


def test_a_chat_is_a_session_with_models_tokens_and_turns(keeper: NativeKeeper, store: Store) -> None:
    """R-C6, R-S24: it has the facts that a session read from a log has."""

    async def run() -> None:
        chat = Chat(Script(ASKING, GOING_ON, ANSWER), keeper)
        await drain(await chat.post(post()))
        plain = to_plain((await chat.messages("chat"))[1])
        call = next(part for part in plain["parts"] if part.get("toolCallId") == "c")
        call |= {"state": "approval-responded", "approval": {"id": "q", "approved": True}}
        await drain(await chat.post(post(message=plain)))
        await drain(await chat.post(post(message=user("u2", "and?"))))

    asyncio.run(run())
    session = store.session("turnlog:chat")
    assert session.native
    assert (session.title, session.title_source) == ("hi", "prompt")
    assert session.models == ("model-1", "model-2")
    assert (session.usage.usage.input, session.usage.usage.output, session.usage.unknown_calls) == (33, 7, 0)
    assert (session.counts.messages, session.counts.turns, session.counts.steps) == (5, 2, 3)
    placed = store.messages("turnlog:chat")
    assert [(each.membership.turn, each.membership.step) for each in placed] == [
        (1, None),
        (1, 1),
        (1, 2),
        (2, None),
        (2, 1),
    ]
    asking = placed[1].message
    assert (asking.response_id, asking.stop_reason, asking.model) == ("r1", "tool_use", "model-1")
    call = asking.parts[1]
    assert isinstance(call, ToolCallPart)
    assert (call.output_text, call.approval and call.approval.approved) == ("a.txt", True)
    assert call.results[0].completed_at is not None


def test_what_a_provider_wants_back_survives_a_saving_before_it_came(keeper: NativeKeeper) -> None:
    signed = ProviderData(name="anthropic", opaque={"signature": "abc"})
    thought = (StepStart(), ReasoningStart(id="r"), ReasoningDelta(id="r", delta="hm"))

    async def run() -> None:
        script = Script((*thought, ReasoningEnd(id="r", provider=signed), RunFinish()))
        chat = Chat(script, keeper)
        early = one(id="x", parts=[{"type": "step-start"}, {"type": "reasoning", "text": "hm"}])
        await keeper.save("chat", [*parse_ui_messages([user()]), early])
        signature = {"anthropic": {"signature": "abc"}}
        late = one(id="x", parts=[{"type": "reasoning", "text": "hm", "providerMetadata": signature}])
        await keeper.save("chat", [late])
        await drain(await chat.post(post(message=user("u2"))))
        await drain(await chat.post(post(message=user("u3"))))
        reasonings = [message.parts[0] for message in script.given[1].history() if message.role == "assistant"]
        assert [part.provider and part.provider.opaque for part in reasonings] == [signed.opaque] * 2

    asyncio.run(run())


def test_chats_with_the_same_message_ids_do_not_meet(keeper: NativeKeeper, store: Store) -> None:
    names = ["one", "two", "a/b", "a%2Fb", "a:0:u", "ü ~3", "a."]

    async def run() -> None:
        chat = Chat(Script(ANSWER), keeper)
        for name in names:
            await drain(await chat.post(post(name, message=user("u", name))))
        for name in names:
            question, answer = await chat.messages(name)
            assert to_plain(question)["parts"][0]["text"] == name
            assert answer.role == "assistant"

    asyncio.run(run())
    sessions = {session_id_of(name) for name in names}
    assert len(sessions) == len(names)
    assert all("/" not in session for session in sessions)
    assert {session.id for session in store.sessions().items} == sessions


@pytest.mark.parametrize("id", ["u~1", "0:u", "chat:0:u", "a/b", "ü", "x" * 500, "~"])
def test_any_id_of_a_page_comes_back(keeper: NativeKeeper, id: str) -> None:
    async def run() -> None:
        said = parse_ui_messages([user(id), to_plain(one(id=f"{id}!", parts=[{"type": "text", "text": "yes"}]))])
        await keeper.save("chat", said)
        await keeper.save("chat", said)
        assert [message.id for message in await keeper.load("chat")] == [id, f"{id}!"]

    asyncio.run(run())


def test_an_edited_message_is_beside_the_retracted_one(keeper: NativeKeeper, store: Store) -> None:
    async def run() -> None:
        chat = Chat(Script(ASKING, ANSWER), keeper)
        await drain(await chat.post(post()))
        await drain(await chat.post(post(message=user("u", "otherwise"), messageId="u")))

    asyncio.run(run())
    placed = store.messages("turnlog:chat")
    assert [each.membership.fate for each in placed] == [Fate.RETRACTED, Fate.RETRACTED, Fate.ACTIVE, Fate.ACTIVE]
    texts = [part.text for each in placed for part in each.message.parts if isinstance(part, TextPart)]
    assert texts == ["hi", "May I?", "otherwise", "Hello"]


def test_saving_what_is_saved_changes_nothing(keeper: NativeKeeper, store: Store) -> None:
    async def run() -> None:
        chat = Chat(Script(ANSWER), keeper)
        await drain(await chat.post(post()))
        before = store.status().change_sequence
        await keeper.save("chat", await keeper.load("chat"))
        assert store.status().change_sequence == before
        validate_ui_messages(await chat.messages("chat"))

    asyncio.run(run())


def test_a_keeper_of_plain_functions_keeps_chats() -> None:
    rows: dict[str, UIMessage] = {}

    class Plain:
        def load(self, chat_id: str) -> list[UIMessage]:
            return list(rows.values())

        def save(self, chat_id: str, messages: Sequence[UIMessage], retracted: Collection[str] = ()) -> None:
            rows.update({message.id: message for message in messages})

    async def run() -> None:
        chat = Chat(Script(ANSWER), cast("ChatKeeper", Plain()))
        await drain(await chat.post(post()))
        assert [message.role for message in await chat.messages("chat")] == ["user", "assistant"]

    asyncio.run(run())
