"""An indexer in a second process, beside a writer: `python -m turnlog.store.search.follower STORE SEARCH`.

The child reads nothing from its standard input but its end, which says that the writer has committed its last: it
indexes what is left and exits. That is also what happens when the parent dies. Windows and POSIX alike.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from turnlog.errors import StoreError
from turnlog.store.search.indexer import Indexer

_NICENESS = 5


class Follower:
    """The parent's side: start it before writing, `finish` it after the last commit."""

    def __init__(self, store_path: Path, search_path: Path) -> None:
        """Start the process. The store must be there already."""
        command = [sys.executable, "-m", __name__, str(store_path), str(search_path)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    def __enter__(self) -> Self:
        """The follower itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish it; after an error only stop it, since what is missing can be indexed at any time."""
        if error is None:
            self.finish()
        else:
            self.stop()

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._process.pid

    def finish(self, timeout: float | None = None) -> bool:
        """Say that nothing more will be committed, and wait for the rest to be indexed.

        Returns False when that takes longer than `timeout` seconds; it may be called again. Raises StoreError when the
        child has failed; the store is complete all the same.
        """
        self._end_input()
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        failure = self._failure()
        if status:
            raise StoreError(f"indexing for search failed: {failure or f'exit status {status}'}")
        return True

    def stop(self) -> None:
        """End the child now. The index goes on from its last commit."""
        self._end_input()
        self._process.terminate()
        self._process.wait()
        self._failure()

    def _end_input(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def _failure(self) -> str:
        """The last line the child wrote about its failure."""
        stderr = self._process.stderr
        if stderr is None or stderr.closed:
            return ""
        with stderr:
            lines = stderr.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""


def main(store_path: Path, search_path: Path) -> None:
    """The child: follow the store until standard input ends."""
    # Nothing here makes cycles worth looking for among a hundred thousand documents.
    gc.disable()
    _yield_to_the_writer()
    finished = threading.Event()

    def wait_for_end() -> None:
        # Not through `sys.stdin`: a thread that waits inside its buffer cannot be left behind when the process exits.
        while os.read(sys.stdin.fileno(), 4096):
            pass
        finished.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    with Indexer(store_path, search_path) as indexer:
        indexer.follow(finished.wait)


def _yield_to_the_writer() -> None:
    """Sessions are listed as soon as they are written: where cores are few, words can wait."""
    if hasattr(os, "nice"):
        os.nice(_NICENESS)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
