"""R-K11, R-S13: every value of the model survives JSON, known or not, whatever text a log may hold."""

from __future__ import annotations

import json
import math
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.model_values import JSON, RAW, ROOTS, UNKNOWN_FIELDS, values_of
from turnlog.model import (
    DataPart,
    FilePart,
    HistoryEvent,
    Membership,
    Message,
    Part,
    Session,
    StreamEvent,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultEvent,
    UnknownPart,
    Usage,
)
from turnlog.model.base import Value
from turnlog.model.codec import (
    decode_event,
    decode_membership,
    decode_message,
    decode_part,
    decode_session,
    decode_stream_event,
    encode,
    encode_known,
    repair_text,
    to_json,
)
from turnlog.model.lenient_json import parse_json

SURROGATE = "\ud83d"


def decode(data: bytes, kind: Any) -> Any:
    """By the public decoder for values of this kind."""
    plain = {Message: decode_message, Session: decode_session, Membership: decode_membership}
    if kind in plain:
        return plain[kind](data)
    unions: list[tuple[Any, Any]] = [
        (Part, decode_part),
        (HistoryEvent, decode_event),
        (StreamEvent, decode_stream_event),
    ]
    return next(read for union, read in unions if kind in union.__args__)(data)


@pytest.mark.parametrize("kind", ROOTS, ids=lambda kind: kind.__name__)
def test_every_kind_of_value_is_equal_after_a_round_trip(kind: Any) -> None:
    @given(values_of(kind))
    def check(value: Value) -> None:
        data = encode(value)
        assert decode(data, kind) == value
        assert encode(decode(data, kind)) == data
        assert encode_known(value) == data
        assert "$extra" not in msgspec.json.decode(data)

    check()


@given(values_of(Message), UNKNOWN_FIELDS, st.randoms(use_true_random=False))
def test_unknown_fields_at_every_level_are_written_back_where_they_were(
    message: Message, fields: dict[str, msgspec.Raw], random: Any
) -> None:
    """R-S13: unknown keys survive, also those called like a field of ours that never reaches JSON."""
    document = msgspec.json.decode(encode(message))
    foreign = {name: msgspec.json.decode(raw) for name, raw in fields.items()}
    _sprinkle(document, foreign, random)
    data = msgspec.json.encode(document)
    assert msgspec.json.decode(encode(decode_message(data))) == document


def _sprinkle(document: Any, foreign: dict[str, Any], random: Any) -> None:
    if isinstance(document, list):
        for item in cast("list[Any]", document):
            _sprinkle(item, foreign, random)
    elif isinstance(document, dict):
        fields = cast("dict[str, Any]", document)
        for item in fields.values():
            _sprinkle(item, foreign, random)
        if random.random() < 0.5:
            fields.update(foreign)


@given(st.text(min_size=1, max_size=8), JSON)
def test_a_kind_of_part_that_is_not_ours_keeps_its_exact_json(tag: str, content: Any) -> None:
    """R-S2: preserved verbatim in a lenient read, in a message and in a result."""
    kind = f"hologram {tag}"
    foreign = bytes(to_json({"type": kind, "depth": content, "id": 7}))
    text = encode(TextPart(text="before"))
    result = b'{"id":"r","content":[' + foreign + b"]}"
    call = b'{"type":"tool-call","tool_call_id":"c","tool_name":"t","results":[' + result + b"]}"
    data = b'{"id":"m","role":"assistant","parts":[' + b",".join((text, foreign, call)) + b"]}"
    message = decode_message(data)
    called = message.parts[2]
    assert isinstance(called, ToolCallPart)
    for part in (message.parts[1], called.results[0].content[0]):
        assert isinstance(part, UnknownPart)
        assert (part.kind, bytes(part.data)) == (repair_text(kind), foreign)
    assert message.parts[0] == TextPart(text="before")
    assert decode_message(encode(message)) == message


_TEXT = b'{"type":"text","text":"a"}'
_MESSAGE = b'{"id":"m","role":"user","parts":[' + _TEXT + b"]}"


@pytest.mark.parametrize(
    ("decode", "sound", "odd"),
    [
        (decode_part, _TEXT, _TEXT.replace(b"text", b"hologram", 1)),
        (decode_part, _TEXT, b'{"text":"a"}'),
        (decode_part, _TEXT, _TEXT.replace(b"}", b',"font":"b"}')),
        (decode_message, _MESSAGE, _MESSAGE.replace(b"text", b"hologram", 1)),
        (decode_message, _MESSAGE, _MESSAGE.replace(b"}]", b',"font":"b"}]')),
        (decode_message, _MESSAGE, _MESSAGE.replace(b"user", b'user","mood":"fine')),
    ],
)
def test_what_is_unknown_is_refused_in_strict_mode(decode: Any, sound: bytes, odd: bytes) -> None:
    """R-K1: kinds and fields; and it is kept in the usual mode."""
    assert decode(sound, strict=True) == decode(sound)
    with pytest.raises(msgspec.ValidationError):
        decode(odd, strict=True)
    assert decode(odd) != decode(sound)


def test_a_part_without_a_kind_is_unknown_and_kept() -> None:
    part = decode_part(b'{"text":"no type"}')
    assert isinstance(part, UnknownPart)
    assert (part.kind, bytes(part.data)) == ("", b'{"text":"no type"}')


def test_a_tool_input_may_hold_an_extra_of_its_own() -> None:
    data = b'{"type":"tool-call","tool_call_id":"c","tool_name":"t","input":{"extra":{"$extra":[1]}, "b":1, "a":2}}'
    part = decode_part(data)
    assert isinstance(part, ToolCallPart)
    assert part.extra == {}
    assert bytes(cast("msgspec.Raw", part.input)) == b'{"extra":{"$extra":[1]}, "b":1, "a":2}'
    assert b'"input":{"extra":{"$extra":[1]}, "b":1, "a":2}' in encode(part)


@given(RAW)
def test_json_of_an_application_stays_as_it_was_written(raw: msgspec.Raw) -> None:
    """R-K15: the exact JSON, its order and its spaces."""
    spaced = msgspec.Raw(b'{"z" : ' + bytes(raw) + b', "a":\t1}')
    part = decode_part(encode(DataPart(name="n", data=spaced)))
    assert isinstance(part, DataPart)
    assert bytes(part.data) == bytes(spaced)


def test_equal_values_have_equal_bytes_in_any_order_of_keys() -> None:
    one = Message(id="m", role="user", metadata={"b": 1, "a": {"d": 1, "c": 2}})
    other = Message(id="m", role="user", metadata={"a": {"c": 2, "d": 1}, "b": 1})
    assert encode(one) == encode(other)


@pytest.mark.parametrize("place", ["text", "metadata", "key", "beside an unknown field", "tool name"])
def test_a_lone_surrogate_becomes_the_replacement_character(place: str) -> None:
    broken = f"a{SURROGATE}b"
    known: dict[str, Any] = {
        "text": {"parts": (TextPart(text=broken),)},
        "metadata": {"metadata": {"a": ["x", broken]}},
        "key": {"metadata": {broken: 1}},
        "beside an unknown field": {"parts": (TextPart(text=broken, extra={"x": msgspec.Raw(b"1")}),)},
        "tool name": {"parts": (ToolCallPart(tool_call_id="c", tool_name=broken),)},
    }[place]
    data = encode(Message(id="m", role="user", **known))
    assert "a\ufffdb".encode() in data
    assert encode(decode_message(data)) == data


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("1e999", "Infinity"),
        ("-1e999", "-Infinity"),
        ("1e3", 1000.0),
        ("9" * 40, int("9" * 40)),
        ("-" + "9" * 5000, "-" + "9" * 5000),
        ('"\\ud83d"', SURROGATE),
        ('"\\u0000"', "\0"),
    ],
)
def test_numbers_and_text_that_json_cannot_hold_have_one_representation(written: str, value: Any) -> None:
    parsed = parse_json(f'{{"a":[{written}]}}')
    assert parsed == {"a": [value]}
    kept = repair_text(value) if isinstance(value, str) else value
    assert msgspec.json.decode(to_json(parsed)) == {"a": [kept]}
    metadata = decode_message(encode(Message(id="m", role="user", metadata=parsed))).metadata
    assert metadata == {"a": [kept]}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_never_written_as_null(number: float) -> None:
    name = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(number)]
    assert bytes(to_json({"b": [number], "a": 1})) == f'{{"b":["{name}"],"a":1}}'.encode()
    part = decode_part(encode(TextPart(text="", metadata={"deep": [{"x": number}]})))
    assert part.metadata == {"deep": [{"x": name}]}


def test_deep_nesting_is_an_error_that_can_be_caught_and_not_a_crash() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    with pytest.raises(RecursionError):
        decode_message(b'{"id":"m","role":"user","metadata":{"a":' + deep + b"}}")
    with pytest.raises(RecursionError):
        parse_json(deep)


WRONG: dict[str, tuple[Any, bytes]] = {
    "a required field is missing": (decode_message, b'{"id":"m"}'),
    "a required field of a part is missing": (decode_message, b'{"id":"m","role":"user","parts":[{"type":"text"}]}'),
    "… beside an unknown field": (decode_message, b'{"id":"m","role":"user","new":1,"parts":[{"type":"file"}]}'),
    "a role that is none (R-S1)": (decode_message, b'{"id":"m","role":"wizard"}'),
    "no object": (decode_message, b"[]"),
    "null where there must be a list": (decode_message, b'{"id":"m","role":"user","parts":null}'),
    "null where there must be a value": (decode_session, b'{"id":"a:b","agent":"a","external_id":"b","counts":null}'),
    "null in a list of values": (decode_message, b'{"id":"m","role":"user","parts":[null]}'),
    "a kind that is no text": (decode_part, b'{"type":7}'),
    "an event of an unknown kind": (decode_event, b'{"type":"earthquake"}'),
    "a stream event without its id": (decode_stream_event, b'{"type":"text-start"}'),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_known_field_of_the_wrong_shape_is_a_validation_error(case: str) -> None:
    read, data = WRONG[case]
    with pytest.raises(msgspec.ValidationError):
        read(data)


@pytest.mark.parametrize("data", [b"", b"{", b'{"id":"m","role":"user"} x', b"\xff\xfe"])
def test_what_is_no_json_is_a_decode_error(data: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        decode_message(data)


def test_every_optional_field_may_be_null() -> None:
    document = json.loads(encode(Message(id="m", role="user", usage=Usage(input=1), parts=(FilePart(media_type="x"),))))
    document |= {"usage": None, "x": 1}
    document["parts"][0] |= {"blob": None, "provider": None, "y": 2}
    message = decode_message(json.dumps(document).encode())
    assert message.usage is None
    assert message.parts[0].extra == {"y": msgspec.Raw(b"2")}


def test_derived_texts_of_results() -> None:
    """R-K3: all text of a result is joined; what is no text stays apart."""
    image = FilePart(media_type="image/png", data=b"\x89")
    first = ToolResult(id="1", preliminary=True, content=(TextPart(text="so far"),))
    last = ToolResult(id="2", content=(TextPart(text="a"), image, TextPart(text="b")))
    call = ToolCallPart(tool_call_id="c", tool_name="t", results=(first, last), input=msgspec.Raw(b'{"a":1}'))
    assert last.output_text == "a\nb"
    assert call.output_text == "a\nb"
    assert msgspec.structs.replace(call, results=(first,)).output_text == "so far"
    assert msgspec.structs.replace(call, results=()).output_text == ""
    assert call.input_value() == {"a": 1}
    event = decode_event(encode(ToolResultEvent(tool_call_id="c", result=last)))
    assert isinstance(event, ToolResultEvent)
    assert event.parts == (image,)
    assert event.output_text == "a\nb"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (b'{"a":1e400,"b":-1e400}', {"a": "Infinity", "b": "-Infinity"}),
        (b'{"a":"\\ud800"}', {"a": "\ud800"}),
        (b"12345678901234567890123", 12345678901234567890123),
    ],
)
def test_an_input_that_only_a_tolerant_parser_reads_has_values(written: bytes, value: Any) -> None:
    """A model may write such numbers, and logs hold them."""
    assert ToolCallPart(tool_call_id="c", tool_name="t", input=msgspec.Raw(written)).input_value() == value
