"""One question in SQL by somebody who may only read the store: bounded in time and memory, and nothing else opens."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from turnlog.errors import StoreError
from turnlog.store.sqlite.sql import VIEWS, connect_for_sql

SqlValue: TypeAlias = str | int | float | bytes | None

_STEPS: Final = 10_000
"""Steps of SQLite's machine between two looks at the clock: about a millisecond."""

_LARGEST_VALUE: Final = 64 << 20
"""Bytes of the largest value that a query may make: one function runs to its end before the clock is looked at."""

_READING: Final = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}

_PRAGMAS: Final = {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "function_list"}
"""Those that only describe the store."""

_NOT_CALLED: Final = {"load_extension", "edit", "readfile", "writefile", "fts3_tokenizer"}


_REFUSALS: Final = {"not authorized", "authorization denied"}


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
def query(path: Path, sql: str, seconds: float) -> Generator[QueryRows]:
    """Ask a store one question in SQL; its rows can be read within the `with`.

    Raises ValueError for what is not one statement that reads, or what SQLite does not understand, StoreError if it
    takes longer than `seconds` or the store cannot be read.
    """
    with closing(connect_for_sql(path)) as connection:
        connection.text_factory = _to_text
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.set_authorizer(_authorize)
        deadline = time.monotonic() + seconds
        # In this form no number that is none, such as NaN, makes it endless.
        connection.set_progress_handler(lambda: not time.monotonic() <= deadline, _STEPS)
        with _explained(seconds):
            cursor = connection.execute(sql)
        if cursor.description is None:
            raise ValueError("this is no question: expected SELECT, VALUES, WITH or EXPLAIN")
        with closing(_rows(cursor, seconds)) as rows:
            yield QueryRows(tuple(name for name, *_ in cursor.description), rows)


def _to_text(data: bytes) -> str:
    """A cut in the middle of a character, as `substr` of bytes makes it, is no reason to fail."""
    return data.decode(errors="replace")


def _rows(cursor: sqlite3.Cursor, seconds: float) -> Generator[tuple[SqlValue, ...]]:
    with _explained(seconds):
        yield from cursor


@contextmanager
def _explained(seconds: float) -> Generator[None]:
    """SQLite's errors as ours."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if str(error) == "interrupted":
            raise StoreError(f"the query took more than {seconds:g} seconds") from error
        raise ValueError(f"SQLite: {str(error).rstrip('.')}") from error
    except sqlite3.DatabaseError as error:
        if str(error) in _REFUSALS:
            raise ValueError("a query may only read the store") from error
        raise ValueError(f"SQLite: {str(error).rstrip('.')}") from error
    except sqlite3.Warning as error:
        raise ValueError(f"SQLite: {str(error).rstrip('.')}") from error


def _authorize(action: int, first: str | None, second: str | None, database: str | None, inner: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if (second or "").lower() in _NOT_CALLED else sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA:
        return sqlite3.SQLITE_OK if first in _PRAGMAS else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY
