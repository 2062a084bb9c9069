"""Work on toy logs in processes that kill themselves: `python crash_driver.py` reads orders and answers them.

An order is a line of JSON: a store, a home and a point at which to die. SQLite's statements are the clock: every one
of both databases passes through here, so a process can be killed before or behind any commit, or inside any
transaction.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from support import toy_agent
from support.toy_logs import make_world, write_world
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.sync import syncer, workers

COMMIT_SOURCES = 3
"""Several commits even in a small home."""


class Order(msgspec.Struct, frozen=True):
    """One pass in one process, or forgetting a session."""

    store: str
    home: str
    commit: int = 0
    """Die at this commit (from 1); 0: not at a commit."""
    behind: bool = False
    """Behind the commit, not before it."""
    statement: int = 0
    """Die at this statement (from 1); 0: not at a statement."""
    seconds: float = 0.0
    """Die after so long; 0: not by time."""
    large: bool = False
    """Go about it as if there were much to read: indexes at the end, a thread that compresses."""
    forget: str = ""
    """The session to forget; empty: a pass."""


class Answer(msgspec.Struct, frozen=True):
    """What became of it."""

    killed: bool
    commits: int = 0
    statements: int = 0


class _Clock:
    order: Order
    commits = 0
    statements = 0

    def count(self, statement: str, run: Callable[[], Any]) -> Any:
        """Run a statement, and die where the order says."""
        self.statements += 1
        if self.statements == self.order.statement:
            _die()
        if statement != "COMMIT":
            return run()
        self.commits += 1
        if self.commits == self.order.commit and not self.order.behind:
            _die()
        result = run()
        if self.commits == self.order.commit:
            _die()
        return result


_clock = _Clock()


class _Watched(sqlite3.Connection):
    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        return _clock.count(sql, lambda: sqlite3.Connection.execute(self, sql, parameters))

    def executemany(self, sql: str, parameters: Any) -> sqlite3.Cursor:
        return _clock.count(sql, lambda: sqlite3.Connection.executemany(self, sql, parameters))


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _run(order: Order) -> Answer:
    """What was ordered, in this process; returns only if it is not killed."""
    _clock.order = order
    if order.seconds:
        signal.signal(signal.SIGALRM, lambda number, frame: _die())
        signal.setitimer(signal.ITIMER_REAL, order.seconds)
    if order.forget:
        forget_for_good(Path(order.store), order.forget)
        return Answer(False, _clock.commits, _clock.statements)
    if order.large:
        workers.LARGE_IMPORT = 0
    agent = toy_agent.ToyAgent()
    summary = syncer.sync(Path(order.store), roots=[Path(order.home)], agents=[agent])
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert summary.problems == [], summary.problems
    return Answer(False, _clock.commits, _clock.statements)


def _obey(order: Order) -> bytes:
    """Run an order in a process of its own; its answer."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.write(writer, msgspec.json.encode(_run(order)))
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        answer = file.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return msgspec.json.encode(Answer(True))
    assert os.waitstatus_to_exitcode(status) == 0, order
    return answer


def _import_all() -> None:
    """Import what a pass imports on its way. Otherwise each order would, which takes as long as the pass."""
    with tempfile.TemporaryDirectory() as folder:
        write_world(Path(folder) / "home", make_world(1, 1, 2))
        syncer.sync(Path(folder) / "store.db", roots=[Path(folder) / "home"], agents=[toy_agent.ToyAgent()])


def main() -> None:
    """Obey every order of standard input."""
    _import_all()
    connect = sqlite3.connect

    def watched(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return connect(*arguments, factory=_Watched, **options)

    sqlite3.connect = watched
    syncer.COMMIT_SOURCES = COMMIT_SOURCES
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(_obey(msgspec.json.decode(line, type=Order)) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
