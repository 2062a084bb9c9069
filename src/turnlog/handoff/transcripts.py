"""The transcript of a subagent as a text, for the result of the call that started it."""

from __future__ import annotations

from collections.abc import Iterator

from turnlog.agents.handoffs import input_text
from turnlog.model import Message, ReasoningPart, TextPart, ToolCallPart
from turnlog.store.base import Store


def transcript_of(store: Store, session_id: str) -> str:
    """What was said in a session and what its tools gave, line by line, without reasoning and injected context."""
    lines = [line for each in store.messages(session_id) for line in _lines(each.message)]
    return "\n".join(["", "<subagent-transcript>", *lines, "</subagent-transcript>"])


def _lines(message: Message) -> Iterator[str]:
    if message.role not in ("user", "assistant"):
        return
    for part in message.parts:
        if isinstance(part, TextPart):
            yield f"{message.role}: {part.text}"
        elif isinstance(part, ToolCallPart):
            yield f"tool {part.tool_name}: {input_text(part)}"
            yield from (f"result ({result.status}): {result.output_text}" for result in part.results)
        elif not isinstance(part, ReasoningPart):
            yield f"{message.role}: [{part.type}]"
