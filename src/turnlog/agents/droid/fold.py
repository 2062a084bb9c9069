"""The fold of one Droid log: a line for each record, appended; only the first one may be written anew, for a new title.

A line that cannot be read affects no other.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from turnlog.agents.base import Source
from turnlog.agents.changes import Link
from turnlog.agents.droid.fold_context import DroidContext, DroidState, decode_state, encode_state
from turnlog.agents.droid.messages import read_message
from turnlog.agents.droid.records import LINES, RECORD_KINDS, DroidRecord, DroidRecordOutcome
from turnlog.agents.droid.sources import session_id
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.line_fold import LineFold
from turnlog.model import CompactionEvent, ErrorEvent, InterruptEvent, Message, Origin, TextPart


class DroidFold(LineFold[DroidState, DroidContext, DroidRecord]):
    """Reads one log."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        super().__init__(source, decode_state(state) if state is not None else DroidState(), encode_state, LINES)

    def begin(self, data: bytes, offset: int) -> DroidContext:
        """See `LineFold.begin`."""
        return DroidContext(self._state, self._external_id(data))

    def read(self, context: DroidContext, record: DroidRecord) -> None:
        """See `LineFold.read`."""
        context.begin(record)
        outcome = RECORD_KINDS.get(record.type)
        if outcome is None:
            context.add_record(known=False)
        else:
            _READERS[outcome](context)
        context.end()

    def _external_id(self, data: bytes) -> str:
        """The session of the log: from its path, else from its first record, else the file's name."""
        if self._source.session_id is not None:
            return self._source.session_id.partition(":")[2]
        if self._state.session is None:
            self._state.session = _session_named_in(data)
        return self._state.session or Path(self._source.path).stem


def _session_named_in(data: bytes) -> str | None:
    for line in data.splitlines():
        try:
            record = msgspec.json.decode(line, type=DroidRecord)
        except UNREADABLE:
            continue
        if record.type == "session_start" and record.id:
            return record.id
    return None


# -- records other than messages


def _read_session(context: DroidContext) -> None:
    """Read the first record: where the session runs, what it is called, and which session it came out of."""
    record, state, change = context.record, context.state, context.session
    change.cwd = record.last_cwd or record.cwd or change.cwd
    change.project_path = record.cwd or change.project_path
    # 0.117.0 writes what it shows to `sessionTitle`, and only the beginning of the prompt to `title`.
    title = record.session_title or record.title
    if record.calling_session_id:
        state.is_subagent = True
        parent = session_id(record.calling_session_id)
        context.link(
            Link(
                kind="subagent",
                parent_session_id=parent,
                child_session_id=context.session_id,
                tool_call_id=record.calling_tool_use_id or None,
            )
        )
        # Droid itself names a subagent, and marks that as the user's choice.
        if title:
            change.titles["generated"] = title
    elif title and record.is_session_title_manually_set:
        change.titles["custom"] = title
    else:
        # Whether it is more than the beginning of the prompt is known when the prompt has been read.
        state.title = title
    if record.parent:
        # Copied records look like all others: only this id shows where they end.
        state.copied_until = record.forked_at_message_id or None
        context.link(
            Link(
                kind="fork",
                parent_session_id=session_id(record.parent),
                child_session_id=context.session_id,
                message_id=record.forked_at_message_id or None,
            )
        )
    context.add_run_metadata()


def _read_compaction(context: DroidContext) -> None:
    """Read a compaction: the summary takes the place of the messages up to the anchor."""
    record = context.record
    anchor = record.anchor_message.id if record.anchor_message is not None else None
    kept = context.kept_messages(anchor)
    if kept is None:
        context.report("the last message that the compaction replaces is not there", "note")
    # The record's id is the same in a fork; the event is of this file alone.
    summary_id = f"{context.record_id}.summary"
    event = CompactionEvent(
        id=context.position_id,
        created_at=record.timestamp,
        trigger=record.summary_kind,
        summary_message_id=summary_id if record.summary_text else None,
        kept_message_ids=kept or (),
        tokens_after=record.summary_tokens,
    )
    context.add_event(event)
    context.state.is_branched = True
    if record.summary_text:
        part = TextPart(id=f"{summary_id}.0", text=record.summary_text)
        context.add_summary(
            Message(
                id=summary_id,
                role="developer",
                parts=(part,),
                origin=Origin.COMPACTION,
                created_at=record.timestamp,
            )
        )


_FINE = frozenset({"completed", "spec_handoff"})
"""Reasons for which a turn ends that are no failure: it is done, or continues in a new session (0.215.0)."""

_STOPPED = "cancelled"


def _read_turn_end(context: DroidContext) -> None:
    """Read why a turn has ended. An error is reported once: mostly a message before has its words."""
    record, identity = context.record, context.position_id
    reason = record.reason or ""
    # The answer that was stopped is not in the log, so that the interrupt belongs to the newest message.
    if reason == _STOPPED:
        context.add_further_event(InterruptEvent(id=f"{identity}.interrupt", message_id=context.state.leaf))
    elif reason and reason not in _FINE and not context.state.has_failed:
        context.add_further_event(ErrorEvent(id=f"{identity}.error", error_text=reason, kind=reason))
    context.add_run_metadata()


def _read_run_metadata(context: DroidContext) -> None:
    context.add_run_metadata()


_READERS: dict[DroidRecordOutcome, Callable[[DroidContext], None]] = {
    DroidRecordOutcome.SESSION: _read_session,
    DroidRecordOutcome.MESSAGE: read_message,
    DroidRecordOutcome.COMPACTION: _read_compaction,
    DroidRecordOutcome.TURN_END: _read_turn_end,
    DroidRecordOutcome.RUN_METADATA: _read_run_metadata,
}
