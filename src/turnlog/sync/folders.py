"""Watching all folders below some homes, as far as the kernel allows, and telling which files were written.

A folder that appears is watched at once, and what it held already counts as written. Links to folders are not
followed, and a limit bounds the watches: the folders that hold sources come first, of these the newest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from turnlog.sync.inotify import Event, Inotify, Mask

WATCH_LIMIT = 8192
"""Folders watched at most: about 1 KB of kernel memory each."""


class Noticed(NamedTuple):
    """What was told since the last look."""

    files: set[str]
    is_complete: bool
    """False: events were lost, so that anything may have changed."""


class WatchedFolders:
    """The watches."""

    def __init__(self, limit: int = WATCH_LIMIT) -> None:
        """Watch nothing yet. Raises OSError when the kernel gives no queue."""
        self._inotify = Inotify()
        self._limit = limit
        self._folders: dict[int, str] = {}
        self._watches: dict[str, int] = {}
        self.unwatched: set[str] = set()
        """Folders that are there and not watched, since a limit was reached."""

    @property
    def descriptor(self) -> int:
        """Readable when something has happened."""
        return self._inotify.descriptor

    def __contains__(self, folder: str) -> bool:
        """Whether the folder is watched."""
        return folder in self._watches

    def __len__(self) -> int:
        """How many folders are watched."""
        return len(self._watches)

    def close(self) -> None:
        """Give the watches back."""
        self._inotify.close()

    def cover(self, roots: Iterable[str], holders: Callable[[], set[str]]) -> None:
        """Watch every folder below the homes that is not watched yet.

        Args:
            roots: The homes.
            holders: Asked for the folders that hold sources, when there are more folders than may be watched.
        """
        self.unwatched.clear()
        missing = [folder for root in roots for folder in _folders_below(root) if folder not in self._watches]
        if len(self._watches) + len(missing) > self._limit:
            first = holders()
            missing.sort(key=lambda folder: (folder not in first, -_changed_at(folder)))
        for folder in missing:
            self._watch(folder)

    def take(self) -> Noticed:
        """What has happened since the last call; new folders are watched."""
        files: set[str] = set()
        is_complete = True
        for event in self._inotify.read():
            if event.mask & Mask.OVERFLOW:
                is_complete = False
            elif event.mask & Mask.IGNORED:
                self._forget(event.watch)
            elif event.watch in self._folders and event.name:
                self._note(event, f"{self._folders[event.watch]}{os.sep}{event.name}", files)
        return Noticed(files, is_complete)

    def _note(self, event: Event, path: str, files: set[str]) -> None:
        if not event.mask & Mask.IS_FOLDER:
            if not event.mask & Mask.MOVED_FROM and not _is_made_by_reading(event):
                files.add(path)
        elif event.mask & Mask.MOVED_FROM:
            self._leave(path)
        else:
            self._enter(path, files)

    def _enter(self, folder: str, files: set[str]) -> None:
        """Watch first and look then: what is written in between is told twice rather than never."""
        waiting = [folder]
        while waiting:
            current = waiting.pop()
            self._watch(current)
            for entry in _entries(current):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    files.add(entry.path)

    def _leave(self, folder: str) -> None:
        """A folder was moved away: its watches would tell of paths that are no more."""
        below = folder + os.sep
        for path in [path for path in self._watches if path == folder or path.startswith(below)]:
            watch = self._watches[path]
            self._inotify.remove(watch)
            self._forget(watch)

    def _watch(self, folder: str) -> None:
        if len(self._watches) >= self._limit:
            self.unwatched.add(folder)
            return
        try:
            watch = self._inotify.add(folder)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError:
            self.unwatched.add(folder)
            return
        self._forget(watch)
        self._folders[watch] = folder
        self._watches[folder] = watch

    def _forget(self, watch: int) -> None:
        folder = self._folders.pop(watch, None)
        if folder is not None and self._watches.get(folder) == watch:
            del self._watches[folder]


def _is_made_by_reading(event: Event) -> bool:
    """SQLite makes these when a database is only read: taking them for changes would make us read without end."""
    return event.name.endswith("-shm") or (event.name.endswith("-wal") and bool(event.mask & Mask.CREATE))


def _folders_below(root: str) -> Iterator[str]:
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        yield folder
        waiting += [entry.path for entry in _entries(folder) if entry.is_dir(follow_symlinks=False)]


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _changed_at(folder: str) -> float:
    try:
        return Path(folder).stat().st_mtime
    except OSError:
        return 0.0
