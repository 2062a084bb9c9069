"""What of an index is still to be overwritten: a mark in its database, and the process that works until it is gone.

FTS5 deletes a document by a note that it is deleted: its words leave every answer, and stay in the file until all
segments are merged and the file is rewritten. That takes the longer the larger the index is, so forgetting only makes a
mark in the database, in the transaction that deletes the words, and `store.search.overwriter` does the rest.
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
from turnlog.platforms.processes import in_own_group

if TYPE_CHECKING:
    import subprocess


_PROCESS: Final = "turnlog.store.search.overwriter"

LARGEST_AT_ONCE: Final = 16 << 20
"""Bytes of an index that is overwritten before forgetting returns: 0.3 s."""

REST_SECONDS: Final = 3.0
"""Seconds since a session was forgotten before the work begins: often several are forgotten, one after the other."""

LONGEST_STEP: Final = 1.0
"""Seconds that others wait to index what is new, so that they do not wait while the file is rewritten."""

started: Final[list[subprocess.Popen[bytes]]] = []
"""Processes of this one."""

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
        command = (sys.executable, "-P", "-m", _PROCESS, *map(str, (store_path.absolute(), search_path.absolute())))
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
