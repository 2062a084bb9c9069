"""The shapes of what `codex exec --json` prints, and what each kind of it becomes."""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.codex.record_kinds import Becomes
from turnlog.agents.codex.records import Duration, Payload, fields_of
from turnlog.agents.codex.responses_api import from_base64
from turnlog.agents.codex.tools import status_of
from turnlog.agents.decoding import clean_json
from turnlog.agents.jsonl import JsonLines
from turnlog.agents.printed import Printed, PrintedMessage, kept_fields
from turnlog.agents.printed_fold import StreamState
from turnlog.agents.reading import keep_newest
from turnlog.model import DataPart, FilePart, Part, TextPart, ToolKind, ToolResult, UnknownPart

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


def _is_stream_line(line: ExecLine) -> bool:
    return line.type in EXEC_KINDS or line.type in ITEM_STEPS or (line.id is not None and line.msg is not UNSET)


EXEC_LINES = JsonLines(ExecLine, first_keys=("type", "id", "prompt"), plausible=_is_stream_line)


_PIECES = frozenset({"image", "audio", "resource", "resource_link"})
"""Pieces of an MCP server's answer that have no part of their own when they hold no bytes."""

read_item = Payload(ExecItem).read
"""Reads an item; what of it cannot be read is told and left out."""

_read_piece = Payload(McpPiece).read


def tool_name_of(item: ExecItem) -> str:
    """The name of a call's tool: the item's type, where it does not tell another."""
    if item.type == "mcp_tool_call":
        return f"mcp__{item.server or ''}__{item.tool or ''}"
    if item.type == "collab_tool_call":
        return item.tool or item.type
    return item.type


def input_of(line: ExecLine, item: ExecItem, shape: CallShape, *, has_ended: bool) -> Raw | UnsetType:
    """What a call was given, as exact JSON; UNSET as long as that is not whole."""
    if item.type == "mcp_tool_call":
        return UNSET if item.arguments is UNSET else Raw(clean_json(bytes(item.arguments)))
    if (shape.is_grown and not has_ended) or line.item is UNSET:
        return UNSET
    return kept_fields(fields_of(line.item), shape.input)


def result_of(call_id: str, item: ExecItem, *, has_ended: bool) -> ToolResult | None:
    """How a call ended, or what it has put out so far."""
    content = _item_content(item)
    text = "\n".join([part.text for part in content if isinstance(part, TextPart)])
    if not has_ended and not text:
        return None
    failure = item.error.message if item.error else None
    status = ("error" if failure else status_of(item.status, item.exit_code)) or "success"
    return ToolResult(
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
    return content_of_pieces(item.result.content)


def content_of_pieces(pieces: list[Raw]) -> tuple[Part, ...]:
    """What an MCP server answered."""
    return tuple([_piece_of(raw) for raw in pieces])


def _piece_of(raw: Raw) -> Part:
    """A piece of what an MCP server answered."""
    exact = Raw(clean_json(bytes(raw)))
    piece = _read_piece(exact, lambda reason, severity, json_path: None)
    if piece.type == "text" and piece.text is not None:
        return TextPart(text=piece.text)
    data = from_base64(piece.data) if piece.data is not None else None
    if data is not None and piece.mime_type is not None:
        return FilePart(media_type=piece.mime_type, data=data)
    return DataPart(name=piece.type, data=exact) if piece.type in _PIECES else UnknownPart(kind=piece.type, data=exact)


def exec_structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """The item, up to 0.43 the event, that a line of a stream brought, when it is the call's."""
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


class OpenItem(msgspec.Struct, array_like=True):
    """An item that may go on."""

    message: PrintedMessage
    part_id: str
    call_id: str


class HeldLine(msgspec.Struct, array_like=True):
    """A line whose session only the next one tells."""

    json: str
    position: int
    length: int
    model: str | None = None
    folder: str | None = None


class ExecState(StreamState):
    """What a fold of a stream remembers."""

    open: str | None = None
    """The message that is being printed."""
    messages: dict[str, PrintedMessage] = {}
    items: dict[str, OpenItem] = {}
    plan: str | None = None
    """The newest plan, by its checksum."""
    failure: str | None = None
    """What the newest error said: the end of the turn says it again."""
    settings: HeldLine | None = None
    """The first line of a run up to 0.43, until the prompt has come."""
    model: str | None = None
    """The model that the settings name."""


def opened(
    state: ExecState, printed: Printed, identity: str, *, starts_anew: bool = False, call_id: str | None = None
) -> OpenItem:
    """Where an item stands: known already, else in the message that is being printed, or in a new one.

    `call_id` is that of a call which the stream names itself; the ids of items are numbers of the run.
    """
    known = state.items.get(identity) if identity else None
    if known is not None:
        return known
    message = current(state)
    if message is None or starts_anew:
        message = printed.begin_answer(state.model)
        state.open = message.id
        state.messages = {message.id: message}
    run = message.id.rpartition(":")[2]
    part_id = message.next_part()
    own_id = f"exec-{run}:{identity or message.parts}"
    found = OpenItem(msgspec.structs.replace(message), part_id, call_id or own_id)
    keep_newest(state.items, identity, found, _ITEMS)
    return found


def current(state: ExecState) -> PrintedMessage | None:
    """The message that is being printed."""
    return state.messages.get(state.open) if state.open is not None else None


def message_of(state: ExecState, item: OpenItem) -> PrintedMessage:
    """The message of an item; the one being printed is the same object for all its items."""
    return state.messages.get(item.message.id, item.message)


def forget_run(state: ExecState) -> None:
    """Another run begins, whose items are numbered anew."""
    state.open, state.messages, state.items, state.plan = None, {}, {}, None
