"""Records that are no message: each becomes an event of its own kind, with the few fields worth carrying."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.claude_code.answers import settle_answers
from turnlog.agents.claude_code.early import settle_late
from turnlog.agents.claude_code.kinds import KEPT_FIELDS, KINDS, Becomes, kind_of
from turnlog.agents.claude_code.lines import fields_of
from turnlog.agents.claude_code.reading import Reading, Session
from turnlog.agents.claude_code.records import ApiFailure, Record
from turnlog.agents.claude_code.state import ROOT
from turnlog.agents.decoding import clean_json
from turnlog.model import ErrorEvent, HistoryEvent, InterruptEvent, RecordEvent, RewindEvent, RunMetadataEvent

_SMALL = 4096
"""Bytes up to which the event of an unknown record carries the record."""


def add_record(reading: Reading, record: Record, session: Session) -> None:
    """The event that the table of kinds has for a record; one of an unknown kind is kept as such."""
    kind = kind_of(record)
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
