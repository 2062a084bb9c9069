"""The fold of one klaude-code log: a line for each event of a session, appended and never changed.

A line that cannot be read does not affect the others (R-K11). It keeps its number, because later records count lines.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Raw

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.decoding import clean_json
from turnlog.agents.jsonl import whole_lines
from turnlog.agents.klaude import NAME
from turnlog.agents.klaude.contents import cost_of, time_of
from turnlog.agents.klaude.fold_context import ActiveLine, KlaudeContext, KlaudeState, decode_state, encode_state
from turnlog.agents.klaude.messages import (
    read_assistant,
    read_developer,
    read_message_piece,
    read_result,
    read_system,
    read_user,
)
from turnlog.agents.klaude.records import (
    CONVERSATION_ITEMS,
    DATA,
    HISTORY_EVENTS,
    LINES,
    RECORD_KINDS,
    KlaudeData,
    KlaudeRecord,
    KlaudeRecordOutcome,
)
from turnlog.agents.klaude.sources import session_id, source_of
from turnlog.agents.line_fold import LineFold
from turnlog.model import CompactionEvent, ErrorEvent, InterruptEvent, Message, Origin, RewindEvent, TextPart


class KlaudeFold(LineFold[KlaudeState, KlaudeContext, KlaudeRecord]):
    """Reads one session's log."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        super().__init__(source, decode_state(state) if state is not None else KlaudeState(), encode_state, LINES)

    def begin(self, data: bytes, offset: int) -> KlaudeContext:
        """See `LineFold.begin`."""
        # No record of klaude-code contains the session's id: only the path does.
        return KlaudeContext(self._state, (self._source.session_id or "").partition(":")[2])

    def read(self, context: KlaudeContext, record: KlaudeRecord) -> None:
        """See `LineFold.read`."""
        _read(context, record)


def _read(context: KlaudeContext, record: KlaudeRecord) -> None:
    outcome = RECORD_KINDS.get(record.type)
    # `data` is decoded apart from its line, so that a field of another shape leaves the rest of the record.
    context.json = clean_json(bytes(record.data)) if isinstance(record.data, Raw) else b"{}"
    found = DATA.decode(context.json)
    if outcome is None or isinstance(found, str):
        if outcome is not None:
            context.report(f"data: {found}", json_path="$.data")
        context.add_record(record.type, None, known=outcome is not None)
        return
    context.report_problems(found.problems, "$.data")
    # Pieces of 1.x without a `response_id` are one answer as long as no other record comes between them.
    if outcome is not KlaudeRecordOutcome.MESSAGE_PIECE and record.type not in _WITHIN_MESSAGE:
        context.state.pending_message = None
    context.update_times(found.record)
    _BY_KIND.get(record.type, _BY_OUTCOME.get(outcome, _read_record))(context, record.type, found.record)


# -- whether a file is a log


def detect_log(path: Path, head: bytes) -> Detection:
    """Judge a file by its path and its beginning `head`. No record has a version, but classes differ by version."""
    source = source_of(path)
    if source is not None and source.kind is not SourceKind.SESSION:
        return Detection(agent=NAME, source=source)
    records = list(LINES.read(whole_lines(head), 0, 1, Changes()))
    kinds = [record.type for record, *_ in records if isinstance(record.data, msgspec.Raw)]
    ours = next((kind for kind in kinds if kind in HISTORY_EVENTS or kind in CONVERSATION_ITEMS), None)
    if ours is None:
        return Detection(reason="no record of a known class with data" if records else "no line is a JSON object")
    # 2.0 renamed the classes of messages. Nothing else shows the version.
    is_old = any(kind in CONVERSATION_ITEMS for kind in kinds)
    return Detection(agent=NAME, version="1.x" if is_old else "2.x", source=source or _log_source(path))


def _log_source(path: Path) -> Source:
    """A log in any other folder. No record names its session, so the name of its folder or its own name does."""
    absolute = path.absolute()
    external = absolute.parent.name if absolute.stem == "events" else absolute.stem
    return Source(
        agent=NAME, path=str(absolute), root=str(absolute.parent), session_id=session_id(external or "events")
    )


# -- records about other records
#
# Compactions, rewinds and retractions delete nothing. They name lines by number, or by their place among the active
# lines, as klaude-code's own reader counts them.


def _read_compaction(context: KlaudeContext, kind: str, data: KlaudeData) -> None:
    """Read a compaction of the lines before the first kept one. Its summary is a message after them."""
    # The event names kept messages by id, because line numbers mean nothing outside of this file.
    kept = _kept_lines(context.state.active, data)
    identity = context.position_id()
    # The record has no id of its own, and the summary is a message that later ones follow.
    summary_id = f"{identity}.summary"
    context.add_event(
        CompactionEvent(
            id=identity,
            created_at=time_of(data.created_at),
            summary_message_id=summary_id,
            kept_message_ids=tuple(line.message for line in kept if line.message is not None),
            tokens_before=data.tokens_before,
        )
    )
    _add_summary(context, summary_id, data, {})
    # What is left out of the context is computed over the whole tree, as for a rewind.
    context.state.branched = True


def _read_fork_summary(context: KlaudeContext, kind: str, data: KlaudeData) -> None:
    """Read the summary of what a rewind removed, in the session that the rewind created."""
    facts = {"source_session_id": data.source_session_id}
    _add_summary(context, context.message_id(kind, data), data, {NAME: facts} if data.source_session_id else {})
    context.changes.counts.messages += 1
    if data.source_session_id and session_id(data.source_session_id) != context.session_id:
        context.link("fork", parent=data.source_session_id)


def _read_rewind(context: KlaudeContext, kind: str, data: KlaudeData) -> None:
    """Read a rewind of old versions: the lines after its checkpoint leave the branch, if it exists.

    What the model wrote about them is a developer message of the next request, also where there was no checkpoint.
    """
    state, identity = context.state, context.position_id()
    line = state.checkpoints.get(str(data.checkpoint_id))
    # A developer message marked the checkpoint's line, which itself stays on the branch.
    remaining = [entry for entry in state.active if line is not None and entry.number <= line]
    facts = {"checkpoint_id": data.checkpoint_id, "note": data.note, "rationale": data.rationale}
    if line is not None and any(entry.number == line for entry in remaining):
        state.active = remaining
        state.leaf = next((entry.message for entry in reversed(remaining) if entry.message is not None), None)
        state.branched = True
    else:
        context.report("the rewind's checkpoint is not there", "note")
    at = time_of(data.created_at)
    context.add_event(RewindEvent(id=identity, created_at=at, to_message_id=state.leaf, metadata={NAME: facts}))
    # No record contains this message: klaude-code adds it when it builds the next request.
    text = _REWIND_REMINDER.format(rationale=data.rationale or "", note=data.note or "")
    part = TextPart(id=f"{identity}.reminder.0", text=text)
    context.add_message(
        Message(id=f"{identity}.reminder", role="developer", parts=(part,), origin=Origin.HARNESS, created_at=at)
    )


_REWIND_REMINDER = (
    "<system-reminder>After this, some operations were performed and context was refined via Rewind."
    " Rationale: {rationale}. Summary: {note}. Please continue.</system-reminder>"
)
"""The words that klaude-code puts around a rewind's rationale and note for the model (2.43.0)."""


def _read_retraction(context: KlaudeContext, kind: str, data: KlaudeData) -> None:
    """Read that the user withdrew the last message before it was answered. Without such a message nothing changes."""
    found = _retracted_line(context.state.active, data)
    if found is None:
        context.report("no message fits the retraction", "note")
    else:
        context.state.active.remove(found)
        context.retract(found)
    context.add_record(kind, data, known=True)
    context.add_line()


def _retracted_line(active: list[ActiveLine], data: KlaudeData) -> ActiveLine | None:
    # `retracted_line` counts lines of the file as it was: after a copy into a fork only the text identifies the
    # message.
    by_line = [line for line in active if line.number == data.retracted_line and line.text_crc is not None]
    if by_line:
        return by_line[0]
    last = next((line for line in reversed(active) if line.text_crc is not None), None)
    # The state keeps checksums of prompts and no texts, so that it stays small.
    wanted = crc32((data.retracted_text or "").encode(errors="replace"))
    return last if last is not None and last.text_crc == wanted else None


def _kept_lines(active: list[ActiveLine], data: KlaudeData) -> list[ActiveLine]:
    # `first_kept_index` counts active entries, as their number was when it was written; the line does not change.
    if data.first_kept_line is not None:
        return [line for line in active if line.number >= (data.first_kept_line or 0)]
    return active[max(data.first_kept_index or 0, 0) :]


def _read_recap(context: KlaudeContext, kind: str, data: KlaudeData) -> None:
    """Read a recap for the user who comes back to the session. The model never gets it, and nothing follows it."""
    identity = context.position_id()
    context.add_beside(
        Message(
            id=identity,
            role="developer",
            parts=(TextPart(id=f"{identity}.0", text=data.text or ""),),
            origin=Origin.HARNESS,
            created_at=time_of(data.created_at),
        )
    )
    context.changes.counts.messages += 1


def _add_summary(context: KlaudeContext, identity: str, data: KlaudeData, metadata: dict[str, Any]) -> None:
    message = Message(
        id=identity,
        role="developer",
        parts=(TextPart(id=f"{identity}.0", text=data.summary or ""),),
        origin=Origin.COMPACTION,
        created_at=time_of(data.created_at),
        metadata=metadata,
    )
    context.add_message(message)


# -- events and facts


def _read_interrupt(context: KlaudeContext, kind: str, data: KlaudeData) -> None:
    at = time_of(data.created_at)
    context.add_event(InterruptEvent(id=context.position_id(), created_at=at, message_id=context.state.leaf))
    context.add_line()


def _read_error(context: KlaudeContext, kind: str, data: KlaudeData) -> None:
    at = time_of(data.created_at)
    context.add_event(ErrorEvent(id=context.position_id(), created_at=at, error_text=data.error or "", kind="stream"))
    context.add_line()


def _read_run_metadata(context: KlaudeContext, kind: str, data: KlaudeData) -> None:
    # The call is unknown here: the result's `ui_extra` names it later, and the store merges both links.
    if kind == "SpawnSubAgentEntry" and data.session_id:
        context.link("subagent", child=data.session_id)
    if kind == "TaskMetadataItem":
        _add_cost(context, data)
        _name_answers(context, kind, data)
    context.add_run_metadata(kind, data)
    context.add_line()


def _name_answers(context: KlaudeContext, kind: str, data: KlaudeData) -> None:
    task = data.main_agent
    model = None if task is None else task.model_name or (task.usage.model_name if task.usage is not None else None)
    if model:
        context.name_answers(model, kind)


def _add_cost(context: KlaudeContext, data: KlaudeData) -> None:
    """Add the costs of a task, as klaude-code computed them, to the session's total in dollars."""
    # A `TaskMetadataItem` has the total of one task, so totals are added over tasks and never compared.
    tasks = [data.main_agent, *(data.sub_agent_task_metadata or ())]
    costs = [cost_of(task.usage) for task in tasks if task is not None]
    known = [float(cost.amount) for cost in costs if cost is not None and cost.currency == "USD"]
    if known:
        context.state.cost = (context.state.cost or 0.0) + sum(known)
        context.session.reported_cost = context.state.cost


def _read_record(context: KlaudeContext, kind: str, data: KlaudeData) -> None:
    context.add_record(kind, data, known=True)
    context.add_line()


# -- which function reads which record

_Reader = Callable[[KlaudeContext, str, KlaudeData], None]

_BY_KIND: dict[str, _Reader] = {
    "SystemMessage": read_system,
    "SystemMessageItem": read_system,
    "DeveloperMessage": read_developer,
    "DeveloperMessageItem": read_developer,
    "UserMessage": read_user,
    "UserMessageItem": read_user,
    "AssistantMessage": read_assistant,
    "ForkSummaryEntry": _read_fork_summary,
    "AwaySummaryEntry": _read_recap,
}

_BY_OUTCOME: dict[KlaudeRecordOutcome, _Reader] = {
    KlaudeRecordOutcome.MESSAGE_PIECE: read_message_piece,
    KlaudeRecordOutcome.RESULT: read_result,
    KlaudeRecordOutcome.COMPACTION: _read_compaction,
    KlaudeRecordOutcome.REWIND: _read_rewind,
    KlaudeRecordOutcome.RETRACTION: _read_retraction,
    KlaudeRecordOutcome.INTERRUPT: _read_interrupt,
    KlaudeRecordOutcome.ERROR: _read_error,
    KlaudeRecordOutcome.RUN_METADATA: _read_run_metadata,
    KlaudeRecordOutcome.RECORD: _read_record,
}

_WITHIN_MESSAGE = frozenset({"StartItem", "ToolCallStartItem", "AssistantMessageDelta", "ReasoningTextDelta"})
"""Records that do not end the message whose pieces are being read."""
