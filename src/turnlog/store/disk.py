"""The store's files on the disk: pages that hold nothing, and whether there is room for more."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from turnlog.errors import StoreBusyError, StoreError
from turnlog.store.connection import BUSY_TIMEOUT_SECONDS, is_busy, open_file
from turnlog.store.search.base import search_path
from turnlog.store.values import StoreValue

_LOG_SHARE: Final = 0.8
"""Store and search index, of the bytes of logs: 0.6 and 0.2 of 300 MB, more where sessions are copies of others."""

_LEAST_ROOM: Final = 256 << 20
"""Bytes below which a disk counts as nearly full: write-ahead logs and checkpoints take tens of megabytes."""


_CHECKED_BYTES: Final = 64 << 10
"""Bytes of a file that is written to see whether there is room: a transaction takes some pages of 4,096."""


class DatabaseFile(StoreValue, frozen=True, kw_only=True):
    """The store or its search index. Sizes are in bytes."""

    path: str
    size: int
    free: int
    """Bytes of pages that hold nothing. New rows use them first."""


def database_files(store_path: Path) -> list[DatabaseFile]:
    """The files of a store that exist. Raises StoreError for one that is no database."""
    return [_examine(path) for path in (store_path, search_path(store_path)) if path.is_file()]


def compact(store_path: Path) -> Iterator[tuple[DatabaseFile, DatabaseFile]]:
    """Write the store's files anew without free pages; yields each file before and after.

    A file that has no free pages is left as it is. Raises StoreBusyError if another process keeps a file busy, and
    StoreError if the disk has no room for a copy and for the write-ahead log that carries it.
    """
    for before in database_files(store_path):
        if before.free:
            needed = 2 * (before.size - before.free)
            room = shutil.disk_usage(store_path.parent).free
            if room < needed:
                raise StoreError(f"compacting {before.path} takes {needed:,} bytes of the disk, which has {room:,}")
            _vacuum(Path(before.path))
        yield before, _examine(Path(before.path))


def missing_room(store_path: Path, log_bytes: int) -> int:
    """How many bytes the disk lacks, by estimate, to take in so many bytes of logs; 0 if it has enough."""
    # The folder is made with the store.
    folder = next(each for each in (store_path.absolute().parent, *store_path.absolute().parents) if each.is_dir())
    return max(0, int(log_bytes * _LOG_SHARE) + _LEAST_ROOM - shutil.disk_usage(folder).free)


def why_not_written(store_path: Path) -> str | None:
    """Why the store cannot be written now; None if it can, as far as can be known without a change of it.

    A commit would make every reader look for what has changed, and a full disk may have room for it in the write-ahead
    log. So a transaction is begun, and some bytes are written to a file beside the store.
    """
    try:
        with closing(open_file(store_path, "rw")) as connection:
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        with tempfile.TemporaryFile(dir=store_path.absolute().parent) as file:
            file.write(bytes(_CHECKED_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except sqlite3.Error as error:
        is_written = isinstance(error, sqlite3.OperationalError) and is_busy(error)
        return None if is_written else f"cannot write {store_path}: {error}"
    except OSError as error:
        return f"cannot write to {store_path.absolute().parent}: {error.strerror}"
    return None


def _examine(path: Path) -> DatabaseFile:
    try:
        with closing(open_file(path, "ro")) as connection:
            pages, free, size = (
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
    except sqlite3.Error as error:
        raise StoreError(f"cannot use {path}: {error}") from error
    return DatabaseFile(path=str(path), size=pages * size, free=free * size)


def _vacuum(path: Path) -> None:
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None)) as connection:
            # The copy is made beside the file: a folder for temporary files may be small. (The setting is of the whole
            # process, and the program ends after this.)
            folder = str(path.absolute().parent).replace("'", "''")
            connection.execute(f"PRAGMA temp_store_directory = '{folder}'")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        if isinstance(error, sqlite3.OperationalError) and is_busy(error):
            raise StoreBusyError(f"another process is using {path}: stop it, then try again") from error
        raise StoreError(f"cannot compact {path}: {error}") from error
