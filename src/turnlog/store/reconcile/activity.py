"""How long a session was active: the time between its messages, without long gaps.

A session that is resumed the next day spans a day and was active for minutes. `LONGEST_GAP` is the longest time between
two messages that still counts. Messages that were copied from another session count there.

A log adds its new messages to what was measured before, of a new session to nothing; all messages of a session are
looked at only where other times have changed. Both give the same.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from turnlog.store.periods import LONGEST_GAP
from turnlog.store.writing.sessions import SessionDraft

_LIMIT = LONGEST_GAP // timedelta(milliseconds=1)

# CROSS JOIN: SQLite must go from the session's places to the messages, and not through all messages by time.
_TIMES = (
    "SELECT m.created_at AS at FROM memberships p CROSS JOIN messages m ON m.key = p.message_key"
    " WHERE p.session_key = ?1 AND p.copied = 0 AND m.created_at IS NOT NULL"
)
_MEASURE_ALL = (
    "UPDATE sessions SET (active_ms, active_since, active_until) ="
    f" (SELECT nullif(sum(iif(gap <= {_LIMIT}, gap, 0)), 0),"
    f" coalesce(max(iif(gap > {_LIMIT}, at, NULL)), min(at)), max(at) FROM"
    f" (SELECT at, at - lag(at, 1, at) OVER (ORDER BY at) AS gap FROM ({_TIMES}))) WHERE key = ?1"
)


def measure_activity(connection: sqlite3.Connection, drafts: Iterable[SessionDraft]) -> None:
    """Set `active_ms` of sessions that changed, in milliseconds.

    It is NULL if no two messages with different times are close enough: some agents log one time for a whole run, and
    the time of a single message says nothing of how long it took.

    `active_since` and `active_until` are the ends of the last stretch without a long gap.
    """
    for draft in drafts:
        if draft.is_retimed or (draft.new_times and not _add(connection, draft)):
            connection.execute(_MEASURE_ALL, (draft.key,))


def _add(connection: sqlite3.Connection, draft: SessionDraft) -> bool:
    """Add the times of new messages; False if one lies before the last stretch, in which another changes nothing."""
    times = sorted(draft.new_times)
    active, since, until = (None, times[0], times[0]) if draft.is_created else _measured(connection, draft.key)
    if until is None or times[0] < since:
        return False
    for time in times:
        if time - until > _LIMIT:
            since = time
        else:
            active = (active or 0) + max(0, time - until)
        until = max(time, until)
    connection.execute(
        "UPDATE sessions SET active_ms = ?, active_since = ?, active_until = ? WHERE key = ?",
        (active or None, since, until, draft.key),
    )
    return True


def _measured(connection: sqlite3.Connection, key: int) -> Any:
    """What was measured of a stored session."""
    query = "SELECT active_ms, active_since, active_until FROM sessions WHERE key = ?"
    return connection.execute(query, (key,)).fetchone()
