"""One question in SQL by somebody who may only read the store: bounded in time and memory, and nothing else opens."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from turnlog.errors import StoreError
from turnlog.store.sqlite.sql import VIEWS, connect_for_sql

SqlValue: TypeAlias = str | int | float | bytes | None

_STEPS: Final = 1_000
"""Steps of SQLite's machine between two looks at the clock: about a tenth of a millisecond."""

_LARGEST_VALUE: Final = 64 << 20
"""Bytes of the largest value that a query may make."""

MEMORY: Final = 256 << 20
"""Bytes that SQLite may use for a question: it sorts and keeps what it makes in memory."""

_GRACE: Final = 1.0
"""Seconds after the end in which SQLite may stop by itself."""

_READING: Final = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}

_PRAGMAS: Final = {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "function_list"}
"""Those that only describe the store."""

_NOT_CALLED: Final = {"load_extension", "edit", "readfile", "writefile", "fts3_tokenizer"}


_REFUSALS: Final = {"not authorized", "authorization denied"}


class QueryTimeoutError(StoreError):
    """A query took longer than it may."""


def list_views(path: Path) -> dict[str, tuple[str, ...]]:
    """Name of a view -> its columns."""
    with closing(connect_for_sql(path)) as connection:
        answers = {name: connection.execute(f"SELECT * FROM {name} LIMIT 0").description for name in VIEWS}
    return {name: tuple(column[0] for column in answer) for name, answer in answers.items()}


class QueryRows(NamedTuple):
    """The answer: names of its columns, and rows that are read as they are taken."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[SqlValue, ...]]


@contextmanager
def query(
    path: Path, sql: str, seconds: float, on_stuck: Callable[[], None] = lambda: None, memory: int | None = None
) -> Generator[QueryRows]:
    """Ask a store one question in SQL; its rows can be read within the `with`.

    Args:
        path: The file of the store.
        sql: One statement.
        seconds: How long it may take.
        on_stuck: Called from another thread, again and again, where SQLite is still within one step a second after the
            end: functions such as `replace` and `instr` may take hours, and nothing but the end of the process stops
            them.
        memory: Bytes that SQLite may use. They hold for the whole process, and until its end: SQLite takes nothing
            back. None: any number.

    Raises ValueError for what is not one statement that reads, or what SQLite does not understand,
    QueryTimeoutError if it takes longer than `seconds`, and StoreError if it needs more than `memory`, or the store
    cannot be read.
    """
    with closing(connect_for_sql(path)) as connection:
        connection.text_factory = _to_text
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        if memory is not None:
            connection.execute(f"PRAGMA hard_heap_limit = {memory}")
        # SQLite declares these tables at their first use, which it asks about as if it were a change.
        connection.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')").fetchall()
        connection.set_authorizer(_authorize)
        deadline = time.monotonic() + seconds
        # In this form no number that is none, such as NaN, makes it endless.
        connection.set_progress_handler(lambda: not time.monotonic() <= deadline, _STEPS)
        with closing(_Watch(seconds, on_stuck)) as watch:
            with _explained(seconds, deadline):
                watch.is_inside = True
                cursor = connection.execute(sql)
                watch.is_inside = False
            if cursor.description is None:
                raise ValueError("this is no question: expected SELECT, VALUES, WITH or EXPLAIN")
            with closing(_rows(cursor, seconds, deadline, watch)) as rows:
                yield QueryRows(tuple(name for name, *_ in cursor.description), rows)


class _Watch:
    """Looks from another thread whether SQLite comes back."""

    def __init__(self, seconds: float, on_stuck: Callable[[], None]) -> None:
        self.is_inside = False
        self._ended = threading.Event()
        # NaN is no time, and nobody waits longer than a thread can.
        self._wait = min(seconds if seconds >= 0 else 0.0, threading.TIMEOUT_MAX - _GRACE) + _GRACE
        self._on_stuck = on_stuck
        threading.Thread(target=self._look, daemon=True, name="query watch").start()

    def _look(self) -> None:
        while not self._ended.wait(self._wait):
            self._wait = _GRACE
            if self.is_inside:
                self._on_stuck()

    def close(self) -> None:
        """Look no more."""
        self._ended.set()


def _to_text(data: bytes) -> str:
    """A cut in the middle of a character, as `substr` of bytes makes it, is no reason to fail."""
    return data.decode(errors="replace")


def _rows(cursor: sqlite3.Cursor, seconds: float, deadline: float, watch: _Watch) -> Generator[tuple[SqlValue, ...]]:
    with _explained(seconds, deadline):
        while True:
            watch.is_inside = True
            row = next(cursor, None)
            watch.is_inside = False
            if row is None:
                return
            yield row


@contextmanager
def _explained(seconds: float, deadline: float) -> Generator[None]:
    """SQLite's errors as ours."""
    try:
        yield
    except sqlite3.OperationalError as error:
        # A function that asks the store itself is interrupted too, and SQLite says only that it failed.
        is_late = time.monotonic() > deadline and str(error) == "user-defined function raised exception"
        if str(error) == "interrupted" or is_late:
            raise QueryTimeoutError(f"the query took more than {seconds:g} seconds") from error
        raise ValueError(f"SQLite: {str(error).rstrip('.')}") from error
    except UnicodeEncodeError as error:
        raise ValueError("the SQL has half of a character (a lone surrogate), which no text has") from error
    except sqlite3.ProgrammingError as error:
        if "bindings" in str(error):
            raise ValueError("a query has no parameters: write the values into the SQL") from error
        raise ValueError(f"SQLite: {str(error).rstrip('.')}") from error
    except sqlite3.DatabaseError as error:
        if str(error) in _REFUSALS:
            raise ValueError("a query may only read the store") from error
        raise ValueError(f"SQLite: {str(error).rstrip('.')}") from error
    except MemoryError as error:
        raise StoreError("the query needs more memory than a query may use") from error
    except sqlite3.Warning as error:
        raise ValueError(f"SQLite: {str(error).rstrip('.')}") from error


def _authorize(action: int, first: str | None, second: str | None, database: str | None, inner: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if (second or "").lower() in _NOT_CALLED else sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA:
        return sqlite3.SQLITE_OK if first in _PRAGMAS else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY
