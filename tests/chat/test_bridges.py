"""Agents of Pydantic AI, of the OpenAI Agents SDK and of LangChain behind chats: what a page gets is the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.bridges import BRIDGES, ERRORS_AS_OUTPUT
from support.chat_script import drain, post, user
from turnlog.aisdk.codec import to_plain
from turnlog.chat import Chat, ChatKeeper, MemoryKeeper, NativeKeeper, RunRequest
from turnlog.errors import ConflictError
from turnlog.model import ToolCallPart

BROKEN = "it is broken"


@pytest.fixture(params=["memory", "native"])
def keeper(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ChatKeeper]:
    if request.param == "memory":
        yield MemoryKeeper()
        return
    native = NativeKeeper(tmp_path / "turnlog.db")
    yield native
    native.close()


@pytest.fixture(params=list(BRIDGES))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


async def ask(chat: Chat, text: str, **fields: Any) -> list[dict[str, Any]]:
    """The chunks of an answer."""
    data = await drain(await chat.post(post(message=user(f"u-{text}", text), **fields)))
    events = [line.removeprefix(b"data: ") for line in data.split(b"\n") if line.startswith(b"data: {")]
    return [json.loads(event) for event in events]


async def answers(chat: Chat) -> list[dict[str, Any]]:
    return [to_plain(message) for message in await chat.messages("chat") if message.role == "assistant"]


def parts_of(message: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The parts in short."""
    names = {"text": ("text",), "reasoning": ("text",)}
    tool = ("toolName", "state", "input", "output")
    return [
        tuple(part.get(field) for field in ("type", *names.get(part["type"], tool)))
        for part in message["parts"]
        if part["type"] != "step-start"
    ]


def answered(message: dict[str, Any], *, approved: bool, reason: str | None = None) -> dict[str, Any]:
    """The message as a page sends it back, with the answers of its user."""
    parts = [
        {
            **part,
            "state": "approval-responded",
            "approval": {**part["approval"], "approved": approved, **({"reason": reason} if reason else {})},
        }
        if part.get("state") == "approval-requested"
        else part
        for part in message["parts"]
    ]
    return {**message, "parts": parts}


def test_a_page_gets_thoughts_texts_calls_and_results(name: str, keeper: ChatKeeper) -> None:
    async def run() -> None:
        chat = Chat(BRIDGES[name]([]), keeper)
        chunks = await ask(chat, "look around")
        kinds = [chunk["type"] for chunk in chunks]
        for kind in ("reasoning-delta", "text-delta", "tool-input-start", "tool-input-delta", "tool-input-available"):
            assert kind in kinds
        assert kinds.count("start-step") == 2
        [message] = await answers(chat)
        empty: dict[str, Any] = {}
        broken = ("output-available", empty, BROKEN) if name in ERRORS_AS_OUTPUT else ("output-error", empty, None)
        assert parts_of(message) == [
            ("reasoning", "Hm"),
            ("text", "Let me see."),
            ("dynamic-tool", "look", "output-available", {"place": "desk"}, {"seen": "desk"}),
            ("dynamic-tool", "break", *broken),
            ("text", "Done."),
        ]
        assert {part["errorText"] for part in message["parts"] if "errorText" in part} <= {BROKEN}
        assert kinds[-1] == "finish"
        assert chunks[-1]["finishReason"] == "stop"
        steps = message["metadata"]["steps"]
        assert [step["stopReason"] for step in steps] == ["tool_use", "stop"]
        assert all(step["usage"]["input"] and step["usage"]["output"] for step in steps)
        assert message["metadata"]["model"]

    asyncio.run(run())


def test_the_next_answer_knows_the_chat(name: str, keeper: ChatKeeper) -> None:
    async def run() -> None:
        seen: list[Any] = []
        chat = Chat(BRIDGES[name](seen), keeper)
        await ask(chat, "look around")
        before = len(seen)
        await ask(chat, "hello again")
        assert parts_of((await answers(chat))[-1]) == [("text", "Hello.")]
        assert len(seen) == before + 1
        told = str(seen[-1])
        for text in ("Be brief.", "look around", "Let me see.", "desk", "seen", "it is broken", "Done.", "hello again"):
            assert told.count(text) >= 1, text
        assert told.index("look around") < told.index("Let me see.") < told.index("Done.") < told.index("hello again")
        assert told.count("Be brief.") == 1

    asyncio.run(run())


@pytest.mark.parametrize("approved", [True, False])
def test_a_tool_that_asks_waits_for_the_page(name: str, keeper: ChatKeeper, approved: bool) -> None:
    async def run() -> None:
        seen: list[Any] = []
        runtime = BRIDGES[name](seen)
        chat = Chat(runtime, keeper)
        chunks = await ask(chat, "delete it")
        assert "Private" not in str(chunks)
        [asked] = await answers(chat)
        assert parts_of(asked)[-1] == (
            "dynamic-tool",
            "delete",
            "approval-requested",
            {"place": "desk"},
            None,
        )
        assert "Private" not in str(asked)
        # Another process may continue: what it needs is in the chat, or in the checkpointer of the graph.
        chat = Chat(runtime if name == "langchain" else BRIDGES[name](seen), keeper)
        reply = answered(asked, approved=approved, reason=None if approved else "not today")
        await drain(await chat.post(post(message=reply)))
        [message] = await answers(chat)
        assert message["id"] == asked["id"]
        state, output = ("output-available", "desk is gone") if approved else ("output-denied", None)
        assert parts_of(message)[-2:] == [
            ("dynamic-tool", "delete", state, {"place": "desk"}, output),
            ("text", "Done." if approved else "Kept."),
        ]
        assert ("desk is gone" if approved else "not today") in str(seen[-1])
        await ask(chat, "hello again")
        assert parts_of((await answers(chat))[-1]) == [("text", "Hello.")]

    asyncio.run(run())


def test_what_breaks_is_an_error_and_keeps_what_came(name: str, keeper: ChatKeeper) -> None:
    async def run() -> None:
        chat = Chat(BRIDGES[name]([]), keeper)
        chunks = await ask(chat, "fail now")
        [error] = [chunk for chunk in chunks if chunk["type"] == "error"]
        assert "secret" not in error["errorText"]
        [message] = await answers(chat)
        [(kind, half)] = parts_of(message)
        assert (kind, half[:4]) == ("text", "Half")
        await ask(chat, "look around")
        assert parts_of((await answers(chat))[-1])[-1] == ("text", "Done.")

    asyncio.run(run())


def test_the_calls_are_kept_as_calls(name: str) -> None:
    async def run() -> None:
        bridge, given = BRIDGES[name]([]), list[RunRequest]()
        keeper = MemoryKeeper()
        chat = Chat(bridge, keeper)
        await ask(chat, "look around")
        request = RunRequest(chat_id="chat", messages=tuple(await keeper.load("chat")))
        given.append(request)
        calls = [part for m in request.history() for part in m.parts if isinstance(part, ToolCallPart)]
        broken = "success" if name in ERRORS_AS_OUTPUT else "error"
        assert [(call.tool_name, call.results[0].status) for call in calls] == [("look", "success"), ("break", broken)]

    asyncio.run(run())


def test_a_stop_ends_the_run_of_the_agent(name: str, keeper: ChatKeeper) -> None:
    async def run() -> None:
        seen: list[Any] = []
        chat = Chat(BRIDGES[name](seen), keeper)
        stream = await chat.post(post(message=user("u", "wait for it")))
        async for data in stream:
            if b"Half" in data:
                break
        assert await chat.stop("chat")
        await stream.aclose()
        assert seen[-1] == "ended"
        assert parts_of((await answers(chat))[0]) == [("text", "Half")]
        await ask(chat, "hello again")
        assert parts_of((await answers(chat))[-1]) == [("text", "Hello.")]

    asyncio.run(run())


def test_a_permission_that_is_not_given_is_still_asked_for(name: str) -> None:
    async def run() -> None:
        chat = Chat(BRIDGES[name]([]))
        await ask(chat, "delete it")
        [asked] = await answers(chat)
        with pytest.raises(ConflictError, match="still open"):
            await chat.post(post(message=asked))
        assert (await answers(chat))[0]["parts"] == asked["parts"]

    asyncio.run(run())
