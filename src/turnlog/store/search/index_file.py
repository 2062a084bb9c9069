"""The search database as a file that is written: opened, locked, made anew when it is gone or damaged, and scrubbed."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from turnlog.errors import StoreBusyError
from turnlog.store.connection import leave_checkpoints
from turnlog.store.search import schema
from turnlog.store.waiting import begin

BUSY_TIMEOUT_SECONDS = 60.0

_POLL_SECONDS = 0.02


class IsLocked(Exception):
    """Another process holds the write lock."""


class IndexFile:
    """A search database that is open for writing."""

    def __init__(self, path: Path, *, own_checkpoints: bool) -> None:
        """Open the file, which is made when it is not there; `own_checkpoints` is as in `connection.connect`.

        Raises StoreError when it cannot be opened or made.
        """
        self.path = path
        self._own_checkpoints = own_checkpoints
        self._open()

    def close(self) -> None:
        """Close it."""
        self.connection.close()

    def reopen_if_gone(self) -> None:
        """Begin a new file when somebody has deleted the one that is open."""
        if _identity(self.path) != self._identity:
            self.close()
            self._open()

    def replace(self) -> None:
        """Begin anew with an empty file: the one there is damaged."""
        self.close()
        schema.remove(self.path)
        self._open()

    @contextmanager
    def locked(self, *, wait: bool) -> Generator[None]:
        """Hold the write lock; what is written is committed together, or not at all.

        With `wait=False` raises IsLocked when another process has it, else StoreBusyError when that lasts too long.
        """
        try:
            begin(self.connection, BUSY_TIMEOUT_SECONDS if wait else 0)
        except sqlite3.OperationalError as error:
            if not wait:
                raise IsLocked from error
            raise StoreBusyError(f"another process is using {self.path} for too long: {error}") from error
        try:
            yield
        except BaseException:
            self.connection.rollback()
            raise
        self.connection.execute("COMMIT")

    def scrub(self) -> None:
        """Overwrite what was deleted: merge the index into one segment, write the file anew, empty its log."""
        try:
            for table in schema.INDEX_TABLES:
                self.connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
            self.connection.execute("VACUUM main")
            deadline = time.monotonic() + BUSY_TIMEOUT_SECONDS
            while self.connection.execute("PRAGMA main.wal_checkpoint(TRUNCATE)").fetchone()[0]:
                if time.monotonic() > deadline:
                    raise StoreBusyError(f"{self.path} is being read; its log still holds forgotten words")
                time.sleep(_POLL_SECONDS)
        except sqlite3.OperationalError as error:
            raise StoreBusyError(f"cannot take forgotten words out of {self.path}: {error}") from error

    def _open(self) -> None:
        self.connection = schema.open_for_writing(self.path)
        if not self._own_checkpoints:
            leave_checkpoints(self.connection)
        self._identity = _identity(self.path)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
