"""Who watches what, and the one thread that tells them: it reads what changed once and publishes it to every topic.

It is woken by what writes (the process that reads logs, a route that changes something); what other processes write is
seen a moment later. It looks at nothing while nobody watches. Every topic goes from commit to commit, so that what its
frames tell and what `replay` tells meet without a gap and without a double.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager

from turnlog.errors import StoreError
from turnlog.server.items import SessionItems
from turnlog.server.live.frames import changes_frame, session_frame, sessions_frame, word
from turnlog.server.live.topic import Reader, Topic
from turnlog.store.base import Store
from turnlog.store.values import LONGEST_MEMORY, ChangeEntry

POLL_SECONDS = 0.5
"""Time between two looks for what other processes wrote, while anybody watches."""

_log = logging.getLogger(__name__)


class Hub:
    """Topics of one store: a session's by its id, and by None that of all sessions. Readers are on event loops."""

    def __init__(self, store: Store, items: SessionItems) -> None:
        """Start nothing before somebody watches."""
        self._store = store
        self._items = items
        self._lock = threading.Lock()
        self._touched: set[str] = set()
        self._topics: dict[str | None, Topic] = {}
        self._bell = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    @property
    def topics(self) -> frozenset[str | None]:
        """What anybody watches."""
        with self._lock:
            return frozenset(self._topics)

    def wake(self) -> None:
        """Something was written. On any thread."""
        self._bell.set()

    def touch(self, session_id: str) -> None:
        """What lists show of a session has changed, though nothing was written. On any thread."""
        with self._lock:
            self._touched.add(session_id)
        self._bell.set()

    def close(self) -> None:
        """End every topic, and the thread. May be called again."""
        with self._lock:
            self._is_closed = True
            topics, thread = list(self._topics.values()), self._thread
        for topic in topics:
            topic.end()
        self._bell.set()
        if thread is not None:
            thread.join()

    @contextmanager
    def watch(self, session_id: str | None) -> Generator[Reader]:
        """A reader of what changes from now on. Call it on the event loop that reads."""
        with self._lock:
            topic = self._topics.get(session_id)
            if topic is None:
                topic = self._topics[session_id] = Topic(self._store.last_change())
            reader = topic.join()
            if self._is_closed:
                topic.end()
            elif self._thread is None:
                self._thread = threading.Thread(target=self._run, name="turnlog-live", daemon=True)
                self._thread.start()
        self._bell.set()
        try:
            yield reader
        finally:
            with self._lock:
                reader.leave()
                if not topic.has_readers and self._topics.get(session_id) is topic:
                    del self._topics[session_id]

    def replay(self, session_id: str | None, after: int, until: int) -> bytes:
        """The frames that tell what changed after one commit and up to another; empty when nothing did."""
        if after < 0 or not 0 <= until - after <= LONGEST_MEMORY:
            return word("resync", until)
        changes = [change for change in _changes(self._store, after) if change.sequence <= until]
        return self._frames({session_id: after}, changes, until).get(session_id, b"")

    def _run(self) -> None:
        while not self._is_closed:
            self._bell.wait(POLL_SECONDS if self._topics else None)
            self._bell.clear()
            with self._lock:
                topics, touched = dict(self._topics), self._touched
                self._touched = set()
            try:
                self._tell(topics)
                self._tell_touched(topics.get(None), touched)
            except StoreError as error:
                # Busy or away: topics stay where they are, and the next look tries again.
                with self._lock:
                    self._touched |= touched
                _log.warning("cannot tell what changed: %s", error)

    def _tell(self, topics: Mapping[str | None, Topic]) -> None:
        """Publish what changed since each topic's place."""
        places = {session_id: topic.sequence for session_id, topic in topics.items()}
        changes = list(_changes(self._store, min(places.values()))) if places else []
        if not changes:
            return
        until = changes[-1].sequence
        frames = self._frames(places, changes, until)
        for session_id, topic in topics.items():
            topic.publish(frames.get(session_id), until)

    def _tell_touched(self, topic: Topic | None, session_ids: Collection[str]) -> None:
        """Publish these sessions anew to who watches all."""
        if topic is not None and session_ids:
            topic.publish(sessions_frame(self._store, self._items, session_ids, topic.sequence), topic.sequence)

    def _frames(
        self, places: Mapping[str | None, int], changes: Sequence[ChangeEntry], until: int
    ) -> dict[str | None, bytes]:
        """For each topic of which something has changed since its place, the frame that tells it."""
        frames: dict[str | None, bytes] = {}
        changed = {change.session_id for change in changes if change.session_id is not None}
        children = _children(self._store, changed) if set(places) - {None} else {}
        lost = any(change.session_id is None for change in changes)
        for session_id, after in places.items():
            news = [change for change in changes if change.sequence > after]
            if session_id is None:
                if news:
                    frames[None] = changes_frame(self._store, self._items, news, until)
            elif lost or session_id in changed or session_id in children:
                subagents = children.get(session_id, ())
                frames[session_id] = session_frame(self._store, self._items, session_id, after, until, subagents)
        return frames


def _changes(store: Store, after: int) -> Iterable[ChangeEntry]:
    """Every entry of the change sequence after a number. What is committed meanwhile may be among them, or not."""
    while entries := store.changes(after):
        yield from entries
        after = entries[-1].sequence


def _children(store: Store, session_ids: Iterable[str]) -> dict[str, list[str]]:
    """Parent -> those of these sessions that are its subagents."""
    children: dict[str, list[str]] = defaultdict(list)
    for child, parent in store.parents(session_ids).items():
        children[parent].append(child)
    return children
