"""A session's own log supersedes what streams, hooks and chats say about it, whichever was read first.

A stream is what an agent printed while it ran. Its ids need not be those of the log, so its messages are counted,
billed and found only in a session without a log. Once there is a log, the stream's messages that it lacks are
superseded, and the stream's events are deleted. The same holds for a subagent that a stream names after its call, if
that call's subagent has a log under its own id.

A hook runs before the log has the line. Its message comes after all messages of the log, at a position from
`HOOKED_FROM` on, until the log has it: a call with the same id (or with the same tool and input if the hook had no id),
a message with the same text and role, or anything later. Events are deleted when the log has anything later, or when
the agent has stopped after them and no earlier hook message is left. The stop itself stays if the log does not record
ends of turns.

A chat, which is a native session, may name the agent's session that also logs a message. A turn of the chat is
superseded when the run that answered has ended and the log has the end of the answer: the same calls, the same text, or
anything later. From then on it is counted, found and listed in the log's session only. Under its own id the chat still
shows everything with the fates that it had, so that a page gets the messages that it knows.

All of this is a function of the stored rows, so the order of reading does not matter.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

import msgspec

from turnlog.agents import log_marks_turns
from turnlog.agents.base import HOOKED_FROM
from turnlog.agents.hook_events import UNNAMED_CALL
from turnlog.model import Message, TextPart, ToolCallPart
from turnlog.store import bodies
from turnlog.store.frames import BODY_COLUMNS, BodyReader
from turnlog.store.keys import find_key
from turnlog.store.reconcile.precedence import STREAMED, drop_held_again, log_path
from turnlog.store.rows import PREVIEW_LENGTH
from turnlog.store.values import AgentAnswer
from turnlog.store.writing.messages import supersede
from turnlog.store.writing.sessions import SessionRows
from turnlog.store.writing.transaction import Transaction

# -- streams


def note_stream(connection: sqlite3.Connection, source_key: int, session_keys: Iterable[int]) -> None:
    """Record that a stream describes these sessions."""
    rows = [(session_key, source_key) for session_key in session_keys]
    connection.executemany("INSERT OR IGNORE INTO streams (session_key, source_key) VALUES (?, ?)", rows)


def supersede_streams(transaction: Transaction) -> set[int]:
    """Supersede stream messages in sessions of this transaction that have a log; return the keys of these sessions."""
    connection, sessions = transaction.connection, transaction.sessions
    streamed = {row[0] for row in connection.execute("SELECT DISTINCT session_key FROM streams")}
    logs = {key: log for key in streamed & sessions.keys if (log := log_path(connection, key)) is not None}
    # The join over all links is needed only if a stream is left without a log.
    for key, session_id, log in _named_after_calls(connection, sessions) if streamed - set(logs) else ():
        sessions.key(session_id)
        logs[key] = log
    for session_key, log in sorted(logs.items()):
        _drop_events(connection, sessions, session_key)
        rows = connection.execute(
            f"SELECT message_key FROM memberships WHERE session_key = ?1 AND {STREAMED}", (session_key,)
        )
        for (message_key,) in rows.fetchall():
            supersede(transaction, session_key, message_key, log)
        drop_held_again(connection, session_key)
        # A stream may number turns differently from the log.
        sessions.count_turns(session_key)
    return set(logs)


def _named_after_calls(connection: sqlite3.Connection, sessions: SessionRows) -> list[tuple[int, str, str]]:
    """Subagent sessions that a stream named after a call whose subagent has a log: key, id, path of the log.

    Streams of Claude Code up to 2.1.33 lack the ids of subagents.
    """
    rows = connection.execute(
        "SELECT DISTINCT s.key, own.child_id, own.parent_id, log.key, log.agent || ':' || log.external_id"
        " FROM streams JOIN sessions s ON s.key = streams.session_key"
        " JOIN links own ON own.child_id = s.agent || ':' || s.external_id AND own.kind = 'subagent'"
        " JOIN links other ON other.parent_id = own.parent_id AND other.kind = 'subagent'"
        " AND other.tool_call_id = own.tool_call_id AND other.child_id <> own.child_id"
        " JOIN sessions log ON log.agent || ':' || log.external_id = other.child_id"
    ).fetchall()
    touched = sessions.ids
    found = [
        (key, child, log_path(connection, log))
        for key, child, parent, log, log_id in rows
        if not touched.isdisjoint((child, parent, log_id)) and log_path(connection, key) is None
    ]
    return [(key, child, log) for key, child, log in found if log is not None]


def _drop_events(connection: sqlite3.Connection, sessions: SessionRows, session_key: int) -> None:
    gone = connection.execute(
        f"DELETE FROM events WHERE session_key = ?1 AND {STREAMED} RETURNING position, external_id", (session_key,)
    ).fetchall()
    sessions.draft(session_key).events -= len(gone)
    sessions.note_gone(session_key, gone, events=True)


# -- hooks

_WINDOW = 15 * 60 * 1000
"""How much older than what hooks or a chat say a message of the log may be, in milliseconds, that is matched by its
text or input.

The log's message has the time of its first thought; a hook runs when the text is shown. Without a limit the same prompt
of an earlier turn would match, or a short answer ("Done.").
"""

_NEWEST = 64
"""Number of messages, and of events, at the end of the log that are compared."""

_NEVER = 1 << 62

_ENDINGS = "('hook:Stop', 'hook:StopFailure', 'hook:StopCancelled', 'hook:SessionEnd', 'hook:AfterAgent', 'hook:idle')"


class _HookMessage(NamedTuple):
    """A message that was read from hooks."""

    key: int
    role: str
    at: int
    """Unix milliseconds when it was complete; 0 if unknown."""
    text: str
    """Its beginning (`messages.text_preview`)."""


class _LogMessage(NamedTuple):
    """A message that was read from the log."""

    key: int
    role: str
    created_at: int | None
    completed_at: int | None
    text: str
    has_calls: bool
    stop_reason: str | None


def supersede_hook_events(transaction: Transaction) -> None:
    """Supersede the hook messages and events that the logs of this transaction's sessions now have."""
    for session_key in sorted(transaction.sessions.keys):
        if _has_hook_events(transaction.connection, session_key):
            _HookedSession(transaction, session_key).supersede()


def _has_hook_events(connection: sqlite3.Connection, session_key: int) -> bool:
    for table in ("memberships", "events"):
        found = connection.execute(
            f"SELECT 1 FROM {table} WHERE session_key = ? AND position >= ? LIMIT 1", (session_key, HOOKED_FROM)
        )
        if found.fetchone():
            return True
    return False


class _HookedSession:
    """A session with hook messages or events that are not superseded."""

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
        """Supersede those that the log has."""
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
        """Path of the log that contains the newest message."""
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
        # A log is written in order: once it contains anything later, the message's own line is there or never will be.
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
        """Whether a log message contains a call of the same tool with the same input."""
        message = bodies.decode(BodyReader(self._connection).of(logged.key))
        return any(
            isinstance(part, ToolCallPart) and part.tool_name == call.tool_name and _input(part) == _input(call)
            for part in message.parts
        )

    def _drop_events(self, first_left: int) -> None:
        """Delete events up to the log's newest record, or to the agent's last stop before the first message left."""
        stop = self._last_stop(first_left)
        # If the log does not record ends of turns, the stop is the only sign that the agent waits.
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
        """Whether the log records ends of turns, by events or by the model's stop reasons."""
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
    """Whether a log message has the text, as far as previews show."""
    text = hooked.text.strip()
    if not text:
        return False
    # A preview that was cut can be compared from its beginning only. One that was not may be a piece of the log's
    # message, because agents put text around a prompt.
    return logged.text.strip().startswith(text) or (len(text) < PREVIEW_LENGTH and text in logged.text)


def _input(call: ToolCallPart) -> object:
    return None if call.input is msgspec.UNSET else call.input_value()


# -- chats


class _ChatMessage(NamedTuple):
    """A message of a chat that is not superseded."""

    turn: int | None
    key: int
    role: str
    created_at: int
    ended_at: int
    log_id: str | None
    is_running: bool
    """The run that answers has not ended."""


def save_answers(connection: sqlite3.Connection, session_id: str, answers: Mapping[str, AgentAnswer]) -> None:
    """Record which agents' sessions also log messages of a chat, by message id."""
    connection.executemany(
        "INSERT OR REPLACE INTO answers (message_id, session_id, log_id, run_id) VALUES (?, ?, ?, ?)",
        [(message_id, session_id, *answer) for message_id, answer in answers.items()],
    )


def supersede_chat_answers(transaction: Transaction) -> None:
    """Supersede the chat turns that logs now have, for the chats that this transaction concerns."""
    connection, sessions = transaction.connection, transaction.sessions
    for session_id in _chats(connection, sessions.ids):
        chat = find_key(connection, session_id)
        if chat is None:
            continue
        drop_held_again(connection, chat)
        for turn in _turns(connection, session_id, chat):
            log = _log_of_turn(connection, turn)
            key = None if log is None else sessions.key(session_id)
            if log is not None and key is not None:
                for message in turn:
                    supersede(transaction, key, message.key, log, keeps_fate=True)


def _chats(connection: sqlite3.Connection, touched: Iterable[str]) -> list[str]:
    """Chats touched by this transaction, directly or through their logs."""
    # Most stores have no chat that an agent answered: this runs in every transaction.
    if connection.execute("SELECT 1 FROM answers LIMIT 1").fetchone() is None:
        return []
    query = (
        "SELECT session_id FROM answers WHERE log_id = ?1 UNION SELECT session_id FROM answers WHERE session_id = ?1"
    )
    return sorted({row[0] for session_id in touched for row in connection.execute(query, (session_id,))})


def _turns(connection: sqlite3.Connection, session_id: str, key: int) -> Iterator[list[_ChatMessage]]:
    rows = connection.execute(
        "SELECT s.turn, m.key, m.role, coalesce(m.created_at, 0), coalesce(m.completed_at, m.created_at, 0),"
        " a.log_id, EXISTS (SELECT 1 FROM runs r WHERE r.id = a.run_id AND r.status IN ('pending', 'running'))"
        " FROM memberships s JOIN messages m ON m.key = s.message_key"
        " LEFT JOIN answers a ON a.message_id = m.external_id AND a.session_id = ?"
        " WHERE s.session_key = ? ORDER BY s.position",
        (session_id, key),
    ).fetchall()
    for _, turn in groupby([_ChatMessage(*row) for row in rows], lambda message: message.turn):
        yield list(turn)


def _log_of_turn(connection: sqlite3.Connection, turn: list[_ChatMessage]) -> str | None:
    """Path of the log of a turn, if logs contain all of it and its run has ended."""
    answered = [message for message in turn if message.role == "assistant"]
    found: str | None = None
    for log_id in dict.fromkeys(message.log_id for message in answered):
        own = [message for message in answered if message.log_id == log_id]
        found = (
            None if log_id is None or any(message.is_running for message in own) else _log_with(connection, log_id, own)
        )
        if found is None:
            return None
    return found


def _log_with(connection: sqlite3.Connection, log_id: str, answer: list[_ChatMessage]) -> str | None:
    """Path of a session's log, if it contains the end of an answer."""
    key = find_key(connection, log_id)
    path = None if key is None else log_path(connection, key)
    if key is None or path is None:
        return None
    logged = _logged(connection, key)
    newest = max((at for at, _ in logged), default=0)
    read = BodyReader(connection)
    decoded = ((held, bodies.decode(read.of(held.key))) for held in reversed(answer))
    last = next(((held, message) for held, message in decoded if _text(message) or _calls(message)), None)
    # A log is written in order: once it contains anything later, it has the answer. An answer without text and calls
    # can only be matched by its time.
    if newest > answer[-1].ended_at or (last is None and newest >= answer[0].created_at):
        return path
    if last is None:
        return None
    held, message = last
    return path if any(_is_same(message, other, at - held.created_at) for at, other in logged) else None


def _logged(connection: sqlite3.Connection, key: int) -> list[tuple[int, Message]]:
    """The newest answers in a log, with their end times."""
    rows = connection.execute(
        f"SELECT coalesce(m.completed_at, m.created_at, 0), {BODY_COLUMNS}"
        " FROM memberships s JOIN messages m ON m.key = s.message_key"
        " WHERE s.session_key = ? AND s.position < ? AND m.role = 'assistant' ORDER BY s.position DESC LIMIT ?",
        (key, HOOKED_FROM, _NEWEST),
    )
    read = BodyReader(connection)
    return [(at, bodies.decode(read(*place))) for at, *place in rows.fetchall()]


def _is_same(message: Message, logged: Message, later: int) -> bool:
    """Whether the log's message, `later` by so many milliseconds, contains all text and calls of the chat's message."""
    calls = _calls(message)
    if _text(message) not in _text(logged) or not calls <= _calls(logged):
        return False
    # Text alone is no proof: a short answer ("Done.") of an earlier turn would match.
    is_response = message.response_id is not None and message.response_id == logged.response_id
    return bool(calls) or is_response or later >= -_WINDOW


def _text(message: Message) -> str:
    return "".join([part.text for part in message.parts if isinstance(part, TextPart)]).strip()


def _calls(message: Message) -> set[str]:
    return {part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)}
