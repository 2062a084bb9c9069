"""What all subjects share: transactions, rows and times."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import psycopg

from turnlog.errors import StoreBusyError, StoreError, StoreFullError, StoreUnreachableError
from turnlog.store.postgres.connection import FULL, LOST
from turnlog.store.postgres.database import Database

Row = tuple[Any, ...]


class HubTransaction:
    """Statements that happen together or not at all, in PostgreSQL's own SQL with numbered parameters (`$1`)."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def rows(self, sql: str, *values: Any) -> list[Row]:
        """All rows of a query."""
        return self._connection.execute(sql.encode(), values).fetchall()

    def row(self, sql: str, *values: Any) -> Row | None:
        """The first row; None if there is none."""
        return self._connection.execute(sql.encode(), values).fetchone()

    def run(self, sql: str, *values: Any) -> int:
        """The number of rows that a statement changed."""
        return self._connection.execute(sql.encode(), values).rowcount


class Tables:
    """A subject's statements over the connections of a database. Any number of threads may use it."""

    def __init__(self, database: Database) -> None:
        """Use the connections of this database."""
        self._database = database

    @contextmanager
    def _transaction(self) -> Generator[HubTransaction]:
        """One transaction. Raises StoreError."""
        try:
            with self._database.connection() as connection, connection.transaction():
                yield HubTransaction(connection)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
            raise StoreBusyError(f"{self._database.name} is being written for too long") from error
        except FULL as error:
            raise StoreFullError(f"{self._database.name} has no room: {_reason(error)}") from error
        except LOST as error:
            raise StoreUnreachableError(f"{self._database.name} does not answer: {_reason(error)}") from error
        except psycopg.Error as error:
            raise StoreError(f"cannot use {self._database.name}: {_reason(error)}") from error


def _reason(error: psycopg.Error) -> str:
    return " ".join(str(error).split())


def announce(transaction: HubTransaction, team: int) -> None:
    """Wake whoever follows a team, in all processes, once the transaction is committed."""
    transaction.row("SELECT pg_notify('turnlog', $1)", str(team))


def now() -> int:
    """Unix milliseconds."""
    return time.time_ns() // 1_000_000


def moment(milliseconds: int | None) -> datetime | None:
    """A stored time in UTC."""
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
