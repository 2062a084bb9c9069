"""Taking in what hooks post: kept in its session's spool at once, read into the store right behind the answer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

from turnlog.agents import agents
from turnlog.agents.base import Source
from turnlog.errors import StoreBusyError, StoreError
from turnlog.store.connection import DatabaseError
from turnlog.sync.spools import spool_event
from turnlog.sync.syncer import Syncer

_log = logging.getLogger(__name__)


class HookReader:
    """Reads spools into one store, one at a time; what comes meanwhile is read together. For any thread."""

    def __init__(
        self, store_path: Path, on_saved: Callable[[], None] = lambda: None, *, only_keep: bool = False
    ) -> None:
        """Open nothing before something comes.

        Args:
            store_path: The store that the events are of.
            on_saved: Called after each commit.
            only_keep: Leave the spools to whoever opens the store next: the server shows another one.
        """
        self._path = store_path
        self._on_saved = on_saved
        self._only_keep = only_keep
        self._reading = threading.Lock()
        self._waiting = SimpleQueue[Source]()
        self._syncer: Syncer | None = None

    def keep(self, agent: str, payload: bytes, at: float, task: str = "") -> Source:
        """Write an event down. Raises ValueError for what is none, StoreError when it cannot be written."""
        try:
            source = spool_event(self._path, agent, payload, at, task)
        except OSError as error:
            raise StoreError(f"the event cannot be kept beside {self._path}: {error.strerror}") from error
        if not self._only_keep:
            self._waiting.put(source)
        return source

    def read(self) -> None:
        """Read what was kept since the last time; what another thread is about to read is left to it."""
        with self._reading:
            # Whoever puts something in meanwhile reads after this.
            waiting: dict[str, Source] = {}
            while not self._waiting.empty():
                source = self._waiting.get()
                waiting[source.path] = source
            if not waiting:
                return
            try:
                self._read(list(waiting.values()))
            except StoreBusyError:
                # Somebody writes for long: the next event brings these along, or the next pass finds them.
                for source in waiting.values():
                    self._waiting.put(source)
            except (StoreError, DatabaseError) as error:
                _log.warning("cannot write hook events into %s; their spools keep them: %s", self._path, error)

    def _read(self, sources: list[Source]) -> None:
        if self._syncer is None:
            self._syncer = Syncer(self._path, on_saved=lambda sessions, last_change: self._on_saved())
        by_name = {agent.name: agent for agent in agents()}
        self._syncer.read((), [(by_name[source.agent], source) for source in sources if source.agent in by_name])

    def close(self) -> None:
        """Close the store's connection."""
        with self._reading:
            if self._syncer is not None:
                self._syncer.close()
                self._syncer = None
