"""A LangGraph agent with a scripted model, for tests: the prompt says what the model does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

from langchain import agents
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver

Seen = list[list[BaseMessage]]
"""What the model got, call by call."""

CALLS = {"look": [("look", '{"place": "desk"}'), ("break", "{}")], "delete": [("delete", '{"place": "desk"}')]}


class Script(BaseChatModel):
    """Streams what the script says."""

    seen: Any

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _get_ls_params(self, stop: Any = None, **kwargs: Any) -> Any:
        return {**super()._get_ls_params(stop, **kwargs), "ls_model_name": "script-1"}

    def _generate(self, messages: list[BaseMessage], *given: Any, **named: Any) -> ChatResult:
        whole = AIMessageChunk(content="")
        for chunk in self._stream(messages):
            whole += chunk.message
        return ChatResult(generations=[ChatGeneration(message=AIMessage(**whole.model_dump(exclude={"type"})))])

    async def _astream(self, messages: list[BaseMessage], *given: Any, **named: Any) -> AsyncIterator[Any]:
        for chunk in self._stream(messages):
            yield chunk
            if str(messages[-1].text).startswith("wait"):
                try:
                    await asyncio.Event().wait()
                finally:
                    self.seen.append("ended")

    def _stream(self, messages: list[BaseMessage], *given: Any, **named: Any) -> Iterator[ChatGenerationChunk]:
        self.seen.append(list(messages))
        for chunk in answer(messages):
            yield ChatGenerationChunk(message=chunk)
        usage: Any = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        yield ChatGenerationChunk(message=AIMessageChunk(content="", usage_metadata=usage))


def answer(messages: list[BaseMessage]) -> Iterator[AIMessageChunk]:
    last = messages[-1]
    if isinstance(last, ToolMessage):
        yield AIMessageChunk(content="Kept" if "not today" in str(last.text) else "Done")
        yield AIMessageChunk(content=".")
        return
    assert isinstance(last, HumanMessage)
    word = str(last.text).partition(" ")[0]
    if word == "fail":
        yield AIMessageChunk(content="Half")
        raise RuntimeError("a secret of the server")
    if word == "wait":
        yield AIMessageChunk(content="Half")
    if word not in CALLS:
        yield AIMessageChunk(content="Hello.")
        return
    thought = {"type": "reasoning", "reasoning": "Hm", "extras": {"signature": "signed"}, "index": 0}
    yield AIMessageChunk(content=[thought], response_metadata={"output_version": "v1"})
    yield AIMessageChunk(content=[{"type": "text", "text": "Let me see.", "index": 1}])
    for number, (name, args) in enumerate(CALLS[word], 2):
        first: Any = {"type": "tool_call_chunk", "name": name, "args": args[:4], "id": f"{name}-{len(messages)}"}
        yield AIMessageChunk(content="", tool_call_chunks=[first | {"index": number}])
        more: Any = {"type": "tool_call_chunk", "name": None, "args": args[4:], "id": None, "index": number}
        yield AIMessageChunk(content="", tool_call_chunks=[more])


@tool
def look(place: str) -> dict[str, str]:
    """Look at a place."""
    return {"seen": place}


@tool("break")
def broken() -> str:
    """Fail."""
    raise ToolException("it is broken")


broken.handle_tool_error = True


@tool
def delete(place: str) -> str:
    """Delete what is there."""
    return f"{place} is gone"


def make_agent(seen: Seen) -> Any:
    return cast("Any", agents).create_agent(
        Script(seen=seen),
        tools=[look, broken, delete],
        system_prompt="Be brief.",
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"delete": True})],
        checkpointer=InMemorySaver(),
    )
