"""OpenCode's tools by kind, and its tool parts: states, inputs, results, the sessions they started."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from turnlog.agents.opencode.files import file_part
from turnlog.agents.opencode.ids import NAME, moment, whole
from turnlog.agents.opencode.outputs import spilled_to
from turnlog.agents.opencode.providers import provider_of
from turnlog.agents.opencode.rows import Row, list_of, object_of, text_of
from turnlog.agents.reading import other_fields
from turnlog.model import Part, ResultStatus, TextPart, ToolCallPart, ToolKind, ToolResult, ToolState
from turnlog.model.codec import to_json

KINDS: dict[str, ToolKind] = {
    "apply_patch": ToolKind.EDIT,
    "bash": ToolKind.EXECUTE,
    "codesearch": ToolKind.SEARCH,
    "edit": ToolKind.EDIT,
    "glob": ToolKind.SEARCH,
    "grep": ToolKind.SEARCH,
    "list": ToolKind.SEARCH,
    "lsp": ToolKind.SEARCH,
    "multiedit": ToolKind.EDIT,
    "patch": ToolKind.EDIT,
    "plan_enter": ToolKind.SWITCH_MODE,
    "plan_exit": ToolKind.SWITCH_MODE,
    "question": ToolKind.ASK,
    "read": ToolKind.READ,
    "shell": ToolKind.EXECUTE,
    "skill": ToolKind.READ,
    "task": ToolKind.SUBAGENT,
    "todoread": ToolKind.THINK,
    "todowrite": ToolKind.THINK,
    "webfetch": ToolKind.FETCH,
    "websearch": ToolKind.FETCH,
    "write": ToolKind.EDIT,
}
"""Tools that OpenCode offers to the model; any other, MCP's (`<server>_<tool>`) included, is of kind `other`."""

_INVALID = "invalid"
"""The tool that stands for a call of a tool that is not there, or with arguments that do not fit."""

_ENDED = ("completed", "error")
_FIELDS = frozenset({"id", "sessionID", "messageID", "type", "callID", "tool", "state", "metadata"})
_STATE_FIELDS = frozenset(
    {"status", "input", "raw", "output", "title", "metadata", "time", "error", "attachments"},
)
_DENIED = (
    "rejected permission",
    "permissionrejectederror",
    "permissioncorrectederror",
    "permissiondeniederror",
    "questionrejectederror",
    "specified a rule which prevents",
    "user dismissed",
)
_ABORTED = (
    "tool execution aborted",
    "tool execution interrupted",
    "tool execution was interrupted",
    "task cancelled",
    "aborted",
)
_STOPPED = re.compile(r"<(?:bash|shell)_metadata>[^<]*\bUser aborted the command\b[^<]*</(?:bash|shell)_metadata>\s*\Z")
"""How the output of a command ends that the user stopped: its call is completed all the same, without an exit code."""
_END = 1024
"""Characters of an output in which that stands."""


class ReadCall(NamedTuple):
    """A tool part as a call, when its result arrived (Unix milliseconds), and the session it started."""

    part: ToolCallPart
    ended: int | None
    child: str | None


def read_call(part: Row, part_id: str, model: str | None, *, over: bool) -> ReadCall:
    """The call that a `tool` part is. What still runs in a message that the agent has left behind never will end."""
    state = object_of(part.get("state"))
    status = state.get("status")
    given = object_of(state.get("input"))
    facts = object_of(state.get("metadata"))
    time = object_of(state.get("time"))
    call_id = str(part.get("callID") or part_id)
    name = str(part.get("tool") or "")
    result = _result(call_id, name, state, facts, time, over=over)
    ended = None if result is None else whole(time.get("end")) or None
    call = ToolCallPart(
        id=part_id,
        tool_call_id=call_id,
        tool_name=str(given.get("tool") or name) if name == _INVALID else name,
        kind=KINDS.get(name, ToolKind.OTHER),
        state=_state(status, result),
        title=text_of(state.get("title")),
        started_at=moment(time.get("start")),
        provider_executed=object_of(part.get("metadata")).get("providerExecuted") is True,
        provider=provider_of(part.get("metadata"), model),
        results=() if result is None else (result,),
        metadata=_metadata(name, {} if status in _ENDED else facts, other_fields(part, _FIELDS)),
    )
    raw = state.get("raw")
    if status == "pending" and isinstance(raw, str) and raw and not given:
        call = msgspec.structs.replace(call, input_text=raw)
    elif "input" in state:
        call = msgspec.structs.replace(call, input=to_json(state["input"]))
    return ReadCall(call, ended, text_of(facts.get("sessionId")) or text_of(facts.get("sessionID")))


def structured_of(part: Row) -> msgspec.Raw | None:
    """OpenCode's own facts about a result."""
    facts = object_of(object_of(part.get("state")).get("metadata"))
    return to_json(facts) if facts else None


def _result(call_id: str, name: str, state: Row, facts: Row, time: Row, *, over: bool) -> ToolResult | None:
    status = state.get("status")
    if status not in _ENDED and not over:
        return None
    error = text_of(state.get("error")) if status == "error" else None
    if name == _INVALID and status == "completed":
        error = text_of(object_of(state.get("input")).get("error")) or text_of(state.get("output"))
    text = text_of(state.get("output")) if status == "completed" else error or text_of(facts.get("output"))
    start, end = whole(time.get("start")), whole(time.get("end"))
    exit_code = facts.get("exit")
    compacted = time.get("compacted")
    return ToolResult(
        id=f"{call_id}:{status if status in _ENDED else 'aborted'}",
        status="aborted" if error is None and _is_stopped(text, exit_code) else _status(status, error),
        content=_content(call_id, text, state.get("attachments")),
        structured=to_json(facts) if facts else UNSET,
        error_text=error,
        spilled_to=spilled_to(text, facts),
        exit_code=exit_code if type(exit_code) is int else None,
        completed_at=moment(time.get("end")),
        duration_ms=end - start if start and end >= start else None,
        metadata={NAME: told} if (told := _told_of_result(state, compacted)) else {},
    )


def _told_of_result(state: Row, compacted: object) -> dict[str, Any]:
    return {**({"compacted": compacted} if compacted else {}), **other_fields(state, _STATE_FIELDS)}


def _status(status: object, error: str | None) -> ResultStatus:
    if status not in _ENDED:
        return "aborted"
    words = (error or "").lower()
    if status == "error" and any(phrase in words for phrase in _DENIED):
        return "denied"
    if status == "error" and words.startswith(_ABORTED):
        return "aborted"
    return "success" if error is None and status == "completed" else "error"


def _is_stopped(text: str | None, exit_code: object) -> bool:
    return text is not None and exit_code is None and _STOPPED.search(text[-_END:]) is not None


def _state(status: object, result: ToolResult | None) -> ToolState:
    if result is not None:
        return {
            "success": ToolState.OUTPUT_AVAILABLE,
            "error": ToolState.OUTPUT_ERROR,
            "aborted": ToolState.ABORTED,
            "denied": ToolState.OUTPUT_DENIED,
        }[result.status]
    return ToolState.INPUT_STREAMING if status == "pending" else ToolState.INPUT_AVAILABLE


def _content(call_id: str, text: str | None, attachments: object) -> tuple[Part, ...]:
    content: list[Part] = [] if text is None else [TextPart(id=f"{call_id}:0", text=text)]
    content += [
        file_part(object_of(attachment), f"{call_id}:{number}")
        for number, attachment in enumerate(list_of(attachments), 1)
    ]
    return tuple(content)


def _metadata(name: str, running: Row, others: dict[str, Any]) -> dict[str, Any]:
    known: Row = {**({"recorded_as": name} if name == _INVALID else {}), **others}
    if running.get("output"):
        known["output"] = running["output"]
    return {NAME: known} if known else {}
