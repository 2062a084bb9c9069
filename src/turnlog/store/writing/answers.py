"""What a chat keeps of an agent's answers gives way to the agent's own log: the two are one session, the log's.

A native session may say of its messages which agent's session tells of them too. A turn of it leaves `memberships` for
`superseded` when the run that answered has ended and the log has the end of the answer: the same calls, the same text,
or anything later. From then on it counts, is found and is listed in the log's session alone. By its own id the chat
still shows all of it, with the fates that it had: a page gets back the messages that it knows. All is a function of the
stored rows: whichever is written first, it ends the same.
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
from turnlog.store.writing.sessions import SessionRows
from turnlog.store.writing.streams import log_of, supersede
from turnlog.store.writing.totals import Totals

_WINDOW = 15 * 60 * 1000
"""How much older than the chat's message the log's may be, in milliseconds, that is found by its text alone."""

_NEWEST = 64
"""Messages at the end of the log that are looked at."""


class AgentAnswer(NamedTuple):
    """Who else tells of a message."""

    log_id: str
    """The agent's session."""
    run_id: str | None = None
    """The run that made it (`store.runs`)."""


class _Held(NamedTuple):
    """A message that the chat counts still."""

    turn: int | None
    key: int
    role: str
    created_at: int
    ended_at: int
    log_id: str | None
    goes_on: bool


def save_answers(connection: sqlite3.Connection, session_id: str, answers: Mapping[str, AgentAnswer]) -> None:
    """Keep who else tells of messages, by their ids."""
    connection.executemany(
        "INSERT OR REPLACE INTO answers (message_id, session_id, log_id, run_id) VALUES (?, ?, ?, ?)",
        [(message_id, session_id, *answer) for message_id, answer in answers.items()],
    )


def give_way(connection: sqlite3.Connection, sessions: SessionRows, totals: Totals) -> bool:
    """Supersede what logs have by now of the chats that this transaction is about; whether that changed anything."""
    changed = False
    for session_id in _concerned(connection, sessions.touched):
        _drop_doubles(connection, session_id)
        for turn in _turns(connection, session_id):
            log = _log_of_turn(connection, turn)
            key = None if log is None else sessions.key(session_id)
            if log is not None and key is not None:
                changed = True
                for held in turn:
                    supersede(connection, sessions, totals, key, held.key, log, keeps_fate=True)
    return changed


def _concerned(connection: sqlite3.Connection, touched: Iterable[str]) -> list[str]:
    """Chats of which, or of whose logs, the transaction speaks."""
    if connection.execute("SELECT 1 FROM answers LIMIT 1").fetchone() is None:
        return []
    query = (
        "SELECT session_id FROM answers WHERE log_id = ?1 UNION SELECT session_id FROM answers WHERE session_id = ?1"
    )
    return sorted({row[0] for session_id in touched for row in connection.execute(query, (session_id,))})


_KEY = "(SELECT key FROM sessions WHERE owner_key = 1 AND agent = ?1 AND external_id = ?2)"


def _drop_doubles(connection: sqlite3.Connection, session_id: str) -> None:
    """What was told anew is held again."""
    connection.execute(
        f"DELETE FROM superseded WHERE session_key = {_KEY} AND message_key IN"
        f" (SELECT message_key FROM memberships WHERE session_key = {_KEY})",
        _name(session_id),
    )


def _name(session_id: str) -> tuple[str, str]:
    agent, _, external_id = session_id.partition(":")
    return agent, external_id


def _turns(connection: sqlite3.Connection, session_id: str) -> Iterator[list[_Held]]:
    rows = connection.execute(
        "SELECT s.turn, m.key, m.role, coalesce(m.created_at, 0), coalesce(m.completed_at, m.created_at, 0),"
        " a.log_id, EXISTS (SELECT 1 FROM runs r WHERE r.id = a.run_id AND r.status IN ('pending', 'running'))"
        " FROM memberships s JOIN messages m ON m.key = s.message_key"
        " LEFT JOIN answers a ON a.message_id = m.external_id AND a.session_id = ?3"
        f" WHERE s.session_key = {_KEY} ORDER BY s.position",
        (*_name(session_id), session_id),
    ).fetchall()
    for _, turn in groupby([_Held(*row) for row in rows], lambda held: held.turn):
        yield list(turn)


def _log_of_turn(connection: sqlite3.Connection, turn: list[_Held]) -> str | None:
    """Path of the log that tells of a turn, where all of it is told by logs and no run goes on."""
    answered = [held for held in turn if held.role == "assistant"]
    found: str | None = None
    for log_id in dict.fromkeys(held.log_id for held in answered):
        own = [held for held in answered if held.log_id == log_id]
        found = None if log_id is None or any(held.goes_on for held in own) else _log_with(connection, log_id, own)
        if found is None:
            return None
    return found


def _log_with(connection: sqlite3.Connection, log_id: str, answer: list[_Held]) -> str | None:
    """Path of the log of a session, where that has the end of an answer."""
    row = connection.execute(f"SELECT {_KEY}", _name(log_id)).fetchone()
    path = None if row[0] is None else log_of(connection, row[0])
    if path is None:
        return None
    logged = _logged(connection, row[0])
    newest = max((at for at, _ in logged), default=0)
    read = BodyReader(connection)
    told = ((held, bodies.decode(read.of(held.key))) for held in reversed(answer))
    said = next(((held, message) for held, message in told if _text(message) or _calls(message)), None)
    if newest > answer[-1].ended_at or (said is None and newest >= answer[0].created_at):
        return path
    if said is None:
        return None
    held, message = said
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
    """Whether the log's message has all that the chat's says."""
    calls = _calls(message)
    if _text(message) not in _text(logged) or not calls <= _calls(logged):
        return False
    is_response = message.response_id is not None and message.response_id == logged.response_id
    return bool(calls) or is_response or later >= -_WINDOW


def _text(message: Message) -> str:
    return "".join([part.text for part in message.parts if isinstance(part, TextPart)]).strip()


def _calls(message: Message) -> set[str]:
    return {part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)}
