"""The shapes of what `codex exec --json` prints, and what each kind of it becomes."""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.codex.record_kinds import CodexRecordOutcome
from turnlog.agents.codex.records import CodexPayload, Duration
from turnlog.agents.codex.responses_api import from_base64
from turnlog.agents.codex.tools import status_of
from turnlog.agents.decoding import clean_json, fields_of, keep_newest
from turnlog.agents.jsonl import JsonLines
from turnlog.agents.printed_stream import PrintedContext, PrintedMessage, PrintedRunState, kept_fields
from turnlog.model import DataPart, FilePart, Part, TextPart, ToolKind, ToolResult, UnknownPart

EXEC_KINDS: dict[str, CodexRecordOutcome] = {
    "thread.started": CodexRecordOutcome.RUN_METADATA,
    "turn.started": CodexRecordOutcome.RECORD,
    "turn.completed": CodexRecordOutcome.RUN_METADATA,
    "turn.failed": CodexRecordOutcome.ERROR,
    "error": CodexRecordOutcome.ERROR,
    "item/agent_message": CodexRecordOutcome.MESSAGE,
    "item/reasoning": CodexRecordOutcome.MESSAGE,
    "item/command_execution": CodexRecordOutcome.MESSAGE,
    "item/file_change": CodexRecordOutcome.MESSAGE,
    "item/mcp_tool_call": CodexRecordOutcome.MESSAGE,
    "item/collab_tool_call": CodexRecordOutcome.MESSAGE,
    "item/web_search": CodexRecordOutcome.MESSAGE,
    "item/todo_list": CodexRecordOutcome.MESSAGE,
    "item/error": CodexRecordOutcome.ERROR,
}
"""Kind -> what becomes of it. An item has one kind, whether it began, continued or ended."""

EVENT_KINDS: dict[str, CodexRecordOutcome] = {
    "settings": CodexRecordOutcome.RUN_METADATA,
    "prompt": CodexRecordOutcome.MESSAGE,
    "event_msg/agent_message": CodexRecordOutcome.MESSAGE,
    "event_msg/agent_reasoning": CodexRecordOutcome.MESSAGE,
    "event_msg/agent_reasoning_raw_content": CodexRecordOutcome.MESSAGE,
    "event_msg/exec_command_begin": CodexRecordOutcome.MESSAGE,
    "event_msg/exec_command_end": CodexRecordOutcome.RESULT,
    "event_msg/patch_apply_begin": CodexRecordOutcome.MESSAGE,
    "event_msg/patch_apply_end": CodexRecordOutcome.RESULT,
    "event_msg/mcp_tool_call_begin": CodexRecordOutcome.MESSAGE,
    "event_msg/mcp_tool_call_end": CodexRecordOutcome.RESULT,
    "event_msg/web_search_begin": CodexRecordOutcome.MESSAGE,
    "event_msg/web_search_end": CodexRecordOutcome.RESULT,
    "event_msg/view_image_tool_call": CodexRecordOutcome.MESSAGE,
    "event_msg/plan_update": CodexRecordOutcome.MESSAGE,
    "event_msg/token_count": CodexRecordOutcome.RUN_METADATA,
    "event_msg/task_started": CodexRecordOutcome.RUN_METADATA,
    "event_msg/task_complete": CodexRecordOutcome.RUN_METADATA,
    "event_msg/turn_aborted": CodexRecordOutcome.INTERRUPT,
    "event_msg/error": CodexRecordOutcome.ERROR,
    "event_msg/stream_error": CodexRecordOutcome.ERROR,
}
"""Kind of what was printed up to 0.43 -> what becomes of it. Any other event of the log is a record."""

ITEM_STEPS = frozenset({"item.started", "item.updated", "item.completed"})


class CallShape(NamedTuple):
    """The call that an item is: the kind of its tool, and the fields that are its input."""

    kind: ToolKind
    input: tuple[str, ...]
    is_grown: bool = False
    """The input is complete only when the item has ended."""
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


class McpContent(msgspec.Struct, rename="camel"):
    """A content of an MCP server's result."""

    type: str = ""
    text: str | None = None
    data: str | None = None
    mime_type: str | None = None


class McpResult(msgspec.Struct):
    """The result of an MCP server."""

    content: list[Raw] | None = None


class ExecItem(msgspec.Struct):
    """An item: a text, a call, a plan or an error in a turn."""

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
    """The result of an MCP server, in events."""

    content: list[Raw] | None = None
    is_error: bool | None = None


class McpOutcome(msgspec.Struct):
    """How the call of an MCP tool ended, in events."""

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


def _is_stream_line(line: ExecLine) -> bool:
    return line.type in EXEC_KINDS or line.type in ITEM_STEPS or (line.id is not None and line.msg is not UNSET)


EXEC_LINES = JsonLines(ExecLine, first_keys=("type", "id", "prompt"), plausible=_is_stream_line)

_MCP_TYPES = frozenset({"image", "audio", "resource", "resource_link"})
"""Types of an MCP server's content that become a `DataPart` when they have no bytes."""

read_item = CodexPayload(ExecItem).read
"""Reads an item. What cannot be read of it is reported and left out."""

_read_mcp_content = CodexPayload(McpContent).read


def tool_name_of(item: ExecItem) -> str:
    """The name of a call's tool; the item's type when the item has no name."""
    if item.type == "mcp_tool_call":
        return f"mcp__{item.server or ''}__{item.tool or ''}"
    if item.type == "collab_tool_call":
        return item.tool or item.type
    return item.type


def input_of(line: ExecLine, item: ExecItem, shape: CallShape, *, has_ended: bool) -> Raw | UnsetType:
    """The input of a call as exact JSON; UNSET while it is not complete."""
    if item.type == "mcp_tool_call":
        return UNSET if item.arguments is UNSET else Raw(clean_json(bytes(item.arguments)))
    # A web search is printed before its query is known.
    if (shape.is_grown and not has_ended) or line.item is UNSET:
        return UNSET
    return kept_fields(fields_of(line.item), shape.input)


def result_of(call_id: str, item: ExecItem, *, has_ended: bool) -> ToolResult | None:
    """The result of a call, preliminary while it runs; None while it has no output."""
    content = _item_content(item)
    text = "\n".join([part.text for part in content if isinstance(part, TextPart)])
    if not has_ended and not text:
        return None
    failure = item.error.message if item.error else None
    status = ("error" if failure else status_of(item.status, item.exit_code)) or "success"
    return ToolResult(
        # An item is printed at every step: the same output gets the same id and counts once.
        id=f"{call_id}:{crc32(text.encode(errors='replace')):08x}" + ("" if has_ended else ":part"),
        status=status if has_ended else "success",
        content=content,
        error_text=(failure or text) if has_ended and status != "success" else None,
        exit_code=item.exit_code,
        preliminary=not has_ended,
    )


def _item_content(item: ExecItem) -> tuple[Part, ...]:
    if item.aggregated_output:
        return (TextPart(text=item.aggregated_output),)
    if item.result is None or item.result.content is None:
        return ()
    return mcp_content(item.result.content)


def mcp_content(pieces: list[Raw]) -> tuple[Part, ...]:
    """The parts of an MCP server's result."""
    return tuple([_mcp_part(raw) for raw in pieces])


def _mcp_part(raw: Raw) -> Part:
    """The part of one content of an MCP server's result."""
    exact = Raw(clean_json(bytes(raw)))
    piece = _read_mcp_content(exact, lambda reason, severity, json_path: None)
    if piece.type == "text" and piece.text is not None:
        return TextPart(text=piece.text)
    data = from_base64(piece.data) if piece.data is not None else None
    if data is not None and piece.mime_type is not None:
        return FilePart(media_type=piece.mime_type, data=data)
    return (
        DataPart(name=piece.type, data=exact) if piece.type in _MCP_TYPES else UnknownPart(kind=piece.type, data=exact)
    )


def exec_structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """The item of a stream's line, up to 0.43 the event, when it is the call's; else None."""
    fields = fields_of(record)
    event, raw = fields.get("msg"), fields.get("item")
    if event is not None:
        names_call = bytes(fields_of(event).get("call_id", b"")) == msgspec.json.encode(tool_call_id)
        return event.copy() if names_call else None
    if raw is None:
        return None
    item = read_item(raw, lambda reason, severity, json_path: None)
    return raw.copy() if tool_call_id.startswith("exec-") and tool_call_id.endswith(f":{item.id}") else None


_ITEMS = 256
"""Items that are remembered. The state is stored with every cursor, and a run may print any number of them."""


class PendingStreamItem(msgspec.Struct, array_like=True):
    """An item that later lines may continue, and its place."""

    message: PrintedMessage
    part_id: str
    call_id: str


class DeferredLine(msgspec.Struct, array_like=True):
    """A line that is read when the next one has named its session."""

    json: str
    position: int
    length: int
    model: str | None = None
    folder: str | None = None


class CodexStreamState(PrintedRunState):
    """What a fold of a stream remembers."""

    open: str | None = None
    """The message that is being printed."""
    messages: dict[str, PrintedMessage] = {}
    items: dict[str, PendingStreamItem] = {}
    plan: str | None = None
    """Item id and checksum of the newest plan."""
    failure: str | None = None
    """Text of the newest error, which the end of the turn repeats."""
    settings: DeferredLine | None = None
    """The first line of a run up to 0.43, until the prompt has come."""
    model: str | None = None
    """The model that the settings name."""


def item_of(
    state: CodexStreamState,
    printed: PrintedContext,
    identity: str,
    *,
    starts_anew: bool = False,
    call_id: str | None = None,
) -> PendingStreamItem:
    """The place of an item: the known one, else a new part in the current message or in a new message.

    `call_id` is that of a call which the stream names itself; the ids of items are numbers of the run.
    """
    known = state.items.get(identity) if identity else None
    if known is not None:
        return known
    message = current_message(state)
    if message is None or starts_anew:
        message = printed.begin_answer(state.model)
        state.open = message.id
        state.messages = {message.id: message}
    run = message.id.rpartition(":")[2]
    part_id = message.next_part()
    # Every run numbers its items from 0, and a session may have several runs.
    own_id = f"exec-{run}:{identity or message.parts}"
    found = PendingStreamItem(msgspec.structs.replace(message), part_id, call_id or own_id)
    keep_newest(state.items, identity, found, _ITEMS)
    return found


def current_message(state: CodexStreamState) -> PrintedMessage | None:
    """The message that is being printed."""
    return state.messages.get(state.open) if state.open is not None else None


def message_of(state: CodexStreamState, item: PendingStreamItem) -> PrintedMessage:
    """The message of an item. All items of the current message share one object, and so its flags."""
    return state.messages.get(item.message.id, item.message)


def forget_run(state: CodexStreamState) -> None:
    """Forget the run before: the items of the next run are numbered again."""
    state.open, state.messages, state.items, state.plan = None, {}, {}, None
