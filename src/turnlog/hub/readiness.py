"""Whether a hub can do its work: its database and its blobs are read and written, which is tried now and then."""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

from turnlog.errors import StoreBusyError, StoreError, StoreUnreachableError
from turnlog.hub.blobs import WatchedBlobs
from turnlog.hub.people.registry import People
from turnlog.hub.people.tables import Tables
from turnlog.server.health import KeptCheck
from turnlog.store.postgres.database import Database

_log = logging.getLogger(__name__)

BLOB_SECONDS: Final = 30.0
"""How long a check of the blobs holds: a bucket may ask for money for each write."""

_ROW_BYTES: Final = 1000

_TRIED: Final = (
    # A writer that waits for a lock is no failure of the disk, and whoever asks may wait for a second.
    "SET LOCAL lock_timeout = '1s'",
    # A table that somebody has placed on another disk would say nothing of this one.
    "SET LOCAL temp_tablespaces = ''",
    # Its first row needs a new page. In a table that is there, and in the log of PostgreSQL, there may be room left.
    "CREATE TEMP TABLE written (bytes text) ON COMMIT DROP",
    f"INSERT INTO pg_temp.written VALUES (repeat('x', {_ROW_BYTES}))",
    "UPDATE turnlog.schema_version SET version = version",
)


class WriteCheck(Tables):
    """A small write to the database, committed."""

    def failure(self) -> StoreError | None:
        """Write; return why that was not possible. Raises StoreUnreachableError if the database does not answer."""
        try:
            with self._transaction() as transaction:
                for statement in _TRIED:
                    transaction.run(statement)
        except StoreUnreachableError:
            raise
        except StoreBusyError:
            return None  # others write
        except StoreError as error:
            _log.warning("%s", error)
            return error
        return None


class Readiness:
    """What `/readyz` asks; any number of threads may use it."""

    def __init__(self, database: Database, people: People, blobs: WatchedBlobs | None) -> None:
        """Check nothing yet."""
        self._people = people
        self._blobs = blobs
        self._write = KeptCheck(WriteCheck(database).failure)
        self._lock = threading.Lock()
        self._blobs_due = 0.0

    def check(self) -> None:
        """Read from the database, and write to it every few seconds. Raises StoreError if it cannot be used."""
        self._people.teams.has_owner()
        error = self._write.result()
        if error is not None:
            raise error

    def has_blobs(self) -> bool:
        """Whether large contents can be read and written, as far as is known.

        The check that is due takes place in a thread, because a bucket may answer after seconds.
        """
        if self._blobs is None:
            return True
        with self._lock:
            is_due = time.monotonic() >= self._blobs_due
            if is_due:
                self._blobs_due = time.monotonic() + BLOB_SECONDS
        if is_due:
            threading.Thread(target=self._blobs.check, name="turnlog-blobs", daemon=True).start()
        return self._blobs.is_usable
