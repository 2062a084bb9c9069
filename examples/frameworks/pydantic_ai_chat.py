"""A Pydantic AI agent behind the example's page: `python pydantic_ai_chat.py`, then open http://127.0.0.1:8000."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from turnlog.chat import Chat, NativeKeeper, PydanticAIRuntime, chat_endpoint

PAGE = Path(__file__).parents[1] / "chat/page/dist"


async def script(messages: list[ModelMessage], info: AgentInfo) -> AsyncGenerator[str | DeltaToolCalls, None]:
    """What the model says; with a key, `Agent("anthropic:claude-sonnet-5")` needs no script."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        yield f"I asked, and this came of it: {last.content}"
    else:
        yield "I have to delete a file for that."
        yield {1: DeltaToolCall(name="delete", json_args='{"name": "notes.txt"}', tool_call_id=f"call-{len(messages)}")}


agent = Agent(FunctionModel(stream_function=script), instructions="Be brief.")


@agent.tool_plain(requires_approval=True)
def delete(name: str) -> str:
    """Delete a file; the page is asked before."""
    return f"{name} is gone."


app = FastAPI()
app.include_router(chat_endpoint(Chat(PydanticAIRuntime(agent), NativeKeeper("chats.db")), "/api/chat"))
app.mount("/", StaticFiles(directory=PAGE, html=True))

if __name__ == "__main__":
    uvicorn.run(app, timeout_graceful_shutdown=3)
