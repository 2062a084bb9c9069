"""Records that are no messages: events, compactions, and facts about the session."""

from __future__ import annotations

from datetime import UTC

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import LeafTitle
from turnlog.agents.claude_code.fold_context import ClaudeContext, SessionContext, resolve_early_replies
from turnlog.agents.claude_code.record_kinds import KEPT_FIELDS, RECORD_KINDS, RecordOutcome
from turnlog.agents.claude_code.records import ApiFailure, Record, fields_of
from turnlog.agents.claude_code.sources import NAME
from turnlog.agents.claude_code.state import ROOT, PendingCompaction, message_of_node
from turnlog.agents.claude_code.tool_results import settle_rejections
from turnlog.agents.decoding import aware, clean_json, value_of
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    HistoryEvent,
    InterruptEvent,
    RecordEvent,
    RewindEvent,
    RunMetadataEvent,
)

_SMALL_RECORD = 4096
"""Bytes up to which the event of an unknown record carries the record."""


def add_record_event(context: ClaudeContext, record: Record, session: SessionContext) -> None:
    """Add the event that `record_kinds` has for a record; a record of an unknown kind is kept as such."""
    kind = record.kind
    add_event_of_kind(context, record, session, kind, RECORD_KINDS.get(kind), KEPT_FIELDS.get(kind, ()))


def add_event_of_kind(
    context: ClaudeContext,
    record: Record,
    session: SessionContext,
    kind: str,
    outcome: RecordOutcome | None,
    fields: tuple[str, ...],
) -> None:
    """Add the event of a record of this kind, with the given fields. `outcome` is None for an unknown kind."""
    identity = record.uuid or context.position_id()
    event: HistoryEvent
    if outcome is RecordOutcome.RUN_METADATA:
        event = RunMetadataEvent(
            id=identity,
            position=context.position,
            created_at=record.timestamp,
            kind=kind,
            data=_kept_data(context, fields),
        )
    else:
        event = RecordEvent(
            id=identity,
            position=context.position,
            created_at=record.timestamp,
            kind=kind,
            known=outcome is not None,
            data=_small_data(context) if outcome is None else _kept_data(context, fields),
        )
    change = context.add_event(event, record, session)
    resolve_early_replies(context, record, session, change.parent_id or ROOT)
    context.changes.counts.events += 1


def add_malformed_record(context: ClaudeContext, record: Record) -> None:
    """Add a diagnostic and an event for a record of a known type that lacks what the type needs."""
    context.report("the record lacks what its type has", "error")
    add_record_event(context, record, context.session_of(record))


def add_interrupt(context: ClaudeContext, record: Record, session: SessionContext, during: str) -> None:
    """Add the interrupt for an Esc of the user, which the log has in the place of a prompt."""
    settle_rejections(context, record.interrupted_message_id)
    event = InterruptEvent(
        id=record.uuid or context.position_id(),
        position=context.position,
        created_at=record.timestamp,
        during="tool" if during == "tool" else "answer",
        message_id=record.interrupted_message_id or session.state.anchor,
    )
    context.add_event(event, record, session)


def add_rewind(
    context: ClaudeContext, record: Record, session: SessionContext, to: str | None, to_record: str | None
) -> None:
    """Add a rewind: a prompt follows an older message, `to`. Where that is unknown, `to_record` is its record."""
    event = RewindEvent(
        id=f"{record.uuid or context.position_id()}.rewind",
        position=context.position,
        created_at=record.timestamp,
        to_message_id=to,
        metadata={"to_record": to_record} if to_record is not None else {},
    )
    context.changes.events.append(context.extra_event(event, session))


def add_api_error(context: ClaudeContext, record: Record, session: SessionContext) -> None:
    """Add the error of a request that failed. Claude Code tries most of them again."""
    failure = record.error if isinstance(record.error, ApiFailure) else ApiFailure(message=record.error)
    facts = {
        "retry_attempt": record.retry_attempt,
        "max_retries": record.max_retries,
        "retry_in_ms": record.retry_in_ms,
        "message": failure.message if failure.formatted else None,
    }
    known = {name: value for name, value in facts.items() if value is not None}
    event = ErrorEvent(
        id=record.uuid or context.position_id(),
        position=context.position,
        created_at=record.timestamp,
        error_text=failure.formatted or failure.message or "",
        kind="api",
        status=failure.status,
        metadata={"claude-code": known} if known else {},
    )
    context.add_event(event, record, session)
    context.changes.counts.events += 1


def add_hook_error(context: ClaudeContext, record: Record, session: SessionContext) -> None:
    """Add the error of hooks that failed when the agent stopped."""
    event = ErrorEvent(
        id=record.uuid or context.position_id(),
        position=context.position,
        created_at=record.timestamp,
        error_text="\n".join(str(error) for error in record.hook_errors or ()),
        kind="hook",
    )
    context.add_event(event, record, session)
    context.changes.counts.events += 1


def _kept_data(context: ClaudeContext, fields: tuple[str, ...]) -> Raw | UnsetType:
    if not fields:
        return UNSET
    found = fields_of(context.json)
    kept = {name: found[name] for name in fields if name in found}
    return Raw(msgspec.json.encode(kept)) if kept else UNSET


def _small_data(context: ClaudeContext) -> Raw | UnsetType:
    return Raw(clean_json(context.json)) if len(context.json) <= _SMALL_RECORD else UNSET


# -- compactions


def begin_compaction(context: ClaudeContext, record: Record, session: SessionContext) -> None:
    """Read a `compact_boundary` record, which says what stays in the context.

    Its event is emitted with the next message, the summary, so that the event is complete.
    """
    if record.parent_uuid is None:
        # The boundary begins a new chain of parents, but its place is after what it compacted. Its logical parent may
        # be a record that was never written.
        record.parent_uuid = record.logical_parent_uuid or UNSET
    facts = record.compact_metadata
    kept, lost = _kept_messages(context, record)
    event = CompactionEvent(
        id=record.uuid or context.position_id(),
        position=context.position,
        created_at=record.timestamp,
        trigger=facts.trigger if facts else None,
        kept_message_ids=kept,
        tokens_before=facts.pre_tokens if facts else None,
        tokens_after=facts.post_tokens if facts else None,
        metadata={"kept_records": lost} if lost else {},
    )
    # Where the user chose what is summarized (up to a prompt, or from it, 2.1.330), messages on both sides of the
    # logical parent are summarized or kept, so the boundary follows the newest one.
    chosen = facts is not None and facts.messages_summarized is not None
    node = session.state.leaf if chosen and session.state.leaf else context.parent_node(record, session)
    if record.uuid is not None:
        context.state.remember_record(record.uuid, node)
    context.finish_compaction(None)
    context.state.compaction = PendingCompaction(
        event=msgspec.Raw(msgspec.json.encode(event)),
        session_id=session.id,
        position=context.position,
        length=context.length,
        record_id=record.uuid,
        parent_id=message_of_node(node),
    )
    context.changes.counts.events += 1


def _kept_messages(context: ClaudeContext, record: Record) -> tuple[tuple[str, ...], list[str]]:
    """The ids of messages that stay in the context, and the record ids of those that are not remembered."""
    facts = record.compact_metadata
    preserved = facts.preserved_messages if facts else None
    records = (preserved.all_uuids or preserved.uuids or []) if preserved else []
    found: dict[str, None] = {}
    lost: list[str] = []
    for record_id in records:
        node = context.state.nodes.get(record_id)
        message_id = message_of_node(node) if node is not None else None
        if message_id is None:
            lost.append(record_id)
        else:
            found[message_id] = None
    return tuple(found), lost


# -- facts about the session: titles, the active leaf, costs

_BEFORE_FIRST_RECORD = "00000000-0000-0000-0000-000000000000"


def read_session_fact(context: ClaudeContext, record: Record) -> None:
    """Read a fact about the session, which stands outside the chain, or a record of an unknown kind."""
    if record.uuid is not None:
        if context.is_known(record):
            return
        session = context.session_of(record)
    else:
        session = context.main
        session.change.position = context.position
        if record.timestamp is not None and record.timestamp.tzinfo is not UTC:
            record.timestamp = aware(record.timestamp)
    reader = _FACT_READERS.get(record.type)
    if reader is not None:
        reader(context, record, session)
    add_record_event(context, record, session)


def _read_leaf(context: ClaudeContext, record: Record, session: SessionContext) -> None:
    """Claude Code names the end of the active branch."""
    state, leaf = session.state, record.leaf_uuid
    branched, state.branched = state.branched, False
    if leaf == _BEFORE_FIRST_RECORD:
        # All messages are rewound. Right after a branch began, the zeros stand for that branch instead.
        if record.explicit and not branched:
            session.named_leaf, session.change.relink = "", True
        return
    # The record is written with a delay and may name a record before or behind the newest. So it counts only when it
    # names an older message than the two newest.
    node = context.state.nodes.get(leaf) if leaf is not None else None
    if node is not None and node not in (state.leaf, state.anchor):
        session.named_leaf, session.change.relink = leaf, True


def _read_summary(context: ClaudeContext, record: Record, session: SessionContext) -> None:
    """The title of the session that holds the leaf. That is mostly another file's session, which the store finds."""
    leaf = record.leaf_uuid
    if record.summary is None or leaf is None:
        return
    if leaf not in context.state.nodes:
        context.changes.leaf_titles.append(LeafTitle(record_id=leaf, title=record.summary))
        return
    holder = context.state.sidechains.get(leaf)
    titled = session if holder is None else context.child(holder.partition(".")[2])
    titled.change.titles["summary"] = record.summary


def _read_custom_title(context: ClaudeContext, record: Record, session: SessionContext) -> None:
    if record.custom_title:
        session.change.titles["custom"] = record.custom_title


def _read_generated_title(context: ClaudeContext, record: Record, session: SessionContext) -> None:
    if record.ai_title:
        session.change.titles["generated"] = record.ai_title


def _read_cost(context: ClaudeContext, record: Record, session: SessionContext) -> None:
    """A running total of dollars, with helper calls that no record shows; a fork's total includes its parent's."""
    if record.total_cost_usd is not None:
        session.change.reported_cost = record.total_cost_usd


def _read_agent_name(context: ClaudeContext, record: Record, session: SessionContext) -> None:
    name = fields_of(context.json).get("agentName")
    if name is not None:
        session.change.metadata = {NAME: {"agent_name": value_of(name)}}


_FACT_READERS = {
    "agent-name": _read_agent_name,
    "ai-title": _read_generated_title,
    "cost-state": _read_cost,
    "custom-title": _read_custom_title,
    "last-prompt": _read_leaf,
    "summary": _read_summary,
}
