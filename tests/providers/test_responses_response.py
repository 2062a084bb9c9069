"""Responses of OpenAI's Responses API, whole and streamed (R-K28)."""

from typing import Any

import msgspec
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from support.exact_json import exact
from support.provider_messages import asking, result, user
from support.provider_streams import byte_by_byte, pieces, sse
from turnlog.errors import ShapeError
from turnlog.model import FilePart, Message, ReasoningPart, TextPart, ToolCallPart, ToolState, UnknownPart, Usage
from turnlog.model.stream import ReasoningDelta, StepFinish, StreamError, TextDelta, ToolInputAvailable
from turnlog.providers.responses import PROVIDER as responses

Json = dict[str, Any]

CITATION: Json = {"type": "url_citation", "url": "https://e.org", "title": "E", "start_index": 0, "end_index": 2}
REASONING: Json = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "First ä."}, {"type": "summary_text", "text": "Second."}],
    "encrypted_content": "sealed",
}
SEARCH: Json = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "ä"},
}
ANSWER: Json = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "phase": "commentary",
    "content": [{"type": "output_text", "text": "On it 🤔", "annotations": [CITATION]}],
}
CALL: Json = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "read",
    "arguments": '{ "path": "ü" }',
    "status": "completed",
}
CUSTOM: Json = {
    "type": "custom_tool_call",
    "id": "ct_1",
    "call_id": "call_2",
    "name": "patch",
    "input": "*** Begin",
    "status": "completed",
}
WHOLE: Json = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "the-model",
    "status": "completed",
    "output": [REASONING, SEARCH, ANSWER, CALL, CUSTOM],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "service_tier": "default",
    "usage": {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 30},
        "total_tokens": 150,
    },
}


def response(*items: Json, **fields: Any) -> Message:
    return responses.from_response({**WHOLE, "output": list(items), **fields})


def events_of(whole: Json) -> list[Json]:
    """The stream with the contents of a body."""
    begun: Json = {**whole, "output": [], "status": "in_progress", "usage": None}
    events: list[Json] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(whole["output"]):
        events += [{**event, "output_index": index} for event in _item_events(item)]
    events.append({"type": "response.completed", "response": whole})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _item_events(item: Json) -> list[Json]:
    kind, item_id = item["type"], item["id"]
    started: Json = {**item, "status": "in_progress"}
    deltas: list[Json] = []
    if kind == "message":
        started["content"] = []
        deltas = [
            {"type": "response.output_text.delta", "content_index": 0, "delta": piece, "logprobs": []}
            for piece in pieces(item["content"][0]["text"])
        ]
    elif kind == "reasoning":
        started |= {"summary": [], "encrypted_content": None}
        deltas = [
            {"type": "response.reasoning_summary_text.delta", "summary_index": at, "delta": piece}
            for at, summary in enumerate(item["summary"])
            for piece in pieces(summary["text"])
        ]
    elif kind in ("function_call", "custom_tool_call"):
        field, word = (
            ("arguments", "function_call_arguments") if kind == "function_call" else ("input", "custom_tool_call_input")
        )
        started[field] = ""
        deltas = [{"type": f"response.{word}.delta", "delta": piece} for piece in pieces(item[field])]
    return [
        {"type": "response.output_item.added", "item": started},
        *[{**delta, "item_id": item_id} for delta in deltas],
        {"type": "response.output_item.done", "item": item},
    ]


def test_the_fixtures_are_what_the_sdk_knows() -> None:
    Response.model_validate(WHOLE)
    for event in events_of(WHOLE):
        TypeAdapter[Any](ResponseStreamEvent).validate_python(event)


def test_a_body_becomes_a_message_with_everything() -> None:
    """R-K28: items in order with their ids, usage in disjoint buckets."""
    message = responses.from_response(WHOLE, requested_model="alias")
    thought, search, output_text, call, custom = message.parts
    assert isinstance(thought, ReasoningPart)
    assert thought.text == "First ä.\n\nSecond."
    assert thought.provider is not None
    assert thought.provider.opaque == {"id": "rs_1", "encrypted_content": "sealed"}
    assert isinstance(search, ToolCallPart)
    assert (search.provider_executed, search.state) == (True, ToolState.OUTPUT_AVAILABLE)
    assert isinstance(output_text, TextPart)
    assert output_text.citations[0].url == "https://e.org"
    assert isinstance(call, ToolCallPart)
    assert exact(call.input) == '{ "path": "ü" }'.encode()
    assert isinstance(custom, ToolCallPart)
    assert custom.input_text == "*** Begin"
    assert (message.stop_reason, message.raw_stop_reason, message.requested_model) == ("tool_use", "completed", "alias")
    assert message.usage == Usage(
        input=30, cache_read=60, cache_write=10, output=20, reasoning=30, service_tier="default"
    )


def test_a_stream_cut_at_every_byte_is_the_body() -> None:
    streaming = responses.open_stream()
    events = byte_by_byte(streaming, sse(events_of(WHOLE), named=True))
    message = responses.from_response(WHOLE)
    assert streaming.message == message
    assert "".join([event.delta for event in events if isinstance(event, TextDelta)]) == "On it 🤔"
    assert "".join([event.delta for event in events if isinstance(event, ReasoningDelta)]) == "First ä.\n\nSecond."
    available = [event.tool_call_id for event in events if isinstance(event, ToolInputAvailable)]
    assert available == ["ws_1", "call_1", "call_2"]
    assert events[-2] == StepFinish(stop_reason="tool_use", raw_stop_reason="completed", usage=message.usage)


def test_items_sent_one_by_one_do_where_the_last_word_has_none() -> None:
    *events, last = events_of(WHOLE)
    reading = responses.read_stream([*events, {**last, "response": {**WHOLE, "output": []}}])
    assert not [event for event in reading if isinstance(event, StreamError)]
    assert reading.message == responses.from_response(WHOLE)


def test_what_came_goes_back_unchanged() -> None:
    plain: Json = {**ANSWER, "content": [{**ANSWER["content"][0], "annotations": []}]}
    message = response(REASONING, SEARCH, plain, CALL)
    parts = [
        msgspec.structs.replace(part, results=(result("done", id="r"),))
        if isinstance(part, ToolCallPart) and not part.provider_executed
        else part
        for part in message.parts
    ]
    history = [user("go"), msgspec.structs.replace(message, parts=tuple(parts))]
    _, thought, search, output_text, call, _ = responses.to_request(history, asking(), strict=True).body["input"]
    joined = [{"type": "summary_text", "text": "First ä.\n\nSecond."}]
    assert (thought, search, output_text) == ({**REASONING, "summary": joined}, SEARCH, plain)
    assert call == {name: value for name, value in CALL.items() if name != "status"}


def test_an_early_end_keeps_what_came() -> None:
    events = events_of(WHOLE)
    data = sse(events[:-1])
    for end in range(0, len(data), 211):
        streaming = responses.open_stream()
        streaming.feed(data[:end])
        streaming.finish()
        assert streaming.message.error is not None
        assert streaming.message.error.kind == "stream-ended"
    cut = next(at for at, event in enumerate(events) if event["type"] == "response.function_call_arguments.delta")
    streaming = responses.open_stream()
    for event in events[: cut + 1]:
        streaming.feed(event)
    call = streaming.message.parts[-1]
    assert isinstance(call, ToolCallPart)
    assert (call.state, call.input_text) == (ToolState.INPUT_STREAMING, CALL["arguments"][:5])
    assert [part.text for part in streaming.message.parts if isinstance(part, TextPart)] == ["On it 🤔"]


@pytest.mark.parametrize(
    "last",
    [
        {"type": "error", "code": "server_error", "message": "Down"},
        {
            "type": "response.failed",
            "response": {**WHOLE, "status": "failed", "error": {"code": "server_error", "message": "Down"}},
        },
    ],
)
def test_an_error_in_the_middle_ends_the_stream(last: Json) -> None:
    streaming = responses.open_stream()
    for event in events_of(WHOLE)[:6]:
        streaming.feed(event)
    assert streaming.feed(last)[-1] == StreamError(error_text="Down", kind="server_error")
    assert (streaming.message.stop_reason, streaming.message.parts[0].type) == ("error", "reasoning")


@pytest.mark.parametrize(
    ("fields", "normal", "raw"),
    [
        ({}, "stop", "completed"),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "length",
            "max_output_tokens",
        ),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            "content_filter",
            "content_filter",
        ),
        ({"status": "cancelled"}, "aborted", "cancelled"),
        ({"status": "failed"}, "error", "failed"),
        ({"status": "something_new"}, None, "something_new"),
    ],
)
def test_stop_reasons(fields: Json, normal: str | None, raw: str) -> None:
    message = response(ANSWER, **fields)
    assert (message.stop_reason, message.raw_stop_reason) == (normal, raw)


def test_a_refusal_is_text_and_a_stop_reason() -> None:
    message = response({**ANSWER, "content": [{"type": "refusal", "refusal": "No."}]})
    assert message.stop_reason == "refusal"
    assert [part.text for part in message.parts if isinstance(part, TextPart)] == ["No."]


def test_tools_that_openai_ran_bring_their_results() -> None:
    image = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AAEC"}
    remote = {"type": "mcp_call", "id": "mcp_1", "name": "ask", "server_label": "s", "arguments": "{}", "error": "no"}
    drawn, requested, novel = response(image, remote, {"type": "novel", "id": "n"}).parts
    assert isinstance(drawn, ToolCallPart)
    [file] = drawn.results[0].content
    assert isinstance(file, FilePart)
    assert file.data == b"\x00\x01\x02"
    assert isinstance(requested, ToolCallPart)
    assert (requested.tool_name, requested.state, requested.results[0].error_text) == (
        "ask",
        ToolState.OUTPUT_ERROR,
        "no",
    )
    assert isinstance(novel, UnknownPart)


@pytest.mark.parametrize("wrong", [b"[]", {}, {"output": 1}])
def test_what_is_no_response_is_refused(wrong: Any) -> None:
    with pytest.raises(ShapeError):
        responses.from_response(wrong)
