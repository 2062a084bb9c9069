"""Moving what was committed from the write-ahead logs into the databases, beside the one who writes.

SQLite does it by itself in the middle of a commit, once the log is long, and syncs three files for it: on a busy disk
that is tenths of a second, in which whoever watches a session waits. A `Checkpointer` does it on a thread of its own;
who writes goes on meanwhile (`connect(own_checkpoints=False)`). It keeps logs short and promises nothing: one that
fails or comes too early is made up for by the next.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self

from turnlog.store.connection import open_file

REST_SECONDS = 30.0
"""Time between two checkpoints. The first commit after each waits for the disk once, so that they had better be few;
what agents write in so long is some megabytes."""

_log = logging.getLogger(__name__)


class Checkpointer:
    """Checkpoints databases a while after something was committed. `note` may be called on any thread."""

    def __init__(self, databases: Sequence[Path], rest: float = REST_SECONDS) -> None:
        """Start the thread; it sleeps until something is committed."""
        self._databases = databases
        self._rest = rest
        self._committed = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="turnlog-checkpoints", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        """The checkpointer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the thread, after the checkpoint it may be in."""
        self._stopped.set()
        self._committed.set()
        self._thread.join()

    def note(self) -> None:
        """Something was committed."""
        self._committed.set()

    def _run(self) -> None:
        while self._committed.wait() and not self._stopped.wait(self._rest):
            self._committed.clear()
            if self._stopped.is_set():  # just now: what would have told of it is cleared
                return
            for database in self._databases:
                _checkpoint(database)


def _checkpoint(database: Path) -> None:
    """Move what no reader holds back. On a connection made for it: an index may be deleted and made anew meanwhile."""
    try:
        with closing(open_file(database, "rw")) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error as error:
        _log.debug("no checkpoint of %s: %s", database, error)
