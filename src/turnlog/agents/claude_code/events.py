"""Records that are no message: each becomes an event of its own kind, with the few fields worth carrying."""

from __future__ import annotations

from datetime import UTC

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import LeafTitle
from turnlog.agents.claude_code.fold_context import Reading, Session, settle_late
from turnlog.agents.claude_code.record_kinds import KEPT_FIELDS, KINDS, Becomes
from turnlog.agents.claude_code.records import ApiFailure, Record, fields_of
from turnlog.agents.claude_code.sources import NAME
from turnlog.agents.claude_code.state import ROOT, OpenCompaction, message_in
from turnlog.agents.claude_code.tool_results import settle_answers
from turnlog.agents.decoding import clean_json
from turnlog.agents.reading import aware, value_of
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    HistoryEvent,
    InterruptEvent,
    RecordEvent,
    RewindEvent,
    RunMetadataEvent,
)

_SMALL = 4096
"""Bytes up to which the event of an unknown record carries the record."""


def add_record(reading: Reading, record: Record, session: Session) -> None:
    """The event that the table of kinds has for a record; one of an unknown kind is kept as such."""
    kind = record.kind
    add_kind(reading, record, session, kind, KINDS.get(kind), KEPT_FIELDS.get(kind, ()))


def add_kind(
    reading: Reading, record: Record, session: Session, kind: str, becomes: Becomes | None, fields: tuple[str, ...]
) -> None:
    """The event of a record of some kind, with some of its fields; None for a kind that no table has."""
    identity = record.uuid or reading.own_id()
    event: HistoryEvent
    if becomes is Becomes.RUN_METADATA:
        event = RunMetadataEvent(
            id=identity,
            position=reading.position,
            created_at=record.timestamp,
            kind=kind,
            data=_kept_data(reading, fields),
        )
    else:
        event = RecordEvent(
            id=identity,
            position=reading.position,
            created_at=record.timestamp,
            kind=kind,
            known=becomes is not None,
            data=_small_data(reading) if becomes is None else _kept_data(reading, fields),
        )
    told = reading.add_event(event, record, session)
    settle_late(reading, record, session, told.parent_id or ROOT)
    reading.changes.counts.events += 1


def add_odd_record(reading: Reading, record: Record) -> None:
    """A record of a known type without what makes it one."""
    reading.tell("the record lacks what its type has", "error")
    add_record(reading, record, reading.session_of(record))


def add_interrupt(reading: Reading, record: Record, session: Session, during: str) -> None:
    """The user pressed Esc, which the log has in the place of a prompt."""
    settle_answers(reading, record.interrupted_message_id)
    event = InterruptEvent(
        id=record.uuid or reading.own_id(),
        position=reading.position,
        created_at=record.timestamp,
        during="tool" if during == "tool" else "answer",
        message_id=record.interrupted_message_id or session.thread.anchor,
    )
    reading.add_event(event, record, session)


def add_rewind(reading: Reading, record: Record, session: Session, to: str | None, to_record: str | None) -> None:
    """A prompt that goes on from an older message. `to_record` names that when only its record id is known."""
    event = RewindEvent(
        id=f"{record.uuid or reading.own_id()}.rewind",
        position=reading.position,
        created_at=record.timestamp,
        to_message_id=to,
        metadata={"to_record": to_record} if to_record is not None else {},
    )
    reading.changes.events.append(reading.event_beside(event, session))


def add_api_error(reading: Reading, record: Record, session: Session) -> None:
    """A request that failed; most are tried again."""
    failure = record.error if isinstance(record.error, ApiFailure) else ApiFailure(message=record.error)
    facts = {
        "retry_attempt": record.retry_attempt,
        "max_retries": record.max_retries,
        "retry_in_ms": record.retry_in_ms,
        "message": failure.message if failure.formatted else None,
    }
    known = {name: value for name, value in facts.items() if value is not None}
    event = ErrorEvent(
        id=record.uuid or reading.own_id(),
        position=reading.position,
        created_at=record.timestamp,
        error_text=failure.formatted or failure.message or "",
        kind="api",
        status=failure.status,
        metadata={"claude-code": known} if known else {},
    )
    reading.add_event(event, record, session)
    reading.changes.counts.events += 1


def add_hook_error(reading: Reading, record: Record, session: Session) -> None:
    """Hooks that failed when the agent stopped."""
    event = ErrorEvent(
        id=record.uuid or reading.own_id(),
        position=reading.position,
        created_at=record.timestamp,
        error_text="\n".join(str(error) for error in record.hook_errors or ()),
        kind="hook",
    )
    reading.add_event(event, record, session)
    reading.changes.counts.events += 1


def _kept_data(reading: Reading, fields: tuple[str, ...]) -> Raw | UnsetType:
    if not fields:
        return UNSET
    found = fields_of(reading.json)
    kept = {name: found[name] for name in fields if name in found}
    return Raw(msgspec.json.encode(kept)) if kept else UNSET


def _small_data(reading: Reading) -> Raw | UnsetType:
    return Raw(clean_json(reading.json)) if len(reading.json) <= _SMALL else UNSET


def open_compaction(reading: Reading, record: Record, session: Session) -> None:
    """A boundary. It begins a chain of its own, but logically hangs under what it compacted.

    Its event waits for the next message, which is the summary, so that it is told once and whole.
    """
    if record.parent_uuid is None:
        # The logical parent may be a record that was never written.
        record.parent_uuid = record.logical_parent_uuid or UNSET
    facts = record.compact_metadata
    kept, lost = _kept_messages(reading, record)
    event = CompactionEvent(
        id=record.uuid or reading.own_id(),
        position=reading.position,
        created_at=record.timestamp,
        trigger=facts.trigger if facts else None,
        kept_message_ids=kept,
        tokens_before=facts.pre_tokens if facts else None,
        tokens_after=facts.post_tokens if facts else None,
        metadata={"kept_records": lost} if lost else {},
    )
    # Where the user chose what is summarized, all before is summarized or kept, on either side of the logical parent.
    chosen = facts is not None and facts.messages_summarized is not None
    node = session.thread.leaf if chosen and session.thread.leaf else reading.parent_node(record, session)
    if record.uuid is not None:
        reading.state.remember_record(record.uuid, node)
    reading.close_compaction(None)
    reading.state.compaction = OpenCompaction(
        event=msgspec.Raw(msgspec.json.encode(event)),
        session_id=session.id,
        position=reading.position,
        length=reading.length,
        record_id=record.uuid,
        parent_id=message_in(node),
    )
    reading.changes.counts.events += 1


def _kept_messages(reading: Reading, record: Record) -> tuple[tuple[str, ...], list[str]]:
    """The messages that stay in the context, and the records of those that are not remembered."""
    facts = record.compact_metadata
    preserved = facts.preserved_messages if facts else None
    records = (preserved.all_uuids or preserved.uuids or []) if preserved else []
    found: dict[str, None] = {}
    lost: list[str] = []
    for record_id in records:
        node = reading.state.nodes.get(record_id)
        message_id = message_in(node) if node is not None else None
        if message_id is None:
            lost.append(record_id)
        else:
            found[message_id] = None
    return tuple(found), lost


_START = "00000000-0000-0000-0000-000000000000"


def read_fact(reading: Reading, record: Record) -> None:
    """A fact about the session, or a record of a kind that is not known."""
    if record.uuid is not None:
        if reading.is_known(record):
            return
        session = reading.session_of(record)
    else:
        session = reading.main
        session.change.position = reading.position
        if record.timestamp is not None and record.timestamp.tzinfo is not UTC:
            record.timestamp = aware(record.timestamp)
    reader = _FACT_READERS.get(record.type)
    if reader is not None:
        reader(reading, record, session)
    add_record(reading, record, session)


def _read_leaf(reading: Reading, record: Record, session: Session) -> None:
    """The agent names the end of the active branch.

    The pointer is written late: it may lag behind the records or run ahead of them, so it counts only when it
    names an older message. All zeros mean the very start, but right after a branch they mean that branch.
    """
    thread, leaf = session.thread, record.leaf_uuid
    branched, thread.branched = thread.branched, False
    if leaf == _START:
        if record.explicit and not branched:
            session.pointer, session.change.relink = "", True
        return
    node = reading.state.nodes.get(leaf) if leaf is not None else None
    if node is not None and node not in (thread.leaf, thread.anchor):
        session.pointer, session.change.relink = leaf, True


def _read_summary(reading: Reading, record: Record, session: Session) -> None:
    """A title for the session that holds the leaf, which is seldom this file: then the store looks for it."""
    leaf = record.leaf_uuid
    if record.summary is None or leaf is None:
        return
    if leaf not in reading.state.nodes:
        reading.changes.leaf_titles.append(LeafTitle(record_id=leaf, title=record.summary))
        return
    holder = reading.state.sidechains.get(leaf)
    titled = session if holder is None else reading.child(holder.partition(".")[2])
    titled.change.titles["summary"] = record.summary


def _read_custom_title(reading: Reading, record: Record, session: Session) -> None:
    if record.custom_title:
        session.change.titles["custom"] = record.custom_title


def _read_generated_title(reading: Reading, record: Record, session: Session) -> None:
    if record.ai_title:
        session.change.titles["generated"] = record.ai_title


def _read_cost(reading: Reading, record: Record, session: Session) -> None:
    """A running total, helper calls included that no record shows; a fork's goes on from its parent's."""
    if record.total_cost_usd is not None:
        session.change.reported_cost = record.total_cost_usd


def _read_name(reading: Reading, record: Record, session: Session) -> None:
    name = fields_of(reading.json).get("agentName")
    if name is not None:
        session.change.metadata = {NAME: {"agent_name": value_of(name)}}


_FACT_READERS = {
    "agent-name": _read_name,
    "ai-title": _read_generated_title,
    "cost-state": _read_cost,
    "custom-title": _read_custom_title,
    "last-prompt": _read_leaf,
    "summary": _read_summary,
}
