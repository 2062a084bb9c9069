"""Calls that nobody will answer: their conversation went on in a session that copied it.

Claude Code 1.0 resumes a session that was killed into a file of its own, without the call that was running. Where a
session that shares the call's message begins another turn behind it, the call is aborted; a result that comes all the
same counts. A pure function of the stored rows, so the order of the files leaves no trace.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

import msgspec

from turnlog.model import Message, ToolCallPart, ToolState

_OPEN = ("input-streaming", "input-available", "approval-requested", "approval-responded")


def find_left_open(connection: sqlite3.Connection, session_keys: Iterable[int]) -> Iterator[tuple[str, int]]:
    """Session's id and key of each message in these sessions that has such a call."""
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


def give_up_open_calls(message: Message) -> Message:
    """The message with its unanswered calls aborted."""
    parts = tuple(
        msgspec.structs.replace(part, state=ToolState.ABORTED)
        if isinstance(part, ToolCallPart) and part.state in _OPEN
        else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)
