"""Calls of a shell tool, as exports show them."""

from __future__ import annotations

from typing import Any

from turnlog.model import ToolCallPart, ToolResult, ToolState
from turnlog.model.codec import to_json


def bash_call(*results: ToolResult, text: str = "ls", **more: Any) -> ToolCallPart:
    """A call that has run the command `text`, with these results and further fields."""
    return ToolCallPart(
        tool_call_id="c1",
        tool_name="Bash",
        input=to_json({"command": text}),
        state=ToolState.OUTPUT_AVAILABLE,
        results=results,
        **more,
    )
