"""Tool calls of an answer: the scheduler's own record of each, or the bare call where a checkpoint has no more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import clean_json
from turnlog.agents.gemini_cli.contents import Piece, Response, part_of, pieces_of, responses_in, signature_of
from turnlog.agents.gemini_cli.reading import aware_or_none
from turnlog.agents.gemini_cli.records import CALLS, Call, FunctionCall, Record, compact, fields_of
from turnlog.agents.gemini_cli.sources import NAME
from turnlog.agents.gemini_cli.tools import (
    FINAL,
    KINDS,
    OPEN_STATES,
    exit_code_of,
    result_id,
    spilled_to,
    status_of,
)
from turnlog.agents.reading import names_of, other_fields
from turnlog.model import Part, TextPart, ToolCallPart, ToolKind, ToolResult, ToolState
from turnlog.model.tools import STATE_OF_STATUS

_NUMBERED = re.compile(r"_\d{10,}_(\d+)\Z")

_FIELDS = names_of(Call) | {"renderOutputAsMarkdown"}
"""What is read of a call, and how the terminal shows its output."""

_PROGRESS = b'"isSubagentProgress"'
_BEGINNING = 64
"""Bytes of what a call showed that name its kind."""


class LoggedCall(NamedTuple):
    """A call as it stands in the file."""

    id: str
    wire: Call
    position: int
    length: int
    proof: Piece | None = None
    """The API's own part of the call, which may hold a signature."""
    fields: dict[str, Raw] = {}
    """All of its JSON."""


def calls_in(record: Record, json: bytes, position: int, pieces: Sequence[Piece]) -> list[LoggedCall]:
    """The calls of an answer: those with a record of their own, then those that stand only in its content."""
    recorded = [
        LoggedCall(call.id or f"@{place}", call, place, length, fields=fields)
        for call, place, length, fields in _recorded(record, json, position)
    ]
    found = _as_asked(recorded)
    for piece in pieces:
        bare = piece.part.function_call
        if bare is None:
            continue
        index = next((index for index, call in enumerate(found) if _is_call(call, bare)), None)
        if index is not None:
            found[index] = found[index]._replace(proof=piece)
            continue
        wire = Call(id=bare.id, name=bare.name, args=bare.args)
        found.append(LoggedCall(bare.id or f"@{position}.{piece.rank}", wire, position, len(json), piece))
    return found


def number_of(call_id: str | None) -> int | None:
    """The place of a call among those of its request, which ids tell since 0.2x."""
    match = _NUMBERED.search(call_id or "")
    return int(match[1]) if match else None


def _as_asked(calls: list[LoggedCall]) -> list[LoggedCall]:
    """The calls in the order of the request; of an interrupted one 0.61 logs the call that was running first."""
    numbers = {number: call for call in calls if (number := number_of(call.wire.id)) is not None}
    return [call for _, call in sorted(numbers.items())] if len(numbers) == len(calls) else calls


def _is_call(call: LoggedCall, bare: FunctionCall) -> bool:
    """Whether the content's call is this one; a subagent's has no id there."""
    wire = call.wire
    if bare.id is not None:
        return bare.id == wire.id
    return call.proof is None and bare.name == wire.name and _input_of(bare.args) == _input_of(wire.args)


def _recorded(record: Record, json: bytes, position: int) -> Iterator[tuple[Call, int, int, dict[str, Raw]]]:
    for raw, at, length in places_of(record.tool_calls or (), json, position):
        found = CALLS.decode(bytes(raw))
        yield (Call() if isinstance(found, str) else found.record), at, length, fields_of(clean_json(bytes(raw)))


def places_of(items: Sequence[Raw], json: bytes, position: int) -> Iterator[tuple[Raw, int, int]]:
    """Where each of some values stands in the file, given the JSON at `position` that holds them in this order."""
    start = 0
    for item in items:
        data = bytes(item)
        at = json.find(data, start)
        start = start if at < 0 else at + len(data)
        yield item, position + max(at, 0), len(data)


def call_part(call: LoggedCall, part_id: str, model: str | None, asked_at: datetime | None) -> ToolCallPart:
    """The part, with the call's result when it has come. `asked_at` is when the message was written."""
    wire = call.wire
    name = wire.name or ""
    kind = ToolKind.SUBAGENT if _starts_subagent(call) else KINDS.get(name, ToolKind.OTHER)
    result = _result_of(call)
    state = OPEN_STATES.get(wire.status or "", ToolState.INPUT_AVAILABLE)
    return ToolCallPart(
        id=part_id,
        tool_call_id=call.id,
        tool_name=name,
        kind=kind,
        input=_input_of(wire.args),
        state=state if result is None else STATE_OF_STATUS[result.status],
        title=wire.display_name,
        started_at=_start_of(wire, asked_at),
        provider=signature_of(call.proof, model) if call.proof is not None else None,
        results=() if result is None else (result,),
        metadata={NAME: others} if (others := other_fields(call.fields, _FIELDS)) else {},
    )


def _starts_subagent(call: LoggedCall) -> bool:
    """Whether the call names a subagent, or showed one at work: before 0.39 each subagent is a tool of its own name."""
    return call.wire.agent_id is not None or _PROGRESS in bytes(call.fields.get("resultDisplay", b""))[:_BEGINNING]


def _start_of(wire: Call, asked_at: datetime | None) -> datetime | None:
    """A message without words was written when its calls had ended, up to 0.30: that tells no start."""
    ended_at = aware_or_none(wire.timestamp)
    return asked_at if asked_at is None or ended_at is None or asked_at < ended_at else None


def _input_of(args: Raw | UnsetType) -> Raw | UnsetType:
    return UNSET if args is UNSET else compact(args)


def _result_of(call: LoggedCall) -> ToolResult | None:
    """What the scheduler noted: nothing before the call has ended."""
    wire = call.wire
    if wire.status is not None and wire.status not in FINAL:
        return None
    pieces = pieces_of(wire.result)
    if not pieces:
        return None
    responses, others = responses_in(pieces)
    own = [response for response in responses if response.call_id in (call.id, "")] or responses
    content: list[Part] = [part for response in own for part in response.content]
    content += [part_of(piece, None) for piece in others]
    text = "\n".join([part.text for part in content if isinstance(part, TextPart)])
    return _result(call.id, wire, tuple(content), text, is_error=any(response.is_error for response in own))


def _result(call_id: str, wire: Call, content: tuple[Part, ...], text: str, *, is_error: bool) -> ToolResult:
    status = status_of(wire.status, text, is_error=is_error)
    return ToolResult(
        id=result_id(call_id, text),
        status=status,
        content=content,
        error_text=text if status != "success" else None,
        exit_code=exit_code_of(wire.name or "", text),
        completed_at=aware_or_none(wire.timestamp),
        spilled_to=spilled_to(text),
    )


def is_answered(part: ToolCallPart) -> bool:
    """Whether the call's result has come."""
    return bool(part.results)


def response_result(response: Response, wire: Call) -> ToolResult:
    """The result in a message of its own, which has neither status nor time of the call."""
    text = "\n".join([part.text for part in response.content if isinstance(part, TextPart)])
    return _result(response.call_id, wire, response.content, text, is_error=response.is_error)


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """`resultDisplay` of a call, from the call's own JSON or that of a message with it."""
    fields = fields_of(clean_json(record))
    calls = [fields]
    if "toolCalls" in fields:
        try:
            calls = [fields_of(raw) for raw in msgspec.json.decode(fields["toolCalls"], type=list[Raw])]
        except msgspec.MsgspecError:
            return None
    identity = Raw(msgspec.json.encode(tool_call_id))
    shown = (call["resultDisplay"] for call in calls if _is(call, identity) and "resultDisplay" in call)
    found = next(shown, None)
    return None if found is None else found.copy()


def _is(call: dict[str, Raw], identity: Raw) -> bool:
    return "id" in call and msgspec.json.decode(call["id"]) == msgspec.json.decode(identity)
