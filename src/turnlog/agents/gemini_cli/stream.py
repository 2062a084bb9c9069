"""The fold of what `gemini -o stream-json` printed: lines of a stream -> changes of the model.

A stream has the prompt, the answers in pieces, and calls with their results; no thoughts, no ids of messages, and no
counts but those of the whole run, which belong to no message.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import UNSET

from turnlog.agents.decoding import clean_json
from turnlog.agents.gemini_cli.origins import SYNTHETIC, passages_of, words_of
from turnlog.agents.gemini_cli.records import compact, fields_of
from turnlog.agents.gemini_cli.sources import NAME
from turnlog.agents.gemini_cli.stream_records import (
    STREAM_FIELDS,
    STREAM_KINDS,
    STREAM_LINES,
    StreamLine,
    stream_kind,
)
from turnlog.agents.gemini_cli.tools import KINDS, exit_code_of, result_id, spilled_to, status_of
from turnlog.agents.printed import Printed, PrintedMessage, kept_fields
from turnlog.agents.printed_fold import PrintedForm, StreamState
from turnlog.model import TextPart, ToolCallPart, ToolKind, ToolResult, ToolState
from turnlog.model.tools import STATE_OF_STATUS

_CALLS = 256
_TITLE_LENGTH = 200


class OpenCall(msgspec.Struct, array_like=True):
    """A call whose result may come."""

    message: PrintedMessage
    part_id: str
    call_id: str
    name: str


class GeminiStreamState(StreamState):
    """What a fold of a stream remembers."""

    model: str | None = None
    answer: PrintedMessage | None = None
    """The message that is being printed."""
    part_id: str | None = None
    """Its text that is being printed."""
    text: str = ""
    calls: dict[str, OpenCall] = {}
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
    if state.printed.session != line.session_id:
        state.titled = False
    state.answer, state.part_id, state.text, state.calls = None, None, "", {}
    state.model = line.model


def _read_line(state: GeminiStreamState, printed: Printed, line: StreamLine) -> None:
    _READERS.get(stream_kind(line), _read_other)(state, printed, line)


def _read_prompt(state: GeminiStreamState, printed: Printed, line: StreamLine) -> None:
    _end_text(state, printed)
    state.answer = None
    text = line.content or ""
    message = printed.begin_prompt()
    for passage in passages_of(text):
        metadata = SYNTHETIC if passage.is_synthetic else {}
        printed.show(message, TextPart(id=message.next_part(), text=passage.text, metadata=metadata))
    title = " ".join(words_of(text).split())[:_TITLE_LENGTH]
    if title and not state.titled:
        printed.session.titles["prompt"] = title
        state.titled = True
    printed.changes.counts.messages += 1


def _answer(state: GeminiStreamState, printed: Printed) -> PrintedMessage:
    """The message being printed. What comes behind a result is the model's next answer."""
    if state.answer is None or state.answer.answered:
        state.answer = printed.begin_answer(state.model)
    return state.answer


def _read_answer(state: GeminiStreamState, printed: Printed, line: StreamLine) -> None:
    """Words: a piece of a text, or one that is whole."""
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


def _end_text(state: GeminiStreamState, printed: Printed) -> None:
    """Something else follows a text: it was whole."""
    if state.part_id is not None and state.answer is not None:
        printed.show(state.answer, TextPart(id=state.part_id, text=state.text))
    state.part_id, state.text = None, ""


def _read_call(state: GeminiStreamState, printed: Printed, line: StreamLine) -> None:
    _end_text(state, printed)
    message = _answer(state, printed)
    name, part_id = line.tool_name or "", message.next_part()
    # The log has a call of the same id, which is another one in the store.
    call_id = f"{message.id.rpartition(':')[2]}:{line.tool_id or message.parts}"
    call = OpenCall(msgspec.structs.replace(message), part_id, call_id, name)
    state.calls[line.tool_id or ""] = call
    if len(state.calls) > _CALLS:
        del state.calls[next(iter(state.calls))]
    part = _call_part(call)
    if line.parameters is not UNSET:
        part = msgspec.structs.replace(part, input=compact(line.parameters))
    printed.show(message, part)
    printed.changes.counts.messages += 1


def _call_part(call: OpenCall, *results: ToolResult) -> ToolCallPart:
    return ToolCallPart(
        id=call.part_id,
        tool_call_id=call.call_id,
        tool_name=call.name,
        kind=KINDS.get(call.name, ToolKind.OTHER),
        state=STATE_OF_STATUS[results[0].status] if results else ToolState.INPUT_AVAILABLE,
        results=results,
    )


def _read_result(state: GeminiStreamState, printed: Printed, line: StreamLine) -> None:
    """How a call ended; one whose beginning was not printed is a record."""
    _end_text(state, printed)
    call = state.calls.get(line.tool_id or "")
    if call is None:
        _read_other(state, printed, line)
        return
    if state.answer is not None and state.answer.id == call.message.id:
        state.answer.answered = True
    result = _result_of(printed, call, line)
    printed.show(call.message, _call_part(call, result), result.id)
    printed.changes.counts.results += 1


def _result_of(printed: Printed, call: OpenCall, line: StreamLine) -> ToolResult:
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


def _read_error(state: GeminiStreamState, printed: Printed, line: StreamLine) -> None:
    _end_text(state, printed)
    failure = line.message or (line.error.message if line.error else None)
    if failure is None:
        _read_other(state, printed, line)
        return
    printed.add_error(failure, line.severity or (line.error.type if line.error else None))
    printed.changes.counts.events += 1


def _read_end(state: GeminiStreamState, printed: Printed, line: StreamLine) -> None:
    """The end of a run, with what all of it cost, and perhaps why it failed."""
    if line.error is not None and line.error.message is not None:
        printed.add_error(line.error.message, line.error.type)
    _read_other(state, printed, line)


def _read_other(state: GeminiStreamState, printed: Printed, line: StreamLine) -> None:
    _end_text(state, printed)
    kind = stream_kind(line)
    if kind in STREAM_FIELDS:
        printed.add_fact(kind, kept_fields(fields_of(clean_json(printed.json)), STREAM_FIELDS[kind]))
    else:
        printed.add_record(kind, known=kind in STREAM_KINDS)
    printed.changes.counts.events += 1


_READERS: dict[str, Callable[[GeminiStreamState, Printed, StreamLine], None]] = {
    "message/user": _read_prompt,
    "message/assistant": _read_answer,
    "tool_use": _read_call,
    "tool_result": _read_result,
    "error": _read_error,
    "result": _read_end,
}

STREAM_JSON = PrintedForm(
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
