"""Messages and results: records since 2.0, and those of 1.x, where an answer is several records."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from zlib import crc32

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import ResultChange
from turnlog.agents.decoding import fields_of, names_of, other_fields, value_of
from turnlog.agents.klaude import NAME
from turnlog.agents.klaude.contents import (
    call_part,
    cost_of,
    file_part,
    parts_of,
    reasoning_part,
    text_of,
    time_of,
    usage_of,
    wire_parts,
)
from turnlog.agents.klaude.fold_context import KlaudeContext, KlaudePendingMessage
from turnlog.agents.klaude.records import KlaudeData, KlaudePart, KlaudeUsage
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

SOURCE_ORIGINS: dict[str, Origin] = {
    "user": Origin.PROMPT,
    "bash_mode": Origin.SHELL_OUTPUT,
    "shell_completion": Origin.NOTIFICATION,
    "task_completion": Origin.NOTIFICATION,
    "peer_message": Origin.NOTIFICATION,
}
"""`source` of a user message -> its origin; only a person's message begins a turn."""

_STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "length": "length",
    "tool_use": "tool_use",
    "error": "error",
    "aborted": "aborted",
}
_STATUSES: dict[str, ResultStatus] = {"success": "success", "error": "error", "aborted": "aborted"}
_HARNESS_PROMPT = re.compile(
    r"\s*(?:The previous model response was empty, likely due to"
    r"|<assistant>.*</assistant>\s*<system-reminder>Your previous response was interrupted"
    r"|<system-reminder>You are (?:no longer the main coding agent|a newly spawned agent))",
    re.DOTALL,
)
"""Prompts that klaude-code itself writes: to continue after a failure, and at the beginning of a forked agent."""
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


_FIELDS = names_of(KlaudeData) | {"role", *_DEVELOPER_FIELDS}


def read_system(context: KlaudeContext, kind: str, data: KlaudeData) -> None:
    """Read a system message. It is stored, and not shown (R-K7)."""
    _add(context, kind, data, "system", Origin.HARNESS, {})


def read_developer(context: KlaudeContext, kind: str, data: KlaudeData) -> None:
    """Read a message that klaude-code inserted; it may have a checkpoint, which old rewinds name."""
    fields = fields_of(context.json)
    known = [name for name in _DEVELOPER_FIELDS if name in fields and fields[name] != Raw(b"null")]
    metadata = {name: value_of(fields[name]) for name in known}
    # 1.x writes the output of a slash command as a developer message.
    is_output = data.command_output is not UNSET and data.command_output != Raw(b"null")
    text = _add(context, kind, data, "developer", Origin.COMMAND_OUTPUT if is_output else Origin.HARNESS, metadata)
    for number in _CHECKPOINT.findall(text):
        # klaude-code counts lines from 0.
        context.state.checkpoints[number] = context.line_number - 1


def read_user(context: KlaudeContext, kind: str, data: KlaudeData) -> None:
    """Read a prompt, or what a task, a shell, a peer or klaude-code itself wrote in its place."""
    text = text_of(_parts(context, data, ""))
    # An unknown `source` is a program's: a person's prompt has had no other since 2.0.
    origin = SOURCE_ORIGINS.get(data.source or "user", Origin.NOTIFICATION)
    # Prompts that klaude-code writes to continue have the `source` of a person; only the wording distinguishes them.
    if origin is Origin.PROMPT and _HARNESS_PROMPT.match(text):
        origin = Origin.HARNESS
    context.begin_turn(origin)
    if origin is Origin.PROMPT:
        context.set_title(text)
    metadata: dict[str, Any] = {"source": data.source} if data.source not in (None, "user") else {}
    # klaude-code logs reports of tasks and shells as user messages, but no person wrote them.
    _add(context, kind, data, "user" if origin is Origin.PROMPT else "developer", origin, metadata, text=text)


def read_assistant(context: KlaudeContext, kind: str, data: KlaudeData) -> None:
    """Read an answer: one step, with its parts in order, usage and stop reason (R-K4)."""
    message_id = context.message_id(kind, data)
    message = Message(
        id=message_id,
        role="assistant",
        parts=with_start(parts_of(data.parts or (), message_id, data.usage.provider if data.usage else None), data),
        response_id=data.response_id,
        metadata=_metadata_of(context, {"phase": data.phase} if data.phase is not None else {}),
        **answer_facts(data, data.usage),
    )
    context.add_message(message, step=context.next_step())
    context.changes.counts.messages += 1


def _metadata_of(context: KlaudeContext, facts: dict[str, Any]) -> dict[str, Any]:
    """The agent's own facts about a message, with the record's fields that are not known (R-C11)."""
    facts = facts | other_fields(fields_of(context.json), _FIELDS)
    return {NAME: facts} if facts else {}


def with_start(parts: Iterable[Part], data: KlaudeData) -> tuple[Part, ...]:
    """The parts with the start of their calls: the time of the record, which is written when the model has ended."""
    at = time_of(data.created_at)
    return tuple(
        [msgspec.structs.replace(part, started_at=at) if isinstance(part, ToolCallPart) else part for part in parts]
    )


def answer_facts(data: KlaudeData, usage: KlaudeUsage | None) -> dict[str, Any]:
    """The fields of a message that describe its step."""
    model = (usage.model_name if usage is not None else None) or data.model_name or data.model
    return {
        "created_at": time_of(data.created_at),
        "model": model or None,
        "stop_reason": _STOP_REASONS.get(data.stop_reason or ""),
        "raw_stop_reason": data.stop_reason,
        "usage": usage_of(usage),
        "cost": cost_of(usage),
    }


def read_result(context: KlaudeContext, kind: str, data: KlaudeData) -> None:
    """Read the result of a call: its text is one part, images are further parts (R-K3)."""
    # `output_text` since 2.0, `output` before.
    text = data.output_text if data.output_text is not None else data.output or ""
    content: list[Part] = [TextPart(text=text)] if text else []
    for part, raw in wire_parts([*(data.parts or ()), *(data.images or ())]):
        if part.type == "text":
            # R-K3: a result's text is `output_text`; its parts are images.
            context.report("a result's parts hold text", "note", "$.data.parts")
            content.append(TextPart(text=part.text or ""))
        else:
            content.append(file_part(part, None) or UnknownPart(kind=part.type, data=raw))
    # A word that is not known may mean a failure, so it does not count as success.
    status = _STATUSES.get(data.status or "", "error" if data.status else "success")
    call_id = data.call_id or ""
    result = ToolResult(
        # Results have no id. A fork copies the line, so the id is made of the content and not of the offset.
        id=f"{call_id}:{crc32(f'{status}|{text}'.encode(errors='replace')):08x}",
        status=status,
        content=tuple(content),
        error_text=text if status != "success" else None,
        exit_code=_exit_code(data),
        completed_at=time_of(data.created_at),
        metadata=_metadata_of(context, {}),
    )
    _add_result(context, call_id, result)
    for child in _subagent_sessions(data.ui_extra):
        context.link("subagent", child=child, call=call_id)


def _add_result(context: KlaudeContext, call_id: str, result: ToolResult) -> None:
    context.changes.results.append(
        ResultChange(
            session_id=context.session_id,
            tool_call_id=call_id,
            result=result,
            position=context.position,
            record=(context.position, context.length),
        )
    )
    context.changes.counts.results += 1
    context.add_line()


def _add(
    context: KlaudeContext,
    kind: str,
    data: KlaudeData,
    role: Role,
    origin: Origin,
    metadata: dict[str, Any],
    *,
    text: str | None = None,
) -> str:
    message_id = context.message_id(kind, data)
    parts = _parts(context, data, message_id)
    message = Message(
        id=message_id,
        role=role,
        parts=parts,
        origin=origin,
        created_at=time_of(data.created_at),
        metadata=_metadata_of(context, metadata),
    )
    context.add_message(message, text=text)
    context.changes.counts.messages += 1
    return text_of(parts)


def _parts(context: KlaudeContext, data: KlaudeData, message_id: str) -> tuple[Part, ...]:
    """The parts of a message; of 1.x its text and its images."""
    if data.parts is not None:
        return parts_of(data.parts, message_id)
    parts: list[Part] = [TextPart(id=f"{message_id}.0", text=data.content)] if data.content else []
    for part, raw in wire_parts(data.images or ()):
        part_id = f"{message_id}.{len(parts)}"
        parts.append(file_part(part, part_id) or UnknownPart(id=part_id, kind=part.type or "image", data=raw))
    return tuple(parts)


class _DisplayItem(msgspec.Struct):
    """What klaude-code shows of a result, in its `ui_extra`."""

    type: Any = None
    exit_code: Any = None
    session_id: Any = None
    items: Raw | UnsetType = UNSET


def _display_items(shown: Raw | UnsetType) -> list[_DisplayItem]:
    """The items in a `ui_extra`, which is one item or several in one."""
    found = _decode_display_item(b"null" if shown is UNSET else bytes(shown))
    if found is None:
        return []
    if found.type != "multi":
        return [found]
    inner = [_decode_display_item(bytes(item)) for item in _nested_items(found.items)]
    return [extra for extra in inner if extra is not None]


def _decode_display_item(data: bytes) -> _DisplayItem | None:
    try:
        return msgspec.json.decode(data, type=_DisplayItem)
    except msgspec.MsgspecError:
        return None


def _nested_items(items: Raw | UnsetType) -> list[Raw]:
    try:
        return [] if items is UNSET else msgspec.json.decode(items, type=list[Raw])
    except msgspec.MsgspecError:
        return []


def _exit_code(data: KlaudeData) -> int | None:
    codes = [extra.exit_code for extra in _display_items(data.ui_extra) if extra.type == "bash"]
    return next((code for code in codes if isinstance(code, int)), None)


def _subagent_sessions(shown: Raw | UnsetType) -> list[str]:
    ids = [extra.session_id for extra in _display_items(shown) if extra.type == "session_id"]
    return [identity for identity in ids if isinstance(identity, str) and identity]


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """The `ui_extra` of a record with a call's result; None if it has none."""
    data = fields_of(record).get("data")
    fields = {} if data is None else fields_of(data)
    extra = fields.get("ui_extra")
    return None if extra is None or extra == Raw(b"null") else extra.copy()


def read_message_piece(context: KlaudeContext, kind: str, data: KlaudeData) -> None:
    """Read one piece of an answer of 1.x: a thought, a signature, a text, a call, or its usage.

    The pieces of one answer have the same `response_id`. Where they have none, those that follow each other are one
    answer.
    """
    state = context.state
    known = state.pending_message
    is_new = known is None or known.response != data.response_id
    current = known
    if known is None or is_new:
        # Pieces share nothing but `response_id`, so the message is named after it: a copy has the same.
        identity = f"response:{data.response_id}" if data.response_id else context.message_id(kind, data)
        current = state.pending_message = KlaudePendingMessage(identity, data.response_id)
    assert current is not None
    part = _piece_part(kind, data, current)
    message = Message(
        id=current.message,
        role="assistant",
        parts=with_start(() if part is None else (part,), data),
        response_id=data.response_id,
        **answer_facts(data, data.usage),
    )
    if message.model is not None:
        state.unnamed.pop(message.id, None)
    elif is_new:
        state.unnamed[message.id] = context.position
    if is_new:
        context.add_message(message, step=context.next_step())
    else:
        context.extend_message(message, step=state.step)
    context.changes.counts.messages += 1
    # It is the last record of an answer.
    if kind == "ResponseMetadataItem":
        state.pending_message = None


def _piece_part(kind: str, data: KlaudeData, current: KlaudePendingMessage) -> Part | None:
    if kind == "ResponseMetadataItem":
        return None
    is_signature, is_thought = kind == "ReasoningEncryptedItem", kind == "ReasoningTextItem"
    belongs = (is_signature and current.has_thought) or (is_thought and current.has_signature)
    if not belongs:
        current.parts += 1
    part_id = f"{current.message}.{current.parts - 1}"
    # Anthropic's signatures, which have no format, are logged before the thought (1.9.0), others after it.
    current.has_signature = is_signature and not belongs and data.format is None
    current.has_thought = is_thought and not belongs
    if kind == "ToolCallItem":
        return call_part(part_id, data.call_id or "", data.name or "", data.arguments or "", data.id)
    if kind == "AssistantMessageItem":
        return TextPart(id=part_id, text=data.content or "")
    proof = KlaudePart(model_id=data.model, format=data.format, signature=data.encrypted_content)
    text = data.content or "" if kind == "ReasoningTextItem" else ""
    return reasoning_part(part_id, text, proof, data.provider)
