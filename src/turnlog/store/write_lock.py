"""Taking the write lock of a database, and reporting when another process holds it.

This module imports no database, because every command installs the report, even if it opens no store.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import sqlite3


OnWait: TypeAlias = Callable[[str], None]
"""Called with the path of the database whose lock a write waits for."""

SILENT_SECONDS = 1.0
"""Seconds after which a waiting write is reported."""

_RETRY_SECONDS = 0.01

_PRIMARY_CODE = 0xFF
"""The bits of SQLite's extended result codes that identify the kind of error."""

_on_wait: ContextVar[OnWait | None] = ContextVar("on_wait", default=None)


@contextmanager
def reporting_waits(on_wait: OnWait | None) -> Generator[None]:
    """Within the `with`, call `on_wait` once when a write of this thread has waited for a second; None: never."""
    token = _on_wait.set(on_wait)
    try:
        yield
    finally:
        _on_wait.reset(token)


def begin(connection: sqlite3.Connection, seconds: float) -> None:
    """Begin a write transaction. Raises sqlite3.OperationalError if the lock is not free within `seconds`."""
    on_wait = _on_wait.get()
    if on_wait is not None and seconds > SILENT_SECONDS:
        if _try_begin(connection, SILENT_SECONDS):
            _set_busy_timeout(connection, seconds)
            return
        _on_wait.set(None)
        on_wait(connection.execute("PRAGMA database_list").fetchone()[2])
    _set_busy_timeout(connection, seconds)
    connection.execute("BEGIN IMMEDIATE")


def use_write_ahead_log(connection: sqlite3.Connection, seconds: float) -> None:
    """Set the journal mode of a database, for good.

    Raises sqlite3.OperationalError when other processes keep it locked for `seconds`. Where several open a new file at
    once, SQLite answers some of them "locked" without waiting: the mode changes only while no other connection reads.
    """
    import sqlite3

    deadline = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_SECONDS)


def is_busy(error: sqlite3.OperationalError) -> bool:
    """Whether the error means that another process holds the lock."""
    import sqlite3

    return error.sqlite_errorcode & _PRIMARY_CODE == sqlite3.SQLITE_BUSY


def is_database_error(error: Exception) -> bool:
    """Whether a database file could not be read or written. Other errors are bugs and keep their traceback."""
    # Whoever has opened a store has imported sqlite3; nobody else should pay for the import.
    sqlite = sys.modules.get("sqlite3")
    # "Malformed" raises the base class itself; the other errors are subclasses.
    return sqlite is not None and (isinstance(error, sqlite.OperationalError) or type(error) is sqlite.DatabaseError)


def _try_begin(connection: sqlite3.Connection, seconds: float) -> bool:
    import sqlite3

    _set_busy_timeout(connection, seconds)
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if not is_busy(error):
            raise
        return False
    return True


def _set_busy_timeout(connection: sqlite3.Connection, seconds: float) -> None:
    connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
