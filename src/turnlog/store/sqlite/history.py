"""The history of a session in SQLite: messages and events in causal order, its landmarks, and passages.

The meaning of a passage (`turnlog.replay`) depends on little around it: the assistant message or prompt before it, the
one that ends it, and the calls whose results arrive in it, however old they are. These are looked up by position, so
that a passage costs the same anywhere in a session.

`TurnQueries` reads the facts about the last turn, from which `store.session_state` derives the session's state.
"""

from __future__ import annotations

import json
import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET

from turnlog.agents import turn_markers
from turnlog.agents.base import TurnMarker
from turnlog.history.order import order_history
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    Fate,
    HistoryEvent,
    InterruptEvent,
    Message,
    MessageEvent,
    Origin,
    Provenance,
    RecordEvent,
    RunMetadataEvent,
    ToolCallPart,
    ToolResultEvent,
)
from turnlog.model.codec import decode_event
from turnlog.model.parts import OPEN_STATES, call_summary
from turnlog.store import bodies, zstd
from turnlog.store.frames import BodyReader
from turnlog.store.keys import session_key
from turnlog.store.packed_columns import unpack_data
from turnlog.store.rows import TURN_ORIGINS, moment
from turnlog.store.session_state import PlacedCall, PlacedMarker, TurnFacts, UnfinishedCall
from turnlog.store.sqlite.messages import MessageQueries, messages_at, position_of, result_places
from turnlog.store.sqlite.reading import Connections, Span, held, select_span
from turnlog.store.sqlite.sessions import WANTED_SESSIONS, wanted_sessions
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

_PLAIN_TYPES: dict[str, type[RecordEvent | RunMetadataEvent]] = {
    "record": RecordEvent,
    "run-metadata": RunMetadataEvent,
}
"""Kinds of events whose columns are enough if they have no body."""


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


# Gemini CLI writes a message before its calls as it writes its last one. So an answer is a message with content, or
# with a reason why the model stopped.
_NEWEST_MESSAGES: Final = (
    "SELECT s.position, m.role, m.origin, m.stop_reason, m.created_at, m.completed_at, m.has_tool_calls, m.key,"
    " m.stop_reason IS NOT NULL OR m.has_tool_calls OR EXISTS"
    "  (SELECT 1 FROM parts p WHERE p.message_key = m.key AND p.type <> 'reasoning'), m.billed_key IS NULL"
    " FROM memberships s JOIN messages m ON m.key = s.message_key"
    " WHERE s.session_key = ? AND s.fate IN ('active', 'compacted') ORDER BY s.position DESC LIMIT 60"
)
_MARKING_EVENTS: Final = (
    "SELECT position, type, kind, created_at, key FROM events WHERE kind IN (SELECT value FROM json_each(?1))"
    " AND session_key = ?2 UNION ALL SELECT position, type, kind, created_at, key FROM events"
    " WHERE kind IS NULL AND session_key = ?2 AND type = 'interrupt' ORDER BY key"
)
_OPEN_CALLS: Final = (
    "SELECT tool_call_id FROM parts WHERE message_key = ? AND tool_name IS NOT NULL"
    f" AND tool_state IN ({', '.join('?' * len(OPEN_STATES))})"
)

_BEGINNINGS: Final = TURN_ORIGINS | {Origin.NOTIFICATION}
_ENDINGS: Final = frozenset({Origin.COMMAND_OUTPUT, Origin.SHELL_OUTPUT})
"""Origins after which no turn is expected: the printed output is the result, unless a model continues."""

HANDED_OVER_END: Final = "handed-over"
"""The detail of the end of a turn that turnlog wrote from another session."""

SUMMARY_LENGTH: Final = 200
"""Characters in the summary of an unfinished call."""


class TurnQueries(Connections):
    """The query of `Store` about the last turn of sessions."""

    def turn_facts(self, session_ids: Iterable[str]) -> dict[str, TurnFacts]:
        with self._snapshot() as connection:
            return self._turns.load(connection, session_ids)

    @cached_property
    def _turns(self) -> TurnCache:
        return TurnCache()


class TurnCache:
    """A cache of turn facts, valid until the session changes: most of a list is unchanged when it is shown again."""

    def __init__(self, size: int = 5000) -> None:
        self._size = size
        self._known: dict[str, tuple[int, TurnFacts]] = {}

    def load(self, connection: sqlite3.Connection, session_ids: Iterable[str]) -> dict[str, TurnFacts]:
        """Facts by session id; ids that are not stored are left out."""
        found: dict[str, TurnFacts] = {}
        rows = connection.execute(
            "SELECT s.agent || ':' || s.external_id, s.key, s.agent, s.changed_seq, s.updated_at"
            f" FROM {WANTED_SESSIONS}",
            (wanted_sessions(session_ids),),
        )
        for session_id, key, agent, sequence, updated_at in rows.fetchall():
            known = self._known.get(session_id)
            if known is None or known[0] != sequence:
                known = sequence, _turn_facts(connection, key, agent, updated_at)
                self._keep(session_id, known)
            found[session_id] = known[1]
        return found

    def _keep(self, session_id: str, known: tuple[int, TurnFacts]) -> None:
        # Two threads may both store the same value here.
        if len(self._known) >= self._size:
            self._known.clear()
        self._known[session_id] = known


def _turn_facts(connection: sqlite3.Connection, key: int, agent: str, updated_at: int | None) -> TurnFacts:
    """Read what the last records of a session say about its last turn."""
    markers = _event_markers(connection, key, turn_markers(agent))
    calls: list[PlacedCall] = []
    for row in connection.execute(_NEWEST_MESSAGES, (key,)).fetchall():
        position, role, origin, stop_reason, created_at, completed_at, has_calls, message_key, has_content, carried = (
            row
        )
        if carried:
            # Only what was handed over is billed to no session. Its turn runs in no agent until somebody goes on.
            markers.append(PlacedMarker("end", position, moment(updated_at), HANDED_OVER_END))
            break
        begins = role != "assistant" and origin in _BEGINNINGS
        if begins:
            markers.append(PlacedMarker("prompt", position, moment(created_at), origin))
        elif origin in _ENDINGS:
            markers.append(PlacedMarker("end", position, moment(created_at), origin))
        elif role == "assistant" and origin is None and has_content:
            at = moment(created_at if completed_at is None else completed_at)
            markers.append(PlacedMarker("answer", position, at, stop_reason, bool(has_calls)))
            calls += _unfinished_calls(connection, message_key, position) if has_calls else ()
        # The newest come first: what lies before the prompt of the last turn does not matter.
        if begins:
            break
    markers.sort(key=lambda marker: marker.position)
    calls.sort(key=lambda placed: placed.position)
    return TurnFacts(markers, calls, moment(updated_at))


def _event_markers(connection: sqlite3.Connection, key: int, kinds: Mapping[str, TurnMarker]) -> list[PlacedMarker]:
    rows = connection.execute(_MARKING_EVENTS, (json.dumps(list(kinds)), key))
    return [
        PlacedMarker("interrupt" if type == "interrupt" else kinds[kind], position, moment(at), kind)
        for position, type, kind, at, _ in rows
    ]


def _unfinished_calls(connection: sqlite3.Connection, message_key: int, position: int) -> list[PlacedCall]:
    waiting = {row[0] for row in connection.execute(_OPEN_CALLS, (message_key, *OPEN_STATES))}
    if not waiting:
        return []
    message: Message = bodies.decode(BodyReader(connection).of(message_key))
    return [
        PlacedCall(
            position,
            UnfinishedCall(
                tool_call_id=part.tool_call_id,
                tool_name=part.tool_name,
                kind=part.kind,
                state=part.state,
                started_at=part.started_at or message.created_at,
                summary=_summary(part),
            ),
        )
        for part in message.parts
        if isinstance(part, ToolCallPart) and part.tool_call_id in waiting
    ]


def _summary(part: ToolCallPart) -> str | None:
    """A one-line summary of a call: the most telling field of its input, or the input itself if it is text."""
    text = part.input_text if part.input is UNSET else call_summary(part)
    return text[:SUMMARY_LENGTH] if text else None


def _pins(connection: sqlite3.Connection, key: int) -> list[OutlineEntry]:
    """The messages of a session that the user has pinned, as far as it still has them."""
    rows = connection.execute(
        "SELECT p.position, m.text_preview, m.external_id, p.turn, m.created_at, p.fate FROM sessions s"
        " JOIN annotations a ON a.session_id = s.agent || ':' || s.external_id JOIN json_each(a.pins) pin"
        " JOIN messages m ON m.agent = s.agent AND m.external_id = pin.value"
        f" JOIN {held(connection, key)} p ON p.message_key = m.key AND p.session_key = s.key WHERE s.key = ?",
        (key,),
    )
    return [
        OutlineEntry(position, "pin", text, message_id, turn, moment(created_at), Fate(fate))
        for position, text, message_id, turn, created_at, fate in rows
    ]
