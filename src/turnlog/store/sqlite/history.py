"""The history of a session in SQLite: messages and events in causal order, its landmarks, and passages.

The meaning of a passage (`turnlog.replay`) depends on little around it: the assistant message or prompt before it, the
one that ends it, and the calls whose results arrive in it, however old they are. These are looked up by position, so
that a passage costs the same anywhere in a session.
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgspec

from turnlog.history.order import order_history
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    Fate,
    HistoryEvent,
    InterruptEvent,
    MessageEvent,
    Provenance,
    RecordEvent,
    ToolResultEvent,
)
from turnlog.model.codec import decode_event
from turnlog.store import zstd
from turnlog.store.keys import session_key
from turnlog.store.packed_columns import PLAIN_TYPES, unpack_data
from turnlog.store.rows import TURN_ORIGINS, moment
from turnlog.store.sqlite.messages import MessageQueries, messages_at, position_of, result_places
from turnlog.store.sqlite.reading import Span, held, select_span
from turnlog.store.values import OutlineEntry, Passage, PlacedMessage

OUTLINE_LENGTH = 200
"""Characters of a landmark's text."""

_LAST: Final = 1 << 62
"""A position after all others; negated, one before all others."""

_ONE_RECORD: Final = 14
"""Bytes that the records of a message without results rarely exceed."""


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


class HistoryQueries(MessageQueries):
    """The queries of `Store` about all that happened in a session."""

    def history(self, session_id: str, *, resolve_blobs: bool = True) -> list[HistoryEvent]:
        with self._snapshot():
            return _ordered(self.messages(session_id, resolve_blobs=resolve_blobs), self.events(session_id))

    def events(self, session_id: str, *, position: int | None = None, type: str | None = None) -> list[HistoryEvent]:
        wanted = {" AND e.position = ?": position, " AND e.type = ?": type}
        given = {condition: value for condition, value in wanted.items() if value is not None}
        with self._snapshot() as connection:
            return _events(connection, session_key(connection, session_id), "".join(given), tuple(given.values()))

    def outline(self, session_id: str) -> list[OutlineEntry]:
        origins = sorted(TURN_ORIGINS)
        with self._snapshot() as connection:
            key = session_key(connection, session_id)
            rows = connection.execute(
                "SELECT s.position, iif(m.stop_reason = 'error', 'error', m.origin), m.text_preview, m.external_id,"
                f" s.turn, m.created_at, s.fate FROM {held(connection, key)} s JOIN messages m ON m.key = s.message_key"
                " WHERE s.session_key = ?"
                f" AND (m.origin IN ({','.join('?' * len(origins))}) OR m.stop_reason = 'error')",
                (key, *origins),
            )
            entries = [
                OutlineEntry(position, origin, text, message_id, turn, moment(created_at), Fate(fate))
                for position, origin, text, message_id, turn, created_at, fate in rows
            ]
            entries += _pins(connection, key)
            landmarks = _events(connection, key, " AND e.type IN ('compaction', 'rewind', 'error')")
        entries += map(_landmark, landmarks)
        return sorted(entries, key=lambda entry: entry.position)

    def passage(
        self,
        session_id: str,
        *,
        after: int | None = None,
        before: int | None = None,
        around: int | None = None,
        limit: int = 40,
    ) -> Passage:
        with self._snapshot() as connection:
            arrivals = self._arrivals.load(connection, session_id)
            key = session_key(connection, session_id)
            first, last = _extent(connection, key, Span(after, before, around, limit))
            if first is None or last is None:
                return Passage(events=[], first=_LAST, end=_LAST, interrupted=arrivals.interrupted)
            previous = _edge(connection, key, Span(before=first, limit=1))
            following = _edge(connection, key, Span(after=last, limit=1))
            # Events before the first message belong to the first passage.
            first = -_LAST if previous is None else first
            # Events after the last message belong to the last passage.
            end = _LAST if following is None else following
            return Passage(
                events=self._with_context(connection, session_id, first, end, arrivals),
                first=first,
                end=end,
                before=None if previous is None else first,
                after=None if following is None else last,
                interrupted=arrivals.interrupted,
            )

    def _with_context(
        self, connection: sqlite3.Connection, session_id: str, first: int, end: int, arrivals: Arrivals
    ) -> list[HistoryEvent]:
        """What happened between two positions, from the user or model message before it to the one that ends it.

        Messages of calls with results in the passage come first. If such a result was aborted, everything since its
        call is included, because that decides whether it means an interruption.
        """
        key = session_key(connection, session_id)
        start, stop = _spoken(connection, key, before=first), _spoken(connection, key, since=end)
        # An aborted result leads to its call, and the messages since then may contain results of calls made still
        # earlier.
        while True:
            within = self.messages(session_id, after=start - 1, before=stop, resolve_blobs=False)
            events = _events(connection, key, " AND e.position >= ? AND e.position < ?", (start, stop))
            far = arrivals.calls_between(start, stop) | _named(connection, session_id, within, events)
            owners = messages_at(connection, session_id, {place for place in far if place < start})
            listed = [
                event
                for event in _ordered([*owners, *within], events)
                if event.position < stop and (event.position >= start or isinstance(event, MessageEvent))
            ]
            earliest = _first_aborted(listed, owners)
            if earliest is None:
                return listed
            start = _spoken(connection, key, before=earliest + 1)

    @cached_property
    def _arrivals(self) -> ArrivalCache:
        return ArrivalCache()


def _ordered(placed: Iterable[PlacedMessage], events: list[HistoryEvent]) -> list[HistoryEvent]:
    return order_history([(each.message, each.membership) for each in placed], events)


def _events(
    connection: sqlite3.Connection, key: int, condition: str = "", values: tuple[Any, ...] = ()
) -> list[HistoryEvent]:
    """Events of a session in order; `condition` begins with AND."""
    rows = connection.execute(f"{_EVENTS}{condition} ORDER BY e.position, e.created_at, e.key", (key, *values))
    return [_event(_EventRow(*row)) for row in rows]


def _event(row: _EventRow) -> HistoryEvent:
    records = (
        ()
        if row.source is None or row.length is None
        else (Provenance(source=row.source, offset=row.start, length=row.length),)
    )
    if row.body is not None:
        event = decode_event(zstd.decompress(row.body))
        return msgspec.structs.replace(event, position=row.position, records=event.records or records)
    plain = PLAIN_TYPES[row.type]
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


def _first_aborted(listed: Iterable[HistoryEvent], owners: Iterable[PlacedMessage]) -> int | None:
    """The position of the first of these messages with an aborted result among these events."""
    aborted = {
        event.message_id for event in listed if isinstance(event, ToolResultEvent) and event.result.status == "aborted"
    }
    return min((owner.membership.position for owner in owners if owner.message.id in aborted), default=None)


def _named(
    connection: sqlite3.Connection, session_id: str, within: Iterable[PlacedMessage], events: Iterable[HistoryEvent]
) -> set[int]:
    """Positions of messages that these events refer to and that are not in `within`."""
    present = {placed.message.id for placed in within}
    named = {event.message_id for event in events if isinstance(event, InterruptEvent | ToolResultEvent)}
    places = [position_of(connection, session_id, name) for name in named - present if name is not None]
    return {place for place in places if place is not None}


def _extent(connection: sqlite3.Connection, key: int, span: Span) -> tuple[int | None, int | None]:
    """Positions of the first and the last message of a span."""
    found = select_span(connection, f"SELECT s.position FROM {held(connection, key)} s", key, span)
    return (found[0][0], found[-1][0]) if found else (None, None)


def _edge(connection: sqlite3.Connection, key: int, span: Span) -> int | None:
    """The position of the one message of a span."""
    return _extent(connection, key, span)[0]


def _spoken(connection: sqlite3.Connection, key: int, *, before: int | None = None, since: int | None = None) -> int:
    """The position of the nearest user or model message before one, or from one on; otherwise the first or last."""
    span = Span(before=before, limit=1) if since is None else Span(after=since - 1, limit=1)
    select = f"SELECT s.position FROM {held(connection, key)} s JOIN messages m ON m.key = s.message_key"
    found = select_span(connection, select, key, span, "m.role IN ('user', 'assistant')")
    return found[0][0] if found else -_LAST if since is None else _LAST


class Arrivals(NamedTuple):
    """Positions at which results arrived in a session, in order, and the positions of their calls."""

    results: array[int]
    calls: array[int]
    interrupted: frozenset[str]
    """Messages that the user stopped, according to a record."""

    def calls_between(self, first: int, end: int) -> set[int]:
        """Positions of the messages whose results arrived between two positions."""
        return set(self.calls[bisect_left(self.results, first) : bisect_left(self.results, end)])


class ArrivalCache:
    """A cache of arrivals, valid until the session changes: whoever reads one passage will read the next."""

    def __init__(self, size: int = 16) -> None:
        self._size = size
        self._known: dict[int, tuple[int, Arrivals]] = {}

    def load(self, connection: sqlite3.Connection, session_id: str) -> Arrivals:
        """The arrivals of a session. Raises NotFoundError if it is not stored."""
        key = session_key(connection, session_id)
        (sequence,) = connection.execute("SELECT changed_seq FROM sessions WHERE key = ?", (key,)).fetchone()
        known = self._known.get(key)
        if known is None or known[0] != sequence:
            known = sequence, _load_arrivals(connection, key)
            # Two threads may both store the same value here.
            if len(self._known) >= self._size:
                self._known.clear()
            self._known[key] = known
        return known[1]


def _load_arrivals(connection: sqlite3.Connection, key: int) -> Arrivals:
    select = f"SELECT s.position, s.records FROM {held(connection, key)} s"
    rows = select_span(connection, select, key, Span(), "length(s.records) > ?", (_ONE_RECORD,))
    pairs = sorted(
        (place, position) for position, records in rows for place in result_places(position, records).values()
    )
    interrupts = _events(connection, key, " AND e.type = ?", ("interrupt",))
    return Arrivals(
        results=array("q", [offset for offset, _ in pairs]),
        calls=array("q", [position for _, position in pairs]),
        interrupted=frozenset(
            event.message_id for event in interrupts if isinstance(event, InterruptEvent) and event.message_id
        ),
    )


def _pins(connection: sqlite3.Connection, key: int) -> list[OutlineEntry]:
    """The messages of a session that the user has pinned, as far as it still has them."""
    rows = connection.execute(
        "SELECT p.position, m.text_preview, m.external_id, p.turn, m.created_at, p.fate FROM sessions s"
        " JOIN annotations a ON a.session_id = s.agent || ':' || s.external_id"
        " JOIN json_each(iif(json_valid(a.pins), a.pins, '[]')) pin"
        " JOIN messages m ON m.agent = s.agent AND m.external_id = pin.value"
        f" JOIN {held(connection, key)} p ON p.message_key = m.key AND p.session_key = s.key WHERE s.key = ?",
        (key,),
    )
    return [
        OutlineEntry(position, "pin", text, message_id, turn, moment(created_at), Fate(fate))
        for position, text, message_id, turn, created_at, fate in rows
    ]
