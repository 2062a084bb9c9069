"""What the runtimes for agents of other frameworks share: a chat's calls and results in the form that models get."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Raw

from turnlog.model import Message, TextPart, ToolCallPart, ToolResult, ToolState
from turnlog.model.codec import parse_json
from turnlog.model.parts import ResultStatus

INTERRUPTED: Final = "The tool call was interrupted; there is no result."

DENIED: Final = "The tool call was denied."


def text_result(call_id: str, text: str, status: ResultStatus = "success") -> ToolResult:
    """A result whose output, or error, is a text; JSON is shown as JSON."""
    name = f"{call_id}:result"
    if status == "success":
        return ToolResult(id=name, content=(TextPart(text=text),))
    return ToolResult(id=name, status=status, error_text=text)


def arguments(text: str) -> dict[str, Any]:
    """The arguments of a call, as fields of `ToolInputAvailable`: JSON, or the text that is none."""
    try:
        parse_json(text)
    except (ValueError, RecursionError):
        return {"input_text": text}
    return {"input": Raw(text.encode())}


def outcome_text(call: ToolCallPart) -> str:
    """The text of a call's outcome for a model: its output or error, or that it was denied or interrupted."""
    last = call.results[-1] if call.results else None
    if last is None or last.status == "aborted":
        return INTERRUPTED
    if last.status == "denied":
        return last.error_text or DENIED
    return call.output_text or last.error_text or ""


def is_open(call: ToolCallPart) -> bool:
    """Whether the page or its user has still to say what comes of a call, or has just said that it may run."""
    return not call.results and call.state in (ToolState.APPROVAL_REQUESTED, ToolState.APPROVAL_RESPONDED)


def calls_of(messages: Iterable[Message]) -> list[ToolCallPart]:
    """The calls that run here, in order."""
    parts = [part for message in messages for part in message.parts]
    return [part for part in parts if isinstance(part, ToolCallPart) and not part.provider_executed]


def waits(history: list[Message]) -> bool:
    """Whether a permission request of the newest message has no answer yet."""
    return any(call.state is ToolState.APPROVAL_REQUESTED for call in calls_of(history[-1:]))


def decisions(history: list[Message]) -> dict[str, tuple[bool, str | None]]:
    """The page's answers to the permission requests of the newest message: id of the call -> whether, and why."""
    return {
        call.tool_call_id: (call.approval is not None and call.approval.approved is True, _reason(call))
        for call in calls_of(history[-1:])
        if call.state is ToolState.APPROVAL_RESPONDED and not call.results
    }


def _reason(call: ToolCallPart) -> str | None:
    return None if call.approval is None else call.approval.reason


def approval_id(call_id: str) -> str:
    """The id of a call's permission request."""
    return f"{call_id}:approval"
