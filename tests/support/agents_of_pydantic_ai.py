"""A Pydantic AI agent with a scripted model, for tests: the prompt says what the model does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel

Seen = list[list[ModelMessage]]
"""What the model got, call by call."""

CALLS = {"look": [("look", '{"place": "desk"}'), ("break", "{}")], "delete": [("delete", '{"place": "desk"}')]}


def make_agent(seen: Seen, **options: Any) -> Agent[Any, str]:
    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncGenerator[Any, None]:
        seen.append(list(messages))
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        prompts = [part.content for part in last.parts if isinstance(part, UserPromptPart)]
        if not prompts:
            returns = [part for part in last.parts if part.part_kind == "tool-return"]
            for word in ("Kept", ".") if any(part.outcome == "denied" for part in returns) else ("Done", "."):
                yield word
            return
        word = str(prompts[0]).partition(" ")[0]
        if word == "fail":
            yield "Half"
            raise RuntimeError("a secret of the server")
        if word == "wait":
            yield "Half"
            try:
                await asyncio.Event().wait()
            finally:
                cast("list[Any]", seen).append("ended")
        if word not in CALLS:
            yield "Hello."
            return
        yield {0: DeltaThinkingPart(content="Hm", signature="signed")}
        yield "Let me see."
        for number, (name, args) in enumerate(CALLS[word], 1):
            call_id = f"c{number}-{len(messages)}"
            yield {number + 1: DeltaToolCall(name=name, json_args=args[:4], tool_call_id=call_id)}
            yield {number + 1: DeltaToolCall(json_args=args[4:])}

    agent = Agent(FunctionModel(stream_function=answer), system_prompt="Be brief.", **options)

    @agent.tool_plain
    def look(place: str) -> dict[str, Any]:
        return {"seen": place}

    @agent.tool_plain(name="break")
    def broken() -> str:
        raise ModelRetry("it is broken")

    @agent.tool_plain(requires_approval=True)
    def delete(place: str) -> str:
        return f"{place} is gone"

    return agent
