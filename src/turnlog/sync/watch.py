"""Following the agents' homes while they write: which files to read, at once and without looking at all of them.

On Linux the kernel tells (`turnlog.sync.folders`); elsewhere, and where a limit leaves folders unwatched
(`Watcher.gaps`), passes must find what changed, so the caller makes them more often. A slow pass is needed everywhere,
for what no event tells: links, network drives, files that are gone. One thread waits and reads; any may call `wake`.
"""

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

from turnlog.agents import agents as registered_agents
from turnlog.agents import find_sources, homes_of
from turnlog.agents.base import Agent, Source
from turnlog.sync.folders import WATCH_LIMIT, Noticed, WatchedFolders
from turnlog.sync.inotify import AVAILABLE
from turnlog.sync.scan import Syncer
from turnlog.sync.summary import SyncSummary

HOMES_SECONDS = 2.0
"""Time between two looks whether an agent's home has appeared: some calls of `stat`, no folder is read."""

DISCOVERY_SHARE = 10
"""Looking for the sources among new files is followed by a rest from it of this many times its length."""


class Woken(NamedTuple):
    """Why `Watcher.wait` returned: neither when the time was over or somebody called `wake`."""

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
            native: Whether the kernel is asked; without, `wait` tells of homes only.
        """
        self._roots = roots
        self._agents = list(agents) if agents is not None else registered_agents()
        self._folders = _open_folders(limit) if native else None
        self._covered: set[str] = set()
        self._new: set[Path] = set()
        self._foreign: set[Path] = set()
        self._rested_at = 0.0
        self._bell, self._ringer = socket.socketpair()
        self._bell.setblocking(False)
        self._ringer.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._bell, selectors.EVENT_READ)
        if self._folders is not None:
            self._selector.register(self._folders.descriptor, selectors.EVENT_READ)

    def __enter__(self) -> Self:
        """The watcher itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give everything back."""
        self._selector.close()
        self._bell.close()
        self._ringer.close()
        if self._folders is not None:
            self._folders.close()

    def wake(self) -> None:
        """Let `wait` return now, or the next one at once."""
        with suppress(BlockingIOError):  # it has been rung often enough
            self._ringer.send(b"\0")

    def cover(self) -> None:
        """Watch what is there now. Call it before a pass: what is written during the pass is then told."""
        self._covered = self._homes()
        self._foreign.clear()
        self._new.clear()
        if self._folders is not None:
            self._folders.cover(self._covered, self._holders)

    @property
    def is_complete(self) -> bool:
        """Whether every folder is watched, so that only events need to be followed."""
        return self._folders is not None and not self._folders.unwatched

    @property
    def gaps(self) -> list[str]:
        """Folders that are not watched, since a limit was reached."""
        return [] if self._folders is None else sorted(self._folders.unwatched)

    def wait(self, seconds: float) -> Woken:
        """Sleep until files have changed, a home has appeared, `wake` was called or the time is over."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            ready = self._selector.select(min(left, HOMES_SECONDS, self._until_discovery()))
            if any(key.fileobj is self._bell for key, _ in ready):
                self._bell.recv(4096)
                break
            woken = self._take()
            if woken.paths or woken.needs_pass:
                return woken
        return Woken()

    def read(self, syncer: Syncer, paths: Iterable[Path]) -> SyncSummary:
        """Read what is new in the files; those that no pass has seen are looked for among the agents' sources first.

        Looking takes a bounded share of the time: a file that has to wait for it is told by a later `wait`.
        """
        paths = set(paths)
        self._new |= syncer.unknown(paths) - self._foreign
        found = self._discover() if self._until_discovery() == 0 else []
        return syncer.read(paths, found)

    def _discover(self) -> list[tuple[Agent, Source]]:
        """The sources among the new files; what is none is not looked for again before the next pass."""
        started = time.monotonic()
        found = [
            (agent, source)
            for agent, root in self._agent_homes()
            if any(path.is_relative_to(root) for path in self._new)
            for _, source in find_sources([agent], [root])
            if Path(source.path) in self._new
        ]
        self._foreign |= self._new - {Path(source.path) for _, source in found}
        self._new.clear()
        ended = time.monotonic()
        self._rested_at = ended + DISCOVERY_SHARE * (ended - started)
        return found

    def _until_discovery(self) -> float:
        """Seconds until new files may be looked for; endless when there are none."""
        return max(0.0, self._rested_at - time.monotonic()) if self._new else math.inf

    def _take(self) -> Woken:
        noticed = self._folders.take() if self._folders is not None else Noticed(set(), True)
        homes = self._homes()
        appeared = any(home not in self._covered for home in homes)
        self._covered &= homes
        paths = {Path(file) for file in noticed.files} - self._foreign
        if self._until_discovery() == 0:
            paths |= self._new
        return Woken(frozenset(paths), appeared or not noticed.is_complete)

    def _agent_homes(self) -> list[tuple[Agent, Path]]:
        return [(agent, root) for agent in self._agents for root in self._roots or homes_of(agent)]

    def _homes(self) -> set[str]:
        return {str(root) for _, root in self._agent_homes() if root.is_dir()}

    def _holders(self) -> set[str]:
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
