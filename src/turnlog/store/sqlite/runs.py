"""Runs in SQLite: agents started through turnlog, and what the messages of a session say about one run."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

import msgspec

from turnlog.errors import ConflictError, NotFoundError
from turnlog.model import Message, TextPart, ToolCallPart, Usage, sum_usage
from turnlog.store.base import EVERY_RUN, RunFilter
from turnlog.store.choices import RUN_STATUSES
from turnlog.store.dollars import NANO
from turnlog.store.keys import family, session_key
from turnlog.store.rows import TURN_ORIGINS, milliseconds, moment, nanos
from turnlog.store.sqlite.reading import Connections, aware_milliseconds, check_limit, decode_cursor, encode_cursor
from turnlog.store.values import UNFINISHED, Page, Run, RunFacts

_COLUMNS: Final = Run.__struct_fields__
_INSERT: Final = f"INSERT INTO runs ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
_UPDATE: Final = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name != "id")
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)}, key FROM runs"

_ROUNDING: Final = 2
"""Milliseconds between the end of a run and the time of its last message, both of which are rounded."""

OF_RUN: Final = (
    "(r.origin = 'import'"
    " OR (m.created_at >= r.created_at"
    f" AND (r.exit_code IS NULL OR r.ended_at IS NULL OR m.created_at <= r.ended_at + {_ROUNDING})"
    # Of a run whose end nobody saw, what the session's next run added is not.
    " AND NOT EXISTS (SELECT 1 FROM runs n WHERE n.session_id = r.session_id AND n.created_at > r.created_at"
    " AND n.created_at <= m.created_at))"
    # What the run printed, where that was read instead of a log.
    " OR (s.source_key IS NOT NULL AND s.source_key ="
    " (SELECT f.key FROM sources f WHERE f.path = r.log_path AND f.kind = 'stream')))"
)
"""Whether a message `m` with the place `s` in the session of a run `r` is of that run."""

_MOMENTS: Final = frozenset({"created_at", "started_at", "ended_at"})


class RunQueries(Connections):
    """The queries of `Store` about runs."""

    def runs(self, filter: RunFilter = EVERY_RUN, *, limit: int = 50, cursor: str | None = None) -> Page[Run]:
        check_limit(limit)
        if filter.status is not None and filter.status not in RUN_STATUSES:
            raise ValueError(f"{filter.status!r} is no status: there are {', '.join(RUN_STATUSES)}")
        conditions: dict[str, Any] = {
            "agent = ?": filter.agent,
            "status = ?": filter.status,
            "session_id = ?": filter.session,
            "created_at >= ?": None if filter.since is None else aware_milliseconds(filter.since),
            "created_at < ?": None if filter.until is None else aware_milliseconds(filter.until),
        }
        given = {condition: value for condition, value in conditions.items() if value is not None}
        where, values = " AND ".join(["1", *given]), list(given.values())
        last = decode_cursor("runs", (int, int), cursor)
        with self._snapshot() as connection:
            total = connection.execute(f"SELECT count(*) FROM runs WHERE {where}", values).fetchone()[0]
            if last is not None:
                where, values = f"{where} AND (created_at, key) < (?, ?)", [*values, *last]
            query = f"{_SELECT} WHERE {where} ORDER BY created_at DESC, key DESC LIMIT ?"
            rows = connection.execute(query, (*values, limit + 1)).fetchall()
        runs = tuple(_run_of(row) for row in rows[:limit])
        following = None
        if len(rows) > limit:
            following = encode_cursor("runs", milliseconds(runs[-1].created_at), rows[limit - 1][-1])
        return Page(runs, following, total)

    def run(self, run_id: str) -> Run:
        with self._snapshot() as connection:
            return find_run(connection, run_id)

    def newest_runs(self, session_ids: Iterable[str]) -> dict[str, Run]:
        with self._snapshot() as connection:
            rows = connection.execute(
                f"{_SELECT} WHERE session_id IN (SELECT value FROM json_each(?)) ORDER BY created_at, key",
                (json.dumps(list(session_ids)),),
            )
            # A later run replaces earlier ones.
            return {run.session_id: run for row in rows if (run := _run_of(row)).session_id is not None}

    def run_facts(
        self, session_id: str, since: datetime | None, until: datetime | None, *, stream: str | None = None
    ) -> RunFacts:
        messages = _while(since, until) if stream is None else _from_stream(stream)
        with self._snapshot() as connection:
            key = session_key(connection, session_id)
            main = list(_rows(connection, [key], messages))
            children = [child for child in family(connection, key) if child != key]
            rows = [*main, *_rows(connection, children, messages)]
        replies = [row.message for row in main if row.message.role == "assistant"]
        costs = [row.cost for row in rows if row.cost is not None]
        total = sum_usage(row.message.usage for row in rows if row.message.role == "assistant")
        return RunFacts(
            prompt=next((_text(row.message) for row in main if row.message.origin in TURN_ORIGINS), None),
            model=next((reply.model for reply in reversed(replies) if reply.model), None),
            result=next((text for reply in reversed(replies) if (text := _text(reply))), None),
            error=replies[-1].error.text if replies and replies[-1].error else None,
            usage=total.usage if total.calls > total.unknown_calls else None,
            cost=Decimal(sum(costs)) / NANO if costs else None,
            tool_calls=sum(isinstance(part, ToolCallPart) for row in rows for part in row.message.parts),
        )

    def save_run(self, run: Run) -> None:
        with self._writing() as connection:
            _save(connection, run)

    def change_unfinished_runs(self, change: Callable[[Run], Run | None]) -> list[Run]:
        with self._snapshot() as connection:
            unfinished = _unfinished(connection)
        if not any(map(change, unfinished)):
            return []
        with self._writing() as connection:
            # Read again, now that no other process can end them.
            changed = [run for run in map(change, _unfinished(connection)) if run is not None]
            for run in changed:
                _save(connection, run)
        return changed

    def forget_run(self, run_id: str) -> Run:
        with self._writing(forgetting=True) as connection:
            run = find_run(connection, run_id)
            if not run.is_finished:
                raise ConflictError(f"run {run.id} has not ended")
            connection.execute("DELETE FROM runs WHERE id = ?", (run.id,))
        return run


def find_run(connection: sqlite3.Connection, run_id: str) -> Run:
    """One run, by its id or the beginning of it. Raises NotFoundError if none or several match."""
    rows = connection.execute(f"{_SELECT} WHERE id = ?", (run_id,)).fetchall()
    if not rows and run_id:
        rows = connection.execute(f"{_SELECT} WHERE substr(id, 1, ?) = ? LIMIT 2", (len(run_id), run_id)).fetchall()
    if len(rows) != 1:
        raise NotFoundError(f"{run_id} could be several runs" if rows else f"there is no run {run_id}")
    return _run_of(rows[0])


def _unfinished(connection: sqlite3.Connection) -> list[Run]:
    marks = ", ".join("?" * len(UNFINISHED))
    return [_run_of(row) for row in connection.execute(f"{_SELECT} WHERE status IN ({marks}) ORDER BY key", UNFINISHED)]


def _save(connection: sqlite3.Connection, run: Run) -> None:
    """Insert or replace a run by its id."""
    values = [_to_column(name, getattr(run, name)) for name in _COLUMNS]
    connection.execute(f"{_INSERT} ON CONFLICT (id) DO UPDATE SET {_UPDATE}", values)


def _to_column(name: str, value: Any) -> Any:
    if name in _MOMENTS:
        return milliseconds(value)
    if name == "cost":
        return nanos(value)
    if name == "usage":
        return None if value is None else msgspec.json.encode(value).decode()
    if name in ("command", "metadata"):
        return json.dumps(value) if value else None
    # Arguments of a command may be no UTF-8. Python has such bytes as lone surrogates, which SQLite refuses.
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def _run_of(row: tuple[Any, ...]) -> Run:
    # The last column is the row's key.
    return Run(**{name: _from_column(name, value) for name, value in zip(_COLUMNS, row, strict=False)})


def _from_column(name: str, value: Any) -> Any:
    if name in _MOMENTS:
        return moment(value)
    if name == "command":
        return tuple(json.loads(value)) if value else ()
    if name == "metadata":
        return json.loads(value) if value else {}
    if value is None:
        return None
    if name == "cost":
        return Decimal(value) / NANO
    return msgspec.json.decode(value, type=Usage) if name == "usage" else value


class _Row(NamedTuple):
    message: Message
    cost: int | None


class _RunMessages(NamedTuple):
    """The messages of a run: an SQL condition and its parameters."""

    condition: str
    parameters: tuple[Any, ...]


def _while(since: datetime | None, until: datetime | None) -> _RunMessages:
    first, last = milliseconds(since), milliseconds(until)
    return _RunMessages("m.created_at >= coalesce(?, 0) AND m.created_at <= coalesce(?, m.created_at)", (first, last))


def _from_stream(stream: str) -> _RunMessages:
    return _RunMessages("c.source_key = (SELECT key FROM sources WHERE path = ?)", (stream,))


def _rows(connection: sqlite3.Connection, keys: list[int], messages: _RunMessages) -> Iterator[_Row]:
    # Imported here, because a list of runs must not wait for the code that decodes messages.
    from turnlog.store import bodies
    from turnlog.store.frames import BODY_COLUMNS, BodyReader

    marks = ",".join("?" * len(keys))
    # Copies in a fork were made by an earlier run. A message that a session shares with its subagent counts once.
    found = connection.execute(
        f"SELECT m.cost, {BODY_COLUMNS} FROM memberships c JOIN messages m ON m.key = c.message_key"
        f" WHERE c.session_key IN ({marks}) AND c.copied = 0 AND {messages.condition}"
        " GROUP BY m.key ORDER BY min(c.position)",
        (*keys, *messages.parameters),
    )
    read = BodyReader(connection)
    for cost, *place in found:
        yield _Row(bodies.decode(read(*place)), cost)


def _text(message: Message) -> str | None:
    return "\n".join([part.text for part in message.parts if isinstance(part, TextPart)]) or None
