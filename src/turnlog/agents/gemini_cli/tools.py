"""Gemini CLI's tools by kind, and its calls with their results.

The scheduler of Gemini CLI logs a record of each call. Where a checkpoint has less, only the API's own call is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import NamedTuple
from zlib import crc32

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import fields_of, names_of, other_fields
from turnlog.agents.gemini_cli import NAME
from turnlog.agents.gemini_cli.fold_context import aware_or_none
from turnlog.agents.gemini_cli.records import (
    CALLS,
    ContentPart,
    FunctionCall,
    FunctionResult,
    GeminiCall,
    GeminiRecord,
    compact,
    parse_parts,
    provider_data,
    split_responses,
    to_part,
)
from turnlog.agents.handoffs import read_mark
from turnlog.agents.hook_events import HookFormat, read_call, read_prompt, read_result
from turnlog.agents.json_file import locate_items
from turnlog.model import Part, ResultStatus, TextPart, ToolCallPart, ToolKind, ToolResult, ToolState
from turnlog.model.parts import STATE_OF_STATUS

TOOL_KINDS: dict[str, ToolKind] = {
    "activate_skill": ToolKind.READ,
    "ask_user": ToolKind.ASK,
    "cli_help": ToolKind.SUBAGENT,
    "codebase_investigator": ToolKind.SUBAGENT,
    "delegate_to_agent": ToolKind.SUBAGENT,
    "enter_plan_mode": ToolKind.SWITCH_MODE,
    "exit_plan_mode": ToolKind.SWITCH_MODE,
    "generalist": ToolKind.SUBAGENT,
    "get_internal_docs": ToolKind.READ,
    "glob": ToolKind.SEARCH,
    "google_web_search": ToolKind.FETCH,
    "grep_search": ToolKind.SEARCH,
    "invoke_agent": ToolKind.SUBAGENT,
    "list_background_processes": ToolKind.READ,
    "list_directory": ToolKind.SEARCH,
    "read_background_output": ToolKind.READ,
    "read_file": ToolKind.READ,
    "read_many_files": ToolKind.READ,
    "replace": ToolKind.EDIT,
    "run_shell_command": ToolKind.EXECUTE,
    "save_memory": ToolKind.THINK,
    "search_file_content": ToolKind.SEARCH,
    "update_topic": ToolKind.THINK,
    "web_fetch": ToolKind.FETCH,
    "write_file": ToolKind.EDIT,
    "write_todos": ToolKind.THINK,
}
"""Tools that the versions read offer to the model; any other, MCP's included, is of kind `other`."""

OPEN_STATES: dict[str, ToolState] = {
    "validating": ToolState.INPUT_AVAILABLE,
    "scheduled": ToolState.INPUT_AVAILABLE,
    "executing": ToolState.INPUT_AVAILABLE,
    "awaiting_approval": ToolState.APPROVAL_REQUESTED,
    "success": ToolState.OUTPUT_AVAILABLE,
    "error": ToolState.OUTPUT_ERROR,
    "cancelled": ToolState.ABORTED,
}
"""Status of a call -> its state, as long as it has no result."""

_FINAL_STATUSES = frozenset({"success", "error", "cancelled"})


# -- what hooks say (recorded with 0.61.0)
#
# The answer in `AfterAgent` repeats pieces of it, so only the log says what the answer was.


EVENTS = {"BeforeAgent": read_prompt, "BeforeTool": read_call, "AfterTool": read_result}

HOOK_FORMAT = HookFormat(NAME, EVENTS, TOOL_KINDS)

# -- the calls of an answer


_CALL_NUMBER = re.compile(r"_\d{10,}_(\d+)\Z")

_FIELDS = names_of(GeminiCall) | {"renderOutputAsMarkdown"}
"""The fields of a call that are read, and one that only concerns the terminal."""

_SUBAGENT_PROGRESS = b'"isSubagentProgress"'

_PROGRESS_PREFIX = 64
"""Bytes of `resultDisplay` that name its kind."""


class LoggedCall(NamedTuple):
    """A call in the file."""

    id: str
    wire: GeminiCall
    position: int
    length: int
    content_part: ContentPart | None = None
    """The API's own part for the call, which may have a signature."""
    fields: dict[str, Raw] = {}
    """All fields of its JSON."""


def parse_calls(record: GeminiRecord, json: bytes, position: int, parts: Sequence[ContentPart]) -> list[LoggedCall]:
    """The calls of an answer: those in `toolCalls`, then those that are only in its content.

    Args:
        record: The answer.
        json: Its JSON.
        position: The byte offset of `json`.
        parts: The parts of its content.
    """
    calls = _in_request_order(list(_recorded_calls(record, json, position)))
    for part in parts:
        function_call = part.wire.function_call
        if function_call is None:
            continue
        index = next((index for index, call in enumerate(calls) if _is_same_call(call, function_call)), None)
        # The content of a checkpoint repeats the call, and alone has its signature.
        if index is not None:
            calls[index] = calls[index]._replace(content_part=part)
            continue
        wire = GeminiCall(id=function_call.id, name=function_call.name, args=function_call.args)
        calls.append(LoggedCall(wire.id or f"@{position}.{part.number}", wire, position, len(json), part))
    return calls


def call_index(call_id: str | None) -> int | None:
    """The number of a call in its request, from 0; None before 0.2x, where ids do not have it."""
    match = _CALL_NUMBER.search(call_id or "")
    return int(match[1]) if match else None


def _in_request_order(calls: list[LoggedCall]) -> list[LoggedCall]:
    """The calls in the order of their request: of an interrupted one, 0.61 logs the call that was running first."""
    numbers = {number: call for call in calls if (number := call_index(call.wire.id)) is not None}
    return [call for _, call in sorted(numbers.items())] if len(numbers) == len(calls) else calls


def _is_same_call(call: LoggedCall, function_call: FunctionCall) -> bool:
    """Whether a call in the content is this one; in a subagent's log it has no id."""
    wire = call.wire
    if function_call.id is not None:
        return function_call.id == wire.id
    is_equal = function_call.name == wire.name and _input(function_call.args) == _input(wire.args)
    return call.content_part is None and is_equal


def _recorded_calls(record: GeminiRecord, json: bytes, position: int) -> Iterator[LoggedCall]:
    for raw, at, length in locate_items(record.tool_calls or (), json, position):
        found = CALLS.decode(bytes(raw))
        call = GeminiCall() if isinstance(found, str) else found.record
        yield LoggedCall(call.id or f"@{at}", call, at, length, fields=fields_of(raw))


def to_tool_call(call: LoggedCall, part_id: str, model: str | None, requested_at: datetime | None) -> ToolCallPart:
    """The part for a call, with its result if there is one.

    Args:
        call: The call.
        part_id: The part's id.
        model: The model that made it.
        requested_at: When its message was written.
    """
    wire = call.wire
    name = wire.name or ""
    kind = ToolKind.SUBAGENT if _starts_subagent(call) else TOOL_KINDS.get(name, ToolKind.OTHER)
    result = _result_of_call(call)
    state = OPEN_STATES.get(wire.status or "", ToolState.INPUT_AVAILABLE)
    return ToolCallPart(
        id=part_id,
        tool_call_id=call.id,
        tool_name=name,
        kind=kind,
        input=_input(wire.args),
        state=state if result is None else STATE_OF_STATUS[result.status],
        title=wire.display_name,
        started_at=_started_at(wire, requested_at),
        provider=provider_data(call.content_part, model) if call.content_part is not None else None,
        results=() if result is None else (result,),
        metadata={NAME: others} if (others := other_fields(call.fields, _FIELDS)) else {},
    )


def _starts_subagent(call: LoggedCall) -> bool:
    """Whether a call started a subagent. Before 0.39 it names none, but shows a subagent's progress."""
    return (
        call.wire.agent_id is not None
        or _SUBAGENT_PROGRESS in bytes(call.fields.get("resultDisplay", b""))[:_PROGRESS_PREFIX]
    )


def _started_at(wire: GeminiCall, requested_at: datetime | None) -> datetime | None:
    """When a call started: None where its message is not older than its end.

    Up to 0.30 a message without text was written when its calls had ended.
    """
    ended_at = aware_or_none(wire.timestamp)
    return requested_at if requested_at is None or ended_at is None or requested_at < ended_at else None


def _input(args: Raw | UnsetType) -> Raw | UnsetType:
    return UNSET if args is UNSET else compact(args)


# -- results


_REFUSED = ("did not allow tool call", "User denied execution", "denied by policy", "rejected by the user")
"""Outputs of calls that the user or a policy refused. 0.20 writes the first for a user, 0.30 to 0.61 the second."""

_EXIT_CODE = re.compile(r"^(?:Exit Code|Command exited with code): (\d{1,3})\b", re.MULTILINE)

_SPILL = re.compile(r"For full output see: (\S+)")


def _result_of_call(call: LoggedCall) -> ToolResult | None:
    """The result that the scheduler logged; None before the call has ended."""
    wire = call.wire
    if wire.status is not None and wire.status not in _FINAL_STATUSES:
        return None
    parts = parse_parts(wire.result)
    if not parts:
        return None
    responses, others = split_responses(parts)
    own = [response for response in responses if response.call_id in (call.id, "")] or responses
    content: list[Part] = [part for response in own for part in response.content]
    content += [to_part(part, None) for part in others]
    text = "\n".join([part.text for part in content if isinstance(part, TextPart)])
    return _make_result(call.id, wire, tuple(content), text, is_error=any(response.is_error for response in own))


def _make_result(call_id: str, wire: GeminiCall, content: tuple[Part, ...], text: str, *, is_error: bool) -> ToolResult:
    carried = read_mark(wire.turnlog)
    status = (carried.status if carried else None) or status_of(wire.status, text, is_error=is_error)
    return ToolResult(
        id=result_id(call_id, text),
        status=status,
        content=content,
        error_text=text if status != "success" else None,
        exit_code=exit_code_of(wire.name or "", text),
        completed_at=aware_or_none(wire.timestamp),
        spilled_to=spilled_to(text),
    )


def result_of_response(response: FunctionResult, wire: GeminiCall) -> ToolResult:
    """The result in its own message, which has neither the status nor the time of the call.

    Args:
        response: The result.
        wire: What is known of the call: its name, and the time of the message.
    """
    text = "\n".join([part.text for part in response.content if isinstance(part, TextPart)])
    return _make_result(response.call_id, wire, response.content, text, is_error=response.is_error)


def result_id(call_id: str, text: str) -> str:
    """The id of a result, made of its text: a log repeats results, and a repeated one must get the same id."""
    return f"{call_id}:{crc32(text.encode(errors='replace')):08x}"


def status_of(status: str | None, text: str, *, is_error: bool) -> ResultStatus:
    """The status of a result. Gemini CLI writes `cancelled` for a refused call as well as for one stopped by Escape."""
    if status == "success" or (status is None and not is_error):
        return "success"
    if any(words in text for words in _REFUSED):
        return "denied"
    return "aborted" if status == "cancelled" or text.startswith("[Operation Cancelled]") else "error"


def exit_code_of(name: str, text: str) -> int | None:
    """The exit code that the output of a shell command names. Gemini CLI does not count it as a failure."""
    match = _EXIT_CODE.search(text) if name == "run_shell_command" else None
    return int(match[1]) if match else None


def spilled_to(text: str) -> str | None:
    """The name of the file that has the whole output; None if there is none. The path is not opened."""
    match = _SPILL.search(text)
    parts = PurePosixPath(match[1].replace("\\", "/")).parts if match else ()
    return parts[-1] if len(parts) > 2 and parts[-3] == "tool-outputs" and ".." not in parts else None


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """The `resultDisplay` of a call: what Gemini CLI shows of its result. None if there is none.

    Args:
        record: The JSON of the call, or of a message that has it.
        tool_call_id: The call's id.
    """
    fields = fields_of(record)
    calls = [fields]
    if "toolCalls" in fields:
        try:
            calls = [fields_of(raw) for raw in msgspec.json.decode(fields["toolCalls"], type=list[Raw])]
        except msgspec.MsgspecError:
            return None
    displays = (call["resultDisplay"] for call in calls if _has_id(call, tool_call_id) and "resultDisplay" in call)
    found = next(displays, None)
    return None if found is None else found.copy()


def _has_id(call: dict[str, Raw], tool_call_id: str) -> bool:
    return "id" in call and msgspec.json.decode(call["id"]) == tool_call_id
