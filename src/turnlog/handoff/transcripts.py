"""The transcript of a subagent as a text, for the result of the call that started it."""

from __future__ import annotations

from collections.abc import Iterator

from turnlog.agents.handoffs import input_text
from turnlog.model import Message, ReasoningPart, TextPart, ToolCallPart
from turnlog.store.base import Store

_BEGIN, _END = "<subagent-transcript>", "</subagent-transcript>"


def transcript_of(store: Store, session_id: str) -> str:
    """What was said in a session and what its tools gave, line by line, without reasoning and injected context.

    The transcripts of its own subagents follow the results of their calls.
    """
    return "\n".join(["", _BEGIN, *_session_lines(store, session_id, ()), _END])


def _session_lines(store: Store, session_id: str, above: tuple[str, ...]) -> list[str]:
    return [line for each in store.messages(session_id) for line in _lines(store, each.message, (*above, session_id))]


def _lines(store: Store, message: Message, sessions: tuple[str, ...]) -> Iterator[str]:
    if message.role not in ("user", "assistant"):
        return
    for part in message.parts:
        if isinstance(part, TextPart):
            yield f"{message.role}: {part.text}"
        elif isinstance(part, ToolCallPart):
            yield f"tool {part.tool_name}: {input_text(part)}"
            yield from (f"result ({result.status}): {result.output_text}" for result in part.results)
            child = part.child_session_id
            # Records of two logs may name each other's sessions as those that they started.
            if child is not None and child not in sessions and (lines := _session_lines(store, child, sessions)):
                yield from (_BEGIN, *lines, _END)
        elif not isinstance(part, ReasoningPart):
            yield f"{message.role}: [{part.type}]"
