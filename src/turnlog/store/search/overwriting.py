"""Overwrites what the file of a large index still holds of forgotten words, in a process of its own.

FTS5 deletes a document by a note that it is deleted: its words leave every answer, and stay in the file until all
segments are merged and the file is rewritten. That takes the longer the larger the index is, so forgetting only makes a
mark in the database, in the transaction that deletes the words. This process removes the mark when no byte is left.

`python -m turnlog.store.search.overwriting STORE SEARCH SECONDS` does it, one process at a time. If it is killed, the
mark stays, and the next sync starts it again.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from turnlog.platforms.files import BINARY, lock
from turnlog.platforms.processes import in_own_group, lower_priority

if TYPE_CHECKING:
    import subprocess

    from turnlog.store.search.index_file import IndexFile

LARGEST_AT_ONCE: Final = 16 << 20
"""Bytes of an index that is overwritten before forgetting returns: 0.3 s."""

REST_SECONDS: Final = 3.0
"""Seconds since a session was forgotten before the work begins: often several are forgotten, one after the other."""

_NICENESS: Final = 10

_PAGES: Final = 1024
"""Pages that are merged in one transaction, for which another writer of the index may have to wait: 0.2 s."""

LONGEST_STEP: Final = 1.0
"""Seconds that others wait to index what is new, so that they do not wait while the file is rewritten."""

_SHARE_FOR_OTHERS: Final = 0.25
"""Of the time of a transaction, for which none is made after it: a writer that waits looks only now and then."""

started: Final[list[subprocess.Popen[bytes]]] = []
"""Processes of this one."""

_LOCK_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.05

_CREATE: Final = (
    "CREATE TABLE IF NOT EXISTS overwriting (key INTEGER PRIMARY KEY CHECK (key = 1), forgotten_at INTEGER NOT NULL)"
    " STRICT"
)


def mark(search: sqlite3.Connection) -> None:
    """Note that words were deleted whose bytes are still in the file, in the transaction that deletes them."""
    search.execute(_CREATE)
    search.execute("INSERT OR REPLACE INTO overwriting (key, forgotten_at) VALUES (1, ?)", (time.time_ns(),))


def marked_at(search: sqlite3.Connection) -> int | None:
    """When words were deleted whose bytes are still in the file, in nanoseconds since 1970; None if there are none."""
    if search.execute("SELECT 1 FROM main.sqlite_master WHERE name = 'overwriting'").fetchone() is None:
        return None
    row = search.execute("SELECT forgotten_at FROM overwriting").fetchone()
    return None if row is None else row[0]


def is_pending(search_path: Path) -> bool:
    """Whether the file of an index still has bytes of words that were deleted. Raises StoreError."""
    from turnlog.errors import StoreError
    from turnlog.store.connection import open_file

    if not search_path.exists():
        return False
    try:
        with closing(open_file(search_path, "ro")) as connection:
            return marked_at(connection) is not None
    except sqlite3.Error as error:
        raise StoreError(f"cannot read the search database {search_path}: {error}") from error


def unmark(search: sqlite3.Connection, forgotten_at: int) -> None:
    """Note that no byte is left of what was deleted until then."""
    search.execute("DELETE FROM overwriting WHERE forgotten_at = ?", (forgotten_at,))


def start(store_path: Path, search_path: Path) -> None:
    """Start the process, unless it is at work. It goes on when this one has ended."""
    with alone(search_path, 0) as is_alone:
        pass
    if is_alone:
        import subprocess

        # Their ends are noted here, so that a server keeps none that has ended.
        started[:] = [process for process in started if process.poll() is None]
        command = (sys.executable, "-m", __name__, *map(str, (store_path.absolute(), search_path.absolute())))
        started.append(
            subprocess.Popen(
                (*command, str(REST_SECONDS)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=search_path.absolute().parent,
                **in_own_group(),
            )
        )


def overwrite(store_path: Path, search_path: Path, rest: float) -> None:
    """Overwrite until nothing is marked, then index what was written meanwhile.

    Begins `rest` seconds after words were deleted last. Does nothing while another process does it. Raises
    StoreBusyError if others use the index for too long.
    """
    from turnlog.store.search.index_file import IndexFile
    from turnlog.store.search.indexer import Indexer

    with alone(search_path, _LOCK_SECONDS) as is_alone:
        if not is_alone:
            return
        file = IndexFile(search_path, own_checkpoints=True)
        try:
            while (forgotten_at := marked_at(file.connection)) is not None:
                waiting = rest - (time.time_ns() - forgotten_at) / 1e9
                if waiting > 0:
                    time.sleep(min(waiting, rest))
                elif _merge(file, forgotten_at):
                    file.rewrite()
                    unmark(file.connection, forgotten_at)
        finally:
            file.close()
        with Indexer(store_path, search_path) as indexer:
            indexer.catch_up()


def _merge(file: IndexFile, forgotten_at: int) -> bool:
    """Merge all segments, with pauses for other writers; False if words were deleted meanwhile."""
    with file.locked(wait=True):
        file.begin_merge()
    has_more = True
    while has_more:
        began = time.monotonic()
        with file.locked(wait=True):
            if marked_at(file.connection) != forgotten_at:
                return False
            has_more = file.merge(_PAGES)
        time.sleep((time.monotonic() - began) * _SHARE_FOR_OTHERS)
    return True


@contextmanager
def alone(search_path: Path, seconds: float) -> Generator[bool]:
    """Within the `with`, no other process overwrites this index; False if one does so for longer than `seconds`."""
    path = search_path.with_name(f"{search_path.name}-overwriting")
    end = time.monotonic() + seconds
    descriptor, is_alone = os.open(path, os.O_RDWR | BINARY | os.O_CREAT, 0o600), False
    try:
        while not (is_alone := lock(descriptor)) and time.monotonic() < end:
            time.sleep(_POLL_SECONDS)
        yield is_alone
    finally:
        if is_alone:
            with suppress(OSError):  # Windows deletes no file that is open
                path.unlink()
        os.close(descriptor)


if __name__ == "__main__":
    lower_priority(_NICENESS)
    overwrite(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
