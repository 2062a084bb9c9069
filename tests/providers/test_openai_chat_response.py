"""Responses of Chat Completions and OpenRouter, whole and streamed (R-K28)."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from support.exact_json import exact
from support.provider_messages import asking, result, user
from support.provider_streams import byte_by_byte, pieces, sse
from turnlog.aisdk.writer import ChunkWriter, write_chunks
from turnlog.errors import ShapeError
from turnlog.model import FilePart, Message, ReasoningPart, TextPart, ToolCallPart, ToolState, Usage
from turnlog.model.stream import ReasoningDelta, StepFinish, StreamError, TextDelta, ToolInputAvailable
from turnlog.providers.openai_chat import PROVIDER as openai_chat
from turnlog.providers.openrouter import PROVIDER as openrouter

Json = dict[str, Any]

CALLS: list[Json] = [
    {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{ "path": "ü" }'}},
    {"id": "call_2", "type": "function", "function": {"name": "read", "arguments": '{"path": '}},
]
USAGE: Json = {
    "prompt_tokens": 100,
    "completion_tokens": 50,
    "total_tokens": 150,
    "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
    "completion_tokens_details": {"reasoning_tokens": 30},
}
DETAIL: Json = {"type": "reasoning.text", "text": "so it is", "signature": "sig", "format": "f-v1", "index": 0}


def body(answer: Json, finish: str = "tool_calls", **more: Any) -> Json:
    choice = {"index": 0, "finish_reason": finish, "logprobs": None, "message": {"role": "assistant", **answer}}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "the-model"}
    return {**head, "choices": [choice], "usage": USAGE, **more}


def chunks(whole: Json) -> list[Json]:
    """The stream with the contents of a body, its usage in the last chunk."""
    choice = whole["choices"][0]
    head = {**whole, "object": "chat.completion.chunk", "usage": None}
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    for name, value in choice["message"].items():
        if name in ("content", "refusal", "reasoning", "reasoning_content") and value:
            deltas += [{name: piece} for piece in pieces(value)]
        elif name == "tool_calls":
            deltas += [delta for index, call in enumerate(value) for delta in _call_deltas(index, call)]
        elif name == "reasoning_details":
            deltas += [{name: [{**DETAIL, "text": piece, "signature": None}]} for piece in pieces(DETAIL["text"])]
            deltas.append({name: [{**DETAIL, "text": ""}]})
        elif isinstance(value, list):
            deltas.append({name: value})
    found_events = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    last: Json = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    return [*found_events, last, {**head, "choices": [], "usage": whole["usage"]}]


def _call_deltas(index: int, call: Json) -> list[Json]:
    function = call["function"]
    first = {**call, "index": index, "function": {**function, "arguments": ""}}
    more = [{"index": index, "function": {"arguments": piece}} for piece in pieces(function["arguments"])]
    return [{"tool_calls": [each]} for each in (first, *more)]


WHOLE = body({"content": "On it. ä", "reasoning_content": "think 🤔", "tool_calls": CALLS})
ROUTED = body({"content": "On it.", "reasoning": "so it is", "reasoning_details": [DETAIL], "tool_calls": CALLS[:1]})
REFUSED = body({"content": None, "refusal": "No, I will not."}, "stop")


@pytest.mark.parametrize("whole", [WHOLE, ROUTED, REFUSED])
def test_the_fixtures_are_what_the_sdk_knows(whole: Json) -> None:
    ChatCompletion.model_validate(whole)
    for chunk in chunks(whole):
        ChatCompletionChunk.model_validate(chunk)


def test_a_body_becomes_a_message_with_everything() -> None:
    """R-K28: reasoning keeps its field, arguments their exact text, usage is disjoint."""
    message = openai_chat.from_response({**WHOLE, "service_tier": "flex"}, requested_model="alias")
    thought, answer_text, read, broken = message.parts
    assert isinstance(thought, ReasoningPart)
    assert (thought.text, thought.provider and thought.provider.opaque) == (
        "think 🤔",
        {"reasoning_field": "reasoning_content"},
    )
    assert isinstance(answer_text, TextPart)
    assert isinstance(read, ToolCallPart)
    assert isinstance(broken, ToolCallPart)
    assert exact(read.input) == '{ "path": "ü" }'.encode()
    assert (broken.input_text, broken.state) == ('{"path": ', ToolState.INPUT_AVAILABLE)
    assert (message.requested_model, message.model, message.stop_reason) == ("alias", "the-model", "tool_use")
    assert message.usage == Usage(input=30, cache_read=60, cache_write=10, output=20, reasoning=30, service_tier="flex")


@pytest.mark.parametrize(("provider", "whole"), [(openai_chat, WHOLE), (openrouter, ROUTED), (openai_chat, REFUSED)])
def test_a_stream_cut_at_every_byte_is_the_body(provider: Any, whole: Json) -> None:
    streaming = provider.open_stream()
    events = byte_by_byte(streaming, sse(chunks(whole), done=True))
    message: Message = provider.from_response(whole)
    assert streaming.message == message
    for kind, delta in ((TextPart, TextDelta), (ReasoningPart, ReasoningDelta)):
        answer_text = "".join([part.text for part in message.parts if isinstance(part, kind)])
        assert "".join([event.delta for event in events if isinstance(event, delta)]) == answer_text
    calls = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
    assert [event.tool_call_id for event in events if isinstance(event, ToolInputAvailable)] == calls
    assert isinstance(events[-2], StepFinish)
    assert events[-2].usage == message.usage
    assert [event for event in events if isinstance(event, StreamError)] == []


def _answered(message: Message) -> Message:
    parts = [
        msgspec.structs.replace(part, results=(result("done", id="r"),)) if isinstance(part, ToolCallPart) else part
        for part in message.parts
    ]
    return msgspec.structs.replace(message, parts=tuple(parts))


@pytest.mark.parametrize(
    ("provider", "whole", "field"),
    [(openai_chat, WHOLE, "reasoning_content"), (openrouter, ROUTED, "reasoning_details")],
)
def test_what_came_goes_back_unchanged(provider: Any, whole: Json, field: str) -> None:
    message = provider.from_response(whole)
    sent = provider.to_request([user("go"), _answered(message)], asking(), strict=True).body["messages"][1]
    came = whole["choices"][0]["message"]
    assert {name: sent[name] for name in ("content", "tool_calls", field)} == {
        name: came[name] for name in ("content", "tool_calls", field)
    }


def test_calls_without_an_index_are_distinguished_by_their_ids() -> None:
    streaming = openai_chat.open_stream()
    for chunk in chunks(WHOLE):
        for choice in chunk["choices"]:
            for call in choice["delta"].get("tool_calls", ()):
                del call["index"]
        streaming.feed(chunk)
    streaming.finish()
    assert streaming.message == openai_chat.from_response(WHOLE)


Quirk = Callable[[Json], None]


def _repeat_empty_names(delta: Json) -> None:
    """As DashScope: what was said before is said again, empty."""
    if "id" not in delta:
        delta |= {"id": "", "type": "", "function": {"name": "", **delta.get("function", {})}}


def _count_nothing(delta: Json) -> None:
    """As Gemini behind Chat Completions: every call is the first."""
    delta["index"] = 0


def fed(all_chunks: list[Json]) -> Message:
    """The message of a stream, of which every event must have its place on a chat page."""
    streaming = openai_chat.open_stream()
    found_events = [event for chunk in all_chunks for event in streaming.feed(chunk)]
    assert list(write_chunks([*found_events, *streaming.finish()], ChunkWriter(strict=True)))
    return streaming.message


@pytest.mark.parametrize("quirk", [_repeat_empty_names, _count_nothing])
def test_calls_are_distinguished_whatever_a_server_repeats(quirk: Quirk) -> None:
    all_chunks = chunks(WHOLE)
    for call in [call for each in all_chunks for choice in each["choices"] for call in _calls_of(choice)]:
        quirk(call)
    assert fed(all_chunks) == openai_chat.from_response(WHOLE)


def _calls_of(choice: Json) -> list[Json]:
    return choice["delta"].get("tool_calls", [])


def test_a_new_id_in_every_chunk_does_not_cut_the_answer() -> None:
    all_chunks = [{**chunk, "id": f"other-{number}"} for number, chunk in enumerate(chunks(WHOLE))]
    assert fed(all_chunks) == openai_chat.from_response({**WHOLE, "id": "other-0"})


def test_thinking_may_be_a_piece_of_the_content() -> None:
    """As Mistral's models that reason."""
    thought = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]
    message = openai_chat.from_response(body({"content": [*thought, {"type": "text", "text": "so"}]}, "stop"))
    assert [(part.type, getattr(part, "text", "")) for part in message.parts] == [("reasoning", "hm"), ("text", "so")]
    deltas: list[Json] = [{"content": thought}, {"content": [{"type": "text", "text": "so"}]}, {}]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "the-model", "usage": USAGE}
    ends = [None, None, "stop"]
    streamed = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        for delta, end in zip(deltas, ends, strict=True)
    ]
    assert fed(streamed).parts == message.parts


def test_an_early_end_and_an_error_keep_what_came() -> None:
    all_chunks = chunks(WHOLE)
    data = sse(all_chunks)
    for end in range(0, len(sse(all_chunks[:-2])), 173):
        streaming = openai_chat.open_stream()
        streaming.feed(data[:end])
        streaming.finish()
        assert streaming.message.error is not None
        assert streaming.message.error.kind == "stream-ended"
    failing = openrouter.open_stream()
    found_events = failing.feed(sse([*all_chunks[:4], {"error": {"code": 502, "message": "Gone"}, "choices": []}]))
    assert found_events[-1] == StreamError(error_text="Gone")
    error = failing.message.error
    assert error is not None
    assert (error.text, error.status, failing.message.stop_reason) == ("Gone", 502, "error")


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("tool_calls", "tool_use"),
        ("function_call", "tool_use"),
        ("content_filter", "content_filter"),
        ("sensitive", "content_filter"),
        ("model_context_window_exceeded", "context_window"),
        ("insufficient_system_resource", "error"),
        ("network_error", "error"),
        ("error", "error"),
        ("something_new", None),
    ],
)
def test_stop_reasons(raw: str, normal: str | None) -> None:
    message = openai_chat.from_response(body({"content": "x"}, raw))
    assert (message.stop_reason, message.raw_stop_reason) == (normal, raw)


def test_a_refusal_and_unnamed_calls_change_the_stop_reason() -> None:
    assert openai_chat.from_response(REFUSED).stop_reason == "refusal"
    assert openai_chat.from_response(body({"tool_calls": CALLS[:1]}, "stop")).stop_reason == "tool_use"


@pytest.mark.parametrize(
    ("wire", "usage"),
    [
        (
            {"prompt_tokens": 9, "prompt_cache_hit_tokens": 4, "completion_tokens": 2},
            Usage(input=5, cache_read=4, output=2),
        ),
        ({"prompt_tokens": 9, "cached_tokens": 4, "completion_tokens": 2}, Usage(input=5, cache_read=4, output=2)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "total_tokens": 16,
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
            Usage(input=9, output=2, reasoning=5),
        ),
        ({}, None),
    ],
)
def test_usage_of_the_dialects(wire: Json, usage: Usage | None) -> None:
    """R-K28: DeepSeek and Kimi name their cache differently; some servers count reasoning on top."""
    assert openai_chat.from_response(body({"content": "x"}, usage=wire)).usage == usage


def test_citations_images_costs_and_other_choices() -> None:
    page = {"url": "https://example.org", "title": "E", "start_index": 0, "end_index": 2}
    whole = body(
        {
            "content": "As said",
            "annotations": [{"type": "url_citation", "url_citation": page}],
            "images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC"}}],
        },
        "stop",
        usage={**USAGE, "cost": 0.25},
    )
    whole["choices"].append({"index": 1, "message": {"content": "other"}})
    message = openrouter.from_response(whole)
    answer_text, image = message.parts
    assert isinstance(answer_text, TextPart)
    assert (answer_text.citations[0].url, answer_text.citations[0].end_index) == ("https://example.org", 2)
    assert isinstance(image, FilePart)
    assert (image.media_type, image.data) == ("image/png", b"\x00\x01\x02")
    assert message.cost is not None
    assert message.cost.amount == Decimal("0.25")
    assert message.metadata["openrouter"]["other_choices"][0]["message"]["content"] == "other"


@pytest.mark.parametrize("wrong", [b"[]", {}, {"choices": 1}])
def test_what_is_no_response_is_refused(wrong: Any) -> None:
    with pytest.raises(ShapeError):
        openai_chat.from_response(wrong)
