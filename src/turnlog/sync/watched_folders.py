"""Watching all folders below some homes, as far as the Linux kernel allows.

A folder that appears is watched at once, and what it held already counts as written. Links to folders are not
followed, and a limit bounds the watches: the folders that hold sources come first, of these the newest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from turnlog.platforms.inotify import Inotify, InotifyEvent, Mask, most_watches

WATCH_LIMIT = 65_536
"""Folders watched at most: about 1 KB of kernel memory each. 10 GB of logs are in 9,000."""

_ALWAYS = 8192
"""Folders watched even if that is more than half of what the kernel allows a user: other programs need some too."""


class FolderChanges(NamedTuple):
    """The kernel's events since the last call."""

    files: set[str]
    is_complete: bool
    """False: events were lost, so anything may have changed."""


class Watches(Protocol):
    """What follows the files below some homes."""

    unwatched: set[str]
    """Folders that are there and not watched."""

    @property
    def descriptor(self) -> int:
        """Readable when something has happened."""
        ...

    def close(self) -> None:
        """Watch nothing any more."""
        ...

    def cover(self, roots: Iterable[str], source_folders: Callable[[], set[str]]) -> None:
        """Watch every folder below the homes.

        Args:
            roots: The homes.
            source_folders: Called for the folders that hold sources, when there are more folders than may be watched.
        """
        ...

    def read_changes(self) -> FolderChanges:
        """What has happened since the last call."""
        ...


class WatchedFolders:
    """The watches of the kernel, one a folder."""

    def __init__(self, limit: int = WATCH_LIMIT) -> None:
        """Watch nothing yet. Raises OSError when the kernel gives no queue."""
        self._inotify = Inotify()
        self._limit = min(limit, max(_ALWAYS, most_watches() // 2))
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
        """Remove the watches."""
        self._inotify.close()

    def cover(self, roots: Iterable[str], source_folders: Callable[[], set[str]]) -> None:
        """Watch every folder below the homes that is not watched yet.

        Args:
            roots: The homes.
            source_folders: Called for the folders that hold sources, when there are more folders than may be watched.
        """
        self.unwatched.clear()
        missing = [folder for root in roots for folder in _folders_below(root) if folder not in self._watches]
        if len(self._watches) + len(missing) > self._limit:
            first = source_folders()
            missing.sort(key=lambda folder: (folder not in first, -_changed_at(folder)))
        for folder in missing:
            self._watch(folder)

    def read_changes(self) -> FolderChanges:
        """Events since the last call; new folders are watched."""
        files: set[str] = set()
        is_complete = True
        for event in self._inotify.read():
            if event.mask & Mask.OVERFLOW:
                is_complete = False
            # The kernel has dropped the watch: its folder was deleted, or `_leave` removed it.
            elif event.mask & Mask.IGNORED:
                self._forget(event.watch)
            elif event.watch in self._folders and event.name:
                self._note(event, f"{self._folders[event.watch]}{os.sep}{event.name}", files)
        return FolderChanges(files, is_complete)

    def _note(self, event: InotifyEvent, path: str, files: set[str]) -> None:
        if not event.mask & Mask.IS_FOLDER:
            if not event.mask & Mask.MOVED_FROM and not _is_made_by_reading(event):
                files.add(path)
        elif event.mask & Mask.MOVED_FROM:
            self._leave(path)
        else:
            self._enter(path, files)

    def _enter(self, folder: str, files: set[str]) -> None:
        """Watch first and list afterwards: a file written in between is then reported twice rather than never."""
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
        """A folder was moved away: its watches would report paths that no longer exist."""
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
        # It was deleted since it was listed.
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


def _is_made_by_reading(event: InotifyEvent) -> bool:
    """SQLite creates these files when a database is only read. Counted as changes, they would cause endless reads."""
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
