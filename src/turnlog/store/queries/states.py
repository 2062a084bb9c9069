"""The end of sessions, from which `store.states` tells what they are doing, and the runs that are known of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import UNSET

from turnlog.agents.turns import TurnMarker, turn_markers
from turnlog.model import Message, Origin, ToolCallPart
from turnlog.model.call_summary import call_summary
from turnlog.model.tools import OPEN_STATES
from turnlog.store import bodies
from turnlog.store.frames import BodyReader
from turnlog.store.rows import TURN_ORIGINS, moment
from turnlog.store.states import OpenCall, Sign, TurnFacts

_MESSAGES: Final = (
    "SELECT s.position, m.role, m.origin, m.stop_reason, m.created_at, m.completed_at, m.has_tool_calls, m.key,"
    " m.stop_reason IS NOT NULL OR m.has_tool_calls OR EXISTS"
    "  (SELECT 1 FROM parts p WHERE p.message_key = m.key AND p.type <> 'reasoning')"
    " FROM memberships s JOIN messages m ON m.key = s.message_key"
    " WHERE s.session_key = ? AND s.fate IN ('active', 'compacted') ORDER BY s.position DESC LIMIT 60"
)
_EVENTS: Final = (
    "SELECT position, type, kind, created_at FROM events WHERE kind IN (SELECT value FROM json_each(?1))"
    " AND session_key = ?2 UNION ALL SELECT position, type, kind, created_at FROM events"
    " WHERE kind IS NULL AND session_key = ?2 AND type = 'interrupt'"
)
_SESSIONS: Final = (
    "SELECT s.agent || ':' || s.external_id, s.key, s.agent, s.changed_seq, s.updated_at"
    " FROM json_each(?) w CROSS JOIN owners o CROSS JOIN sessions s ON s.owner_key = o.key"
    " AND s.agent = json_extract(w.value, '$[0]') AND s.external_id = json_extract(w.value, '$[1]')"
)
_CALLS: Final = (
    "SELECT tool_call_id FROM parts WHERE message_key = ? AND tool_name IS NOT NULL"
    f" AND tool_state IN ({', '.join('?' * len(OPEN_STATES))})"
)

_BEGIN: Final = TURN_ORIGINS | {Origin.NOTIFICATION}
_END: Final = frozenset({Origin.COMMAND_OUTPUT, Origin.SHELL_OUTPUT})
"""What a command printed is all that comes of it, unless a model answers."""

SUMMARY_LENGTH: Final = 200
"""Characters of an open call's summary."""


class TurnCache:
    """Facts of sessions as of their last change: most of a list has not changed since it was last shown."""

    def __init__(self, size: int = 5000) -> None:
        self._size = size
        self._known: dict[str, tuple[int, TurnFacts]] = {}

    def load(self, connection: sqlite3.Connection, session_ids: Iterable[str]) -> dict[str, TurnFacts]:
        """Facts by session id; a session that is not stored is left out."""
        wanted = [session_id.partition(":")[::2] for session_id in session_ids]
        found: dict[str, TurnFacts] = {}
        for session_id, key, agent, sequence, updated_at in connection.execute(
            _SESSIONS, (json.dumps(wanted),)
        ).fetchall():
            known = self._known.get(session_id)
            if known is None or known[0] != sequence:
                known = sequence, load_turn_facts(connection, key, agent, updated_at)
                self._keep(session_id, known)
            found[session_id] = known[1]
        return found

    def _keep(self, session_id: str, known: tuple[int, TurnFacts]) -> None:
        # Two threads may both put in what they found, which is the same.
        if len(self._known) >= self._size:
            self._known.clear()
        self._known[session_id] = known


def load_turn_facts(connection: sqlite3.Connection, key: int, agent: str, updated_at: int | None) -> TurnFacts:
    """What the last records of a session say of its last turn."""
    signs = _event_signs(connection, key, turn_markers(agent))
    calls: list[OpenCall] = []
    for row in connection.execute(_MESSAGES, (key,)).fetchall():
        position, role, origin, stop_reason, created_at, completed_at, has_calls, message_key, says_something = row
        begins = role != "assistant" and origin in _BEGIN
        if begins:
            signs.append(Sign("prompt", position, moment(created_at), origin))
        elif origin in _END:
            signs.append(Sign("end", position, moment(created_at), origin))
        elif role == "assistant" and origin is None and says_something:
            at = moment(created_at if completed_at is None else completed_at)
            signs.append(Sign("answer", position, at, stop_reason, bool(has_calls)))
            calls += _open_calls(connection, message_key, position) if has_calls else ()
        if begins:
            break
    signs.sort(key=lambda sign: sign.position)
    calls.sort(key=lambda call: call.position)
    return TurnFacts(signs, calls, moment(updated_at))


def _event_signs(connection: sqlite3.Connection, key: int, kinds: Mapping[str, TurnMarker]) -> list[Sign]:
    rows = connection.execute(_EVENTS, (json.dumps(list(kinds)), key))
    return [
        Sign("interrupt" if type == "interrupt" else kinds[kind], position, moment(at), kind)
        for position, type, kind, at in rows
    ]


def _open_calls(connection: sqlite3.Connection, message_key: int, position: int) -> list[OpenCall]:
    waiting = {row[0] for row in connection.execute(_CALLS, (message_key, *OPEN_STATES))}
    if not waiting:
        return []
    message: Message = bodies.decode(BodyReader(connection).of(message_key))
    return [
        OpenCall(
            position=position,
            tool_call_id=part.tool_call_id,
            tool_name=part.tool_name,
            kind=part.kind,
            state=part.state,
            started_at=part.started_at or message.created_at,
            summary=_summary(part),
        )
        for part in message.parts
        if isinstance(part, ToolCallPart) and part.tool_call_id in waiting
    ]


def _summary(part: ToolCallPart) -> str | None:
    """What a call is about: the field of its input that tells most, or the text that its input is."""
    told = part.input_text if part.input is UNSET else call_summary(part)
    return told[:SUMMARY_LENGTH] if told else None
