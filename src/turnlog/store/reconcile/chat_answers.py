"""What a chat keeps of an agent's answers is superseded by the agent's own log: the two are one session, the log's.

A native session may say of its messages which agent's session has them too. A turn of it is superseded when the run
that answered has ended and the log has the end of the answer: the same calls, the same text, or anything later. From
then on it counts, is found and is listed in the log's session alone. By its own id the chat still shows all of it, with
the fates that it had: a page gets back the messages that it knows. All is a function of the stored rows: whichever is
written first, the result is the same.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from turnlog.agents.base import HOOKED_FROM
from turnlog.model import Message, TextPart, ToolCallPart
from turnlog.store import bodies
from turnlog.store.frames import BODY_COLUMNS, BodyReader
from turnlog.store.reconcile.precedence import drop_held_again, log_path
from turnlog.store.writing.messages import supersede
from turnlog.store.writing.transaction import Transaction

_WINDOW = 15 * 60 * 1000
"""How much older than the chat's message the log's may be, in milliseconds, that is matched by its text alone.

Without a limit a short answer ("Done.") of an earlier turn would match.
"""

_NEWEST = 64
"""Messages at the end of the log that are compared."""


class AgentAnswer(NamedTuple):
    """Who else has a message of a chat."""

    log_id: str
    """The agent's session."""
    run_id: str | None = None
    """The run that made it (`store.values.Run`)."""


class _ChatMessage(NamedTuple):
    """A message of a chat that is not superseded."""

    turn: int | None
    key: int
    role: str
    created_at: int
    ended_at: int
    log_id: str | None
    is_running: bool
    """The run that answers is not over."""


def save_answers(connection: sqlite3.Connection, session_id: str, answers: Mapping[str, AgentAnswer]) -> None:
    """Keep who else has messages of a chat, by their ids."""
    connection.executemany(
        "INSERT OR REPLACE INTO answers (message_id, session_id, log_id, run_id) VALUES (?, ?, ?, ?)",
        [(message_id, session_id, *answer) for message_id, answer in answers.items()],
    )


def supersede_chat_answers(transaction: Transaction) -> None:
    """Supersede what logs have by now of the chats that this transaction is about."""
    connection, sessions = transaction.connection, transaction.sessions
    for session_id in _chats(connection, sessions.ids):
        _drop_held_again(connection, session_id)
        for turn in _turns(connection, session_id):
            log = _log_of_turn(connection, turn)
            key = None if log is None else sessions.key(session_id)
            if log is not None and key is not None:
                for message in turn:
                    supersede(transaction, key, message.key, log, keeps_fate=True)


def _chats(connection: sqlite3.Connection, touched: Iterable[str]) -> list[str]:
    """Chats that the transaction speaks of, or whose logs it speaks of."""
    if connection.execute("SELECT 1 FROM answers LIMIT 1").fetchone() is None:
        return []
    query = (
        "SELECT session_id FROM answers WHERE log_id = ?1 UNION SELECT session_id FROM answers WHERE session_id = ?1"
    )
    return sorted({row[0] for session_id in touched for row in connection.execute(query, (session_id,))})


_KEY = "(SELECT key FROM sessions WHERE owner_key = 1 AND agent = ?1 AND external_id = ?2)"


def _drop_held_again(connection: sqlite3.Connection, session_id: str) -> None:
    (key,) = connection.execute(f"SELECT {_KEY}", _name(session_id)).fetchone()
    if key is not None:
        drop_held_again(connection, key)


def _name(session_id: str) -> tuple[str, str]:
    agent, _, external_id = session_id.partition(":")
    return agent, external_id


def _turns(connection: sqlite3.Connection, session_id: str) -> Iterator[list[_ChatMessage]]:
    rows = connection.execute(
        "SELECT s.turn, m.key, m.role, coalesce(m.created_at, 0), coalesce(m.completed_at, m.created_at, 0),"
        " a.log_id, EXISTS (SELECT 1 FROM runs r WHERE r.id = a.run_id AND r.status IN ('pending', 'running'))"
        " FROM memberships s JOIN messages m ON m.key = s.message_key"
        " LEFT JOIN answers a ON a.message_id = m.external_id AND a.session_id = ?3"
        f" WHERE s.session_key = {_KEY} ORDER BY s.position",
        (*_name(session_id), session_id),
    ).fetchall()
    for _, turn in groupby([_ChatMessage(*row) for row in rows], lambda message: message.turn):
        yield list(turn)


def _log_of_turn(connection: sqlite3.Connection, turn: list[_ChatMessage]) -> str | None:
    """Path of the log that has a turn, where logs have all of it and no run goes on."""
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
    """Path of the log of a session, where that has the end of an answer."""
    row = connection.execute(f"SELECT {_KEY}", _name(log_id)).fetchone()
    path = None if row[0] is None else log_path(connection, row[0])
    if path is None:
        return None
    logged = _logged(connection, row[0])
    newest = max((at for at, _ in logged), default=0)
    read = BodyReader(connection)
    decoded = ((held, bodies.decode(read.of(held.key))) for held in reversed(answer))
    last = next(((held, message) for held, message in decoded if _text(message) or _calls(message)), None)
    # A log is written in order: with anything later in it, it has the answer. An answer without text and calls can
    # only be matched by its time.
    if newest > answer[-1].ended_at or (last is None and newest >= answer[0].created_at):
        return path
    if last is None:
        return None
    held, message = last
    return path if any(_is_same(message, other, at - held.created_at) for at, other in logged) else None


def _logged(connection: sqlite3.Connection, key: int) -> list[tuple[int, Message]]:
    """The newest answers of a log, with when each ended."""
    rows = connection.execute(
        f"SELECT coalesce(m.completed_at, m.created_at, 0), {BODY_COLUMNS}"
        " FROM memberships s JOIN messages m ON m.key = s.message_key"
        " WHERE s.session_key = ? AND s.position < ? AND m.role = 'assistant' ORDER BY s.position DESC LIMIT ?",
        (key, HOOKED_FROM, _NEWEST),
    )
    read = BodyReader(connection)
    return [(at, bodies.decode(read(*place))) for at, *place in rows.fetchall()]


def _is_same(message: Message, logged: Message, later: int) -> bool:
    """Whether the log's message has all text and calls of the chat's; it is `later` by so many milliseconds."""
    calls = _calls(message)
    if _text(message) not in _text(logged) or not calls <= _calls(logged):
        return False
    is_response = message.response_id is not None and message.response_id == logged.response_id
    return bool(calls) or is_response or later >= -_WINDOW


def _text(message: Message) -> str:
    return "".join([part.text for part in message.parts if isinstance(part, TextPart)]).strip()


def _calls(message: Message) -> set[str]:
    return {part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)}
