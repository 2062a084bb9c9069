"""Messages and results of Kimi Code: prompts, steps, what tools returned, and what the program wrote for the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import clean_json, value_of
from turnlog.agents.kimi.contents import (
    STOP_REASONS,
    TOOL_KINDS,
    input_of,
    part_of,
    parts_of,
    result_of,
    usage_of,
)
from turnlog.agents.kimi.fold_context import MOST_PROMPTS, KimiContext, Step, ToldCall
from turnlog.agents.kimi.records import (
    APPENDED,
    EVENTS,
    INPUT_ORIGINS,
    MESSAGES,
    ContextMessage,
    KimiRecord,
    LoopEvent,
    ToolOutcome,
    WireCall,
)
from turnlog.agents.open_calls import abort_calls, open_call
from turnlog.model import Message, Origin, Part, ResultStatus, TextPart, ToolCallPart, ToolKind
from turnlog.model.lenient_json import parse_json
from turnlog.model.merge import copy_part_id

TURN_ORIGINS = frozenset({Origin.PROMPT, Origin.SUBAGENT_PROMPT, Origin.COMMAND, Origin.SHELL})
"""Origins that begin a turn."""

_SUBAGENT_TRIGGER = "subagent"

_FAILURE = b'"<system>ERROR: '
"""How the text begins with which Kimi CLI says to the model that a tool failed; a migrated result has no other sign."""

_REFUSALS = frozenset({"rejected", "cancelled"})
"""Decisions about a call that refuse it."""


# -- messages of the context


def read_message(context: KimiContext, record: KimiRecord) -> None:
    """Read a message: a prompt, what the program wrote in its place, or what was copied from Kimi CLI."""
    found = MESSAGES.decode(clean_json(bytes(record.message))) if isinstance(record.message, Raw) else "no message"
    if isinstance(found, str):
        context.report(found, json_path="$.message")
        context.add_record(record.type, known=True)
        return
    for problem in found.problems:
        context.report(problem.reason, problem.severity, f"$.message{problem.json_path or ''}")
    message = found.record
    if message.role == "tool" and message.tool_call_id:
        # `kimi migrate` copies results as messages of the role `tool`, as Kimi CLI keeps them in its context.
        is_error = message.is_error or _FAILURE in bytes(message.content if isinstance(message.content, Raw) else b"")
        outcome = ToolOutcome(output=message.content, is_error=is_error, note=message.note)
        _add_result(context, message.tool_call_id, outcome)
    elif message.role == "assistant":
        _read_copied_answer(context, message)
    else:
        _read_input(context, message)


def _read_input(context: KimiContext, message: ContextMessage) -> None:
    facts: dict[str, Any] = message.others or {}
    # What a person typed has the kind `user`, or none in old versions: it says nothing more.
    if message.origin is not None and message.origin.kind not in ("user", ""):
        facts = {"origin": message.origin.kind, "variant": message.origin.variant or message.origin.name, **facts}
    input_message(
        context,
        message.id or context.record_id(),
        message.content,
        _origin_of(context, message),
        facts,
        is_system=message.role == "system",
    )


def input_message(
    context: KimiContext,
    message_id: str,
    content: Raw | UnsetType,
    origin: Origin,
    facts: dict[str, Any],
    *,
    is_system: bool = False,
) -> None:
    """Add what the user or the program sent to the model; a prompt begins a turn."""
    state = context.state
    if origin in TURN_ORIGINS:
        context.changes.messages += abort_calls(state.calls, context.session_id, context.position)
        state.calls.clear()
        state.turn += 1
        state.steps = 0
        # A killed process leaves a turn that was stopped without its end.
        state.cancelled = False
        state.undoable += 1
        # An undo returns to the message before a prompt, which no record names.
        state.prompts = [*state.prompts[1 - MOST_PROMPTS :], (message_id, state.leaf)]
    parts = tuple(parts_of(content, message_id))
    if origin in (Origin.PROMPT, Origin.SUBAGENT_PROMPT):
        context.set_title("".join([part.text for part in parts if isinstance(part, TextPart)]))
    context.add_message(
        Message(
            id=message_id,
            role="system" if is_system else "user" if origin in TURN_ORIGINS else "developer",
            parts=parts,
            origin=origin,
            created_at=context.at,
            metadata=context.metadata_of(facts),
        )
    )


def _origin_of(context: KimiContext, message: ContextMessage) -> Origin:
    if message.role != "user":
        return Origin.HARNESS
    wire = message.origin
    # Protocol 1.0, which a migration writes, names no origins.
    if wire is None:
        return Origin.PROMPT
    # The first message of a subagent's log is its task. Its origin is the program and not the user.
    if wire.kind == "system_trigger" and wire.name == _SUBAGENT_TRIGGER:
        return Origin.SUBAGENT_PROMPT
    origin = INPUT_ORIGINS.get(wire.kind, Origin.HARNESS)
    return Origin.SUBAGENT_PROMPT if context.is_subagent and origin is Origin.PROMPT else origin


def _read_copied_answer(context: KimiContext, message: ContextMessage) -> None:
    """Read an answer that is one record: Kimi Code writes its own ones in pieces."""
    context.state.steps += 1
    message_id = message.id or context.record_id()
    parts: list[Part] = list(parts_of(message.content, message_id))
    parts += [
        call_part(context, call, f"{message_id}.{number}", message_id)
        for number, call in enumerate(message.tool_calls or (), len(parts))
    ]
    context.add_message(
        Message(
            id=message_id,
            role="assistant",
            parts=tuple(parts),
            created_at=context.at,
            metadata=context.metadata_of(message.others or {}),
        ),
        step=context.state.steps,
    )


def call_part(context: KimiContext, call: WireCall, part_id: str, message_id: str) -> ToolCallPart:
    """A call, which waits for its result."""
    name = call.name or (call.function.name if call.function is not None else None) or ""
    # A copied call has Kimi CLI's shape, with both below `function`.
    arguments = call.arguments or (call.function.arguments if call.function is not None else None)
    call_id = call.id or part_id
    found, text = input_of(arguments)
    part = ToolCallPart(
        id=part_id,
        tool_call_id=call_id,
        tool_name=name,
        kind=TOOL_KINDS.get(name, ToolKind.OTHER),
        input=found,
        input_text=text,
        started_at=context.at,
    )
    context.state.calls[call_id] = open_call(part, message_id)
    return part


# -- steps


def read_loop_event(context: KimiContext, record: KimiRecord) -> None:
    """Read a piece of a step. One of an unknown kind, or of no step, is kept as a record."""
    found = EVENTS.decode(clean_json(bytes(record.event))) if isinstance(record.event, Raw) else "no event"
    if isinstance(found, str):
        context.report(found, json_path="$.event")
        context.add_record(record.type, known=True)
        return
    for problem in found.problems:
        context.report(problem.reason, problem.severity, f"$.event{problem.json_path or ''}")
    event = found.record
    reader = LOOP_EVENTS.get(event.type)
    if reader is None or not reader(context, event):
        context.add_record(f"{record.type}/{event.type}", known=reader is not None)


def _read_begin(context: KimiContext, event: LoopEvent) -> bool:
    state = context.state
    if not event.uuid:
        return False
    state.steps += 1
    # The pieces of a step are separate records: each is placed at the begin of the step, whose `uuid` it names.
    state.step = Step(message=event.uuid, position=context.position, number=state.steps)
    message = Message(
        id=event.uuid, role="assistant", created_at=context.at, metadata=context.metadata_of(event.others or {})
    )
    context.add_message(message, step=state.steps)
    return True


def _step_of(context: KimiContext, uuid: str | None) -> Step | None:
    step = context.state.step
    return step if step is not None and uuid == step.message else None


def _read_part(context: KimiContext, event: LoopEvent) -> bool:
    step = _step_of(context, event.step_uuid)
    if step is None or not isinstance(event.part, Raw):
        return False
    part = part_of(event.part, f"{step.message}.{step.parts}")
    step.parts += 1
    context.add_piece(step, parts=(part,))
    return True


def _read_call(context: KimiContext, event: LoopEvent) -> bool:
    step = _step_of(context, event.step_uuid)
    if step is None:
        return False
    # Calls come in the order in which they begin. The second copy of the message has them as the model wrote them, and
    # so their numbers.
    name, number, part_id = event.name or "", step.parts, copy_part_id(step.message, step.parts)
    call_id = event.tool_call_id or part_id
    step.parts += 1
    part = ToolCallPart(
        id=part_id,
        tool_call_id=call_id,
        tool_name=name,
        kind=TOOL_KINDS.get(name, ToolKind.OTHER),
        input=Raw(clean_json(bytes(event.args))) if isinstance(event.args, Raw) else UNSET,
        started_at=context.at,
        metadata=context.metadata_of(event.others or {}),
    )
    context.state.calls[call_id] = open_call(part, step.message)
    is_empty = isinstance(part.input, Raw) and value_of(part.input) == {}
    context.tell_call(step, call_id, ToldCall(number, name, is_empty))
    context.add_piece(step, parts=(part,))
    return True


def read_appended(context: KimiContext, record: KimiRecord) -> None:
    """Read of the second copy of an answer what only it has: the order of its calls, and arguments that are no JSON."""
    context.changes.counts.duplicates += 1
    found = APPENDED.decode(clean_json(bytes(record.message))) if isinstance(record.message, Raw) else "no message"
    if isinstance(found, str):
        context.report(found, json_path="$.message")
        return
    for problem in found.problems:
        context.report(problem.reason, problem.severity, f"$.message{problem.json_path or ''}")
    message = found.record.message
    written = {call.id: call for call in (message.tool_calls if message is not None else None) or () if call.id}
    step = context.take_told(written) if written else None
    if step is None:
        return
    known = [(call_id, step.calls[call_id]) for call_id in written if call_id in step.calls]
    numbers = sorted(call.number for _, call in known)
    parts = [
        ToolCallPart(
            id=f"{step.message}.{number}",
            tool_call_id=call_id,
            tool_name=call.tool,
            input_text=_broken(written[call_id].arguments) if call.is_empty else None,
        )
        for number, (call_id, call) in zip(numbers, known, strict=True)
    ]
    context.add_piece(step, parts=tuple(parts))
    # The record counts as a duplicate, and counts once.
    context.changes.counts.messages -= 1


def _broken(arguments: str | None) -> str | None:
    """Arguments that are no JSON, in whose place the program used an empty object."""
    try:
        parse_json(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments
    return None


def _read_result(context: KimiContext, event: LoopEvent) -> bool:
    if not event.tool_call_id or event.result is None:
        return False
    _add_result(context, event.tool_call_id, event.result, event.others)
    return True


def _add_result(context: KimiContext, call_id: str, outcome: ToolOutcome, others: dict[str, Any] | None = None) -> None:
    call = context.state.calls.pop(call_id, None)
    decision = context.state.decisions.pop(call_id, None)
    status: ResultStatus = "error" if outcome.is_error else "success"
    # The result of a stopped call is an error like any other. Only `turn.cancel` before it shows what it was.
    if status == "error" and context.state.cancelled:
        status = "aborted"
    elif status == "error" and decision in _REFUSALS:
        status = "denied"
    result = result_of(
        call_id,
        tuple(parts_of(outcome.output, f"{call_id}.result")),
        status,
        name=None if call is None else call.tool,
        at=context.at,
        duration_ms=outcome.duration_ms,
        metadata=context.metadata_of({"note": outcome.note, **(others or {})}),
    )
    context.add_result(call_id, result, None if call is None else call.message)


def _read_end(context: KimiContext, event: LoopEvent) -> bool:
    step = _step_of(context, event.uuid)
    if step is None:
        return False
    state = context.state
    # Up to protocol 1.4 `usage.record` comes later and must be recognised as a repetition.
    if event.usage is not None and step.usage is None:
        step.usage = event.usage
    context.add_piece(
        step,
        completed_at=context.at,
        # The name in the user's settings is better than none, and worse than that of `llm.request`.
        model=None if step.model else state.alias,
        response_id=event.message_id,
        stop_reason=STOP_REASONS.get(event.finish_reason or ""),
        raw_stop_reason=event.raw_finish_reason or event.finish_reason,
        usage=usage_of(event.usage),
        metadata=context.metadata_of(event.others or {}),
    )
    step.model = True
    return True


LOOP_EVENTS: dict[str, Callable[[KimiContext, LoopEvent], bool]] = {
    "step.begin": _read_begin,
    "content.part": _read_part,
    "tool.call": _read_call,
    "tool.result": _read_result,
    "step.end": _read_end,
}
"""Kind of a loop event -> what reads it; False if it belongs to no step that is known."""
