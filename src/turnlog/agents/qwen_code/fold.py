"""The fold of one Qwen Code log: a line for each record, appended and never changed.

The order of the file and the `parentUuid` of each record make a tree. A line that cannot be read affects no other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Raw

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.gemini_cli.records import joined_text, parse_parts, to_part
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.line_fold import LineFold
from turnlog.agents.qwen_code import NAME
from turnlog.agents.qwen_code.fold_context import QwenContext, QwenState, decode_state, encode_state, metadata_of
from turnlog.agents.qwen_code.messages import read_assistant, read_result, read_user
from turnlog.agents.qwen_code.records import (
    LINES,
    PAYLOADS,
    RECORD_KINDS,
    Content,
    QwenPayload,
    QwenRecord,
    QwenRecordOutcome,
    UiEvent,
    UsageMetadata,
    usage_of,
)
from turnlog.model import CompactionEvent, ErrorEvent, InterruptEvent, Message, Origin, RewindEvent, TextPart


class QwenCodeFold(LineFold[QwenState, QwenContext, QwenRecord]):
    """Reads one log."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        super().__init__(source, decode_state(state) if state is not None else QwenState(), encode_state, LINES)

    def begin(self, data: bytes, offset: int) -> QwenContext:
        """See `LineFold.begin`."""
        is_subagent = self._source.kind is SourceKind.SUBAGENT
        return QwenContext(self._state, self._external_id(data), is_subagent=is_subagent)

    def read(self, context: QwenContext, record: QwenRecord) -> None:
        """See `LineFold.read`."""
        context.begin(record)
        _read(context, record)
        context.end(record)

    def _external_id(self, data: bytes) -> str:
        """The session of the log: from its path, else from the first record that names one, else the file's name."""
        if self._source.session_id is not None:
            return self._source.session_id.removeprefix(f"{NAME}:")
        if self._state.session is None:
            self._state.session = _session_named_in(data)
        return self._state.session or Path(self._source.path).stem


def _session_named_in(data: bytes) -> str | None:
    for line in data.splitlines():
        try:
            record = msgspec.json.decode(line, type=QwenRecord)
        except UNREADABLE:
            continue
        if record.session_id:
            # A subagent's records name the session that they belong to, and in addition the subagent.
            own = record.agent_id if record.is_sidechain else None
            return f"{record.session_id}.{own}" if own else record.session_id
    return None


def _read(context: QwenContext, record: QwenRecord) -> None:
    # Calls that belong to an answer follow it at once.
    if record.type != "assistant":
        context.state.pending_answer = None
    outcome = RECORD_KINDS.get(record.kind)
    # A message of a new subtype is still a message, and its words must not be lost.
    if outcome is None and record.type in ("user", "assistant", "tool_result") and record.message is not None:
        outcome = RECORD_KINDS[record.type]
    if outcome is None:
        context.add_record(record, known=False)
        return
    if outcome is QwenRecordOutcome.MESSAGE:
        (read_assistant if record.type == "assistant" else read_user)(context, record)
        return
    _READERS[outcome](context, record)


def _payload_of(context: QwenContext, record: QwenRecord) -> QwenPayload:
    if not isinstance(record.system_payload, Raw):
        return QwenPayload()
    found = PAYLOADS.decode(bytes(record.system_payload))
    if isinstance(found, str):
        context.report(found, json_path="$.systemPayload")
        return QwenPayload()
    for problem in found.problems:
        context.report(problem.reason, problem.severity, f"$.systemPayload{problem.json_path or ''}")
    return found.record


# -- compactions, rewinds and titles


def _read_compaction(context: QwenContext, record: QwenRecord) -> None:
    """Read a compaction: the logged history is what the model sees from here on; its first text is the summary."""
    payload, identity = _payload_of(context, record), context.event_id(record)
    history = payload.compressed_history or []
    summary_id = f"{identity}.summary"
    info = payload.info
    event = CompactionEvent(
        id=identity,
        created_at=record.timestamp,
        trigger=info.trigger_reason if info is not None else None,
        summary_message_id=summary_id if history else None,
        replacement=tuple(_replacement(content, f"{identity}.{number}") for number, content in enumerate(history)),
        tokens_before=info.original_token_count if info is not None else None,
        tokens_after=info.new_token_count if info is not None else None,
    )
    context.add_event(record, event)
    context.state.branched = True
    if not history:
        return
    text = joined_text(parse_parts(history[0].parts))
    summary = Message(
        id=summary_id,
        role="developer",
        parts=(TextPart(id=f"{summary_id}.0", text=text),),
        origin=Origin.COMPACTION,
        created_at=record.timestamp,
    )
    context.add_message(record, summary)


def _replacement(content: Content, identity: str) -> Message:
    parts = parse_parts(content.parts)
    return Message(
        id=identity,
        role="assistant" if content.role == "model" else "user",
        parts=tuple(to_part(part, f"{identity}.{number}") for number, part in enumerate(parts)),
    )


def _read_rewind(context: QwenContext, record: QwenRecord) -> None:
    """Read a rewind. Its parent is the record before the prompt that the user went back to."""
    context.state.branched = True
    event = RewindEvent(id=context.event_id(record), created_at=record.timestamp, to_message_id=context.parent)
    context.add_event(record, event)


def _read_title(context: QwenContext, record: QwenRecord) -> None:
    payload = _payload_of(context, record)
    if payload.custom_title:
        # Records without a source are of versions that knew only the user's own titles.
        source = "generated" if payload.title_source == "auto" else "custom"
        context.session.titles[source] = payload.custom_title
    context.add_run_metadata(record)


# -- telemetry
#
# Each answer, failed request and call is also reported for the terminal's statistics, in a session's log those of its
# subagents too. Calls that Qwen Code makes for itself are reported here alone.


_MAIN_CALL = re.compile(r".*#{8}.*|[0-9a-f]+")
"""`prompt_id` of a call of the conversation: the session and the number of the prompt; in 0.7.1 a random number."""

_AGENT_CALL = re.compile(r"[^#]*#(?P<agent>[^#]+)#\d+")
"""`prompt_id` of a subagent's call: the session, the subagent and the number of the round."""

_OWN_AGENT = "managed-"
"""How the names of agents begin that Qwen Code runs for itself, such as the one that collects memories."""

_ABORTED = "Request was aborted."


def _read_telemetry(context: QwenContext, record: QwenRecord) -> None:
    event = _payload_of(context, record).ui_event or UiEvent()
    kind = event.name.rpartition(".")[2]
    if kind == "tool_call" and event.call_id and event.duration_ms is not None:
        context.note_duration(event.call_id, event.duration_ms)
    purpose = side_call_of(event) if kind == "api_response" else None
    if purpose is not None:
        _add_side_call(context, record, event, purpose)
    elif kind == "api_error":
        _add_error(context, record, event)
    else:
        context.add_run_metadata(record)


def side_call_of(event: UiEvent) -> str | None:
    """What a call was for that has no record but this one; None for a call of the conversation or a subagent."""
    agent = _AGENT_CALL.fullmatch(event.prompt_id)
    if agent is not None:
        # A subagent has its own log since its name is reported; 0.7.1 keeps neither.
        has_log = event.subagent_name is not None and not agent["agent"].startswith(_OWN_AGENT)
        return None if has_log else re.sub(r"-[0-9a-z]+\Z", "", agent["agent"])
    if not event.prompt_id or _MAIN_CALL.fullmatch(event.prompt_id):
        return None
    return re.sub(r"-\d+\Z", "", event.prompt_id)


def _add_side_call(context: QwenContext, record: QwenRecord, event: UiEvent, purpose: str) -> None:
    identity = context.event_id(record)
    tokens = UsageMetadata(
        prompt_token_count=event.input_token_count,
        cached_content_token_count=event.cached_content_token_count,
        candidates_token_count=event.output_token_count,
        thoughts_token_count=event.thoughts_token_count,
        tool_use_prompt_token_count=event.tool_token_count,
        total_token_count=event.total_token_count,
    )
    text = event.response_text or ""
    message = Message(
        id=identity,
        role="assistant",
        # 0.7.1 reports the whole response of the API as a text, which is no answer to show.
        parts=(TextPart(id=f"{identity}.0", text=text),) if text and '"candidates":[' not in text else (),
        created_at=record.timestamp,
        model=event.model,
        response_id=event.response_id or None,
        usage=usage_of(tokens),
        metadata=metadata_of(record, {"side_call": purpose}),
    )
    context.add_side_call(record, message)
    context.changes.counts.messages += 1


def _add_error(context: QwenContext, record: QwenRecord, event: UiEvent) -> None:
    text = event.error_message or event.error or ""
    identity = context.event_id(record)
    if text == _ABORTED:
        context.add_event(
            record, InterruptEvent(id=identity, created_at=record.timestamp, message_id=context.state.leaf)
        )
        return
    status = event.status_code if isinstance(event.status_code, int) else None
    context.add_event(
        record,
        ErrorEvent(
            id=identity, created_at=record.timestamp, error_text=text, kind=event.error_type or "api", status=status
        ),
    )


def _read_run_metadata(context: QwenContext, record: QwenRecord) -> None:
    context.add_run_metadata(record)


def _read_record(context: QwenContext, record: QwenRecord) -> None:
    context.add_record(record, known=True)


_READERS: dict[QwenRecordOutcome, Callable[[QwenContext, QwenRecord], None]] = {
    QwenRecordOutcome.RESULT: read_result,
    QwenRecordOutcome.TELEMETRY: _read_telemetry,
    QwenRecordOutcome.COMPACTION: _read_compaction,
    QwenRecordOutcome.REWIND: _read_rewind,
    QwenRecordOutcome.TITLE: _read_title,
    QwenRecordOutcome.RUN_METADATA: _read_run_metadata,
    QwenRecordOutcome.RECORD: _read_record,
}
