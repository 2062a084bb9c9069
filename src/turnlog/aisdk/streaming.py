"""Live events -> chunks -> bytes -> an ASGI response, as asynchronous iterators around each other.

Each closes its source, however it ends. If the source raises or is cancelled, the stream still ends validly; if the
reader disconnects, the source is closed. `turnlog.chat.streams` has runs that outlive their readers.

`pump` sends the same bytes as `stream_chunks` and `SseEncoder` in half the time: deltas, which are nearly all of a
stream, become bytes without becoming chunks first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Coroutine, Mapping, MutableMapping
from typing import Any, Final, Protocol, TypeAlias

from turnlog.aisdk.chunks import AbortChunk, ErrorChunk, TextDeltaChunk, UIMessageChunk
from turnlog.aisdk.sse import DONE, HEADERS, KEEP_ALIVE, STREAM_OPEN, Frames
from turnlog.aisdk.writer import ChunkWriter
from turnlog.aisdk.writer_parts import FAILED, Delta, Start
from turnlog.arguments import checked
from turnlog.model.stream import ReasoningDelta, StreamEvent, TextDelta

logger = logging.getLogger(__name__)

MOST_BYTES: Final = 16_384
"""Bytes encoded in one turn of the event loop, before readers get theirs."""


ErrorText: TypeAlias = Callable[[Exception], str]


def generic_error_text(error: Exception) -> str:
    """The default text for an error in the server. It reveals nothing about it."""
    return FAILED


@checked
async def stream_chunks(
    source: AsyncIterable[StreamEvent], writer: ChunkWriter, *, error_text: ErrorText = generic_error_text
) -> AsyncGenerator[UIMessageChunk, None]:
    """The chunks of a live source, up to the end of the stream, which comes with its last event at the latest.

    Args:
        source: Events as they arrive. Nothing is read after a terminal event.
        writer: Makes the chunks; its `losses` have what could not be sent.
        error_text: Makes the text for the client if the source raises; the error itself is logged.
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


@checked
def stream_sse(
    chunks: AsyncIterable[UIMessageChunk], *, keep_alive: float | None = 15.0, coalesce: bool = True
) -> AsyncGenerator[bytes, None]:
    """The bytes of a response, ending with `[DONE]`.

    Args:
        chunks: The chunks of `stream_chunks`, or others in a valid order.
        keep_alive: Send a comment after so many seconds without data, so that proxies keep the connection; None sends
            no comments.
        coalesce: Yield everything that arrived since the last turn of the event loop at once. This costs a fraction of
            sending each chunk by itself and delays none.
    """
    pipe = _Pipe()
    return _drain(pipe, lambda: pipe.fill(chunks), keep_alive, coalesce=coalesce)


@checked
def stream_events(
    source: AsyncIterable[StreamEvent],
    writer: ChunkWriter,
    *,
    keep_alive: float | None = 15.0,
    coalesce: bool = True,
    error_text: ErrorText = generic_error_text,
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
    """A buffer of encoded chunks between a source and a reader that takes everything in it."""

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
        """Encode everything, waiting if the reader is slow."""
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
        """Encode all events of a source, waiting if the reader is slow."""
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
        """The buffered bytes, at least one frame; empty at the end."""
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
        """Add a comment whenever nothing was taken for so many seconds; None stops this."""
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
        """Wait until the reader has taken the buffer."""
        while self.frames:
            self._filler = self._loop.create_future()
            await self._filler


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


class Sink(Protocol):
    """The destination of frames."""

    @property
    def frames(self) -> Frames:
        """The encoded frames that were not taken yet."""
        ...

    @property
    def is_full(self) -> bool:
        """Whether to wait, however small the buffer is."""
        ...

    async def wait(self) -> None:
        """Wait until more may be put."""
        ...


async def pump(
    source: AsyncIterable[StreamEvent], writer: ChunkWriter, sink: Sink, *, error_text: ErrorText = generic_error_text
) -> None:
    """Add every frame of a live source, up to the end of the stream, which comes with its last event at the latest.

    Args:
        source: Events as they arrive. Nothing is read after a terminal event, and the source is closed in any case.
        writer: Makes the chunks.
        sink: Receives the frames.
        error_text: Makes the text for the client if the source raises; the error itself is logged.

    Raises:
        asyncio.CancelledError: This task was cancelled. The stream has no end then; the caller adds the writer's.
    """
    try:
        last = await _pump(source, writer, sink)
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
        sink.frames.put(chunk)


async def _pump(source: AsyncIterable[StreamEvent], writer: ChunkWriter, sink: Sink) -> list[UIMessageChunk]:
    frames = sink.frames
    deltas = frames.deltas
    text_id = reasoning_id = _NONE
    size, overhead, is_full = 0, 0, False
    async for event in source:
        # Only the writer ends an open part, so it need not see the part's deltas until another event arrives.
        if (
            (type(event) is TextDelta and event.id == text_id)
            or (type(event) is ReasoningDelta and event.id == reasoning_id)
        ) and (type(delta := event.delta) is str and delta):
            if not deltas:
                size, is_full = frames.begin(), sink.is_full
            deltas.append(delta)
            size += len(delta) + overhead
        else:
            writer.count_deltas(frames.end_deltas())
            for chunk in writer.write(event):
                size = frames.put(chunk)
            if writer.closed:
                return []
            text_id, reasoning_id, overhead = _start_deltas(frames, writer, event)
            is_full = sink.is_full
        if size >= MOST_BYTES or is_full:
            await sink.wait()
            is_full = False
    return writer.close()


def _start_deltas(frames: Frames, writer: ChunkWriter, event: StreamEvent) -> tuple[object, object, int]:
    """The source's id of the text or reasoning that an event leaves open, and the size of a frame without its delta."""
    part = writer.open_delta(event) if isinstance(event, Start | Delta) else None
    if part is None or not isinstance(event, Start | Delta):
        return _NONE, _NONE, 0
    overhead = frames.start_deltas(part)
    return (event.id, _NONE, overhead) if isinstance(part, TextDeltaChunk) else (_NONE, event.id, overhead)


_NONE: Final = object()


def is_cancelled() -> bool:
    """Whether this task itself was cancelled, and not only what it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def close_source(source: AsyncIterable[object]) -> None:
    """Close an iterator if it can be closed."""
    close = getattr(source, "aclose", None)
    if close is not None:
        await close()


Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]


class StreamResponse:
    """Sends the bytes of a stream, and closes it as soon as the client disconnects.

    `await StreamResponse(stream_sse(chunks))(scope, receive, send)` answers a request; the class is also a whole
    application for one request.
    """

    def __init__(
        self, body: AsyncIterable[bytes], *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Answer with `body`, as `stream_sse` or a subscription of `turnlog.chat.streams` gives it."""
        self._body = body
        self._status = status
        self._headers = {**HEADERS, **{name.lower(): value for name, value in (headers or {}).items()}}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await send_stream(
            self._body,
            receive,
            send,
            status=self._status,
            headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in self._headers.items()],
        )


async def send_stream(
    body: AsyncIterable[bytes], receive: Receive, send: Send, *, status: int, headers: list[tuple[bytes, bytes]]
) -> None:
    """Send a response whose body is a stream, until it ends or the client disconnects."""
    sending = asyncio.ensure_future(_send_all(body, send, status, headers))
    leaving = asyncio.ensure_future(_wait_for_leaving(receive))
    try:
        await asyncio.wait([sending, leaving], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, leaving):
            task.cancel()
        await asyncio.wait([sending, leaving])
        close = getattr(body, "aclose", None)
        if close is not None:
            await close()
    if not sending.cancelled():
        _raise_unless_gone(sending.exception())


async def _send_all(body: AsyncIterable[bytes], send: Send, status: int, headers: list[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    async for piece in body:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _wait_for_leaving(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _raise_unless_gone(error: BaseException | None) -> None:
    # Servers raise OSError if the client has disconnected.
    if error is not None and not isinstance(error, OSError):
        raise error
