"""The data of server-sent events, however their bytes arrive."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from turnlog.sse import SseDecoder

WIRE = (
    b"\xef\xbb\xbf: hello\n\ndata: one\r\n\r\nevent: x\rid: 1\rdata:two\rdata\rdata: three\r\r"
    b"retry: 5\n\ndata: \xc3\xa9\n\n\n\ndata: lost\n"
)


@given(st.lists(st.integers(0, len(WIRE))))
def test_events_are_read_however_the_bytes_are_cut(cuts: list[int]) -> None:
    decoder, borders = SseDecoder(), [0, *sorted(cuts), len(WIRE)]
    found = [event for start, end in pairwise(borders) for event in decoder.feed(WIRE[start:end])]
    assert found == [b"one", b"two\n\nthree", "é".encode()]


def test_a_carriage_return_at_the_end_may_be_half_of_a_line_end() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: one\r\r") == []
    assert decoder.feed(b"\ndata: two\r\n\r") == [b"one"]
    assert decoder.feed(b"data: three") == [b"two"]


def test_an_event_that_no_blank_line_closes_comes_at_the_end_only() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: one\n\ndata: two\r") == [b"one"]
    assert decoder.finish() == [b"two"]
    assert decoder.finish() == []
