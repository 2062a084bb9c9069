"""A LangGraph agent behind the example's page: `python langgraph_chat.py`, then open http://127.0.0.1:8000."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]  # partly untyped
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from turnlog.chat import Chat, LangChainRuntime, NativeKeeper, chat_endpoint

PAGE = Path(__file__).parents[1] / "chat/page/dist"


class Script(BaseChatModel):
    """What the model says; with a key, `ChatAnthropic(model="claude-sonnet-5")` needs no script."""

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Take any tools: the script knows which it calls."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        last = messages[-1]
        answer = AIMessage(content=f"I asked, and this came of it: {last.text}")
        if not isinstance(last, ToolMessage):
            call: Any = {"name": "delete", "args": {"name": "notes.txt"}, "id": f"call-{len(messages)}"}
            answer = AIMessage(content="I have to delete a file for that.", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])


@tool
def delete(name: str) -> str:
    """Delete a file; the page is asked before."""
    return f"{name} is gone."


graph: Any = create_agent(
    Script(),
    tools=[delete],
    system_prompt="Be brief.",
    middleware=[HumanInTheLoopMiddleware(interrupt_on={"delete": True})],
    checkpointer=InMemorySaver(),
)

app = FastAPI()
app.include_router(chat_endpoint(Chat(LangChainRuntime(graph), NativeKeeper("chats.db")), "/api/chat"))
app.mount("/", StaticFiles(directory=PAGE, html=True))

if __name__ == "__main__":
    uvicorn.run(app, timeout_graceful_shutdown=3)
