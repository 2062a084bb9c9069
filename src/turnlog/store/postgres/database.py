"""A database with stores: the pool of connections that the stores of all its teams share."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from turnlog.errors import StoreBusyError, StoreError, StoreUnreachableError
from turnlog.store.postgres import schema
from turnlog.store.postgres.connection import LOST, SECONDS_TO_CONNECT, configure

MOST_CONNECTIONS: Final = 16

WAIT_SECONDS: Final = 10.0
"""How long a request waits for a connection that others use."""

RECONNECT_SECONDS: Final = 1.0
"""How long a lost connection is tried to be made again. Meanwhile requests are refused at once, but for one a second
that tries: the pool by itself would wait twice as long after each attempt."""


class Database:
    """A database with the schema of stores. Any number of threads may use it."""

    def __init__(self, url: str, *, create: bool = False, most_connections: int = MOST_CONNECTIONS) -> None:
        """Connect, and bring the schema up.

        Raises SchemaTooNewError for a store of a newer turnlog, StoreError if there is no store (and `create` is False)
        or the database cannot be used.
        """
        self.url = url
        self.name = _without_password(url)
        """For errors and lists: the URL without its password."""
        try:
            with psycopg.connect(url, autocommit=True, connect_timeout=SECONDS_TO_CONNECT) as connection:
                schema.prepare(connection, self.name, create=create)
        except psycopg.Error as error:
            raise StoreError(f"cannot open the store {self.name}: {' '.join(str(error).split())}") from error
        self._next_attempt: float | None = None
        """When a request may ask for a connection again; None while the database answers."""
        self.pool = ConnectionPool(
            url,
            kwargs={"autocommit": True, "cursor_factory": psycopg.RawCursor, "connect_timeout": SECONDS_TO_CONNECT},
            configure=self._configure,
            reconnect_failed=self._note_lost,
            reconnect_timeout=RECONNECT_SECONDS,
            min_size=1,
            max_size=most_connections,
            open=True,
        )

    def __enter__(self) -> Self:
        """The database itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self.pool.close()

    @contextmanager
    def connection(self) -> Generator[psycopg.Connection[Any]]:
        """A connection that nobody else uses meanwhile.

        Raises StoreUnreachableError if the database does not answer, StoreBusyError if no connection is free, and
        StoreError if this is closed.
        """
        lost = self._next_attempt is not None
        if lost and not self._may_try():
            raise StoreUnreachableError(f"the store {self.name} does not answer")
        try:
            with self.pool.connection(RECONNECT_SECONDS if lost else WAIT_SECONDS) as connection:
                yield connection
            self._next_attempt = None
        except PoolClosed as error:
            raise StoreError(f"the store {self.name} is closed") from error
        except PoolTimeout as error:
            if self._next_attempt is not None:
                raise StoreUnreachableError(f"the store {self.name} does not answer") from error
            raise StoreBusyError(f"no connection to {self.name} was to be had: {error}") from error
        except (*LOST, StoreUnreachableError):
            # It may have been this connection alone: the next one tries.
            self._next_attempt = time.monotonic()
            raise

    def _may_try(self) -> bool:
        now = time.monotonic()
        if self._next_attempt is not None and now < self._next_attempt:
            return False
        self._next_attempt = now + RECONNECT_SECONDS
        return True

    def _configure(self, connection: psycopg.Connection[Any]) -> None:
        configure(connection)
        self._next_attempt = None

    def _note_lost(self, pool: ConnectionPool) -> None:
        self._next_attempt = time.monotonic() + RECONNECT_SECONDS


def _without_password(url: str) -> str:
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        # What it is may hold a password, so the error does not repeat it.
        raise StoreError("the address of the database cannot be used: postgresql://user@host/database") from None
    parts.pop("password", None)
    return make_conninfo("", **{name: value for name, value in parts.items() if value is not None})
