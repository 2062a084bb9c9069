"""A chat server with scripted answers, for AI SDK 5, 6 and 7: `python -m support.chat_server FOLDER [asgi]` in tests/.

The store and the streams are files in the folder, so that what a killed server leaves is found by the next. It prints
its address. The prompt decides the answer: the first word of the prompt is the name of a script below.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from support.chat_script import ASKING, GOING_ON
from turnlog.aisdk import DynamicToolUIPart
from turnlog.chat import Chat, NativeKeeper, RunRequest, SqliteStreamStore, Streams
from turnlog.chat.fastapi import chat_endpoint
from turnlog.chat.http import ChatApp
from turnlog.model import TextPart, ToolResult, Usage
from turnlog.model import stream as events
from turnlog.model.codec import to_json
from turnlog.model.stream import StreamEvent

Events = AsyncGenerator[StreamEvent, None]
MAX_BYTES = 100_000


async def full(request: RunRequest) -> Events:
    """Everything that a message can hold, in two steps."""
    yield events.RunStart(metadata={"session": f"run {len(request.messages)}"})
    yield events.StepStart(model="model-1")
    yield events.ReasoningStart(id="r")
    for word in ("I ", "think"):
        await asyncio.sleep(0.01)
        yield events.ReasoningDelta(id="r", delta=word)
    yield events.ReasoningEnd(id="r")
    yield events.ToolInputStart(tool_call_id="c", tool_name="read")
    yield events.ToolInputDelta(tool_call_id="c", delta='{"path":')
    yield events.ToolInputAvailable(tool_call_id="c", tool_name="read", input=to_json({"path": "a"}))
    yield events.ToolOutput(tool_call_id="c", result=ToolResult(id="o", content=(TextPart(text='{"lines": 2}'),)))
    yield events.StepFinish(stop_reason="tool_use", usage=Usage(input=10, output=3))
    yield events.StepStart(model="model-1")
    yield events.TextStart(id="t")
    yield events.TextDelta(id="t", delta=f"You said: {request.prompt}. Grüße \U0001f980")
    yield events.TextEnd(id="t")
    yield events.DataEvent(name="weather", data=to_json({"sky": "blue"}))
    yield events.StepFinish(stop_reason="stop", usage=Usage(input=20, output=5))
    yield events.RunFinish(stop_reason="stop")


async def slow(request: RunRequest) -> Events:
    yield events.StepStart()
    yield events.ToolInputAvailable(tool_call_id="c", tool_name="wait", input=to_json({}))
    yield events.TextStart(id="t")
    for number in range(60):
        yield events.TextDelta(id="t", delta=f"<{number}>")
        await asyncio.sleep(0.05)
    yield events.ToolOutput(tool_call_id="c", result=ToolResult(id="o", content=(TextPart(text="waited"),)))
    yield events.RunFinish(stop_reason="stop")


async def fail(request: RunRequest) -> Events:
    yield events.StepStart()
    yield events.TextStart(id="t")
    yield events.TextDelta(id="t", delta="half")
    raise RuntimeError("a secret of the server")


async def ask(request: RunRequest) -> Events:
    if request.continued is None:
        for event in ASKING:
            yield event
        return
    calls = [part for part in request.continued.parts if isinstance(part, DynamicToolUIPart)]
    if calls[-1].approval and calls[-1].approval.approved:
        for event in GOING_ON:
            yield event
        return
    yield events.ToolOutput(tool_call_id="c", result=ToolResult(id="o", status="denied"))
    yield events.TextStart(id="t2")
    yield events.TextDelta(id="t2", delta="Then not.")
    yield events.RunFinish(stop_reason="stop")


SCRIPTS: dict[str, Callable[[RunRequest], Events]] = {"full": full, "slow": slow, "fail": fail, "ask": ask}


def answer(request: RunRequest) -> Events:
    return SCRIPTS[request.prompt.partition(" ")[0]](request)


def main(folder: Path, form: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    async def serve() -> None:
        keeper = NativeKeeper(folder / "turnlog.db")
        chat = Chat(answer, keeper, Streams(SqliteStreamStore(folder / "streams.db"), keep_alive=1.0))
        # An ASGI server has one path; each test of the form has its own version.
        app = ChatApp(chat, f"/{form}/chat", version=int(form), max_bytes=MAX_BYTES) if form else FastAPI()
        if isinstance(app, FastAPI):
            for version in (5, 6, 7):
                app.include_router(chat_endpoint(chat, f"/{version}/chat", version=version, max_bytes=MAX_BYTES))
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
        print(f"http://127.0.0.1:{port}", flush=True)
        await uvicorn.Server(config).serve(sockets=[listener])
        keeper.close()

    asyncio.run(serve())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
