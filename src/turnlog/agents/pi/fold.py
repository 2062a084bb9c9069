"""The fold of one log of pi or of its family: a header, then records that are appended and never changed.

A line that cannot be read does not affect the others.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.handoffs import continuation, handed_over_facts
from turnlog.agents.line_fold import LineFold
from turnlog.agents.pi.contents import parts_of, time_of
from turnlog.agents.pi.fold_context import PiContext, PiState, decode_state, encode_state
from turnlog.agents.pi.messages import add_call, add_injected, read_message
from turnlog.agents.pi.records import LINES, RECORD_KINDS, PiMessage, PiRecord, PiRecordOutcome
from turnlog.agents.pi.sources import external_id, named_session, subagent_place
from turnlog.model import CompactionEvent, Message, Origin, RelationshipKind, TextPart
from turnlog.model.session import title_line


class PiFold(LineFold[PiState, PiContext, PiRecord]):
    """Reads one session's log."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        super().__init__(source, decode_state(state) if state is not None else PiState(), encode_state, LINES)

    def begin(self, data: bytes, offset: int) -> PiContext:
        """See `LineFold.begin`."""
        return PiContext(self._state, self._source)

    def read(self, context: PiContext, record: PiRecord) -> None:
        """See `LineFold.read`."""
        read_record(context, record, self._source)


def read_record(context: PiContext, record: PiRecord, source: Source) -> None:
    """Read one record. The context has its place and its JSON."""
    context.begin(record)
    outcome = RECORD_KINDS.get(record.type)
    if outcome is None:
        context.add_record(known=False)
    elif outcome is PiRecordOutcome.HEADER:
        _read_header(context, source)
    else:
        _link_parent(context)
        _BY_OUTCOME[outcome](context)
    # Version 1 names a record by its number, and the header is number 0.
    context.state.records += 1


# -- the header


def _read_header(context: PiContext, source: Source) -> None:
    """Read the header: the session's id, folder and parent."""
    record, state = context.record, context.state
    # A file has one header; another one in it would be a piece of another file.
    if state.started is None:
        state.started = record.timestamp
        # Version 1 calls the field `branchedFrom`.
        state.parent = record.parentSession or record.branchedFrom
        state.depth = record.rlmDepth or 0
    change = context.session
    change.cwd = record.cwd or change.cwd
    if record.cwd:
        change.project_path, change.project_at = record.cwd, context.at
    if record.title:
        # Only oh-my-pi puts a title into the header, and a model has written it.
        change.titles["generated"] = title_line(record.title)
    if context.carried is not None:
        context.changes.links.append(continuation(context.carried, context.session_id))
        change.metadata |= handed_over_facts(context.carried)
        context.extend_times(context.at)
    # oh-my-pi does not name the parent in a subagent's header: the folder of the log does.
    place = subagent_place(PurePath(source.path)) if source.kind is SourceKind.SUBAGENT else None
    if place is not None:
        context.link("subagent", place.parent)
    context.add_run_metadata()


def _link_parent(context: PiContext) -> None:
    """Link the session to the one that its header names, when its first record says how they are related."""
    state, parent = context.state, context.state.parent
    # A fork and a session that begins anew have the same header. Only the time of the first record after it tells which
    # of them it is.
    if parent is None or state.is_linked or context.at is None:
        return
    state.is_linked = True
    named = named_session(parent)
    if named is None:
        # oh-my-pi names the session itself; a file that somebody else named has a name and no id.
        is_path = "/" in parent or "\\" in parent
        named = external_id(PurePath(parent.replace("\\", "/"))) if is_path else parent
        context.link(_relation(context), named, inferred=is_path)
    else:
        context.link(_relation(context), named)


def _relation(context: PiContext) -> RelationshipKind:
    """A fork's records are older than its header; a session that begins anew has none of those."""
    # prime-agent counts in `rlmDepth` how deep a session is below the first; a subagent that was forked is a fork.
    if context.state.depth and not context.is_copy:
        return "subagent"
    return "fork" if context.is_copy else "continuation"


# -- records other than messages


def _read_message(context: PiContext) -> None:
    record = context.record
    if record.type == "message":
        read_message(context)
        return
    add_injected(context, parts_of(record.content, context.identity), record.customType, record.display, PiMessage())


_RESETS = frozenset({"reset", "reset_boundary"})
"""Records after which the model no longer gets what was before, without any summary."""


def _read_compaction(context: PiContext) -> None:
    """Read a compaction of the records before the first kept one. Its summary is a message after them."""
    record = context.record
    summary_id = f"{context.identity}.summary"
    first = record.firstKeptEntryId
    if first is None and record.firstKeptEntryIndex is not None:
        # Version 1 has no ids, so `record_id` names a record by its number, too.
        first = f"#{record.firstKeptEntryIndex}"
    # A compaction that names itself keeps nothing.
    kept = () if first is None or first == record.id else context.kept_messages(first)
    # A reset is one record and one event: unlike a compaction it has no summary, so no message follows from it.
    if record.type in _RESETS:
        context.add_only_event(
            CompactionEvent(
                id=context.identity,
                created_at=context.at,
                trigger=record.reason or record.type,
                kept_message_ids=kept or (),
            )
        )
        context.state.is_branched = True
        return
    if kept is None:
        context.report("the first record that the compaction keeps is not there", "note")
    context.add_event(
        CompactionEvent(
            id=context.identity,
            created_at=context.at,
            summary_message_id=summary_id,
            kept_message_ids=kept or (),
            tokens_before=record.tokensBefore,
            tokens_after=record.tokensAfter,
        )
    )
    _add_summary(context, summary_id)
    # What is left out of the context is computed over the whole tree, as for a rewind.
    context.state.is_branched = True


def _read_branch_summary(context: PiContext) -> None:
    """Read the summary of a branch that the user left."""
    _add_summary(context, context.identity)


def _add_summary(context: PiContext, identity: str) -> None:
    record = context.record
    part = TextPart(id=f"{identity}.0", text=record.summary or "")
    message = Message(
        id=identity,
        role="developer",
        parts=(part,),
        origin=Origin.COMPACTION,
        created_at=context.at,
        metadata=context.facts(from_record=record.fromId),
    )
    context.add_message(message)
    context.changes.counts.messages += 1
    if record.usage is not None:
        # pi asks the model that is chosen, and the record does not name it.
        add_call(
            context,
            f"{identity}.usage",
            record.usage,
            kind=record.type,
            model=context.state.model,
            is_inferred=context.state.model is not None,
        )


def _read_call(context: PiContext) -> None:
    """Read a model call that is not part of the conversation: to keep a cache warm, or for a title."""
    record = context.record
    kind = record.kind or record.purpose or record.type
    error = record.errorMessage if record.stopReason == "error" else None
    # Records after it name it as their parent, so that it needs a place in the tree though it is no message of it.
    context.add_node()
    add_call(context, context.identity, record.usage, kind=kind, model=record.model, error=error)
    context.changes.counts.messages += 1


_TITLE_SOURCES = {"session_info": "name", "title": "title", "title_change": "title"}
"""Kind of record -> its field with the title."""


def _read_title(context: PiContext) -> None:
    """Read the name of the session: the user's own, or one that oh-my-pi made."""
    record = context.record
    text = record.name if _TITLE_SOURCES[record.type] == "name" else record.title
    is_generated = record.type != "session_info" and record.source != "user"
    title = title_line(text or "")
    if title:
        context.session.titles["generated" if is_generated else "custom"] = title
    # The line is a slot of 256 bytes that oh-my-pi rewrites in place; its only time is `updatedAt`.
    if record.type == "title" and time_of(record.updatedAt) is None:
        context.report("is not a time", "note", "$.updatedAt")
    context.add_run_metadata()


def _read_run_metadata(context: PiContext) -> None:
    record = context.record
    if record.type == "model_change":
        # oh-my-pi writes both in one field: `provider/model`.
        context.state.model = record.modelId or (record.model or "").partition("/")[2] or record.model
    context.add_run_metadata()


def _read_record(context: PiContext) -> None:
    # `custom` is whatever an extension stores; its own name distinguishes extensions.
    context.add_record(known=True, name=context.record.customType)
    if context.record.type == "leaf":
        context.move_leaf(context.record.targetId)


_BY_OUTCOME: dict[PiRecordOutcome, Callable[[PiContext], None]] = {
    PiRecordOutcome.MESSAGE: _read_message,
    PiRecordOutcome.COMPACTION: _read_compaction,
    PiRecordOutcome.BRANCH_SUMMARY: _read_branch_summary,
    PiRecordOutcome.CALL: _read_call,
    PiRecordOutcome.TITLE: _read_title,
    PiRecordOutcome.RUN_METADATA: _read_run_metadata,
    PiRecordOutcome.RECORD: _read_record,
}
