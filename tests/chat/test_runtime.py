"""A runtime out of a function: what its listeners are told, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from turnlog.aisdk import parse_ui_messages
from turnlog.chat import FunctionRuntime, RunRequest
from turnlog.errors import ConflictError
from turnlog.model.stream import (
    Abort,
    ReasoningDelta,
    RunFinish,
    RunStart,
    StepFinish,
    StepStart,
    StreamEvent,
    TextDelta,
)

HI = '[{"id":"u","role":"user","parts":[{"type":"text","text":"hi"},{"type":"text","text":"you"}]}]'
REQUEST = RunRequest(chat_id="chat", messages=tuple(parse_ui_messages(HI)))


async def listen(runtime: FunctionRuntime, chat_id: str, told: list[StreamEvent], ready: asyncio.Event) -> None:
    async with runtime.subscribe(chat_id) as events:
        ready.set()
        async for event in events:
            told.append(event)


async def answered(answer: FunctionRuntime, request: RunRequest = REQUEST) -> list[StreamEvent]:
    async with answer.subscribe(request.chat_id) as events:
        await answer.send(request)
        return [event async for event in events]


def test_who_subscribed_before_is_told_everything_in_order() -> None:
    """R-O18, R-O24."""

    async def answer(request: RunRequest) -> AsyncGenerator[StreamEvent, None]:
        yield RunStart()
        for word in request.prompt.split():
            yield TextDelta(id="t", delta=word)
        yield RunFinish()

    async def run() -> None:
        told = await answered(FunctionRuntime(answer))
        assert told == [RunStart(), TextDelta(id="t", delta="hi"), TextDelta(id="t", delta="you"), RunFinish()]

    asyncio.run(run())


def test_a_second_listener_gets_the_rest_and_leaving_does_not_end_the_run() -> None:
    async def run() -> None:
        gate = asyncio.Event()

        async def answer(request: RunRequest) -> AsyncGenerator[StreamEvent, None]:
            yield RunStart()
            await gate.wait()
            yield RunFinish()

        runtime = FunctionRuntime(answer)
        async with runtime.subscribe("chat") as events:
            await runtime.send(REQUEST)
            assert await anext(events) == RunStart()
            with pytest.raises(ConflictError):
                await runtime.send(REQUEST)
            late: list[StreamEvent] = []
            ready = asyncio.Event()
            listening = asyncio.create_task(listen(runtime, "chat", late, ready))
            await ready.wait()
        gate.set()
        await listening
        assert late == [RunFinish()]

    asyncio.run(run())


@pytest.mark.parametrize("wait", [0, 0.01])
def test_an_abort_closes_the_answer_and_says_so(wait: float) -> None:
    """R-O20; also before the run has made its first step."""
    closed: list[bool] = []

    async def answer(request: RunRequest) -> AsyncGenerator[StreamEvent, None]:
        try:
            yield RunStart()
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    async def run() -> None:
        runtime = FunctionRuntime(answer)
        async with runtime.subscribe("chat") as events:
            await runtime.send(REQUEST)
            if wait:
                await asyncio.sleep(wait)
            await runtime.abort("chat")
            told = [event async for event in events]
        assert told[-1] == Abort()
        assert closed == ([True] if wait else [])
        await runtime.abort("chat")
        assert (await answered(FunctionRuntime(briefly)))[-1] == RunFinish()

    asyncio.run(run())


async def briefly(request: RunRequest) -> AsyncGenerator[StreamEvent, None]:
    yield RunFinish()


def test_what_an_answer_raises_reaches_its_listeners() -> None:
    async def answer(request: RunRequest) -> AsyncGenerator[StreamEvent, None]:
        yield RunStart()
        raise ValueError("broken")

    async def run() -> None:
        told: list[StreamEvent] = []
        with pytest.raises(ValueError, match="broken"):
            await gather(FunctionRuntime(answer), told)
        assert told == [RunStart()]

    asyncio.run(run())


async def gather(runtime: FunctionRuntime, told: list[StreamEvent]) -> None:
    async with runtime.subscribe("chat") as events:
        await runtime.send(REQUEST)
        async for event in events:
            told.append(event)


def test_an_answer_of_nothing_is_complete() -> None:
    async def answer(request: RunRequest) -> AsyncGenerator[str, None]:
        for word in request.prompt.split():
            yield word

    request = RunRequest(chat_id="chat", messages=())
    assert asyncio.run(answered(FunctionRuntime(answer), request)) == [RunFinish(stop_reason="stop")]


def test_a_hundred_chats_at_once_do_not_mix() -> None:
    """R-O25."""

    async def answer(request: RunRequest) -> AsyncGenerator[StreamEvent, None]:
        for _ in range(20):
            yield TextDelta(id="t", delta=request.chat_id)
            await asyncio.sleep(0)

    async def run() -> None:
        runtime = FunctionRuntime(answer)
        requests = [RunRequest(chat_id=f"chat {number}", messages=REQUEST.messages) for number in range(100)]
        told = await asyncio.gather(*[answered(runtime, request) for request in requests])
        for request, events in zip(requests, told, strict=True):
            assert events == [TextDelta(id="t", delta=request.chat_id)] * 20

    asyncio.run(run())


def test_a_request_knows_its_prompt_and_its_history() -> None:
    assert REQUEST.prompt == "hi\nyou"
    assert [message.role for message in REQUEST.history()] == ["user"]
    assert RunRequest(chat_id="chat", messages=()).prompt == ""


@pytest.mark.parametrize(
    ("yielded", "models"),
    [
        ((StepStart(model="m"), "Hello ", "world", StepFinish(stop_reason="stop")), ["m"]),
        ((StepStart(model="m"), ReasoningDelta(id="r", delta="hm"), "Hi", StepFinish(stop_reason="stop")), ["m"]),
        (("one", StepFinish(stop_reason="stop"), StepStart(model="n"), "two"), [None, "n"]),
        (("one", StepFinish(stop_reason="stop"), "two"), [None, None]),
        (("alone",), [None]),
    ],
)
def test_a_piece_of_text_belongs_to_the_step_that_has_begun(
    yielded: tuple[StreamEvent | str, ...], models: list[str | None]
) -> None:
    async def answer(request: RunRequest) -> AsyncGenerator[StreamEvent | str, None]:
        for each in yielded:
            yield each

    told = asyncio.run(answered(FunctionRuntime(answer)))
    assert [event.model for event in told if isinstance(event, StepStart)] == models
