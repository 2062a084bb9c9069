"""Watching all folders below some homes, as far as the kernel allows, and telling which files were written.

A folder that appears is watched at once, and what it held already counts as written. Links to folders are not
followed, and a limit bounds the watches: the folders that hold sources come first, of these the newest.
"""

from __future__ import annotations

import math
import os
import selectors
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from turnlog.agents import agents as registered_agents
from turnlog.agents import find_sources, homes_of
from turnlog.agents.base import Agent, Source
from turnlog.sync.inotify import AVAILABLE, Inotify, InotifyEvent, Mask
from turnlog.sync.summary import SyncSummary
from turnlog.sync.syncer import Syncer

WATCH_LIMIT = 8192
"""Folders watched at most: about 1 KB of kernel memory each."""


class FolderChanges(NamedTuple):
    """The kernel's events since the last call."""

    files: set[str]
    is_complete: bool
    """False: events were lost, so anything may have changed."""


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


HOMES_SECONDS = 2.0
"""Time between two checks whether an agent's home has appeared: a few calls of `stat`, no folder is read."""

DISCOVERY_SHARE = 10
"""After looking for sources among new files, the next look waits this many times as long as it took."""


class WatchResult(NamedTuple):
    """Why `Watcher.wait` returned: both fields are empty after the timeout or a call of `wake`."""

    paths: frozenset[Path] = frozenset()
    """Files that were written or are new."""
    needs_pass: bool = False
    """Anything may have changed: events were lost, or a home has appeared."""


class Watcher:
    """Waits for files of the agents to change, and reads them."""

    def __init__(
        self,
        *,
        roots: Sequence[Path] | None = None,
        agents: Sequence[Agent] | None = None,
        limit: int = WATCH_LIMIT,
        native: bool = AVAILABLE,
    ) -> None:
        """Watch nothing before `cover`.

        Args:
            roots: Homes instead of each agent's own.
            agents: The agents to look for; all registered ones by default.
            limit: Folders watched at most.
            native: Whether the kernel reports changes; otherwise `wait` reports only homes.
        """
        self._roots = roots
        self._agents = list(agents) if agents is not None else registered_agents()
        self._folders = _open_folders(limit) if native else None
        self._covered: set[str] = set()
        self._new: set[Path] = set()
        self._not_sources: set[Path] = set()
        self._rested_at = 0.0
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_reader, selectors.EVENT_READ)
        if self._folders is not None:
            self._selector.register(self._folders.descriptor, selectors.EVENT_READ)

    def __enter__(self) -> Self:
        """The watcher itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the queue and the sockets."""
        self._selector.close()
        self._wake_reader.close()
        self._wake_writer.close()
        if self._folders is not None:
            self._folders.close()

    def wake(self) -> None:
        """Let `wait` return now, or the next one at once."""
        with suppress(BlockingIOError):  # the buffer is full, so `wait` will return anyway
            self._wake_writer.send(b"\0")

    def cover(self) -> None:
        """Watch what is there now. Call it before a pass: writes during the pass are then reported."""
        self._covered = self._homes()
        self._not_sources.clear()
        self._new.clear()
        if self._folders is not None:
            self._folders.cover(self._covered, self._source_folders)

    @property
    def is_complete(self) -> bool:
        """Whether every folder is watched, so that only events need to be followed."""
        return self._folders is not None and not self._folders.unwatched

    @property
    def unwatched_folders(self) -> list[str]:
        """Folders that are not watched, since a limit was reached."""
        return [] if self._folders is None else sorted(self._folders.unwatched)

    def wait(self, seconds: float) -> WatchResult:
        """Sleep until files have changed, a home has appeared, `wake` was called or the time is over."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            # A home that does not exist yet cannot be watched: it is looked for every few seconds.
            ready = self._selector.select(min(left, HOMES_SECONDS, self._until_discovery()))
            if any(key.fileobj is self._wake_reader for key, _ in ready):
                self._wake_reader.recv(4096)
                break
            woken = self._changes()
            if woken.paths or woken.needs_pass:
                return woken
        return WatchResult()

    def read(self, syncer: Syncer, paths: Iterable[Path]) -> SyncSummary:
        """Read what is new in the files; those that no pass has seen are looked for among the agents' sources first.

        Looking takes a bounded share of the time: a file that must wait is reported by a later `wait`.
        """
        paths = set(paths)
        self._new |= syncer.unknown(paths) - self._not_sources
        found = self._discover() if self._until_discovery() == 0 else []
        return syncer.read(paths, found)

    def _discover(self) -> list[tuple[Agent, Source]]:
        """Find the sources among the new files; the others are not looked for again before the next sync."""
        started = time.monotonic()
        found = [
            (agent, source)
            for agent, root in self._agent_homes()
            if any(path.is_relative_to(root) for path in self._new)
            for _, source in find_sources([agent], [root])
            if Path(source.path) in self._new
        ]
        self._not_sources |= self._new - {Path(source.path) for _, source in found}
        self._new.clear()
        ended = time.monotonic()
        self._rested_at = ended + DISCOVERY_SHARE * (ended - started)
        return found

    def _until_discovery(self) -> float:
        """Seconds until new files may be looked for; endless when there are none."""
        return max(0.0, self._rested_at - time.monotonic()) if self._new else math.inf

    def _changes(self) -> WatchResult:
        noticed = self._folders.read_changes() if self._folders is not None else FolderChanges(set(), True)
        homes = self._homes()
        appeared = any(home not in self._covered for home in homes)
        # A home that was deleted counts as new when it appears again.
        self._covered &= homes
        paths = {Path(file) for file in noticed.files} - self._not_sources
        if self._until_discovery() == 0:
            paths |= self._new
        return WatchResult(frozenset(paths), appeared or not noticed.is_complete)

    def _agent_homes(self) -> list[tuple[Agent, Path]]:
        return [(agent, root) for agent in self._agents for root in self._roots or homes_of(agent)]

    def _homes(self) -> set[str]:
        """The homes, and their top folders that are symbolic links: below a home, no link is followed."""
        homes = [(agent, root) for agent, root in self._agent_homes() if root.is_dir()]
        tops = (root / name for agent, root in homes for name in agent.log_folders)
        return {str(root) for _, root in homes} | {str(top) for top in tops if top.is_symlink() and top.is_dir()}

    def _source_folders(self) -> set[str]:
        """Folders that hold sources, and those above them: what is new appears there."""
        found: set[Path] = set()
        for agent, root in self._agent_homes():
            found.add(root)
            for folder in {Path(source.path).parent for _, source in find_sources([agent], [root])}:
                found.update(above for above in (folder, *folder.parents) if above.is_relative_to(root))
        return {str(folder) for folder in found}


def _open_folders(limit: int) -> WatchedFolders | None:
    try:
        return WatchedFolders(limit)
    except OSError:
        return None  # the user has too many queues: passes must find what changed
