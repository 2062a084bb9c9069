"""JSON to the types and back: nothing lost, nothing added, nothing that a client would choke on."""

from __future__ import annotations

import json
import math
from random import Random
from typing import Any

import msgspec
import pytest

from support.ai_sdk_messages import message
from support.ai_sdk_streams import any_chunk
from turnlog.aisdk import (
    DataChunk,
    DynamicToolUIPart,
    FinishChunk,
    StartChunk,
    TextDeltaChunk,
    TextUIPart,
    ToolApproval,
    ToolOutputAvailableChunk,
    ToolUIPart,
    UICitation,
    UIMessage,
    UnknownChunk,
    UnknownUIPart,
    encode,
    encode_chunk,
    parse_chunk,
    parse_ui_message,
    parse_ui_messages,
)
from turnlog.aisdk.json_text import parse_json, same_json, without_unsafe_keys
from turnlog.errors import ShapeError


def user(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": "m", "role": "user", "parts": list(parts), **fields}


def test_a_message_becomes_values_with_names() -> None:
    """R-S1 to R-S3, R-S9, R-S10."""
    parsed = parse_ui_message(
        user(
            {"type": "text", "text": "hi", "state": "done", "providerMetadata": {"p": {"a": 1}}},
            {"type": "dynamic-tool", "toolName": "read", "toolCallId": "c", "state": "output-available",
             "input": {"a": 1}, "output": None, "approval": {"id": "p", "approved": True}},
            {"type": "tool-read", "toolCallId": "c", "state": "input-available", "input": None},
            metadata=None,
        )
    )  # fmt: skip
    text, dynamic, tool = parsed.parts
    assert text == TextUIPart(text="hi", state="done", provider_metadata={"p": {"a": 1}})
    assert isinstance(dynamic, DynamicToolUIPart)
    assert dynamic.output is None
    assert dynamic.approval == ToolApproval(id="p", approved=True)
    assert isinstance(tool, ToolUIPart)
    assert tool.tool_name == "read"
    assert parsed.metadata is None


def test_unknown_keys_stay_at_every_level() -> None:
    """R-S13."""
    source = {"type": "source", "sourceType": "url", "id": "s", "url": "u", "zz": 1}
    citations = [{"source": source, "yy": 2}]
    part = {"type": "text", "text": "a", "startedAt": 5, "$extra": {"x": 1}, "citations": citations}
    original = user(part, createdAt="now")
    parsed = parse_ui_message(original)
    assert isinstance(parsed.parts[0], TextUIPart)
    assert parsed.parts[0].extra == {"startedAt": 5, "$extra": {"x": 1}}
    assert isinstance(parsed.parts[0].citations, tuple)
    assert isinstance(parsed.parts[0].citations[0], UICitation)
    assert json.loads(encode(parsed)) == original


@pytest.mark.parametrize("kind", ["image", "tool-invocation", "source", ""])
def test_an_unknown_part_fails_strictly_and_passes_leniently(kind: str) -> None:
    """R-S2, R-S14."""
    original = user({"type": kind, "toolInvocation": {"state": "result"}})
    with pytest.raises(ShapeError, match=r"parts\[0\]"):
        parse_ui_message(original)
    parsed = parse_ui_message(original, strict=False)
    assert parsed.parts == (UnknownUIPart(value=original["parts"][0]),)
    assert parsed.parts[0].type == kind
    assert json.loads(encode(parsed)) == original


@pytest.mark.parametrize("seed", range(3))
def test_any_message_comes_back_as_it_was(seed: int) -> None:
    """R-S13: byte-equal with sorted keys, whatever it holds."""
    random = Random(seed)
    for _ in range(300):
        original = message(random)
        try:
            parsed = parse_ui_message(original, strict=False)
        except ShapeError:
            continue
        assert same_json(json.loads(encode(parsed)), original)
        assert parse_ui_message(encode(parsed), strict=False) == parsed


@pytest.mark.parametrize("seed", range(3))
def test_any_chunk_comes_back_as_it_was(seed: int) -> None:
    random = Random(seed)
    for _ in range(300):
        original = any_chunk(random)
        for data in (original, json.dumps(original), json.dumps(original).encode()):
            parsed = parse_chunk(data, strict=False)
            assert same_json(json.loads(encode(parsed)), original)


def test_an_error_in_a_list_names_its_place() -> None:
    good = user({"type": "text", "text": "a"})
    assert len(parse_ui_messages(json.dumps([good, good]))) == 2
    with pytest.raises(ShapeError) as caught:
        parse_ui_messages([good, user({"type": "text", "text": "a", "state": "complete"})])
    assert caught.value.json_path == "$[1].parts[0].state"
    with pytest.raises(ShapeError, match="a list"):
        parse_ui_messages(b"{}")


@pytest.mark.parametrize(
    "broken",
    [
        {},
        [],
        None,
        {"id": 1, "role": "user", "parts": []},
        {"id": "m", "role": "tool", "parts": []},
        {"id": "m", "role": "user"},
    ],
)
def test_without_id_role_and_parts_it_is_no_message_even_leniently(broken: Any) -> None:
    with pytest.raises(ShapeError):
        parse_ui_message(json.dumps(broken), strict=False)


@pytest.mark.parametrize("strict", [True, False])
def test_a_message_without_an_id_is_taken_where_that_is_requested(strict: bool) -> None:
    """R-S1: `convertToModelMessages` and `readUIMessageStream` take it, `validateUIMessages` does not."""
    data = '[{"role": "user", "parts": [{"type": "text", "text": "Hi"}]}]'
    with pytest.raises(ShapeError):
        parse_ui_messages(data, strict=strict)
    (message,) = parse_ui_messages(data, strict=strict, require_id=False)
    assert (message.id, message.role) == ("", "user")
    with pytest.raises(ShapeError):
        parse_ui_messages('[{"id": null, "role": "user", "parts": []}]', strict=strict, require_id=False)


@pytest.mark.parametrize("text", ["", "{", "NaN", '{"a":1', "\ufeff{}", b"\xff"])
def test_what_is_no_json_is_a_shape_error(text: str | bytes) -> None:
    for parse in (parse_chunk, parse_ui_message, parse_ui_messages):
        with pytest.raises(ShapeError, match="not JSON"):
            parse(text)


def test_a_required_null_is_needed_and_an_optional_one_refused() -> None:
    assert parse_chunk('{"type":"tool-output-available","toolCallId":"c","output":null}') == ToolOutputAvailableChunk(
        tool_call_id="c", output=None
    )
    for refused in ('{"type":"tool-output-available","toolCallId":"c"}', '{"type":"start","messageId":null}'):
        with pytest.raises(ShapeError):
            parse_chunk(refused)


def test_an_unknown_chunk_fails_strictly_and_passes_leniently() -> None:
    data = {"type": "new-kind", "a": [1]}
    with pytest.raises(ShapeError, match="new-kind"):
        parse_chunk(data)
    assert parse_chunk(data, strict=False) == UnknownChunk(value=data)


def test_a_chunk_is_judged_by_the_release_that_reads_it() -> None:
    denied = '{"type":"tool-output-denied","toolCallId":"c"}'
    interrupted = '{"type":"finish","finishReason":"interrupted"}'
    unknown = '{"type":"finish","finishReason":"unknown"}'
    foreign = '{"type":"start-step","new":1}'
    for version, refused in ((5, denied), (6, interrupted), (7, unknown), ("5.0.216", foreign), ("6.0.230", foreign)):
        with pytest.raises(ShapeError):
            parse_chunk(refused, version=version)
    assert parse_chunk(unknown, version=5) == FinishChunk(finish_reason="unknown")
    assert parse_chunk(interrupted, version=7) == FinishChunk(finish_reason="interrupted")
    assert parse_chunk(foreign, version="5.0.217").extra == {"new": 1}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_written_as_null(number: float) -> None:
    chunk = DataChunk(type="data-x", data={"a": [number, "\ud83d"]})
    assert encode_chunk(chunk) == b'{"type":"data-x","data":{"a":[null,"\\ud83d"]}}'


def test_a_torn_character_is_written_as_an_escape() -> None:
    assert encode_chunk(TextDeltaChunk(id="t", delta="\ud83d")) == b'{"type":"text-delta","id":"t","delta":"\\ud83d"}'
    assert parse_chunk(b'{"type":"text-delta","id":"t","delta":"\\ud83d"}') == TextDeltaChunk(id="t", delta="\ud83d")


def test_exact_json_passes_through_as_it_is() -> None:
    chunk = ToolOutputAvailableChunk(tool_call_id="c", output=msgspec.Raw(b'{"n":1.50,"big":123456789012345678901}'))
    assert encode_chunk(chunk).endswith(b'"output":{"n":1.50,"big":123456789012345678901}}')
    parsed = parse_chunk(encode_chunk(chunk))
    assert isinstance(parsed, ToolOutputAvailableChunk)
    assert parsed.output == {"n": 1.5, "big": 123456789012345678901}


UNSAFE: list[dict[str, Any]] = [{"a": [{"__proto__": {}}]}, {"constructor": {"prototype": 1}}]


@pytest.mark.parametrize("unsafe", UNSAFE)
def test_keys_that_reach_prototypes_are_neither_read_nor_written(unsafe: dict[str, Any]) -> None:
    with pytest.raises(ShapeError, match="prototype"):
        encode_chunk(StartChunk(message_metadata=unsafe))
    with pytest.raises(ShapeError, match="prototype"):
        parse_chunk(json.dumps({"type": "start", "messageMetadata": unsafe}))
    encode_chunk(StartChunk(message_metadata=without_unsafe_keys(unsafe)))


@pytest.mark.parametrize("unsafe", UNSAFE)
def test_a_message_may_hold_them(unsafe: dict[str, Any]) -> None:
    """Requests are read by JavaScript's own parser."""
    original = user({"type": "data-x", "data": unsafe}, metadata=unsafe)
    assert json.loads(encode(parse_ui_message(json.dumps(original)))) == original


def test_text_that_only_speaks_of_prototypes_is_fine() -> None:
    chunk = StartChunk(message_metadata={"text": '"__proto__": {}', "constructor": [1], "prototype": 1})
    assert parse_chunk(encode_chunk(chunk)) == chunk
    assert without_unsafe_keys(chunk.message_metadata) is chunk.message_metadata


def test_deep_json_is_an_error_and_no_crash() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    with pytest.raises(ShapeError, match="too deep"):
        parse_chunk(f'{{"type":"data-x","data":{deep}}}')
    moderate: Any = 1
    for _ in range(400):
        moderate = {"a": moderate}
    original = user({"type": "text", "text": "", "providerMetadata": {"p": {"a": moderate}}})
    assert json.loads(encode(parse_ui_message(original))) == original


def test_numbers_are_exact_and_beyond_floats_infinite() -> None:
    assert parse_json("123456789012345678901234567890") == 123456789012345678901234567890
    assert parse_json("1e999") == math.inf
    assert parse_json("9" * 5000) == math.inf


def test_true_is_not_one() -> None:
    assert not same_json({"a": [True]}, {"a": [1]})
    assert same_json({"a": 1.0, "b": []}, {"b": (), "a": 1})
    assert not same_json([1], [1, 2])


def test_a_list_of_messages_is_written_as_one_array() -> None:
    messages = [UIMessage(id=name, role="user", parts=(TextUIPart(text=name),)) for name in ("a", "b")]
    assert parse_ui_messages(encode(messages)) == messages


@pytest.mark.parametrize("field", ['"input"', '"output"', '"providerMetadata"', '"data"'])
def test_what_is_nested_too_deep_is_no_chunk(field: str) -> None:
    deep = '{"a":' * 5000 + "1" + "}" * 5000
    for kind in ("tool-input-available", "tool-output-available", "text-start", "data-x"):
        chunk = '{"type":"%s","id":"i","toolCallId":"c","toolName":"t","input":1,"output":1,"data":1,%s:%s}'
        with pytest.raises(ShapeError):
            parse_chunk(chunk % (kind, field, deep))


@pytest.mark.parametrize("value", [{"type": "text", "text": "hi"}, "text", b"{}", None, [{"id": "m"}]])
def test_what_was_not_parsed_is_not_written(value: Any) -> None:
    with pytest.raises(TypeError, match="parse JSON first"):
        encode(value)
