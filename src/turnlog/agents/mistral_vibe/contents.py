"""What rows hold -> parts of messages, results of calls, and tokens."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from turnlog.agents.claude_code.contents import from_base64
from turnlog.agents.decoding import list_of, object_of, text_of
from turnlog.agents.mistral_vibe.rows import VibeCall, VibeRow
from turnlog.agents.mistral_vibe.store import Json
from turnlog.model import (
    Approval,
    FilePart,
    Part,
    ReasoningPart,
    ResultStatus,
    StopReason,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolState,
    UnknownPart,
    Usage,
)
from turnlog.model.parts import STATE_OF_STATUS

TOOL_KINDS: dict[str, ToolKind] = {
    "ask_user_question": ToolKind.ASK,
    "bash": ToolKind.EXECUTE,
    "edit": ToolKind.EDIT,
    "exit_plan_mode": ToolKind.SWITCH_MODE,
    "grep": ToolKind.SEARCH,
    "output": ToolKind.READ,
    "read": ToolKind.READ,
    "read_file": ToolKind.READ,
    "run_typescript": ToolKind.EXECUTE,
    "search_replace": ToolKind.EDIT,
    "search_tool_functions": ToolKind.SEARCH,
    "skill": ToolKind.READ,
    "spawn": ToolKind.SUBAGENT,
    "start": ToolKind.EXECUTE,
    "task": ToolKind.SUBAGENT,
    "todo": ToolKind.THINK,
    "web_fetch": ToolKind.FETCH,
    "web_search": ToolKind.FETCH,
    "write": ToolKind.EDIT,
    "write_file": ToolKind.EDIT,
}
"""The last part of a tool's name -> its kind, of 2.8 to 3.0; any other tool is of kind `other`."""

STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "tool_call": "tool_use",
    "length": "length",
    "content_filter": "content_filter",
}
"""`finish_reason` of a call of the model -> why it stopped."""

_DATA_URL = ";base64,"


def time_of(milliseconds: object) -> datetime | None:
    """The time of a number of Unix milliseconds; None if it is none."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def raw(value: Any) -> Raw:
    """A value as JSON."""
    return Raw(msgspec.json.encode(value))


def usage_of(usage: Json | None, *, exact: bool = True) -> Usage | None:
    """Tokens in disjoint buckets; None if none were counted. The input that is logged includes what was cached."""
    counts = {name: value for name, value in (usage or {}).items() if isinstance(value, int) and value >= 0}
    total = counts.get("input_tokens", counts.get("inputTokens"))
    cached = counts.get("cached_input_tokens", counts.get("cachedInputTokens"))
    output = counts.get("output_tokens", counts.get("outputTokens"))
    if not total and not output:
        return None
    return Usage(
        input=None if total is None else max(0, total - (cached or 0)),
        cache_read=cached,
        output=output,
        exactness="exact" if exact else "estimated",
    )


# -- parts


def block_part(block: Json, part_id: str) -> Part:
    """A block of a content."""
    match block.get("type"):
        case "text" if isinstance(block.get("text"), str):
            return TextPart(id=part_id, text=block["text"])
        case "image" | "resource_link" if isinstance(block.get("uri"), str):
            return _file_part(block, part_id)
        case kind:
            return UnknownPart(id=part_id, kind=str(kind), data=raw(block))


def _file_part(block: Json, part_id: str) -> Part:
    uri, media_type = block["uri"], text_of(block.get("media_type") or block.get("mediaType"))
    head, found, body = uri.partition(_DATA_URL)
    data = from_base64(body) if found and head.startswith("data:") else None
    if data is not None:
        return FilePart(id=part_id, media_type=media_type or head.removeprefix("data:"), data=data)
    return FilePart(
        id=part_id, media_type=media_type or "application/octet-stream", filename=text_of(block.get("name")), url=uri
    )


def parts_of(row: VibeRow) -> Iterator[Part]:
    """The parts of an answer or a prompt: what the entries hold, then the calls."""
    at = began_at(row)
    number = 0
    for entry in row.entries:
        if entry.get("type") == "reasoning":
            yield ReasoningPart(id=f"{row.id}.{number}", text=text_of(entry.get("text")) or "")
            number += 1
            continue
        for block in list_of(entry.get("content")):
            yield block_part(object_of(block), f"{row.id}.{number}")
            number += 1
    for place, call in enumerate(row.calls, number):
        yield call_part(call, f"{row.id}.{place}", at)


def began_at(row: VibeRow) -> datetime | None:
    """The time of a prompt or an answer: of its first entry, of its first call, or when the model ended it."""
    entries = [*row.entries, *(object_of(call.effect) for call in row.calls)]
    return time_of(entries[0].get("createdAt") if entries else None) or time_of(row.at)


def call_part(call: VibeCall, part_id: str, at: datetime | None) -> ToolCallPart:
    """A call, with its result if it has one. Without an entry it began when its answer (`at`) did."""
    effect = object_of(call.effect)
    detail = object_of(effect.get("detail"))
    name = call.name or text_of(detail.get("toolName")) or ""
    value, text = _input_of(call, detail)
    result = result_of(call)
    return ToolCallPart(
        id=part_id,
        tool_call_id=call.id,
        tool_name=name,
        kind=TOOL_KINDS.get(name.rpartition(".")[2], ToolKind.OTHER),
        input=value,
        input_text=text,
        state=ToolState.INPUT_AVAILABLE if result is None else STATE_OF_STATUS[result.status],
        approval=_approval_of(call, effect),
        parent_tool_call_id=call.program,
        started_at=time_of(effect.get("createdAt")) or at,
        results=() if result is None else (result,),
    )


def _input_of(call: VibeCall, detail: Json) -> tuple[Any, str | None]:
    """The input as JSON, or as a text if it is none. What the model wrote comes before what the program made of it."""
    if call.arguments is None:
        return (raw(detail["input"]), None) if "input" in detail else (UNSET, None)
    data = call.arguments.encode(errors="replace")
    try:
        msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return UNSET, call.arguments
    return Raw(data), None


def _approval_of(call: VibeCall, effect: Json) -> Approval | None:
    state = object_of(effect.get("state"))
    decision = text_of(state.get("decision"))
    if decision is None:
        return None
    return Approval(
        id=f"{call.id}.approval", approved=decision == "execute", source=text_of(state.get("approvalSource"))
    )


# -- results


class _Outcome(NamedTuple):
    status: ResultStatus
    error: str | None


_RUNNING = ("running", "pending", "blocked", "queued")


def result_of(call: VibeCall) -> ToolResult | None:
    """The result of a call; None while it runs."""
    effect = call.effect
    if effect is None:
        return _result_in_context(call) if call.output is not None else None
    state = object_of(effect.get("state"))
    if state.get("status") in _RUNNING or not state:
        return None
    output = object_of(state.get("output"))
    answered = output.get("structured_content")
    code = object_of(answered).get("returncode")
    outcome = _outcome_of(state, code)
    text = _text_of(answered) if answered is not None else text_of(state.get("outputText")) or ""
    identity = f"{call.id}.result"
    blocks = [
        block_part(object_of(block), f"{identity}.{place}")
        for place, block in enumerate(list_of(output.get("content")))
    ]
    return ToolResult(
        id=identity,
        status=outcome.status,
        content=tuple(blocks) or ((TextPart(id=f"{identity}.0", text=text),) if text else ()),
        error_text=outcome.error if outcome.status != "success" else None,
        exit_code=code if isinstance(code, int) and not isinstance(code, bool) else None,
        completed_at=time_of(effect.get("updatedAt")),
    )


def _result_in_context(call: VibeCall) -> ToolResult:
    text = call.output or ""
    error = object_of(object_of(object_of(_json(text)).get("result")).get("error"))
    return ToolResult(
        id=f"{call.id}.result",
        status="error" if call.failed else "success",
        content=(TextPart(id=f"{call.id}.result.0", text=text),),
        error_text=(text_of(error.get("message")) or text) if call.failed else None,
    )


def _outcome_of(state: Json, code: object) -> _Outcome:
    reason = text_of(object_of(state.get("error")).get("message")) or text_of(state.get("reason"))
    if state.get("status") == "cancelled":
        return _Outcome("aborted", reason)
    if state.get("decision") not in (None, "execute"):
        return _Outcome("denied", reason)
    output = object_of(state.get("output"))
    if state.get("status") == "failed" or output.get("type") == "failure":
        return _Outcome("error", reason)
    if code not in (None, 0):
        return _Outcome("error", text_of(object_of(output.get("structured_content")).get("stderr")))
    return _Outcome("success", None)


def _text_of(answered: object) -> str:
    """What a tool answered, as a text: the output of a command, the content of a file, or JSON."""
    found = object_of(answered)
    if "stdout" in found or "stderr" in found:
        return f"{found.get('stdout') or ''}{found.get('stderr') or ''}"
    content = found.get("content")
    return content if isinstance(content, str) else msgspec.json.encode(answered).decode()


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text.encode(errors="replace"))
    except (msgspec.MsgspecError, RecursionError):
        return None


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """What a tool answered, from the line of its row; None if there is none."""
    try:
        row = msgspec.json.decode(record, type=VibeRow)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    for call in row.calls:
        if call.id == tool_call_id:
            answered = object_of(object_of(object_of(call.effect).get("state")).get("output")).get("structured_content")
            return None if answered is None else raw(answered)
    return None
