"""Search catches up with what a pass writes: in a second process beside a large import, in line after a small one."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from turnlog.store.search.base import search_path
from turnlog.store.search.follower import Follower
from turnlog.store.search.indexer import Indexer

FOLLOW_FROM = 8 << 20
"""Bytes to be read from which on a second process pays for its start (a tenth of a second)."""

_LOOK_EVERY_SECONDS = 0.1


@contextmanager
def indexing(store_path: Path, expected_bytes: int, on_progress: Callable[[int], None]) -> Generator[None]:
    """Index what the body of the `with` commits; done when it ends.

    Args:
        store_path: The store, which is there already.
        expected_bytes: How much will be read into it.
        on_progress: Told how many messages are still to be indexed, once the body has ended.
    """
    if expected_bytes < FOLLOW_FROM:
        yield
        with Indexer(store_path, search_path(store_path)) as indexer:
            indexer.catch_up()
            on_progress(0)
        return
    with Follower(store_path, search_path(store_path)) as follower:
        yield
        _wait(store_path, follower, on_progress)


def _wait(store_path: Path, follower: Follower, on_progress: Callable[[int], None]) -> None:
    with Indexer(store_path, search_path(store_path)) as indexer:
        while not follower.finish(_LOOK_EVERY_SECONDS):
            on_progress(indexer.behind())
    on_progress(0)
