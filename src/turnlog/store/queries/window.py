"""A window of a session: stored frames, and what the session adds to them, with no message decoded."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec

from turnlog.store.frames import BODY_COLUMNS, PLACE, load_frames
from turnlog.store.packed_columns import event_json, unpack_many
from turnlog.store.queries.messages import children_of_calls, places_of_results
from turnlog.store.queries.spans import Span, held, select_span
from turnlog.store.rows import NANO
from turnlog.store.session_keys import session_key
from turnlog.store.window import Placement, Window

PLACE_COLUMNS = (
    "s.position, m.external_id, s.turn, s.step, s.fate, s.fate_cause,"
    f" CASE WHEN m.pays_key IS s.session_key THEN m.cost / {NANO}.0 WHEN m.cost IS NOT NULL THEN 0 END,"
    " CASE WHEN m.has_tool_calls THEN s.records END, m.key, "
    f"{BODY_COLUMNS}"
)
"""Of a membership `s` and its message `m`: what `placements` is made of, and where the body lies."""

_RECORDS = 7
"""Where the records stand in it."""

EVENT_COLUMNS = (
    "CASE WHEN body IS NULL THEN json_object('type', type, 'position', position, 'id', external_id, 'kind', kind,"
    " 'known', json(iif(known, 'true', 'false')),"
    " 'created_at', strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch')) END, body, data"
)
"""What `stored_events.event_json` makes an event of."""

_EVENTS = (
    f"SELECT {EVENT_COLUMNS} FROM events"
    " WHERE session_key = ? AND position >= ? AND position < ? ORDER BY position, created_at, key"
)

_END = 1 << 62


def load_window(connection: sqlite3.Connection, session_id: str, span: Span) -> Window:
    """A piece of a session for a browser; see `Store.window`."""
    key = session_key(connection, session_id)
    table = held(connection, key)
    select = f"SELECT {PLACE_COLUMNS} FROM {table} s JOIN messages m ON m.key = s.message_key"
    found = select_span(connection, select, key, span)
    first, last = (found[0][0], found[-1][0]) if found else (0, -1)
    before = connection.execute(
        f"SELECT 1 FROM {table} WHERE session_key = ? AND position < ? LIMIT 1", (key, first)
    ).fetchone()
    following: int | None = connection.execute(
        f"SELECT min(position) FROM {table} WHERE session_key = ? AND position > ?", (key, last)
    ).fetchone()[0]
    events = connection.execute(_EVENTS, (key, first if before else 0, _END if following is None else following))
    return Window(
        frames=load_frames(connection, [row[PLACE] for row in found]),
        rows=msgspec.json.encode(placements(connection, session_id, found)),
        events=events_json(events),
        has_before=before is not None,
        has_after=following is not None,
    )


def events_json(rows: Iterable[tuple[str | None, bytes | None, bytes | None]]) -> bytes:
    """A JSON list of events from their `EVENT_COLUMNS`."""
    return b"[%b]" % b",".join([event_json(*row) for row in rows])


def placements(connection: sqlite3.Connection, session_id: str, found: list[tuple[Any, ...]]) -> list[Placement]:
    """A row for each message, from rows that begin with `PLACE_COLUMNS`."""
    children = _children(connection, session_id)
    nothing: dict[str, str] = {}
    return [
        Placement(
            position,
            id,
            turn,
            step,
            fate,
            cause,
            cost,
            children.get(key, nothing),
            list(places_of_results(position, records).items()) if records else [],
        )
        for (position, id, turn, step, fate, cause, cost, _, key, *_), records in zip(
            found, unpack_many([row[_RECORDS] for row in found]), strict=True
        )
    ]


def _children(connection: sqlite3.Connection, session_id: str) -> dict[int, dict[str, str]]:
    """Message key -> the subagent sessions that its calls started, by call."""
    subagents = children_of_calls(connection, session_id)
    found: dict[int, dict[str, str]] = defaultdict(dict)
    if subagents:
        rows = connection.execute(
            "SELECT message_key, tool_call_id FROM parts WHERE tool_call_id IN (SELECT value FROM json_each(?))",
            (msgspec.json.encode(list(subagents)),),
        )
        for message_key, tool_call_id in rows:
            found[message_key][tool_call_id] = subagents[tool_call_id]
    return found
