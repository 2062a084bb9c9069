"""One running stream and everybody who reads it, in the process that makes it.

Chunks are encoded once. What comes in one turn of the event loop (in two, where many read) is sealed into one piece of
bytes, which all readers send as it is. A reader is a number, its position in the stream: what it has not read waits
nowhere, so slow readers cost no memory. Pieces that the store has and that are behind the tail are dropped; who is
behind reads from the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from typing import Final

from turnlog.aisdk.frames import Frames
from turnlog.aisdk.sse import DONE, KEEP_ALIVE
from turnlog.chat.stream_stores import StoredFrames, StreamStore

MOST_BYTES: Final = 65_536
"""So much is read and sent at once by a reader who is behind."""

MOST_UNSAVED: Final = 4_194_304
"""Behind so many bytes that the store has not got, the source waits for it."""

MANY_READERS: Final = 16
"""Sending to so many takes longer than making what one turn of the event loop brings: they get that of two at once."""

TAIL_BYTES: Final = 262_144
"""So much of the newest is kept in memory."""


class LiveStream:
    """Takes chunks, gives them to any number of readers and, by and by, to the store."""

    def __init__(self, stream_id: str, store: StreamStore) -> None:
        """Begin with nothing."""
        self.stream_id = stream_id
        self.begun = False
        self.unwanted = False
        """Stopped before it had begun."""
        self.ended = False
        self._store = store
        self._loop = asyncio.get_running_loop()
        self.frames = Frames(self._seal_soon)
        """The chunks of this turn of the event loop."""
        self._pieces: list[StoredFrames] = []
        self._last = 0
        """Number of the last sealed frame."""
        self._saved = 0
        """Number of the last frame that the store has."""
        self._size = 0
        self._readers: list[asyncio.Future[None]] = []
        """Those who wait."""
        self._reading = 0
        self._beats = 0
        self._saving: asyncio.Future[None] | None = None
        """Set by the next try to give the store something; the source waits for it."""

    @property
    def is_full(self) -> bool:
        """Whether there is a lot that the store has not got."""
        return self._size > MOST_UNSAVED

    def _seal_soon(self) -> None:
        """Readers get what is put in the next turn of the event loop; many, one turn later."""
        self._loop.call_soon(self._seal if self._reading < MANY_READERS else self._seal_later)

    def _seal_later(self) -> None:
        self._loop.call_soon(self._seal)

    async def wait(self) -> None:
        """Let the readers have their turn, and the store where it has a lot to do."""
        await asyncio.sleep(0)
        if self.is_full:
            self._saving = self._saving or self._loop.create_future()
            await self._saving

    @property
    def has_news(self) -> bool:
        """Whether something came that the store has not got."""
        return self._last > self._saved

    def end(self) -> None:
        """Nothing will follow."""
        self._seal()
        self.ended = True
        self._wake()

    def beat(self) -> None:
        """Have every reader send a comment, so that its connection is kept."""
        self._beats += 1
        self._wake()

    async def read(self, after: int) -> AsyncGenerator[bytes, None]:
        """Everything behind a number: what was, and then what comes, each frame once and in order."""
        position, beats = after, self._beats
        self._reading += 1
        try:
            while True:
                if position < self._last:
                    found = self._from_tail(position) or await self._from_store(position)
                    if found is None:
                        return  # It ended long ago, and the store has forgotten it meanwhile.
                    position = found.first + found.number - 1
                    yield found.data
                elif self.ended:
                    break
                elif beats != self._beats:
                    beats = self._beats
                    yield KEEP_ALIVE
                else:
                    waiting = self._loop.create_future()
                    self._readers.append(waiting)
                    await waiting
        finally:
            self._reading -= 1
        yield DONE

    async def save(self, lease_until: float) -> bool:
        """Give the store what it has not got, and forget what nobody needs in memory; say whether to stop."""
        last = self._last
        unsaved = self._pieces[_index_of(self._pieces, self._saved + 1) :] if self._saved < last else []
        frames = list(_rows(unsaved))
        try:
            to_stop = await self._store.append(self.stream_id, frames, lease_until)
        finally:
            # Also where it failed: a run does not end because it cannot be stored.
            self._let_go_on()
        self._saved = last
        self._drop()
        return to_stop

    def _let_go_on(self) -> None:
        waiting, self._saving = self._saving, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def _seal(self) -> None:
        if not self.frames:
            return
        piece = StoredFrames(self._last + 1, *self.frames.take())
        self._pieces.append(piece)
        self._last += piece.number
        self._size += len(piece.data)
        self._wake()

    def _wake(self) -> None:
        waiting, self._readers = self._readers, []
        for reader in waiting:
            if not reader.done():
                reader.set_result(None)

    def _drop(self) -> None:
        number = 0
        while self._size > TAIL_BYTES and number < len(self._pieces) - 1:
            piece = self._pieces[number]
            if piece.first + piece.number - 1 > self._saved:
                break
            self._size -= len(piece.data)
            number += 1
        del self._pieces[:number]

    def _from_tail(self, position: int) -> StoredFrames | None:
        newest = self._pieces[-1]
        if newest.first == position + 1:
            return newest
        if position + 1 < self._pieces[0].first:
            return None
        return gather(self._pieces, _index_of(self._pieces, position + 1), position)

    async def _from_store(self, position: int) -> StoredFrames | None:
        rows = await self._store.read(self.stream_id, position, MOST_BYTES)
        return gather(rows, 0, position) if rows else None


def _rows(pieces: list[StoredFrames]) -> Iterator[StoredFrames]:
    """The same frames in pieces that a reader who is behind takes one at a time."""
    start = 0
    while start < len(pieces):
        row = gather(pieces, start, pieces[start].first - 1)
        last = row.first + row.number - 1
        while start < len(pieces) and pieces[start].first <= last:
            start += 1
        yield row


def gather(pieces: list[StoredFrames], index: int, position: int) -> StoredFrames:
    """What follows a number, from the piece that holds it on, as one piece that is not too large."""
    taken, size = list[StoredFrames](), 0
    while index < len(pieces) and (not taken or size + len(pieces[index].data) <= MOST_BYTES):
        piece = pieces[index]
        taken.append(piece if piece.first > position else _behind(piece, position))
        size += len(taken[-1].data)
        index += 1
    if len(taken) == 1:
        return taken[0]
    return StoredFrames(taken[0].first, sum(piece.number for piece in taken), b"".join([piece.data for piece in taken]))


def _behind(piece: StoredFrames, position: int) -> StoredFrames:
    """The frames of a piece behind a number; each ends with its only blank line."""
    skipped = position - piece.first + 1
    data = piece.data.split(b"\n\n", skipped)[skipped]
    return StoredFrames(position + 1, piece.number - skipped, data)


def _index_of(pieces: list[StoredFrames], number: int) -> int:
    """Where the frame of this number is."""
    low, high = 0, len(pieces)
    while low < high:
        middle = (low + high) // 2
        if pieces[middle].first + pieces[middle].number <= number:
            low = middle + 1
        else:
            high = middle
    return low
