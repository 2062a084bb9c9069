"""What streams of all providers have in common (R-K10, R-K28)."""

import copy
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.profiles import examples
from support.provider_messages import asking
from turnlog.aisdk.writer import ChunkWriter, write_chunks
from turnlog.errors import ShapeError
from turnlog.model.codec import decode_message, encode
from turnlog.model.stream import Abort, RunFinish, StreamError
from turnlog.providers import provider, provider_names
from turnlog.providers.streaming import parse_events
from turnlog.sse import SseDecoder

DATA = Path(__file__).parents[1] / "data/provider_streams"
EVENTS: list[Any] = [{"a": "ä\n🤔"}, {"b": [1, 2]}, {}]
LINES = [': hello\n\nevent: x\ndata: {"a": "ä\\n🤔"}\n\n', 'data:{"b":\ndata: [1, 2]}\n\n', "id: 1\ndata: {}\n\n"]


@given(st.lists(st.integers(0, 90), max_size=12), st.sampled_from(["\n", "\r\n", "\r"]))
def test_bytes_may_be_cut_anywhere_and_lines_may_end_anyhow(cuts: list[int], line_end: str) -> None:
    data = "".join([*LINES, "data: [DONE]\n\n"]).replace("\n", line_end).encode()
    places = sorted({0, *cuts, len(data)})
    decoder = SseDecoder()
    found = [each for start, end in pairwise(places) for each in decoder.feed(data[start:end])]
    found += decoder.finish()
    assert found[-1] == b"[DONE]"
    assert parse_events(found) == EVENTS


def test_an_event_without_its_blank_line_counts_if_it_is_whole() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b'data: {"a": 1}') == []
    assert parse_events(decoder.finish()) == [{"a": 1}]
    assert decoder.finish() == []
    stream = provider("anthropic").open_stream()
    stream.feed(b'data: {"a": ')
    assert [event.kind for event in stream.finish() if isinstance(event, StreamError)] == ["stream-ended"]


@pytest.mark.parametrize("name", provider_names())
def test_every_provider_reads_responses(name: str) -> None:
    with pytest.raises(ShapeError):
        provider(name).from_response("[]")
    reading = provider(name).read_stream([])
    assert any(isinstance(event, StreamError) for event in reading)
    assert reading.message.stop_reason == "error"
    stream = provider(name).open_stream(requested_model="alias")
    assert stream.finish(aborted=True) == [Abort()]
    assert (stream.message.stop_reason, stream.message.requested_model) == ("aborted", "alias")


JUNK: list[Any] = [None, True, -1, 1.5, 10**30, "", "x", "\ud800", "NaN", [], {}, [None], [{}], {"a": 1}]
"""What a field of an event may hold that is not of its kind."""


def recorded_events(name: str) -> list[Any]:
    return parse_events(SseDecoder().feed((DATA / f"{name}.sse").read_bytes()))


def spoil(value: Any, random: Random) -> None:
    """Put junk somewhere into an event."""
    while isinstance(value, dict | list) and value:
        held = cast("Any", value)
        key: Any = random.choice(list(held)) if isinstance(value, dict) else random.randrange(len(held))
        if not isinstance(held[key], dict | list) or not held[key] or random.random() < 0.3:
            held[key] = copy.deepcopy(random.choice(JUNK))
            return
        value = held[key]


def disorder(events: list[Any], random: Random) -> list[Any]:
    """The events with some left out, said twice, swapped or spoiled."""
    for _ in range(random.randint(1, 4)):
        first, second = random.randrange(len(events)), random.randrange(len(events))
        match random.randrange(4):
            case 0:
                del events[first]
            case 1:
                events.insert(second, copy.deepcopy(events[first]))
            case 2:
                events[first], events[second] = events[second], events[first]
            case _:
                spoil(events[first], random)
    return events


@pytest.mark.parametrize("name", provider_names())
@settings(max_examples=examples(40), deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_a_stream_in_disorder_has_one_end_and_a_message_that_can_be_kept(name: str, random: Random) -> None:
    """R-K28."""
    stream = provider(name).open_stream()
    found_events = [event for each in disorder(recorded_events(name), random) for event in stream.feed(each)]
    found_events += stream.finish()
    assert [type(event) for event in found_events if isinstance(event, RunFinish | Abort)] == [RunFinish]
    assert list(write_chunks(found_events, ChunkWriter()))
    message = decode_message(encode(stream.message))
    assert provider(name).to_request([message], asking()).body


@pytest.mark.parametrize("name", provider_names())
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(
                ["type", "index", "delta", "choices", "candidates", "item", "response", "message", "error"]
            ),
            st.recursive(
                st.none() | st.integers() | st.sampled_from(["message_start", "error", "response.created", "text"]),
                lambda inner: (
                    st.lists(inner, max_size=2)
                    | st.dictionaries(st.sampled_from(["type", "index", "delta", "content", "parts", "text"]), inner)
                ),
                max_leaves=6,
            ),
        ),
        max_size=4,
    )
)
def test_no_event_is_too_strange(name: str, events: list[Any]) -> None:
    stream = provider(name).open_stream()
    for event in events:
        stream.feed(event)
    stream.finish()
    assert stream.message.role == "assistant"
