"""What messages of Kimi's programs are made of: parts of a content, results, usage, times."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from zlib import crc32

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import clean_json, object_of, value_of
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.kimi.records import KimiTokenUsage
from turnlog.model import (
    FilePart,
    Part,
    ReasoningPart,
    ResultStatus,
    StopReason,
    TextPart,
    ToolKind,
    ToolResult,
    UnknownPart,
    Usage,
)

TOOL_KINDS: dict[str, ToolKind] = {
    "Agent": ToolKind.SUBAGENT,
    "AgentSwarm": ToolKind.SUBAGENT,
    "AskUserQuestion": ToolKind.ASK,
    "Bash": ToolKind.EXECUTE,
    "Edit": ToolKind.EDIT,
    "EnterPlanMode": ToolKind.SWITCH_MODE,
    "ExitPlanMode": ToolKind.SWITCH_MODE,
    "FetchURL": ToolKind.FETCH,
    "Glob": ToolKind.SEARCH,
    "Grep": ToolKind.SEARCH,
    "Read": ToolKind.READ,
    "ReadFile": ToolKind.READ,
    "ReadMediaFile": ToolKind.READ,
    "SearchWeb": ToolKind.FETCH,
    "Shell": ToolKind.EXECUTE,
    "Skill": ToolKind.READ,
    "StrReplaceFile": ToolKind.EDIT,
    "Task": ToolKind.SUBAGENT,
    "Think": ToolKind.THINK,
    "TodoList": ToolKind.THINK,
    "WebSearch": ToolKind.FETCH,
    "Write": ToolKind.EDIT,
    "WriteFile": ToolKind.EDIT,
}
"""Tools of Kimi Code 2.1.0 and Kimi CLI 1.45.0; any other, MCP's included, is of kind `other`."""

STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "stop",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "interrupted": "aborted",
    "error": "error",
    "content_filter": "content_filter",
    "filtered": "content_filter",
    "paused": "pause",
}
"""`finishReason` of a step -> why the model stopped."""

_EXIT_CODE = re.compile(r"Command failed with exit code: (\d{1,3})\.(?:</system>)?$", re.MULTILINE)
"""The last line of a command's output (Kimi Code) or the message next to it (Kimi CLI)."""

_INLINE = re.compile(r"data:([^;,]*)(?:;[^,;]*)*;base64,", re.IGNORECASE)

_MEDIA = {"image_url": ("imageUrl", "image"), "audio_url": ("audioUrl", "audio"), "video_url": ("videoUrl", "video")}
"""Kind of a part -> the field with its address (Kimi CLI writes it as the kind), and the type of its content."""


class _Block(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    think: str | None = None
    encrypted: str | None = None


def blocks_of(content: Raw | UnsetType) -> list[Raw] | str:
    """The blocks of a content; its text, if it is nothing else."""
    if not isinstance(content, Raw):
        return []
    try:
        found: str | list[Raw] | None = msgspec.json.decode(clean_json(bytes(content)), type=str | list[Raw] | None)
    except UNREADABLE:
        return [content.copy()]
    return [] if found is None else found


def parts_of(content: Raw | UnsetType, message_id: str, first: int = 0) -> Iterator[Part]:
    """The parts of a content, with ids from the number `first` on."""
    blocks = blocks_of(content)
    if isinstance(blocks, str):
        yield TextPart(id=f"{message_id}.{first}", text=blocks)
        return
    for number, raw in enumerate(blocks, first):
        yield part_of(raw, f"{message_id}.{number}")


def part_of(raw: Raw, part_id: str) -> Part:
    """One block as a part; what is of no known kind keeps its JSON."""
    json = clean_json(bytes(raw))
    try:
        block = msgspec.json.decode(json, type=_Block)
    except UNREADABLE:
        return UnknownPart(id=part_id, kind="", data=Raw(json))
    if block.type == "text" and block.text is not None:
        return TextPart(id=part_id, text=block.text)
    # `encrypted` is what the provider needs; a thought with nothing else was hidden from the user.
    if block.type == "think" and block.think is not None:
        return ReasoningPart(id=part_id, text=block.think, redacted=bool(block.encrypted) and not block.think)
    return _file(block.type, json, part_id) or UnknownPart(id=part_id, kind=block.type, data=Raw(json))


def _file(kind: str, json: bytes, part_id: str) -> FilePart | None:
    if kind not in _MEDIA:
        return None
    field, media = _MEDIA[kind]
    fields = object_of(value_of(json))
    # Kimi Code writes `imageUrl`, Kimi CLI `image_url`.
    url = object_of(fields.get(field) or fields.get(kind)).get("url")
    if not isinstance(url, str):
        return None
    inline = _INLINE.match(url)
    if inline is None:
        return FilePart(id=part_id, media_type=f"{media}/*", url=url)
    try:
        data = base64.b64decode(url[inline.end() :], validate=True)
    except (binascii.Error, ValueError):
        return FilePart(id=part_id, media_type=inline[1] or f"{media}/*", url=url)
    return FilePart(id=part_id, media_type=inline[1] or f"{media}/*", data=data)


def result_of(
    call_id: str,
    content: tuple[Part, ...],
    status: ResultStatus,
    *,
    name: str | None,
    at: datetime | None,
    duration_ms: float | None = None,
    message: str = "",
    metadata: dict[str, Any] | None = None,
) -> ToolResult:
    """The result of a call.

    Args:
        call_id: The call.
        content: What the model got.
        status: How it ended.
        name: Its tool, if that is known.
        at: When the result was written.
        duration_ms: How long the call took, if that is known.
        message: What the program says of a failure besides the content.
        metadata: The agent's own facts.
    """
    text = "\n".join([part.text for part in content if isinstance(part, TextPart)])
    code = _EXIT_CODE.search(f"{text}\n{message}") if TOOL_KINDS.get(name or "") is ToolKind.EXECUTE else None
    return ToolResult(
        # Results have no id. A copy of a session copies the record, so the id is made of the content.
        id=f"{call_id}:{crc32(text.encode(errors='replace')):08x}",
        status=status,
        content=content,
        error_text=(text or message) if status != "success" else None,
        exit_code=int(code[1]) if code is not None and status != "success" else None,
        completed_at=at,
        duration_ms=None if duration_ms is None else round(duration_ms),
        metadata=metadata or {},
    )


def usage_of(tokens: KimiTokenUsage | None) -> Usage | None:
    """Tokens in disjoint buckets; None where nothing was counted."""
    if tokens is None:
        return None
    counts = (tokens.input_other, tokens.output, tokens.input_cache_read, tokens.input_cache_creation)
    if not any(counts):
        return None
    return Usage(
        input=tokens.input_other,
        cache_read=tokens.input_cache_read,
        cache_write=tokens.input_cache_creation or None,
        output=tokens.output,
    )


def time_of(number: float | None) -> datetime | None:
    """A time in Unix milliseconds; None for what is no time."""
    try:
        return None if number is None else datetime.fromtimestamp(number / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def input_of(arguments: str | None) -> tuple[Raw | UnsetType, str | None]:
    """A call's input as JSON, or as text if it is none."""
    if arguments is None:
        return UNSET, None
    try:
        return Raw(msgspec.json.encode(msgspec.json.decode(arguments))), None
    except UNREADABLE:
        return UNSET, arguments
