"""Watching homes whole, through watchfiles: by FSEvents on macOS, by ReadDirectoryChanges on Windows.

Both report a tree, so there is no limit of folders. Paths are reported by the names of the homes, however the system
spells them: macOS resolves links in them, and both fold the case of letters. Events that the system loses are not
reported; the passes that go on every minute find what they were about.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from watchfiles import Change
from watchfiles._rust_notify import RustNotify

from turnlog import paths
from turnlog.sync.watched_folders import FolderChanges

_STEP_MILLISECONDS = 50
"""A change is reported after as long without another one; the library looks as often."""

_MOST_MILLISECONDS = 200
"""A change is reported after as long at the latest, also while others follow."""


class WatchedTrees:
    """The homes, and a thread that waits for their changes."""

    def __init__(self, *, folds_case: bool | None = None) -> None:
        """Watch nothing yet.

        Args:
            folds_case: Whether names that differ only in case are the same; by default as on this platform.
        """
        self.unwatched: set[str] = set()
        self._folds_case = paths.folds_case() if folds_case is None else folds_case
        self._roots: set[str] = set()
        self._names: dict[str, str] = {}
        self._files: set[str] = set()
        self._is_complete = True
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    @property
    def descriptor(self) -> int:
        """Readable when something has happened."""
        return self._reader.fileno()

    def close(self) -> None:
        """End the thread."""
        self._end()
        self._reader.close()
        self._writer.close()

    def cover(self, roots: Iterable[str], source_folders: Callable[[], set[str]]) -> None:
        """Watch these homes; does nothing if they are watched already."""
        wanted = set(roots)
        if wanted == self._roots and not self.unwatched:
            return
        self._end()
        self._roots, self.unwatched = wanted, set()
        self._names = {os.path.realpath(root): root for root in sorted(wanted, reverse=True)}
        if not wanted:
            return
        try:
            for root in wanted:
                # On some systems the library says nothing of a folder that is not there.
                os.stat(root)  # noqa: PTH116  # a text is at hand
            # The class is in the library's reference; its generators say nothing when they have begun to watch.
            watched = RustNotify(sorted(self._names), False, False, 0, True, True)
        except OSError:
            # A home was deleted since it was found, or the system gives no more watches.
            self.unwatched = set(wanted)
            return
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, args=(watched, self._stopped), daemon=True)
        self._thread.start()

    def read_changes(self) -> FolderChanges:
        """What has happened since the last call."""
        with suppress(BlockingIOError):
            self._reader.recv(4096)
        with self._lock:
            found = FolderChanges(self._files, self._is_complete)
            self._files, self._is_complete = set(), True
        return found

    def name_of(self, path: str) -> str | None:
        """A reported path as the homes name it; None if it is in none of them."""
        for real, root in self._names.items():
            head, rest = path[: len(real)], path[len(real) :]
            if self._folded(head) == self._folded(real) and rest[:1] in ("", os.sep):
                return root + rest
        return None

    def _folded(self, path: str) -> str:
        return path.casefold() if self._folds_case else path

    def _end(self) -> None:
        if self._thread is not None:
            self._stopped.set()
            self._thread.join()
            self._thread = None

    def _follow(self, watched: RustNotify, stopped: threading.Event) -> None:
        with watched:
            while not stopped.is_set():
                try:
                    changes = watched.watch(_MOST_MILLISECONDS, _STEP_MILLISECONDS, 0, stopped)
                except Exception:  # the library's own error derives from nothing more special
                    self._note(set(), is_complete=False)
                    self.unwatched = set(self._roots)
                    return
                # "stop" or "signal": the latter is the main thread's.
                if not isinstance(changes, str):
                    self._note({path for change, path in changes if change != Change.deleted}, is_complete=True)

    def _note(self, changed: set[str], *, is_complete: bool) -> None:
        named = {name for path in changed if (name := self.name_of(path)) is not None}
        files = {file for name in named for file in _files_at(name)}
        with self._lock:
            self._files |= files
            self._is_complete &= is_complete
        if files or not is_complete:
            with suppress(BlockingIOError, OSError):
                self._writer.send(b"\0")


def _files_at(path: str) -> Iterable[str]:
    """The file, or the files in a folder that has appeared: what they held before is not reported."""
    there = Path(path)
    if not there.is_dir() or there.is_symlink():
        return () if _is_made_by_reading(there) else (path,)
    return (f"{folder}{os.sep}{name}" for folder, _, names in os.walk(path) for name in names)


def _is_made_by_reading(path: Path) -> bool:
    """SQLite creates these files when a database is only read. Counted as changes, they would cause endless reads."""
    if not path.name.endswith("-wal"):
        return path.name.endswith("-shm")
    try:
        return path.stat().st_size == 0
    except OSError:
        return True
