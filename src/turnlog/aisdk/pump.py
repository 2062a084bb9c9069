"""A live source of events -> encoded frames, in one loop: what a server does nearly all of its time for a stream.

It tells exactly what `stream_chunks` and `SseEncoder` tell, in half the time: a delta, which is nearly all of a stream,
becomes bytes without becoming a chunk before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Callable
from typing import Final, Protocol, TypeAlias

from turnlog.aisdk.chunks import TextDeltaChunk, UIMessageChunk
from turnlog.aisdk.frames import Frames
from turnlog.aisdk.writer import ChunkWriter
from turnlog.aisdk.writer_base import FAILED
from turnlog.aisdk.writer_parts import Delta, Start
from turnlog.model.stream import ReasoningDelta, StreamEvent, TextDelta

logger = logging.getLogger(__name__)

MOST_BYTES: Final = 16_384
"""So much of one turn of the event loop is enough: then the readers have theirs."""


class Sink(Protocol):
    """Where frames go."""

    @property
    def frames(self) -> Frames:
        """Those that nobody has taken yet. It calls whoever sees to it that somebody takes them."""
        ...

    @property
    def is_full(self) -> bool:
        """Whether to wait, however little there is."""
        ...

    async def wait(self) -> None:
        """Wait until more may be put."""
        ...


ErrorText: TypeAlias = Callable[[Exception], str]


def no_details(error: Exception) -> str:
    """What a client reads of an error in the server: nothing of it."""
    return FAILED


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
        # An open part can only end by what the writer is told: until then it need not see the part's deltas.
        if (
            (type(event) is TextDelta and event.id == text_id)
            or (type(event) is ReasoningDelta and event.id == reasoning_id)
        ) and (type(delta := event.delta) is str and delta):
            if not deltas:
                size, is_full = frames.begin(), sink.is_full
            deltas.append(delta)
            size += len(delta) + overhead
        else:
            writer.pass_by(frames.stop_growing())
            for chunk in writer.write(event):
                size = frames.put(chunk)
            if writer.closed:
                return []
            text_id, reasoning_id, overhead = _let_grow(frames, writer, event)
            is_full = sink.is_full
        if size >= MOST_BYTES or is_full:
            await sink.wait()
            is_full = False
    return writer.close()


def _let_grow(frames: Frames, writer: ChunkWriter, event: StreamEvent) -> tuple[object, object, int]:
    """The source's id of the text and of the reasoning that an event leaves open, and what a frame adds to a delta."""
    part = writer.growing(event) if isinstance(event, Start | Delta) else None
    if part is None or not isinstance(event, Start | Delta):
        return _NONE, _NONE, 0
    overhead = frames.grow(part)
    return (event.id, _NONE, overhead) if isinstance(part, TextDeltaChunk) else (_NONE, event.id, overhead)


_NONE: Final = object()


def is_cancelled() -> bool:
    """Whether somebody cancelled this task, and not only what it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def close_source(source: AsyncIterable[object]) -> None:
    """Close what can be closed."""
    close = getattr(source, "aclose", None)
    if close is not None:
        await close()
