"""The fold of what `claude -p --output-format stream-json` prints: lines of a stream -> changes of the model.

Each line is read as the record that the session's log has of it, by the functions that read logs. The ids are the same,
so the stream's message and the log's join; a block has the same number in both. A stream has no parent ids: a line
follows the one before it.

With `--include-partial-messages` a message is also printed event by event. Only these events have the text of a block
that was never finished, and with the end of a message (`message_delta`) its token counts and why it stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import UNSET

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes, MessageChange
from turnlog.agents.claude_code import NAME
from turnlog.agents.claude_code.assistant_messages import read_assistant
from turnlog.agents.claude_code.fold import add_api_error, begin_compaction
from turnlog.agents.claude_code.fold_context import ClaudeContext, add_event_of_kind
from turnlog.agents.claude_code.record_kinds import STREAM_FIELDS, STREAM_KINDS
from turnlog.agents.claude_code.records import (
    ApiEvent,
    ApiFailure,
    ApiMessage,
    ApiUsage,
    ClaudeRecord,
    StreamRecord,
    read_stream_lines,
)
from turnlog.agents.claude_code.state import SYNTHETIC, ClaudeMessageDraft, ClaudeState
from turnlog.agents.claude_code.user_messages import read_user
from turnlog.agents.decoding import aware, keep_newest
from turnlog.agents.jsonl import count_lines, whole_lines
from turnlog.model import ReasoningPart, TextPart, ToolCallPart


class PendingStreamMessage(msgspec.Struct):
    """A message that is being printed event by event."""

    message_id: str
    model: str | None = None
    usage: ApiUsage | None = None
    block: int | None = None
    kind: str = ""
    text: str = ""
    """Text of the block so far; empty once the whole block was printed."""


class ClaudeStreamState(msgspec.Struct):
    """What a fold of a stream keeps between two reads."""

    lines: int = 0
    session: str | None = None
    """External id of the session that the newest line with one named."""
    sessions: dict[str, ClaudeState] = {}
    messages: dict[str, PendingStreamMessage] = msgspec.field(
        name="answers", default_factory=dict[str, PendingStreamMessage]
    )
    """Call that started the subagent ("" for the main agent) -> its message."""
    agents: dict[str, str] = {}
    """Call -> the id of the subagent it started."""
    moment: int = 0
    """The latest time seen, in Unix milliseconds."""


_AGENTS = 64


class ClaudeStreamFold:
    """Reads one stream. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._source = source
        self._state = msgspec.json.decode(state, type=ClaudeStreamState) if state is not None else ClaudeStreamState()
        self._contexts: dict[str, ClaudeContext] = {}

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return msgspec.json.encode(self._state)

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        state, changes = self._state, Changes()
        self._contexts = {}
        for record, json, position, length, number in read_stream_lines(data, offset, state.lines + 1, changes):
            context = self._context_of(record, json, changes)
            context.json, context.position, context.length, context.line_number = json, position, length, number
            _LINE_READERS.get(record.type, _read_other)(self._state, context, record)
        state.lines += count_lines(data)
        for context in self._contexts.values():
            show_pending_messages(state, context)
            _add(changes, context, state.moment)
        return changes

    def _context_of(self, record: StreamRecord, json: bytes, changes: Changes) -> ClaudeContext:
        """The context of a line's session: the session it names, else that of the line before."""
        state = self._state
        # Lines of input (`--input-format stream-json`) name no session.
        external = record.session_id or state.session
        if external is None:
            # Input for `--input-format stream-json` names no session: its first line identifies one.
            external = f"stream-{hashlib.sha256(json).hexdigest()[:16]}"
        state.session = external
        context = self._contexts.get(external)
        if context is None:
            # A stream has `tool_result_meta`, which is what a log's decisions are.
            known = state.sessions.setdefault(external, ClaudeState(logs_decisions=True))
            context = self._contexts[external] = ClaudeContext(external, known, is_subagent=False)
            context.changes.diagnostics, context.changes.counts = changes.diagnostics, changes.counts
        if record.timestamp is not None:
            moment = aware(record.timestamp)
            state.moment = max(state.moment, round(moment.timestamp() * 1000))
        return context


_BELOW_ANY_LOG = 1 << 53
"""Subtracted from the positions of a stream's session facts: a log's facts win over them, a later run's over an
earlier run's."""


def _add(changes: Changes, context: ClaudeContext, moment: int) -> None:
    found = context.finish()
    for session in found.sessions.values():
        # A stream's lines have no offsets in the log: times order several streams, below every log.
        session.position = moment - _BELOW_ANY_LOG
    changes.sessions.update(found.sessions)
    changes.messages += [
        change if change.placement.session_id == context.main.id else _without_part_ids(change)
        for change in found.messages
    ]
    changes.results += found.results
    changes.events += found.events
    changes.links += found.links


def _without_part_ids(change: MessageChange) -> MessageChange:
    """A subagent's message without the ids of its calls' parts.

    The stream may leave out a subagent's reasoning, and then its blocks have other numbers than in its log.
    """
    parts = tuple(
        msgspec.structs.replace(part, id=None) if isinstance(part, ToolCallPart) else part
        for part in change.message.parts
    )
    return msgspec.structs.replace(change, message=msgspec.structs.replace(change.message, parts=parts))


# -- whether a file is a stream


def detect_stream(path: Path, head: bytes) -> Detection | None:
    """Whether a file is a stream, or input for `--input-format stream-json`; None if it is neither."""
    records = [record for record, *_ in read_stream_lines(whole_lines(head), 0, 1, Changes())]
    if not any(_is_streamed(record) for record in records) and not _are_prompt_lines(records):
        return None
    version = next((record.claude_code_version for record in records if record.claude_code_version), None)
    place = path.absolute()
    source = Source(agent=NAME, path=str(place), root=str(place.parent), kind=SourceKind.STREAM)
    return Detection(agent=NAME, version=version, source=source)


def _is_streamed(record: StreamRecord) -> bool:
    """Whether a line is of a stream: a log writes `sessionId`. A stream has `uuid` only since 1.0.8x."""
    return record.kind in STREAM_KINDS and record.session_id is not None


def _are_prompt_lines(records: list[StreamRecord]) -> bool:
    """Whether all lines are prompts in the form of the Messages API, without the ids that a log's records have."""
    return bool(records) and all(
        record.type == "user"
        and record.uuid is None
        and record.wire_message is not None
        and record.wire_message.role == "user"
        for record in records
    )


# -- one line


def _read_user(state: ClaudeStreamState, context: ClaudeContext, record: StreamRecord) -> None:
    logged = to_log_record(state, record)
    link_subagent_of(state, context, record, logged)
    read_user(context, logged)


def _read_assistant(state: ClaudeStreamState, context: ClaudeContext, record: StreamRecord) -> None:
    """Read a complete block. When the API's events are printed too, they have its number."""
    logged = to_log_record(state, record)
    link_subagent_of(state, context, record, logged)
    message = state.messages.get(record.parent_tool_use_id or "")
    # `apiBlockIndex` is only in logs; the event before this line had the block's `index`.
    if message is not None and logged.message is not None and logged.message.id == message.message_id:
        logged.api_block_index, message.text = message.block, ""
    read_assistant(context, logged)


def _read_system(state: ClaudeStreamState, context: ClaudeContext, record: StreamRecord) -> None:
    logged = to_log_record(state, record)
    if record.subtype == "task_started":
        remember_agent(state, record)
    if record.subtype == "compact_boundary":
        begin_compaction(context, logged, context.session_of(logged))
    elif record.subtype == "api_retry":
        logged.error = ApiFailure(
            message=record.error if isinstance(record.error, str) else None, status=record.error_status
        )
        logged.retry_attempt, logged.max_retries = record.attempt, record.max_retries
        logged.retry_in_ms = record.retry_delay_ms
        add_api_error(context, logged, context.session_of(logged))
    else:
        if record.subtype == "session_title_changed" and record.title:
            context.main.change.titles["custom"] = record.title
        _read_other(state, context, record)


def _read_result(state: ClaudeStreamState, context: ClaudeContext, record: StreamRecord) -> None:
    """Read the end of a run, with its cost. The log's own total wins over it."""
    context.main.change.reported_cost = record.total_cost_usd
    # `--output-format json` prints the last line alone; a stream's messages were printed before.
    if context.main.state.leaf is None and record.subtype == "success":
        _show_final_result(context, record)
    _read_other(state, context, record)


class _RunEnd(msgspec.Struct):
    """What the last line of a run says about its result."""

    result: str | None = None
    is_error: bool = False
    stop_reason: str | None = None
    usage: ApiUsage | None = None
    models: dict[str, msgspec.Raw] = msgspec.field(name="modelUsage", default={})


def _show_final_result(context: ClaudeContext, record: StreamRecord) -> None:
    """Add the run's result as a message: `--output-format json` prints nothing else. Its tokens are of all calls."""
    try:
        end = msgspec.json.decode(context.json, type=_RunEnd)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return
    if not end.result or end.is_error:
        return
    # `modelUsage` has the models of subagents too: of several it is not known which one wrote the result.
    names = list(end.models)
    logged = ClaudeRecord(
        type="assistant",
        session_id=record.session_id,
        message=ApiMessage(
            id=f"{record.uuid or context.position_id()}.result",
            model=names[0] if len(names) == 1 else None,
            content=end.result,
            stop_reason=end.stop_reason or "end_turn",
            usage=end.usage,
        ),
    )
    read_assistant(context, logged)
    context.changes.counts.messages -= 1  # The line is counted as an event.


def _read_other(state: ClaudeStreamState, context: ClaudeContext, record: StreamRecord) -> None:
    kind, logged = record.kind, to_log_record(state, record)
    add_event_of_kind(
        context, logged, context.session_of(logged), kind, STREAM_KINDS.get(kind), STREAM_FIELDS.get(kind, ())
    )


# -- a line as the record of the log


def to_log_record(state: ClaudeStreamState, record: StreamRecord) -> ClaudeRecord:
    """The log record that a line of a stream corresponds to."""
    message = record.wire_message
    is_failure = message is not None and message.model == SYNTHETIC and isinstance(record.error, str)
    logged = ClaudeRecord(
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
        # A line has one result.
        logged.tool_denial_kind = fact.non_execution_kind
        logged.permission_decision = fact.permission_decision.as_logged() if fact.permission_decision else None
    call = record.parent_tool_use_id
    if call is not None:
        # A stream marks a subagent's lines by the call, a log by `isSidechain` and `agentId`.
        logged.is_sidechain = True
        logged.agent_id = record.agent_id or state.agents.get(call, call)
    return logged


def link_subagent_of(
    state: ClaudeStreamState, context: ClaudeContext, record: StreamRecord, logged: ClaudeRecord
) -> None:
    """Link a subagent with its call, by the subagent's first line."""
    call, agent = record.parent_tool_use_id, logged.agent_id
    if call is None or agent is None:
        return
    child = context.child(agent)
    if child.state.leaf is None:
        context.link_subagent(context.main.id, child.id, call)


def remember_agent(state: ClaudeStreamState, record: StreamRecord) -> None:
    """Remember the id of the subagent that a call has started, from `task_started`."""
    if record.task_id and record.tool_use_id:
        keep_newest(state.agents, record.tool_use_id, record.task_id, _AGENTS)


# -- messages that are printed event by event


def read_api_event(state: ClaudeStreamState, context: ClaudeContext, record: StreamRecord) -> None:
    """Read an event of the API's stream: it begins a message, adds to it or ends it."""
    event, call = record.event, record.parent_tool_use_id or ""
    message = state.messages.get(call)
    if not isinstance(event, ApiEvent):
        add_event_of_kind(context, to_log_record(state, record), context.main, record.kind, None, ())
        return
    if event.type == "message_start" and event.message is not None and event.message.id:
        state.messages[call] = PendingStreamMessage(event.message.id, event.message.model, event.message.usage)
        # The start has counts that are not final, and a `stop_reason` of null.
        _read_as_record(state, context, record, msgspec.structs.replace(event.message, stop_reason=None, content=[]))
    elif message is None:
        context.report("a piece of a message whose start was not printed", "note")
    elif event.type == "message_delta":
        # `message_delta` alone has the final counts of a stream.
        reason = event.delta.stop_reason if event.delta else None
        usage = _merge_usage(message.usage, event.usage)
        _read_as_record(
            state,
            context,
            record,
            ApiMessage(id=message.message_id, model=message.model, content=[], stop_reason=reason, usage=usage),
        )
    else:
        _apply_event(context, message, event)
    context.changes.counts.messages += event.type not in ("message_start", "message_delta")


def _read_as_record(
    state: ClaudeStreamState, context: ClaudeContext, record: StreamRecord, message: ApiMessage
) -> None:
    logged = to_log_record(state, record)
    link_subagent_of(state, context, record, logged)
    logged.type, logged.uuid, logged.message = "assistant", None, message
    read_assistant(context, logged)


def _merge_usage(start: ApiUsage | None, end: ApiUsage | None) -> ApiUsage | None:
    """The token counts at a message's end, completed by those at its start."""
    if start is None or end is None:
        return end or start
    fields = {name: getattr(end, name) for name in end.__struct_fields__ if getattr(end, name) is not None}
    return msgspec.structs.replace(start, **fields)


def _apply_event(context: ClaudeContext, message: PendingStreamMessage, event: ApiEvent) -> None:
    if event.type == "content_block_start" and event.content_block is not None:
        message.block, message.kind = event.index, event.content_block.type
        message.text = event.content_block.text or event.content_block.thinking or ""
    elif event.type == "content_block_delta" and event.delta is not None:
        message.text += event.delta.text or event.delta.thinking or ""
    elif event.type == "content_block_stop":
        _show_partial_text(context, message)
        message.text = ""


def show_pending_messages(state: ClaudeStreamState, context: ClaudeContext) -> None:
    """Add the text so far of blocks that are still being printed, because the stream may end here."""
    for message in state.messages.values():
        _show_partial_text(context, message)


_PARTS: dict[str, Callable[[str, str], TextPart | ReasoningPart]] = {
    "text": lambda part_id, text: TextPart(id=part_id, text=text, state="streaming"),
    "thinking": lambda part_id, text: ReasoningPart(id=part_id, text=text, state="streaming"),
}


def _show_partial_text(context: ClaudeContext, message: PendingStreamMessage) -> None:
    pending_message = context.state.messages.get(message.message_id)
    if not message.text or message.block is None or message.kind not in _PARTS or pending_message is None:
        return
    draft = context.drafts.get(message.message_id)
    if draft is None:
        draft = ClaudeMessageDraft(message.message_id, context.main.id, pending_message, context.main.fate)
        context.drafts[message.message_id] = draft
        context.new_messages.append(draft)
    draft.add_part(message.block, _PARTS[message.kind](f"{message.message_id}.{message.block}", message.text))


# -- which function reads which line

_LINE_READERS: dict[str, Callable[[ClaudeStreamState, ClaudeContext, StreamRecord], None]] = {
    "assistant": _read_assistant,
    "result": _read_result,
    "stream_event": read_api_event,
    "system": _read_system,
    "user": _read_user,
}
