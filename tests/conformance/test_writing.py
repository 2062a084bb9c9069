"""What the writer makes of any events, the real AI SDK reads without an error, into a message that it calls valid."""

from __future__ import annotations

import json
import logging
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from support.ai_sdk_judge import VERSIONS, Judge, as_javascript_has_it, sse
from support.chat_script import STREAM_HEADERS
from support.profiles import examples
from support.stream_events import STREAMS
from turnlog.aisdk import UIMessageReader, encode
from turnlog.aisdk.sse import SseEncoder
from turnlog.aisdk.writer import ChunkWriter

EXAMPLES = examples(600)


@cache
def written(version: int) -> list[list[str]]:
    """Random streams, as the writer sends them to a version. The same in every test, which change nothing of them."""
    streams = list[list[str]]()

    @seed(20261121)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )
    @given(STREAMS)
    def write(stream: list[tuple[Any, str]]) -> None:
        writer = ChunkWriter(version, message_id="m", tools="dynamic" if len(stream) % 2 else "named")
        chunks = [chunk for event, lane in stream for chunk in writer.write(event, lane)] + writer.close()
        encoder = SseEncoder()
        streams.append([encoder.encode(chunk).decode()[6:-2] for chunk in chunks])

    logging.disable(logging.CRITICAL)
    write()
    logging.disable(logging.NOTSET)
    return streams


@pytest.mark.parametrize("version", VERSIONS)
def test_any_events_are_read_without_an_error(judge: Judge, version: int) -> None:
    streams = written(version)
    answers = judge.ask("read", version, [{"sse": sse(texts)} for texts in streams])
    for texts, answer in zip(streams, answers, strict=True):
        errors = [json.loads(text)["errorText"] for text in texts if text.startswith('{"type":"error"')]
        assert [error["message"] for error in answer["errors"]] == errors, texts
    messages = [{"messages": [answer["message"]]} for answer in answers if answer.get("message")]
    assert len(messages) > EXAMPLES * 0.9
    for item, verdict in zip(messages, judge.ask("validate", version, messages), strict=True):
        assert "error" not in verdict, item


def test_our_reader_makes_the_same_message(judge: Judge) -> None:
    streams = written(7)[:200]
    answers = judge.ask("read", 7, [{"sse": sse(texts)} for texts in streams])
    for texts, answer in zip(streams, answers, strict=True):
        reader = UIMessageReader()
        seen = [reader.message for text in texts if reader.feed(text)]
        assert as_javascript_has_it(json.loads(encode(seen[-1]))) == as_javascript_has_it(answer["message"]), texts


@pytest.mark.parametrize("version", VERSIONS)
def test_the_headers_of_a_stream_are_those_of_the_sdk(judge: Judge, version: int) -> None:
    """R-O27: other tests compare what is sent with these."""
    assert judge.ask("headers", version, [None]) == [STREAM_HEADERS]
