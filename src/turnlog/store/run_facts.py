"""What the messages of a session tell of one run: those that were written between its start and its end."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from turnlog.model import Message, TextPart, ToolCallPart, Usage, sum_usage
from turnlog.store import bodies
from turnlog.store.frames import BODY_COLUMNS, BodyReader
from turnlog.store.rows import NANO, TURN_ORIGINS, milliseconds
from turnlog.store.session_keys import family, session_key


class RunFacts(NamedTuple):
    """What became of a run, as its session has it."""

    prompt: str | None = None
    """The first that was asked."""
    model: str | None = None
    """The last that answered."""
    result: str | None = None
    """The last words of the agent."""
    error: str | None = None
    """Of the last answer, when that was one."""
    usage: Usage | None = None
    cost: Decimal | None = None
    tool_calls: int = 0


class _Row(NamedTuple):
    message: Message
    cost: int | None


def load_run_facts(
    connection: sqlite3.Connection,
    session_id: str,
    since: datetime | None,
    until: datetime | None,
    *,
    stream: str | None = None,
) -> RunFacts:
    """The facts of a run that lasted from `since` to `until`; raise NotFoundError when there is no such session.

    With `stream`, the path of what the run printed, whatever that tells instead. Usage, cost and calls are those of
    the session and its subagents.
    """
    key = session_key(connection, session_id)
    span = _during(since, until) if stream is None else _told_by(stream)
    main = list(_rows(connection, [key], span))
    children = [child for child in family(connection, key) if child != key]
    rows = [*main, *_rows(connection, children, span)]
    answers = [row.message for row in main if row.message.role == "assistant"]
    costs = [row.cost for row in rows if row.cost is not None]
    total = sum_usage(row.message.usage for row in rows if row.message.role == "assistant")
    return RunFacts(
        prompt=next((_text(row.message) for row in main if row.message.origin in TURN_ORIGINS), None),
        model=next((answer.model for answer in reversed(answers) if answer.model), None),
        result=next((text for answer in reversed(answers) if (text := _text(answer))), None),
        error=answers[-1].error.text if answers and answers[-1].error else None,
        usage=total.usage if total.calls > total.unknown_calls else None,
        cost=Decimal(sum(costs)) / NANO if costs else None,
        tool_calls=sum(isinstance(part, ToolCallPart) for row in rows for part in row.message.parts),
    )


class _Span(NamedTuple):
    """Which messages are a run's: a condition and its parameters."""

    condition: str
    parameters: tuple[Any, ...]


def _during(since: datetime | None, until: datetime | None) -> _Span:
    first, last = milliseconds(since), milliseconds(until)
    return _Span("m.created_at >= coalesce(?, 0) AND m.created_at <= coalesce(?, m.created_at)", (first, last))


def _told_by(stream: str) -> _Span:
    return _Span("c.source_key = (SELECT key FROM sources WHERE path = ?)", (stream,))


def _rows(connection: sqlite3.Connection, keys: list[int], span: _Span) -> Iterator[_Row]:
    marks = ",".join("?" * len(keys))
    found = connection.execute(
        f"SELECT m.cost, {BODY_COLUMNS} FROM memberships c JOIN messages m ON m.key = c.message_key"
        f" WHERE c.session_key IN ({marks}) AND c.copied = 0 AND {span.condition}"
        " GROUP BY m.key ORDER BY min(c.position)",
        (*keys, *span.parameters),
    )
    read = BodyReader(connection)
    for cost, *place in found:
        yield _Row(bodies.decode(read(*place)), cost)


def _text(message: Message) -> str | None:
    return "\n".join([part.text for part in message.parts if isinstance(part, TextPart)]) or None
