"""Usage of sessions whose agent counts whole sessions, and not single calls.

A total is put at the last time of its session, because no record says when its tokens were used. Calls of the session
without tokens of their own are covered by it: they are not unknown. A total of calls that count themselves, because
another source of the session knows their tokens, is left out. What is written follows from the stored rows alone.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from turnlog.model import SessionTotal
from turnlog.model.usage import BUCKETS
from turnlog.store.rows import USAGE_COUNTS, counted_totals, decode_totals, moment, quarter_hour_of, total_counts
from turnlog.store.writing.sessions import NO_MODEL
from turnlog.store.writing.transaction import Transaction

_COUNTED = (
    "SELECT key, agent, totals, updated_at FROM sessions"
    " WHERE totals IS NOT NULL AND key IN (SELECT value FROM json_each(?))"
)
_WITH_TOKENS = (
    "SELECT external_id FROM messages WHERE agent = ? AND external_id IN (SELECT value FROM json_each(?))"
    f" AND coalesce({', '.join(BUCKETS)}) IS NOT NULL"
)
_ADD = (
    f"INSERT INTO usage (quarter_hour, model_key, session_key, is_total, {', '.join(USAGE_COUNTS)})"
    f" VALUES (?, ?, ?, 1, {', '.join('?' * len(USAGE_COUNTS))})"
    f" ON CONFLICT DO UPDATE SET {', '.join(f'{name} = {name} + excluded.{name}' for name in USAGE_COUNTS)}"
)
_COVER = (
    "UPDATE usage SET covered_calls = covered_calls + unknown_calls, unknown_calls = 0"
    " WHERE session_key = ? AND unknown_calls <> 0"
)
_UNCOVER = (
    "UPDATE usage SET unknown_calls = unknown_calls + covered_calls, covered_calls = 0"
    " WHERE session_key = ? AND covered_calls <> 0"
)
_SUMS = ", ".join(f"coalesce(sum({name}), 0)" for name in USAGE_COUNTS)
"""Of a session that had nothing but totals that are left out, no row is there."""
_ADD_UP = (
    f"UPDATE sessions SET ({', '.join(USAGE_COUNTS)}) ="
    f" (SELECT {_SUMS} FROM usage WHERE session_key = ?1) WHERE key = ?1"
)


def count_totals(transaction: Transaction) -> None:
    """Bill the totals of the sessions that changed to these sessions, in place of what was billed before."""
    connection = transaction.connection
    changed = json.dumps(list(transaction.sessions.drafts))
    for key, agent, stored, updated_at in connection.execute(_COUNTED, (changed,)).fetchall():
        totals = decode_totals(stored)
        left = _without_counted(connection, agent, totals)
        if len(left) < len(totals):
            encoded = msgspec.json.encode(left, order="sorted").decode() if left else None
            connection.execute("UPDATE sessions SET totals = ? WHERE key = ?", (encoded, key))
        # A total is at the last time of its session. It moves as the session grows, so it is written anew.
        connection.execute("DELETE FROM usage WHERE session_key = ? AND is_total", (key,))
        found = counted_totals(left)
        connection.executemany(_ADD, [_row(transaction, key, total, updated_at) for total in found])
        connection.execute(_COVER if found else _UNCOVER, (key,))
        connection.execute(_ADD_UP, (key,))


def _without_counted(
    connection: sqlite3.Connection, agent: str, totals: Mapping[str, SessionTotal]
) -> dict[str, SessionTotal]:
    """The totals of which no call counts itself."""
    answers = [total.answer for total in totals.values() if total.answer is not None]
    counted: Collection[str] = ()
    if answers:
        counted = {name for (name,) in connection.execute(_WITH_TOKENS, (agent, json.dumps(answers)))}
    return {name: total for name, total in totals.items() if total.answer not in counted}


def _row(transaction: Transaction, key: int, total: SessionTotal, updated_at: int | None) -> tuple[Any, ...]:
    cost = transaction.cost_of_total(total, moment(updated_at))
    model_key = transaction.names.model(total.model) or NO_MODEL
    return (quarter_hour_of(updated_at), model_key, key, *total_counts(total, cost))
