"""What hooks told gives way to the session's own log, piece by piece, whichever came first.

A hook may tell of a message while its line is not in the log yet, so the pieces stand behind the log's messages, at
positions from `HOOKED_FROM` on, until the log has them: it has a call of the same id (or of the same tool and input,
where the hook had no id), a message with the same text from the same side, or anything later than the piece. Then
they leave `memberships` for `superseded`. Events go when the log has anything later, or when the agent has stopped
behind them and no piece before that is left; the stop itself stays where the log does not tell that turns end.
All is a function of the stored rows: no order of reading leaves a trace.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from turnlog.agents.base import HOOKED_FROM
from turnlog.agents.hooked import NAMELESS
from turnlog.agents.turns import log_marks_turns
from turnlog.model import ToolCallPart
from turnlog.store import bodies
from turnlog.store.frames import BodyReader
from turnlog.store.rows import PREVIEW_LENGTH
from turnlog.store.writing.sessions import SessionRows
from turnlog.store.writing.streams import supersede
from turnlog.store.writing.totals import Totals

_WINDOW = 15 * 60 * 1000
"""How much older than the hook a message of the log may be, in milliseconds, that is found by its text or input: the
log's message begins with the first thought, the hook comes when the text is shown."""

_NEWEST = 64
"""Messages, and events, at the end of the log that are looked at."""

_NEVER = 1 << 62

_ENDINGS = "('hook:Stop', 'hook:SessionEnd', 'hook:AfterAgent', 'hook:StopFailure', 'hook:idle')"


class _Piece(NamedTuple):
    key: int
    role: str
    at: int
    text: str


class _Logged(NamedTuple):
    key: int
    role: str
    created_at: int | None
    completed_at: int | None
    text: str
    has_calls: bool
    stop_reason: str | None


def give_way(connection: sqlite3.Connection, sessions: SessionRows, totals: Totals) -> bool:
    """Supersede what the logs of the transaction's sessions have by now; whether that changed anything."""
    changed = False
    for session_key in sorted(sessions.keys):
        if _is_told(connection, session_key):
            changed |= _Session(connection, session_key).settle(sessions, totals)
    return changed


def _is_told(connection: sqlite3.Connection, session_key: int) -> bool:
    for table in ("memberships", "events"):
        found = connection.execute(
            f"SELECT 1 FROM {table} WHERE session_key = ? AND position >= ? LIMIT 1", (session_key, HOOKED_FROM)
        )
        if found.fetchone():
            return True
    return False


class _Session:
    """A session of which hooks told something that has not given way yet."""

    def __init__(self, connection: sqlite3.Connection, key: int) -> None:
        self._connection = connection
        self._key = key
        self._logged = [
            _Logged(*row)
            for row in connection.execute(
                "SELECT m.key, m.role, m.created_at, m.completed_at, m.text_preview, m.has_tool_calls,"
                " m.stop_reason FROM memberships s JOIN messages m ON m.key = s.message_key"
                " WHERE s.session_key = ? AND s.position < ? ORDER BY s.position DESC LIMIT ?",
                (key, HOOKED_FROM, _NEWEST),
            )
        ]
        self._newest = max((*self._times(), self._newest_event()), default=0)

    def _times(self) -> Iterator[int]:
        for message in self._logged:
            yield max(message.created_at or 0, message.completed_at or 0)

    def _newest_event(self) -> int:
        found = self._connection.execute(
            "SELECT max(created_at) FROM (SELECT created_at FROM events"
            " WHERE session_key = ? AND position < ? ORDER BY position DESC LIMIT ?)",
            (self._key, HOOKED_FROM, _NEWEST),
        )
        return found.fetchone()[0] or 0

    def settle(self, sessions: SessionRows, totals: Totals) -> bool:
        """Let go what the log has."""
        if not self._logged:
            return False
        log = self._log()
        pieces = list(self._pieces())
        gone = [piece for piece in pieces if self._has(piece)]
        for piece in gone:
            supersede(self._connection, sessions, totals, self._key, piece.key, log)
        self._connection.execute(
            "DELETE FROM superseded WHERE session_key = ?1 AND message_key IN"
            " (SELECT message_key FROM memberships WHERE session_key = ?1)",
            (self._key,),
        )
        left = min((piece.at for piece in pieces if piece not in gone), default=_NEVER)
        return self._drop_events(sessions, left) or bool(gone)

    def _log(self) -> str:
        """Path of the log that holds the newest message."""
        found = self._connection.execute(
            "SELECT f.path FROM memberships s JOIN sources f ON f.key = s.source_key"
            " WHERE s.session_key = ? AND s.position < ? ORDER BY s.position DESC LIMIT 1",
            (self._key, HOOKED_FROM),
        ).fetchone()
        return found[0] if found else ""

    def _pieces(self) -> Iterator[_Piece]:
        rows = self._connection.execute(
            "SELECT m.key, m.role, coalesce(m.completed_at, m.created_at, 0), m.text_preview"
            " FROM memberships s JOIN messages m ON m.key = s.message_key"
            " WHERE s.session_key = ? AND s.position >= ?",
            (self._key, HOOKED_FROM),
        )
        return (_Piece(*row) for row in rows.fetchall())

    def _has(self, piece: _Piece) -> bool:
        """Whether the log has a piece."""
        if piece.at <= self._newest:
            return True
        message = bodies.decode(BodyReader(self._connection).of(piece.key))
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        if calls:
            return all(self._has_call(call, piece) for call in calls)
        return any(_says(logged, piece) for logged in self._near(piece))

    def _near(self, piece: _Piece) -> Iterator[_Logged]:
        return (
            logged
            for logged in self._logged
            if (logged.role == "assistant") == (piece.role == "assistant")
            and (logged.created_at or 0) >= piece.at - _WINDOW
        )

    def _has_call(self, call: ToolCallPart, piece: _Piece) -> bool:
        if call.tool_call_id.startswith(NAMELESS):
            return any(self._calls(logged, call) for logged in self._near(piece) if logged.has_calls)
        found = self._connection.execute(
            "SELECT 1 FROM parts p JOIN memberships s ON s.message_key = p.message_key"
            " WHERE p.tool_call_id = ? AND s.session_key = ? AND s.position < ?",
            (call.tool_call_id, self._key, HOOKED_FROM),
        )
        return found.fetchone() is not None

    def _calls(self, logged: _Logged, call: ToolCallPart) -> bool:
        """Whether a message of the log has a call of the same tool with the same input."""
        message = bodies.decode(BodyReader(self._connection).of(logged.key))
        return any(
            isinstance(part, ToolCallPart) and part.tool_name == call.tool_name and _input(part) == _input(call)
            for part in message.parts
        )

    def _drop_events(self, sessions: SessionRows, left: int) -> bool:
        """Drop what is past: up to the log's newest record, or the agent's last stop before the first piece left."""
        stop = self._last_stop(left)
        kept = stop if stop > self._newest and not self._tells_ends() else _NEVER
        gone = self._connection.execute(
            "DELETE FROM events WHERE session_key = ? AND position >= ? AND created_at <= ?"
            f" AND NOT (created_at = ? AND kind IN {_ENDINGS}) RETURNING position, external_id",
            (self._key, HOOKED_FROM, max(self._newest, stop), kept),
        ).fetchall()
        sessions.counts.add_events(self._key, -len(gone))
        sessions.lose(self._key, gone, events=True)
        return bool(gone)

    def _tells_ends(self) -> bool:
        """Whether the log tells that a turn has ended: by events of its agent, or by why the model stopped."""
        found = self._connection.execute("SELECT agent FROM sessions WHERE key = ?", (self._key,)).fetchone()
        answers = [message for message in self._logged if message.role == "assistant"]
        return log_marks_turns(found[0]) or (bool(answers) and answers[0].stop_reason is not None)

    def _last_stop(self, before: int) -> int:
        found = self._connection.execute(
            "SELECT max(created_at) FROM events WHERE session_key = ? AND position >= ? AND created_at < ?"
            f" AND kind IN {_ENDINGS}",
            (self._key, HOOKED_FROM, before),
        )
        return found.fetchone()[0] or 0


def _says(logged: _Logged, piece: _Piece) -> bool:
    """Whether a message of the log has the text, as far as previews tell."""
    said = piece.text.strip()
    if not said:
        return False
    return logged.text.strip().startswith(said) or (len(said) < PREVIEW_LENGTH and said in logged.text)


def _input(call: ToolCallPart) -> object:
    return None if call.input is msgspec.UNSET else call.input_value()
