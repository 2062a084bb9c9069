"""The fold of one Kimi Code log: a line for each event of an agent, appended and never changed.

The program keeps three copies of the tokens of a call, and two of each message. Tokens are those of `step.end` and
`usage.record`, joined to one call; the second copy of messages counts as duplicates. Only it has the calls of an answer
as the model wrote them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

import msgspec
from msgspec import Raw

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.decoding import list_of, object_of, value_of
from turnlog.agents.kimi import KIMI_CODE
from turnlog.agents.kimi.contents import time_of, usage_of
from turnlog.agents.kimi.fold_context import KimiContext, KimiState, decode_state, encode_state
from turnlog.agents.kimi.messages import read_appended, read_loop_event, read_message
from turnlog.agents.kimi.records import LINES, RECORD_KINDS, KimiRecord, KimiRecordOutcome
from turnlog.agents.kimi.sidecars import folder_of
from turnlog.agents.line_fold import LineFold
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    InterruptEvent,
    Message,
    MessageError,
    Origin,
    RewindEvent,
    TextPart,
)


class KimiCodeFold(LineFold[KimiState, KimiContext, KimiRecord]):
    """Reads one log."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        """Begin at the start of the log, or where `state` left off."""
        super().__init__(source, decode_state(state) if state is not None else KimiState(), encode_state, LINES)

    def begin(self, data: bytes, offset: int) -> KimiContext:
        """See `LineFold.begin`."""
        source = self._source
        # No record names the session: only the path does.
        external = (source.session_id or "").partition(":")[2] or PurePath(source.path).stem
        is_subagent = source.kind is SourceKind.SUBAGENT
        context = KimiContext(self._state, external, agent=KIMI_CODE, is_subagent=is_subagent)
        # 0.20 writes the folder nowhere else. A record that names it comes later and wins.
        if offset == 0:
            context.set_folder(folder_of(source))
        return context

    def read(self, context: KimiContext, record: KimiRecord) -> None:
        """See `LineFold.read`."""
        # The header has `created_at` where every other record has `time`.
        context.begin(time_of(record.time if record.type != "metadata" else record.created_at))
        _read(context, record)


def _read(context: KimiContext, record: KimiRecord) -> None:
    outcome = RECORD_KINDS.get(record.type)
    if outcome is None:
        context.add_record(record.type, known=False)
    else:
        _READERS[outcome](context, record)


# -- facts


def _read_header(context: KimiContext, record: KimiRecord) -> None:
    if record.protocol_version is not None:
        context.session.metadata = {KIMI_CODE: {"protocol_version": record.protocol_version}}
    context.add_run_metadata(record.type)


def _read_instructions(context: KimiContext, record: KimiRecord) -> None:
    """Read what the agent was set up with: the model, the folder, and the instructions for the model."""
    # `profile.bind` has the name that the user's settings give the model. Only `llm.request` has the provider's.
    context.state.alias = record.model_alias or context.state.alias
    folder = record.cwd or (record.environment_disclosure.cwd if record.environment_disclosure is not None else None)
    context.set_folder(folder)
    if not record.system_prompt:
        context.add_run_metadata(record.type)
        return
    message_id = context.state.instructions = context.record_id()
    context.add_message(
        Message(
            id=message_id,
            role="system",
            parts=(TextPart(id=f"{message_id}.0", text=record.system_prompt),),
            origin=Origin.HARNESS,
            created_at=context.at,
        )
    )


def _read_request(context: KimiContext, record: KimiRecord) -> None:
    """Read which model is called, and for what. The record of a step's request follows its begin."""
    step = context.state.step
    context.state.purpose, context.state.asked = record.kind, record.model
    # A request of another kind is for a summary or a title: it must not name the model of the step that was begun
    # before it.
    if record.kind == "loop" and step is not None and not step.model and record.model:
        step.model = True
        context.add_piece(step, model=record.model)
        return
    context.add_run_metadata(record.type)


def _read_usage(context: KimiContext, record: KimiRecord) -> None:
    """Read the tokens of a call: of the newest step, whose end repeats them, or of a call outside of the conversation.

    Up to protocol 1.4 the record follows the end of its step, later it comes before. An interrupted step has tokens
    only here.
    """
    state, step = context.state, context.state.step
    counted = None if record.time is None or record.usage is None else (record.time, record.usage)
    if counted is not None and counted == state.counted:
        # The same line twice, as a copy of a log that was cut and went on may have it, is no second call.
        context.changes.counts.duplicates += 1
        return
    state.counted = counted
    usage = usage_of(record.usage)
    state.alias = record.model or state.alias
    # The end of the step repeats the same tokens. Where both are there and differ, the record is of another call.
    is_steps = step is not None and not step.counted and step.usage in (None, record.usage)
    if record.usage_scope != "session" and step is not None and is_steps:
        step.counted, step.usage = True, record.usage
        model = None if step.model else state.alias
        step.model = True
        context.add_piece(step, usage=usage, model=model)
        return
    context.add_side_call(
        Message(
            id=context.record_id(),
            role="assistant",
            created_at=context.at,
            # The record has only the user's name for the model.
            model=state.asked or record.model,
            usage=usage,
            # Tokens of the scope `turn` that fit no step are of a request that was repeated after a failure.
            metadata=context.metadata_of({"side_call": state.purpose if record.usage_scope == "session" else "retry"}),
        )
    )


def _read_subagent(context: KimiContext, record: KimiRecord) -> None:
    if record.subagent_id:
        context.link_subagent(record.subagent_id, record.parent_tool_call_id)
    context.add_run_metadata(record.type)


def _read_approval(context: KimiContext, record: KimiRecord) -> None:
    """Remember what the user decided, because the result of a refused call is an error like any other."""
    # A decision without a call that waits would stay in the state forever.
    if record.tool_call_id in context.state.calls and record.result is not None and record.result.decision:
        context.state.decisions[record.tool_call_id] = record.result.decision
    context.add_run_metadata(record.type)


# -- the conversation goes back, or is replaced


def _read_compaction(context: KimiContext, record: KimiRecord) -> None:
    """Read a compaction. The summary is what the model reads from here on, with the newest prompts before it."""
    state, identity = context.state, context.record_id()
    summary_id = f"{identity}.summary"
    context.add_event(
        CompactionEvent(
            id=identity,
            created_at=context.at,
            trigger=record.source,
            summary_message_id=summary_id,
            kept_message_ids=_kept_messages(state, record),
            tokens_before=record.tokens_before,
            tokens_after=record.tokens_after,
            metadata=context.metadata_of(
                {
                    "kept_prompts": record.kept_user_message_count,
                    "kept_first_prompts": record.kept_head_user_message_count,
                }
            ),
        )
    )
    message = Message(
        id=summary_id,
        role="developer",
        parts=(TextPart(id=f"{summary_id}.0", text=record.context_summary or _summary_of(record)),),
        origin=Origin.COMPACTION,
        created_at=context.at,
    )
    context.add_message(message)
    # One record: it counts as an event.
    # `add_message` counts what it adds.
    context.changes.counts.messages -= 1
    state.branched = True
    # `context.undo` goes back no further than the newest compaction: what is before it is gone for the model.
    state.undoable = 0
    state.step = None


def _kept_messages(state: KimiState, record: KimiRecord) -> tuple[str, ...]:
    """The instructions, and the newest prompts, which the model still reads before the summary.

    Where the oldest prompts are kept too, the record does not say how many of the newest are: then none is named.
    """
    kept = record.kept_user_message_count if record.kept_head_user_message_count is None else None
    prompts = [message for message, _ in state.prompts[-kept:]] if kept else []
    return tuple([*([state.instructions] if state.instructions is not None else []), *prompts])


def _summary_of(record: KimiRecord) -> str:
    """The text of a summary, which early versions wrote as a message."""
    if not isinstance(record.summary, Raw):
        return ""
    found = value_of(record.summary)
    if isinstance(found, str):
        return found
    blocks = list_of(object_of(found).get("content"))
    return "".join(str(object_of(block).get("text", "")) for block in blocks)


def _read_undo(context: KimiContext, record: KimiRecord) -> None:
    """Read that the user took back the last prompts, with everything after them."""
    state = context.state
    count = min(max(record.count or 0, 0), state.undoable, len(state.prompts))
    if count:
        state.leaf = state.prompts[-count][1]
        state.undoable -= count
        del state.prompts[-count:]
    elif record.count:
        context.report("the prompts that are taken back are not there", "note")
    _add_rewind(context, {"count": record.count})


def _read_clear(context: KimiContext, record: KimiRecord) -> None:
    """Read that the model starts anew, without what was said before."""
    context.state.leaf = None
    context.state.prompts.clear()
    context.state.undoable = 0
    _add_rewind(context, {"clear": True})


def _add_rewind(context: KimiContext, facts: dict[str, object]) -> None:
    state = context.state
    state.branched, state.step = True, None
    event = RewindEvent(
        id=context.record_id(), created_at=context.at, to_message_id=state.leaf, metadata=context.metadata_of(facts)
    )
    context.add_event(event)


# -- the end of a turn


def _read_cancel(context: KimiContext, record: KimiRecord) -> None:
    state = context.state
    state.cancelled = True
    context.add_event(
        InterruptEvent(
            id=context.record_id(),
            created_at=context.at,
            during="tool" if state.calls else "answer",
            message_id=state.leaf,
        )
    )


def _read_retry(context: KimiContext, record: KimiRecord) -> None:
    """Read that a request failed and is sent again; the step that it was of has ended before."""
    context.add_event(
        ErrorEvent(
            id=context.record_id(),
            created_at=context.at,
            error_text=record.error_message or record.error_name or "",
            kind=record.error_name,
            status=record.status_code,
            will_retry=True,
        )
    )


def _read_turn_end(context: KimiContext, record: KimiRecord) -> None:
    context.state.cancelled = False
    context.state.told.clear()
    context.add_run_metadata(record.type)
    if record.error is None or record.reason != "failed":
        return
    status = record.error.details.status_code if record.error.details is not None else None
    text, kind, step = record.error.message or record.error.code or "", record.error.code, context.state.step
    counts = msgspec.structs.replace(context.changes.counts)
    # A step without tokens got no answer, so that the failure is the step's own.
    if step is not None and step.usage is None:
        context.add_piece(step, error=MessageError(text=text, kind=kind, status=status))
    else:
        context.add_event(
            ErrorEvent(
                id=f"{context.record_id()}.error", created_at=context.at, error_text=text, kind=kind, status=status
            )
        )
    # The record is the end of the turn, and counts once.
    context.changes.counts = counts


def _read_run_metadata(context: KimiContext, record: KimiRecord) -> None:
    context.add_run_metadata(record.type)


_READERS: dict[KimiRecordOutcome, Callable[[KimiContext, KimiRecord], None]] = {
    KimiRecordOutcome.HEADER: _read_header,
    KimiRecordOutcome.INSTRUCTIONS: _read_instructions,
    KimiRecordOutcome.MESSAGE: read_message,
    KimiRecordOutcome.LOOP_EVENT: read_loop_event,
    KimiRecordOutcome.USAGE: _read_usage,
    KimiRecordOutcome.REQUEST: _read_request,
    KimiRecordOutcome.COMPACTION: _read_compaction,
    KimiRecordOutcome.REWIND: _read_undo,
    KimiRecordOutcome.CLEAR: _read_clear,
    KimiRecordOutcome.SUBAGENT: _read_subagent,
    KimiRecordOutcome.APPROVAL: _read_approval,
    KimiRecordOutcome.CANCEL: _read_cancel,
    KimiRecordOutcome.RETRY: _read_retry,
    KimiRecordOutcome.TURN_END: _read_turn_end,
    KimiRecordOutcome.DUPLICATE: read_appended,
    KimiRecordOutcome.RUN_METADATA: _read_run_metadata,
}
