"""An agent of the OpenAI Agents SDK with a scripted model, for tests: the prompt says what the model does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from agents.usage import Usage
from openai.types.responses import ResponseReasoningItem
from openai.types.responses.response_reasoning_item import Summary

from agents import Agent, RunContextWrapper, function_tool

Seen = list[Any]
"""What the model got, call by call: instructions and items."""

CALLS = {"look": [("look", '{"place":"desk"}'), ("break", "{}")], "delete": [("delete", '{"place":"desk"}')]}
HALF = {"wait": "Half", "fail": "Half an answer"}
USAGE = Usage(requests=1, input_tokens=10, output_tokens=5, total_tokens=15)


class Script(ScriptedModel):
    """Breaks off, or waits for ever, after half an answer; the SDK's own double does neither."""

    seen: Seen

    async def stream_response(self, *given: Any, **named: Any) -> AsyncIterator[Any]:
        async for event in super().stream_response(*given, **named):
            yield event
            if event.type == "response.output_text.delta" and event.delta.startswith("Half"):
                if event.delta == "Half":
                    try:
                        await asyncio.Event().wait()
                    finally:
                        self.seen.append("ended")
                await asyncio.sleep(0.05)  # The SDK drops what nobody has read yet.
                raise RuntimeError("a secret of the server")


def prompt_of(item: dict[str, Any]) -> str:
    content = item["content"]
    return content if isinstance(content, str) else content[0]["text"]


def make_agent(seen: Seen) -> Agent[Any]:
    def answer(call: ModelCall) -> ModelStep:
        seen.append({"instructions": call.system_instructions, "input": call.input})
        last = call.input[-1]
        if last.get("type") == "function_call_output":
            refused = "not today" in str(last["output"])
            return ModelStep(output=[assistant_message("Kept." if refused else "Done.")], usage=USAGE)
        word = prompt_of(last).partition(" ")[0]
        if word in HALF:
            return ModelStep(output=[assistant_message(HALF[word])], usage=USAGE)
        if word not in CALLS:
            return ModelStep(output=[assistant_message("Hello.")], usage=USAGE)
        size = len(call.input)
        calls = [function_call(name, args, call_id=f"{name}-{size}") for name, args in CALLS[word]]
        summary = [Summary(type="summary_text", text="Hm")]
        thought = ResponseReasoningItem(id=f"rs-{size}", type="reasoning", summary=summary, encrypted_content="sealed")
        return ModelStep(output=[thought, assistant_message("Let me see."), *calls], usage=USAGE)

    @function_tool
    def look(context: RunContextWrapper[Any], place: str) -> dict[str, str]:
        return {"seen": place}

    @function_tool(name_override="break", failure_error_function=lambda _, error: str(error))
    def broken() -> str:
        raise OSError("it is broken")

    @function_tool(needs_approval=True)
    def delete(place: str) -> str:
        return f"{place} is gone"

    model = Script([ModelStep.respond(answer) for _ in range(20)])
    model.seen = seen
    return Agent(name="Clerk", instructions="Be brief.", model=model, tools=[look, broken, delete])
