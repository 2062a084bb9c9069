"""A scripted model behind real chats: calls, permissions, what the page runs, errors, and what goes back to the API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.chat_script import drain, post, user
from support.model_script import Event, model_call, model_response, model_text, model_thought
from support.provider_streams import sse
from turnlog.aisdk.codec import to_plain
from turnlog.chat import Chat, ChatKeeper, MemoryKeeper, NativeKeeper
from turnlog.chat.runtimes.provider import ProviderRuntime, Tool
from turnlog.model import ToolCallPart, ToolResult
from turnlog.providers.base import RequestOptions

CALLS = model_response(
    "m1",
    "tool_use",
    model_thought(0),
    model_text(1, "Let me see."),
    model_call(2, "c1", "read"),
    model_call(3, "c2", "fail"),
)
ASKS = model_response("m1", "tool_use", model_thought(0), model_call(1, "c1", "delete"), model_call(2, "c2", "read"))
PAGE = model_response("m1", "tool_use", model_call(0, "c1", "locate", "{}"))
DONE = model_response("m2", "end_turn", model_text(0, "Done."))
ERROR = sse([{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}])


class Model:
    """Sends the scripted responses in small pieces, and keeps the requests."""

    def __init__(self, *responses: bytes) -> None:
        self.responses = list(responses)
        self.bodies: list[Event] = []

    async def __call__(self, body: Event) -> AsyncGenerator[bytes, None]:
        self.bodies.append(json.loads(json.dumps(body)))
        data = self.responses.pop(0)
        for start in range(0, len(data), 50):
            await asyncio.sleep(0)
            yield data[start : start + 50]


async def read(call: ToolCallPart) -> str:
    return f"content of {call.input_value()['path']}"


async def fail(call: ToolCallPart) -> ToolResult:
    raise OSError("no such file")


TOOLS = {"read": Tool(read), "fail": Tool(fail), "delete": Tool(read, needs_permission=True)}


@pytest.fixture(params=["memory", "native"])
def keeper(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ChatKeeper]:
    if request.param == "memory":
        yield MemoryKeeper()
        return
    native = NativeKeeper(tmp_path / "turnlog.db")
    yield native
    native.close()


def chat_of(model: Model, keeper: ChatKeeper | None = None) -> Chat:
    options = RequestOptions(model="claude-x", max_tokens=100, system="Be brief.")
    return Chat(ProviderRuntime("anthropic", options, model, TOOLS), keeper)


async def parts_of(chat: Chat) -> list[dict[str, Any]]:
    answer = (await chat.messages("chat"))[1]
    return [part for part in to_plain(answer)["parts"] if part["type"] != "step-start"]


def results_of(body: Event) -> dict[str, tuple[str, bool]]:
    blocks: list[Any] = [block for message in body["messages"] for block in message["content"]]
    found = [block for block in blocks if block["type"] == "tool_result"]
    return {block["tool_use_id"]: (str(block["content"]), block.get("is_error", False)) for block in found}


def test_tools_run_until_the_model_has_said_all(keeper: ChatKeeper) -> None:
    async def run() -> None:
        model = Model(CALLS, DONE, DONE)
        chat = chat_of(model, keeper)
        told = await drain(await chat.post(post()))
        assert told.count(b'"type":"start"') == told.count(b'"type":"finish"') == 1
        parts = await parts_of(chat)
        assert [part.get("text") or part.get("output") or part.get("errorText") for part in parts] == [
            "hm",
            "Let me see.",
            "content of a",
            "OSError: no such file",
            "Done.",
        ]
        results = results_of(model.bodies[1])
        assert results["c1"][0].count("content of a") == 1
        assert results["c2"][1] is True
        await drain(await chat.post(post(message=user("u2", "more"))))
        # Also what came out of the keeper goes back as the model sent it.
        again = json.dumps(model.bodies[2])
        assert '"signature": "c2ln"' in again
        assert results_of(model.bodies[2]) == results
        assert [message["role"] for message in model.bodies[2]["messages"]] == ["user", "assistant"] * 2 + ["user"]
        metadata = to_plain((await chat.messages("chat"))[1])["metadata"]
        assert [step["stopReason"] for step in metadata["steps"]] == ["tool_use", "stop"]
        assert metadata["model"] == "claude-x"

    asyncio.run(run())


@pytest.mark.parametrize("approved", [True, False])
def test_a_call_that_asks_waits_for_the_page(keeper: ChatKeeper, approved: bool) -> None:
    async def run() -> None:
        model = Model(ASKS, DONE)
        chat = chat_of(model, keeper)
        await drain(await chat.post(post()))
        assert [part["state"] for part in (await parts_of(chat))[1:]] == ["approval-requested", "output-available"]
        assert len(model.bodies) == 1
        asked = to_plain((await chat.messages("chat"))[1])
        asking = next(part for part in asked["parts"] if part.get("toolCallId") == "c1")
        asking |= {"state": "approval-responded", "approval": {**asking["approval"], "approved": approved}}
        await drain(await chat.post(post(message=asked)))
        parts = await parts_of(chat)
        assert parts[1]["state"] == ("output-available" if approved else "output-denied")
        assert parts[-1]["text"] == "Done."
        results = results_of(model.bodies[1])
        assert set(results) == {"c1", "c2"}
        assert ("content of a" in results["c1"][0]) is approved

    asyncio.run(run())


def test_a_call_of_no_tool_is_the_pages_to_run(keeper: ChatKeeper) -> None:
    async def run() -> None:
        model = Model(PAGE, DONE)
        chat = chat_of(model, keeper)
        told = await drain(await chat.post(post()))
        assert b'"finishReason":"tool-calls"' in told
        waiting = to_plain((await chat.messages("chat"))[1])
        waiting["parts"][1] |= {"state": "output-available", "output": {"city": "Berlin"}}
        await drain(await chat.post(post(message=waiting)))
        assert "Berlin" in results_of(model.bodies[1])["c1"][0]
        assert (await parts_of(chat))[-1]["text"] == "Done."

    asyncio.run(run())


@pytest.mark.parametrize("broken", [ERROR, CALLS[:200], b""])
def test_a_response_that_fails_is_an_error_and_runs_nothing(broken: bytes) -> None:
    async def run() -> None:
        chat = chat_of(Model(broken))
        told = await drain(await chat.post(post()))
        assert told.count(b'"type":"error"') == 1
        assert told.endswith(b"data: [DONE]\n\n")

    asyncio.run(run())


def test_a_stop_closes_the_connection_to_the_model() -> None:
    closed: list[bool] = []

    async def send(body: Event) -> AsyncGenerator[bytes, None]:
        try:
            yield CALLS[:400]
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    async def run() -> None:
        chat = Chat(ProviderRuntime("anthropic", RequestOptions(model="claude-x"), send))
        await chat.post(post())
        await asyncio.sleep(0.05)
        assert await chat.stop("chat")
        assert closed == [True]

    asyncio.run(run())


def test_calls_without_ids_are_told_apart(keeper: ChatKeeper) -> None:
    """Gemini gives its calls none; theirs are made of the response's id, which older servers leave out."""

    def response(part: Event) -> bytes:
        return sse([{"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}])

    async def run() -> None:
        calls = [response({"functionCall": {"name": "read", "args": {"path": path}}}) for path in "ab"]
        model = Model(*calls, response({"text": "Done."}))
        chat = Chat(ProviderRuntime("gemini", RequestOptions(model="gemini-2.5-pro"), model, TOOLS), keeper)
        await drain(await chat.post(post()))
        *read_parts, said = await parts_of(chat)
        assert said["text"] == "Done."
        assert [part["output"] for part in read_parts] == ["content of a", "content of b"]
        assert len({part["toolCallId"] for part in read_parts}) == 2
        responses = [
            part for each in model.bodies[-1]["contents"] for part in each["parts"] if "functionResponse" in part
        ]
        assert [part["functionResponse"]["response"]["output"] for part in responses] == [
            "content of a",
            "content of b",
        ]

    asyncio.run(run())


@pytest.mark.parametrize("name", ["openai-chat", "responses", "gemini", "openrouter"])
def test_every_api_is_asked_in_its_own_form(name: str) -> None:
    async def run() -> None:
        model = Model(b"")
        await drain(await Chat(ProviderRuntime(name, RequestOptions(model="m"), model)).post(post()))
        assert b"hi" in json.dumps(model.bodies[0]).encode()

    asyncio.run(run())
