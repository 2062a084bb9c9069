"""A database with stores: the pool of connections that the stores of all its teams share."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from turnlog.errors import StoreBusyError, StoreError
from turnlog.store.postgres import schema
from turnlog.store.postgres.connection import SECONDS_TO_CONNECT, configure

MOST_CONNECTIONS: Final = 16


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
        self.pool = ConnectionPool(
            url,
            kwargs={"autocommit": True, "cursor_factory": psycopg.RawCursor, "connect_timeout": SECONDS_TO_CONNECT},
            configure=configure,
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
        """A connection that nobody else uses meanwhile. Raises StoreError, or StoreBusyError if none is free."""
        try:
            with self.pool.connection() as connection:
                yield connection
        except PoolClosed as error:
            raise StoreError(f"the store {self.name} is closed") from error
        except PoolTimeout as error:
            raise StoreBusyError(f"no connection to {self.name} was to be had: {error}") from error


def _without_password(url: str) -> str:
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        # What it is may hold a password, so the error does not repeat it.
        raise StoreError("the address of the database cannot be used: postgresql://user@host/database") from None
    parts.pop("password", None)
    return make_conninfo("", **{name: value for name, value in parts.items() if value is not None})
