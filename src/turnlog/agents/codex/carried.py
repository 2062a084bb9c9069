"""The lines at the beginning of a log that turnlog handed over from a session of another agent.

Their marks say which message each is of, and what the items of Codex cannot say. Nothing has to be inferred. The
session's own times are those of the lines that follow.
"""

from __future__ import annotations

from datetime import UTC

import msgspec

from turnlog.agents.codex.assistant_messages import add_call, input_of
from turnlog.agents.codex.fold_context import TURN_ORIGINS, CodexContext
from turnlog.agents.codex.records import ITEMS, UNREADABLE, CodexLine, Item, decode_item
from turnlog.agents.codex.responses_api import parts_of, text_of
from turnlog.agents.codex.state import CodexPendingCall, id_in_thread, next_number
from turnlog.agents.codex.tool_results import add_result, output_text, parts_of_output
from turnlog.agents.codex.user_messages import set_prompt_title
from turnlog.agents.decoding import aware, fields_of, raw_at
from turnlog.agents.handoffs import Carried, read_mark
from turnlog.model import Message, Origin, TextPart, ToolResult


def read_carried(context: CodexContext, line: CodexLine) -> None:
    """Read one of these lines. Events repeat what the items say, for the screen."""
    moment = line.timestamp
    context.written_at = aware(moment) if moment is not None and moment.tzinfo is not UTC else moment
    context.session.position = context.position
    item = _item_of(context, line)
    carried = None if item is None else read_mark(item.turnlog)
    if item is None or carried is None:
        _read_event(context, line)
    elif item.type == "message" and item.role == "user":
        _read_prompt(context, item, carried)
    elif item.call_id is not None and item.type.endswith("_output"):
        _read_output(context, item, carried)
    else:
        _read_answer(context, item, carried)


def _item_of(context: CodexContext, line: CodexLine) -> Item | None:
    if line.type != "response_item":
        return None
    try:
        return decode_item(context.payload)
    except UNREADABLE:
        return ITEMS.salvage(context.payload, context.report)


def _read_event(context: CodexContext, line: CodexLine) -> None:
    fields = fields_of(context.payload)
    name = fields.get("thread_name")
    if name is not None:
        context.session.titles["custom"] = msgspec.json.decode(name, type=str)
    kind = fields.get("type")
    name = msgspec.json.decode(kind, type=str) if line.type == "event_msg" and kind is not None else ""
    context.add_record_event(f"{line.type}/{name}" if name else line.type, context.payload)


def _id_of(context: CodexContext) -> str:
    return id_in_thread(context.external_id, f"carried-{context.position}")


def _read_prompt(context: CodexContext, item: Item, carried: Carried) -> None:
    origin = carried.origin or Origin.PROMPT
    message_id = _id_of(context)
    context.state.carried_message = carried.message
    context.add_message(
        Message(
            id=message_id,
            role="user" if origin in TURN_ORIGINS else "developer",
            parts=parts_of(item.content, message_id, lambda index: raw_at(context.payload, "content", index)),
            origin=origin,
            created_at=context.written_at,
        )
    )
    if origin in TURN_ORIGINS:
        set_prompt_title(context, text_of(item.content))
    context.changes.counts.messages += 1


def _read_answer(context: CodexContext, item: Item, carried: Carried) -> None:
    state = context.state
    draft = context.current_draft() if state.carried_message == carried.message else None
    if draft is None:
        draft = context.begin_message(_id_of(context))
        draft.model = carried.model
        state.carried_message = carried.message
    draft.records.append((context.position, context.length, None))
    draft.add_time(context.written_at)
    context.changes.counts.messages += 1
    if item.type == "message":
        number = next_number(state, draft.pending)
        draft.parts[number] = TextPart(id=f"{draft.id}.{number}", text=text_of(item.content))
        return
    call = add_call(context, draft, item.call_id, item.name or "")
    call.input, call.input_text = input_of(item)
    state.remember_call(call.id, CodexPendingCall(draft.id, call.name, call.number))


def _read_output(context: CodexContext, item: Item, carried: Carried) -> None:
    call_id = item.call_id or ""
    call = context.state.calls.get(call_id)
    if call is not None:
        call.has_output = True
    output = item.output
    text = output_text(output)
    result = ToolResult(
        id=f"{call_id}:carried",
        status=carried.status or "success",
        content=parts_of_output(context, output) if isinstance(output, list) else (TextPart(text=text),),
        error_text=text if carried.status == "error" else None,
        completed_at=context.written_at,
    )
    add_result(context, call_id, call, result, (context.position, context.length))
    context.changes.counts.results += 1
