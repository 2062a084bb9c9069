"""What hooks say of a session is superseded by its own log, message by message, whichever was read first.

A hook runs before the log has the line. Its message so comes after all messages of the log, at a position from
`HOOKED_FROM` on, until the log has it: a call with the same id (or with the same tool and input, where the hook had no
id), a message with the same text from the same side, or anything later. Events go when the log has anything later, or
when the agent has stopped after them and no message before that is left. The stop itself stays where the log does not
say that turns end. All is a function of the stored rows, so the order of reading makes no difference.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from turnlog.agents import log_marks_turns
from turnlog.agents.base import HOOKED_FROM
from turnlog.agents.hook_events import UNNAMED_CALL
from turnlog.model import ToolCallPart
from turnlog.store import bodies
from turnlog.store.frames import BodyReader
from turnlog.store.reconcile.precedence import drop_held_again
from turnlog.store.rows import PREVIEW_LENGTH
from turnlog.store.writing.messages import supersede
from turnlog.store.writing.transaction import Transaction

_WINDOW = 15 * 60 * 1000
"""How much older than the hook a message of the log may be, in milliseconds, that is matched by its text or input.

The log's message has the time of its first thought; the hook runs when the text is shown. Without a limit the same
prompt of an earlier turn would match.
"""

_NEWEST = 64
"""Messages, and events, at the end of the log that are compared."""

_NEVER = 1 << 62

_ENDINGS = "('hook:Stop', 'hook:SessionEnd', 'hook:AfterAgent', 'hook:StopFailure', 'hook:idle')"


class _HookMessage(NamedTuple):
    """A message that hooks brought."""

    key: int
    role: str
    at: int
    """When it was complete, in Unix milliseconds; 0 when that is not known."""
    text: str
    """Its beginning (`messages.text_preview`)."""


class _LogMessage(NamedTuple):
    """A message of the log."""

    key: int
    role: str
    created_at: int | None
    completed_at: int | None
    text: str
    has_calls: bool
    stop_reason: str | None


def supersede_hook_events(transaction: Transaction) -> None:
    """Supersede what the logs of the transaction's sessions have by now."""
    for session_key in sorted(transaction.sessions.keys):
        if _has_hook_events(transaction.connection, session_key):
            _Session(transaction, session_key).supersede()


def _has_hook_events(connection: sqlite3.Connection, session_key: int) -> bool:
    for table in ("memberships", "events"):
        found = connection.execute(
            f"SELECT 1 FROM {table} WHERE session_key = ? AND position >= ? LIMIT 1", (session_key, HOOKED_FROM)
        )
        if found.fetchone():
            return True
    return False


class _Session:
    """A session with something from hooks that is not superseded yet."""

    def __init__(self, transaction: Transaction, key: int) -> None:
        self._transaction = transaction
        self._connection = connection = transaction.connection
        self._key = key
        self._logged = [
            _LogMessage(*row)
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

    def supersede(self) -> None:
        """Supersede what the log has."""
        if not self._logged:
            return
        log = self._log()
        messages = list(self._hook_messages())
        gone = [message for message in messages if self._has(message)]
        for message in gone:
            supersede(self._transaction, self._key, message.key, log)
        drop_held_again(self._connection, self._key)
        self._drop_events(min((message.at for message in messages if message not in gone), default=_NEVER))

    def _log(self) -> str:
        """Path of the log that holds the newest message."""
        found = self._connection.execute(
            "SELECT f.path FROM memberships s JOIN sources f ON f.key = s.source_key"
            " WHERE s.session_key = ? AND s.position < ? ORDER BY s.position DESC LIMIT 1",
            (self._key, HOOKED_FROM),
        ).fetchone()
        return found[0] if found else ""

    def _hook_messages(self) -> Iterator[_HookMessage]:
        rows = self._connection.execute(
            "SELECT m.key, m.role, coalesce(m.completed_at, m.created_at, 0), m.text_preview"
            " FROM memberships s JOIN messages m ON m.key = s.message_key"
            " WHERE s.session_key = ? AND s.position >= ?",
            (self._key, HOOKED_FROM),
        )
        return (_HookMessage(*row) for row in rows.fetchall())

    def _has(self, hooked: _HookMessage) -> bool:
        """Whether the log has a message."""
        # A log is written in order: with anything later in it, the message's own line is there, or never will be.
        if hooked.at <= self._newest:
            return True
        message = bodies.decode(BodyReader(self._connection).of(hooked.key))
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        if calls:
            return all(self._has_call(call, hooked) for call in calls)
        return any(_has_text(logged, hooked) for logged in self._near(hooked))

    def _near(self, hooked: _HookMessage) -> Iterator[_LogMessage]:
        return (
            logged
            for logged in self._logged
            if (logged.role == "assistant") == (hooked.role == "assistant")
            and (logged.created_at or 0) >= hooked.at - _WINDOW
        )

    def _has_call(self, call: ToolCallPart, hooked: _HookMessage) -> bool:
        if call.tool_call_id.startswith(UNNAMED_CALL):
            return any(self._is_called_in(logged, call) for logged in self._near(hooked) if logged.has_calls)
        found = self._connection.execute(
            "SELECT 1 FROM parts p JOIN memberships s ON s.message_key = p.message_key"
            " WHERE p.tool_call_id = ? AND s.session_key = ? AND s.position < ?",
            (call.tool_call_id, self._key, HOOKED_FROM),
        )
        return found.fetchone() is not None

    def _is_called_in(self, logged: _LogMessage, call: ToolCallPart) -> bool:
        """Whether a message of the log has a call of the same tool with the same input."""
        message = bodies.decode(BodyReader(self._connection).of(logged.key))
        return any(
            isinstance(part, ToolCallPart) and part.tool_name == call.tool_name and _input(part) == _input(call)
            for part in message.parts
        )

    def _drop_events(self, first_left: int) -> None:
        """Drop the events up to the log's newest record, or to the agent's last stop before the first message left."""
        stop = self._last_stop(first_left)
        # A log that does not record the end of a turn never has the stop: it is all that says the agent waits.
        kept = stop if stop > self._newest and not self._logs_ends() else _NEVER
        gone = self._connection.execute(
            "DELETE FROM events WHERE session_key = ? AND position >= ? AND created_at <= ?"
            f" AND NOT (created_at = ? AND kind IN {_ENDINGS}) RETURNING position, external_id",
            (self._key, HOOKED_FROM, max(self._newest, stop), kept),
        ).fetchall()
        sessions = self._transaction.sessions
        sessions.draft(self._key).events -= len(gone)
        sessions.note_gone(self._key, gone, events=True)

    def _logs_ends(self) -> bool:
        """Whether the log says that a turn has ended: by events of its agent, or by why the model stopped."""
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


def _has_text(logged: _LogMessage, hooked: _HookMessage) -> bool:
    """Whether a message of the log has the text, as far as previews show."""
    text = hooked.text.strip()
    if not text:
        return False
    return logged.text.strip().startswith(text) or (len(text) < PREVIEW_LENGTH and text in logged.text)


def _input(call: ToolCallPart) -> object:
    return None if call.input is msgspec.UNSET else call.input_value()
