"""Helpers of a large import: threads that compress and checkpoint, processes that fold, and one that indexes."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from turnlog.platforms.processes import memory, usable_cores
from turnlog.store.connection import Checkpointer, Connection, large_import
from turnlog.store.search.base import search_path
from turnlog.store.search.indexer import Indexer

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from turnlog.store.search.follower import Follower

FOLLOW_FROM = 8 << 20
"""Bytes from which on a second process is worth its start of a tenth of a second, and a thread its few milliseconds."""

LARGE_IMPORT = 32 << 20
"""Bytes from which on a sync is a large import."""

_CHECKPOINT_SECONDS = 1.5
"""Seconds between two checkpoints during a large import: the longer, the less often hot pages are written."""


class ImportWorkers(NamedTuple):
    """The workers of a large import; a small one has none."""

    worker: Executor | None = None
    """A thread that compresses."""
    note_commit: Callable[[], None] = lambda: None


@contextmanager
def import_workers(connection: Connection, path: Path, total: int) -> Generator[ImportWorkers]:
    """The helpers for so many bytes: none, a thread that compresses, or all, with query indexes created at the end."""
    if total < FOLLOW_FROM:
        yield ImportWorkers()
        return
    # Most passes need neither threads nor processes.
    from concurrent.futures import ThreadPoolExecutor

    if total < LARGE_IMPORT:
        with ThreadPoolExecutor(1) as worker:
            yield ImportWorkers(worker)
        return
    with (
        large_import(connection),
        ThreadPoolExecutor(1) as worker,
        Checkpointer([path], _CHECKPOINT_SECONDS) as checkpointer,
    ):
        yield ImportWorkers(worker, checkpointer.note)


_MOST_PROCESSES = 8
"""More would fold faster than one process can write."""

_PROCESS_MEMORY = 100 << 20
"""Bytes that a folding process may need."""

_MEMORY_SHARE = 4
"""Folding may use this part of the machine's memory."""


def folding_processes(total: int) -> int:
    """How many processes should fold so many bytes: one fewer than there are cores; none for a small import."""
    if total < LARGE_IMPORT:
        return 0
    # One core is left for the process that writes.
    most = max(0, min(usable_cores() - 1, _MOST_PROCESSES))
    found = memory()
    return most if found is None else min(most, found // _MEMORY_SHARE // _PROCESS_MEMORY)


_POLL_SECONDS = 0.1
"""Seconds between two counts of what is not indexed yet."""

_MOST_COUNTING = 0.05
"""Share of the time that counting may take: beside a million messages each count takes a tenth of a second."""


@contextmanager
def indexing(store_path: Path, expected_bytes: int, on_progress: Callable[[int], None]) -> Generator[None]:
    """Index what the body of the `with` commits, until everything is indexed.

    Args:
        store_path: The store, which must exist.
        expected_bytes: How much will be read into it.
        on_progress: Called with the number of messages left to index, once the body has ended.
    """
    if expected_bytes < FOLLOW_FROM:
        yield
        with Indexer(store_path, search_path(store_path)) as indexer:
            indexer.catch_up()
            indexer.overwrite()
            on_progress(0)
        return
    from turnlog.store.search.follower import Follower

    with Follower(store_path, search_path(store_path)) as follower:
        yield
        _wait(store_path, follower, on_progress)


def _wait(store_path: Path, follower: Follower, on_progress: Callable[[int], None]) -> None:
    with Indexer(store_path, search_path(store_path)) as indexer:
        pause = _POLL_SECONDS
        # Counting is for the display only, and beside a million messages it takes time from the indexer.
        while not follower.finish(pause):
            started = time.monotonic()
            on_progress(indexer.unindexed())
            pause = max(_POLL_SECONDS, (time.monotonic() - started) / _MOST_COUNTING)
    on_progress(0)
