"""Scripted answers and posts of a chat page, for tests of the endpoint."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

from turnlog.chat import RunRequest
from turnlog.model import TextPart, ToolResult, Usage
from turnlog.model.stream import (
    ApprovalRequest,
    Pause,
    RunFinish,
    StepFinish,
    StepStart,
    StreamEvent,
    TextDelta,
    TextStart,
    ToolInputAvailable,
    ToolInputStart,
    ToolOutput,
)

STREAM_HEADERS = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "connection": "keep-alive",
    "x-vercel-ai-ui-message-stream": "v1",
    "x-accel-buffering": "no",
}
"""The headers that the AI SDK sends with a stream; `tests/conformance` compares them with the real ones."""

ANSWER: tuple[StreamEvent, ...] = (
    StepStart(model="model-1"),
    TextStart(id="t"),
    TextDelta(id="t", delta="Hello"),
    StepFinish(stop_reason="stop", usage=Usage(input=3, output=2)),
    RunFinish(stop_reason="stop"),
)
HALF: tuple[StreamEvent, ...] = (
    StepStart(),
    TextStart(id="t"),
    TextDelta(id="t", delta="Hel"),
    ToolInputStart(tool_call_id="c", tool_name="Bash"),
)
ASKING: tuple[StreamEvent, ...] = (
    StepStart(model="model-1", response_id="r1"),
    TextStart(id="t"),
    TextDelta(id="t", delta="May I?"),
    ToolInputAvailable(tool_call_id="c", tool_name="Bash", input_text="ls"),
    StepFinish(stop_reason="tool_use", usage=Usage(input=10, output=1)),
    ApprovalRequest(approval_id="q", tool_call_id="c"),
    Pause(reason="approval"),
)
GOING_ON: tuple[StreamEvent, ...] = (
    ToolOutput(tool_call_id="c", result=ToolResult(id="r", content=(TextPart(text="a.txt"),))),
    StepStart(model="model-2"),
    TextStart(id="t2"),
    TextDelta(id="t2", delta="One file."),
    StepFinish(stop_reason="stop", usage=Usage(input=20, output=4)),
    RunFinish(stop_reason="stop"),
)


class Script:
    """An answer a call, the last one again and again; `None` in one waits for ever."""

    def __init__(self, *answers: tuple[StreamEvent | None, ...]) -> None:
        self.answers = list(answers)
        self.given: list[RunRequest] = []

    async def __call__(self, request: RunRequest) -> AsyncGenerator[StreamEvent, None]:
        self.given.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        for event in answer:
            if event is None:
                await asyncio.Event().wait()
            else:
                yield event


def user(id: str = "u", text: str = "hi") -> dict[str, Any]:
    return {"id": id, "role": "user", "parts": [{"type": "text", "text": text}]}


def post(chat_id: str = "chat", **fields: Any) -> bytes:
    return json.dumps({"id": chat_id, **({} if "messages" in fields else {"message": user()}), **fields}).encode()


async def drain(stream: AsyncGenerator[bytes, None] | None) -> bytes:
    assert stream is not None
    return b"".join([data async for data in stream])
