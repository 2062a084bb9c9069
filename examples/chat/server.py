"""The backend of the page: `python server.py [--port 8000] [--data FOLDER]`, then open what it prints.

What answers is a script, so that no key is needed. Put `ProviderRuntime` in its place, and a model answers, or the
runtime of an agent as in `examples/frameworks`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from turnlog.chat import (
    ApprovalRequest,
    Chat,
    DynamicToolUIPart,
    NativeKeeper,
    Pause,
    ReasoningDelta,
    ReasoningStart,
    RunFinish,
    RunRequest,
    SqliteStreamStore,
    StepFinish,
    StepStart,
    StreamEvent,
    Streams,
    TextPart,
    ToolInputAvailable,
    ToolInputDelta,
    ToolInputStart,
    ToolOutput,
    ToolResult,
    Usage,
    chat_endpoint,
    to_json,
)

PAGE = Path(__file__).parent / "page" / "dist"
REPLY = (
    "This answer is made at the server, word by word, whoever looks. Reload the page while it grows: it is all there,"
    " and goes on. Open the address in a second tab: both show the same. Stop it: it ends for everybody. Ask me to"
    " delete something, and I shall ask you first."
)


async def answer(request: RunRequest) -> AsyncGenerator[StreamEvent | str, None]:
    """A scripted agent: it thinks, calls a tool, asks before it deletes, and talks."""
    turn = len(request.messages)
    if request.continued is not None:
        async for event in after_the_question(request.continued.parts[-1]):
            yield event
    elif "delete" in request.prompt.lower():
        yield StepStart(model="script-1")
        yield ToolInputAvailable(
            tool_call_id=f"call-{turn}", tool_name="delete", input=to_json({"what": request.prompt})
        )
        yield ApprovalRequest(approval_id=f"question-{turn}", tool_call_id=f"call-{turn}")
        yield Pause(reason="approval")
    else:
        async for event in look_and_talk(turn, request.prompt):
            yield event


async def look_and_talk(turn: int, prompt: str) -> AsyncGenerator[StreamEvent | str, None]:
    """Two model calls, with a tool between them."""
    yield StepStart(model="script-1")
    yield ReasoningStart(id="thought")
    async for word in words("Let me count the letters before I answer."):
        yield ReasoningDelta(id="thought", delta=word)
    yield ToolInputStart(tool_call_id=f"call-{turn}", tool_name="count")
    arguments = json.dumps({"text": prompt})
    for start in range(0, len(arguments), 4):
        yield ToolInputDelta(tool_call_id=f"call-{turn}", delta=arguments[start : start + 4])
        await asyncio.sleep(0.03)
    yield ToolInputAvailable(tool_call_id=f"call-{turn}", tool_name="count", input=to_json({"text": prompt}))
    await asyncio.sleep(0.3)
    output = TextPart(text=json.dumps({"letters": sum(letter.isalpha() for letter in prompt)}))
    yield ToolOutput(tool_call_id=f"call-{turn}", result=ToolResult(id=f"result-{turn}", content=(output,)))
    yield StepFinish(stop_reason="tool_use", usage=Usage(input=40, output=20))
    yield StepStart(model="script-1")
    async for word in words(REPLY):
        yield word
    yield StepFinish(stop_reason="stop", usage=Usage(input=70, output=60))
    yield RunFinish(stop_reason="stop")


async def after_the_question(part: object) -> AsyncGenerator[StreamEvent | str, None]:
    """What comes of a call once the page has said yes or no."""
    assert isinstance(part, DynamicToolUIPart)
    allowed = bool(part.approval and part.approval.approved)
    content = (TextPart(text="Gone."),) if allowed else ()
    status = "success" if allowed else "denied"
    yield ToolOutput(tool_call_id=part.tool_call_id, result=ToolResult(id="deleted", status=status, content=content))
    yield StepStart(model="script-1")
    async for word in words("It is gone." if allowed else "Then it stays."):
        yield word
    yield RunFinish(stop_reason="stop")


async def words(text: str) -> AsyncGenerator[str, None]:
    """A text as a model tells it."""
    for word in text.split(" "):
        yield f"{word} "
        await asyncio.sleep(0.05)


def create_app(data: Path) -> FastAPI:
    """The chat and the page, on one address."""
    chat = Chat(answer, NativeKeeper(data / "chats.db"), Streams(SqliteStreamStore(data / "streams.db")))
    app = FastAPI()
    app.include_router(chat_endpoint(chat, "/api/chat", version=7))
    app.mount("/", StaticFiles(directory=PAGE, html=True))
    return app


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--data", type=Path, default=Path())
    options = parser.parse_args()
    if not PAGE.is_dir():
        parser.error("build the page first: cd page && npm ci && npm run build")
    print(f"http://127.0.0.1:{options.port}", flush=True)
    uvicorn.run(create_app(options.data), port=options.port, log_level="warning", timeout_graceful_shutdown=3)


if __name__ == "__main__":
    main()
