"""The connections of a store in one SQLite file, and the transactions in which its queries read and write."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from turnlog.errors import SchemaTooNewError, StoreError
from turnlog.store.connection import connect, write_transaction


class Connections:
    """What the queries of all subjects share. Any number of threads may read at once, each on its own connection."""

    def __init__(self, path: Path) -> None:
        """Open the file, made or brought up to the newest schema where that is needed.

        Raises SchemaTooNewError for a store of a newer turnlog, StoreError for a file that is none.
        """
        self.path = path
        self._lock = threading.Lock()
        self._connections: dict[threading.Thread, sqlite3.Connection] = {}
        self._closed = False
        try:
            self._connection()
        except SchemaTooNewError:
            raise
        except StoreError:
            # It is not there, or of an older schema: opening it for writing makes it, brings it up, or says why not.
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
        """Close every thread's connection."""
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
            for ended in [known for known in self._connections if not known.is_alive()]:
                self._connections.pop(ended).close()
            connection = connect(self.path, read_only=True)
            connection.create_function("casefold", 1, _casefold, deterministic=True)
            self._connections[thread] = connection
        return connection

    @contextmanager
    def _snapshot(self) -> Generator[sqlite3.Connection]:
        """A connection that sees one state of the store, however many statements a query takes.

        A query may use another: within a snapshot this is the same one.
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
        """A connection of its own with a write transaction, committed at the end.

        With `forgetting`, what was deleted is overwritten, and no longer in the write-ahead log either.
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
