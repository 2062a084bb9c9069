"""The totals of sessions and days, kept by difference in the transaction that changes them.

What a message added before is taken out by the same numbers it went in with, so that a total never drifts from its
messages. Collects in memory and writes once, at the end of the transaction.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict

from turnlog.model import Message
from turnlog.store import bodies
from turnlog.store.names import Names
from turnlog.store.rows import MESSAGE_COUNTS, USAGE_COUNTS, day_of, milliseconds, nanos, usage_counts

_SESSION_COUNTS = (*MESSAGE_COUNTS, "events", *USAGE_COUNTS)
_EVENTS = len(MESSAGE_COUNTS)
_PAID = _EVENTS + 1
"""Where events and the paid counts begin among a session's counts."""

_SESSION_UPDATE = f"UPDATE sessions SET {', '.join(f'{name} = {name} + ?' for name in _SESSION_COUNTS)} WHERE key = ?"

_USAGE_COLUMNS = (*USAGE_COUNTS, "reported_cost")
_USAGE_UPSERT = (
    f"INSERT INTO usage (day, model_key, session_key, {', '.join(_USAGE_COLUMNS)})"
    f" VALUES ({', '.join('?' * (3 + len(_USAGE_COLUMNS)))})"
    f" ON CONFLICT DO UPDATE SET {', '.join(f'{name} = {name} + excluded.{name}' for name in _USAGE_COLUMNS)}"
)

_NO_MODEL = 0
"""`usage.model_key` of calls whose model is not known."""


class Totals:
    """Differences to the totals of one transaction."""

    def __init__(self, connection: sqlite3.Connection, names: Names) -> None:
        self._connection = connection
        self._names = names
        self._sessions: dict[int, list[int]] = defaultdict(lambda: [0] * len(_SESSION_COUNTS))
        self._days: dict[tuple[int, int, int], list[int]] = defaultdict(lambda: [0] * len(_USAGE_COLUMNS))

    def count(self, session_key: int, counts: tuple[int, ...], sign: int) -> None:
        """Add what a message is (`rows.MESSAGE_COUNTS`) to a session that holds it, or take it out."""
        totals = self._sessions[session_key]
        for index, count in enumerate(counts):
            totals[index] += sign * count

    def count_events(self, session_key: int, count: int) -> None:
        """Add to the number of events of a session."""
        self._sessions[session_key][_EVENTS] += count

    def pay(self, session_key: int, message: Message, cost: int | None, sign: int) -> None:
        """Add what a model call used and cost to its payer and its day, or take it out."""
        counts = usage_counts(message, cost)
        if counts is None:
            return
        totals = self._sessions[session_key]
        model_key = self._names.model(message.model) or _NO_MODEL
        day = self._days[day_of(milliseconds(message.created_at)), model_key, session_key]
        for index, count in enumerate(counts):
            totals[_PAID + index] += sign * count
            day[index] += sign * count
        if message.cost is not None:
            day[-1] += sign * (nanos(message.cost.amount) or 0)

    def move(self, message_key: int, old: int | None, new: int) -> None:
        """Let another session pay for a stored message."""
        frame, cost = self._connection.execute(
            "SELECT body, cost FROM messages WHERE key = ?", (message_key,)
        ).fetchone()
        message = bodies.unpack(frame)
        if old is not None:
            self.pay(old, message, cost, -1)
        self.pay(new, message, cost, 1)
        self._connection.execute("UPDATE messages SET pays_key = ? WHERE key = ?", (new, message_key))

    def write(self) -> None:
        """Add the differences to the rows."""
        self._connection.executemany(
            _SESSION_UPDATE, [(*counts, key) for key, counts in self._sessions.items() if any(counts)]
        )
        self._connection.executemany(
            _USAGE_UPSERT, [(*key, *counts) for key, counts in self._days.items() if any(counts)]
        )
        self._sessions.clear()
        self._days.clear()
