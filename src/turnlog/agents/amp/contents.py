"""What Amp's messages hold: texts, thoughts, calls, results and tokens -> parts, and its tools by kind."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.amp.records import MessageUsage, ThreadBlock, ThreadMessage
from turnlog.agents.claude_code.contents import from_base64
from turnlog.agents.decoding import aware, clean_json, object_of, text_of, value_of
from turnlog.agents.jsonl import UNREADABLE
from turnlog.model import (
    FilePart,
    Part,
    ProviderData,
    ReasoningPart,
    ResultStatus,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    UnknownPart,
    Usage,
)

TOOL_KINDS: dict[str, ToolKind] = {
    "Bash": ToolKind.EXECUTE,
    "Grep": ToolKind.SEARCH,
    "Read": ToolKind.READ,
    "Task": ToolKind.SUBAGENT,
    "codebase_search_agent": ToolKind.SUBAGENT,
    "create_file": ToolKind.EDIT,
    "edit_file": ToolKind.EDIT,
    "finder": ToolKind.SUBAGENT,
    "format_file": ToolKind.EDIT,
    "get_diagnostics": ToolKind.READ,
    "glob": ToolKind.SEARCH,
    "librarian": ToolKind.SUBAGENT,
    "list_directory": ToolKind.SEARCH,
    "look_at": ToolKind.READ,
    "oracle": ToolKind.SUBAGENT,
    "read_web_page": ToolKind.FETCH,
    "todo_read": ToolKind.THINK,
    "todo_write": ToolKind.THINK,
    "undo_edit": ToolKind.EDIT,
    "web_search": ToolKind.FETCH,
}
"""Tools that other programs report; any other, MCP's included, is of kind `other`."""

_STATUSES: dict[str, ResultStatus] = {
    "cancelled": "aborted",
    "done": "success",
    "error": "error",
    "rejected-by-user": "denied",
}
"""Status of a call that has ended -> that of its result."""

_SHOWN = ("output", "content", "diff")
"""Fields of what a tool returned with the text of it."""

_UNCACHED = "gpt-"
"""How models begin whose provider charges no writing to its cache: what Amp counts as such is plain input."""


def time_of(milliseconds: float | None) -> datetime | None:
    """The time of a number of Unix milliseconds; None if it is none."""
    try:
        return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def time_in(text: str | None) -> datetime | None:
    """The time in a text; None if it holds none."""
    try:
        return None if text is None else aware(datetime.fromisoformat(text))
    except ValueError:
        return None


def block_in(raw: Raw) -> ThreadBlock:
    """A piece of a message; one without a type if it has another shape."""
    try:
        return msgspec.json.decode(raw, type=ThreadBlock)
    except UNREADABLE:
        return ThreadBlock()


def call_of(block: ThreadBlock) -> str | None:
    """The call that a result belongs to; None for a block that is no result."""
    return (block.tool_use_id or block.anthropic_id) if block.type == "tool_result" else None


def part_of(block: ThreadBlock, raw: Raw, part_id: str, at: datetime | None) -> Part:
    """A piece of a message in the model."""
    match block.type:
        case "text" if block.text is not None:
            return TextPart(id=part_id, text=block.text)
        case "thinking" | "redacted_thinking":
            return _thought(block, part_id)
        case "tool_use":
            return _call(block, part_id, at)
        case "image" if block.source is not None:
            return _picture(block, raw, part_id)
        case _:
            return _unknown(block, raw, part_id)


def _unknown(block: ThreadBlock, raw: Raw, part_id: str) -> UnknownPart:
    return UnknownPart(id=part_id, kind=block.type, data=Raw(clean_json(bytes(raw))))


def _thought(block: ThreadBlock, part_id: str) -> ReasoningPart:
    known = {"signature": block.signature, "data": block.data}
    opaque = {name: value for name, value in known.items() if value}
    provider = ProviderData(name="unknown", opaque=opaque) if opaque else None
    return ReasoningPart(id=part_id, text=block.thinking or "", redacted=not block.thinking, provider=provider)


def _call(block: ThreadBlock, part_id: str, at: datetime | None) -> ToolCallPart:
    name, given = block.name or "", block.input
    return ToolCallPart(
        id=part_id,
        tool_call_id=block.id or part_id,
        tool_name=name,
        kind=TOOL_KINDS.get(name, ToolKind.OTHER),
        # The whole file is indented: handed over, such arguments would break the lines of another agent's log.
        input=UNSET if isinstance(given, UnsetType) else Raw(msgspec.json.format(clean_json(bytes(given)), indent=-1)),
        started_at=at,
    )


def _picture(block: ThreadBlock, raw: Raw, part_id: str) -> Part:
    source = block.source
    if source is None:
        return _unknown(block, raw, part_id)
    media_type = source.media_type or "image/*"
    data = from_base64(source.data) if source.data else None
    if data is not None:
        return FilePart(id=part_id, media_type=media_type, filename=source.path, data=data)
    if source.url:
        return FilePart(id=part_id, media_type=media_type, url=source.url)
    return _unknown(block, raw, part_id)


# -- results


def result_of(block: ThreadBlock, identity: str, at: datetime | None) -> ToolResult | None:
    """The result in a block; None while the call runs. No block says when the call ended, only some messages do."""
    if block.run is None:
        return _oldest_result(block, identity)
    status = _STATUSES.get(block.run.status or "")
    if status is None:
        return None
    returned = None if isinstance(block.run.result, UnsetType) else value_of(block.run.result)
    failure = None if isinstance(block.run.error, UnsetType) else value_of(block.run.error)
    code = object_of(returned).get("exitCode")
    code = code if isinstance(code, int) and not isinstance(code, bool) else None
    if status == "success" and code:
        status = "error"
    text = _text_in(returned)
    error = text_of(object_of(failure).get("message")) or text_of(failure) or text
    return ToolResult(
        id=identity,
        status=status,
        content=(TextPart(id=f"{identity}.0", text=text),) if text else (),
        error_text=None if status == "success" else error or status,
        exit_code=code,
        completed_at=at,
    )


def _oldest_result(block: ThreadBlock, identity: str) -> ToolResult:
    text = "" if isinstance(block.content, UnsetType) else _text_in(value_of(block.content))
    return ToolResult(
        id=identity,
        status="error" if block.is_error else "success",
        content=(TextPart(id=f"{identity}.0", text=text),) if text else (),
        error_text=text or None if block.is_error else None,
    )


def _text_in(returned: Any) -> str:
    """What a tool returned as a text: a text, the field that holds one, or JSON."""
    if returned is None or isinstance(returned, str):
        return returned or ""
    found = next((text for name in _SHOWN if isinstance(text := object_of(returned).get(name), str)), None)
    return found if found is not None else msgspec.json.encode(returned).decode()


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """What a tool returned, from the message with its result; None if it is no object."""
    try:
        message = msgspec.json.decode(record, type=ThreadMessage)
    except UNREADABLE:
        return None
    for block in map(block_in, message.content or ()):
        if call_of(block) == tool_call_id and block.run is not None and not isinstance(block.run.result, UnsetType):
            json = clean_json(bytes(block.run.result))
            return Raw(json) if json.startswith(b"{") else None
    return None


# -- tokens


def usage_of(used: MessageUsage | None) -> Usage | None:
    """Tokens in disjoint buckets; None if none were counted. The output includes thoughts."""
    if used is None or (used.input_tokens is None and used.output_tokens is None):
        return None
    fresh, written = used.input_tokens, used.cache_creation_input_tokens
    if (used.model or "").startswith(_UNCACHED):
        fresh, written = (fresh or 0) + (written or 0), None
    return Usage(
        input=fresh,
        cache_read=used.cache_read_input_tokens,
        cache_write=written,
        output=used.output_tokens,
    )
