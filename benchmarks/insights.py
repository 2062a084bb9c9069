"""Time of `Store.insights` in a store of a million parts, beside a yardstick in the same run.

    python benchmarks/insights.py [--parts 1000000] [--home HOME]

A store is read from HOME (benchmarks/corpus.py writes one; without it one of 100 MB is made), and its sessions are
copied within it, each copy in an earlier month, until it has so many parts. The yardstick is one sum over the same
table of totals, without a group.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from corpus import Corpus
from measure import bare_environment, find_turnlog, run

from turnlog.store import open_store

BOUND = 300
"""Milliseconds of CPU for the report that the command and the page show."""

MONTH_MS, MONTH = 30 * 86_400_000, 30 * 96
"""In milliseconds, and in quarter hours."""


def _earlier(column: str, unit: int) -> str:
    return f"iif({column} > 0, {column} - :copy * {unit}, {column})"


_TIMES = {name: _earlier(name, MONTH_MS) for name in ("created_at", "updated_at", "started_at", "completed_at")}
_TOTALS = {"session_key": "session_key + :copy * :sessions", "quarter_hour": _earlier("quarter_hour", MONTH)}
_NAMED = {"external_id": "external_id || '-' || :copy"}

COPIES: Mapping[str, Mapping[str, str]] = {
    "parts": {"message_key": "message_key + :copy * :messages", **_TIMES},
    "messages": {
        "key": "key + :copy * :messages",
        "billed_key": "billed_key + :copy * :sessions",
        **_NAMED,
        **_TIMES,
    },
    "memberships": {
        "message_key": "message_key + :copy * :messages",
        "session_key": "session_key + :copy * :sessions",
    },
    "sessions": {"key": "key + :copy * :sessions", "parent_key": "parent_key + :copy * :sessions", **_NAMED, **_TIMES},
    "events": {
        "key": "key + :copy * :events",
        "session_key": "session_key + :copy * :sessions",
        **_NAMED,
        **_TIMES,
    },
    "usage": _TOTALS,
    "call_totals": _TOTALS,
    "edit_totals": _TOTALS,
}
"""Table -> the columns that differ in a copy, and what they are."""

_KEYS = {"parts": ("message_key", "messages"), "messages": ("key", "messages"), "events": ("key", "events")}
"""Table -> the column that tells copies from what was read, and what it counts; of the others, sessions."""


def multiply(path: Path, parts: int) -> int:
    """Copy what a store has until it has so many parts; return how many it has."""
    with closing(sqlite3.connect(path)) as connection:
        first = {
            name: connection.execute(f"SELECT max(key) + 1 FROM {name}").fetchone()[0]
            for name in ("sessions", "messages", "events")
        }
        (found,) = connection.execute("SELECT count(*) FROM parts").fetchone()
        kept = connection.execute(
            "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('index', 'trigger')"
        ).fetchall()
        kept = [each for each in kept if each[2] is not None]
        for kind, name, _ in kept:
            connection.execute(f"DROP {kind} {name}")
        for table, changed in COPIES.items():
            _copy(connection, table, changed, first, max(0, parts // found - 1))
        for _, _, statement in kept:
            connection.execute(statement)
        connection.commit()
        return connection.execute("SELECT count(*) FROM parts").fetchone()[0]


def _copy(
    connection: sqlite3.Connection, table: str, changed: Mapping[str, str], first: Mapping[str, int], copies: int
) -> None:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    key, counted = _KEYS.get(table, ("key" if table == "sessions" else "session_key", "sessions"))
    chosen = ", ".join(changed.get(column, column) for column in columns)
    for copy in range(1, copies + 1):
        connection.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {chosen} FROM {table} WHERE {key} < :{counted}",
            {"copy": copy, **first},
        )


def measured(question: Callable[[], object], rounds: int) -> float:
    """Milliseconds of CPU, the median."""
    times: list[float] = []
    for _ in range(rounds + 1):
        started = time.thread_time()
        question()
        times.append((time.thread_time() - started) * 1000)
    return statistics.median(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure insights in a large store.")
    parser.add_argument("--home", type=Path, help="folder with .claude/projects; made when not given")
    parser.add_argument("--parts", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    turnlog = find_turnlog()
    if turnlog is None:
        parser.error("turnlog is not installed beside this Python")
    with tempfile.TemporaryDirectory(prefix="turnlog-benchmark-") as temporary:
        work = Path(temporary)
        home: Path = (options.home or work / "home").resolve()
        if options.home is None:
            Corpus(home, seed=7, end=datetime(2026, 11, 20, 18, tzinfo=UTC)).write(100, giant_megabytes=8)
        run([str(turnlog), "sync"], bare_environment(home, TURNLOG_DATA_DIR=work), watch_memory=False)
        path = work / "turnlog.db"
        print(f"{multiply(path, options.parts):,} parts")
        with open_store(path) as store, closing(sqlite3.connect(path)) as connection:
            query = "SELECT sum(calls), sum(duration_ms) FROM call_totals"
            yardstick = measured(lambda: connection.execute(query).fetchone(), options.rounds)
            shown = measured(lambda: store.insights(limit=20), options.rounds)
            whole = measured(store.insights, options.rounds)
    print(f"one sum over all calls       {yardstick:7.1f} ms")
    print(f"insights, as they are shown  {shown:7.1f} ms, {shown / yardstick:.0f} x (<= {BOUND} ms)")
    print(f"insights with all rows       {whole:7.1f} ms, {whole / yardstick:.0f} x")


if __name__ == "__main__":
    main()
