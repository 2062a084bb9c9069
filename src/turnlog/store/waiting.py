"""Taking the one writer's place of a database, and saying so to whoever waits while another process has it.

Every command asks to be told, also those that open no database: SQLite is imported by whoever has a connection.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import sqlite3

Tell: TypeAlias = Callable[[str], None]
"""Hears the path of the database that is waited for."""

PATIENCE_SECONDS = 1.0
"""How long a write waits without a word."""

_PRIMARY_CODE = 0xFF
"""The bits of an extended result code of SQLite that name the kind of error."""

_tell: ContextVar[Tell | None] = ContextVar("tell", default=None)


@contextmanager
def telling(tell: Tell | None) -> Generator[None]:
    """Until its end `tell` is called, once, when a write of this thread has waited for a second; None: nobody is."""
    token = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(token)


def begin(connection: sqlite3.Connection, seconds: float) -> None:
    """Begin a transaction that writes. Raises sqlite3.OperationalError when the place is taken for `seconds`."""
    tell = _tell.get()
    if tell is not None and seconds > PATIENCE_SECONDS:
        if _begin_within(connection, PATIENCE_SECONDS):
            _wait_at_most(connection, seconds)
            return
        _tell.set(None)
        tell(connection.execute("PRAGMA database_list").fetchone()[2])
    _wait_at_most(connection, seconds)
    connection.execute("BEGIN IMMEDIATE")


def is_busy(error: sqlite3.OperationalError) -> bool:
    """Whether another process has what was wanted."""
    import sqlite3

    return error.sqlite_errorcode & _PRIMARY_CODE == sqlite3.SQLITE_BUSY


def _begin_within(connection: sqlite3.Connection, seconds: float) -> bool:
    import sqlite3

    _wait_at_most(connection, seconds)
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if not is_busy(error):
            raise
        return False
    return True


def _wait_at_most(connection: sqlite3.Connection, seconds: float) -> None:
    connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
