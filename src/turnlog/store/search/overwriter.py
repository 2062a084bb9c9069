"""Overwrites what the file of a large index still holds of forgotten words, in a process of its own.

`python -m turnlog.store.search.overwriter STORE SEARCH SECONDS` does it, one process at a time, and removes the mark
(`store.search.overwriting`) when no byte is left. If it is killed, the mark stays, and the next sync starts it again.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

from turnlog.platforms.processes import lower_priority
from turnlog.store.search.index_file import IndexFile
from turnlog.store.search.indexer import Indexer
from turnlog.store.search.overwriting import alone, marked_at, unmark

_NICENESS: Final = 10

_PAGES: Final = 1024
"""Pages that are merged in one transaction, for which another writer of the index may have to wait: 0.2 s."""

_SHARE_FOR_OTHERS: Final = 0.25
"""Of the time of a transaction, for which none is made after it: a writer that waits looks only now and then."""

_LOCK_SECONDS: Final = 5.0


def overwrite(store_path: Path, search_path: Path, rest: float) -> None:
    """Overwrite until nothing is marked, then index what was written meanwhile.

    Begins `rest` seconds after words were deleted last. Does nothing while another process does it. Raises
    StoreBusyError if others use the index for too long.
    """
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


if __name__ == "__main__":
    lower_priority(_NICENESS)
    overwrite(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
