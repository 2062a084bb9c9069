"""The connections of a store in one SQLite file, and the snapshots that answers are made of."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from turnlog.errors import SchemaTooNewError, StoreError
from turnlog.store.connection import connect


class Snapshots:
    """Reads an SQLite file. Any number of threads may ask at once; each has a connection of its own."""

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

    def close(self) -> None:
        """Close every thread's connection."""
        with self._lock:
            self._closed = True
            for connection in self._connections.values():
                connection.close()
            self._connections.clear()

    def _connection(self) -> sqlite3.Connection:
        """This thread's connection, opened when it first asks."""
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
        """A connection that sees one state of the store, however many questions an answer takes."""
        connection = self._connection()
        try:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise StoreError(f"cannot read the store {self.path}: {error}") from error


def _casefold(text: str | None) -> str | None:
    return None if text is None else text.casefold()
