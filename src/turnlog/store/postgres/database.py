"""A database with stores: the pool of connections that the stores of all its teams share."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, Self
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from turnlog.errors import StoreBusyError, StoreError, StoreUnreachableError
from turnlog.store.postgres import schema
from turnlog.store.postgres.connection import FULL, LOST, SECONDS_TO_CONNECT, configure

MOST_CONNECTIONS: Final = 16

WAIT_SECONDS: Final = 10.0
"""How long a request waits for a connection that others use."""

SECONDS_TO_OPEN: Final = 5
"""How long the first connection may take: somebody waits for it who may have mistyped the address."""

RECONNECT_SECONDS: Final = 1.0
"""How long a lost connection is tried to be made again. Meanwhile requests are refused at once, but for one a second
that tries: the pool by itself would wait twice as long after each attempt."""


class Database:
    """A database with the schema of stores. Any number of threads may use it."""

    def __init__(
        self, url: str, *, create: bool = False, most_connections: int = MOST_CONNECTIONS, name: str | None = None
    ) -> None:
        """Connect, and bring the schema up. `name` is what errors and lists call it; None: its address.

        Raises SchemaTooNewError for a store of a newer turnlog, StoreError if there is no store (and `create` is False)
        or the database cannot be used.
        """
        self.url = url
        address = _without_password(url)
        self.name = address if name is None else name
        """For errors and lists: the URL without its password, or what its users know it by."""
        try:
            with psycopg.connect(url, autocommit=True, connect_timeout=SECONDS_TO_OPEN) as connection:
                schema.prepare(connection, self.name, create=create)
        except psycopg.Error as error:
            what = f"the store {self.name}" if name is None else name
            raise StoreError(f"cannot open {what}: {' '.join(str(error).split())}") from error
        self.load_outside: Callable[[int, str], bytes] | None = None
        """Reads blobs that are kept beside the database, by team and SHA-256."""
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
        except FULL:
            raise  # it answers
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


_SECRET: Final = frozenset({"password", "sslpassword", "oauth_client_secret"})

_PORTS: Final = re.compile(r"[0-9,]*")


def _without_password(url: str) -> str:
    """The address without secrets. Raises StoreError for what is none."""
    parts = _parts(url)
    return make_conninfo("", **{name: value for name, value in parts.items() if name not in _SECRET})


def secret_texts(url: str) -> set[str]:
    """What nobody shall read of an address, however it is written: itself, and its secrets. Raises StoreError."""
    parts = _parts(url)
    secrets = {parts[name] for name in _SECRET if parts.get(name)}
    return {url, _without_password(url), *secrets, *(quote(each, safe="") for each in secrets)} - {""}


def _parts(url: str) -> dict[str, str]:
    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.Error:
        parts = None
    # A password with `@`, `/` or `:` that is not encoded ends up in the other parts, which errors of the driver name.
    if parts is None or "@" in "".join(parts.get(name, "") for name in ("host", "hostaddr", "port", "dbname")):
        # What it is may hold a password, so the error does not repeat it.
        raise StoreError(f"the address of the database cannot be used: {_ADDRESS}") from None
    if not _PORTS.fullmatch(parts.get("port", "")):
        raise StoreError(f"the address of the database cannot be used: {_ADDRESS}") from None
    return parts


_ADDRESS: Final = "postgresql://user@host/database; in a password, @ is %40, / is %2F and : is %3A"
