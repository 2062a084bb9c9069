"""Calls that no result will come for: their conversation went on in a copy, or their subagent has ended.

Claude Code 1.0 resumes a session that was killed into a file of its own, without the call that was running. Where a
session that shares the call's message begins another turn behind it, the call is aborted. A subagent's call is aborted
when the call that started the subagent has ended since, or its process. A result that comes all the same counts.

The functions over messages serve `turnlog.logs` too. Those over the store are pure functions of the stored rows, so
the order of the files makes no difference.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from turnlog.agents.changes import ENDED_AT
from turnlog.model import Message, ToolCallPart, ToolState
from turnlog.model.tools import OPEN_STATES
from turnlog.store.rows import milliseconds


class CallEnd(NamedTuple):
    """That a call has ended, and when."""

    at: int | None
    """Unix milliseconds of its last result; None when it has none: it was aborted."""

    def ends(self, started_at: int | None) -> bool:
        """Whether a call of its subagent that began at that time has ended too.

        A subagent in the background goes on after the result that says it was started: only calls that began before
        that result have ended.
        """
        return self.at is None or (started_at is not None and started_at <= self.at)


ABANDONED = CallEnd(None)
"""The end of a call without a result: everything below it has ended, whenever it began."""


def end_of_subagent(call: CallEnd | None, metadata: Mapping[str, Any]) -> CallEnd | None:
    """The end of a subagent: of the call that started it, or of its process where the link has that (`ENDED_AT`)."""
    process_end: int | None = metadata.get(ENDED_AT)
    if process_end is None or call == ABANDONED:
        return call
    return CallEnd(process_end if call is None or call.at is None else max(call.at, process_end))


def _end_in_state(state: str, completed_at: int | None) -> CallEnd | None:
    """The end of a call in this state; None for one that is open."""
    return None if state in OPEN_STATES else CallEnd(completed_at)


def calls_in(message: Message) -> Iterator[ToolCallPart]:
    """The calls of a message."""
    return (part for part in message.parts if isinstance(part, ToolCallPart))


def end_of_call(call: ToolCallPart) -> CallEnd | None:
    """The end of a call; None for one that is open."""
    times = [moment for result in call.results if (moment := milliseconds(result.completed_at)) is not None]
    return _end_in_state(call.state, times[-1] if times else None)


def abort_open_calls(message: Message, end: CallEnd) -> Message:
    """The message with its unanswered calls that began before this end aborted."""
    parts = tuple(
        msgspec.structs.replace(part, state=ToolState.ABORTED)
        if isinstance(part, ToolCallPart) and part.state in OPEN_STATES and end.ends(milliseconds(part.started_at))
        else part
        for part in message.parts
    )
    return message if parts == message.parts else msgspec.structs.replace(message, parts=parts)


_STARTED = (
    "SELECT child_id, parent_id, coalesce(tool_call_id, found_call_id) AS call, metadata FROM links"
    " WHERE kind = 'subagent' AND call IS NOT NULL"
)
_OPEN = tuple(sorted(str(state) for state in OPEN_STATES))


def find_abandoned_calls(connection: sqlite3.Connection, session_keys: Iterable[int]) -> Iterator[tuple[str, int]]:
    """Session's id and key of each message in these sessions with an open call that a copy of it went on without."""
    for session_key in sorted(session_keys):
        rows = connection.execute(
            "SELECT f.agent || ':' || f.external_id, s.message_key FROM sessions f"
            " JOIN memberships s ON s.session_key = f.key WHERE f.key = ?1 AND EXISTS"
            f" (SELECT 1 FROM parts p WHERE p.message_key = s.message_key AND p.tool_state IN {_OPEN})"
            " AND EXISTS (SELECT 1 FROM memberships o WHERE o.message_key = s.message_key AND o.session_key <> ?1)"
            " AND EXISTS (SELECT 1 FROM memberships held JOIN memberships later ON later.session_key = held.session_key"
            " AND later.position > held.position AND later.turn > held.turn WHERE held.message_key = s.message_key)",
            (session_key,),
        )
        yield from rows.fetchall()


def abort_in_subagents(
    connection: sqlite3.Connection, session_ids: set[str], abort: Callable[[str, int, CallEnd], None]
) -> None:
    """Abort the open calls of ended subagents, of these sessions and below them.

    Args:
        connection: The store.
        session_ids: Sessions that were touched, as a subagent or as the parent of one.
        abort: Aborts the calls of one message: id of its session, its key, the end that they began before.
    """
    waiting = sorted(session_ids)
    while waiting:
        session_id = waiting.pop()
        links = connection.execute(
            f"{_STARTED} AND child_id = ?1 UNION {_STARTED} AND parent_id = ?1 ORDER BY 1, 2",
            (session_id,),
        ).fetchall()
        for child_id, parent_id, call_id, metadata in links:
            if _abort_in(connection, child_id, parent_id, call_id, metadata, abort) and child_id != session_id:
                # An aborted call may itself have started a subagent, which has ended with it.
                waiting.append(child_id)


def _abort_in(
    connection: sqlite3.Connection,
    child_id: str,
    parent_id: str,
    call_id: str,
    metadata: str | None,
    abort: Callable[[str, int, CallEnd], None],
) -> bool:
    """Abort the open calls of one subagent that its end has ended; whether there were any."""
    open_calls = _open_calls(connection, child_id)
    if not open_calls:
        return False
    facts: dict[str, Any] = msgspec.json.decode(metadata) if metadata else {}
    end = end_of_subagent(_stored_end(connection, parent_id, call_id), facts)
    if end is None:
        return False
    ended = dict.fromkeys(key for key, started_at in open_calls if end.ends(started_at))
    for message_key in ended:
        abort(child_id, message_key, end)
    return bool(ended)


def _open_calls(connection: sqlite3.Connection, session_id: str) -> list[tuple[int, int | None]]:
    """Key of the message and start of each call of a session that has no result."""
    return connection.execute(
        "SELECT p.message_key, p.started_at FROM sessions f JOIN memberships s ON s.session_key = f.key"
        " JOIN parts p ON p.message_key = s.message_key"
        f" WHERE f.owner_key = 1 AND f.agent = ? AND f.external_id = ? AND p.tool_state IN {_OPEN}",
        session_id.partition(":")[::2],
    ).fetchall()


def _stored_end(connection: sqlite3.Connection, session_id: str, call_id: str) -> CallEnd | None:
    """The end of a call of a session; None where it is open or not stored."""
    row = connection.execute(
        "SELECT p.tool_state, p.completed_at FROM sessions f JOIN memberships s ON s.session_key = f.key"
        " JOIN parts p ON p.message_key = s.message_key"
        " WHERE f.owner_key = 1 AND f.agent = ? AND f.external_id = ? AND p.tool_call_id = ? LIMIT 1",
        (*session_id.partition(":")[::2], call_id),
    ).fetchone()
    return None if row is None else _end_in_state(*row)
