"""A window of a session: stored frames, and what the session adds to them, with no message decoded."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from typing import Any

import msgspec

from turnlog.store import bodies
from turnlog.store.families import session_key
from turnlog.store.queries.messages import Span, children_of_calls, result_places, select_span
from turnlog.store.rows import NANO, moment
from turnlog.store.window import Window

_SELECT = (
    "SELECT s.position, m.external_id, s.turn, s.step, s.fate, s.fate_cause,"
    " CASE WHEN m.pays_key IS s.session_key THEN m.cost WHEN m.cost IS NOT NULL THEN 0 END,"
    " m.has_tool_calls, s.records, m.key, m.body FROM memberships s JOIN messages m ON m.key = s.message_key"
)

_EVENTS = (
    "SELECT position, external_id, type, kind, known, created_at, body FROM events"
    " WHERE session_key = ? AND position >= ? AND position < ? ORDER BY position, key"
)

_END = 1 << 62


def load_window(connection: sqlite3.Connection, session_id: str, span: Span) -> Window:
    """A piece of a session for a browser; see `Store.window`."""
    key = session_key(connection, session_id)
    found = select_span(connection, _SELECT, key, span)
    first, last = (found[0][0], found[-1][0]) if found else (0, -1)
    before = connection.execute(
        "SELECT 1 FROM memberships WHERE session_key = ? AND position < ? LIMIT 1", (key, first)
    ).fetchone()
    following: int | None = connection.execute(
        "SELECT min(position) FROM memberships WHERE session_key = ? AND position > ?", (key, last)
    ).fetchone()[0]
    events = _events(connection, key, first if before else 0, _END if following is None else following)
    return Window(
        frames=[row[-1] for row in found],
        rows=msgspec.json.encode(_rows(connection, session_id, key, found)),
        events=msgspec.json.encode(events),
        has_before=before is not None,
        has_after=following is not None,
    )


def _rows(
    connection: sqlite3.Connection, session_id: str, session_key: int, found: list[tuple[Any, ...]]
) -> list[dict[str, Any]]:
    """What the session adds to each message; a key that would be empty is there all the same."""
    children = _children(connection, session_id, session_key)
    nothing: dict[str, str] = {}
    return [
        {
            "position": position,
            "message_id": message_id,
            "turn": turn,
            "step": step,
            "fate": fate,
            "fate_cause": cause,
            "cost": None if cost is None else cost / NANO,
            "children": children.get(message_key, nothing) if has_calls else nothing,
            "results": list(result_places(records).items()) if has_calls else (),
        }
        for position, message_id, turn, step, fate, cause, cost, has_calls, records, message_key, _ in found
    ]


def _children(connection: sqlite3.Connection, session_id: str, session_key: int) -> dict[int, dict[str, str]]:
    """Message key -> the subagent sessions that its calls started."""
    found: dict[int, dict[str, str]] = defaultdict(dict)
    for tool_call_id, child in children_of_calls(connection, session_id).items():
        rows = connection.execute(
            "SELECT p.message_key FROM parts p JOIN memberships s ON s.message_key = p.message_key"
            " WHERE p.tool_call_id = ? AND s.session_key = ?",
            (tool_call_id, session_key),
        )
        for (message_key,) in rows:
            found[message_key][tool_call_id] = child
    return found


def _events(connection: sqlite3.Connection, key: int, start: int, end: int) -> list[Any]:
    """Events of the window: as they are stored, or what their row says of them."""
    rows = connection.execute(_EVENTS, (key, start, end))
    return [
        {
            "type": type_,
            "position": position,
            "id": external_id,
            "kind": kind,
            "known": bool(known),
            "created_at": moment(created_at),
        }
        if body is None
        else msgspec.Raw(bodies.decompress(body))
        for position, external_id, type_, kind, known, created_at, body in rows
    ]
