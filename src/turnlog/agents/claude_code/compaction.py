"""Compactions: a boundary record, which says what stays in the context, and the summary that follows it."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from turnlog.agents.claude_code.reading import Reading, Session
from turnlog.agents.claude_code.records import Record
from turnlog.agents.claude_code.state import OpenCompaction, message_in
from turnlog.model import CompactionEvent


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
