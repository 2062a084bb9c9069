"""Live sources of events -> chunks -> bytes, one asynchronous iterator around the other.

Each closes its source however it ends. A source that breaks down or is cancelled ends the stream in a valid way; a
reader that goes away ends the source. Who should outlive their readers runs in `turnlog.chat.streams`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from typing import TypeVar

from turnlog.aisdk.chunks import AbortChunk, ErrorChunk, UIMessageChunk
from turnlog.aisdk.sse import DONE, KEEP_ALIVE, STREAM_OPEN, SseEncoder
from turnlog.aisdk.writer import FAILED, ChunkWriter
from turnlog.model.stream import StreamEvent

logger = logging.getLogger(__name__)

ItemT = TypeVar("ItemT")

MOST_BYTES = 16_384
"""So much waits for a slow reader, or is sent at once; then the source waits."""


def no_details(error: Exception) -> str:
    """What a client reads of an error in the server: nothing of it."""
    return FAILED


async def stream_chunks(
    source: AsyncIterable[StreamEvent], writer: ChunkWriter, *, error_text: Callable[[Exception], str] = no_details
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
        if _is_cancelled():
            raise
        last = writer.abort()
    except Exception as error:
        logger.exception("the source of a stream failed")
        last = writer.fail(error_text(error))
    finally:
        await _close(source)
    for chunk in last:
        yield chunk


async def stream_sse(
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
    filling = asyncio.create_task(pipe.fill(chunks))
    pipe.keep_alive(keep_alive)
    try:
        if keep_alive is not None:
            yield STREAM_OPEN
        while pieces := await pipe.take():
            if coalesce:
                yield b"".join(pieces)
            else:
                for piece in pieces:
                    yield piece
        yield DONE
    finally:
        pipe.keep_alive(None)
        await _cancel(filling)


class _Pipe:
    """Encoded chunks between a source that makes them and a reader that takes all there are."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._ended = False
        self._reader: asyncio.Future[None] | None = None
        self._filler: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._last_taken = 0.0

    async def fill(self, chunks: AsyncIterable[UIMessageChunk]) -> None:
        """Encode everything, waiting where the reader is slow."""
        encode = SseEncoder().encode
        try:
            async for chunk in chunks:
                self._put(encode(chunk))
                if self._size >= MOST_BYTES:
                    await self._wait_for_reader()
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            self._put(encode(AbortChunk()))
        except Exception:
            logger.exception("a stream of chunks failed")
            self._put(encode(ErrorChunk(error_text=FAILED)))
        finally:
            self._ended = True
            _wake(self._reader)
            await _close(chunks)

    async def take(self) -> list[bytes]:
        """What is there, at least one piece; nothing at the end."""
        while not self._pieces:
            if self._ended:
                return []
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        pieces, self._pieces, self._size = self._pieces, [], 0
        self._last_taken = asyncio.get_running_loop().time()
        _wake(self._filler)
        return pieces

    def keep_alive(self, seconds: float | None) -> None:
        """Put a comment wherever nothing was taken for so long; None stops it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if seconds is not None:
            self._last_taken = asyncio.get_running_loop().time()
            self._set_timer(seconds, seconds)

    def _set_timer(self, seconds: float, left: float) -> None:
        # One timer for the whole stream: setting one for every chunk would cost more than the chunk.
        self._timer = asyncio.get_running_loop().call_later(left, self._on_timer, seconds)

    def _on_timer(self, seconds: float) -> None:
        idle = asyncio.get_running_loop().time() - self._last_taken
        if idle >= seconds and not self._pieces and not self._ended:
            self._put(KEEP_ALIVE)
            idle = 0.0
        self._set_timer(seconds, max(seconds - idle, 0.01))

    def _put(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)
        _wake(self._reader)

    async def _wait_for_reader(self) -> None:
        while self._size >= MOST_BYTES:
            self._filler = asyncio.get_running_loop().create_future()
            await self._filler


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


def _is_cancelled() -> bool:
    """Whether somebody cancelled this task, and not only what it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _close(source: AsyncIterable[ItemT]) -> None:
    close = getattr(source, "aclose", None)
    if close is not None:
        await close()


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
