"""Messages: prompts, system messages, notifications and answers."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import RecordRef
from turnlog.agents.copilot_cli import NAME
from turnlog.agents.copilot_cli.contents import STOP_REASONS, file_parts, reasoning_parts, usage_of
from turnlog.agents.copilot_cli.fold_context import CopilotContext
from turnlog.agents.copilot_cli.models import model_of_answer
from turnlog.agents.copilot_cli.records import UNUSED, CopilotData, CopilotUsage, ToolRequest
from turnlog.agents.copilot_cli.state import MAIN, MOST_CALLS, CopilotPendingCall, CopilotPendingUsage
from turnlog.agents.copilot_cli.tools import TOOL_KINDS
from turnlog.agents.decoding import clean_json, fields_of, keep_newest, names_of, other_fields
from turnlog.model import Message, Origin, Part, Role, TextPart, ToolCallPart, ToolKind, Usage

ORIGINS: dict[str, Origin] = {
    "user": Origin.PROMPT,
    "command": Origin.COMMAND,
    "skill": Origin.HARNESS,
    "system": Origin.HARNESS,
    "agent": Origin.NOTIFICATION,
}
"""First word of a user message's `source` -> its origin. The parent's message in a subagent is its prompt."""

_FIELDS = names_of(CopilotData) | UNUSED
_SYNTHETIC: dict[str, Any] = {NAME: {"synthetic": True}}


def _metadata_of(context: CopilotContext, facts: dict[str, Any]) -> dict[str, Any]:
    """The agent's own facts about a message, with the fields of its data that are not known (R-C11)."""
    facts = facts | other_fields(fields_of(context.data_json), _FIELDS)
    return {NAME: facts} if facts else {}


# -- what no model wrote


def read_system(context: CopilotContext, data: CopilotData) -> None:
    """Read the instructions for the model. They are written again when they change."""
    _add_text(context, "developer" if data.role == "developer" else "system", Origin.HARNESS, data.content or "")


def read_notification(context: CopilotContext, data: CopilotData) -> None:
    """Read what the program says to the model about a subagent or a command in the background."""
    _add_text(context, "developer", Origin.NOTIFICATION, data.content or "")


def read_user(context: CopilotContext, data: CopilotData) -> None:
    """Read a prompt, or what the program, a skill or another agent wrote in its place."""
    message_id, content = context.record_id(), data.content or ""
    origin = _origin(context, data)
    facts: dict[str, Any] = {"source": data.source} if data.source is not None else {}
    texts = _texts(message_id, content, data.transformed_content)
    # The program changed the words themselves: both are kept, and the person's are the message.
    if not texts and data.transformed_content is not None:
        facts["transformed_content"] = data.transformed_content
    parts: list[Part] = [*(texts or [TextPart(id=f"{message_id}.1", text=content)])]
    # The texts are numbered up to 2.
    parts += file_parts(context, data.attachments or (), message_id, 3)
    is_prompt = origin in (Origin.PROMPT, Origin.SUBAGENT_PROMPT)
    context.add_message(
        Message(
            id=message_id,
            role="user" if is_prompt or origin is Origin.COMMAND else "developer",
            parts=tuple(parts),
            origin=origin,
            created_at=context.created_at,
            metadata=_metadata_of(context, facts),
        )
    )
    if is_prompt:
        context.set_title(content)


def _origin(context: CopilotContext, data: CopilotData) -> Origin:
    if data.is_autopilot_continuation:
        return Origin.HARNESS
    # A source may have a name behind its first word, such as `agent-<id>`.
    word = (data.source or "user").partition("-")[0]
    if context.agent != MAIN and word in ("agent", "user"):
        return Origin.SUBAGENT_PROMPT
    # An unknown source is a program's: a person's prompt has none.
    return ORIGINS.get(word, Origin.NOTIFICATION)


def _texts(message_id: str, content: str, transformed: str | None) -> list[TextPart]:
    """What the model saw: the text that was typed, between what the program put around it. Empty if it was changed."""
    # An empty prompt would be found in every text, a NUL is found in none.
    before, found, after = (transformed or content).partition(content or "\0")
    if content and not found:
        return []
    pieces: tuple[tuple[str, dict[str, Any]], ...] = ((before, _SYNTHETIC), (content, {}), (after, _SYNTHETIC))
    return [
        TextPart(id=f"{message_id}.{number}", text=text, metadata=metadata)
        for number, (text, metadata) in enumerate(pieces)
        if text
    ]


def read_user_command(context: CopilotContext, data: CopilotData) -> None:
    """Read a command that the user ran with `!`."""
    arguments = fields_of(b"{}" if data.arguments is UNSET else data.arguments)
    command = arguments.get("command")
    try:
        text = "" if command is None else msgspec.json.decode(command, type=str)
    except msgspec.MsgspecError:
        text = ""
    _add_text(context, "user", Origin.SHELL, text, {"command": {"name": "!", "arguments": text}})


def _add_text(
    context: CopilotContext, role: Role, origin: Origin, text: str, facts: dict[str, Any] | None = None
) -> None:
    message_id = context.record_id()
    context.add_message(
        Message(
            id=message_id,
            role=role,
            parts=(TextPart(id=f"{message_id}.0", text=text),) if text else (),
            origin=origin,
            created_at=context.created_at,
            metadata=_metadata_of(context, facts or {}),
        )
    )


# -- answers


def read_answer(context: CopilotContext, data: CopilotData) -> None:
    """Read an answer, or another chunk of it: a response is split where it thinks again."""
    conversation = context.conversation
    # `chunkIndex` is 0 or absent in the first chunk, whose record gives the message its id.
    is_chunk = bool(data.chunk_index) and data.api_call_id is not None and conversation.answer_call == data.api_call_id
    if not is_chunk or conversation.answer is None:
        conversation.answer, conversation.answer_call = context.record_id(), data.api_call_id
        conversation.answer_position, conversation.answer_parts = context.position, 0
    message_id = conversation.answer
    parts = _answer_parts(context, data, message_id, conversation.answer_parts)
    conversation.answer_parts += len(parts)
    # Only one chunk must bring the usage, or the call would count twice.
    pending = context.state.usages.pop(data.api_call_id or "", None)
    refs: tuple[RecordRef, ...] = () if pending is None else ((pending.position, pending.length, None),)
    # A call that the program makes itself, to read what a subagent found, is logged as an answer of no model.
    is_called = (data.model or data.api_call_id or data.interaction_id) is not None
    chosen = _model_facts(context, data, pending, message_id) if is_called else {}
    message = Message(
        id=message_id,
        role="assistant",
        parts=parts,
        origin=None if is_called else Origin.HARNESS,
        created_at=context.created_at,
        metadata=_metadata_of(context, chosen.pop("metadata", {})),
        **chosen,
        **_call_facts(context, data, pending, chosen.get("model")),
    )
    if is_chunk:
        context.extend_answer(message, refs)
    else:
        context.add_message(message, refs=refs)


def add_late_usage(context: CopilotContext, pending: CopilotPendingUsage) -> None:
    """Add the tokens of the newest answer, which came before them."""
    reason = pending.usage.finish_reason
    message_id = context.conversation.answer or pending.record
    context.state.unnamed.pop(message_id, None)
    message = Message(
        id=message_id,
        role="assistant",
        model=pending.usage.model,
        usage=usage_of(pending.usage),
        stop_reason=STOP_REASONS.get(reason or ""),
        raw_stop_reason=reason,
    )
    context.extend_answer(message, ((pending.position, pending.length, None),))
    # The record becomes an event, and counts once.
    context.changes.counts.messages -= 1


def add_unanswered(context: CopilotContext, call: str, pending: CopilotPendingUsage) -> None:
    """Add a model call of which the log has the tokens and no answer."""
    data = CopilotData(api_call_id=call)
    chosen = _model_facts(context, data, pending, pending.record)
    metadata = {NAME: facts} if (facts := chosen.pop("metadata", {})) else {}
    message = Message(
        id=pending.record,
        role="assistant",
        created_at=context.created_at,
        metadata=metadata,
        **chosen,
        **_call_facts(context, data, pending, chosen["model"]),
    )
    context.add_beside(message, refs=((pending.position, pending.length, None),))


def _answer_parts(context: CopilotContext, data: CopilotData, message_id: str, first: int) -> tuple[Part, ...]:
    parts: list[Part] = [*reasoning_parts(data, message_id, first)]
    if data.content:
        parts.append(TextPart(id=f"{message_id}.{first + len(parts)}", text=data.content))
    for request in data.tool_requests or ():
        number = first + len(parts)
        parts.append(_call_part(request, f"{message_id}.{number}"))
        call = CopilotPendingCall(message_id, context.conversation.answer_position, number, request.name, context.agent)
        # Start, permission and result are separate records, which name only the call.
        keep_newest(context.state.calls, request.tool_call_id, call, MOST_CALLS)
    return tuple(parts)


def _call_part(request: ToolRequest, part_id: str) -> ToolCallPart:
    """The part for a call. A free-form tool (`apply_patch`) has a text as its input."""
    given, text = _input(request.arguments)
    return ToolCallPart(
        id=part_id,
        tool_call_id=request.tool_call_id,
        tool_name=request.name,
        kind=TOOL_KINDS.get(request.name, ToolKind.OTHER),
        input=given,
        input_text=text,
        title=request.tool_title,
    )


def _input(arguments: Raw | UnsetType) -> tuple[Raw | UnsetType, str | None]:
    if arguments is UNSET:
        return Raw(b"{}"), None
    json = clean_json(bytes(arguments))
    return (UNSET, msgspec.json.decode(json, type=str)) if json.startswith(b'"') else (Raw(json), None)


def _model_facts(
    context: CopilotContext, data: CopilotData, pending: CopilotPendingUsage | None, message_id: str
) -> dict[str, Any]:
    model = data.model or (None if pending is None else pending.usage.model)
    output = 0 if pending is not None or context.state.has_usages else data.output_tokens or 0
    return model_of_answer(context, message_id, model, output)


def _call_facts(
    context: CopilotContext, data: CopilotData, pending: CopilotPendingUsage | None, model: str | None
) -> dict[str, Any]:
    """The fields of a message that describe its model call."""
    usage = None if pending is None else pending.usage
    reason = None if usage is None else usage.finish_reason
    return {
        "response_id": data.api_call_id,
        "usage": _counted_output(context, data, model) if usage is None else usage_of(usage),
        "stop_reason": STOP_REASONS.get(reason or ""),
        "raw_stop_reason": reason,
    }


def _counted_output(context: CopilotContext, data: CopilotData, model: str | None) -> Usage | None:
    """What an answer itself says of its tokens, in a log without usages; totals at the end add the rest."""
    state = context.state
    if data.output_tokens is None or state.has_usages:
        return None
    state.outputs[model or ""] = state.outputs.get(model or "", 0) + data.output_tokens
    return usage_of(CopilotUsage(output_tokens=data.output_tokens), "lower_bound")
