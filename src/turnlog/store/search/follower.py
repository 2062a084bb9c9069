"""An indexer in a second process, next to a writer: `python -m turnlog.store.search.follower STORE SEARCH`.

The end of the child's standard input means that the writer has made its last commit: the child indexes the rest and
exits. The input also ends when the parent dies. This works on Windows and POSIX.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from turnlog.errors import StoreError
from turnlog.platforms.processes import lower_priority
from turnlog.store.search.indexer import Indexer

_NICENESS = 5


class Follower:
    """The parent's side: start it before writing, and call `finish` after the last commit."""

    def __init__(self, store_path: Path, search_path: Path) -> None:
        """Start the process. The store must exist."""
        command = [sys.executable, "-P", "-m", __name__, str(store_path), str(search_path)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    def __enter__(self) -> Self:
        """The follower itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish it. After an error only stop it, since the rest can be indexed at any time."""
        if error is None:
            self.finish()
        else:
            self.stop()

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._process.pid

    def finish(self, timeout: float | None = None) -> bool:
        """Tell the child that the last commit was made, and wait until it has indexed everything.

        Returns False after `timeout` seconds; it may be called again. Raises StoreError if the child failed; the store
        is complete in any case.
        """
        try:
            # It ends its input, and notices its end at once: `wait` looks only every 50 milliseconds.
            _, errors = self._process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            return False
        status = self._process.returncode
        if status:
            lines = errors.decode("utf-8", "replace").strip().splitlines()
            raise StoreError(f"indexing for search failed: {lines[-1] if lines else f'exit status {status}'}")
        return True

    def stop(self) -> None:
        """Kill the child. The index continues from its last commit."""
        self._process.terminate()
        self._process.communicate()


def main(store_path: Path, search_path: Path) -> None:
    """The child: follow the store until standard input ends."""
    # The garbage collector would search a hundred thousand documents for cycles, and there are none.
    gc.disable()
    # Sessions are listed as soon as they are written; with few cores, words can wait.
    lower_priority(_NICENESS)
    finished = threading.Event()

    def wait_for_end() -> None:
        # Not through `sys.stdin`: a thread that waits inside its buffer would block the exit of the process.
        while os.read(sys.stdin.fileno(), 4096):
            pass
        finished.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    with Indexer(store_path, search_path) as indexer:
        indexer.follow(finished.wait)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
