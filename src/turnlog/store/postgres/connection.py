"""Connections to PostgreSQL that the queries of a store use as if they were of the module `sqlite3`.

The queries are written in SQLite's SQL and translated (`dialect`). A connection sees one team. Every error of the
driver becomes a StoreError, and waiting for a lock for too long a StoreBusyError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Literal, NoReturn, Self

import psycopg
from psycopg import errors

from turnlog.errors import StoreBusyError, StoreError, StoreFullError, StoreUnreachableError
from turnlog.store.postgres.dialect import SCHEMA, TEAM, Statement, translate
from turnlog.store.postgres.values import escape_rows, register
from turnlog.store.postgres.visibility import READER, VIEWER

LOCK_SECONDS: Final = 60
"""Seconds that a writer waits for another one."""

KEY_BLOCK: Final = 1 << 20
"""Keys that a writer may assign in one transaction."""

# Queries are short and many: compiling one takes longer than running it.
_SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL jit = off"
_BEGIN: Final = f"BEGIN; SET LOCAL lock_timeout = '{LOCK_SECONDS}s'; SET LOCAL jit = off"

_PLANNED_ONCE: Final = "SET LOCAL plan_cache_mode = force_generic_plan"
"""With its policies, a query takes longer to plan (3 ms) than to run. The driver prepares what it sent five times."""

WRITER: Final = "turnlog.writer"
"""The setting that says whose new messages are."""

_VIEWER: Final = re.compile(r"[A-Za-z0-9_:.-]{1,100}")

_TOO_LONG: Final = errors.ProgramLimitExceeded
"""A text is too long for an index, which takes 2,704 bytes a row."""

_WRONG: Final = (errors.DataError, errors.IntegrityError, errors.DatatypeMismatch)

LOST: Final = (psycopg.OperationalError, psycopg.InterfaceError)
"""The connection or the server is not there: nothing is wrong with the statement."""

FULL: Final = errors.DiskFull
"""The server has no room. The driver counts it among `LOST`, but reading goes on."""

_LOCKED: Final = (errors.LockNotAvailable, errors.DeadlockDetected, errors.QueryCanceled)

_BLOCK: Final = f"SELECT nextval('{SCHEMA}.key_blocks') * {KEY_BLOCK}"

_KEYS: Final = {
    "SELECT seq FROM sqlite_sequence WHERE name = 'messages'": _BLOCK,
    "SELECT max(key) FROM sessions": _BLOCK,
}
"""Where writers ask for the last key before those that they assign: they get a block of their own."""

SECONDS_TO_CONNECT: Final = 10

_COLUMN_TYPES: Final = (
    "SELECT a.attname, t.typname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid"
    " WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped"
)

_TYPES: Final[dict[str, dict[str, str]]] = {}
"""Table -> column -> type, as read once: migrations add columns, and change no type."""


def connect(url: str) -> psycopg.Connection[Any]:
    """A connection of the driver, in no transaction. Raises psycopg.Error."""
    connection = psycopg.connect(
        url, autocommit=True, cursor_factory=psycopg.RawCursor, connect_timeout=SECONDS_TO_CONNECT
    )
    configure(connection)
    return connection


def configure(connection: psycopg.Connection[Any]) -> None:
    """Let a connection read and write values as stores do."""
    register(connection)


class WrongRowsError(StoreError):
    """Rows that no table takes as they are."""


class StatementResult:
    """The result of a statement."""

    def __init__(self, connection: TeamConnection, rows: Sequence[tuple[Any, ...]], rowcount: int) -> None:
        self._connection = connection
        self._rows = iter(rows)
        self.rowcount = rowcount

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last."""
        return next(self._rows, None)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows that are left."""
        return list(self._rows)

    @property
    def lastrowid(self) -> int:
        """The key that the last insert was given."""
        (key,) = self._connection.read("SELECT lastval()")[0]
        return key


class TeamConnection:
    """A connection that sees the rows of one team."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        team: int,
        name: str,
        load_outside: Callable[[str], bytes] | None = None,
        writer: str | None = None,
    ) -> None:
        """`name` is that of the store, for errors; `load_outside` reads blobs that are beside the database.

        Messages that are written are those of `writer` (id of a person), and are found by their ids only among these.
        """
        if writer is not None and not _VIEWER.fullmatch(writer):
            raise ValueError(f"{writer!r} is nobody's id")
        self.own_messages = "" if writer is None else f" AND owner = '{writer}'"
        """What queries of messages by their ids say besides."""
        self._begin = _BEGIN if writer is None else f"{_BEGIN}; SET LOCAL {WRITER} = '{writer}'"
        self._connection = connection
        self.team = team
        self._name = name
        self.load_outside = load_outside

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun."""
        return self._connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE

    @property
    def driver(self) -> psycopg.Connection[Any]:
        """The connection of the driver, for statements in PostgreSQL's own SQL."""
        return self._connection

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> StatementResult:
        """Run a statement in SQLite's SQL. Raises StoreError."""
        if sql in _KEYS:
            return StatementResult(self, self.read(_KEYS[sql]), 1)
        if (control := _CONTROLS.get(sql)) is not None:
            control(self)
            return StatementResult(self, (), -1)
        if sql.startswith("PRAGMA"):  # of a file
            return StatementResult(self, (), -1)
        statement = translate(sql, self.team)
        try:
            cursor = self._connection.execute(statement.sql.encode(), _values(statement, parameters))
            rows = cursor.fetchall() if cursor.description is not None else ()
        except psycopg.Error as error:
            self._fail(error)
        return StatementResult(self, rows, cursor.rowcount)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> StatementResult:
        """Run a statement in SQLite's SQL for each of many rows. Raises StoreError."""
        given = list(rows)
        if not given:
            return StatementResult(self, (), 0)
        statement = translate(sql, self.team)
        try:
            with self._connection.cursor() as cursor:
                cursor.executemany(statement.sql.encode(), [_values(statement, row) for row in given])
                return StatementResult(self, (), cursor.rowcount)
        except psycopg.Error as error:
            self._fail(error)

    def read(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a query in PostgreSQL's own SQL, which names the team itself. Raises StoreError."""
        try:
            return self._connection.execute(sql.encode(), parameters).fetchall()
        except psycopg.Error as error:
            self._fail(error)

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Run a statement in PostgreSQL's own SQL, which names the team itself. Raises StoreError."""
        try:
            # Several statements are one request only without parameters.
            self._connection.execute(sql.encode(), parameters or None)
        except psycopg.Error as error:
            self._fail(error)

    def copy(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Write new rows of a table, as fast as can be. Raises StoreError."""
        if not rows:
            return
        if table not in _TYPES:
            _TYPES[table] = dict(self.read(_COLUMN_TYPES, (f"{SCHEMA}.{table}",)))
        types = _TYPES[table]
        texts = [at for at, name in enumerate(columns) if types[name] == "text"]
        names = ", ".join([f'"{name}"' for name in (TEAM, *columns)])
        copied = f"COPY {SCHEMA}.{table} ({names}) FROM STDIN (FORMAT BINARY)"
        try:
            with self._connection.cursor() as cursor, cursor.copy(copied.encode()) as copy:
                copy.set_types([types[name] for name in (TEAM, *columns)])
                for row in escape_rows(rows, texts):
                    copy.write_row((self.team, *row))
        except psycopg.Error as error:
            self._fail(error)
        except (TypeError, OverflowError) as error:
            # The driver makes the bytes of a row itself, and finds here what the database would refuse.
            self._fail(errors.DatatypeMismatch(f"a value of {table} is of another type: {error}"))

    def blobopen(self, table: str, column: str, key: int, *, readonly: bool = False, name: str = "main") -> StoredBytes:
        """The bytes in a column of a row, read in pieces or written anew."""
        return StoredBytes(self, self.team, table, column, key)

    # -- transactions

    def begin_snapshot(self, viewer: str | None = None) -> None:
        """Begin a transaction that sees one state and writes nothing; with a viewer, only what this one may see."""
        if viewer is None:
            self.run(_SNAPSHOT)
            return
        if not _VIEWER.fullmatch(viewer):
            raise ValueError(f"{viewer!r} is nobody's id")
        self.run(f"{_SNAPSHOT}; {_PLANNED_ONCE}; SET LOCAL ROLE {READER}; SET LOCAL {VIEWER} = '{viewer}'")

    def begin(self) -> None:
        """Begin a transaction that waits for others only where both write the same rows."""
        self.run(self._begin)

    def begin_writing(self) -> None:
        """Begin a transaction, and wait for other writers of the team: they assign numbers of its change sequence."""
        self.begin()
        self.wait_for_writers()

    def wait_for_writers(self) -> None:
        """Wait for other writers of the team, and keep them waiting until the end of the transaction."""
        self.run(f"SELECT FROM {SCHEMA}.counters WHERE {TEAM} = $1 FOR UPDATE", (self.team,))

    def commit(self) -> None:
        """End a transaction."""
        self.run("COMMIT")

    def roll_back(self) -> None:
        """Undo a transaction; nothing if the connection is lost."""
        with suppress(psycopg.Error):
            self._connection.execute("ROLLBACK")

    def _fail(self, error: psycopg.Error) -> NoReturn:
        if isinstance(error, _LOCKED):
            raise StoreBusyError(f"{self._name} is being written for too long: {_reason(error)}") from error
        if isinstance(error, _TOO_LONG):
            raise WrongRowsError(f"an id or a path is too long for the store {self._name}: {_reason(error)}") from error
        if isinstance(error, _WRONG):
            raise WrongRowsError(f"the store {self._name} cannot take this: {_reason(error)}") from error
        if isinstance(error, FULL):
            raise StoreFullError(f"the store {self._name} has no room: {_reason(error)}") from error
        if isinstance(error, LOST):
            raise StoreUnreachableError(f"the store {self._name} does not answer: {_reason(error)}") from error
        raise StoreError(f"cannot use the store {self._name}: {_reason(error)}") from error


_CONTROLS: Final = {
    "BEGIN": TeamConnection.begin,
    "BEGIN IMMEDIATE": TeamConnection.begin_writing,
    "COMMIT": TeamConnection.commit,
    "ROLLBACK": TeamConnection.roll_back,
}


class StoredBytes:
    """The bytes of one column, as `sqlite3.Connection.blobopen` returns them."""

    def __init__(self, connection: TeamConnection, team: int, table: str, column: str, key: int) -> None:
        self._connection = connection
        self._place = (team, key)
        self._from = f"FROM {SCHEMA}.{table} WHERE {TEAM} = $1 AND key = $2"
        self._update = f"UPDATE {SCHEMA}.{table} SET {column} = $3 WHERE {TEAM} = $1 AND key = $2"
        self._column = column
        self._at = 0
        self._written: list[bytes] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        if self._written and error is None:
            self._connection.run(self._update, (*self._place, b"".join(self._written)))
        return False

    def seek(self, start: int) -> None:
        """Read from this byte on."""
        self._at = start

    def read(self, size: int) -> bytes:
        """So many bytes. Raises StoreError if there is no such row."""
        query = f"SELECT substring({self._column} FROM $3::int FOR $4::int) {self._from}"
        rows = self._connection.read(query, (*self._place, self._at + 1, size))
        if not rows:
            raise StoreError(f"the store is damaged: there is no row {self._place[1]}")
        return rows[0][0]

    def write(self, piece: bytes) -> None:
        """Append to what is written at the end of the `with`."""
        self._written.append(bytes(piece))


def _values(statement: Statement, given: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
    return [given[name] for name in statement.names]  # type: ignore[index]  # parameters with names come in a mapping


def _reason(error: psycopg.Error) -> str:
    """What the database said, on one line."""
    return " ".join(str(error).split()) or type(error).__name__
