"""What is billed: usage by day and model, kept by difference in the transaction that changes it.

What a message added before is taken out by the same numbers that it was added with, so a total never drifts from its
messages. Differences are collected in memory and written by `flush`.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict

from turnlog.model import Message
from turnlog.store import bodies
from turnlog.store.frames import BodyReader
from turnlog.store.rows import USAGE_COUNTS, day_of, milliseconds, nanos, usage_counts
from turnlog.store.writing.names import Names
from turnlog.store.writing.sessions import SessionRows

_COLUMNS = (*USAGE_COUNTS, "reported_cost")
_UPSERT = (
    f"INSERT INTO usage (day, model_key, session_key, {', '.join(_COLUMNS)})"
    f" VALUES ({', '.join('?' * (3 + len(_COLUMNS)))})"
    f" ON CONFLICT DO UPDATE SET {', '.join(f'{name} = {name} + excluded.{name}' for name in _COLUMNS)}"
)

_NO_MODEL = 0
"""`usage.model_key` of calls whose model is not known."""


class UsageRows:
    """Differences to the usage of one transaction: by day and model, and of the sessions it is billed to."""

    def __init__(self, connection: sqlite3.Connection, names: Names, sessions: SessionRows) -> None:
        self._connection = connection
        self._names = names
        self._sessions = sessions
        self.days: dict[tuple[int, int, int], list[tuple[int, ...]]] = defaultdict(list)
        """Day, model and session -> `_COLUMNS` of each message that was added, negative of each that was removed."""

    def add(self, session_key: int, message: Message, cost: int | None) -> None:
        """Bill a model call to a session: what it used and cost (nano-dollars), on its day."""
        self._collect(session_key, message, cost, 1)

    def remove(self, session_key: int, message: Message, cost: int | None) -> None:
        """Take out what `add` added for the same message and cost."""
        self._collect(session_key, message, cost, -1)

    def _collect(self, session_key: int, message: Message, cost: int | None, sign: int) -> None:
        counts = usage_counts(message, cost)
        if counts is None:
            return
        model_key = self._names.model(message.model) or _NO_MODEL
        key = (day_of(milliseconds(message.created_at)), model_key, session_key)
        reported = nanos(message.cost.amount) or 0 if message.cost is not None else 0
        added = (*counts, reported)
        self.days[key].append(added if sign > 0 else tuple([-count for count in added]))

    def bill(self, message_key: int, old: int | None, new: int | None) -> None:
        """Bill a stored message to session `new` (None: to none) and no longer to `old`."""
        cost = self._connection.execute("SELECT cost FROM messages WHERE key = ?", (message_key,)).fetchone()[0]
        message = bodies.decode(BodyReader(self._connection).of(message_key))
        if old is not None:
            self.remove(old, message, cost)
            self._sessions.sequence(old)
        if new is not None:
            self.add(new, message, cost)
            self._sessions.sequence(new)
        self._connection.execute("UPDATE messages SET pays_key = ? WHERE key = ?", (new, message_key))

    def flush(self) -> None:
        """Add the differences to the rows by day, and hand those of each session to its draft."""
        days = {key: [sum(column) for column in zip(*added, strict=True)] for key, added in self.days.items()}
        for (_, _, session_key), (*counts, _reported) in days.items():
            self._sessions.draft(session_key).usage_counts.append(counts)
        self._connection.executemany(_UPSERT, [(*key, *counts) for key, counts in days.items() if any(counts)])
        # A day whose last call was moved to another session or another day is no row at all.
        self._connection.executemany(
            "DELETE FROM usage WHERE day = ? AND model_key = ? AND session_key = ? AND calls = 0", list(self.days)
        )
        self.days.clear()
