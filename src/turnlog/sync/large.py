"""What makes a large import fast: threads that compress and checkpoint, and no work that can wait until its end."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Callable, Generator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from turnlog.store.checkpoints import Checkpointer
from turnlog.store.connection import without_indexes

LARGE_IMPORT = 32 << 20
"""Bytes from which on a pass is prepared as a large import."""

_CHECKPOINT_SECONDS = 1.5
"""Rest between two checkpoints beside a large import: the longer, the fewer times hot pages move."""

_LARGE_CHECKPOINT_PAGES = 32000
"""Pages in the write-ahead log, 256 MB, at which a commit of a large import moves what is left: it must not grow on."""


class Prepared(NamedTuple):
    """What a large import has besides, and a small one has not."""

    worker: Executor | None = None
    """A thread that compresses."""
    note_commit: Callable[[], None] = lambda: None


@contextmanager
def prepared_for(connection: sqlite3.Connection, path: Path, total: int) -> Generator[Prepared]:
    """Hold what a pass over so many bytes needs: nothing, or the threads, and the indexes for questions at the end."""
    if total < LARGE_IMPORT:
        yield Prepared()
        return
    is_first = connection.execute("SELECT 1 FROM messages LIMIT 1").fetchone() is None
    (usual,) = connection.execute("PRAGMA wal_autocheckpoint").fetchone()
    connection.execute(f"PRAGMA wal_autocheckpoint = {_LARGE_CHECKPOINT_PAGES}")
    try:
        with (
            without_indexes(connection) if is_first else nullcontext(),
            ThreadPoolExecutor(1) as worker,
            Checkpointer([path], _CHECKPOINT_SECONDS) as checkpointer,
        ):
            yield Prepared(worker, checkpointer.note)
    finally:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute(f"PRAGMA wal_autocheckpoint = {usual}")


@contextmanager
def no_garbage_runs() -> Generator[None]:
    """Folding makes many objects and no cycles: the collector would only walk them again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
