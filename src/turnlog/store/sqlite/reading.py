"""Shared by all queries: connections and transactions, pages of lists, ranges of positions.

A cursor contains the last row of a page (keyset paging), so a page costs the same anywhere in a list. Lists are
descending, and rows with an unknown sort value come last. SQLite can seek an index for `value <= ?` but not for an OR
with `value IS NULL`, so a page is read in up to two phases.
"""

from __future__ import annotations

import base64
import json
import sqlite3
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType, UnionType
from typing import Any, Final, NamedTuple, Self, cast

from turnlog.errors import SchemaTooNewError, StoreError
from turnlog.store.connection import can_be_written, connect, write_transaction
from turnlog.store.unfinished import end_forgetting

_LARGEST_LIMIT: Final = (1 << 63) - 2
"""SQLite's largest number, less the one item more that is asked for to see whether another page follows."""


class Connections:
    """The connections of a store. Any number of threads may read at once, each on its own connection."""

    def __init__(self, path: Path) -> None:
        """Open the file, creating or migrating it if necessary.

        A session that a killed process was forgetting is gone before anything is read.

        Raises SchemaTooNewError for a store of a newer turnlog, StoreError for a file that is not a store.
        """
        self.path = path
        self._lock = threading.Lock()
        self._connections: dict[threading.Thread, sqlite3.Connection] = {}
        self._closed = False
        end_forgetting(path)
        try:
            self._connection()
        except SchemaTooNewError:
            raise
        except StoreError:
            if not can_be_written(path):
                raise
            # It does not exist or has an older schema: opening it for writing creates it, migrates it, or says why not.
            connect(path).close()

    def __enter__(self) -> Self:
        """The store itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store."""
        self.close()

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._lock:
            self._closed = True
            for connection in self._connections.values():
                connection.close()
            self._connections.clear()

    def _connection(self) -> sqlite3.Connection:
        """This thread's connection, opened when it first reads."""
        thread = threading.current_thread()
        connection = self._connections.get(thread)
        if connection is not None:
            return connection
        with self._lock:
            if self._closed:
                raise StoreError(f"the store {self.path} is closed")
            # A thread does not say when it ends, so the next one that opens a connection closes those that are left.
            for ended in [known for known in self._connections if not known.is_alive()]:
                self._connections.pop(ended).close()
            connection = connect(self.path, read_only=True)
            connection.create_function("casefold", 1, _casefold, deterministic=True)
            self._connections[thread] = connection
        return connection

    @contextmanager
    def _snapshot(self) -> Generator[sqlite3.Connection]:
        """A connection that sees one state of the store, however many statements a query takes.

        Within another snapshot it is the same connection, so queries may call each other.
        """
        connection = self._connection()
        if connection.in_transaction:
            yield connection
            return
        try:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise StoreError(f"cannot read the store {self.path}: {error}") from error

    @contextmanager
    def _writing(self, *, forgetting: bool = False) -> Generator[sqlite3.Connection]:
        """A new connection with a write transaction, committed at the end.

        With `forgetting`, deleted data is overwritten, also in the write-ahead log.
        """
        connection = connect(self.path)
        try:
            if forgetting:
                connection.execute("PRAGMA secure_delete = ON")
            with write_transaction(connection):
                yield connection
            if forgetting:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()


def _casefold(text: str | None) -> str | None:
    return None if text is None else text.casefold()


_LARGEST = 1 << 63
"""One more than the largest integer in SQLite."""

# Only superseded places of a chat have a fate (`reconcile.lesser_sources`): its page gets the messages that it knows.
_HELD = (
    "(SELECT session_key, position, message_key, source_key, generation, parent_id, parent_record, turn, step, fate,"
    " fate_cause, records FROM memberships UNION ALL SELECT session_key, position, message_key, source_key, generation,"
    " parent_id, NULL, turn, step, fate, fate_cause, records FROM superseded WHERE fate IS NOT NULL)"
)


class Phase(NamedTuple):
    """A condition for some of the rows after the cursor, and its parameters."""

    condition: str
    parameters: tuple[Any, ...]


def encode_cursor(kind: str, *values: Any) -> str:
    """An opaque cursor: the name of its list, and the sort values of the last row."""
    return base64.urlsafe_b64encode(json.dumps([kind, *values]).encode()).decode().rstrip("=")


def decode_cursor(kind: str, shape: Sequence[type | UnionType], cursor: str | None) -> list[Any] | None:
    """The values in a cursor, checked against these types. Raises ValueError if it is not a cursor of this list."""
    if cursor is None:
        return None
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{cursor!r} is not a cursor") from error
    values = cast("list[Any]", found) if isinstance(found, list) else []
    fits = len(values) == len(shape) + 1 and all(map(_fits, values[1:], shape))
    if not fits or values[0] != kind:
        raise ValueError(f"{cursor!r} is not a cursor of this list")
    return values[1:]


def _fits(value: Any, kind: type | UnionType) -> bool:
    """Whether a value has its type and fits into SQLite."""
    if isinstance(value, int):
        return isinstance(value, kind) and -_LARGEST <= value < _LARGEST
    # Half a character has no UTF-8, so SQLite could not take it as a parameter.
    return isinstance(value, kind) and not (
        isinstance(value, str) and any("\ud800" <= each <= "\udfff" for each in value)
    )


def phases(value: str, tie: str, last: list[Any] | None) -> list[Phase]:
    """The conditions that together select what comes after `last` (sort value, then ties), in order.

    Args:
        value: SQL of the sort value, which is descending.
        tie: SQL condition for later rows with an equal sort value, with a `?` for each tie.
        last: Sort value and ties of the last row; None at the start.
    """
    if last is None:
        return [Phase(f"{value} IS NOT NULL", ()), Phase(f"{value} IS NULL", ())]
    known, *ties = last
    if known is None:
        return [Phase(f"{value} IS NULL AND {tie}", tuple(ties))]
    return [
        Phase(f"{value} <= ? AND ({value} < ? OR {tie})", (known, known, *ties)),
        Phase(f"{value} IS NULL", ()),
    ]


def aware_milliseconds(moment: datetime) -> int:
    """A time in a filter as the store keeps it. Raises ValueError if it has no time zone."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone: expected one with it, as datetime.now(UTC)")
    return round(moment.timestamp() * 1000)


def check_limit(limit: int) -> None:
    """Raise ValueError for a page that could hold nothing, and so has no place where the next one begins.

    Likewise for a number that is too large for SQLite.
    """
    if limit < 1:
        raise ValueError(f"limit cannot be {limit}: expected 1 or more")
    if limit > _LARGEST_LIMIT:
        raise ValueError(f"limit cannot be more than {_LARGEST_LIMIT}")


class Span(NamedTuple):
    """A range of messages in a session, by position."""

    after: int | None = None
    before: int | None = None
    around: int | None = None
    limit: int | None = None


def select_span(
    connection: sqlite3.Connection, select: str, key: int, span: Span, condition: str = "1", values: Iterable[Any] = ()
) -> list[tuple[Any, ...]]:
    """The rows of `select` (over `memberships s`, or the table of `held`) in a range, in order.

    Raises ValueError if the range has `around` and another bound.
    """
    if span.around is not None and (span.after is not None or span.before is not None):
        raise ValueError("around cannot be combined with after or before")
    parameters = (key, *values)
    where = f"{select} WHERE s.session_key = ? AND {condition}"
    limit = -1 if span.limit is None else span.limit  # SQLite: no limit
    forwards = "ORDER BY s.position, s.message_key LIMIT ?"
    backwards = "ORDER BY s.position DESC, s.message_key DESC LIMIT ?"
    if span.around is not None:
        half = connection.execute(
            f"{where} AND s.position < ? {backwards}", (*parameters, span.around, limit if limit < 0 else limit // 2)
        ).fetchall()
        # Near the beginning fewer come before: the rest of the window comes from behind.
        rest = limit if limit < 0 else limit - len(half)
        return [
            *reversed(half),
            *connection.execute(f"{where} AND s.position >= ? {forwards}", (*parameters, span.around, rest)),
        ]
    bounds = [(span.after, "s.position > ?"), (span.before, "s.position < ?")]
    where += "".join(f" AND {bound}" for value, bound in bounds if value is not None)
    parameters += tuple(value for value, _ in bounds if value is not None)
    # The nearest ones before a position: forwards, LIMIT would keep the first ones of the session.
    if span.before is not None and span.after is None:
        return connection.execute(f"{where} {backwards}", (*parameters, limit)).fetchall()[::-1]
    return connection.execute(f"{where} {forwards}", (*parameters, limit)).fetchall()


def held(connection: sqlite3.Connection, key: int) -> str:
    """The table of what a session contains under its own id, for a chat also what logs superseded."""
    found = connection.execute("SELECT 1 FROM superseded WHERE session_key = ? AND fate IS NOT NULL LIMIT 1", (key,))
    return _HELD if found.fetchone() else "memberships"
