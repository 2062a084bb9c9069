"""What the parts of Crush's messages are: texts, thoughts, calls, results, and how an answer ended."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.claude_code.contents import from_base64
from turnlog.agents.decoding import clean_json, object_of, value_of
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.row_files import RowLine, row_of
from turnlog.model import (
    FilePart,
    Part,
    ProviderData,
    ReasoningPart,
    ResultStatus,
    StopReason,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    UnknownPart,
)

TOOL_KINDS: dict[str, ToolKind] = {
    "agent": ToolKind.SUBAGENT,
    "agentic_fetch": ToolKind.SUBAGENT,
    "bash": ToolKind.EXECUTE,
    "crush_info": ToolKind.READ,
    "crush_logs": ToolKind.READ,
    "diagnostics": ToolKind.READ,
    "download": ToolKind.FETCH,
    "edit": ToolKind.EDIT,
    "fetch": ToolKind.FETCH,
    "glob": ToolKind.SEARCH,
    "grep": ToolKind.SEARCH,
    "job_kill": ToolKind.EXECUTE,
    "job_output": ToolKind.READ,
    "list_mcp_resources": ToolKind.SEARCH,
    "ls": ToolKind.SEARCH,
    "lsp_call_hierarchy": ToolKind.SEARCH,
    "lsp_definition": ToolKind.SEARCH,
    "lsp_diagnostics": ToolKind.READ,
    "lsp_references": ToolKind.SEARCH,
    "lsp_rename": ToolKind.EDIT,
    "lsp_replace_symbol": ToolKind.EDIT,
    "lsp_symbols": ToolKind.SEARCH,
    "multiedit": ToolKind.EDIT,
    "question": ToolKind.ASK,
    "read_mcp_resource": ToolKind.READ,
    "sourcegraph": ToolKind.SEARCH,
    "todos": ToolKind.THINK,
    "view": ToolKind.READ,
    "web_fetch": ToolKind.FETCH,
    "web_search": ToolKind.FETCH,
    "write": ToolKind.EDIT,
}
"""Tools that Crush offers to the model; any other, MCP's included, is of kind `other`."""

STOP_REASONS: dict[str, StopReason] = {
    "canceled": "aborted",
    "content_filter": "content_filter",
    "end_turn": "stop",
    "error": "error",
    "max_tokens": "length",
    "tool_use": "tool_use",
}
"""`reason` of a part `finish` -> why the model stopped."""

_MILLISECONDS = 100_000_000_000
"""Times from here on are in milliseconds: comments in Crush's tables say so, its statements write seconds."""

_EXIT_CODE: Final = re.compile(r"^Exit code (?P<code>\d{1,3})\b", re.MULTILINE)
_CANCELLED: Final = "Error: user cancelled assistant tool calling"
_DENIED: Final = "User denied permission"


def time_of(value: object) -> datetime | None:
    """The time of a number of Unix seconds or milliseconds; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value:
        return None
    try:
        return datetime.fromtimestamp(value / 1000 if value >= _MILLISECONDS else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None


class PartData(msgspec.Struct):
    """The fields of all types of parts."""

    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    thought_signature: str | None = None
    responses_data: Raw | UnsetType = UNSET
    started_at: int | None = None
    finished_at: int | None = None
    url: str | None = None
    path: str | None = msgspec.field(name="Path", default=None)
    media_type: str | None = msgspec.field(name="MIMEType", default=None)
    content_bytes: str | None = msgspec.field(name="Data", default=None)
    id: str | None = None
    name: str | None = None
    input: str | None = None
    provider_executed: bool = False
    tool_call_id: str | None = None
    content: str | None = None
    data: str | None = None
    mime_type: str | None = None
    metadata: str | None = None
    is_error: bool | None = None
    reason: str | None = None
    time: int | None = None
    message: str | None = None
    details: str | None = None
    command: str | None = None
    output: str | None = None
    exit_code: int | None = None


class MessagePart(msgspec.Struct):
    """A part of a message."""

    type: str = ""
    data: PartData = msgspec.field(default_factory=PartData)


Parts = list[tuple[MessagePart, Raw]]


def parts_in(text: object) -> Parts | None:
    """The parts of a message, each with its JSON; None if there is no list of them."""
    try:
        raws = msgspec.json.decode(str(text).encode(errors="replace"), type=list[Raw])
    except UNREADABLE:
        return None
    return [(_part_in(raw), raw) for raw in raws]


def _part_in(raw: Raw) -> MessagePart:
    try:
        return msgspec.json.decode(raw, type=MessagePart)
    except UNREADABLE:
        return MessagePart()


def part_of(part: MessagePart, raw: Raw, part_id: str, at: datetime | None) -> Part:
    """A part of a message in the model."""
    data = part.data
    match part.type:
        case "text" if data.text is not None:
            return TextPart(id=part_id, text=data.text)
        case "reasoning":
            return _thought(data, part_id)
        case "tool_call":
            return _call(data, part_id, at)
        case "image_url" if data.url:
            return FilePart(id=part_id, media_type="image/*", url=data.url)
        case "binary":
            content = from_base64(data.content_bytes or "")
            if content is not None:
                media_type = data.media_type or "application/octet-stream"
                return FilePart(id=part_id, media_type=media_type, filename=data.path, data=content)
        case _:
            pass
    return UnknownPart(id=part_id, kind=part.type, data=Raw(clean_json(bytes(raw))))


def _thought(data: PartData, part_id: str) -> ReasoningPart:
    responses = None if isinstance(data.responses_data, UnsetType) else value_of(data.responses_data)
    known = {
        "signature": data.signature,
        "thought_signature": data.thought_signature,
        "responses_data": responses,
    }
    opaque: dict[str, Any] = {name: value for name, value in known.items() if value}
    begun, ended = data.started_at, data.finished_at
    return ReasoningPart(
        id=part_id,
        text=data.thinking or "",
        redacted=not data.thinking,
        # Which provider signed a thought is in the row, not in the part.
        provider=ProviderData(name="unknown", opaque=opaque) if opaque else None,
        duration_ms=(ended - begun) * 1000 if begun and ended and ended >= begun else None,
    )


def _call(data: PartData, part_id: str, at: datetime | None) -> ToolCallPart:
    name, given = data.name or "", (data.input or "").encode(errors="replace")
    try:
        msgspec.json.decode(given)
        value, text = Raw(given), None
    except UNREADABLE:
        value, text = UNSET, data.input
    return ToolCallPart(
        id=part_id,
        tool_call_id=data.id or part_id,
        tool_name=name,
        kind=TOOL_KINDS.get(name, ToolKind.OTHER),
        input=value if value is not UNSET or text else Raw(b"{}"),
        input_text=text or None,
        provider_executed=data.provider_executed,
        started_at=at,
    )


# -- results


def result_of(data: PartData, identity: str, at: datetime | None) -> ToolResult:
    """The result in a part."""
    text = data.content or ""
    code = _EXIT_CODE.search(text) if data.name == "bash" else None
    status = _status_of(data, text, failed=code is not None and code["code"] != "0")
    content: list[Part] = [TextPart(id=f"{identity}.0", text=text)] if text else []
    picture = from_base64(data.data) if data.data else None
    if picture is not None:
        media_type = data.mime_type or "image/*"
        content.append(FilePart(id=f"{identity}.{len(content)}", media_type=media_type, data=picture))
    return ToolResult(
        id=identity,
        status=status,
        content=tuple(content),
        error_text=text or None if status != "success" else None,
        exit_code=None if code is None else int(code["code"]),
        completed_at=at,
    )


def _status_of(data: PartData, text: str, *, failed: bool) -> ResultStatus:
    if text.startswith(_DENIED):
        return "denied"
    if text.startswith(_CANCELLED):
        return "aborted"
    return "error" if data.is_error or failed else "success"


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """What a tool says about its result beside the text, from the line of its message; None if it is no object."""
    try:
        row = row_of(msgspec.json.decode(record, type=RowLine))
    except UNREADABLE:
        return None
    for part, _ in parts_in(row.get("parts")) or ():
        if part.type == "tool_result" and part.data.tool_call_id == tool_call_id and part.data.metadata:
            json = part.data.metadata.encode(errors="replace")
            return Raw(json) if object_of(value_of(json)) else None
    return None
