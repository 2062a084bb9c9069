"""Totals of tool calls and of edits: the differences of one transaction, for the calls of billed messages.

What is removed is read from the rows of `parts`, so the totals hold exactly what those rows hold.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Final, TypeAlias

from turnlog.model.parts import OPEN_STATES
from turnlog.store.rows import CALL_COLUMNS, CHANGING_KINDS, UNDONE, MessageFacts, quarter_hour_of

_READ: Final = ("sequence", "tool_name", "tool_kind", "command", "tool_state", "started_at", "duration_ms", "path")

_FIELDS: Final = itemgetter(*map(CALL_COLUMNS.index, _READ))

_STORED: Final = f"SELECT {', '.join(_READ)} FROM parts WHERE message_key = ? AND tool_name IS NOT NULL"

_COUNTS: Final = ("calls", *("failed", "denied", "aborted"), "open", "duration_ms", "unknown_durations")

_UPSERT_CALLS: Final = (
    "INSERT INTO call_totals (tool_name, tool_kind, command, model_key, quarter_hour, session_key,"
    f" {', '.join(_COUNTS)}) VALUES ({', '.join('?' * (6 + len(_COUNTS)))})"
    f" ON CONFLICT DO UPDATE SET {', '.join(f'{name} = {name} + excluded.{name}' for name in _COUNTS)}"
)
_DROP_CALLS: Final = (
    "DELETE FROM call_totals WHERE tool_name = ? AND tool_kind = ? AND command = ? AND model_key = ?"
    " AND quarter_hour = ? AND session_key = ? AND calls = 0"
)
_UPSERT_EDITS: Final = (
    "INSERT INTO edit_totals (path, session_key, quarter_hour, edits) VALUES (?, ?, ?, ?)"
    " ON CONFLICT DO UPDATE SET edits = edits + excluded.edits"
)
_DROP_EDITS: Final = "DELETE FROM edit_totals WHERE path = ? AND session_key = ? AND quarter_hour = ? AND edits = 0"

_Call: TypeAlias = tuple[Any, ...]
"""`_READ` of a call."""


class CallTotals:
    """Differences to `call_totals` and `edit_totals`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._calls: dict[tuple[Any, ...], list[int]] = {}
        """The key of a row -> `_COUNTS` of calls that were added, less those of calls that were removed."""
        self._edits: Counter[tuple[str, int, int]] = Counter()

    def add(self, session_key: int, model_key: int, facts: MessageFacts) -> None:
        """Bill the calls of a message to a session."""
        if facts.calls:
            self._collect(session_key, model_key, list(map(_FIELDS, facts.calls)), facts.more_paths, 1)

    def add_stored(self, session_key: int, model_key: int, message_key: int) -> None:
        """Bill the stored calls of a message to a session."""
        self._collect(session_key, model_key, *self._stored(message_key), 1)

    def remove_stored(self, session_key: int, model_key: int, message_key: int) -> None:
        """Take the stored calls of a message from the session that they are billed to."""
        self._collect(session_key, model_key, *self._stored(message_key), -1)

    def _stored(self, message_key: int) -> tuple[list[_Call], list[tuple[str, int]]]:
        calls = self._connection.execute(_STORED, (message_key,)).fetchall()
        more = "SELECT path, sequence FROM more_paths WHERE message_key = ?"
        return calls, self._connection.execute(more, (message_key,)).fetchall() if calls else []

    def _collect(
        self,
        session_key: int,
        model_key: int,
        calls: Iterable[_Call],
        more_paths: Iterable[tuple[str, int]],
        sign: int,
    ) -> None:
        edited: dict[int, int] = {}
        """Calls that changed a file -> their quarter hour."""
        for sequence, name, kind, command, state, started, duration, path in calls:
            quarter_hour = quarter_hour_of(started)
            key = (name, kind or "", command or "", model_key, quarter_hour, session_key)
            counts = self._calls.get(key)
            if counts is None:
                counts = self._calls[key] = [0] * len(_COUNTS)
            counts[0] += sign
            if state in _STATE_COUNTS:
                counts[_STATE_COUNTS[state]] += sign
            if duration is None:
                counts[6] += sign
            else:
                counts[5] += sign * duration
            if kind in CHANGING_KINDS and state not in UNDONE:
                edited[sequence] = quarter_hour
                if path is not None:
                    self._edits[path, session_key, quarter_hour] += sign
        for path, sequence in more_paths:
            if sequence in edited:
                self._edits[path, session_key, edited[sequence]] += sign

    def flush(self) -> None:
        """Add the differences to the stored totals. What has no calls any more has no row."""
        run = self._connection.executemany
        changed = [(*key, *counts) for key, counts in self._calls.items() if any(counts)]
        run(_UPSERT_CALLS, changed)
        run(_DROP_CALLS, [key for key, counts in self._calls.items() if counts[0] < 0])
        run(_UPSERT_EDITS, [(*key, count) for key, count in self._edits.items() if count])
        run(_DROP_EDITS, [key for key, count in self._edits.items() if count < 0])
        self._calls.clear()
        self._edits.clear()


_STATE_COUNTS: Final[dict[str, int]] = {
    **{state: 1 + index for index, state in enumerate(UNDONE)},
    **dict.fromkeys(OPEN_STATES, _COUNTS.index("open")),
}
"""State -> its place in `_COUNTS`; a call that succeeded is in none of them."""


def drop_totals(connection: sqlite3.Connection, sessions: str, values: Iterable[Any] = ()) -> None:
    """Delete the totals of sessions, given by a subquery with its values."""
    given = tuple(values)
    for table in ("call_totals", "edit_totals"):
        connection.execute(f"DELETE FROM {table} WHERE session_key IN ({sessions})", given)
