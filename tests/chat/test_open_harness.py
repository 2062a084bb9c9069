"""Open Harness' runtime events, row by row; every stream is read back as a message."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from starlette.testclient import TestClient

from support.chat_script import STREAM_HEADERS, drain, post, user
from turnlog.aisdk import UIMessage, UIMessageReader, encode, parse_ui_message, validate_ui_messages
from turnlog.aisdk.codec import encode_chunk
from turnlog.chat import Chat, ChatKeeper, MemoryKeeper, NativeKeeper, RunRequest
from turnlog.chat.http import ChatApp
from turnlog.chat.runtimes.open_harness import (
    NO_TEXT,
    NO_USER_MESSAGE,
    OpenHarnessAdapter,
    OpenHarnessRuntime,
    OpenHarnessTransport,
    TransportOptions,
)
from turnlog.errors import ConflictError, ConversionError, StreamStateError

Json = dict[str, Any]
EVERYTHING = TransportOptions(send_flow_metadata=True, send_node_outputs=True)


def agent(kind: str, /, node: str = "n", **fields: Any) -> Json:
    return {"type": f"agent:{kind}", "runId": "run", "nodeId": node, **fields}


def text(content: str, node: str = "n") -> Json:
    return agent("text:delta", node, content=content)


def thinking(content: str) -> Json:
    return agent("thinking:delta", content=content)


def chunks_of(*given: Any, options: TransportOptions | None = None, closed: bool | None = None) -> list[Json]:
    adapter = OpenHarnessAdapter(7, options)
    chunks = [chunk for event in given for chunk in adapter.write(event)]
    if closed is not None:
        assert adapter.closed is closed
    return [json.loads(encode_chunk(chunk)) for chunk in chunks + adapter.close()]


def kinds(*given: Any, options: TransportOptions | None = None, closed: bool | None = None) -> list[str]:
    return [chunk["type"] for chunk in chunks_of(*given, options=options, closed=closed)][1:-1]


def parts(*given: Any, options: TransportOptions | None = None) -> list[Json]:
    reader = UIMessageReader()
    for chunk in chunks_of(*given, options=options):
        reader.feed(chunk)
    parse_ui_message(encode(reader.message))
    return json.loads(encode(reader.message))["parts"]


def said(*given: Any) -> list[str]:
    return [part.get("text", part["type"]) for part in parts(*given)]


def test_options_and_their_defaults() -> None:
    """R-O1."""
    options = TransportOptions()
    assert options[:4] == (True, True, False, False)
    assert UUID(options.generate_message_id()).version == 4


def test_deltas_begin_a_part_and_its_text_ends_it() -> None:
    """R-O2, R-O3."""
    assert kinds(text(""), text("A"), text("B"), agent("text", content="AB")) == [
        *("text-start", "text-delta", "text-delta", "text-end"),
    ]
    assert kinds(text("A")) == ["text-start", "text-delta", "text-end"]
    assert said(text("Look"), agent("tool", toolName="Read", toolInput={}, toolOutput=1), text("Found")) == [
        *("Look", "dynamic-tool", "Found"),
    ]
    assert said(agent("text", content="whole"), agent("text", content="again")) == ["whole", "again"]
    assert said(text("A"), thinking("R"), agent("text", content="A")) == ["A", "R"]


def test_thinking_is_reasoning_or_nothing() -> None:
    """R-O4."""
    given = [thinking(""), thinking("R"), agent("thinking", content="R")]
    assert kinds(*given) == ["reasoning-start", "reasoning-delta", "reasoning-end"]
    assert kinds(*given, options=TransportOptions(send_reasoning=False)) == []
    assert said(text("A"), thinking("R"), text("B")) == ["A", "R", "B"]


OUTCOMES: tuple[Json, ...] = ({"toolOutput": None}, {"error": "gone"})


def test_a_tool_with_input_output_or_error() -> None:
    """R-O5."""
    done, failed = (
        parts(agent("tool", toolName="Read", toolInput={"a": 1}, **outcome), text("on")) for outcome in OUTCOMES
    )
    assert (done[0]["state"], done[0]["input"], done[0]["output"]) == ("output-available", {"a": 1}, None)
    assert (failed[0]["state"], failed[0]["errorText"], failed[1]["text"]) == ("output-error", "gone", "on")
    assert kinds(agent("tool", toolName="Read", toolInput={}))[0] == "tool-input-available"


def test_a_later_event_of_a_call_updates_it() -> None:
    """R-O6."""
    begun = agent("tool", toolName="Read", toolInput={"a": 1}, toolCallId="c")
    ended = begun | {"toolOutput": "x"}
    assert kinds(begun, ended, begun, ended) == ["tool-input-available", "tool-output-available"]
    nameless = [{key: value for key, value in event.items() if key != "toolCallId"} for event in (begun, ended)]
    assert kinds(*nameless) == ["tool-input-available", "tool-output-available"]


def test_two_calls_of_one_tool_are_two_parts() -> None:
    """R-O7."""
    call = agent("tool", toolName="Read", toolInput={}, toolOutput=1)
    found = parts(call, call)
    assert len({part["toolCallId"] for part in found}) == 2


def test_a_node_is_a_step() -> None:
    """R-O8."""
    node = {"type": "node:start", "nodeId": "n", "runId": "run"}
    assert kinds(text("A"), node, text("B")) == [
        *("text-start", "text-delta", "text-end", "start-step"),
        *("text-start", "text-delta", "text-end", "finish-step"),
    ]
    assert kinds(node, options=TransportOptions(send_step_markers=False)) == []


@pytest.mark.parametrize(("given", "expected"), [({"message": "m"}, "m"), ({"error": "e"}, "e"), ({}, "Unknown error")])
def test_errors_have_a_text_and_the_run_goes_on(given: Json, expected: str) -> None:
    """R-O9."""
    for error in (agent("error", **given), {"type": "node:error", "nodeId": "n", **given}):
        chunks = chunks_of(text("A"), error, text("B"), closed=False)
        assert [chunk["errorText"] for chunk in chunks if chunk["type"] == "error"] == [expected]
        assert [chunk["type"] for chunk in chunks[3:6]] == ["text-end", "error", "text-start"]


def test_an_aborted_agent_ends_the_stream_with_an_error() -> None:
    """R-O10."""
    assert kinds(text("A"), agent("aborted", reason="why"), closed=True) == [
        *("text-start", "text-delta", "text-end", "error"),
    ]


@pytest.mark.parametrize("kind", ["complete", "paused"])
def test_an_agent_that_is_done_ends_the_stream_without_an_error(kind: str) -> None:
    """R-O11; usage and result are metadata of the message."""
    given = agent(kind, result="ok", usage={"inputTokens": 1})
    assert kinds(text("A"), given, text("B"), closed=True) == ["text-start", "text-delta", "text-end"]
    if kind == "complete":
        assert chunks_of(given)[-1]["messageMetadata"] == {"result": "ok", "usage": {"inputTokens": 1}}


def test_the_state_of_the_flow_is_data_where_it_is_asked_for() -> None:
    """R-O12; within a flow its own end is the stream's, not that of one agent."""
    start = {"type": "flow:start", "flowName": "f"}
    end = {"type": "flow:complete", "flowName": "f", "status": "complete"}
    given = [start, agent("complete", node="a"), text("B", node="b"), end]
    assert said(*given) == ["B"]
    states = [part["data"] for part in parts(*given, options=EVERYTHING) if part["type"] == "data-flow-status"]
    assert states == [{"status": status, "flowName": "f"} for status in ("running", "complete")]
    assert kinds({"type": "flow:paused"}, closed=False) == []
    assert kinds(end, closed=True) == []
    assert parts({"type": "flow:paused"}, options=EVERYTHING)[0]["data"] == {"status": "paused", "flowName": ""}


def test_outputs_of_nodes_are_data_where_they_are_asked_for() -> None:
    """R-O13."""
    event = {"type": "node:complete", "nodeId": "n", "runId": "run", "output": {"a": 1}}
    assert parts(event, options=EVERYTHING)[0] == {
        "type": "data-node-output",
        "data": {"nodeId": "n", "runId": "run", "output": {"a": 1}},
    }
    assert kinds(event) == []


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        {},
        {"type": 5},
        {"type": "agent:text:delta", "content": "x", "nodeId": "n"},
        {"type": "agent:text:delta", "content": "x", "runId": "r"},
        agent("text:delta", content=5),
        agent("tool", toolInput={}),
        agent("tool", toolName="Read", toolInput=object()),
    ],
)
def test_events_that_break_the_rules_are_logged_and_skipped(event: Any, caplog: pytest.LogCaptureFixture) -> None:
    """R-O14, R-O23."""
    with caplog.at_level(logging.WARNING):
        assert said(event, text("A")) == ["A"]
    assert "skipped" in caplog.text
    with pytest.raises(StreamStateError):
        OpenHarnessAdapter(7, strict=True).write(event)


def test_unknown_events_say_nothing_and_a_stream_is_never_empty() -> None:
    """R-O14, R-O15."""
    assert [chunk["type"] for chunk in chunks_of({"type": "edge:fire"})] == ["start", "finish"]


def test_two_nodes_at_once_keep_their_texts_apart() -> None:
    """R-O16, R-O24."""
    assert said(text("a1", "a"), text("b1", "b"), text("a2", "a"), text("b2", "b")) == ["a1a2", "b1b2"]


def test_one_message_id_a_stream() -> None:
    """R-O17."""
    assert chunks_of(options=TransportOptions(generate_message_id=lambda: "mine"))[0]["messageId"] == "mine"
    assert chunks_of()[0]["messageId"] != chunks_of()[0]["messageId"]


class FakeRuntime:
    def __init__(self, *answers: Json, failure: Exception | None = None) -> None:
        self.answers = answers
        self.failure = failure
        self.listeners: list[Callable[[Json], None]] = []
        self.commands: list[Json] = []

    def subscribe(self, listener: Callable[[Any], None], /) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    async def dispatch(self, command: Json, /) -> None:
        self.commands.append(command)
        if self.failure is not None:
            raise self.failure
        for answer in self.answers:
            for listener in self.listeners:
                listener(answer)
            await asyncio.sleep(0)


def messages(*given: tuple[str, list[Json]]) -> list[Any]:
    return [parse_ui_message({"id": str(n), "role": role, "parts": said}) for n, (role, said) in enumerate(given)]


HELLO = [{"type": "text", "text": "Hello"}]


async def exchange(runtime: FakeRuntime, chat: list[Any], **options: Any) -> list[str]:
    stream = OpenHarnessTransport(runtime).send_messages(chat, **options)
    return [chunk.type async for chunk in stream]


def test_an_exchange_subscribes_first_and_leaves_nothing_behind() -> None:
    """R-O18, R-O25, R-O26."""

    async def run() -> None:
        runtime = FakeRuntime(text("A"), agent("complete"))
        found = await exchange(runtime, messages(("user", HELLO)))
        assert found == ["start", "text-start", "text-delta", "text-end", "finish"]
        assert runtime.listeners == []
        runtimes = [FakeRuntime(text(str(number)), agent("complete")) for number in range(100)]
        await asyncio.gather(*[exchange(each, messages(("user", HELLO))) for each in runtimes])
        assert [each.listeners for each in runtimes] == [[]] * 100

    asyncio.run(run())


def test_the_last_user_message_is_sent() -> None:
    """R-O19: all of its texts and files."""
    assert (NO_USER_MESSAGE, NO_TEXT) == ("No user message found", "User message has no text content")
    file = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,"}

    async def run() -> None:
        runtime = FakeRuntime(agent("complete"))
        chat = messages(("user", HELLO), ("user", [*HELLO, file, *HELLO]), ("assistant", HELLO))
        await exchange(runtime, chat)
        assert runtime.commands == [{"type": "send", "message": "Hello\nHello", "parts": [*HELLO, file, *HELLO]}]
        with pytest.raises(ConversionError, match=NO_USER_MESSAGE):
            await exchange(runtime, messages(("assistant", HELLO)))
        with pytest.raises(ConversionError, match=NO_TEXT):
            await exchange(runtime, messages(("user", [file])))

    asyncio.run(run())


def test_an_abort_signal_ends_the_stream() -> None:
    """R-O20."""

    async def run() -> None:
        signal, runtime = asyncio.Event(), FakeRuntime(text("A"))
        asyncio.get_running_loop().call_later(0.02, signal.set)
        found = await exchange(runtime, messages(("user", HELLO)), abort_signal=signal)
        assert found[-2:] == ["text-end", "abort"]
        assert runtime.listeners == []

    asyncio.run(run())


def test_a_command_that_fails_is_one_error() -> None:
    """R-O21, R-O22."""

    async def run() -> None:
        runtime = FakeRuntime(failure=RuntimeError("busy"))
        assert await exchange(runtime, messages(("user", HELLO))) == ["start", "error", "finish"]
        assert OpenHarnessTransport(runtime).reconnect_to_stream() is None

    asyncio.run(run())


# -- behind a chat


def tool_run() -> FakeRuntime:
    done = agent("tool", toolName="Read", toolInput={"a": 1}, toolOutput="x")
    return FakeRuntime(thinking("R"), text("Look"), done, text("Found"), agent("complete", usage={"inputTokens": 1}))


@pytest.fixture(params=["memory", "native"])
def keeper(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ChatKeeper]:
    if request.param == "memory":
        yield MemoryKeeper()
        return
    native = NativeKeeper(tmp_path / "turnlog.db")
    yield native
    native.close()


def shown(message: UIMessage) -> list[str]:
    parts: list[Json] = json.loads(encode(message))["parts"]
    return [part.get("text", part["type"]) for part in parts if part["type"] != "step-start"]


@pytest.mark.parametrize("version", [5, 6, 7])
def test_a_chat_is_answered_and_kept(keeper: ChatKeeper, version: int) -> None:
    """R-O18, R-O19, R-O25: of each chat by a runtime of its own, and nothing stays subscribed."""
    harnesses = {f"chat {number}": tool_run() for number in range(10)}

    async def run() -> None:
        chat = Chat(OpenHarnessRuntime(harnesses.__getitem__), keeper)
        await asyncio.gather(*[answer(chat, chat_id) for chat_id in harnesses])
        for chat_id, harness in harnesses.items():
            question, reply = await chat.messages(chat_id, version=version)
            assert harness.commands == [{"type": "send", "message": chat_id, "parts": [text_part(chat_id)]}]
            assert harness.listeners == []
            assert (question.role, shown(reply)) == ("user", ["R", "Look", "dynamic-tool", "Found"])
            validate_ui_messages([question, reply], version=version)

    async def answer(chat: Chat, chat_id: str) -> None:
        body = post(chat_id, message=user("u", chat_id))
        assert b'"delta":"Found"' in await drain(await chat.post(body, version=version))

    asyncio.run(run())


FILE_ALONE: Json = {
    "id": "u",
    "role": "user",
    "parts": [{"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,"}],
}


def text_part(words: str) -> Json:
    return {"type": "text", "text": words}


def test_a_page_is_served_as_by_every_other_runtime() -> None:
    """R-O22, R-O27: the headers of the protocol, and 204 for a stream that does not run."""
    with TestClient(ChatApp(Chat(OpenHarnessRuntime(lambda chat_id: tool_run())))) as client:
        reply = client.post("/api/chat", content=post(), headers={"content-type": "application/json"})
        assert {name: reply.headers[name] for name in STREAM_HEADERS} == STREAM_HEADERS
        assert reply.content.endswith(b"data: [DONE]\n\n")
        assert client.get("/api/chat/chat/stream").status_code == 204
        assert [message["role"] for message in client.get("/api/chat/chat").json()] == ["user", "assistant"]


def test_nodes_at_once_never_share_a_part_behind_a_chat() -> None:
    """R-O16, R-O24."""
    given = [text("a1", "a"), text("b1", "b"), text("a2", "a"), text("b2", "b")]

    async def run() -> None:
        flow = [{"type": "flow:start", "flowName": "f"}, *given, {"type": "flow:complete", "status": "complete"}]
        chat = Chat(OpenHarnessRuntime(lambda chat_id: FakeRuntime(*flow)))
        await drain(await chat.post(post()))
        assert shown((await chat.messages("chat"))[1]) == ["a1", "b1", "a2", "b2"]

    asyncio.run(run())


def test_a_stop_leaves_the_runtime_and_keeps_what_came() -> None:
    """R-O20."""

    async def run() -> None:
        harness = FakeRuntime(text("Half"))
        chat = Chat(OpenHarnessRuntime(lambda chat_id: harness))
        reading = asyncio.create_task(drain(await chat.post(post())))
        while harness.commands == []:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        assert await chat.stop("chat")
        assert b'"type":"abort"' in await reading
        assert harness.listeners == []
        assert shown((await chat.messages("chat"))[1]) == ["Half"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("harness", "message"),
    [
        (FakeRuntime(failure=RuntimeError("busy")), user()),
        (FakeRuntime(agent("complete")), FILE_ALONE),
    ],
    ids=["dispatch fails", "no text"],
)
def test_what_cannot_be_sent_is_one_error_of_the_page(harness: FakeRuntime, message: Json) -> None:
    """R-O19, R-O21."""

    async def run() -> None:
        chat = Chat(OpenHarnessRuntime(lambda chat_id: harness), error_text=str)
        streamed = await drain(await chat.post(post(message=message)))
        assert streamed.count(b'"type":"error"') == 1
        assert b'"busy"' in streamed or NO_TEXT.encode() in streamed
        assert harness.listeners == []

    asyncio.run(run())


def test_a_run_asks_the_page_nothing() -> None:
    with pytest.raises(ConflictError):
        asyncio.run(OpenHarnessRuntime(lambda chat_id: tool_run()).resume(RunRequest(chat_id="chat", messages=())))
