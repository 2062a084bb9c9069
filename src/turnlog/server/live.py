"""Live changes: events for browsers about what changed in the store, each made once for all readers.

`LiveTopics` knows who watches what. Its one thread reads changes and publishes them to every topic. Writers in this
process wake it; changes by other processes are noticed a moment later. It does nothing while nobody watches. Every
topic goes from commit to commit, so its frames and those of `replay` meet without gaps and duplicates.

A `Topic` is a bounded list of finished frames, which its readers share; a reader is a place in the list. A reader that
is too slow loses its place instead of making the list longer, and gets an error. Readers run on an event loop; frames
come from another thread.

A frame is the bytes of one server-sent event, made of stored bodies without decoding them. Its data is one line of
JSON; its id is the last number of the change sequence that it covers.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import defaultdict, deque
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple

import msgspec

from turnlog.errors import NotFoundError, StoreError
from turnlog.model import Session
from turnlog.server.items import SessionItems
from turnlog.server.responses import ChangePlace, SessionsUpdate
from turnlog.store.base import Store
from turnlog.store.values import LONGEST_MEMORY, ChangeEntry

POLL_SECONDS = 0.5
"""Seconds between two looks for changes by other processes, while anybody watches."""

SESSION_LIMIT = 50
"""Maximum number of sessions in one event; if more have changed at once, viewers must read them again."""

EVENT_SIZE_LIMIT = 2 << 20
"""Maximum bytes of JSON in one event; anything larger must be read again."""

FRAME_LIMIT = 1000

SIZE_LIMIT = 4 << 20
"""Bytes of frames kept for slow readers."""

KEEP_ALIVE = b": \n\n"
"""A comment, which only shows that the connection is alive."""

_log = logging.getLogger(__name__)


class LiveTopics:
    """The topics of one store, by session id; None is the topic of all sessions. Readers run on event loops."""

    def __init__(self, store: Store, items: SessionItems, poll_seconds: float = POLL_SECONDS) -> None:
        """Start nothing until somebody watches; then look for changes so often, also where nobody reports any."""
        self._poll_seconds = poll_seconds
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
        """The topics with readers."""
        with self._lock:
            return frozenset(self._topics)

    def wake(self) -> None:
        """Report that something was written. Call it on any thread."""
        self._bell.set()

    def touch(self, session_id: str) -> None:
        """Report that lists show a session differently, although nothing was written. Call it on any thread."""
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
    def watch(self, session_id: str | None, last_change: int) -> Generator[TopicReader]:
        """A reader of changes after the last one that is known. Call it on the event loop that reads."""
        with self._lock:
            topic = self._topics.get(session_id)
            if topic is None:
                topic = self._topics[session_id] = Topic(last_change)
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
        """The frames with the changes after one commit and up to another; empty if there are none."""
        if after < 0 or not 0 <= until - after <= LONGEST_MEMORY:
            return word("resync", until)
        changes = [change for change in _changes(self._store, after) if change.sequence <= until]
        return self._frames({session_id: after}, changes, until).get(session_id, b"")

    def _run(self) -> None:
        while not self._is_closed:
            self._bell.wait(self._poll_seconds if self._topics else None)
            # Before the look: a commit during it rings again.
            self._bell.clear()
            with self._lock:
                topics, touched = dict(self._topics), self._touched
                self._touched = set()
            try:
                self._publish(topics)
                self._publish_touched(topics.get(None), touched)
            except StoreError as error:
                # Busy or deleted: topics keep their places, and the next look tries again.
                with self._lock:
                    self._touched |= touched
                _log.warning("cannot publish what changed: %s", error)

    def _publish(self, topics: Mapping[str | None, Topic]) -> None:
        """Publish the changes since each topic's place."""
        places = {session_id: topic.sequence for session_id, topic in topics.items()}
        changes = list(_changes(self._store, min(places.values()))) if places else []
        if not changes:
            return
        until = changes[-1].sequence
        frames = self._frames(places, changes, until)
        for session_id, topic in topics.items():
            topic.publish(frames.get(session_id), until)

    def _publish_touched(self, topic: Topic | None, session_ids: Collection[str]) -> None:
        """Publish these sessions again to the topic of all sessions."""
        if topic is not None and session_ids:
            topic.publish(sessions_frame(self._store, self._items, session_ids, topic.sequence), topic.sequence)

    def _frames(
        self, places: Mapping[str | None, int], changes: Sequence[ChangeEntry], until: int
    ) -> dict[str | None, bytes]:
        """The frame for each topic with changes since its place."""
        frames: dict[str | None, bytes] = {}
        changed = {change.session_id for change in changes if change.session_id is not None}
        # Only pages of single sessions show their subagents; lists have each one as a session.
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
    """All entries of the change sequence after a number. Those committed meanwhile may be among them or not."""
    while entries := store.changes(after):
        yield from entries
        after = entries[-1].sequence


def _children(store: Store, session_ids: Iterable[str]) -> dict[str, list[str]]:
    """Parent -> its subagents among these sessions."""
    children: dict[str, list[str]] = defaultdict(list)
    for child, parent in store.parents(session_ids).items():
        children[parent].append(child)
    return children


class Topic:
    """Frames in the order of their publication."""

    def __init__(self, sequence: int) -> None:
        """Start after this number of the change sequence."""
        self.sequence = sequence
        """Up to where the frames say what changed. Only the publisher moves it."""
        self._lock = threading.Lock()
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._dropped = 0
        self._is_over = False
        self._readers: set[TopicReader] = set()

    @property
    def has_readers(self) -> bool:
        """Whether anybody reads it."""
        return bool(self._readers)

    def publish(self, frame: bytes | None, sequence: int) -> None:
        """Append the frame of the changes up to `sequence`, and wake the readers; None: nothing in this topic changed.

        May be called on any thread, one at a time.
        """
        with self._lock:
            self.sequence = sequence
            if frame is None:
                return
            self._frames.append(frame)
            self._size += len(frame)
            # The newest frame is kept, however large it is.
            while len(self._frames) > 1 and (len(self._frames) > FRAME_LIMIT or self._size > SIZE_LIMIT):
                self._size -= len(self._frames.popleft())
                self._dropped += 1
            readers = tuple(self._readers)
        # Without the lock: a reader whose loop is closed leaves the topic, which takes it.
        for reader in readers:
            reader.wake()

    def end(self) -> None:
        """End the topic: no frames will follow."""
        with self._lock:
            self._is_over = True
            readers = tuple(self._readers)
        for reader in readers:
            reader.wake()

    def join(self) -> TopicReader:
        """A reader of frames from now on; call it on the event loop on which it reads."""
        with self._lock:
            reader = TopicReader(self, self._dropped + len(self._frames), self.sequence)
            self._readers.add(reader)
            return reader

    def leave(self, reader: TopicReader) -> None:
        """Remove a reader."""
        with self._lock:
            self._readers.discard(reader)

    def since(self, place: int) -> tuple[bytes, int, bool]:
        """The frames from a place on as one piece, the place after them, and whether the topic has ended."""
        with self._lock:
            if place < self._dropped:
                raise LaggedError
            frames = b"".join([self._frames[index] for index in range(place - self._dropped, len(self._frames))])
            return frames, self._dropped + len(self._frames), self._is_over

    def catch_up(self) -> tuple[int, int]:
        """The place after all frames, and the number of the change sequence that they reach."""
        with self._lock:
            return self._dropped + len(self._frames), self.sequence


class TopicReader:
    """A place in a topic, made by `Topic.join`."""

    def __init__(self, topic: Topic, place: int, sequence: int) -> None:
        self.sequence = sequence
        """What changed up to here is in no frame that this reader gets."""
        self._topic = topic
        self._place = place
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    def wake(self) -> None:
        """Report new frames. Call it on any thread."""
        try:
            self._loop.call_soon_threadsafe(self._changed.set)
        except RuntimeError:
            self._topic.leave(self)  # its loop is closed

    async def read(self, seconds: float) -> Piece:
        """The frames since the last call, once there are any; an empty piece after so many seconds.

        Raises LaggedError if frames were dropped that this reader has not read; the next call continues after them.
        """
        data, is_over = self._take()
        if not data and not is_over:
            try:
                await asyncio.wait_for(self._changed.wait(), seconds)
            except TimeoutError:
                return Piece(b"", False)
            data, is_over = self._take()
        return Piece(data, is_over)

    def _take(self) -> tuple[bytes, bool]:
        # Before the look: a frame that is published during it sets this again.
        self._changed.clear()
        try:
            data, self._place, is_over = self._topic.since(self._place)
        except LaggedError:
            self._place, self.sequence = self._topic.catch_up()
            raise
        return data, is_over

    def leave(self) -> None:
        """Stop reading."""
        self._topic.leave(self)


class Piece(NamedTuple):
    """The result of one read."""

    data: bytes
    """Whole frames, concatenated; empty if none arrived for a while."""
    is_over: bool
    """The topic has ended."""


class LaggedError(Exception):
    """The reader's place was dropped: it must read what it missed in another way."""


Word = Literal["ready", "resync", "gone"]


def word(event: Word, sequence: int) -> bytes:
    """An event without content."""
    return _frame(event, sequence, msgspec.json.encode(ChangePlace(sequence=sequence)))


def changes_frame(store: Store, items: SessionItems, changes: Sequence[ChangeEntry], until: int) -> bytes:
    """The frame of changes for the topic of all sessions."""
    if any(change.kind in ("forgotten", "rebuilt") for change in changes):
        return word("resync", until)
    return sessions_frame(store, items, (change.session_id for change in changes if change.session_id), until)


def sessions_frame(store: Store, items: SessionItems, session_ids: Iterable[str], until: int) -> bytes:
    """The frame with these sessions as they are now, for the topic of all sessions."""
    ids = list(dict.fromkeys(session_ids))
    if len(ids) > SESSION_LIMIT:
        return word("resync", until)
    update = SessionsUpdate(sequence=until, items=items.of(_stored(store, ids)))
    return _frame("sessions", until, msgspec.json.encode(update))


def session_frame(
    store: Store, items: SessionItems, session_id: str, after: int, until: int, children: Collection[str]
) -> bytes:
    """The frame of changes in one session after one commit and up to another, with the subagents that changed."""
    try:
        session = store.session(session_id)
        changes = store.session_changes(session_id, after, until)
    except NotFoundError:
        return word("gone", until)
    if changes is None or len(children) > SESSION_LIMIT:
        return word("resync", until)
    # Rows, events and bodies are stored JSON: they are joined as bytes and never decoded.
    own, *others = items.of([session, *_stored(store, children)])
    data = b'{"sequence":%d,"session":%b,"items":[%b],"rows":%b,"events":%b,%b,"children":%b}' % (
        until,
        msgspec.json.encode(own),
        b",".join(changes.messages),
        changes.rows,
        changes.events,
        msgspec.json.encode({"gone_messages": changes.gone_messages, "gone_events": changes.gone_events})[1:-1],
        msgspec.json.encode(others),
    )
    return word("resync", until) if len(data) > EVENT_SIZE_LIMIT else _frame("session", until, data)


def _frame(event: str, sequence: int, data: bytes) -> bytes:
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (sequence, event.encode(), data)


def _stored(store: Store, session_ids: Collection[str]) -> list[Session]:
    """Those of these sessions that still exist."""
    found: list[Session] = []
    for session_id in session_ids:
        try:
            found.append(store.session(session_id))
        except NotFoundError:
            continue
    return found
