"""Records that are no message: each becomes an event of its own kind, with the few fields worth carrying."""

from __future__ import annotations

from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.codex.kinds import KEPT_FIELDS, KINDS, Becomes
from turnlog.agents.codex.lines import fields_of
from turnlog.agents.codex.reading import Reading
from turnlog.agents.decoding import clean_json
from turnlog.model import HistoryEvent, RecordEvent, RunMetadataEvent

_SMALL = 4096
"""Bytes up to which the event of an unknown record carries the record."""


def add_record(reading: Reading, kind: str, payload: bytes | Raw) -> None:
    """The event that the table of kinds has for a record; one of an unknown kind is kept as such."""
    becomes = KINDS.get(kind)
    event: HistoryEvent
    if becomes is Becomes.RUN_METADATA or kind == "event_msg/token_count":
        event = RunMetadataEvent(
            id=reading.own_id(),
            position=reading.position,
            created_at=reading.at,
            kind=kind,
            data=_kept_data(kind, payload),
        )
    else:
        event = RecordEvent(
            id=reading.own_id(),
            position=reading.position,
            created_at=reading.at,
            kind=kind,
            known=becomes is not None,
            data=_small_data(reading) if becomes is None else _kept_data(kind, payload),
        )
    reading.add_event(event)


def _kept_data(kind: str, payload: bytes | Raw) -> Raw | UnsetType:
    wanted = KEPT_FIELDS.get(kind)
    if not wanted:
        return UNSET
    found = fields_of(payload)
    kept = [b'"%s":%s' % (name.encode(), bytes(found[name])) for name in wanted if name in found]
    return Raw(b"{%s}" % b",".join(kept)) if kept else UNSET


def _small_data(reading: Reading) -> Raw | UnsetType:
    return Raw(clean_json(reading.json)) if len(reading.json) <= _SMALL else UNSET
