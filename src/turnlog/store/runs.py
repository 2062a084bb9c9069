"""Runs: what was started through turnlog, how it went, and which session its log tells of.

Not derived from logs: no pass and no rebuild changes a run, and only forgetting its session removes it. A run names its
session by id and has no part in the session's totals. Starting, watching and linking runs is `turnlog.runs`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

from turnlog.errors import NotFoundError
from turnlog.model.usage import Usage
from turnlog.store.queries.paging import aware_milliseconds, decode_cursor, encode_cursor
from turnlog.store.rows import NANO, milliseconds, moment, nanos
from turnlog.store.shapes.paging import Page
from turnlog.store.shapes.runs import RunFilter

RunStatus: TypeAlias = Literal["pending", "running", "completed", "failed", "cancelled"]

RunOrigin: TypeAlias = Literal["command", "runtime", "import"]
"""`turnlog run`, a runtime of a chat, or a record of another program that was imported."""

UNFINISHED: Final = ("pending", "running")


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of an agent. What is None is not known."""

    id: str
    origin: RunOrigin
    status: RunStatus
    created_at: datetime
    agent: str | None = None
    session_id: str | None = None
    """The session that the run made or went on with; before its log is read, the one that its command names."""
    command: tuple[str, ...] = ()
    """The program and its arguments."""
    cwd: str | None = None
    prompt: str | None = None
    model: str | None = None
    system_prompt: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    """Negative: the number of the signal that ended it."""
    error: str | None = None
    """Why it failed."""
    result: str | None = None
    """The last words of the agent."""
    log_path: str | None = None
    log_problem: str | None = None
    """Why the log was not read, or the session is not known. Such a run has not failed for that."""
    usage: Usage | None = None
    """All model calls of the run, those of its subagents included."""
    cost: Decimal | None = None
    """US dollars, priced; None when no call could be priced."""
    tool_calls: int | None = None
    """Those of its subagents included."""
    pid: int | None = None
    """The process that watches over the run: while it lives, the run goes on."""
    boot_id: str | None = None
    """The boot of the machine in which `pid` is a process."""
    process_start: str | None = None
    """When that process began, in the machine's own words: a number may be given again."""
    metadata: dict[str, Any] = {}
    """What another program told of it besides, under its own names."""

    @property
    def is_finished(self) -> bool:
        """Whether it has ended."""
        return self.status not in UNFINISHED


_COLUMNS: Final = Run.__struct_fields__
_INSERT: Final = f"INSERT INTO runs ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
_UPDATE: Final = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name != "id")
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)}, key FROM runs"

_MOMENTS: Final = frozenset({"created_at", "started_at", "ended_at"})


def save_run(connection: sqlite3.Connection, run: Run) -> None:
    """Write a run, in the place of what was known of it. The caller owns the transaction."""
    values = [_to_column(name, getattr(run, name)) for name in _COLUMNS]
    connection.execute(f"{_INSERT} ON CONFLICT (id) DO UPDATE SET {_UPDATE}", values)


def load_run(connection: sqlite3.Connection, run_id: str) -> Run:
    """One run, by its id or the beginning of one; raise NotFoundError for none and for several."""
    rows = connection.execute(f"{_SELECT} WHERE id = ?", (run_id,)).fetchall()
    if not rows and run_id:
        rows = connection.execute(f"{_SELECT} WHERE substr(id, 1, ?) = ? LIMIT 2", (len(run_id), run_id)).fetchall()
    if len(rows) != 1:
        raise NotFoundError(f"{run_id} could be several runs" if rows else f"there is no run {run_id}")
    return _run_of(rows[0])


def load_runs(connection: sqlite3.Connection, wanted: RunFilter, limit: int, cursor: str | None) -> Page[Run]:
    """A page of runs, the newest first. Raises ValueError for a foreign cursor or an unknown status."""
    if wanted.status is not None and wanted.status not in get_args(RunStatus):
        raise ValueError(f"{wanted.status!r} is no status: there are {', '.join(get_args(RunStatus))}")
    conditions: dict[str, Any] = {
        "agent = ?": wanted.agent,
        "status = ?": wanted.status,
        "session_id = ?": wanted.session,
        "created_at >= ?": None if wanted.since is None else aware_milliseconds(wanted.since),
        "created_at < ?": None if wanted.until is None else aware_milliseconds(wanted.until),
    }
    asked = {condition: value for condition, value in conditions.items() if value is not None}
    where, values = " AND ".join(["1", *asked]), list(asked.values())
    total = connection.execute(f"SELECT count(*) FROM runs WHERE {where}", values).fetchone()[0]
    last = decode_cursor("runs", (int, int), cursor)
    if last is not None:
        where, values = f"{where} AND (created_at, key) < (?, ?)", [*values, *last]
    query = f"{_SELECT} WHERE {where} ORDER BY created_at DESC, key DESC LIMIT ?"
    rows = connection.execute(query, (*values, limit + 1)).fetchall()
    runs = tuple(_run_of(row) for row in rows[:limit])
    following = None
    if len(rows) > limit:
        following = encode_cursor("runs", milliseconds(runs[-1].created_at), rows[limit - 1][-1])
    return Page(runs, following, total)


def load_newest_runs(connection: sqlite3.Connection, session_ids: Iterable[str]) -> dict[str, Run]:
    """The newest run of each of these sessions; one that has none is left out."""
    rows = connection.execute(
        f"{_SELECT} WHERE session_id IN (SELECT value FROM json_each(?)) ORDER BY created_at, key",
        (json.dumps(list(session_ids)),),
    )
    return {run.session_id: run for row in rows if (run := _run_of(row)).session_id is not None}


def load_unfinished(connection: sqlite3.Connection) -> list[Run]:
    """Runs of which nobody has said that they ended."""
    marks = ", ".join("?" * len(UNFINISHED))
    return [_run_of(row) for row in connection.execute(f"{_SELECT} WHERE status IN ({marks}) ORDER BY key", UNFINISHED)]


def delete_run(connection: sqlite3.Connection, run_id: str) -> None:
    """Remove a run's row; its session stays. The caller owns the transaction."""
    connection.execute("DELETE FROM runs WHERE id = ?", (run_id,))


def _to_column(name: str, value: Any) -> Any:
    if name in _MOMENTS:
        return milliseconds(value)
    if name == "cost":
        return nanos(value)
    if name == "usage":
        return None if value is None else msgspec.json.encode(value).decode()
    if name in ("command", "metadata"):
        return json.dumps(value) if value else None
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
