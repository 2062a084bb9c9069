"""What streams of all providers have in common (R-K10, R-K28)."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.errors import ShapeError
from turnlog.model.stream import Abort, StreamError
from turnlog.providers import provider, provider_names
from turnlog.providers.sse import SseDecoder

EVENTS: list[Any] = [{"a": "ä\n🤔"}, {"b": [1, 2]}, {}]
LINES = [': hello\n\nevent: x\ndata: {"a": "ä\\n🤔"}\n\n', 'data:{"b":\ndata: [1, 2]}\n\n', "id: 1\ndata: {}\n\n"]


@given(st.lists(st.integers(0, 90), max_size=12), st.sampled_from(["\n", "\r\n", "\r"]))
def test_bytes_may_be_cut_anywhere_and_lines_may_end_anyhow(cuts: list[int], line_end: str) -> None:
    data = "".join([*LINES, "data: [DONE]\n\n"]).replace("\n", line_end).encode()
    places = sorted({0, *cuts, len(data)})
    decoder = SseDecoder()
    events = [event for start, end in pairwise(places) for event in decoder.feed(data[start:end])]
    assert [*events, *decoder.finish()] == EVENTS
    assert decoder.done


def test_an_event_without_its_blank_line_counts_if_it_is_whole() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b'data: {"a": 1}') == []
    assert decoder.finish() == [{"a": 1}]
    broken = SseDecoder()
    broken.feed(b'data: {"a": ')
    assert broken.finish() == []


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
