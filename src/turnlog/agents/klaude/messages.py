"""Records since 2.0 that are a message or a result, and those of 1.x that are a message by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from zlib import crc32

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import ResultChange
from turnlog.agents.klaude.contents import cost_of, file_part, parts_of, text_of, time_of, usage_of, wire_parts
from turnlog.agents.klaude.reading import Reading
from turnlog.agents.klaude.records import Data, Usage, fields_of
from turnlog.agents.klaude.sources import NAME
from turnlog.agents.reading import names_of, other_fields, value_of
from turnlog.model import (
    Message,
    Origin,
    Part,
    ResultStatus,
    Role,
    StopReason,
    TextPart,
    ToolCallPart,
    ToolResult,
    UnknownPart,
)

SOURCES: dict[str, Origin] = {
    "user": Origin.PROMPT,
    "bash_mode": Origin.SHELL_OUTPUT,
    "shell_completion": Origin.NOTIFICATION,
    "task_completion": Origin.NOTIFICATION,
    "peer_message": Origin.NOTIFICATION,
}
"""Who is behind a user message, by its `source`; only a person's begins a turn."""

_STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "length": "length",
    "tool_use": "tool_use",
    "error": "error",
    "aborted": "aborted",
}
_STATUSES: dict[str, ResultStatus] = {"success": "success", "error": "error", "aborted": "aborted"}
_AUTOMATIC = re.compile(
    r"\s*(?:The previous model response was empty, likely due to"
    r"|<assistant>.*</assistant>\s*<system-reminder>Your previous response was interrupted"
    r"|<system-reminder>You are (?:no longer the main coding agent|a newly spawned agent))",
    re.DOTALL,
)
"""What klaude-code itself writes in the user's name: to go on after a failure, and at a forked agent's beginning."""
_CHECKPOINT = re.compile(r"<system-reminder>Checkpoint (\d+)</system-reminder>")
_DEVELOPER_FIELDS = (
    "attachment_position",
    "ui_extra",
    "memory_paths",
    "memory_mentioned",
    "external_file_changes",
    "todo_use",
    "at_files",
    "user_image_count",
    "skill_name",
)


_FIELDS = names_of(Data) | {"role", *_DEVELOPER_FIELDS}


def read_system(reading: Reading, kind: str, data: Data) -> None:
    """R-K7: system messages are stored, and shown by nobody."""
    _add(reading, kind, data, "system", Origin.HARNESS, {})


def read_developer(reading: Reading, kind: str, data: Data) -> None:
    """What the harness put in, and the checkpoints of the old rewinds."""
    fields = fields_of(reading.json)
    known = [name for name in _DEVELOPER_FIELDS if name in fields and fields[name] != Raw(b"null")]
    metadata = {name: value_of(fields[name]) for name in known}
    is_output = data.command_output is not UNSET and data.command_output != Raw(b"null")
    text = _add(reading, kind, data, "developer", Origin.COMMAND_OUTPUT if is_output else Origin.HARNESS, metadata)
    for number in _CHECKPOINT.findall(text):
        reading.state.checkpoints[number] = reading.line_number - 1


def read_user(reading: Reading, kind: str, data: Data) -> None:
    """A prompt, or what a task, a shell, a peer or klaude-code itself said in its place."""
    text = text_of(_parts(reading, data, ""))
    origin = SOURCES.get(data.source or "user", Origin.NOTIFICATION)
    if origin is Origin.PROMPT and _AUTOMATIC.match(text):
        origin = Origin.HARNESS
    reading.begin_turn(origin)
    if origin is Origin.PROMPT:
        reading.note_title(text)
    metadata: dict[str, Any] = {"source": data.source} if data.source not in (None, "user") else {}
    _add(reading, kind, data, "user" if origin is Origin.PROMPT else "developer", origin, metadata, said=text)


def read_assistant(reading: Reading, kind: str, data: Data) -> None:
    """R-K4: one model call, with its parts in order, usage and stop reason."""
    message_id = reading.message_id(kind, data)
    message = Message(
        id=message_id,
        role="assistant",
        parts=begun(parts_of(data.parts or (), message_id, data.usage.provider if data.usage else None), data),
        response_id=data.response_id,
        metadata=_metadata_of(reading, {"phase": data.phase} if data.phase is not None else {}),
        **answer_facts(data, data.usage),
    )
    reading.add_message(message, step=reading.next_step())
    reading.changes.counts.messages += 1


def _metadata_of(reading: Reading, facts: dict[str, Any]) -> dict[str, Any]:
    """Facts that only this agent tells (R-C11)."""
    facts = facts | other_fields(fields_of(reading.json), _FIELDS)
    return {NAME: facts} if facts else {}


def begun(parts: Iterable[Part], data: Data) -> tuple[Part, ...]:
    """Calls begin when their record is written: the model has ended then."""
    at = time_of(data.created_at)
    return tuple(
        [msgspec.structs.replace(part, started_at=at) if isinstance(part, ToolCallPart) else part for part in parts]
    )


def answer_facts(data: Data, usage: Usage | None) -> dict[str, Any]:
    """What a record says of the model call."""
    model = (usage.model_name if usage is not None else None) or data.model_name or data.model
    return {
        "created_at": time_of(data.created_at),
        "model": model or None,
        "stop_reason": _STOP_REASONS.get(data.stop_reason or ""),
        "raw_stop_reason": data.stop_reason,
        "usage": usage_of(usage),
        "cost": cost_of(usage),
    }


def read_result(reading: Reading, kind: str, data: Data) -> None:
    """A call's result: all text in one, images beside it (R-K3)."""
    text = data.output_text if data.output_text is not None else data.output or ""
    content: list[Part] = [TextPart(text=text)] if text else []
    for part, raw in wire_parts([*(data.parts or ()), *(data.images or ())]):
        if part.type == "text":
            reading.tell("a result's parts hold text", "note", "$.data.parts")
            content.append(TextPart(text=part.text or ""))
        else:
            content.append(file_part(part, None) or UnknownPart(kind=part.type, data=raw))
    status = _STATUSES.get(data.status or "", "error" if data.status else "success")
    call_id = data.call_id or ""
    result = ToolResult(
        id=f"{call_id}:{crc32(f'{status}|{text}'.encode(errors='replace')):08x}",
        status=status,
        content=tuple(content),
        error_text=text if status != "success" else None,
        exit_code=_exit_code(data),
        completed_at=time_of(data.created_at),
        metadata=_metadata_of(reading, {}),
    )
    _add_result(reading, call_id, result)
    for child in _sessions_in(data.ui_extra):
        reading.link("subagent", child=child, call=call_id)


def _add_result(reading: Reading, call_id: str, result: ToolResult) -> None:
    reading.changes.results.append(
        ResultChange(
            session_id=reading.session_id,
            tool_call_id=call_id,
            result=result,
            position=reading.position,
            record=(reading.position, reading.length),
        )
    )
    reading.changes.counts.results += 1
    reading.stand()


def _add(
    reading: Reading,
    kind: str,
    data: Data,
    role: Role,
    origin: Origin,
    metadata: dict[str, Any],
    *,
    said: str | None = None,
) -> str:
    message_id = reading.message_id(kind, data)
    parts = _parts(reading, data, message_id)
    message = Message(
        id=message_id,
        role=role,
        parts=parts,
        origin=origin,
        created_at=time_of(data.created_at),
        metadata=_metadata_of(reading, metadata),
    )
    reading.add_message(message, said=said)
    reading.changes.counts.messages += 1
    return text_of(parts)


def _parts(reading: Reading, data: Data, message_id: str) -> tuple[Part, ...]:
    """The parts, or the text and the images of 1.x."""
    if data.parts is not None:
        return parts_of(data.parts, message_id)
    parts: list[Part] = [TextPart(id=f"{message_id}.0", text=data.content)] if data.content else []
    for part, raw in wire_parts(data.images or ()):
        part_id = f"{message_id}.{len(parts)}"
        parts.append(file_part(part, part_id) or UnknownPart(id=part_id, kind=part.type or "image", data=raw))
    return tuple(parts)


class _Extra(msgspec.Struct):
    """What the terminal was to show of a result."""

    type: Any = None
    exit_code: Any = None
    session_id: Any = None
    items: Raw | UnsetType = UNSET


def _extras(shown: Raw | UnsetType) -> list[_Extra]:
    """One thing, or several in one."""
    found = _extra(b"null" if shown is UNSET else bytes(shown))
    if found is None:
        return []
    if found.type != "multi":
        return [found]
    inner = [_extra(bytes(item)) for item in _items_of(found.items)]
    return [extra for extra in inner if extra is not None]


def _extra(data: bytes) -> _Extra | None:
    try:
        return msgspec.json.decode(data, type=_Extra)
    except msgspec.MsgspecError:
        return None


def _items_of(items: Raw | UnsetType) -> list[Raw]:
    try:
        return [] if items is UNSET else msgspec.json.decode(items, type=list[Raw])
    except msgspec.MsgspecError:
        return []


def _exit_code(data: Data) -> int | None:
    codes = [extra.exit_code for extra in _extras(data.ui_extra) if extra.type == "bash"]
    return next((code for code in codes if isinstance(code, int)), None)


def _sessions_in(shown: Raw | UnsetType) -> list[str]:
    ids = [extra.session_id for extra in _extras(shown) if extra.type == "session_id"]
    return [identity for identity in ids if isinstance(identity, str) and identity]


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """`ui_extra` of the record that brought the call's result."""
    data = fields_of(record).get("data")
    fields = {} if data is None else fields_of(data)
    extra = fields.get("ui_extra")
    return None if extra is None or extra == Raw(b"null") else extra.copy()
