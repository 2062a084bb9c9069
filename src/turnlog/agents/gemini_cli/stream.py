"""What `gemini -o stream-json` prints: the shapes of its lines, and the fold that reads them.

A stream has the prompt, the answers in deltas, and calls with their results. It has no thoughts, no ids of messages,
and no usage but that of the whole run, which belongs to no message.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import fields_of
from turnlog.agents.gemini_cli import NAME
from turnlog.agents.gemini_cli.messages import SYNTHETIC, split_hook_context, strip_hook_context
from turnlog.agents.gemini_cli.records import GeminiRecordOutcome, compact
from turnlog.agents.gemini_cli.tools import TOOL_KINDS, exit_code_of, result_id, spilled_to, status_of
from turnlog.agents.jsonl import JsonLines
from turnlog.agents.printed_stream import PrintedContext, PrintedFormat, PrintedMessage, PrintedRunState, kept_fields
from turnlog.model import TextPart, ToolCallPart, ToolKind, ToolResult, ToolState
from turnlog.model.parts import STATE_OF_STATUS
from turnlog.model.session import title_from

STREAM_KINDS: dict[str, GeminiRecordOutcome] = {
    "init": GeminiRecordOutcome.RUN_METADATA,
    "message/user": GeminiRecordOutcome.MESSAGE,
    "message/assistant": GeminiRecordOutcome.MESSAGE,
    "tool_use": GeminiRecordOutcome.MESSAGE,
    "tool_result": GeminiRecordOutcome.MESSAGE,
    "error": GeminiRecordOutcome.ERROR,
    "result": GeminiRecordOutcome.RUN_METADATA,
}
"""Kind -> outcome. A kind is a line's type, with the role for a message."""

STREAM_FIELDS: dict[str, tuple[str, ...]] = {"init": ("model",), "result": ("status", "error", "stats")}
"""Kind -> the fields of a line that its event keeps."""

_TYPES = frozenset(kind.partition("/")[0] for kind in STREAM_KINDS)


class StreamFailure(msgspec.Struct):
    """Why a call or a run failed."""

    type: str | None = None
    message: str | None = None


class StreamLine(msgspec.Struct):
    """One line of any type."""

    type: str = ""
    timestamp: datetime | None = None
    session_id: str | None = None
    model: str | None = None
    role: str | None = None
    content: str | None = None
    delta: bool | None = None
    tool_name: str | None = None
    tool_id: str | None = None
    parameters: Raw | UnsetType = UNSET
    status: str | None = None
    output: str | None = None
    severity: str | None = None
    message: str | None = None
    error: StreamFailure | None = None
    stats: Raw | UnsetType = UNSET


def stream_kind(line: StreamLine) -> str:
    """A line's kind, as `STREAM_KINDS` names it."""
    return f"message/{line.role or ''}" if line.type == "message" else line.type


def _is_line(line: StreamLine) -> bool:
    return line.type in _TYPES


STREAM_LINES = JsonLines(StreamLine, first_keys=("type",), plausible=_is_line)
"""Decodes the lines of a stream."""

_PENDING_CALLS = 256
"""How many calls without a result are remembered."""


class GeminiPendingCall(msgspec.Struct, array_like=True):
    """A call whose result may still come."""

    message: PrintedMessage
    part_id: str
    call_id: str
    name: str


class GeminiStreamState(PrintedRunState):
    """What is remembered between two feeds of a stream."""

    model: str | None = None
    answer: PrintedMessage | None = None
    """The answer that is being printed."""
    part_id: str | None = None
    """The id of its text part that is being printed."""
    text: str = ""
    calls: dict[str, GeminiPendingCall] = {}
    titled: bool = False


def _is_ours(line: StreamLine) -> bool:
    if line.timestamp is None:
        return False
    if line.type == "init":
        return line.session_id is not None
    return line.type in ("tool_use", "tool_result") and line.tool_id is not None


def _session_of(state: GeminiStreamState, line: StreamLine, json: bytes) -> str | None:
    return line.session_id if line.type == "init" else None


def _begin_run(state: GeminiStreamState, line: StreamLine) -> None:
    # A run that goes on with the session keeps its first prompt as the title.
    if state.printed.session != line.session_id:
        state.titled = False
    # Ids of calls are those of a run: a result of the next one belongs to no call of this.
    state.answer, state.part_id, state.text, state.calls = None, None, "", {}
    state.model = line.model


def _read_line(state: GeminiStreamState, printed: PrintedContext, line: StreamLine) -> None:
    _READERS.get(stream_kind(line), _read_other)(state, printed, line)


def _read_prompt(state: GeminiStreamState, printed: PrintedContext, line: StreamLine) -> None:
    _end_text(state, printed)
    state.answer = None
    text = line.content or ""
    message = printed.begin_prompt()
    for segment in split_hook_context(text):
        metadata = SYNTHETIC if segment.is_synthetic else {}
        printed.show(message, TextPart(id=message.next_part(), text=segment.text, metadata=metadata))
    title = title_from(strip_hook_context(text))
    if title and not state.titled:
        printed.session.titles["prompt"] = title
        state.titled = True
    printed.changes.counts.messages += 1


def _answer(state: GeminiStreamState, printed: PrintedContext) -> PrintedMessage:
    """The answer that is being printed. Whatever follows a result belongs to the model's next answer."""
    if state.answer is None or state.answer.answered:
        state.answer = printed.begin_answer(state.model)
    return state.answer


def _read_answer(state: GeminiStreamState, printed: PrintedContext, line: StreamLine) -> None:
    """Read a delta of a text, or a complete text."""
    message = _answer(state, printed)
    if not line.delta:
        _end_text(state, printed)
    if state.part_id is None:
        state.part_id, state.text = message.next_part(), ""
    state.text += line.content or ""
    if line.delta:
        printed.show(message, TextPart(id=state.part_id, text=state.text, state="streaming"))
    else:
        _end_text(state, printed)
    printed.changes.counts.messages += 1


def _end_text(state: GeminiStreamState, printed: PrintedContext) -> None:
    """Complete the text that is being printed, because something else follows it."""
    if state.part_id is not None and state.answer is not None:
        printed.show(state.answer, TextPart(id=state.part_id, text=state.text))
    state.part_id, state.text = None, ""


def _read_call(state: GeminiStreamState, printed: PrintedContext, line: StreamLine) -> None:
    _end_text(state, printed)
    message = _answer(state, printed)
    name, part_id = line.tool_name or "", message.next_part()
    # The log has a call with the same id, and the log's must stay when the stream's message is superseded.
    call_id = f"{message.id.rpartition(':')[2]}:{line.tool_id or message.parts}"
    call = GeminiPendingCall(msgspec.structs.replace(message), part_id, call_id, name)
    state.calls[line.tool_id or ""] = call
    if len(state.calls) > _PENDING_CALLS:
        del state.calls[next(iter(state.calls))]
    part = _call_part(call)
    if line.parameters is not UNSET:
        part = msgspec.structs.replace(part, input=compact(line.parameters))
    printed.show(message, part)
    printed.changes.counts.messages += 1


def _call_part(call: GeminiPendingCall, *results: ToolResult) -> ToolCallPart:
    return ToolCallPart(
        id=call.part_id,
        tool_call_id=call.call_id,
        tool_name=call.name,
        kind=TOOL_KINDS.get(call.name, ToolKind.OTHER),
        state=STATE_OF_STATUS[results[0].status] if results else ToolState.INPUT_AVAILABLE,
        results=results,
    )


def _read_result(state: GeminiStreamState, printed: PrintedContext, line: StreamLine) -> None:
    """Read the result of a call. Where the call was not printed, the line is kept as an event."""
    _end_text(state, printed)
    call = state.calls.get(line.tool_id or "")
    if call is None:
        _read_other(state, printed, line)
        return
    # The model answers only after it was sent the results: what follows is another response.
    if state.answer is not None and state.answer.id == call.message.id:
        state.answer.answered = True
    result = _result_of_call(printed, call, line)
    printed.show(call.message, _call_part(call, result), result.id)
    printed.changes.counts.results += 1


def _result_of_call(printed: PrintedContext, call: GeminiPendingCall, line: StreamLine) -> ToolResult:
    text = line.output or ""
    failure = line.error.message if line.error else None
    status = status_of(line.status, f"{text}\n{failure or ''}", is_error=line.error is not None)
    return ToolResult(
        id=result_id(call.call_id, text),
        status=status,
        content=(TextPart(text=text),) if text else (),
        error_text=(failure or text or None) if status != "success" else None,
        exit_code=exit_code_of(call.name, text),
        completed_at=printed.at,
        spilled_to=spilled_to(text),
    )


def _read_error(state: GeminiStreamState, printed: PrintedContext, line: StreamLine) -> None:
    _end_text(state, printed)
    failure = line.message or (line.error.message if line.error else None)
    if failure is None:
        _read_other(state, printed, line)
        return
    printed.add_error(failure, line.severity or (line.error.type if line.error else None))
    printed.changes.counts.events += 1


def _read_end(state: GeminiStreamState, printed: PrintedContext, line: StreamLine) -> None:
    """Read the end of a run, with the usage of all of it and perhaps an error."""
    if line.error is not None and line.error.message is not None:
        printed.add_error(line.error.message, line.error.type)
    _read_other(state, printed, line)


def _read_other(state: GeminiStreamState, printed: PrintedContext, line: StreamLine) -> None:
    _end_text(state, printed)
    kind = stream_kind(line)
    if kind in STREAM_FIELDS:
        printed.add_fact(kind, kept_fields(fields_of(printed.json), STREAM_FIELDS[kind]))
    else:
        printed.add_record(kind, known=kind in STREAM_KINDS)
    printed.changes.counts.events += 1


_READERS: dict[str, Callable[[GeminiStreamState, PrintedContext, StreamLine], None]] = {
    "message/user": _read_prompt,
    "message/assistant": _read_answer,
    "tool_use": _read_call,
    "tool_result": _read_result,
    "error": _read_error,
    "result": _read_end,
}

STREAM_JSON = PrintedFormat(
    agent=NAME,
    lines=STREAM_LINES,
    state=GeminiStreamState,
    is_ours=_is_ours,
    session_of=_session_of,
    begin_run=_begin_run,
    time_of=lambda line: line.timestamp,
    read=_read_line,
)
"""What `gemini -o stream-json` prints."""
