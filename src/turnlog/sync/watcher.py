"""Telling which files of the agents were written, and reading them."""

from __future__ import annotations

import math
import selectors
import socket
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from turnlog import paths as places
from turnlog.agents import agents as registered_agents
from turnlog.agents import find_sources, homes_of
from turnlog.agents.base import Agent, Source
from turnlog.errors import TurnlogError
from turnlog.platforms import inotify
from turnlog.sync.summary import SyncSummary
from turnlog.sync.syncer import Syncer
from turnlog.sync.watched_folders import WATCH_LIMIT, FolderChanges, WatchedFolders, Watches

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
        backend: str | None = None,
    ) -> None:
        """Watch nothing before `cover`.

        Args:
            roots: Homes instead of each agent's own.
            agents: The agents to look for; all registered ones by default.
            limit: Folders watched at most with inotify.
            backend: One of `BACKENDS`: what reports changes. By default what `TURNLOG_WATCHER` names, else inotify on
                Linux and watchfiles elsewhere. With `passes`, `wait` reports only homes.

        Raises:
            TurnlogError: There is no such backend, or it does not work here.
        """
        self._roots = roots
        self._agents = list(agents) if agents is not None else registered_agents()
        self._folders = _open_watches(backend or places.watcher_backend(), limit)
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


BACKENDS = ("inotify", "watchfiles", "passes")
"""What may report changes: the Linux kernel; watchfiles, which uses what each system has; or nothing, so that passes
must find them."""


def _open_watches(backend: str | None, limit: int) -> Watches | None:
    if backend not in (None, *BACKENDS):
        raise TurnlogError(f"{backend!r} does not watch files: TURNLOG_WATCHER may be {', '.join(BACKENDS)}")
    if backend == "inotify" and not inotify.AVAILABLE:
        raise TurnlogError("inotify is Linux's: TURNLOG_WATCHER may be watchfiles or passes here")
    if backend == "passes":
        return None
    if backend == "watchfiles" or not inotify.AVAILABLE:
        return _open_trees(is_wanted=backend is not None)
    try:
        return WatchedFolders(limit)
    except OSError:
        return None  # the user has too many queues: passes must find what changed


def _open_trees(*, is_wanted: bool) -> Watches | None:
    try:
        from turnlog.sync.watched_trees import WatchedTrees
    except ImportError as error:
        if is_wanted:
            raise TurnlogError("following files through watchfiles needs it: pip install watchfiles") from error
        return None
    return WatchedTrees()
