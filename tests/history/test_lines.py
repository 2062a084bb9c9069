"""R-K11: a history as lines of JSON."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.model_values import values_of
from support.profiles import examples
from support.replay_values import answer, call, user
from turnlog import read_session
from turnlog.history import decode_lines, encode_lines
from turnlog.model import ErrorEvent, HistoryEvent
from turnlog.model.codec import decode_event, encode

DATA = Path(__file__).parent.parent / "data"


@settings(max_examples=examples(40))
@given(st.lists(values_of(HistoryEvent), max_size=3))
def test_every_event_comes_back_equal_from_its_line(events: list[HistoryEvent]) -> None:
    """R-K11: equal to what the codec makes of it, whatever text it holds."""
    lines = list(encode_lines(events))
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in lines)
    read = decode_lines(b"".join(lines))
    assert read.bad_lines == ()
    assert read.events == tuple(decode_event(encode(event)) for event in events)


@pytest.mark.parametrize("arguments", ['{\n  "a": 1\n}', '{"a":\r\n1}'])
def test_arguments_that_span_lines_stay_exact_on_one(arguments: str) -> None:
    """R-K11, R-K15"""
    events = (user("before"), answer(call("c", arguments)))
    data = b"".join(encode_lines(events))
    assert data.count(b"\n") == 2
    assert decode_lines(data).events == events


BAD = {
    "torn": b'{"type":"error","id":"e","err',
    "of no kind": b'{"id":"e"}',
    "of an unknown kind": b'{"type":"hologram","id":"e"}',
    "without a field": b'{"type":"error","id":"e"}',
    "of a wrong shape": b'{"type":"error","id":3,"error_text":"no"}',
    "a list": b"[1]",
    "no text": b'{"type":"error","id":"\xff\xfe","error_text":"no"}',
    "too deep": b"[" * 100_000,
    "wrapped badly": b'{"$event":3}',
    "wrapped nothing": b'{"$event":"x"}',
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_reported_and_stops_nothing(name: str) -> None:
    """R-K11"""
    good = ErrorEvent(id="e", error_text="no")
    line = next(encode_lines([good]))
    read = decode_lines(line + b"\n" + BAD[name] + b"\n" + line)
    assert read.events == (good, good)
    (bad,) = read.bad_lines
    assert (bad.line, bad.offset) == (3, len(line) + 1)
    assert bad.reason


def test_what_other_writers_escape_is_read() -> None:
    """R-K11: a lone surrogate, and numbers that are none."""
    read = decode_lines([rb'{"type":"error","id":"e","error_text":"\ud800!","metadata":{"x":NaN}}'])
    assert read.bad_lines == ()
    assert read.events == (ErrorEvent(id="e", error_text="\ufffd!", metadata={"x": "NaN"}),)


def test_a_recorded_history_comes_back_equal() -> None:
    """R-K11"""
    (log, *_) = sorted((DATA / "klaude/versions/2.43.0").rglob("events.jsonl"))
    events = read_session(log).events
    assert decode_lines(encode_lines(events)).events == events
