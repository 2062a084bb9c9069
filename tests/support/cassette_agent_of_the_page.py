"""The agent that docs/how-to/cassettes.md tests: it answers calls with what was recorded."""

from __future__ import annotations

from typing import Any

import anthropic

OUTPUTS = {"ls": "a.py\nb.py", "cat x": "boom", "sleep": "stopped"}
FOLLOWING = ["Go on"]


def run_agent(client: anthropic.Anthropic, prompt: str) -> str:
    messages: list[Any] = [{"role": "user", "content": prompt}]
    following = iter(FOLLOWING)
    while True:
        answer = client.messages.create(model="m", max_tokens=100, messages=messages)
        messages.append({"role": "assistant", "content": answer.content})
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            return "".join([block.text for block in answer.content if block.type == "text"])
        results: list[Any] = [
            {"type": "tool_result", "tool_use_id": call.id, "content": OUTPUTS[str(call.input["command"])]}
            for call in calls
        ]
        blocks = [{"type": "text", "text": next(following)}] if calls[0].input["command"] == "sleep" else []
        messages.append({"role": "user", "content": [*results, *blocks]})
