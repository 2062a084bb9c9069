"""Chats with agents in tests: requests, events, and what a page makes of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
from msgspec import UNSET

from support.fake_agent import FakeAgent, printed
from turnlog.aisdk.parts import (
    DynamicToolUIPart,
    TextUIPart,
    ToolApproval,
    ToolUIPart,
    UIMessage,
    UIMessagePart,
)
from turnlog.aisdk.reader import UIMessageReader
from turnlog.aisdk.writer import ChunkWriter
from turnlog.chat import RunRequest
from turnlog.chat.runtimes import AgentRuntime, ClaudeCodeCommand
from turnlog.model.stream import (
    Pause,
    StreamEvent,
    TextDelta,
)

DATA = Path(__file__).parents[1] / "data"
LIVE = DATA / "claude_code" / "live"
SESSION = "11111111-1111-4111-8111-111111111111"

INIT = '< {"type":"system","subtype":"init","session_id":"s"}'
DONE = '< {"type":"result","subtype":"success","is_error":false,"session_id":"s","result":"x"}'
"""The first and the last line that Claude Code prints; `spoken` is one between."""


def recording(name: str, folder: Path = LIVE) -> list[str]:
    return (folder / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def claude_prints(name: str) -> list[str]:
    return ["> ", *printed((DATA / "claude_code" / "streams" / f"{name}.jsonl").read_text().splitlines()), "= 0"]


def codex_prints(name: str) -> list[str]:
    lines = (DATA / "codex" / "streams" / f"{name}.jsonl").read_text().splitlines()
    return ["! sys.stdin.read()", *printed(lines), "= 0"]


def asked(text: str, *more: UIMessage, chat: str = "chat", continued: UIMessage | None = None) -> RunRequest:
    newest = UIMessage(id="u", role="user", parts=(TextUIPart(text=text),))
    messages = (*more, newest) if continued is None else (*more, newest, continued)
    return RunRequest(chat_id=chat, messages=messages, continued=continued)


def claude(
    agent: FakeAgent, *, grace_seconds: float = 0.5, wait_seconds: float = 60.0, store_path: Path | None = None
) -> AgentRuntime:
    command = ClaudeCodeCommand(program=str(agent.program))
    return AgentRuntime(command, store_path=store_path, grace_seconds=grace_seconds, wait_seconds=wait_seconds)


async def told(runtime: AgentRuntime, request: RunRequest, *, resume: bool = False) -> list[StreamEvent]:
    async with runtime.subscribe(request.chat_id) as events:
        await (runtime.resume(request) if resume else runtime.send(request))
        return [event async for event in events]


async def stopped_at_first_word(runtime: AgentRuntime) -> list[StreamEvent]:
    """All events of an answer which is stopped as soon as it says something."""
    events: list[StreamEvent] = []
    async with runtime.subscribe("chat") as listening:
        await runtime.send(asked("Do the thing"))
        async for event in listening:
            events.append(event)
            if isinstance(event, TextDelta):
                break
        stopping = asyncio.create_task(runtime.abort("chat"))
        events += [event async for event in listening]
        await stopping
    await runtime.close()
    return events


def kinds(events: list[StreamEvent]) -> list[str]:
    """The kinds of events, those that repeat once."""
    names = [type(event).__name__ for event in events]
    return [name for number, name in enumerate(names) if number == 0 or names[number - 1] != name]


def text_of(events: list[StreamEvent]) -> str:
    return "".join(event.delta for event in events if isinstance(event, TextDelta))


def check_chunks(events: list[StreamEvent], continued: UIMessage | None = None) -> UIMessage:
    """The events are in an order of which nothing has to be skipped; the message that a page makes of them."""
    writer = ChunkWriter(7, continued=continued, strict=True)
    reader = UIMessageReader(continued, version=7)
    for event in events:
        for chunk in writer.write(event):
            reader.feed(chunk)
    for chunk in writer.close():
        reader.feed(chunk)
    assert writer.losses == []
    return reader.message


def answered(runtime: AgentRuntime, request: RunRequest) -> list[StreamEvent]:
    """All events of a whole run, with the process gone and its end recorded."""

    async def run() -> list[StreamEvent]:
        try:
            return await told(runtime, request)
        finally:
            await runtime.close()

    return asyncio.run(run())


def responded(events: list[StreamEvent], *, approved: bool, before: UIMessage | None = None) -> UIMessage:
    """The message of a paused run with the page's answers."""
    message = check_chunks(events, before)
    return msgspec.structs.replace(message, parts=tuple(answer(part, approved=approved) for part in message.parts))


def answering_each_time(runtime: AgentRuntime, *, approved: bool) -> list[list[StreamEvent]]:
    """The events from one question to the next, of a run whose every question gets the same answer."""

    async def run() -> list[list[StreamEvent]]:
        runs = [await told(runtime, asked("Do the thing"))]
        message: UIMessage | None = None
        while isinstance(runs[-1][-1], Pause):
            message = responded(runs[-1], approved=approved, before=message)
            runs.append(await told(runtime, asked("Do the thing", continued=message), resume=True))
        await runtime.close()
        return runs

    return asyncio.run(run())


def answer(part: UIMessagePart, *, approved: bool) -> UIMessagePart:
    if not isinstance(part, ToolUIPart | DynamicToolUIPart) or part.state != "approval-requested":
        return part
    assert part.approval is not UNSET
    approval = ToolApproval(id=part.approval.id, approved=approved)
    return msgspec.structs.replace(part, state="approval-responded", approval=approval)


def spoken(text: str, record: str = "r") -> str:
    message = {"id": "m", "content": [{"type": "text", "text": text}]}
    return "< " + json.dumps({"type": "assistant", "session_id": "s", "uuid": record, "message": message})
