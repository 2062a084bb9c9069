"""Which memberships of a session a question is about: those of a span of positions, in order."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, NamedTuple

_HELD = (
    "(SELECT session_key, position, message_key, source_key, generation, parent_id, parent_record, turn, step, fate,"
    " fate_cause, records FROM memberships UNION ALL SELECT session_key, position, message_key, source_key, generation,"
    " parent_id, NULL, turn, step, fate, fate_cause, records FROM superseded WHERE fate IS NOT NULL)"
)


class Span(NamedTuple):
    """Which messages of a session, by position."""

    after: int | None = None
    before: int | None = None
    around: int | None = None
    limit: int | None = None


def select_span(
    connection: sqlite3.Connection, select: str, key: int, span: Span, condition: str = "1", values: Iterable[Any] = ()
) -> list[tuple[Any, ...]]:
    """Rows of `select` (over `memberships s`, or what `held` says) that a span holds, in order.

    Raises ValueError when the span asks for two things at once.
    """
    if span.around is not None and (span.after is not None or span.before is not None):
        raise ValueError("around cannot be combined with after or before")
    parameters = (key, *values)
    where = f"{select} WHERE s.session_key = ? AND {condition}"
    limit = -1 if span.limit is None else span.limit
    forwards = "ORDER BY s.position, s.message_key LIMIT ?"
    backwards = "ORDER BY s.position DESC, s.message_key DESC LIMIT ?"
    if span.around is not None:
        half = connection.execute(
            f"{where} AND s.position < ? {backwards}", (*parameters, span.around, limit if limit < 0 else limit // 2)
        ).fetchall()
        rest = limit if limit < 0 else limit - len(half)
        return [
            *reversed(half),
            *connection.execute(f"{where} AND s.position >= ? {forwards}", (*parameters, span.around, rest)),
        ]
    bounds = [(span.after, "s.position > ?"), (span.before, "s.position < ?")]
    where += "".join(f" AND {bound}" for value, bound in bounds if value is not None)
    parameters += tuple(value for value, _ in bounds if value is not None)
    if span.before is not None and span.after is None:
        return connection.execute(f"{where} {backwards}", (*parameters, limit)).fetchall()[::-1]
    return connection.execute(f"{where} {forwards}", (*parameters, limit)).fetchall()


def held(connection: sqlite3.Connection, key: int) -> str:
    """The table of what a session holds by its own id: of a chat also what its agents' logs have (`chat_answers`)."""
    found = connection.execute("SELECT 1 FROM superseded WHERE session_key = ? AND fate IS NOT NULL LIMIT 1", (key,))
    return _HELD if found.fetchone() else "memberships"
