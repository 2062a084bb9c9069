"""The shapes of what `codex exec --json` prints, and what each kind of it becomes."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.codex.kinds import Becomes
from turnlog.agents.codex.records import Duration
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

EVENT_KINDS: dict[str, Becomes] = {
    "settings": Becomes.RUN_METADATA,
    "prompt": Becomes.MESSAGE,
    "event_msg/agent_message": Becomes.MESSAGE,
    "event_msg/agent_reasoning": Becomes.MESSAGE,
    "event_msg/agent_reasoning_raw_content": Becomes.MESSAGE,
    "event_msg/exec_command_begin": Becomes.MESSAGE,
    "event_msg/exec_command_end": Becomes.RESULT,
    "event_msg/patch_apply_begin": Becomes.MESSAGE,
    "event_msg/patch_apply_end": Becomes.RESULT,
    "event_msg/mcp_tool_call_begin": Becomes.MESSAGE,
    "event_msg/mcp_tool_call_end": Becomes.RESULT,
    "event_msg/web_search_begin": Becomes.MESSAGE,
    "event_msg/web_search_end": Becomes.RESULT,
    "event_msg/view_image_tool_call": Becomes.MESSAGE,
    "event_msg/plan_update": Becomes.MESSAGE,
    "event_msg/token_count": Becomes.RUN_METADATA,
    "event_msg/task_started": Becomes.RUN_METADATA,
    "event_msg/task_complete": Becomes.RUN_METADATA,
    "event_msg/turn_aborted": Becomes.INTERRUPT,
    "event_msg/error": Becomes.ERROR,
    "event_msg/stream_error": Becomes.ERROR,
}
"""What was printed up to 0.43 -> what it becomes. Any other event of the log is a record."""

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


class McpAnswer(msgspec.Struct, rename="camel"):
    """What a server answered, as events tell it."""

    content: list[Raw] | None = None
    is_error: bool | None = None


class McpOutcome(msgspec.Struct):
    """How a call of a server ended, as events tell it."""

    ok: McpAnswer | None = msgspec.field(name="Ok", default=None)
    err: str | None = msgspec.field(name="Err", default=None)


class McpInvocation(msgspec.Struct):
    """Which tool of which server was called."""

    server: str = ""
    tool: str = ""


class ExecEvent(msgspec.Struct):
    """An event, as printed up to 0.43."""

    type: str = ""
    text: str | None = None
    message: str | None = None
    call_id: str = ""
    stdout: str | None = None
    stderr: str | None = None
    aggregated_output: str | None = None
    exit_code: int | None = None
    duration: Duration | str | None = None
    success: bool | None = None
    invocation: McpInvocation | None = None
    result: McpOutcome | None = None


class ExecLine(msgspec.Struct):
    """A line; up to 0.43 an event in `msg`, the prompt, or the settings of the run."""

    type: str = ""
    id: str | None = None
    msg: Raw | UnsetType = UNSET
    prompt: str | None = None
    workdir: str | None = None
    sandbox: str | None = None
    model: str | None = None
    thread_id: str | None = None
    item: Raw | UnsetType = UNSET
    usage: Raw | UnsetType = UNSET
    message: str | None = None
    error: ExecFailure | None = None


def _is_line(line: ExecLine) -> bool:
    return line.type in EXEC_KINDS or line.type in ITEM_STEPS or (line.id is not None and line.msg is not UNSET)


EXEC_LINES = JsonLines(ExecLine, first_keys=("type", "id", "prompt"), plausible=_is_line)
