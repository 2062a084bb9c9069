"""The last turn of sessions in SQLite: the facts from which `store.session_state` derives a session's state."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, Final, NamedTuple, cast

import msgspec
from msgspec import UNSET

from turnlog.agents import turn_markers
from turnlog.agents.base import TurnMarker
from turnlog.model import ErrorEvent, Message, Origin, ToolCallPart
from turnlog.model.parts import OPEN_STATES, call_summary
from turnlog.store.damaged import read_value
from turnlog.store.rows import TURN_ORIGINS, moment
from turnlog.store.session_state import (
    LAST_ANSWER,
    MarkerKind,
    PlacedCall,
    PlacedMarker,
    TurnFacts,
    UnfinishedCall,
)
from turnlog.store.sqlite.reading import Connections
from turnlog.store.sqlite.sessions import WANTED_SESSIONS, wanted_sessions
from turnlog.store.values import CHAT_AGENT

# Gemini CLI writes a message before its calls as it writes its last one. So an answer is a message with content, or
# with a reason why the model stopped.
_NEWEST_MESSAGES: Final = (
    "SELECT s.position, m.role, m.origin, m.stop_reason, m.created_at, m.completed_at, m.has_tool_calls, m.key,"
    " m.stop_reason IS NOT NULL OR m.has_tool_calls OR EXISTS"
    "  (SELECT 1 FROM parts p WHERE p.message_key = m.key AND p.type <> 'reasoning'), m.billed_key IS NULL,"
    " m.external_id"
    " FROM memberships s JOIN messages m ON m.key = s.message_key"
    " WHERE s.session_key = ? AND s.fate IN ('active', 'compacted') ORDER BY s.position DESC LIMIT 60"
)
_MARKING_EVENTS: Final = (
    "SELECT position, type, kind, created_at, key FROM events WHERE kind IN (SELECT value FROM json_each(?1))"
    " AND session_key = ?2 UNION ALL SELECT position, type, kind, created_at, key FROM events"
    " WHERE kind IS NULL AND session_key = ?2 AND type = 'interrupt' ORDER BY key"
)
# A result has no place of its own, so that only its time shows that the agent went on after the error.
_LAST_ERROR_AFTER: Final = (
    "SELECT body FROM events WHERE session_key = ?1 AND type = 'error' AND position > ?2"
    " AND (created_at IS NULL OR created_at >= ?3) ORDER BY position DESC, key DESC LIMIT 1"
)

_OPEN_CALLS: Final = (
    "SELECT tool_call_id FROM parts WHERE message_key = ? AND tool_name IS NOT NULL"
    f" AND tool_state IN ({', '.join('?' * len(OPEN_STATES))})"
)

_BEGINNINGS: Final = TURN_ORIGINS | {Origin.NOTIFICATION}
_ENDINGS: Final = frozenset({Origin.COMMAND_OUTPUT, Origin.SHELL_OUTPUT})
"""Origins after which no turn is expected: the printed output is the result, unless a model continues."""

_UNENDED: Final = frozenset[MarkerKind]({"prompt", "start", "answer"})
"""Markers after which a turn may go on."""

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
            "SELECT s.agent || ':' || s.external_id, s.key, s.agent, s.changed_seq, s.updated_at,"
            f" CASE WHEN s.agent = '{CHAT_AGENT}' THEN s.metadata END"
            f" FROM {WANTED_SESSIONS}",
            (wanted_sessions(session_ids),),
        )
        for session_id, key, agent, sequence, updated_at, metadata in rows.fetchall():
            known = self._known.get(session_id)
            if known is None or known[0] != sequence:
                known = sequence, _turn_facts(connection, key, agent, updated_at, metadata)
                self._keep(session_id, known)
            found[session_id] = known[1]
        return found

    def _keep(self, session_id: str, known: tuple[int, TurnFacts]) -> None:
        # Two threads may both store the same value here.
        if len(self._known) >= self._size:
            self._known.clear()
        self._known[session_id] = known


def _turn_facts(
    connection: sqlite3.Connection, key: int, agent: str, updated_at: int | None, metadata: str | None
) -> TurnFacts:
    """Read what the last records of a session say about its last turn."""
    markers = _event_markers(connection, key, turn_markers(agent))
    calls: list[PlacedCall] = []
    newest: PlacedId | None = None
    for row in connection.execute(_NEWEST_MESSAGES, (key,)).fetchall():
        position, role, origin, stop_reason, created_at, completed_at, *rest = row
        has_calls, message_key, has_content, carried, message_id = rest
        if newest is None:
            newest = PlacedId(message_id, position)
        if carried:
            # Only what was handed over is billed to no session. Its turn runs in no agent until somebody goes on.
            markers.append(PlacedMarker("end", position, moment(updated_at), HANDED_OVER_END))
            break
        begins = role != "assistant" and origin in _BEGINNINGS
        if begins:
            markers.append(PlacedMarker("prompt", position, moment(created_at), origin))
        elif origin in _ENDINGS:
            markers.append(PlacedMarker("end", position, moment(created_at), origin))
        elif role == "assistant" and (origin is None or stop_reason == "error") and has_content:
            # Claude Code logs in its own name that a request failed for good, and waits for the user then.
            at = moment(created_at if completed_at is None else completed_at)
            markers.append(PlacedMarker("answer", position, at, stop_reason, bool(has_calls)))
            calls += _unfinished_calls(connection, message_key, position) if has_calls else ()
        # The newest come first: what is before the prompt of the last turn does not matter.
        if begins:
            break
    markers.sort(key=lambda marker: marker.position)
    calls.sort(key=lambda placed: placed.position)
    if newest is not None and not calls:
        markers += _answer_end(metadata, newest, moment(updated_at))
    has_failed = False
    if newest is not None and markers and markers[-1].kind in _UNENDED:
        # A turn that began after the error is another attempt.
        last = max(newest.position, markers[-1].position)
        row = connection.execute(_LAST_ERROR_AFTER, (key, last, updated_at or 0)).fetchone()
        has_failed = row is not None and not _will_retry(row[0])
    return TurnFacts(markers, calls, moment(updated_at), has_failed)


def _will_retry(body: bytes) -> bool:
    """Whether the agent tries again after this error; `body` is its frame."""
    # Few sessions end with an error.
    from turnlog.model.codec import decode_event
    from turnlog.store import zstd

    event = decode_event(zstd.decompress(body))
    return isinstance(event, ErrorEvent) and event.will_retry


class PlacedId(NamedTuple):
    """A message's own id, and its position."""

    id: str
    position: int


_OUTCOME_MARKERS: Final[Mapping[str, tuple[MarkerKind, str]]] = {
    "finished": ("end", LAST_ANSWER),
    "failed": ("answer", "error"),
    "stopped": ("interrupt", LAST_ANSWER),
}
"""How an answer of a chat ended -> marker and detail."""


def _answer_end(metadata: str | None, newest: PlacedId, at: datetime | None) -> list[PlacedMarker]:
    """The end of a chat's answer as its keeper recorded it, if no message is newer."""
    if metadata is None:
        return []
    last: Any = read_value(_facts.decode, metadata, {}, "metadata of a session").get(LAST_ANSWER)
    facts = cast("dict[str, Any]", last) if isinstance(last, dict) else {}
    found = _OUTCOME_MARKERS.get(str(facts.get("outcome")))
    if found is None or facts.get("message") != newest.id:
        return []
    return [PlacedMarker(found[0], newest.position, at, found[1])]


_facts: Final = msgspec.json.Decoder(dict[str, Any])


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
    # Few sessions have one, and most lists need no other body.
    from turnlog.store import bodies
    from turnlog.store.frames import BodyReader

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
