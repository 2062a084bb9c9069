"""Responses of the Anthropic Messages API, whole and streamed (R-K28)."""

from typing import Any

import msgspec
import pytest
from anthropic.types import Message as SdkMessage
from anthropic.types import RawMessageStreamEvent
from pydantic import TypeAdapter

from support.provider_messages import asking, result, user
from support.provider_streams import byte_by_byte, pieces, plain, sse
from turnlog.errors import ShapeError
from turnlog.model import Message, ReasoningPart, TextPart, ToolCallPart, ToolState, UnknownPart, Usage
from turnlog.model.stream import (
    ReasoningDelta,
    StepFinish,
    StreamError,
    TextDelta,
    ToolInputAvailable,
    ToolInputDelta,
    ToolOutput,
)
from turnlog.providers.anthropic import PROVIDER as anthropic
from turnlog.providers.streaming import ResponseStream

USAGE = {
    "input_tokens": 10,
    "cache_read_input_tokens": 200,
    "cache_creation_input_tokens": 35,
    "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 10},
    "output_tokens": 50,
    "output_tokens_details": {"thinking_tokens": 30},
    "service_tier": "priority",
    "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0},
}

PAGE = {
    "type": "web_search_result",
    "url": "https://example.org/a",
    "title": "A",
    "encrypted_content": "sealed",
    "page_age": "1 day",
}
CITATION = {
    "type": "web_search_result_location",
    "url": "https://example.org/a",
    "title": "A",
    "cited_text": "ä quote",
    "encrypted_index": "index",
}
CONTENT: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "Let me thinк 🤔 about it", "signature": "c2lnbmVk"},
    {"type": "redacted_thinking", "data": "withheld"},
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "ä"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [PAGE]},
    {"type": "text", "text": "As it says: “ä quote”.", "citations": [CITATION]},
    {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a/ü.py", "limit": 5}},
    {"type": "tool_use", "id": "toolu_2", "name": "Now", "input": {}},
]
BODY: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x-20250101",
    "content": CONTENT,
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": USAGE,
}

_DELTAS = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking")}


def events_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The stream with the contents of a body."""
    start: dict[str, Any] = {**body, "content": [], "stop_reason": None, "usage": {**body["usage"], "output_tokens": 1}}
    blocks = [event for index, block in enumerate(body["content"]) for event in _block_events(index, block)]
    delta = {"stop_reason": body["stop_reason"], "stop_sequence": body["stop_sequence"]}
    output = {name: USAGE[name] for name in ("output_tokens", "output_tokens_details")}
    return [
        {"type": "message_start", "message": start},
        *blocks,
        {"type": "message_delta", "delta": delta, "usage": output},
        {"type": "message_stop"},
    ]


def _block_events(index: int, block: dict[str, Any]) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = []
    start = dict(block)
    if block["type"] in _DELTAS:
        kind, name = _DELTAS[block["type"]]
        deltas = [{"type": kind, name: piece} for piece in pieces(block[name])]
        start[name] = ""
    if "signature" in block:
        start["signature"] = ""
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    if "citations" in block:
        start["citations"] = None
        deltas += [{"type": "citations_delta", "citation": each} for each in block["citations"]]
    if block.get("input"):
        start["input"] = {}
        written = msgspec.json.encode(block["input"]).decode()
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces(written)]]
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *[{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas],
        {"type": "content_block_stop", "index": index},
    ]


def stream(**fields: Any) -> ResponseStream:
    return anthropic.open_stream(**fields)


def answer(*content: dict[str, Any], **fields: Any) -> Message:
    return anthropic.from_response({**BODY, "content": list(content), **fields})


def test_the_fixtures_are_what_the_sdk_knows() -> None:
    SdkMessage.model_validate(BODY)
    for event in events_of(BODY):
        TypeAdapter[Any](RawMessageStreamEvent).validate_python(event)


def test_a_body_becomes_a_message_with_everything() -> None:
    """R-K28: parts in order, usage in disjoint buckets, the stop reason in both words."""
    message = anthropic.from_response(BODY, requested_model="claude-x")
    assert [part.type for part in message.parts] == [
        "reasoning",
        "reasoning",
        "tool-call",
        "text",
        "tool-call",
        "tool-call",
    ]
    assert (message.id, message.response_id, message.model) == ("msg_1", "msg_1", "claude-x-20250101")
    assert (message.requested_model, message.stop_reason, message.raw_stop_reason) == (
        "claude-x",
        "tool_use",
        "tool_use",
    )
    assert message.usage == Usage(
        input=10,
        cache_read=200,
        cache_write_5m=20,
        cache_write_1h=10,
        cache_write=5,
        output=20,
        reasoning=30,
        service_tier="priority",
        web_searches=1,
        web_fetches=0,
    )


def test_what_came_goes_back_unchanged() -> None:
    message = anthropic.from_response(BODY)
    calls = [
        msgspec.structs.replace(part, results=(result("done", id="r"),))
        if isinstance(part, ToolCallPart) and not part.provider_executed
        else part
        for part in message.parts
    ]
    history = [user("go"), msgspec.structs.replace(message, parts=tuple(calls))]
    sent = anthropic.to_request(history, asking("claude-x-20250101"), strict=True)
    assert sent.body["messages"][1]["content"] == CONTENT


def test_a_stream_cut_at_every_byte_is_the_body() -> None:
    streaming = stream(requested_model="claude-x")
    events = byte_by_byte(streaming, sse(events_of(BODY), named=True))
    whole = anthropic.from_response(BODY, requested_model="claude-x")
    assert plain(streaming.message) == plain(whole)
    assert "".join([event.delta for event in events if isinstance(event, TextDelta)]) == CONTENT[4]["text"]
    assert "".join([event.delta for event in events if isinstance(event, ReasoningDelta)]) == CONTENT[0]["thinking"]
    assert [event.tool_call_id for event in events if isinstance(event, ToolInputAvailable)] == [
        "srvtoolu_1",
        "toolu_1",
        "toolu_2",
    ]
    assert [event.tool_call_id for event in events if isinstance(event, ToolOutput)] == ["srvtoolu_1"]
    assert events[-2] == StepFinish(stop_reason="tool_use", raw_stop_reason="tool_use", usage=whole.usage)


def test_parsed_events_do_as_well_and_blocks_may_be_interleaved() -> None:
    first, *blocks, change, stop = events_of(BODY)
    turns = sorted(
        blocks, key=lambda event: (event["type"] == "content_block_stop", event["type"] != "content_block_start")
    )
    reading = anthropic.read_stream([first, *turns, change, stop])
    assert [event for event in reading if isinstance(event, StreamError)] == []
    assert plain(reading.message) == plain(anthropic.from_response(BODY))


def test_an_early_end_keeps_what_came() -> None:
    data = sse(events_of(BODY))
    for end in range(0, len(data) - 30, 97):
        streaming = stream()
        streaming.feed(data[:end])
        assert isinstance(streaming.finish()[-3], StreamError)
        assert streaming.message.stop_reason == "error"
        assert streaming.message.error is not None
        assert streaming.message.error.kind == "stream-ended"


def test_a_call_that_broke_off_stays_as_text() -> None:
    events = events_of({**BODY, "content": [CONTENT[0], CONTENT[5]]})
    streaming = stream()
    found_events = [event for each in events[:-4] for event in streaming.feed(each)]
    [*_, call] = streaming.message.parts
    assert isinstance(call, ToolCallPart)
    assert call.state is ToolState.INPUT_STREAMING
    assert call.input_text == "".join([event.delta for event in found_events if isinstance(event, ToolInputDelta)])
    assert streaming.finish(aborted=True)
    assert streaming.message.stop_reason == "aborted"
    assert streaming.feed(events[-1]) == []


def in_pieces(start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of an answer of one block."""
    return [
        events_of({**BODY, "content": []})[0],
        {"type": "content_block_start", "index": 0, "content_block": start},
        *[{"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas],
        {"type": "content_block_stop", "index": 0},
        *events_of(BODY)[-2:],
    ]


def test_a_call_without_arguments_is_one_with_none() -> None:
    """The API sends one empty piece where a tool takes nothing."""
    start: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "Now", "input": {}}
    streaming = stream()
    empty = {"type": "input_json_delta", "partial_json": ""}
    found_events = [event for each in in_pieces(start, empty) for event in streaming.feed(each)]
    [available] = [event for event in found_events if isinstance(event, ToolInputAvailable)]
    assert plain(streaming.message) == plain(answer(start))
    assert available == ToolInputAvailable(tool_call_id="t", tool_name="Now", input=msgspec.Raw(b"{}"))


def test_a_compaction_is_its_block() -> None:
    """It comes in one delta (`compact_20260112`)."""
    whole = {"type": "compaction", "content": "what happened", "encrypted_content": "c2VhbA=="}
    streaming = stream()
    for event in in_pieces({"type": "compaction", "content": None}, {**whole, "type": "compaction_delta"}):
        streaming.feed(event)
    assert streaming.message == answer(whole)


def test_calls_that_a_stream_begins_with_are_kept() -> None:
    """What a program had requested before is in `message_start` (programmatic tool calls)."""
    given = {**CONTENT[5], "caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}}
    start, *_, change, stop = events_of(BODY)
    streaming = stream()
    found_events = [
        event
        for each in ({**start, "message": {**start["message"], "content": [given]}}, change, stop)
        for event in streaming.feed(each)
    ]
    assert plain(streaming.message) == plain(answer(given))
    assert [event.tool_call_id for event in found_events if isinstance(event, ToolInputAvailable)] == [given["id"]]


def test_a_fallback_names_the_model_that_answered() -> None:
    block = {"type": "fallback", "from": {"model": "claude-a"}, "to": {"model": "claude-b"}}
    streaming = stream()
    for event in in_pieces(block):
        streaming.feed(event)
    assert streaming.message == answer(block, model="claude-b")


def test_a_container_that_is_not_sent_again_is_kept() -> None:
    container = {"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"}
    start, *_, change, stop = events_of(BODY)
    streaming = stream()
    for event in (
        {**start, "message": {**start["message"], "container": container}},
        {**change, "delta": {**change["delta"], "container": None}},
        stop,
    ):
        streaming.feed(event)
    assert streaming.message.metadata["anthropic"]["container"] == container


def test_broken_arguments_are_kept_as_they_came() -> None:
    start: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "Read", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": '{"path": "a'}
    streaming = stream()
    for event in (
        events_of(BODY)[0],
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
    ):
        streaming.feed(event)
    [call] = streaming.message.parts
    assert isinstance(call, ToolCallPart)
    assert (call.input_text, call.state) == ('{"path": "a', ToolState.INPUT_AVAILABLE)


def test_an_error_in_the_middle_ends_the_stream() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    streaming = stream()
    events = byte_by_byte(streaming, sse([*events_of(BODY)[:4], error]))
    assert StreamError(error_text="Overloaded", kind="overloaded_error") in events
    assert streaming.message.stop_reason == "error"
    assert isinstance(streaming.message.parts[0], ReasoningPart)
    assert streaming.message.parts[0].state == "streaming"


def test_what_is_no_json_is_an_error() -> None:
    streaming = stream()
    assert isinstance(streaming.feed(b"data: {oops\n\n")[-1], StreamError)


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("tool_use", "tool_use"),
        ("refusal", "refusal"),
        ("pause_turn", "pause"),
        ("compaction", "pause"),
        ("model_context_window_exceeded", "context_window"),
        ("something_new", None),
    ],
)
def test_stop_reasons(raw: str, normal: str | None) -> None:
    message = answer({"type": "text", "text": "x"}, stop_reason=raw)
    assert (message.stop_reason, message.raw_stop_reason) == (normal, raw)


def test_unknown_blocks_and_fields_are_kept() -> None:
    message = answer({"type": "novel", "x": []}, {"type": "text", "text": "x", "novel": 1}, container={"id": "c"})
    unknown, text = message.parts
    assert isinstance(unknown, UnknownPart)
    assert bytes(unknown.data) == b'{"type":"novel","x":[]}'
    assert isinstance(text, TextPart)
    assert text.metadata == {"anthropic": {"novel": 1}}
    assert message.metadata == {"anthropic": {"container": {"id": "c"}}}


def test_a_failed_search_says_why() -> None:
    failed = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    message = answer(CONTENT[2], {**CONTENT[3], "content": failed})
    [call] = message.parts
    assert isinstance(call, ToolCallPart)
    assert (call.state, call.results[0].error_text) == (ToolState.OUTPUT_ERROR, "max_uses_exceeded")


@pytest.mark.parametrize("body", [b"[]", b"{", {}, {"content": "x"}])
def test_what_is_no_response_is_refused(body: Any) -> None:
    with pytest.raises(ShapeError):
        anthropic.from_response(body)


def test_an_error_body_is_a_failed_answer() -> None:
    message = anthropic.from_response({"type": "error", "error": {"type": "api_error", "message": "Down"}})
    assert message.error is not None
    assert (message.stop_reason, message.error.text, message.error.kind) == ("error", "Down", "api_error")


def test_citations_that_are_no_list_do_not_hide_those_that_come() -> None:
    streaming = stream()
    for event in (
        events_of(BODY)[0],
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "x", "citations": 1}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": CITATION}},
    ):
        streaming.feed(event)
    [said] = streaming.message.parts
    assert isinstance(said, TextPart)
    assert [citation.url for citation in said.citations] == [CITATION["url"]]
