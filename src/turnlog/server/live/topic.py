"""One stream of events and its readers: a bounded list of finished frames that all of them share.

A frame is made and kept once; a reader is a place in the list. One that is too slow loses its place instead of making
the list longer, and is told so. Readers live on an event loop; frames come from another thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import NamedTuple

FRAME_LIMIT = 1000
SIZE_LIMIT = 4 << 20
"""Bytes of frames that are kept for readers that are behind."""


class LaggedError(Exception):
    """The reader's place is no longer there: what it missed must be read in another way."""


class Piece(NamedTuple):
    """What a reader gets at once."""

    data: bytes
    """Whole frames, one behind the other; empty when nothing came for a while."""
    is_over: bool
    """Nothing will follow."""


class Topic:
    """Frames in the order in which they came."""

    def __init__(self, sequence: int) -> None:
        """Start behind this number of the change sequence."""
        self.sequence = sequence
        """Up to where the frames tell what changed. Only the publisher moves it."""
        self._lock = threading.Lock()
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._dropped = 0
        self._is_over = False
        self._readers: set[Reader] = set()

    @property
    def has_readers(self) -> bool:
        """Whether anybody listens."""
        return bool(self._readers)

    def publish(self, frame: bytes | None, sequence: int) -> None:
        """Append what tells of the changes up to `sequence`, and wake the readers; None: nothing of this changed.

        On any thread, but one at a time.
        """
        with self._lock:
            self.sequence = sequence
            if frame is None:
                return
            self._frames.append(frame)
            self._size += len(frame)
            # The newest frame stays, however large it is.
            while len(self._frames) > 1 and (len(self._frames) > FRAME_LIMIT or self._size > SIZE_LIMIT):
                self._size -= len(self._frames.popleft())
                self._dropped += 1
            readers = tuple(self._readers)
        for reader in readers:
            reader.wake()

    def end(self) -> None:
        """Nothing will follow."""
        with self._lock:
            self._is_over = True
            readers = tuple(self._readers)
        for reader in readers:
            reader.wake()

    def join(self) -> Reader:
        """A reader of what comes from now on; call it on the event loop that it lives on."""
        with self._lock:
            reader = Reader(self, self._dropped + len(self._frames), self.sequence)
            self._readers.add(reader)
            return reader

    def leave(self, reader: Reader) -> None:
        """The reader has gone."""
        with self._lock:
            self._readers.discard(reader)

    def since(self, place: int) -> tuple[bytes, int, bool]:
        """The frames from a place on as one piece, the place behind them, and whether nothing will follow."""
        with self._lock:
            if place < self._dropped:
                raise LaggedError
            frames = b"".join([self._frames[index] for index in range(place - self._dropped, len(self._frames))])
            return frames, self._dropped + len(self._frames), self._is_over

    def catch_up(self) -> tuple[int, int]:
        """The place behind all frames, and up to where they tell what changed."""
        with self._lock:
            return self._dropped + len(self._frames), self.sequence


class Reader:
    """A place in a topic. Made by `Topic.join`."""

    def __init__(self, topic: Topic, place: int, sequence: int) -> None:
        self.sequence = sequence
        """What changed up to here is in no frame that this reader gets."""
        self._topic = topic
        self._place = place
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    def wake(self) -> None:
        """Something new is there. On any thread."""
        try:
            self._loop.call_soon_threadsafe(self._changed.set)
        except RuntimeError:
            self._topic.leave(self)  # its loop is closed

    async def read(self, seconds: float) -> Piece:
        """What came since the last call, when anything has; nothing after so many seconds.

        Raises LaggedError when frames were dropped that this reader has not had; the next call goes on behind them.
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
        self._changed.clear()
        try:
            data, self._place, is_over = self._topic.since(self._place)
        except LaggedError:
            self._place, self.sequence = self._topic.catch_up()
            raise
        return data, is_over

    def leave(self) -> None:
        """Get nothing more."""
        self._topic.leave(self)
