"""Running streams: one source each, any number of readers, and readers that come back.

A run goes on whether or not anybody reads it; only `stop` ends it early. Its stream can be read again from any frame,
in this process and, through a shared store, in others. The source makes the events, the writer decides what a client
is sent.

In the process that makes a stream (`LiveStream`) every chunk is encoded once. What comes in one turn of the event loop
(in two, if there are many readers) is sealed into one block of bytes, which all readers send as it is. A reader is a
number, its position in the stream: nothing waits in a queue for it, so slow readers cost no memory. Blocks that are
stored and older than the tail are dropped; a reader that is behind reads from the store.

Readers get a block once it is stored, so that a killed server has shown nothing that is lost. While one block is being
stored, the next ones become one: a slow store makes larger blocks, not a longer queue. A store that fails or takes
longer than `MOST_SECONDS` holds nobody up.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from turnlog.aisdk.chunks import StartChunk, UIMessageChunk
from turnlog.aisdk.sse import DONE, KEEP_ALIVE, Frames, SseEncoder, decode_chunks
from turnlog.aisdk.streaming import ErrorText, generic_error_text, pump
from turnlog.aisdk.versions import Version, sdk_version
from turnlog.aisdk.writer import ChunkWriter, closing_chunks
from turnlog.arguments import checked
from turnlog.chat.numbers import check_numbers
from turnlog.chat.stream_stores import MemoryStreamStore, StoredFrames, StreamState, StreamStore, index_of_frame
from turnlog.errors import ConflictError, NotFoundError
from turnlog.model.stream import StreamEvent

MAX_BYTES: Final = 65_536
"""How much a reader that is behind reads and sends at once."""

MAX_UNSAVED_BYTES: Final = 4_194_304
"""With more bytes than this not yet stored, the source waits for the store."""

MANY_READERS: Final = 16
"""Sending to so many takes longer than one turn of the event loop: they get the chunks of two turns at once."""

TAIL_BYTES: Final = 262_144
"""How much of the newest part of a stream is kept in memory."""

MOST_SECONDS: Final = 1.0
"""How long readers wait for frames that are being stored."""

Recover: TypeAlias = Callable[[str, list[UIMessageChunk], str], Awaitable[None]]
"""Saves the message of a stream whose server is gone; it gets the chat, the chunks up to a valid end, and the AI SDK
release for which they are written."""


class LiveStream:
    """Takes chunks, gives them to any number of readers and, from time to time, to the store."""

    def __init__(self, stream_id: str, store: StreamStore) -> None:
        """Begin an empty stream."""
        self.stream_id = stream_id
        self.has_begun = False
        self.is_cancelled = False
        """Whether it was stopped before its source had begun."""
        self.ended = False
        """Whether no chunk follows."""
        self.closed = False
        """Whether it has ended and all that could be stored is."""
        self.fresh = asyncio.Event()
        """Set when there is something to store."""
        self._store = store
        self._loop = asyncio.get_running_loop()
        self.frames = Frames(self._seal_soon)
        """The chunks of the current turn of the event loop."""
        self._blocks: list[StoredFrames] = []
        self._pending: list[StoredFrames] = []
        """Sealed blocks that readers do not have yet, because they are not stored."""
        self._last = 0
        """Number of the last frame that readers have."""
        self._sealed = 0
        """Number of the last sealed frame."""
        self._saved = 0
        """Number of the last stored frame."""
        self._size = 0
        self._readers: list[asyncio.Future[None]] = []
        """Readers that wait for new frames."""
        self._reading = 0
        self._beats = 0
        self._saving: asyncio.Future[None] | None = None
        """Done after the next attempt to store something; the source waits for it."""
        self._is_store_late = False
        """Whether the store fails or is slow, so that readers do not wait for it."""

    @property
    def is_full(self) -> bool:
        """Whether too much is not yet stored."""
        return self._size > MAX_UNSAVED_BYTES

    def _seal_soon(self) -> None:
        """Seal the chunks in the next turn of the event loop, or one turn later for many readers."""
        self._loop.call_soon(self._seal if self._reading < MANY_READERS else self._seal_later)

    def _seal_later(self) -> None:
        self._loop.call_soon(self._seal)

    async def wait(self) -> None:
        """Let the readers run, and wait for the store if too much is not yet stored."""
        await asyncio.sleep(0)
        if self.is_full:
            self._saving = self._saving or self._loop.create_future()
            await self._saving

    @property
    def has_unsaved(self) -> bool:
        """Whether any frame is not yet stored."""
        return self._sealed > self._saved

    def end(self) -> None:
        """Take no more chunks."""
        self._seal()
        self.ended = True
        self.fresh.set()

    def close(self) -> None:
        """Let the readers end: what could be stored is."""
        self._publish()
        self.closed = True
        self._wake()

    def beat(self) -> None:
        """Let every reader send a comment, which keeps its connection open."""
        self._beats += 1
        self._wake()

    async def read(self, after: int) -> AsyncGenerator[bytes, None]:
        """All frames after a number, past and future, each once and in order."""
        position, beats = after, self._beats
        self._reading += 1
        try:
            while True:
                if position < self._last:
                    found = self._from_tail(position) or await self._from_store(position)
                    if found is None:
                        return  # It ended long ago, and the store has forgotten it meanwhile.
                    position = found.last
                    yield found.data
                elif self.closed:
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
        """Store what is not yet stored, and free what nobody needs in memory; whether somebody asked for a stop."""
        last = self._sealed
        shown = self._blocks[index_of_frame(self._blocks, self._saved + 1) :] if self._saved < self._last else []
        frames = list(_rows([*shown, *self._pending]))
        timer = self._loop.call_later(MOST_SECONDS, self._go_on_without_store)
        try:
            to_stop = await self._store.append(self.stream_id, frames, lease_until)
        except BaseException:
            # A run does not end because it cannot be stored.
            self._go_on_without_store()
            raise
        finally:
            timer.cancel()
            self._resume_source()
        self._saved, self._is_store_late = last, False
        self._publish(last)
        self._drop()
        return to_stop

    def _go_on_without_store(self) -> None:
        self._is_store_late = True
        self._publish()

    def _publish(self, last: int | None = None) -> None:
        """Give readers the blocks up to a frame; all by default."""
        number = len(self._pending) if last is None else index_of_frame(self._pending, last + 1)
        if number:
            self._blocks += self._pending[:number]
            del self._pending[:number]
            self._last = self._blocks[-1].last
            self._wake()

    def _resume_source(self) -> None:
        waiting, self._saving = self._saving, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def _seal(self) -> None:
        if not self.frames:
            return
        block = StoredFrames(self._sealed + 1, *self.frames.take())
        self._pending.append(block)
        self._sealed += block.number
        self._size += len(block.data)
        if self._is_store_late:
            self._publish()
        else:
            self.fresh.set()

    def _wake(self) -> None:
        waiting, self._readers = self._readers, []
        for reader in waiting:
            if not reader.done():
                reader.set_result(None)

    def _drop(self) -> None:
        number = 0
        while self._size > TAIL_BYTES and number < len(self._blocks) - 1:
            block = self._blocks[number]
            if block.last > self._saved:
                break
            self._size -= len(block.data)
            number += 1
        del self._blocks[:number]

    def _from_tail(self, position: int) -> StoredFrames | None:
        newest = self._blocks[-1]
        if newest.first == position + 1:
            return newest
        if position + 1 < self._blocks[0].first:
            return None
        return gather(self._blocks, index_of_frame(self._blocks, position + 1), position)

    async def _from_store(self, position: int) -> StoredFrames | None:
        rows = await self._store.read(self.stream_id, position, MAX_BYTES)
        return gather(rows, 0, position) if rows else None


def _rows(blocks: list[StoredFrames]) -> Iterator[StoredFrames]:
    """The same frames in blocks of the size in which a reader that is behind reads them."""
    start = 0
    while start < len(blocks):
        row = gather(blocks, start, blocks[start].first - 1)
        last = row.last
        while start < len(blocks) and blocks[start].first <= last:
            start += 1
        yield row


def gather(blocks: list[StoredFrames], index: int, position: int) -> StoredFrames:
    """The frames after `position`, from the block at `index` on, as one block of about `MAX_BYTES` at most."""
    taken, size = list[StoredFrames](), 0
    while index < len(blocks) and (not taken or size + len(blocks[index].data) <= MAX_BYTES):
        block = blocks[index]
        taken.append(block if block.first > position else _after(block, position))
        size += len(taken[-1].data)
        index += 1
    if len(taken) == 1:
        return taken[0]
    return StoredFrames(taken[0].first, sum(block.number for block in taken), b"".join([block.data for block in taken]))


def _after(block: StoredFrames, position: int) -> StoredFrames:
    """The frames of a block after a position; each frame ends with its only blank line."""
    skipped = position - block.first + 1
    data = block.data.split(b"\n\n", skipped)[skipped]
    return StoredFrames(position + 1, block.number - skipped, data)


logger = logging.getLogger(__name__)

SAVE_SECONDS: Final = 0.25
"""How often the lease of a silent stream is renewed, and how soon a store that failed is tried again."""

LEASE_SECONDS: Final = 5.0
"""A stream whose owner did not renew its lease for so long has lost its server."""

POLL_SECONDS: Final = 0.1
"""How often a stream of another process is queried."""


class RunningMessage(NamedTuple):
    """A message that is being made, and the stream that makes it."""

    stream_id: str
    message_id: str


class Streams:
    """The streams of a server. Use one per process, on one event loop; `close` it at the end."""

    @checked
    def __init__(
        self, store: StreamStore | None = None, *, keep_alive: float = 15.0, keep_finished: float = 60.0
    ) -> None:
        """Keep streams in a store.

        Args:
            store: Where other processes find them; in memory by default.
            keep_alive: Seconds of silence after which readers are sent a comment.
            keep_finished: Seconds for which a stream can still be read after its end.

        Raises:
            TypeError: `store` is no store of streams.
            ValueError: A number of seconds cannot be one.
        """
        check_numbers("Streams", keep_alive=keep_alive, keep_finished=keep_finished)
        self._store: StreamStore = MemoryStreamStore() if store is None else store
        self._keep_alive = keep_alive
        self._keep_finished = keep_finished
        self._live: dict[str, LiveStream] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @checked
    async def start(self, chat_id: str, source: AsyncIterable[StreamEvent], writer: ChunkWriter) -> str:
        """Run a source to its end, in the background, as the newest stream of a chat; return the stream's id.

        Raises:
            ConflictError: The chat has a stream that runs.
        """
        stream_id = await self.reserve(chat_id, writer.release)
        self.run(stream_id, source, writer)
        return stream_id

    @checked
    async def reserve(self, chat_id: str, version: Version, *, recover: Recover | None = None) -> str:
        """Begin a chat's stream before its source exists, so that nobody else begins one; `run` or `discard` it.

        `recover` is called if the chat's last stream has lost its server.

        Raises:
            ConflictError: The chat has a stream that runs.
        """
        stream_id = uuid.uuid4().hex
        await self._store.delete_finished(time.time() - self._keep_finished)
        while not await self._store.create(stream_id, chat_id, str(sdk_version(version)), time.time() + LEASE_SECONDS):
            await self._wait_for_last(chat_id, recover)
        self._live[stream_id] = LiveStream(stream_id, self._store)
        return stream_id

    @checked
    def run(
        self,
        stream_id: str,
        source: AsyncIterable[StreamEvent],
        writer: ChunkWriter,
        *,
        error_text: ErrorText = generic_error_text,
        replayed: Sequence[UIMessageChunk] = (),
    ) -> None:
        """Run a source to its end, in the background, as the stream that was reserved for it.

        Args:
            stream_id: The stream.
            source: The events.
            writer: Makes their chunks.
            error_text: Makes what readers are sent for an exception of the source.
            replayed: The first frames, for readers that come back: what the page that began the stream has already.
        """
        live = self._live[stream_id]
        _put_all(live, replayed)
        self._tasks[stream_id] = asyncio.create_task(self._run(live, source, writer, error_text))

    async def discard(self, stream_id: str) -> None:
        """End a reserved stream that gets no source."""
        live = self._live.pop(stream_id)
        live.end()
        live.close()
        await self._store.finish(stream_id)

    @checked
    async def subscribe(
        self, stream_id: str, after: int = 0, *, recover: Recover | None = None
    ) -> AsyncGenerator[bytes, None]:
        """The bytes of a stream after a frame number (they count from 1), past and future.

        `recover` is called if the stream's server is found to be gone.

        Raises:
            NotFoundError: There is no such stream, or it ended some time ago.
        """
        live = self._live.get(stream_id)
        if live is not None:
            return live.read(after)
        state = await self._store.state(stream_id)
        if state is None:
            raise NotFoundError(f"there is no stream {stream_id}")
        return self._follow(stream_id, after, recover)

    @checked
    async def resume(
        self, chat_id: str, after: int = 0, *, recover: Recover | None = None
    ) -> AsyncGenerator[bytes, None] | None:
        """A chat's running stream; None (HTTP 204) if there is none (R-O22). `recover` as for `subscribe`."""
        stream_id = await self._store.newest(chat_id)
        live = None if stream_id is None else self._live.get(stream_id)
        ended = live is not None and live.ended
        return None if stream_id is None or ended else await self.subscribe(stream_id, after, recover=recover)

    @checked
    async def running_message(self, chat_id: str, *, recover: Recover | None = None) -> RunningMessage | None:
        """The message that the chat's running stream makes; None if nothing runs or it has not begun.

        A stream that has ended is waited for until it is stored, and one whose server is gone is ended.
        """
        stream_id = await self._store.newest(chat_id)
        if stream_id is None:
            return None
        live = self._live.get(stream_id)
        if live is None:
            state = await self._store.state(stream_id)
            if state is None or state.finished or await self._end_abandoned(stream_id, state, recover):
                return None
        elif live.ended:
            await self.finished(stream_id)
            return None
        rows = await self._store.read(stream_id, 0, 1)
        chunks = decode_chunks(rows[0].data, strict=False) if rows else []
        named = next((chunk.message_id for chunk in chunks if isinstance(chunk, StartChunk)), None)
        return RunningMessage(stream_id, named) if isinstance(named, str) else None

    @checked
    async def stop(self, chat_id: str, *, recover: Recover | None = None) -> bool:
        """Abort the chat's run, in whichever process it is, and wait for its end; whether one ran.

        Its readers get a valid end of the stream. `recover` as for `subscribe`.
        """
        stream_id = await self._store.newest(chat_id)
        if stream_id is None:
            return False
        task = self._tasks.get(stream_id)
        if task is None:
            await self._store.ask_to_stop(stream_id)
            await self._ended(stream_id, recover)
        else:
            self._cancel(stream_id, task)
            await asyncio.wait([task])
        return True

    @checked
    async def delete(self, chat_id: str) -> None:
        """Delete what is stored of a chat's streams; stop the run first."""
        await self._store.delete_chat(chat_id)

    @checked
    async def finished(self, stream_id: str) -> None:
        """Wait until a stream of this process has ended and is stored."""
        task = self._tasks.get(stream_id)
        if task is not None:
            await asyncio.wait([task])

    async def close(self) -> None:
        """Abort everything that runs."""
        tasks = dict(self._tasks)
        for stream_id, task in tasks.items():
            self._cancel(stream_id, task)
        if tasks:
            await asyncio.wait(tasks.values())

    def _cancel(self, stream_id: str, task: asyncio.Task[None]) -> None:
        live = self._live[stream_id]
        if not live.has_begun:
            live.is_cancelled = (
                True  # A task that is cancelled before its first step runs nothing, and could not end its stream.
            )
        elif not live.ended and not task.cancelling():
            task.cancel()  # Only once: its source may need time to end. One that has ended is being stored.

    # -- running

    async def _run(
        self, live: LiveStream, source: AsyncIterable[StreamEvent], writer: ChunkWriter, error_text: ErrorText
    ) -> None:
        saving = asyncio.create_task(self._save_often(live))
        live.has_begun = True
        try:
            if live.is_cancelled:
                raise asyncio.CancelledError
            await pump(source, writer, live, error_text=error_text)
        except asyncio.CancelledError:
            _put_all(live, writer.abort("stopped"))
        except Exception:
            logger.exception("stream %s broke down", live.stream_id)
            _put_all(live, writer.fail())
        finally:
            live.end()
            await asyncio.wait([saving])
            await self._finish(live)

    async def _save_often(self, live: LiveStream) -> None:
        last = time.monotonic()
        while not live.ended:
            await _is_set_within(live.fresh, SAVE_SECONDS)
            live.fresh.clear()
            now = time.monotonic()
            if live.has_unsaved:
                last = now
            elif now - last >= self._keep_alive:
                last = now
                live.beat()
            if await self._save(live):
                self._cancel(live.stream_id, self._tasks[live.stream_id])

    async def _save(self, live: LiveStream) -> bool:
        try:
            return await live.save(time.time() + LEASE_SECONDS)
        except Exception:
            logger.exception("stream %s could not be stored; it is tried again", live.stream_id)
            return False

    async def _finish(self, live: LiveStream) -> None:
        await self._save(live)
        try:
            await self._store.finish(live.stream_id)
        except Exception:
            logger.exception("the end of stream %s could not be stored", live.stream_id)
        live.close()
        del self._live[live.stream_id]
        del self._tasks[live.stream_id]

    # -- streams of other processes

    async def _wait_for_last(self, chat_id: str, recover: Recover | None) -> None:
        """Wait for the end of the chat's last stream. Raises ConflictError as soon as its owner is seen to be alive."""
        stream_id = await self._store.newest(chat_id)
        if stream_id is None:
            return
        live = self._live.get(stream_id)
        if live is None:
            await self._ended(stream_id, recover, is_patient=False)
        elif live.ended and stream_id in self._tasks:
            await asyncio.wait([self._tasks[stream_id]])
        else:
            raise ConflictError(f"chat {chat_id} is being answered")

    async def _ended(self, stream_id: str, recover: Recover | None, *, is_patient: bool = True) -> None:
        """Wait for the end of a stream of another process; end it here if that process is gone.

        Raises:
            ConflictError: `is_patient` is false, and the owner has renewed its lease.
        """
        lease: float | None = None
        while (state := await self._store.state(stream_id)) is not None and not state.finished:
            if not is_patient and lease is not None and state.lease_until > lease:
                raise ConflictError("the chat is being answered by another process")
            lease = state.lease_until
            if not await self._end_abandoned(stream_id, state, recover):
                await asyncio.sleep(POLL_SECONDS)

    async def _follow(self, stream_id: str, after: int, recover: Recover | None) -> AsyncGenerator[bytes, None]:
        position, silent = after, 0.0
        while True:
            state = await self._store.state(stream_id)
            rows = await self._store.read(stream_id, position, MAX_BYTES)
            if rows:
                found = gather(rows, 0, position)
                position, silent = found.last, 0.0
                yield found.data
            elif state is None or state.finished:
                break
            elif not await self._end_abandoned(stream_id, state, recover):
                await asyncio.sleep(POLL_SECONDS)
                silent += POLL_SECONDS
                if silent >= self._keep_alive:
                    silent = 0.0
                    yield KEEP_ALIVE
        yield DONE

    async def _end_abandoned(self, stream_id: str, state: StreamState, recover: Recover | None) -> bool:
        """End a stream whose server is gone, so that its message is valid and saved; False if it still has one."""
        now = time.time()
        if state.lease_until >= now or not await self._store.claim(stream_id, now, now + LEASE_SECONDS):
            return False
        rows, position = list[StoredFrames](), 0
        while more := await self._store.read(stream_id, position, MAX_BYTES):
            rows += more
            position = more[-1].last
        chunks = decode_chunks(b"".join([row.data for row in rows]), version=state.version, strict=False)
        encode = SseEncoder().encode
        closing = closing_chunks(chunks, state.version)
        if recover is not None:
            # First: whoever finds a server gone that was doing this does it again.
            await recover(state.chat_id, [*chunks, *closing], state.version)
        frames = [encode(chunk) for chunk in closing]
        if frames:
            last = StoredFrames(position + 1, len(frames), b"".join(frames))
            await self._store.append(stream_id, [last], now + LEASE_SECONDS)
        await self._store.finish(stream_id)
        return True


def _put_all(live: LiveStream, chunks: Sequence[UIMessageChunk]) -> None:
    for chunk in chunks:
        live.frames.put(chunk)


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
