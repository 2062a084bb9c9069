"""An OpenAI Agents SDK agent behind the example's page: `python openai_agents_chat.py`, then http://127.0.0.1:8000."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import uvicorn
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from agents.usage import Usage
from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from agents import Agent, RunConfig, function_tool
from turnlog.chat import Chat, NativeKeeper, OpenAIAgentsRuntime, chat_endpoint

PAGE = Path(__file__).parents[1] / "chat/page/dist"


def script(call: ModelCall) -> ModelStep:
    """What the model says; with a key, `Agent(name="Clerk")` needs no script."""
    last: dict[str, Any] = call.input[-1]
    usage = Usage(requests=1, input_tokens=20, output_tokens=10, total_tokens=30)
    if last.get("type") == "function_call_output":
        return ModelStep(output=[assistant_message(f"I asked, and this came of it: {last['output']}")], usage=usage)
    said = assistant_message("I have to delete a file for that.")
    wanted = function_call("delete", {"name": "notes.txt"}, call_id=f"call-{len(call.input)}")
    return ModelStep(output=[said, wanted], usage=usage)


@function_tool(needs_approval=True)
def delete(name: str) -> str:
    """Delete a file; the page is asked before."""
    return f"{name} is gone."


model = ScriptedModel([ModelStep.respond(script) for _ in range(1000)])
agent = Agent[Any](name="Clerk", instructions="Be brief.", model=model, tools=[delete])
runtime = OpenAIAgentsRuntime(agent, run_config=RunConfig(tracing_disabled=True))

app = FastAPI()
app.include_router(chat_endpoint(Chat(runtime, NativeKeeper("chats.db")), "/api/chat"))
app.mount("/", StaticFiles(directory=PAGE, html=True))

if __name__ == "__main__":
    uvicorn.run(app, timeout_graceful_shutdown=3)
