"""The shapes of what `codex exec --json` prints, and what each kind of it becomes."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.codex.kinds import Becomes
from turnlog.agents.jsonl import JsonLines
from turnlog.model import ToolKind

EXEC_KINDS: dict[str, Becomes] = {
    "thread.started": Becomes.RUN_METADATA,
    "turn.started": Becomes.RECORD,
    "turn.completed": Becomes.RUN_METADATA,
    "turn.failed": Becomes.ERROR,
    "error": Becomes.ERROR,
    "item/agent_message": Becomes.MESSAGE,
    "item/reasoning": Becomes.MESSAGE,
    "item/command_execution": Becomes.MESSAGE,
    "item/file_change": Becomes.MESSAGE,
    "item/mcp_tool_call": Becomes.MESSAGE,
    "item/collab_tool_call": Becomes.MESSAGE,
    "item/web_search": Becomes.MESSAGE,
    "item/todo_list": Becomes.MESSAGE,
    "item/error": Becomes.ERROR,
}
"""Kind -> what it becomes. An item is the same kind whether it began, went on or ended."""

ITEM_STEPS = frozenset({"item.started", "item.updated", "item.completed"})


class CallShape(NamedTuple):
    """How an item is a call: what its tool does, and which fields were its input."""

    kind: ToolKind
    input: tuple[str, ...]
    is_grown: bool = False
    """The input is whole only when the item has ended."""
    by_provider: bool = False


CALL_ITEMS: dict[str, CallShape] = {
    "command_execution": CallShape(ToolKind.EXECUTE, ("command",)),
    "file_change": CallShape(ToolKind.EDIT, ("changes",)),
    "mcp_tool_call": CallShape(ToolKind.OTHER, ()),
    "collab_tool_call": CallShape(ToolKind.SUBAGENT, ("prompt",)),
    "web_search": CallShape(ToolKind.SEARCH, ("query", "action"), is_grown=True, by_provider=True),
}


class ExecFailure(msgspec.Struct):
    """Why something failed."""

    message: str | None = None


class McpPiece(msgspec.Struct, rename="camel"):
    """A piece of what a server answered."""

    type: str = ""
    text: str | None = None
    data: str | None = None
    mime_type: str | None = None


class McpResult(msgspec.Struct):
    """What a server answered."""

    content: list[Raw] | None = None


class ExecItem(msgspec.Struct):
    """A thing that happens in a turn."""

    id: str = ""
    type: str = ""
    text: str | None = None
    message: str | None = None
    command: str | None = None
    aggregated_output: str | None = None
    exit_code: int | None = None
    status: str | None = None
    server: str | None = None
    tool: str | None = None
    arguments: Raw | UnsetType = UNSET
    result: McpResult | None = None
    error: ExecFailure | None = None
    receiver_thread_ids: list[str] | None = None


class ExecLine(msgspec.Struct):
    """A line."""

    type: str = ""
    thread_id: str | None = None
    item: Raw | UnsetType = UNSET
    usage: Raw | UnsetType = UNSET
    message: str | None = None
    error: ExecFailure | None = None


def _is_line(line: ExecLine) -> bool:
    return line.type in EXEC_KINDS or line.type in ITEM_STEPS


EXEC_LINES = JsonLines(ExecLine, first_keys=("type",), plausible=_is_line)
