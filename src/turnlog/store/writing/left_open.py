"""Calls that nobody will answer: their conversation went on in a session that copied it, or their subagent has ended.

Claude Code 1.0 resumes a session that was killed into a file of its own, without the call that was running. Where a
session that shares the call's message begins another turn behind it, the call is aborted. So is a subagent's call when
that which started the subagent has ended since, or its process (`turnlog.store.ended`). A result that comes all the
same counts. Pure functions of the stored rows, so the order of the files leaves no trace.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from turnlog.model.tools import OPEN_STATES
from turnlog.store.ended import CallEnd, ended_at, later_end

_STARTED = (
    "SELECT child_id, parent_id, coalesce(tool_call_id, found_call_id) AS call, metadata FROM links"
    " WHERE kind = 'subagent' AND call IS NOT NULL"
)
_OPEN = tuple(sorted(str(state) for state in OPEN_STATES))


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


def settle_subagents(
    connection: sqlite3.Connection, session_ids: set[str], give_up: Callable[[str, int, CallEnd], None]
) -> bool:
    """Give up what is left open in subagents that these sessions are or have, and in theirs; whether anything was."""
    waiting = sorted(session_ids)
    changed = False
    while waiting:
        session_id = waiting.pop()
        links = connection.execute(
            f"{_STARTED} AND child_id = ?1 UNION {_STARTED} AND parent_id = ?1 ORDER BY 1, 2",
            (session_id,),
        ).fetchall()
        for child_id, parent_id, call_id, metadata in links:
            left = _left_open(connection, child_id)
            told: dict[str, Any] = msgspec.json.decode(metadata) if left and metadata else {}
            end = later_end(_end_of(connection, parent_id, call_id), told) if left else None
            given_up = [key for key, started_at in left if end is not None and end.is_behind(started_at)]
            for key in dict.fromkeys(given_up):
                assert end is not None
                give_up(child_id, key, end)
                changed = True
            if given_up and child_id != session_id:
                waiting.append(child_id)
    return changed


def _left_open(connection: sqlite3.Connection, session_id: str) -> list[tuple[int, int | None]]:
    """Key of the message and start of each call of a session that has no result."""
    return connection.execute(
        "SELECT p.message_key, p.started_at FROM sessions f JOIN memberships s ON s.session_key = f.key"
        " JOIN parts p ON p.message_key = s.message_key"
        f" WHERE f.owner_key = 1 AND f.agent = ? AND f.external_id = ? AND p.tool_state IN {_OPEN}",
        session_id.partition(":")[::2],
    ).fetchall()


def _end_of(connection: sqlite3.Connection, session_id: str, call_id: str) -> CallEnd | None:
    row = connection.execute(
        "SELECT p.tool_state, p.completed_at FROM sessions f JOIN memberships s ON s.session_key = f.key"
        " JOIN parts p ON p.message_key = s.message_key"
        " WHERE f.owner_key = 1 AND f.agent = ? AND f.external_id = ? AND p.tool_call_id = ? LIMIT 1",
        (*session_id.partition(":")[::2], call_id),
    ).fetchone()
    return None if row is None else ended_at(*row)
