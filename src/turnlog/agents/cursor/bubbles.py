"""The fold of a conversation in the editor: a line for each bubble, in the order of the conversation.

A bubble holds a thought, a text or one call with its result. No field says which bubbles one model call gave, so this
is inferred: an answer is a thought, texts and calls in this order, and what does not fit behind begins the next one.
"""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.conversation import ConversationContext, ConversationFold
from turnlog.agents.cursor import NAME
from turnlog.agents.cursor.databases import SUBAGENT
from turnlog.agents.cursor.places import session_id
from turnlog.agents.cursor.tools import kind_of, time_of
from turnlog.agents.decoding import Count, aware, clean_json, object_of, text_of, value_of
from turnlog.agents.jsonl import UNREADABLE, JsonLines
from turnlog.agents.row_files import ROWS, RowLine, json_in, row_of
from turnlog.model import (
    ErrorEvent,
    FilePart,
    Message,
    Origin,
    Part,
    ReasoningPart,
    ResultStatus,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    Usage,
)
from turnlog.model.merge import add_result


class _Wire(msgspec.Struct, rename="camel", gc=False):
    pass


class BubbleThought(_Wire, gc=False):
    """What the model thought."""

    text: str | None = None
    signature: str | None = None


class BubbleCall(_Wire, gc=False):
    """A call and its result (`toolFormerData`). Parameters and results are JSON in a text."""

    tool_call_id: str | None = None
    name: str | None = None
    status: str | None = None
    raw_args: str | None = None
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    user_decision: str | None = None


class BubbleModel(_Wire, gc=False):
    """The model of a call."""

    model_name: str | None = None


class TokenCount(_Wire, gc=False):
    """Tokens of a model call, 0 where Cursor did not count."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None


class Timing(_Wire, gc=False):
    """Unix milliseconds."""

    client_start_time: float | None = None
    client_end_time: float | None = None


class Bubble(_Wire, gc=False):
    """A bubble of a conversation. Of its many fields, those that say what happened."""

    bubble_id: str | None = None
    type: int | None = None
    text: str | None = None
    thinking: BubbleThought | None = None
    thinking_duration_ms: float | None = None
    tool_former_data: BubbleCall | None = None
    model_info: BubbleModel | None = None
    token_count: TokenCount | None = None
    timing_info: Timing | None = None
    created_at: datetime | None = None
    images: list[Raw] | None = None
    error_details: Raw | UnsetType = UNSET
    request_id: str | None = None
    unified_mode: int | None = None


BUBBLES = JsonLines(Bubble, first_keys=(), plausible=lambda bubble: True)
"""Reads a bubble out of its JSON."""

_USER, _ASSISTANT = 1, 2

_AUTO = "default"
"""The name of the model where Cursor chooses it."""

_THOUGHT, _TEXT, _CALL = 0, 1, 2
"""The order of what one model call gives."""

_OUTCOMES: dict[str, ResultStatus] = {
    "completed": "success",
    "success": "success",
    "error": "error",
    "cancelled": "aborted",
    "aborted": "aborted",
    "rejected": "denied",
}
"""`status` of a call that has ended; others are still running."""


class BubbleFold(ConversationFold[RowLine]):
    """Reads the bubbles of a conversation."""

    records = ROWS
    says_results = True

    def session_id(self) -> str:
        """The path of a conversation names it."""
        return self._source.session_id or session_id(self._source.path.rpartition("#")[2])

    def read(self, context: ConversationContext, record: RowLine) -> None:
        """See `ConversationFold.read`."""
        # A checkpoint takes bubbles out of the conversation; an earlier version of the rows has them.
        context.state.is_branched = True
        if record.note == SUBAGENT:
            context.state.notes["subagent"] = "yes"
        found = BUBBLES.decode(json_in(record, "value") or b"null")
        if isinstance(found, str):
            context.report(found)
            context.changes.counts.unreadable += 1
            return
        for problem in found.problems:
            context.report(problem.reason, problem.severity, problem.json_path)
        bubble = found.record
        identity = bubble.bubble_id or str(row_of(record).get("key")).rpartition(":")[2]
        if bubble.type == _USER:
            self._read_prompt(context, bubble, identity)
        elif bubble.type == _ASSISTANT:
            self._read_answer(context, bubble, identity)
        else:
            context.add_record(f"bubble of type {bubble.type}", known=False)

    def _read_prompt(self, context: ConversationContext, bubble: Bubble, identity: str) -> None:
        notes = context.state.notes
        notes.pop("answer", None)
        # Some versions name the model only with the prompt.
        notes["model"] = _model_of(bubble) or ""
        is_subagent = "subagent" in notes and not context.state.turn
        parts: list[Part] = [TextPart(id=f"{identity}.0", text=bubble.text or "")]
        images = [_image(raw, f"{identity}.{number}") for number, raw in enumerate(bubble.images or (), 1)]
        parts += [image for image in images if image is not None]
        context.add(
            Message(
                id=identity,
                role="user",
                parts=tuple(parts),
                origin=Origin.SUBAGENT_PROMPT if is_subagent else Origin.PROMPT,
                created_at=_time_of(bubble),
                metadata=_metadata(bubble, lost_images=images.count(None)),
            )
        )

    def _read_answer(self, context: ConversationContext, bubble: Bubble, identity: str) -> None:
        phase, message_id, number = self._place(context, bubble, identity)
        notes = context.state.notes
        at = _time_of(bubble)
        timing = bubble.timing_info
        ended = None if timing is None else time_of(timing.client_end_time)
        part = _with_result(_part_of(bubble, f"{message_id}.{number}", phase), bubble.tool_former_data, identity, ended)
        message = Message(
            id=message_id,
            role="assistant",
            parts=() if part is None else (part,),
            created_at=at,
            completed_at=ended,
            model=_model_of(bubble) or notes.get("model") or None,
            request_id=bubble.request_id,
            usage=_usage_of(bubble.token_count),
            metadata=_metadata(bubble),
        )
        if message_id == identity:
            context.add(message)
        else:
            context.add_again(message)
        error = _error_in(bubble.error_details)
        if error is not None:
            context.add_event(ErrorEvent(id=f"{identity}.error", created_at=at, error_text=error))

    def _place(self, context: ConversationContext, bubble: Bubble, identity: str) -> tuple[int, str, int]:
        """The phase of a bubble, the message that it is a part of, and its number there."""
        phase = _CALL if bubble.tool_former_data is not None else _THOUGHT if bubble.thinking is not None else _TEXT
        notes = context.state.notes
        before, _, place = notes.get("answer", "").partition(" ")
        last, _, count = place.partition(" ")
        # No bubble names its model call. One gives thoughts, then text, then calls: where this order begins again, the
        # next call does.
        if before and int(last) <= phase and not (phase == _THOUGHT == int(last)):
            message_id, number = before, int(count) + 1
        else:
            message_id, number = identity, 0
        notes["answer"] = f"{message_id} {phase} {number}"
        return phase, message_id, number


def _model_of(bubble: Bubble) -> str | None:
    name = bubble.model_info.model_name if bubble.model_info is not None else None
    return name if name and name != _AUTO else None


def _time_of(bubble: Bubble) -> datetime | None:
    if bubble.created_at is not None:
        return aware(bubble.created_at)
    return None if bubble.timing_info is None else time_of(bubble.timing_info.client_start_time)


def _usage_of(count: TokenCount | None) -> Usage | None:
    """Tokens as Cursor counted them. Whether its input contains what was read from a cache, nothing says."""
    if count is None or not (count.input_tokens or count.output_tokens):
        return None
    return Usage(input=count.input_tokens, output=count.output_tokens, exactness="estimated")


def _metadata(bubble: Bubble, *, lost_images: int = 0) -> dict[str, Any]:
    known = {"unifiedMode": bubble.unified_mode, "images_without_content": lost_images or None}
    found = {name: value for name, value in known.items() if value is not None}
    return {NAME: found} if found else {}


def _image(raw: Raw, part_id: str) -> FilePart | None:
    """An image that is within the bubble; None for one of which only the place is known."""
    data = object_of(value_of(raw)).get("data")
    try:
        content = base64.b64decode(data, validate=True) if isinstance(data, str) else b""
    except ValueError:
        content = b""
    return FilePart(id=part_id, media_type="image/*", data=content) if content else None


def _part_of(bubble: Bubble, part_id: str, phase: int) -> Part | None:
    if phase == _CALL and bubble.tool_former_data is not None:
        return _call_part(bubble.tool_former_data, part_id, _time_of(bubble))
    if phase == _THOUGHT and bubble.thinking is not None:
        duration = bubble.thinking_duration_ms
        return ReasoningPart(
            id=part_id,
            text=bubble.thinking.text or "",
            redacted=not bubble.thinking.text,
            duration_ms=None if duration is None else max(0, round(duration)),
        )
    return TextPart(id=part_id, text=bubble.text) if bubble.text else None


def _call_part(call: BubbleCall, part_id: str, at: datetime | None) -> ToolCallPart:
    name = call.name or ""
    value, text = UNSET, None
    given = _json_in(call.raw_args) or _json_in(call.params)
    if given is not None:
        value = given
    elif call.raw_args:
        text = call.raw_args
    return ToolCallPart(
        id=part_id,
        tool_call_id=call.tool_call_id or part_id,
        tool_name=name,
        kind=kind_of(name),
        input=Raw(b"{}") if value is UNSET and text is None else value,
        input_text=text,
        started_at=at,
    )


def _with_result(part: Part | None, call: BubbleCall | None, identity: str, at: datetime | None) -> Part | None:
    """A call with its result, which is in the same bubble; any other part as it is."""
    if call is None or not isinstance(part, ToolCallPart):
        return part
    result = _result_of(call, f"{identity}.result", part.kind, at)
    return part if result is None else add_result(part, result)


def _json_in(value: Raw | str | UnsetType | None) -> Raw | None:
    """JSON that a field holds, as it is or in a text; None if it holds none."""
    if isinstance(value, Raw):
        json = clean_json(bytes(value))
        if not json.startswith(b'"'):
            return Raw(json) if json not in (b"null", b"") else None
        try:
            value = msgspec.json.decode(json, type=str)
        except UNREADABLE:
            return None
    if not isinstance(value, str) or not value:
        return None
    data = value.encode(errors="replace")
    try:
        msgspec.json.decode(data)
    except UNREADABLE:
        return None
    return Raw(data)


def _result_of(call: BubbleCall, identity: str, kind: ToolKind, at: datetime | None) -> ToolResult | None:
    """The result of a call that has ended."""
    outcome = _OUTCOMES.get(call.status or "")
    if outcome is None:
        return None
    json = _json_in(call.result)
    facts = {} if json is None else object_of(value_of(json))
    error = _error_in(call.error)
    text = text_of(facts.get("output")) or text_of(facts.get("contents"))
    if text is None and json is not None:
        text = bytes(json).decode()
    code = facts.get("exitCodeV2", facts.get("exitCode")) if kind is ToolKind.EXECUTE else None
    code = code if isinstance(code, int) and not isinstance(code, bool) else None
    if call.user_decision == "rejected" or facts.get("rejected") is True:
        outcome = "denied"
    # Cursor calls a command completed whatever its exit code is.
    elif outcome == "success" and code:
        outcome = "error"
    return ToolResult(
        id=identity,
        status=outcome,
        content=(TextPart(id=f"{identity}.0", text=text),) if text else (),
        error_text=None if outcome == "success" else error or text or outcome,
        exit_code=code,
        completed_at=at,
    )


def _error_in(value: Raw | UnsetType) -> str | None:
    """The words of an error: those that the model got, else those that the user saw, else all of it."""
    json = None if isinstance(value, UnsetType) else _json_in(value)
    if json is None:
        return None
    facts = object_of(value_of(json))
    words = (text_of(facts.get(name)) for name in ("modelVisibleErrorMessage", "clientVisibleErrorMessage", "message"))
    return next(filter(None, words), None) or bytes(json).decode()


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """The object that a bubble holds of a result; None if it holds none, or the record is no bubble."""
    try:
        line = msgspec.json.decode(record, type=RowLine)
        bubble = msgspec.json.decode(json_in(line, "value") or b"null", type=Bubble)
    except UNREADABLE:
        return None
    call = bubble.tool_former_data
    if call is None or (call.tool_call_id or tool_call_id) != tool_call_id:
        return None
    json = _json_in(call.result)
    return json if json is not None and bytes(json).lstrip().startswith(b"{") else None
