"""The short way of a stream tells exactly what the long way tells, of any events, and ends as it does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import example, given

from stream_events import STREAMS
from turnlog.aisdk.pump import MOST_BYTES, pump
from turnlog.aisdk.sse import SseEncoder
from turnlog.aisdk.streaming import stream_chunks, stream_events
from turnlog.aisdk.writer import ChunkWriter
from turnlog.model.stream import RunFinish, StreamEvent, TextDelta, TextStart, ToolInputStart


class Sink:
    """Keeps everything; frames are taken whenever it is waited."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.is_full = False
        self.taken: list[bytes] = []
        self.begun = 0
        self.most = 0

    def begin(self) -> None:
        self.begun += 1

    async def wait(self) -> None:
        self.most = max(self.most, sum(map(len, self.frames)))
        self.taken += self.frames
        self.frames.clear()


async def telling(told: Sequence[StreamEvent], failure: BaseException | None = None) -> AsyncIterator[StreamEvent]:
    for event in told:
        yield event
    if failure is not None:
        raise failure


def short(told: Sequence[StreamEvent], writer: ChunkWriter, failure: BaseException | None = None) -> list[bytes]:
    sink = Sink()
    asyncio.run(pump(telling(told, failure), writer, sink))
    return [*sink.taken, *sink.frames]


def long(told: Sequence[StreamEvent], writer: ChunkWriter, failure: BaseException | None = None) -> list[bytes]:
    async def run() -> list[bytes]:
        encode = SseEncoder().encode
        return [encode(chunk) async for chunk in stream_chunks(telling(told, failure), writer)]

    return asyncio.run(run())


START, HALF = TextStart(id="a"), TextDelta(id="a", delta="\ud83d")


@given(STREAMS)
@example([START, HALF, TextDelta(id="a", delta="x"), TextDelta(id="b", delta="y"), TextDelta(id="a", delta="z")])
@example([START, TextDelta(id="a", delta="x"), ToolInputStart(tool_call_id="c", tool_name="t"), HALF, HALF])
@example([TextDelta(id="a", delta=""), START, TextDelta(id="a", delta=""), RunFinish(), TextDelta(id="a", delta="x")])
def test_both_ways_tell_the_same(told: list[StreamEvent]) -> None:
    one, other = ChunkWriter(7, message_id="m"), ChunkWriter(7, message_id="m")
    assert short(told, one) == long(told, other)
    assert one.losses == other.losses
    assert one.skipped == other.skipped


@pytest.mark.parametrize("failure", [ValueError("broken"), asyncio.CancelledError()])
def test_both_ways_end_the_same_when_the_source_breaks_down(failure: BaseException) -> None:
    told = [START, TextDelta(id="a", delta="half")]
    ended = short(told, ChunkWriter(7, message_id="m"), failure)
    assert ended == long(told, ChunkWriter(7, message_id="m"), failure)
    assert len(ended) > 3


def test_the_source_waits_where_much_is_not_taken() -> None:
    sink = Sink()
    told = [START, *[TextDelta(id="a", delta="word " * 20)] * 2000]
    asyncio.run(pump(telling(told), ChunkWriter(7), sink))
    assert len(sink.taken) > 1900
    assert sink.begun > 10
    assert sink.most < MOST_BYTES + 300


def test_a_response_straight_from_events_is_whole() -> None:
    async def run() -> bytes:
        told = [START, TextDelta(id="a", delta="Hello"), RunFinish()]
        return b"".join([data async for data in stream_events(telling(told), ChunkWriter(7), keep_alive=None)])

    body = asyncio.run(run())
    assert b'"delta":"Hello"' in body
    assert body.endswith(b"data: [DONE]\n\n")
