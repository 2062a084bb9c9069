"""The fold of what `claude -p --output-format stream-json` printed: lines of a stream -> changes of the model.

Each line is read as the record that the session's log has of it, by the log's own readers. The ids are the same, so
both readings of a message join; a block stands in both at the same number. A stream has no chain of parents: a line
follows the one before it. What it prints in pieces is `stream_pieces`'.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from turnlog.agents.base import Source
from turnlog.agents.changes import Changes, MessageChange
from turnlog.agents.claude_code.assistant import read_assistant
from turnlog.agents.claude_code.compaction import open_compaction
from turnlog.agents.claude_code.events import add_api_error, add_kind
from turnlog.agents.claude_code.reading import Reading
from turnlog.agents.claude_code.records import ApiFailure, Record, WireMessage, WireUsage
from turnlog.agents.claude_code.state import State
from turnlog.agents.claude_code.stream_lines import StreamState, as_logged, note_agent, remember_agent
from turnlog.agents.claude_code.stream_pieces import read_piece, show_open_answers
from turnlog.agents.claude_code.stream_records import (
    FIRST_KEYS,
    STREAM_FIELDS,
    STREAM_KINDS,
    STREAM_TYPES,
    StreamRecord,
    stream_kind,
)
from turnlog.agents.claude_code.user import read_user
from turnlog.agents.jsonl import JsonLines, count_lines
from turnlog.agents.reading import aware
from turnlog.model import ToolCallPart

_LONG_AGO = 1 << 53
"""What a stream says of a session counts less than anything a log says, and a later run more than an earlier one."""


class _RunEnd(msgspec.Struct):
    """What the line of a run's end says of its answers."""

    result: str | None = None
    is_error: bool = False
    stop_reason: str | None = None
    usage: WireUsage | None = None
    models: dict[str, msgspec.Raw] = msgspec.field(name="modelUsage", default={})


def _is_record(record: StreamRecord) -> bool:
    return record.type in STREAM_TYPES


read_stream_lines = JsonLines(StreamRecord, first_keys=FIRST_KEYS, plausible=_is_record).read


class StreamFold:
    """Reads one stream. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._source = source
        self._state = msgspec.json.decode(state, type=StreamState) if state is not None else StreamState()
        self._readings: dict[str, Reading] = {}

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return msgspec.json.encode(self._state)

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        state, changes = self._state, Changes()
        self._readings = {}
        for record, json, position, length, number in read_stream_lines(data, offset, state.lines + 1, changes):
            reading = self._reading_of(record, json, changes)
            reading.json, reading.position, reading.length, reading.line_number = json, position, length, number
            _READERS.get(record.type, _read_other)(self._state, reading, record)
        state.lines += count_lines(data)
        for reading in self._readings.values():
            show_open_answers(state, reading)
            _add(changes, reading, state.moment)
        return changes

    def _reading_of(self, record: StreamRecord, json: bytes, changes: Changes) -> Reading:
        """The session that a line belongs to: the one it names, else that of the line before."""
        state = self._state
        external = record.session_id or state.session
        if external is None:
            # What somebody fed to the agent names no session: its first line does.
            external = f"stream-{hashlib.sha256(json).hexdigest()[:16]}"
        state.session = external
        reading = self._readings.get(external)
        if reading is None:
            known = state.sessions.setdefault(external, State(tells_decisions=True))
            reading = self._readings[external] = Reading(external, known, is_subagent=False)
            reading.changes.diagnostics, reading.changes.counts = changes.diagnostics, changes.counts
        if record.timestamp is not None:
            moment = aware(record.timestamp)
            state.moment = max(state.moment, round(moment.timestamp() * 1000))
        return reading


def _add(changes: Changes, reading: Reading, moment: int) -> None:
    found = reading.finish()
    for session in found.sessions.values():
        session.position = moment - _LONG_AGO
    changes.sessions.update(found.sessions)
    changes.messages += [
        change if change.placement.session_id == reading.main.id else _unnumbered(change) for change in found.messages
    ]
    changes.results += found.results
    changes.events += found.events
    changes.links += found.links


def _unnumbered(change: MessageChange) -> MessageChange:
    """What is printed of a subagent may leave out thoughts, and then the calls have other numbers than in its log."""
    parts = tuple(
        msgspec.structs.replace(part, id=None) if isinstance(part, ToolCallPart) else part
        for part in change.message.parts
    )
    return msgspec.structs.replace(change, message=msgspec.structs.replace(change.message, parts=parts))


def _read_user(state: StreamState, reading: Reading, record: StreamRecord) -> None:
    logged = as_logged(state, record)
    note_agent(state, reading, record, logged)
    read_user(reading, logged)


def _read_assistant(state: StreamState, reading: Reading, record: StreamRecord) -> None:
    """A finished block. While its pieces are printed too, they tell its number."""
    logged = as_logged(state, record)
    note_agent(state, reading, record, logged)
    answer = state.answers.get(record.parent_tool_use_id or "")
    if answer is not None and logged.message is not None and logged.message.id == answer.message_id:
        logged.api_block_index, answer.text = answer.block, ""
    read_assistant(reading, logged)


def _read_system(state: StreamState, reading: Reading, record: StreamRecord) -> None:
    logged = as_logged(state, record)
    if record.subtype == "task_started":
        remember_agent(state, record)
    if record.subtype == "compact_boundary":
        open_compaction(reading, logged, reading.session_of(logged))
    elif record.subtype == "api_retry":
        logged.error = ApiFailure(
            message=record.error if isinstance(record.error, str) else None, status=record.error_status
        )
        logged.retry_attempt, logged.max_retries = record.attempt, record.max_retries
        logged.retry_in_ms = record.retry_delay_ms
        add_api_error(reading, logged, reading.session_of(logged))
    else:
        if record.subtype == "session_title_changed" and record.title:
            reading.main.change.titles["custom"] = record.title
        _read_other(state, reading, record)


def _read_result(state: StreamState, reading: Reading, record: StreamRecord) -> None:
    """The end of a run, with what it cost; the log's own total counts before it."""
    reading.main.change.reported_cost = record.total_cost_usd
    if reading.main.thread.leaf is None and record.subtype == "success":
        _show_outcome(reading, record)
    _read_other(state, reading, record)


def _show_outcome(reading: Reading, record: StreamRecord) -> None:
    """`--output-format json` prints the end of the run alone: its last words, with the tokens of all its calls."""
    try:
        end = msgspec.json.decode(reading.json, type=_RunEnd)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return
    if not end.result or end.is_error:
        return
    names = list(end.models)
    logged = Record(
        type="assistant",
        session_id=record.session_id,
        message=WireMessage(
            id=f"{record.uuid or reading.own_id()}.result",
            model=names[0] if len(names) == 1 else None,
            content=end.result,
            stop_reason=end.stop_reason or "end_turn",
            usage=end.usage,
        ),
    )
    read_assistant(reading, logged)
    reading.changes.counts.messages -= 1  # The line counts as the event that it also is.


def _read_other(state: StreamState, reading: Reading, record: StreamRecord) -> None:
    kind, logged = stream_kind(record), as_logged(state, record)
    add_kind(reading, logged, reading.session_of(logged), kind, STREAM_KINDS.get(kind), STREAM_FIELDS.get(kind, ()))


_READERS: dict[str, Callable[[StreamState, Reading, StreamRecord], None]] = {
    "assistant": _read_assistant,
    "result": _read_result,
    "stream_event": read_piece,
    "system": _read_system,
    "user": _read_user,
}
