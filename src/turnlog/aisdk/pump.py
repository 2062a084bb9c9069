"""A live source of events -> encoded frames, in one loop: what a server does nearly all of its time for a stream.

It tells exactly what `stream_chunks` and `SseEncoder` tell, in half the time: a delta, which is nearly all of a stream,
becomes bytes without becoming a chunk before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Callable
from typing import Final, Protocol, TypeAlias

import orjson

from turnlog.aisdk.chunks import TextDeltaChunk, UIMessageChunk
from turnlog.aisdk.codec import encode_chunk
from turnlog.aisdk.sse import SseEncoder
from turnlog.aisdk.writer import FAILED, ChunkWriter
from turnlog.model.stream import StreamEvent, TextDelta, TextStart

logger = logging.getLogger(__name__)

MOST_FRAMES: Final = 256
"""So many frames of one turn of the event loop are enough: then the readers have theirs."""


MOST_BYTES: Final = 16_384
"""The same of the bytes that one event tells."""


class Sink(Protocol):
    """Where frames go, one event of server-sent events each."""

    @property
    def frames(self) -> list[bytes]:
        """Those that nobody has taken yet. Who takes them clears the list, which stays the same one."""
        ...

    @property
    def is_full(self) -> bool:
        """Whether to wait, however little there is in the list."""
        ...

    def begin(self) -> None:
        """Something is put into the empty list: see to it that somebody takes it."""
        ...

    async def wait(self) -> None:
        """Wait until more may be put."""
        ...


ErrorText: TypeAlias = Callable[[Exception], str]


def no_details(error: Exception) -> str:
    """What a client reads of an error in the server: nothing of it."""
    return FAILED


def put(sink: Sink, frame: bytes, size: int = 0) -> int:
    """Add a frame to those that have this size; the size with it, which begins anew where they were taken."""
    if not sink.frames:
        sink.begin()
        size = 0
    sink.frames.append(frame)
    return size + len(frame)


async def pump(
    source: AsyncIterable[StreamEvent], writer: ChunkWriter, sink: Sink, *, error_text: ErrorText = no_details
) -> None:
    """Put every frame of a live source, to the end of the stream, which comes with its last event at the latest.

    Args:
        source: Events as they arrive. Nothing is read from it after a terminal event; it is closed however this ends.
        writer: Decides what a client is told.
        sink: Takes the frames.
        error_text: What the client reads where the source raises; the error itself is logged.

    Raises:
        asyncio.CancelledError: This task was cancelled. The stream has no end then: the writer's is to be put.
    """
    encode = SseEncoder().encode
    try:
        last = await _pump(source, writer, sink, encode)
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
        put(sink, encode(chunk))


async def _pump(
    source: AsyncIterable[StreamEvent], writer: ChunkWriter, sink: Sink, encode: Callable[[UIMessageChunk], bytes]
) -> list[UIMessageChunk]:
    frames, dumps = sink.frames, orjson.dumps
    open_id: object = _NONE
    head, told, size, is_full = b"", 0, 0, False
    async for event in source:
        # An open text can only end by what the writer is told: until then it need not see the text's deltas.
        if type(event) is TextDelta and event.id == open_id and type(delta := event.delta) is str and delta:
            try:
                frame = b"".join((head, dumps(delta), _TAIL))
                told += 1
            except orjson.JSONEncodeError:  # half a character, whose other half is in the next delta
                frame = b"".join([encode(chunk) for chunk in writer.write(event)])
            if not frames:
                sink.begin()
                size, is_full = 0, sink.is_full
            frames.append(frame)
            size += len(frame)
        else:
            writer.pass_by(told)
            told = 0
            for chunk in writer.write(event):
                size = put(sink, encode(chunk), size)
            if writer.closed:
                return []
            open_id, head = _open_text(writer, event)
            is_full = sink.is_full
        if size >= MOST_BYTES or is_full:
            await sink.wait()
            is_full = False
    return writer.close()


_NONE = object()
_TAIL: Final = b"}\n\n"


def _open_text(writer: ChunkWriter, event: StreamEvent) -> tuple[object, bytes]:
    """The source's id of the text that an event leaves open, and how the frames of its deltas begin."""
    chunk_id = writer.open_text(event.id) if isinstance(event, TextStart | TextDelta) else None
    if chunk_id is None or not isinstance(event, TextStart | TextDelta):
        return _NONE, b""
    head = encode_chunk(TextDeltaChunk(id=chunk_id, delta="")).removesuffix(b'""}')
    return event.id, b"data: " + head


def is_cancelled() -> bool:
    """Whether somebody cancelled this task, and not only what it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def close_source(source: AsyncIterable[object]) -> None:
    """Close what can be closed."""
    close = getattr(source, "aclose", None)
    if close is not None:
        await close()
