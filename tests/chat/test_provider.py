"""A scripted model behind real chats: calls, permissions, what the page runs, errors, and what goes back to the API."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast
from urllib.error import HTTPError
from urllib.request import urlopen

import httpx
import pytest

from support.chat_script import drain, post, user
from support.model_script import Event, model_call, model_response, model_text, model_thought
from support.provider_streams import sse
from turnlog.aisdk.codec import to_plain
from turnlog.chat import (
    Chat,
    ChatKeeper,
    FinishedAnswer,
    Limits,
    MemoryKeeper,
    NativeKeeper,
    Retry,
    RunRequest,
    keep_turns,
)
from turnlog.chat.runtimes import refusals
from turnlog.chat.runtimes.provider import ProviderRuntime, Tool
from turnlog.model import Message, Ownership, ToolCallPart, ToolResult
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


async def read(call: ToolCallPart, request: RunRequest) -> str:
    return f"content of {call.input_value()['path']}"


async def fail(call: ToolCallPart, request: RunRequest) -> ToolResult:
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


# -- what depends on the request, and how far an answer may go


def runtime(model: Model, tools: Any = None, **given: Any) -> ProviderRuntime:
    return ProviderRuntime(
        "anthropic", RequestOptions(model="claude-x", max_tokens=100), model, tools or TOOLS, **given
    )


def test_model_system_prompt_and_tools_depend_on_the_request(tmp_path: Path) -> None:
    seen: list[tuple[str | None, object]] = []

    async def options(request: RunRequest) -> RequestOptions:
        return RequestOptions(model=f"for-{request.owner.user}", system=request.body["tone"], max_tokens=10)

    async def look(call: ToolCallPart, request: RunRequest) -> str:
        seen.append((request.owner.user, request.dependencies))
        return "seen"

    async def tools(request: RunRequest) -> dict[str, Tool]:
        return {"read": Tool(look), "fail": Tool(look)} if request.owner.user == "ann" else {}

    async def run() -> None:
        model = Model(CALLS, DONE)
        chat = Chat(ProviderRuntime("anthropic", options, model, tools), NativeKeeper(tmp_path / "chats.db"))
        stream = await chat.post(post(tone="curt"), owner=Ownership(user="ann"), dependencies="database")
        await drain(stream)
        assert [(body["model"], body["system"][0]["text"]) for body in model.bodies] == [("for-ann", "curt")] * 2
        assert seen == [("ann", "database")] * 2

    asyncio.run(run())


def test_options_of_the_wrong_type_are_named(caplog: pytest.LogCaptureFixture) -> None:
    def options(request: RunRequest) -> RequestOptions:
        return cast("RequestOptions", "claude-x")

    async def run() -> None:
        chat = Chat(ProviderRuntime("anthropic", options, Model(DONE), TOOLS))
        await drain(await chat.post(post()))

    asyncio.run(run())
    assert "TypeError: the options are RequestOptions(model=…), not str" in caplog.text


def test_calls_of_one_response_run_in_parallel_with_previews() -> None:
    meeting = asyncio.Barrier(2)

    async def read(call: ToolCallPart, request: RunRequest) -> AsyncGenerator[str, None]:
        yield "half"
        await meeting.wait()
        yield "whole"

    async def fail(call: ToolCallPart, request: RunRequest) -> str:
        await meeting.wait()
        return "met"

    async def run() -> None:
        model = Model(CALLS, DONE)
        chat = Chat(runtime(model, {"read": Tool(read), "fail": Tool(fail)}))
        told = await asyncio.wait_for(drain(await chat.post(post())), 10)
        assert b'"output":"half","preliminary":true' in told
        outputs = [part["output"] for part in await parts_of(chat) if part["type"] == "dynamic-tool"]
        assert outputs == ["whole", "met"]
        assert {name: text for name, (text, _) in results_of(model.bodies[1]).items()}.keys() == {"c1", "c2"}
        assert "half" not in json.dumps(model.bodies[1])

    asyncio.run(run())


def test_functions_may_be_plain() -> None:
    """A plain tool runs in a thread: two that wait for each other would hold up an event loop for ever."""
    meeting, ended, main = threading.Barrier(2), list[str](), threading.get_ident()
    lengths: list[int] = []

    def read(call: ToolCallPart, request: RunRequest) -> str:
        meeting.wait(10)
        return "met" if threading.get_ident() != main else "in the way"

    def read_later(call: ToolCallPart, request: RunRequest) -> Awaitable[str]:
        return _later(read(call, request))

    def shorten(history: list[Message], request: RunRequest) -> list[Message]:
        lengths.append(len(history))
        return history

    def on_finish(answer: FinishedAnswer) -> None:
        ended.append(answer.outcome)

    def options(request: RunRequest) -> RequestOptions:
        return RequestOptions(model="claude-x", max_tokens=100)

    async def run() -> None:
        model = Model(CALLS, DONE)
        tools = {"read": Tool(read), "fail": Tool(read_later)}
        answering = ProviderRuntime("anthropic", options, model, lambda request: tools, compact=shorten)
        chat = Chat(answering, on_finish=on_finish)
        await asyncio.wait_for(drain(await chat.post(post())), 10)
        outputs = [part["output"] for part in await parts_of(chat) if part["type"] == "dynamic-tool"]
        assert outputs == ["met", "met"]
        assert lengths == [1, 2]

    asyncio.run(run())
    assert ended == ["finished"]


async def _later(output: str) -> str:
    return output


@pytest.mark.parametrize(("limits", "calls"), [(Limits(calls=3), 3), (Limits(tokens=1), 1), (Limits(), 100)])
def test_an_answer_ends_at_its_limits(limits: Limits, calls: int) -> None:
    async def run() -> None:
        model = Model(*[CALLS.replace(b'"m1"', b'"m1-%d"' % number) for number in range(100)])
        chat = Chat(runtime(model, limits=limits))
        told = await drain(await chat.post(post()))
        assert len(model.bodies) == calls
        assert told.count(b'"type":"finish"') == 1
        assert b'"type":"error"' not in told

    asyncio.run(run())


def test_an_answer_and_a_tool_end_when_their_time_is_over() -> None:
    async def wait(call: ToolCallPart, request: RunRequest) -> str:
        await asyncio.Event().wait()
        return "never"

    async def run() -> None:
        tools = {"read": Tool(wait), "fail": Tool(wait)}
        chat = Chat(runtime(Model(CALLS, DONE), tools, limits=Limits(tool_seconds=0.05)))
        await drain(await chat.post(post()))
        errors = [part["errorText"] for part in await parts_of(chat) if part["type"] == "dynamic-tool"]
        assert errors == ["TimeoutError: the tool took longer than 0.05 seconds"] * 2
        chat = Chat(runtime(Model(CALLS), tools, limits=Limits(seconds=0.05)))
        assert b"the answer took longer than 0.05 seconds" in await drain(await chat.post(post()))

    asyncio.run(run())


def test_a_tool_that_is_cancelled_or_exits_is_an_error_for_the_model() -> None:
    """The answer goes on, and the server lives: an argument parser ends with SystemExit."""

    async def cancelled(call: ToolCallPart, request: RunRequest) -> str:
        task = asyncio.create_task(asyncio.sleep(9))
        task.cancel()
        await task
        return "never"

    def exits(call: ToolCallPart, request: RunRequest) -> str:
        raise SystemExit(2)

    async def run() -> None:
        chat = Chat(runtime(Model(CALLS, DONE), {"read": Tool(cancelled), "fail": Tool(exits)}))
        await asyncio.wait_for(drain(await chat.post(post())), 20)
        errors = [part["errorText"] for part in await parts_of(chat) if part["type"] == "dynamic-tool"]
        assert errors == ["CancelledError: ", "SystemExit: 2"]

    asyncio.run(run())


class _HttpError(Exception):
    def __init__(self, status: int | None) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


@pytest.mark.parametrize(("status", "failures", "sent"), [(503, 2, 3), (None, 1, 2), (429, 3, 3), (401, 1, 1)])
def test_a_request_that_may_pass_is_sent_again(status: int | None, failures: int, sent: int) -> None:
    model, requests = Model(DONE), list[int]()

    async def send(body: Event) -> AsyncGenerator[bytes, None]:
        requests.append(1)
        if len(requests) <= failures:
            raise _HttpError(status)
        async for piece in model(body):
            yield piece

    async def run() -> None:
        options = RequestOptions(model="claude-x", max_tokens=100)
        chat = Chat(ProviderRuntime("anthropic", options, send, retry=Retry(seconds=0.01)))
        told = await drain(await chat.post(post()))
        assert (b"Done." in told, len(requests)) == (sent > failures, sent)

    asyncio.run(run())


OWN = "own-key-123"
TOKEN = f"sk-ant-api03-{hashlib.sha256(b'key').hexdigest()}"
REFUSAL = json.dumps({"error": f"your credit is used up; keys {TOKEN}, {OWN} and bearer-456"}).encode()


def _refused_by_urllib() -> Exception:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 401 No\r\ncontent-length: %d\r\n\r\n" % len(REFUSAL))
                connection.sendall(REFUSAL)

        answering = threading.Thread(target=serve)
        answering.start()
        try:
            with pytest.raises(HTTPError) as raised:
                urlopen(f"http://127.0.0.1:{server.getsockname()[1]}/", timeout=10)
        finally:
            answering.join()
    return raised.value


def _refused_by_httpx() -> Exception:
    request = httpx.Request("POST", "http://localhost", headers={"authorization": "Bearer bearer-456"})
    with pytest.raises(httpx.HTTPStatusError) as raised:
        httpx.Response(401, content=REFUSAL, request=request).raise_for_status()
    return raised.value


def _unread_by_httpx() -> Exception:
    request = httpx.Request("POST", "http://localhost")
    response = httpx.Response(401, stream=httpx.ByteStream(REFUSAL), request=request)
    with pytest.raises(httpx.HTTPStatusError) as raised:
        response.raise_for_status()
    return raised.value


@pytest.mark.parametrize(
    ("refused", "keys"),
    [
        (_refused_by_urllib, ["own-key-123"]),
        (_refused_by_httpx, ["own-key-123", "bearer-456"]),
        (None, ["own-key-123"]),
    ],
)
def test_a_refusal_of_a_provider_is_logged_without_keys(
    refused: Callable[[], Exception] | None,
    keys: list[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last: a function that does not raise for HTTP errors yields the body as if it were the stream."""
    monkeypatch.setenv("MY_API_KEY", OWN)
    raised: dict[str, Exception] = {}

    async def send(body: dict[str, Any]) -> AsyncGenerator[bytes, None]:
        if refused is not None:
            raise raised.setdefault("error", refused())
        yield REFUSAL

    async def run() -> None:
        chat = Chat(ProviderRuntime("anthropic", RequestOptions(model="claude-x", max_tokens=100), send))
        told = await drain(await chat.post(post()))
        assert b"credit" not in told

    asyncio.run(run())
    assert "your credit is used up" in caplog.text
    error = raised.get("error")
    if isinstance(error, HTTPError):
        assert error.read() == REFUSAL
        error.close()
    assert [key for key in (*keys, TOKEN) if key in caplog.text] == []


def _refusing(error: Callable[[], Exception]) -> Chat:
    async def send(body: dict[str, Any]) -> AsyncGenerator[bytes, None]:
        raise error()
        yield b""

    options = RequestOptions(model="claude-x", max_tokens=100)
    return Chat(ProviderRuntime("anthropic", options, send, retry=Retry(times=1, seconds=0)))


@pytest.mark.parametrize("status", [401, 500])
def test_a_key_in_the_address_is_not_in_the_log(status: int, caplog: pytest.LogCaptureFixture) -> None:
    """Gemini's API takes `?key=`, and httpx names the address in its exception; 500 is sent again."""

    def refused() -> Exception:
        request = httpx.Request("POST", f"http://localhost/?alt=sse&key={OWN}%2B")
        with pytest.raises(httpx.HTTPStatusError) as raised:
            httpx.Response(status, text=f"bad key {OWN}+", request=request).raise_for_status()
        return raised.value

    async def run() -> None:
        assert b"An error occurred." in await drain(await _refusing(refused).post(post()))

    asyncio.run(run())
    assert "bad key [a key]" in caplog.text
    assert "HTTPStatusError" in caplog.text
    assert OWN not in caplog.text


@pytest.mark.parametrize("before", range(4060, 4100, 8))
def test_a_key_at_the_end_of_what_is_shown_is_not_there_in_part(
    before: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", OWN)

    def refused() -> Exception:
        request = httpx.Request("POST", "http://localhost")
        with pytest.raises(httpx.HTTPStatusError) as raised:
            httpx.Response(401, text="x" * before + OWN, request=request).raise_for_status()
        return raised.value

    async def run() -> None:
        await drain(await _refusing(refused).post(post()))

    asyncio.run(run())
    assert "xxxx" in caplog.text
    assert OWN[:4] not in caplog.text


def test_a_key_that_a_provider_repeats_in_its_stream_is_not_on_the_page(caplog: pytest.LogCaptureFixture) -> None:
    failed = sse([{"type": "error", "error": {"type": "authentication_error", "message": f"invalid key {TOKEN}"}}])

    async def run() -> None:
        shown = await drain(await Chat(runtime(Model(failed))).post(post()))
        assert b"invalid key" in shown
        assert TOKEN.encode() not in shown

    asyncio.run(run())
    assert TOKEN not in caplog.text


def test_a_client_error_is_kept_and_a_failed_request_sent_again() -> None:
    """httpx raises RuntimeError where somebody asks for a request that was never set."""
    sent: list[Exception] = []

    async def send(body: dict[str, Any]) -> AsyncGenerator[bytes, None]:
        sent.append(httpx.ReadTimeout("slow"))
        raise sent[-1]
        yield b""

    async def run() -> None:
        options = RequestOptions(model="claude-x", max_tokens=100)
        runtime = ProviderRuntime("anthropic", options, send, retry=Retry(times=1, seconds=0))
        chat = Chat(runtime, error_text=lambda error: type(error).__name__)
        assert b"ReadTimeout" in await drain(await chat.post(post()))

    asyncio.run(run())
    assert len(sent) == 2


def test_a_key_that_a_wrapped_exception_repeats_is_not_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    def refused() -> Exception:
        try:
            raise _refused_by_httpx()
        except httpx.HTTPStatusError as error:
            wrapped = RuntimeError(error.response.text)
            wrapped.__cause__ = error
            return wrapped

    async def run() -> None:
        await drain(await _refusing(refused).post(post()))

    asyncio.run(run())
    assert "your credit is used up" in caplog.text
    assert "bearer-456" not in caplog.text


def test_a_key_of_which_only_a_piece_has_come_is_not_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", OWN)

    class Body:
        length = 200

        def peek(self, size: int) -> bytes:
            return f"bad key {OWN[:-2]}".encode()

    def refused() -> Exception:
        error = OSError("401")
        vars(error).update(fp=Body(), status=401)
        return error

    async def run() -> None:
        await drain(await _refusing(refused).post(post()))

    asyncio.run(run())
    assert "bad key" in caplog.text
    assert OWN[:-2] not in caplog.text


def test_refusals_whose_body_never_comes_hold_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of `asyncio.to_thread` are few: requests and tools run in them."""
    monkeypatch.setattr(refusals, "_SECONDS", 0.01)
    waiting = threading.Event()

    class Body:
        def peek(self, size: int) -> bytes:
            waiting.wait(60)
            return b""

    def refused() -> Exception:
        error = OSError("401")
        vars(error).update(fp=Body(), status=401)
        return error

    async def run() -> None:
        await asyncio.gather(*[_answer(f"chat-{number}") for number in range(40)])
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 10) == "free"

    async def _answer(chat_id: str) -> None:
        await drain(await _refusing(refused).post(post(chat_id)))

    try:
        asyncio.run(run())
    finally:
        waiting.set()


def test_a_refusal_whose_body_was_not_read_is_an_error_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    async def send(body: dict[str, Any]) -> AsyncGenerator[bytes, None]:
        raise _unread_by_httpx()
        yield b""

    async def run() -> None:
        chat = Chat(ProviderRuntime("anthropic", RequestOptions(model="claude-x", max_tokens=100), send))
        assert b"An error occurred." in await drain(await chat.post(post()))

    asyncio.run(run())
    assert "HTTPStatusError" in caplog.text


def test_a_long_chat_is_shortened_for_the_model_only() -> None:
    async def run() -> None:
        model = Model(*[DONE.replace(b'"m2"', b'"m2-%d"' % number) for number in range(3)])
        chat = Chat(runtime(model, compact=keep_turns(2)))
        for number in range(3):
            await drain(await chat.post(post(message=user(f"u{number}", f"question {number}"))))
        assert [len(body["messages"]) for body in model.bodies] == [1, 3, 3]
        assert "question 0" not in json.dumps(model.bodies[2])
        assert len(await chat.messages("chat")) == 6

    asyncio.run(run())


def test_who_wants_to_know_is_told_of_every_answer_that_has_ended() -> None:
    ended: list[tuple[str, str, int]] = []
    keeper = MemoryKeeper()

    async def on_finish(answer: FinishedAnswer) -> None:
        saved = await keeper.load(answer.request.chat_id)
        ended.append((answer.request.chat_id, answer.outcome, len(saved)))
        raise OSError("told to the log only")

    async def run() -> None:
        chat = Chat(runtime(Model(DONE, ERROR)), keeper, on_finish=on_finish)
        await drain(await chat.post(post("good")))
        await drain(await chat.post(post("bad")))
        waiting = Chat(runtime(Model(CALLS), {"read": Tool(_never), "fail": Tool(_never)}), keeper, on_finish=on_finish)
        stream = await waiting.post(post("stopped"))
        await anext(stream)
        await waiting.stop("stopped")
        assert ended == [("good", "finished", 2), ("bad", "failed", 2), ("stopped", "stopped", 2)]

    asyncio.run(run())


async def _never(call: ToolCallPart, request: RunRequest) -> str:
    await asyncio.Event().wait()
    return ""


def test_a_page_that_cannot_answer_a_question_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """The tools are known when the request comes: the endpoint could not warn when it was built."""

    async def tools(request: RunRequest) -> dict[str, Tool]:
        return TOOLS

    async def run() -> None:
        options = RequestOptions(model="claude-x", max_tokens=100)
        chat = Chat(ProviderRuntime("anthropic", options, Model(ASKS, ASKS, ASKS), tools))
        await drain(await chat.post(post("new"), version=7))
        assert "approvals" not in caplog.text
        await drain(await chat.post(post("one"), version=5))
        await drain(await chat.post(post("two"), version=5))

    asyncio.run(run())
    assert caplog.text.count("AI SDK 5 has no approvals") == 1


def test_what_a_tool_raised_is_in_the_log_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    def read(call: ToolCallPart, request: RunRequest) -> str:
        raise KeyError("city")

    def fine(call: ToolCallPart, request: RunRequest) -> str:
        return "fine"

    async def run() -> None:
        chat = Chat(runtime(Model(CALLS, DONE), {"read": Tool(read), "fail": Tool(fine)}))
        told = await drain(await chat.post(post()))
        assert b"KeyError: 'city'" in told
        assert b"Traceback" not in told

    asyncio.run(run())
    [record] = [record for record in caplog.records if record.exc_info]
    assert record.getMessage() == "the tool read failed"
    assert 'raise KeyError("city")' in caplog.text


FORMS: dict[str, list[dict[str, Any]]] = {
    "anthropic": [{"name": "weather", "input_schema": {"properties": {"a": {"name": "weathr"}}}}],
    "openai-chat": [{"type": "function", "function": {"name": "weather", "parameters": {}}}],
    "responses": [{"type": "function", "name": "weather"}],
    "gemini": [{"functionDeclarations": [{"name": "weather"}]}],
}


@pytest.mark.parametrize("api", FORMS)
def test_a_tool_that_the_model_is_not_shown_is_refused(api: str) -> None:
    def weather(call: ToolCallPart, request: RunRequest) -> str:
        return "Rain"

    options = RequestOptions(model="m", max_tokens=9, tools=FORMS[api])
    ProviderRuntime(api, options, Model(DONE), {"weather": Tool(weather)})
    reason = "the model cannot call the tool 'weathr': RequestOptions.tools describes 'weather'"
    with pytest.raises(ValueError, match=reason):
        ProviderRuntime(api, options, Model(DONE), {"weathr": Tool(weather)})


def test_a_tool_that_a_user_is_not_shown_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    def options(request: RunRequest) -> RequestOptions:
        return RequestOptions(model="claude-x", max_tokens=9, tools=FORMS["anthropic"])

    def weather(call: ToolCallPart, request: RunRequest) -> str:
        return "Rain"

    async def run() -> None:
        chat = Chat(ProviderRuntime("anthropic", options, Model(DONE, DONE), {"weathr": Tool(weather)}))
        for chat_id in ("one", "two"):
            await drain(await chat.post(post(chat_id)))

    asyncio.run(run())
    reason = "the model cannot call the tool 'weathr': RequestOptions.tools describes 'weather'"
    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == [reason]
