"""Messages and results: prompts, answers, what tools returned, and what the program put in a person's place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import ResultChange
from turnlog.agents.decoding import fields_of
from turnlog.agents.gemini_cli.records import ContentPart, compact, parse_parts, provider_data, split_responses, to_part
from turnlog.agents.handoffs import carried_origin
from turnlog.agents.open_calls import abort_calls, message_of, open_call
from turnlog.agents.qwen_code import NAME
from turnlog.agents.qwen_code.fold_context import PendingAnswer, QwenContext, metadata_of
from turnlog.agents.qwen_code.records import INPUT_ORIGINS, TOOL_RESULTS, QwenRecord, ToolCallResult, usage_of
from turnlog.agents.qwen_code.results import TOOL_KINDS, make_result
from turnlog.model import InterruptEvent, Message, Origin, Part, ReasoningPart, TextPart, ToolCallPart, ToolKind

TURN_ORIGINS = frozenset({Origin.PROMPT, Origin.SUBAGENT_PROMPT})
"""Origins that begin a turn."""

FILES_HEADING = "--- Content from referenced files ---"
"""From here on a prompt holds what Qwen Code inserted for each `@file`."""

FILES_END = "--- End of content ---"

SYNTHETIC: dict[str, Any] = {NAME: {"synthetic": True}}
"""Metadata of a text inside a prompt that nobody typed."""


def parts_in(record: QwenRecord) -> list[ContentPart]:
    """The parts of a record's content."""
    content = record.message.parts if record.message is not None else UNSET
    return parse_parts(content)


# -- what a person or the program wrote


def read_user(context: QwenContext, record: QwenRecord) -> None:
    """Read a prompt, or what the program wrote in its place."""
    parts = parts_in(record)
    origin = _origin_of(context, record)
    if origin in TURN_ORIGINS:
        context.note_prompt(record)
        context.changes.messages += abort_calls(context.state.calls, context.session_id, context.position)
        context.state.turn += 1
        context.state.step = 0
    message_id = context.event_id(record)
    found = tuple(input_parts(parts, message_id))
    if origin in TURN_ORIGINS:
        context.set_title(typed_text(found))
    message = Message(
        id=message_id,
        role="user" if origin in TURN_ORIGINS else "developer",
        parts=found,
        origin=origin,
        created_at=record.timestamp,
        metadata=metadata_of(record, {}),
    )
    context.add_message(record, message)
    context.changes.counts.messages += 1


def _origin_of(context: QwenContext, record: QwenRecord) -> Origin:
    if context.carried is not None:
        return carried_origin(context.carried, TURN_ORIGINS)
    origin = INPUT_ORIGINS.get(record.kind, Origin.HARNESS)
    if origin is not Origin.PROMPT:
        return origin
    # Since 0.24 a record says who wrote it; before, only a person's prompt had no subtype.
    if record.provenance not in (None, "real_user"):
        return Origin.HARNESS
    if not context.is_subagent:
        return Origin.PROMPT
    return Origin.HARNESS if context.state.turn else Origin.SUBAGENT_PROMPT


def input_parts(parts: Sequence[ContentPart], message_id: str) -> Iterator[Part]:
    """The parts of a message that no model wrote; what Qwen Code inserted for `@file` is marked."""
    is_inserted = False
    for number, part in enumerate(parts):
        found = to_part(part, f"{message_id}.{number}")
        text = (part.wire.text or "").strip() if part.is_text else ""
        # Heading, each file and the end are separate parts, behind what the user typed.
        is_inserted = is_inserted or text == FILES_HEADING
        # A reminder is a part of its own in front of what was typed (0.24.4).
        is_reminder = len(parts) > 1 and text.startswith("<system-reminder>") and text.endswith("</system-reminder>")
        yield msgspec.structs.replace(found, metadata=SYNTHETIC) if is_inserted or is_reminder else found
        is_inserted = is_inserted and text != FILES_END


def typed_text(parts: Sequence[Part]) -> str:
    """The text of a prompt without what Qwen Code inserted."""
    return "".join([part.text for part in parts if isinstance(part, TextPart) and not part.metadata])


# -- answers of the model


def read_assistant(context: QwenContext, record: QwenRecord) -> None:
    """Read an answer: one step, with its parts in order and its usage."""
    parts = parts_in(record)
    pending = context.state.pending_answer
    # A subagent's answer is a record of its texts, with the usage, and a record of each round's calls, without.
    if pending is not None and record.usage_metadata is None and record.parent_uuid == pending.record:
        _add_calls(context, record, parts, pending)
        return
    message_id = context.event_id(record)
    context.state.step += 1
    message = Message(
        id=message_id,
        role="assistant",
        parts=tuple(_answer_parts(context, record, parts, message_id, 0)),
        created_at=record.timestamp,
        model=record.model,
        usage=usage_of(record.usage_metadata, has_thoughts=any(part.is_thought for part in parts)),
        metadata=metadata_of(record, _facts_of(record)),
    )
    context.add_message(record, message, step=context.state.step)
    context.changes.counts.messages += 1
    # The answers of a session itself are one record each.
    context.state.pending_answer = (
        PendingAnswer(message_id, record.uuid or message_id, len(parts), context.position)
        if context.is_subagent
        else None
    )


def _add_calls(context: QwenContext, record: QwenRecord, parts: list[ContentPart], pending: PendingAnswer) -> None:
    message = Message(
        id=pending.message,
        role="assistant",
        parts=tuple(_answer_parts(context, record, parts, pending.message, pending.parts)),
    )
    context.add_piece(record, message, pending.position)
    context.changes.counts.messages += 1
    pending.record, pending.parts = record.uuid or pending.record, pending.parts + len(parts)


def _facts_of(record: QwenRecord) -> dict[str, Any]:
    facts = {
        "context_window_size": record.context_window_size,
        "agent_run_id": record.agent_run_id,
        "agent_round": record.agent_round,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _answer_parts(
    context: QwenContext, record: QwenRecord, parts: Sequence[ContentPart], message_id: str, first: int
) -> Iterator[Part]:
    for number, part in enumerate(parts, first):
        part_id = f"{message_id}.{number}"
        if part.is_thought:
            data = provider_data(part, record.model)
            yield ReasoningPart(id=part_id, text=part.wire.text or "", provider=data)
        elif part.wire.function_call is not None:
            yield _call_part(context, record, part, part_id, message_id)
        else:
            yield to_part(part, part_id)


def _call_part(
    context: QwenContext, record: QwenRecord, part: ContentPart, part_id: str, message_id: str
) -> ToolCallPart:
    call = part.wire.function_call
    assert call is not None
    name, call_id = call.name or "", call.id or part_id
    found = ToolCallPart(
        id=part_id,
        tool_call_id=call_id,
        tool_name=name,
        kind=TOOL_KINDS.get(name, ToolKind.OTHER),
        input=compact(call.args) if isinstance(call.args, Raw) else UNSET,
        started_at=record.timestamp,
        provider=provider_data(part, record.model),
    )
    is_copied = context.carried is not None or context.copied_from(record) is not None
    context.state.calls[call_id] = open_call(found, message_id, is_copied=is_copied)
    return found


# -- results


def read_result(context: QwenContext, record: QwenRecord) -> None:
    """Read the result of a call. One that names no call is a message of the program."""
    # The Gemini API has a result's files beside its `functionResponse` and not in it.
    responses, others = split_responses(parts_in(record))
    if not responses:
        read_user(context, record)
        return
    facts, shown = _scheduler_facts(context, record)
    for response in responses:
        call_id = response.call_id or facts.call_id or ""
        known = context.state.durations.pop(call_id, None)
        result = make_result(
            call_id,
            response.name,
            response._replace(content=(*response.content, *(to_part(part, None) for part in others))),
            # One record may hold several responses, but `toolCallResult` describes only one call.
            status=facts.status if facts.call_id in (None, call_id) else None,
            at=record.timestamp,
            duration_ms=known if facts.duration_ms is None else round(facts.duration_ms),
            shown=shown,
        )
        if context.carried is not None and context.carried.status is not None:
            result = msgspec.structs.replace(result, status=context.carried.status)
        if record.others:
            result = msgspec.structs.replace(result, metadata={NAME: record.others})
        change = ResultChange(
            session_id=context.session_id,
            tool_call_id=call_id,
            result=result,
            position=context.position,
            record=(context.position, context.length),
            record_ids=(record.uuid,) if record.uuid is not None else (),
            message_id=message_of(context.state.calls, call_id),
        )
        context.changes.results.append(change)
        if result.status == "aborted" and context.carried is None:
            _add_interrupt(context, record, change.message_id)
        # What is beside the responses, such as an image, belongs to the first of them.
        others = []
    context.changes.counts.results += 1


def _add_interrupt(context: QwenContext, record: QwenRecord, message_id: str | None) -> None:
    """Add that the user stopped the calls of a message: nothing but their results says so."""
    if message_id is None or context.state.interrupted == message_id:
        return
    context.state.interrupted = message_id
    event = InterruptEvent(
        id=f"{message_id}.interrupt", created_at=record.timestamp, during="tool", message_id=message_id, derived=True
    )
    context.add_event(record, event)
    # The record is a result, and counts as one.
    context.changes.counts.events -= 1


def _scheduler_facts(context: QwenContext, record: QwenRecord) -> tuple[ToolCallResult, Raw | UnsetType]:
    raw = record.tool_call_result
    if not isinstance(raw, Raw):
        return ToolCallResult(), UNSET
    found = TOOL_RESULTS.decode(bytes(raw))
    if isinstance(found, str):
        context.report(found, json_path="$.toolCallResult")
        return ToolCallResult(), UNSET
    for problem in found.problems:
        context.report(problem.reason, problem.severity, f"$.toolCallResult{problem.json_path or ''}")
    return found.record, fields_of(found.json).get("resultDisplay", UNSET)
