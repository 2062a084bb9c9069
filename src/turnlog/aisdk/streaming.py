"""Live sources of events -> chunks -> bytes, one asynchronous iterator around the other.

Each closes its source however it ends. A source that breaks down or is cancelled ends the stream in a valid way; a
reader that goes away ends the source. Who should outlive their readers runs in `turnlog.chat.streams`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine
from typing import Any

from turnlog.aisdk.chunks import AbortChunk, ErrorChunk, UIMessageChunk
from turnlog.aisdk.frames import Frames
from turnlog.aisdk.pump import MOST_BYTES, ErrorText, close_source, is_cancelled, no_details, pump
from turnlog.aisdk.sse import DONE, KEEP_ALIVE, STREAM_OPEN
from turnlog.aisdk.writer import ChunkWriter
from turnlog.aisdk.writer_base import FAILED
from turnlog.model.stream import StreamEvent

logger = logging.getLogger(__name__)


async def stream_chunks(
    source: AsyncIterable[StreamEvent], writer: ChunkWriter, *, error_text: ErrorText = no_details
) -> AsyncGenerator[UIMessageChunk, None]:
    """The chunks of a live source, to the end of the stream, which comes with its last event at the latest.

    Args:
        source: Events as they arrive. Nothing is read from it after a terminal event.
        writer: Decides what a client is told; its `losses` tell what it was not told.
        error_text: What the client reads where the source raises; the error itself is logged.
    """
    try:
        async for event in source:
            for chunk in writer.write(event):
                yield chunk
            if writer.closed:
                return
        last = writer.close()
    except asyncio.CancelledError:
        if is_cancelled():
            raise
        last = writer.abort()
    except Exception as error:
        logger.exception("the source of a stream failed")
        last = writer.fail(error_text(error))
    finally:
        await close_source(source)
    for chunk in last:
        yield chunk


def stream_sse(
    chunks: AsyncIterable[UIMessageChunk], *, keep_alive: float | None = 15.0, coalesce: bool = True
) -> AsyncGenerator[bytes, None]:
    """The bytes of a response, ending with `[DONE]`.

    Args:
        chunks: What `stream_chunks` gives, or any others in a valid order.
        keep_alive: A comment is sent where nothing was for so many seconds, so that proxies keep the connection; with
            None there are no comments at all.
        coalesce: Give what has come since the last turn of the event loop at once, which costs a fraction of sending
            each chunk by itself, and delays none.
    """
    pipe = _Pipe()
    return _drain(pipe, lambda: pipe.fill(chunks), keep_alive, coalesce=coalesce)


def stream_events(
    source: AsyncIterable[StreamEvent],
    writer: ChunkWriter,
    *,
    keep_alive: float | None = 15.0,
    coalesce: bool = True,
    error_text: ErrorText = no_details,
) -> AsyncGenerator[bytes, None]:
    """The bytes of a response straight from events: `stream_sse(stream_chunks(source, writer))` in half the time."""
    pipe = _Pipe()
    return _drain(pipe, lambda: pipe.fill_from(source, writer, error_text), keep_alive, coalesce=coalesce)


async def _drain(
    pipe: _Pipe, fill: Callable[[], Coroutine[Any, Any, None]], keep_alive: float | None, *, coalesce: bool
) -> AsyncGenerator[bytes, None]:
    filling = asyncio.create_task(fill())
    pipe.keep_alive(keep_alive)
    try:
        if keep_alive is not None:
            yield STREAM_OPEN
        while data := await pipe.take():
            if coalesce:
                yield data
            else:
                for frame in data.split(b"\n\n")[:-1]:
                    yield frame + b"\n\n"
        yield DONE
    finally:
        pipe.keep_alive(None)
        await _cancel(filling)


class _Pipe:
    """Encoded chunks between a source that makes them and a reader that takes all there are."""

    def __init__(self) -> None:
        self.frames = Frames(self._wake_reader)
        self.is_full = False
        self._loop = asyncio.get_running_loop()
        self._ended = False
        self._reader: asyncio.Future[None] | None = None
        self._filler: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._last_taken = 0.0

    async def fill(self, chunks: AsyncIterable[UIMessageChunk]) -> None:
        """Encode everything, waiting where the reader is slow."""
        try:
            async for chunk in chunks:
                if self.frames.put(chunk) >= MOST_BYTES:
                    await self.wait()
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            self.frames.put(AbortChunk())
        except Exception:
            logger.exception("a stream of chunks failed")
            self.frames.put(ErrorChunk(error_text=FAILED))
        finally:
            self._end()
            await close_source(chunks)

    async def fill_from(self, source: AsyncIterable[StreamEvent], writer: ChunkWriter, error_text: ErrorText) -> None:
        """Encode everything that a source tells, waiting where the reader is slow."""
        try:
            await pump(source, writer, self, error_text=error_text)
        finally:
            self._end()

    def _end(self) -> None:
        self._ended = True
        self._wake_reader()

    def _wake_reader(self) -> None:
        waiting, self._reader = self._reader, None
        _wake(waiting)

    async def take(self) -> bytes:
        """What is there, at least one frame; nothing at the end."""
        while not self.frames:
            if self._ended:
                return b""
            self._reader = self._loop.create_future()
            await self._reader
        data = self.frames.take()[1]
        self._last_taken = self._loop.time()
        _wake(self._filler)
        return data

    def keep_alive(self, seconds: float | None) -> None:
        """Put a comment wherever nothing was taken for so long; None stops it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if seconds is not None:
            self._last_taken = self._loop.time()
            self._set_timer(seconds, seconds)

    def _set_timer(self, seconds: float, left: float) -> None:
        # One timer for the whole stream: setting one for every chunk would cost more than the chunk.
        self._timer = self._loop.call_later(left, self._on_timer, seconds)

    def _on_timer(self, seconds: float) -> None:
        idle = self._loop.time() - self._last_taken
        if idle >= seconds and not self.frames and not self._ended:
            self.frames.put_frame(KEEP_ALIVE)
            idle = 0.0
        self._set_timer(seconds, max(seconds - idle, 0.01))

    async def wait(self) -> None:
        """Wait until the reader has taken what there is."""
        while self.frames:
            self._filler = self._loop.create_future()
            await self._filler


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
