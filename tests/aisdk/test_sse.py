"""Chunks <-> bytes, live sources to their end, and the responses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from support.chat_script import STREAM_HEADERS
from turnlog.aisdk.chunks import DataChunk, ReasoningDeltaChunk, TextDeltaChunk, UIMessageChunk
from turnlog.aisdk.codec import encode_chunk
from turnlog.aisdk.parts import TextUIPart
from turnlog.aisdk.reader import read_ui_message
from turnlog.aisdk.sse import KEEP_ALIVE, STREAM_OPEN, SseEncoder, decode_chunks
from turnlog.aisdk.starlette import UIMessageStreamResponse
from turnlog.aisdk.streaming import StreamResponse, stream_chunks, stream_sse
from turnlog.aisdk.writer import ChunkWriter
from turnlog.errors import ShapeError
from turnlog.model.stream import StreamEvent, TextDelta


@given(st.text(st.characters()), st.text(st.characters()))
def test_the_short_way_of_deltas_is_exact(part_id: str, delta: str) -> None:
    for kind in (TextDeltaChunk, ReasoningDeltaChunk):
        chunk = kind(id=part_id, delta=delta)
        encoder = SseEncoder()
        first, second = encoder.encode(chunk), encoder.encode(chunk)
        assert first == second
        assert (first[:6], first[-2:]) == (b"data: ", b"\n\n")
        # Not by bytes: beside half a character, all of a chunk is written with escapes.
        assert json.loads(first[6:]) == json.loads(encode_chunk(chunk))
    assert decode_chunks(SseEncoder().encode(TextDeltaChunk(id=part_id, delta=delta))) == [
        TextDeltaChunk(id=part_id, delta=delta)
    ]


def test_what_no_client_reads_is_refused() -> None:
    # Wrong on purpose.
    for chunk in (TextDeltaChunk(id="a", delta=None), TextDeltaChunk(id=None, delta="a")):  # pyright: ignore[reportArgumentType]
        with pytest.raises(ShapeError):
            SseEncoder().encode(chunk)


def test_exact_json_with_line_breaks_stays_one_event() -> None:
    data = SseEncoder().encode(DataChunk(type="data-x", data=Raw(b'{\r\n"a": "\\n"\n}')))
    assert data.count(b"\n") == 2
    assert decode_chunks(data) == [DataChunk(type="data-x", data={"a": "\n"})]


async def source(*given: StreamEvent, failure: BaseException | None = None) -> AsyncIterator[StreamEvent]:
    for event in given:
        yield event
    if failure is not None:
        raise failure


async def collect(stream: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in stream]


HELLO = TextDelta(id="t", delta="Hello")


@pytest.mark.parametrize(
    ("failure", "end"),
    [
        (None, ["finish"]),
        (RuntimeError("secret"), ["error", "finish"]),
        (asyncio.CancelledError(), ["abort"]),
    ],
)
def test_a_live_source_always_ends_validly(failure: BaseException | None, end: list[str]) -> None:
    chunks = asyncio.run(collect(stream_chunks(source(HELLO, failure=failure), ChunkWriter(7))))
    assert [chunk.type for chunk in chunks] == ["start", "text-start", "text-delta", "text-end", *end]
    assert "secret" not in str(chunks)


def test_what_came_in_one_turn_is_sent_at_once_or_one_by_one() -> None:
    async def run(coalesce: bool) -> list[bytes]:
        chunks = stream_chunks(source(*[HELLO] * 10), ChunkWriter(7))
        return await collect(stream_sse(chunks, coalesce=coalesce))

    together, apart = asyncio.run(run(True)), asyncio.run(run(False))
    assert len(together) == 3
    assert len(apart) == 16
    assert together[0] == STREAM_OPEN
    assert together[-1] == b"data: [DONE]\n\n"


def test_silence_is_filled_with_comments() -> None:
    async def slow() -> AsyncIterator[StreamEvent]:
        yield HELLO
        await asyncio.sleep(0.1)

    async def run() -> list[bytes]:
        return await collect(stream_sse(stream_chunks(slow(), ChunkWriter(7)), keep_alive=0.03))

    assert KEEP_ALIVE in asyncio.run(run())


def test_a_reader_that_goes_ends_the_source_and_a_slow_one_holds_it() -> None:
    made = 0
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[UIMessageChunk]:
        nonlocal made
        try:
            while True:
                made += 1
                yield TextDeltaChunk(id="t", delta="x" * 1_000)
        finally:
            closed.set()

    async def run() -> None:
        stream = stream_sse(endless(), keep_alive=None)
        await anext(stream)
        await asyncio.sleep(0.02)
        assert made < 100
        await stream.aclose()
        assert closed.is_set()

    asyncio.run(run())


@pytest.mark.parametrize("response", [StreamResponse, UIMessageStreamResponse])
def test_responses_send_the_headers_and_the_stream_and_notice_who_leaves(response: Any) -> None:
    """R-O27."""
    sent: list[Any] = []
    gone = asyncio.Event()

    async def send(event: Any) -> None:
        sent.append(event)

    async def receive() -> Any:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def hanging() -> AsyncIterator[StreamEvent]:
        yield HELLO
        gone.set()
        await asyncio.Event().wait()

    async def run() -> None:
        scope: dict[str, Any] = {"type": "http", "method": "POST", "path": "/", "headers": []}
        body = stream_sse(stream_chunks(source(HELLO), ChunkWriter(7)))
        await response(body, headers={"x-more": "1"})(scope, receive, send)
        headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        assert headers == {**STREAM_HEADERS, "x-more": "1"}
        assert b"".join([event.get("body", b"") for event in sent]).endswith(b"data: [DONE]\n\n")
        sent.clear()
        await response(stream_sse(stream_chunks(hanging(), ChunkWriter(7))))(scope, receive, send)
        assert sent[-1]["more_body"] is True

    asyncio.run(run())


@pytest.mark.parametrize("version", [5, 6, 7])
def test_bytes_that_are_no_utf8_are_read_as_a_browser_reads_them(version: int) -> None:
    sent = b'data: {"type":"text-start","id":"t"}\n\ndata: {"type":"text-delta","id":"t","delta":"a\xff\xe2\x82b"}\n\n'
    message = read_ui_message(decode_chunks(sent, version=version), version=version).message
    assert message.parts == (TextUIPart(text="a\ufffd\ufffdb", state="streaming"),)
