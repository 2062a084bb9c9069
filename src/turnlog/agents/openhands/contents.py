"""What the events of OpenHands hold -> parts of messages, results and tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from turnlog.agents.claude_code.contents import from_base64
from turnlog.agents.decoding import aware, list_of, object_of, text_of, value_of
from turnlog.agents.file_rows import FileRow
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

Json = dict[str, Any]

TOOL_KINDS: dict[str, ToolKind] = {
    "browser": ToolKind.FETCH,
    "delegate": ToolKind.SUBAGENT,
    "file_editor": ToolKind.EDIT,
    "glob": ToolKind.SEARCH,
    "grep": ToolKind.SEARCH,
    "task": ToolKind.SUBAGENT,
    "task_tracker": ToolKind.THINK,
    "terminal": ToolKind.EXECUTE,
    "think": ToolKind.THINK,
}
"""Tools that 1.16.0 offers to the model; any other, MCP's included, is of kind `other`."""

_DATA_URL = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+);base64,(?P<data>.*)", re.DOTALL)

_QUARTER, _HALF, _FURTHEST = 900, 1800, 14 * 3600
_QUARTERS = (20_700, 31_500, 45_900, 49_500)
"""Zones that are ahead of UTC by no number of half hours, with their time in summer."""
_SLACK = 3
"""Seconds between the time in an event and that of its file."""


def time_of(value: object, modified: float | None) -> datetime | None:
    """The time of an event, which has no zone.

    The zone is the one by which the file was written at that time: times of files have one. If the file was copied
    later, no zone fits, and UTC is assumed.
    """
    try:
        local = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    if local.tzinfo is not None or modified is None:
        return aware(local)
    try:
        ahead = local.replace(tzinfo=UTC).timestamp() - modified
    except (OverflowError, ValueError):
        return aware(local)
    zone = round(ahead / _QUARTER) * _QUARTER
    fits = abs(ahead - zone) <= _SLACK and abs(zone) <= _FURTHEST and (zone % _HALF == 0 or zone in _QUARTERS)
    return aware(local) - timedelta(seconds=zone) if fits else aware(local)


def content_parts(content: object, message_id: str, first: int = 0) -> Iterator[Part]:
    """The parts of a content, numbered from `first`."""
    number = first
    for block in map(object_of, list_of(content)):
        text, urls = block.get("text"), list_of(block.get("image_urls"))
        if block.get("type") == "text" and isinstance(text, str):
            if text:
                yield TextPart(id=f"{message_id}.{number}", text=text)
                number += 1
        elif urls:
            for url in urls:
                yield _image(str(url), f"{message_id}.{number}")
                number += 1
        else:
            yield UnknownPart(id=f"{message_id}.{number}", kind=str(block.get("type")), data=_raw(block))
            number += 1


def _image(url: str, part_id: str) -> Part:
    found = _DATA_URL.fullmatch(url)
    data = from_base64(found["data"]) if found else None
    if found and data is not None:
        return FilePart(id=part_id, media_type=found["type"], data=data)
    return FilePart(id=part_id, media_type="image/*", url=url)


def _raw(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value))


_OPAQUE = ("thinking_blocks", "responses_reasoning_item")
"""What a provider needs to accept a thought again."""


def thought_parts(holder: Json, message_id: str, first: int) -> list[Part]:
    """The thoughts of an answer, with what its provider needs to accept them again."""
    # Whatever the provider sent: it may be nested deeper than a message can be written.
    opaque = {name: value_of(msgspec.json.encode(holder[name])) for name in _OPAQUE if holder.get(name)}
    text = text_of(holder.get("reasoning_content")) or "".join(
        text_of(object_of(block).get("thinking")) or "" for block in list_of(holder.get("thinking_blocks"))
    )
    if not text and not opaque:
        return []
    provider = ProviderData(name="unknown", opaque=opaque) if opaque else None
    return [ReasoningPart(id=f"{message_id}.{first}", text=text, redacted=not text, provider=provider)]


def call_part(event: Json, part_id: str, at: datetime | None) -> ToolCallPart:
    """The call of an event."""
    made = object_of(event.get("tool_call"))
    name = text_of(event.get("tool_name")) or text_of(made.get("name")) or ""
    arguments = made.get("arguments")
    value: Any = UNSET
    text: str | None = None
    if isinstance(arguments, str):
        try:
            msgspec.json.decode(arguments.encode(errors="replace"))
            value = Raw(arguments.encode(errors="replace"))
        except UNREADABLE:
            text = arguments
    elif "action" in event:
        value = _raw(event["action"])
    kind = TOOL_KINDS.get(name, ToolKind.OTHER)
    if name == "file_editor" and object_of(event.get("action")).get("command") == "view":
        kind = ToolKind.READ
    return ToolCallPart(
        id=part_id,
        tool_call_id=text_of(event.get("tool_call_id")) or part_id,
        tool_name=name,
        kind=kind,
        input=value,
        input_text=text,
        started_at=at,
    )


def result_of(event: Json, call_id: str, at: datetime | None) -> ToolResult:
    """The result in an observation, an error or a refusal."""
    identity = text_of(event.get("id")) or f"{call_id}.result"
    seen = object_of(event.get("observation"))
    code = seen.get("exit_code")
    exit_code = code if isinstance(code, int) and not isinstance(code, bool) and code >= 0 else None
    status, error = _status_of(event, seen, exit_code)
    content = tuple(content_parts(seen.get("content"), identity))
    return ToolResult(
        id=identity,
        status=status,
        content=content,
        error_text=error or ("".join(_texts(content)) if status == "error" else None),
        exit_code=exit_code,
        completed_at=at,
    )


def _texts(parts: tuple[Part, ...]) -> Iterator[str]:
    return (part.text for part in parts if isinstance(part, TextPart))


def _status_of(event: Json, seen: Json, exit_code: int | None) -> tuple[ResultStatus, str | None]:
    match event.get("kind"):
        case "UserRejectObservation":
            return "denied", text_of(event.get("rejection_reason"))
        case "AgentErrorEvent":
            return "error", text_of(event.get("error"))
        case _:
            has_failed = seen.get("is_error") is True or exit_code not in (None, 0)
            return ("error" if has_failed else "success"), None


def usage_of(counted: Json) -> Usage | None:
    """Tokens in disjoint buckets; None if none were counted. A prompt includes cached ones, a completion thoughts."""
    names = ("prompt_tokens", "cache_read_tokens", "cache_write_tokens", "completion_tokens", "reasoning_tokens")
    found = [counted.get(name) for name in names]
    prompt, read, written, output, thought = (value if type(value) is int and value >= 0 else None for value in found)
    if not prompt and not output:
        return None
    thought = thought or None
    return Usage(
        input=None if prompt is None else max(0, prompt - (read or 0) - (written or 0)),
        cache_read=read,
        cache_write=written or None,
        output=None if output is None else max(0, output - (thought or 0)),
        reasoning=thought,
    )


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """The observation of a call, from the line of its event; None if it has none."""
    try:
        event = object_of(msgspec.json.decode(msgspec.json.decode(record, type=FileRow).content()))
    except (*UNREADABLE, ValueError):
        return None
    if event.get("tool_call_id") != tool_call_id or "observation" not in event:
        return None
    return _raw(event["observation"])
