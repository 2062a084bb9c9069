"""All that happened in a session, in the order in which it arrived; and its landmarks."""

from __future__ import annotations

import sqlite3
from typing import Any, NamedTuple

import msgspec

from turnlog.history.order import order_history
from turnlog.model import CompactionEvent, ErrorEvent, HistoryEvent, Provenance, RecordEvent, RunMetadataEvent
from turnlog.model.codec import decode_event
from turnlog.store import zstd
from turnlog.store.base import OutlineEntry
from turnlog.store.packed_columns import unpack_data
from turnlog.store.queries.messages import load_messages
from turnlog.store.queries.spans import Span, held
from turnlog.store.rows import TURN_ORIGINS, moment
from turnlog.store.session_keys import session_key

OUTLINE_LENGTH = 200
"""Characters of a landmark's text."""


class _EventRow(NamedTuple):
    position: int
    external_id: str
    type: str
    kind: str | None
    known: int
    created_at: int | None
    start: int
    length: int | None
    source: str | None
    body: bytes | None
    data: bytes | None


_EVENTS = (
    "SELECT e.position, e.external_id, e.type, e.kind, e.known, e.created_at, coalesce(e.start, e.position), e.length,"
    " f.path, e.body, e.data FROM events e LEFT JOIN sources f ON f.key = e.source_key WHERE e.session_key = ?"
)

_PLAIN_TYPES: dict[str, type[RecordEvent | RunMetadataEvent]] = {
    "record": RecordEvent,
    "run-metadata": RunMetadataEvent,
}
"""Kinds of events whose row says it all where there is no body."""


def load_history(connection: sqlite3.Connection, session_id: str, *, resolve_blobs: bool) -> list[HistoryEvent]:
    """Messages, results and events in causal order; see `Store.history`."""
    messages = load_messages(connection, session_id, Span(), None, resolve_blobs=resolve_blobs)
    return order_history(
        [(placed.message, placed.membership) for placed in messages], load_events(connection, session_id)
    )


def load_outline(connection: sqlite3.Connection, session_id: str) -> list[OutlineEntry]:
    """Prompts, compactions, rewinds and failures of a session, in order."""
    key = session_key(connection, session_id)
    origins = sorted(TURN_ORIGINS)
    rows = connection.execute(
        "SELECT s.position, iif(m.stop_reason = 'error', 'error', m.origin), m.text_preview, m.external_id, s.turn,"
        f" m.created_at, s.fate FROM {held(connection, key)} s JOIN messages m ON m.key = s.message_key"
        f" WHERE s.session_key = ? AND (m.origin IN ({','.join('?' * len(origins))}) OR m.stop_reason = 'error')",
        (key, *origins),
    )
    entries = [
        OutlineEntry(position, origin, text, message_id, turn, moment(created_at), fate)
        for position, origin, text, message_id, turn, created_at, fate in rows
    ]
    entries += [
        _landmark(_event(row))
        for row in _event_rows(connection, f"{_EVENTS} AND e.type IN ('compaction', 'rewind', 'error')", (key,))
    ]
    return sorted(entries, key=lambda entry: entry.position)


def load_events(
    connection: sqlite3.Connection, session_id: str, position: int | None = None, type: str | None = None
) -> list[HistoryEvent]:
    """Everything of a session that is neither a message nor a result of a known call; see `Store.events`."""
    key = session_key(connection, session_id)
    wanted = {" AND e.position = ?": position, " AND e.type = ?": type}
    given = {condition: value for condition, value in wanted.items() if value is not None}
    statement = f"{_EVENTS}{''.join(given)} ORDER BY e.position, e.created_at, e.key"
    rows = _event_rows(connection, statement, (key, *given.values()))
    return [_event(row) for row in rows]


def load_events_between(connection: sqlite3.Connection, session_id: str, first: int, end: int) -> list[HistoryEvent]:
    """Those of `load_events` from one position up to another."""
    key = session_key(connection, session_id)
    statement = f"{_EVENTS} AND e.position >= ? AND e.position < ? ORDER BY e.position, e.created_at, e.key"
    return [_event(row) for row in _event_rows(connection, statement, (key, first, end))]


def _event_rows(connection: sqlite3.Connection, statement: str, parameters: tuple[Any, ...]) -> list[_EventRow]:
    return [_EventRow(*row) for row in connection.execute(statement, parameters)]


def _event(row: _EventRow) -> HistoryEvent:
    records = (
        ()
        if row.source is None or row.length is None
        else (Provenance(source=row.source, offset=row.start, length=row.length),)
    )
    if row.body is not None:
        event = decode_event(zstd.decompress(row.body))
        return msgspec.structs.replace(event, position=row.position, records=event.records or records)
    plain = _PLAIN_TYPES[row.type]
    facts: dict[str, Any] = {"known": bool(row.known)} if plain is RecordEvent else {}
    return plain(
        id=row.external_id,
        kind=row.kind or "",
        position=row.position,
        created_at=moment(row.created_at),
        records=records,
        data=unpack_data(row.data),
        **facts,
    )


def _landmark(event: HistoryEvent) -> OutlineEntry:
    text = ""
    if isinstance(event, CompactionEvent):
        text = event.trigger or ""
    elif isinstance(event, ErrorEvent):
        text = event.error_text[:OUTLINE_LENGTH]
    # The tags of these events are the kinds of an outline.
    kind = str(event.__struct_config__.tag)
    return OutlineEntry(event.position, kind, text, created_at=event.created_at)
