"""The short way of a stream yields exactly what the long way yields, of any events, and ends as it does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.stream_events import IDS, STREAMS, TEXTS
from turnlog.aisdk.chunks import TextDeltaChunk
from turnlog.aisdk.sse import Frames, SseEncoder
from turnlog.aisdk.streaming import MOST_BYTES, pump, stream_chunks, stream_events
from turnlog.aisdk.writer import ChunkWriter
from turnlog.model.stream import ReasoningDelta, RunFinish, StreamEvent, TextDelta, TextStart, ToolInputStart


class Sink:
    """Keeps everything; frames are taken in the next turn of the event loop, and whenever it is waited."""

    def __init__(self) -> None:
        self.frames = Frames(self.begin)
        self.is_full = False
        self.taken: list[bytes] = []
        self.numbers = 0
        self.begun = 0
        self.most = 0

    def begin(self) -> None:
        self.begun += 1
        asyncio.get_running_loop().call_soon(self._take)

    async def wait(self) -> None:
        self._take()

    def _take(self) -> None:
        number, data = self.frames.take()
        self.most = max(self.most, len(data))
        self.numbers += number
        self.taken += [frame + b"\n\n" for frame in data.split(b"\n\n")[:-1]]


async def event_source(
    events: Sequence[StreamEvent | None], failure: BaseException | None = None
) -> AsyncIterator[StreamEvent]:
    for event in events:
        if event is None:
            await asyncio.sleep(0)
        else:
            yield event
    if failure is not None:
        raise failure


def pumped(
    events: Sequence[StreamEvent | None], writer: ChunkWriter, failure: BaseException | None = None
) -> list[bytes]:
    sink = Sink()

    async def run() -> None:
        await pump(event_source(events, failure), writer, sink)
        await sink.wait()

    asyncio.run(run())
    assert sink.numbers == len(sink.taken)
    return sink.taken


def streamed(
    events: Sequence[StreamEvent | None], writer: ChunkWriter, failure: BaseException | None = None
) -> list[bytes]:
    async def run() -> list[bytes]:
        encode = SseEncoder().encode
        return [encode(chunk) async for chunk in stream_chunks(event_source(events, failure), writer)]

    return asyncio.run(run())


START, HALF = TextStart(id="a"), TextDelta(id="a", delta="\ud83d")
GROWING: st.SearchStrategy[list[StreamEvent | None]] = st.lists(
    st.none() | st.builds(TextDelta, id=IDS, delta=TEXTS) | st.builds(ReasoningDelta, id=IDS, delta=TEXTS)
)
ANYTHING: st.SearchStrategy[list[StreamEvent | None]] = STREAMS.map(lambda events: [event for event, _ in events])
EVENT_LISTS = st.lists(ANYTHING | GROWING, max_size=5).map(lambda lists: [event for part in lists for event in part])
"""Any events and, where there is None, a turn of the event loop."""


@given(EVENT_LISTS)
@example([START, HALF, TextDelta(id="a", delta="x"), TextDelta(id="b", delta="y"), TextDelta(id="a", delta="z")])
@example([START, TextDelta(id="a", delta="x"), ToolInputStart(tool_call_id="c", tool_name="t"), HALF, HALF])
@example([TextDelta(id="a", delta=""), START, TextDelta(id="a", delta=""), RunFinish(), TextDelta(id="a", delta="x")])
def test_both_ways_send_the_same_frames(events: list[StreamEvent | None]) -> None:
    one, other = ChunkWriter(7, message_id="m"), ChunkWriter(7, message_id="m")
    assert pumped(events, one) == streamed(events, other)
    assert one.losses == other.losses
    assert one.skipped == other.skipped


@pytest.mark.parametrize("failure", [ValueError("broken"), asyncio.CancelledError()])
def test_both_ways_end_the_same_when_the_source_breaks_down(failure: BaseException) -> None:
    events = [START, TextDelta(id="a", delta="half")]
    ended = pumped(events, ChunkWriter(7, message_id="m"), failure)
    assert ended == streamed(events, ChunkWriter(7, message_id="m"), failure)
    assert len(ended) > 3


def test_the_source_waits_where_much_is_not_taken() -> None:
    sink = Sink()
    events = [START, *[TextDelta(id="a", delta="word " * 20)] * 2000]
    asyncio.run(pump(event_source(events), ChunkWriter(7), sink))
    assert len(sink.taken) > 1900
    assert sink.begun > 10
    assert sink.most < MOST_BYTES + 300


def test_nothing_is_no_frame() -> None:
    frames = Frames(lambda: None)
    frames.start_deltas(TextDeltaChunk(id="a", delta=""))
    assert frames.take() == (0, b"")
    assert not frames


def test_a_response_straight_from_events_is_whole() -> None:
    async def run() -> bytes:
        events = [START, TextDelta(id="a", delta="Hello"), RunFinish()]
        return b"".join([data async for data in stream_events(event_source(events), ChunkWriter(7), keep_alive=None)])

    body = asyncio.run(run())
    assert b'"delta":"Hello"' in body
    assert body.endswith(b"data: [DONE]\n\n")
