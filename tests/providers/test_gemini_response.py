"""Responses of Gemini, whole and streamed (R-K28)."""

from typing import Any

import msgspec
import pytest
from google.genai.types import FinishReason, GenerateContentResponse

from support.provider_messages import asking, result, user
from support.provider_streams import byte_by_byte, pieces, sse
from turnlog.errors import ShapeError
from turnlog.model import FilePart, Message, ReasoningPart, SourceUrlPart, TextPart, ToolCallPart, ToolState, Usage
from turnlog.model.stream import (
    ReasoningDelta,
    SourceEvent,
    StepFinish,
    StreamError,
    TextDelta,
    ToolInputAvailable,
    ToolOutput,
)
from turnlog.providers.gemini import PROVIDER as gemini

Json = dict[str, Any]

PARTS: list[Json] = [
    {"text": "Think 🤔 about it", "thought": True},
    {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
    {"text": "It is ä one."},
    {"functionCall": {"id": "c1", "name": "read", "args": {"path": "ü"}}, "thoughtSignature": "c2ln"},
    {"functionCall": {"name": "now", "args": {}}},
]
WHOLE: Json = {
    "responseId": "r1",
    "modelVersion": "gemini-3-pro",
    "candidates": [
        {
            "index": 0,
            "content": {"role": "model", "parts": PARTS},
            "finishReason": "STOP",
            "groundingMetadata": {"groundingChunks": [{"web": {"uri": "https://e.org", "title": "E"}}]},
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "candidatesTokenCount": 20,
        "thoughtsTokenCount": 30,
        "toolUsePromptTokenCount": 5,
        "totalTokenCount": 155,
    },
}


def body(*parts: Json, finish: str = "STOP", **more: Any) -> Json:
    return {
        **WHOLE,
        "candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}],
        **more,
    }


def events_of(whole: Json) -> list[Json]:
    """The stream with the contents of a body: texts in pieces, usage and reason in the last event."""
    head = {name: whole[name] for name in ("responseId", "modelVersion")}
    [candidate] = whole["candidates"]
    cut: list[Json] = []
    for part in candidate["content"]["parts"]:
        plain = "text" in part and "thoughtSignature" not in part
        cut += [{**part, "text": piece} for piece in pieces(part["text"])] if plain else [part]
    streamed = [{**head, "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]} for part in cut]
    last = {**candidate, "content": {"role": "model", "parts": [{"text": ""}]}}
    return [*streamed, {**head, "candidates": [last], "usageMetadata": whole["usageMetadata"]}]


def test_the_fixtures_are_what_the_sdk_knows() -> None:
    for each in (WHOLE, *events_of(WHOLE)):
        GenerateContentResponse.model_validate(each)


def test_a_body_becomes_a_message_with_everything() -> None:
    """R-K28: signatures on the part that brought them, usage in disjoint buckets."""
    message = gemini.from_response(WHOLE, requested_model="gemini-pro-latest")
    thought, program, answer_text, signed, unsigned, source = message.parts
    assert isinstance(thought, ReasoningPart)
    assert isinstance(program, ToolCallPart)
    assert (program.provider_executed, program.output_text, program.state) == (True, "1\n", ToolState.OUTPUT_AVAILABLE)
    assert isinstance(answer_text, TextPart)
    assert isinstance(signed, ToolCallPart)
    assert signed.provider is not None
    assert (signed.tool_call_id, signed.provider.opaque) == ("c1", {"thought_signature": "c2ln"})
    assert isinstance(unsigned, ToolCallPart)
    assert (unsigned.tool_call_id, unsigned.provider) == ("r1:5", None)
    assert isinstance(source, SourceUrlPart)
    assert (message.stop_reason, message.raw_stop_reason) == ("tool_use", "STOP")
    assert message.usage == Usage(input=40, cache_read=60, output=20, reasoning=30, tool_prompt=5)


def test_a_stream_cut_at_every_byte_is_the_body() -> None:
    streaming = gemini.open_stream()
    events = byte_by_byte(streaming, sse(events_of(WHOLE)))
    message = gemini.from_response(WHOLE)
    assert streaming.message == message
    assert "".join([event.delta for event in events if isinstance(event, TextDelta)]) == "It is ä one."
    assert "".join([event.delta for event in events if isinstance(event, ReasoningDelta)]) == "Think 🤔 about it"
    available = [event.tool_call_id for event in events if isinstance(event, ToolInputAvailable)]
    assert available == ["r1:1", "c1", "r1:5"]
    assert [event.tool_call_id for event in events if isinstance(event, ToolOutput)] == ["r1:1"]
    assert len([event for event in events if isinstance(event, SourceEvent)]) == 1
    assert events[-2] == StepFinish(stop_reason="tool_use", raw_stop_reason="STOP", usage=message.usage)


def test_what_came_goes_back_unchanged() -> None:
    sent_back = [PARTS[0], PARTS[3], {**PARTS[4], "functionCall": {"name": "read", "args": {"path": "ü"}}}, PARTS[5]]
    message = gemini.from_response(body(*sent_back))
    parts = [
        msgspec.structs.replace(part, results=(result("done", id="r"),)) if isinstance(part, ToolCallPart) else part
        for part in message.parts
    ]
    history = [user("go"), msgspec.structs.replace(message, parts=tuple(parts))]
    sent = gemini.to_request(history, asking("gemini-3-pro"), strict=True).body["contents"][1]["parts"]
    assert sent == sent_back


def test_an_early_end_and_an_error_keep_what_came() -> None:
    events = events_of(WHOLE)
    data = sse(events[:-1])
    for end in range(0, len(data), 97):
        streaming = gemini.open_stream()
        streaming.feed(data[:end])
        streaming.finish()
        assert streaming.message.error is not None
        assert streaming.message.error.kind == "stream-ended"
    failing = gemini.open_stream()
    failing.feed(events[0])
    error = {"error": {"code": 503, "status": "UNAVAILABLE", "message": "Busy"}}
    assert failing.feed(error)[-1] == StreamError(error_text="Busy", kind="UNAVAILABLE")
    [thought] = failing.message.parts
    assert isinstance(thought, ReasoningPart)
    assert (thought.text, thought.state, failing.message.stop_reason) == ("Think", "streaming", "error")


FILTERED = {
    "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR",
    "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "ESCALATION", "PUP_LIMITED_DISABLED",
}  # fmt: skip
FAILED = {
    "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE",
    "MALFORMED_RESPONSE", "NO_IMAGE", "IMAGE_OTHER", "OTHER",
}  # fmt: skip
NORMAL = {"STOP": "stop", "MAX_TOKENS": "length", "CONTINUATION": "pause"}


@pytest.mark.parametrize("raw", [reason.value for reason in FinishReason])
def test_stop_reasons(raw: str) -> None:
    message = gemini.from_response(body({"text": "x"}, finish=raw))
    normal = "content_filter" if raw in FILTERED else "error" if raw in FAILED else NORMAL.get(raw)
    assert (message.stop_reason, message.raw_stop_reason) == (normal, raw)


def test_a_malformed_call_says_what_was_wrong() -> None:
    whole = body(finish="MALFORMED_FUNCTION_CALL")
    whole["candidates"][0]["finishMessage"] = "Malformed function call: read("
    message = gemini.from_response(whole)
    assert message.error is not None
    assert (message.error.text, message.error.kind) == ("Malformed function call: read(", "MALFORMED_FUNCTION_CALL")


def test_a_blocked_prompt_has_no_candidates() -> None:
    blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "responseId": "r1"}
    message: Message = gemini.from_response(blocked)
    assert (message.stop_reason, message.raw_stop_reason) == ("content_filter", "PROHIBITED_CONTENT")
    reading = gemini.read_stream([blocked])
    assert not [event for event in reading if isinstance(event, StreamError)]
    assert reading.message == message


def test_pages_of_every_kind_of_search_are_sources() -> None:
    """As the grounding of a search, of a search for images, of maps and of one's own documents has them."""
    chunks = [
        {"image": {"sourceUri": "https://e.org/page", "imageUri": "https://e.org/i.png", "title": "I"}},
        {"maps": {"uri": "https://maps.example/1", "title": "M", "placeId": "places/1"}},
        {"retrievedContext": {"uri": "https://e.org/d", "title": "D", "text": "d"}},
        {"retrievedContext": {"uri": "gs://bucket/d.pdf", "title": "kept in the metadata"}},
        {"web": {"title": "no address"}},
    ]
    whole = body({"text": "a"})
    whole["candidates"][0]["groundingMetadata"] = {"groundingChunks": chunks}
    message = gemini.from_response(whole)
    sources = [(part.url, part.title) for part in message.parts if isinstance(part, SourceUrlPart)]
    assert sources == [("https://e.org/page", "I"), ("https://maps.example/1", "M"), ("https://e.org/d", "D")]
    assert message.metadata["google"]["groundingMetadata"]["groundingChunks"] == chunks


def test_images_are_files() -> None:
    [image] = gemini.from_response(body({"inlineData": {"mimeType": "image/png", "data": "AAEC"}})).parts
    assert isinstance(image, FilePart)
    assert (image.media_type, image.data) == ("image/png", b"\x00\x01\x02")


@pytest.mark.parametrize("wrong", [b"[]", {}, {"candidates": 1}])
def test_what_is_no_response_is_refused(wrong: Any) -> None:
    with pytest.raises(ShapeError):
        gemini.from_response(wrong)
