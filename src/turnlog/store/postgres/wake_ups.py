"""Who waits for changes of a store in PostgreSQL is woken by a notification when one is committed.

A notification says which team has changed, and nothing else: whoever is woken asks for the changes after the last one
that he knows. One may be lost with its connection, so a reader also asks every few seconds.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

import psycopg

from turnlog.errors import StoreError
from turnlog.store.postgres.connection import SECONDS_TO_CONNECT


class WakeUps:
    """Waits for changes of any team, on a connection of its own. One thread at a time uses it."""

    def __init__(self, url: str) -> None:
        """Begin to listen. `url` leads to PostgreSQL itself: a pooler in transaction mode loses notifications.

        Raises StoreError if the database cannot be reached.
        """
        try:
            self._connection = psycopg.connect(url, autocommit=True, connect_timeout=SECONDS_TO_CONNECT)
            self._connection.execute("LISTEN turnlog")
        except psycopg.Error as error:
            raise StoreError(f"cannot listen to changes: {' '.join(str(error).split())}") from error

    def __enter__(self) -> Self:
        """The listener itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def wait(self, seconds: float) -> set[int]:
        """The teams that have changed since the last call; none if so many seconds have passed without a change.

        Raises StoreError if the connection is lost.
        """
        try:
            found = {int(notice.payload) for notice in self._connection.notifies(timeout=seconds, stop_after=1)}
            return found | {int(notice.payload) for notice in self._connection.notifies(timeout=0)}
        except psycopg.Error as error:
            raise StoreError(f"cannot listen to changes: {' '.join(str(error).split())}") from error
