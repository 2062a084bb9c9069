"""A line of a printed stream as the record that the session's log has of it, and what is remembered between lines."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec
from msgspec import UNSET

from turnlog.agents.base import Source
from turnlog.agents.changes import Changes, MessageChange
from turnlog.agents.claude_code.assistant_messages import read_assistant
from turnlog.agents.claude_code.drafts import SYNTHETIC, MessageDraft
from turnlog.agents.claude_code.events import add_api_error, add_kind, open_compaction
from turnlog.agents.claude_code.fold_context import Reading
from turnlog.agents.claude_code.records import ApiFailure, Record, WireMessage, WireUsage
from turnlog.agents.claude_code.state import State
from turnlog.agents.claude_code.stream_records import (
    FIRST_KEYS,
    STREAM_FIELDS,
    STREAM_KINDS,
    STREAM_TYPES,
    StreamPiece,
    StreamRecord,
)
from turnlog.agents.claude_code.user_messages import read_user
from turnlog.agents.jsonl import JsonLines, count_lines
from turnlog.agents.reading import aware, keep_newest
from turnlog.model import ReasoningPart, TextPart, ToolCallPart

_AGENTS = 64


class OpenAnswer(msgspec.Struct):
    """A message whose pieces are being printed."""

    message_id: str
    model: str | None = None
    usage: WireUsage | None = None
    block: int | None = None
    kind: str = ""
    text: str = ""
    """Of the block, as long as the block was not printed whole."""


class StreamState(msgspec.Struct):
    """What a fold of a stream remembers."""

    lines: int = 0
    session: str | None = None
    """External id of the session that the last line named."""
    sessions: dict[str, State] = {}
    answers: dict[str, OpenAnswer] = {}
    """By the call that started the subagent; "" for the main agent."""
    agents: dict[str, str] = {}
    """Call -> the id of the subagent it started."""
    moment: int = 0
    """The latest time seen, in Unix milliseconds."""


def as_logged(state: StreamState, record: StreamRecord) -> Record:
    """The line as the session's log has it."""
    message = record.wire_message
    is_failure = message is not None and message.model == SYNTHETIC and isinstance(record.error, str)
    logged = Record(
        type=record.type,
        subtype=record.subtype,
        message=message,
        uuid=record.uuid,
        timestamp=record.timestamp,
        session_id=record.session_id,
        request_id=record.request_id,
        tool_use_result=record.tool_use_result,
        thinking_duration_ms=record.thinking_duration_ms,
        is_aborted_mid_stream=record.aborted,
        is_meta=record.is_synthetic,
        cwd=record.cwd,
        version=record.claude_code_version,
        error=record.error if is_failure else None,
        is_api_error_message=is_failure or None,
        compact_metadata=record.compact_metadata.as_logged() if record.compact_metadata else None,
        logical_parent_uuid=record.logical_parent_uuid,
        parent_uuid=None if record.compact_metadata else UNSET,
    )
    for fact in record.tool_result_meta or ():
        # A line brings one result.
        logged.tool_denial_kind = fact.non_execution_kind
        logged.permission_decision = fact.permission_decision.as_logged() if fact.permission_decision else None
    call = record.parent_tool_use_id
    if call is not None:
        logged.is_sidechain = True
        logged.agent_id = record.agent_id or state.agents.get(call, call)
    return logged


def note_agent(state: StreamState, reading: Reading, record: StreamRecord, logged: Record) -> None:
    """A subagent's first line tells which call started it."""
    call, agent = record.parent_tool_use_id, logged.agent_id
    if call is None or agent is None:
        return
    child = reading.child(agent)
    if child.thread.leaf is None:
        reading.link_subagent(reading.main.id, child.id, call)


def remember_agent(state: StreamState, record: StreamRecord) -> None:
    """A task that starts tells the id of the subagent that a call has started."""
    if record.task_id and record.tool_use_id:
        keep_newest(state.agents, record.tool_use_id, record.task_id, _AGENTS)


def read_piece(state: StreamState, reading: Reading, record: StreamRecord) -> None:
    """An event of the provider's stream: it opens a message, adds to it or ends it."""
    piece, call = record.event, record.parent_tool_use_id or ""
    answer = state.answers.get(call)
    if not isinstance(piece, StreamPiece):
        add_kind(reading, as_logged(state, record), reading.main, record.kind, None, ())
        return
    if piece.type == "message_start" and piece.message is not None and piece.message.id:
        state.answers[call] = OpenAnswer(piece.message.id, piece.message.model, piece.message.usage)
        _tell(state, reading, record, msgspec.structs.replace(piece.message, stop_reason=None, content=[]))
    elif answer is None:
        reading.tell("a piece of a message whose start was not printed", "note")
    elif piece.type == "message_delta":
        reason = piece.delta.stop_reason if piece.delta else None
        usage = _whole(answer.usage, piece.usage)
        _tell(
            state,
            reading,
            record,
            WireMessage(id=answer.message_id, model=answer.model, content=[], stop_reason=reason, usage=usage),
        )
    else:
        _follow(reading, answer, piece)
    reading.changes.counts.messages += piece.type not in ("message_start", "message_delta")


def _tell(state: StreamState, reading: Reading, record: StreamRecord, message: WireMessage) -> None:
    logged = as_logged(state, record)
    note_agent(state, reading, record, logged)
    logged.type, logged.uuid, logged.message = "assistant", None, message
    read_assistant(reading, logged)


def _whole(start: WireUsage | None, end: WireUsage | None) -> WireUsage | None:
    """The counts at a message's end; what they leave out was told at its start."""
    if start is None or end is None:
        return end or start
    fields = {name: getattr(end, name) for name in end.__struct_fields__ if getattr(end, name) is not None}
    return msgspec.structs.replace(start, **fields)


def _follow(reading: Reading, answer: OpenAnswer, piece: StreamPiece) -> None:
    if piece.type == "content_block_start" and piece.content_block is not None:
        answer.block, answer.kind = piece.index, piece.content_block.type
        answer.text = piece.content_block.text or piece.content_block.thinking or ""
    elif piece.type == "content_block_delta" and piece.delta is not None:
        answer.text += piece.delta.text or piece.delta.thinking or ""
    elif piece.type == "content_block_stop":
        _show_text(reading, answer)
        answer.text = ""


def show_open_answers(state: StreamState, reading: Reading) -> None:
    """What is there so far of blocks that are still being printed: perhaps no more will come."""
    for answer in state.answers.values():
        _show_text(reading, answer)


_PARTS: dict[str, Callable[[str, str], TextPart | ReasoningPart]] = {
    "text": lambda part_id, text: TextPart(id=part_id, text=text, state="streaming"),
    "thinking": lambda part_id, text: ReasoningPart(id=part_id, text=text, state="streaming"),
}


def _show_text(reading: Reading, answer: OpenAnswer) -> None:
    open_message = reading.state.messages.get(answer.message_id)
    if not answer.text or answer.block is None or answer.kind not in _PARTS or open_message is None:
        return
    draft = reading.drafts.get(answer.message_id)
    if draft is None:
        draft = MessageDraft(answer.message_id, reading.main.id, open_message, reading.main.fate)
        reading.drafts[answer.message_id] = draft
        reading.order.append(draft)
    draft.add_part(answer.block, _PARTS[answer.kind](f"{answer.message_id}.{answer.block}", answer.text))


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
            _LINE_READERS.get(record.type, _read_other)(self._state, reading, record)
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
    kind, logged = record.kind, as_logged(state, record)
    add_kind(reading, logged, reading.session_of(logged), kind, STREAM_KINDS.get(kind), STREAM_FIELDS.get(kind, ()))


_LINE_READERS: dict[str, Callable[[StreamState, Reading, StreamRecord], None]] = {
    "assistant": _read_assistant,
    "result": _read_result,
    "stream_event": read_piece,
    "system": _read_system,
    "user": _read_user,
}
