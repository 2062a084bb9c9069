"""A passage of a session's history: what happened between two positions, and what it takes to understand it alone.

What a history means at a place (`turnlog.replay`) depends on little around it: the answer or prompt that it follows,
the one that ends it, and the calls whose results arrive in it, however long ago they were made. These are read by
position, so that a passage costs its own length wherever in a session it stands.
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final, NamedTuple

from turnlog.history.order import order_history
from turnlog.model import HistoryEvent, InterruptEvent, MessageEvent, ToolResultEvent
from turnlog.store.queries.history import load_events, load_events_between
from turnlog.store.queries.messages import load_messages, load_messages_at, position_of, result_places
from turnlog.store.queries.spans import Span, held, select_span
from turnlog.store.session_keys import session_key
from turnlog.store.shapes.sessions import Passage, PlacedMessage

_END: Final = 1 << 62
"""Behind and, negative, before every position."""

_ONE_RECORD: Final = 14
"""Bytes that the records of a message without results hardly exceed."""


class Arrivals(NamedTuple):
    """Where results of a session's calls arrived, in that order, and where their calls stand."""

    results: array[int]
    calls: array[int]
    interrupted: frozenset[str]
    """Messages of which a record says that the user stopped them."""

    def calls_between(self, first: int, end: int) -> set[int]:
        """Positions of the messages that have results from one position up to another."""
        return set(self.calls[bisect_left(self.results, first) : bisect_left(self.results, end)])


class ArrivalCache:
    """The arrivals of sessions as of their last change: who reads one passage reads the next."""

    def __init__(self, size: int = 16) -> None:
        self._size = size
        self._known: dict[int, tuple[int, Arrivals]] = {}

    def load(self, connection: sqlite3.Connection, session_id: str) -> Arrivals:
        """The arrivals of a session. Raises NotFoundError where it is not stored."""
        key = session_key(connection, session_id)
        (sequence,) = connection.execute("SELECT changed_seq FROM sessions WHERE key = ?", (key,)).fetchone()
        known = self._known.get(key)
        if known is None or known[0] != sequence:
            known = sequence, _load_arrivals(connection, session_id, key)
            # Two threads may both put in what they found, which is the same.
            if len(self._known) >= self._size:
                self._known.clear()
            self._known[key] = known
        return known[1]


def load_passage(connection: sqlite3.Connection, session_id: str, span: Span, arrivals: Arrivals) -> Passage:
    """A passage of a session, with what it takes to understand it; see `Store.passage`."""
    key = session_key(connection, session_id)
    first, last = _extent(connection, key, span)
    if first is None or last is None:
        return Passage(events=[], first=_END, end=_END, interrupted=arrivals.interrupted)
    previous = _edge(connection, key, Span(before=first, limit=1))
    following = _edge(connection, key, Span(after=last, limit=1))
    first = -_END if previous is None else first
    end = _END if following is None else following
    return Passage(
        events=_with_context(connection, session_id, first, end, arrivals),
        first=first,
        end=end,
        before=None if previous is None else first,
        after=None if following is None else last,
        interrupted=arrivals.interrupted,
    )


def _with_context(
    connection: sqlite3.Connection, session_id: str, first: int, end: int, arrivals: Arrivals
) -> list[HistoryEvent]:
    """What happened between two positions, from the answer or prompt before it up to the one that ends it.

    The messages of calls that have results in it stand before that. Where such a result was aborted, all since its
    call is there: whether it tells of an interruption depends on what was told since.
    """
    key = session_key(connection, session_id)
    start, stop = _spoken(connection, key, before=first), _spoken(connection, key, since=end)
    while True:
        within = load_messages(connection, session_id, Span(start - 1, stop), None, resolve_blobs=False)
        events = load_events_between(connection, session_id, start, stop)
        far = arrivals.calls_between(start, stop) | _named(connection, session_id, within, events)
        owners = load_messages_at(
            connection, session_id, {place for place in far if place < start}, resolve_blobs=False
        )
        listed = [
            event
            for event in order_history([(placed.message, placed.membership) for placed in (*owners, *within)], events)
            if event.position < stop and (event.position >= start or isinstance(event, MessageEvent))
        ]
        earliest = _first_aborted(listed, owners)
        if earliest is None:
            return listed
        start = _spoken(connection, key, before=earliest + 1)


def _first_aborted(listed: Iterable[HistoryEvent], owners: Iterable[PlacedMessage]) -> int | None:
    """Where the first of these messages stands that has an aborted result among these events."""
    aborted = {
        event.message_id for event in listed if isinstance(event, ToolResultEvent) and event.result.status == "aborted"
    }
    return min((owner.membership.position for owner in owners if owner.message.id in aborted), default=None)


def _named(
    connection: sqlite3.Connection, session_id: str, within: Iterable[PlacedMessage], events: Iterable[HistoryEvent]
) -> set[int]:
    """Where the messages stand that these events name, and that are not among these."""
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
    """Position of the nearest message of the user or the model before one, or from one on; else one of the ends."""
    span = Span(before=before, limit=1) if since is None else Span(after=since - 1, limit=1)
    select = f"SELECT s.position FROM {held(connection, key)} s JOIN messages m ON m.key = s.message_key"
    found = select_span(connection, select, key, span, "m.role IN ('user', 'assistant')")
    return found[0][0] if found else -_END if since is None else _END


def _load_arrivals(connection: sqlite3.Connection, session_id: str, key: int) -> Arrivals:
    select = f"SELECT s.position, s.records FROM {held(connection, key)} s"
    rows = select_span(connection, select, key, Span(), "length(s.records) > ?", (_ONE_RECORD,))
    pairs = sorted(
        (place, position) for position, records in rows for place in result_places(position, records).values()
    )
    interrupts = [event for event in load_events(connection, session_id, type="interrupt")]
    return Arrivals(
        results=array("q", [offset for offset, _ in pairs]),
        calls=array("q", [position for _, position in pairs]),
        interrupted=frozenset(
            event.message_id for event in interrupts if isinstance(event, InterruptEvent) and event.message_id
        ),
    )
