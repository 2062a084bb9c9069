"""What is served as each API is read as the recorded answer, whole and as a stream (R-S42)."""

import json
from typing import Any

import pytest

from support.cassette_histories import CONVERSATION, recorded_logs
from support.provider_messages import assistant, call, thinking
from support.provider_streams import sse
from turnlog.cassette.apis import api_of
from turnlog.model import Message, ReasoningPart, TextPart, ToolCallPart, Usage
from turnlog.providers import provider

PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "gemini": "/v1beta/models/m:generateContent",
}
REQUEST: dict[str, Any] = {
    "thinking": {"type": "adaptive"},
    "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
    "stream_options": {"include_usage": True},
}


def whole(name: str, message: Message, body: dict[str, Any] = REQUEST) -> Message:
    api = api_of(PATHS[name])
    assert api is not None
    return provider(name).from_response(json.dumps(api.answer(message, body)))


def streamed(name: str, message: Message, body: dict[str, Any] = REQUEST) -> Message:
    api = api_of(PATHS[name])
    assert api is not None
    events = list(api.events(message, body))
    assert events.count("[DONE]") == (name == "openai-chat")
    reading = provider(name).read_stream([sse([event for event in events if not isinstance(event, str)])])
    assert list(reading)
    return reading.message


def contents_of(message: Message) -> list[Any]:
    """What an answer says, however an API orders and joins it."""
    texts = "".join([part.text for part in message.parts if isinstance(part, TextPart)])
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    return [texts.strip(), [(part.tool_call_id, part.tool_name, part.input_value()) for part in calls]]


@pytest.mark.parametrize("name", PATHS)
def test_answers_come_back(name: str) -> None:
    for message in CONVERSATION:
        if message.role == "assistant":
            read = whole(name, message)
            assert contents_of(read) == contents_of(message)
            assert streamed(name, message) == read
            assert (read.id, read.model) == (message.id, message.model)
            # An API where calls wait for results says so.
            assert read.stop_reason == ("tool_use" if contents_of(message)[1] else "stop")


@pytest.mark.parametrize("name", PATHS)
def test_reasoning_comes_to_whom_requests_it(name: str) -> None:
    message = CONVERSATION[2]
    (thought,) = [part for part in whole(name, message).parts if isinstance(part, ReasoningPart)]
    assert thought.text == "Let me see."
    if name in ("anthropic", "gemini"):
        assert not any(isinstance(part, ReasoningPart) for part in streamed(name, message, {}).parts)
    if name == "anthropic":
        assert thought.provider
        assert thought.provider.opaque["signature"] == "c2ln"
        sealed = assistant(thinking("", "anthropic", data="c2VhbGVk"), "a")
        assert whole(name, sealed).parts[0].provider == streamed(name, sealed).parts[0].provider
        assert isinstance(whole(name, sealed).parts[0], ReasoningPart)


@pytest.mark.parametrize("name", PATHS)
def test_tokens_come_back_in_the_apis_own_sums(name: str) -> None:
    usage = whole(name, CONVERSATION[2]).usage
    assert usage is not None
    assert usage.cache_read == 5
    assert usage.total == 27
    assert streamed(name, CONVERSATION[2]).usage == usage
    unknown = whole(name, assistant("a")).usage
    assert unknown is None or unknown.total == 0


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("reason", ["length", "content_filter", "aborted"])
def test_stop_reasons(name: str, reason: Any) -> None:
    expected = {"length": "length", "content_filter": "content_filter", "aborted": "stop"}[reason]
    if (name, reason) == ("anthropic", "content_filter"):
        expected = "refusal"
    message = assistant("half", stop_reason=reason)
    assert whole(name, message).stop_reason == streamed(name, message).stop_reason == expected


@pytest.mark.parametrize("name", PATHS)
def test_arguments_that_are_no_object_are_served_too(name: str) -> None:
    for text in ('["a"]', "not JSON at all", "*** Begin Patch\n"):
        message = assistant(call("c1", name="T", input_text=text), usage=Usage())
        (one,) = whole(name, message).parts
        assert isinstance(one, ToolCallPart)
        assert text.strip() in json.dumps(one.input_value()).replace("\\n", "\n").replace('\\"', '"')
        assert streamed(name, message).parts == (one,)


def test_a_custom_tool_is_called_as_one() -> None:
    body = {"tools": [{"type": "custom", "name": "apply_patch"}]}
    message = assistant(call("c1", name="apply_patch", input_text="*** Begin"))
    (one,) = whole("responses", message, body).parts
    assert isinstance(one, ToolCallPart)
    assert one.input_text == "*** Begin"
    assert streamed("responses", message, body).parts == (one,)


@pytest.mark.parametrize("name", PATHS)
def test_an_answer_of_withheld_thoughts_alone_is_an_answer(name: str) -> None:
    message = assistant(thinking("", "google"))
    for body in ({}, REQUEST):
        assert contents_of(whole(name, message, body)) == contents_of(streamed(name, message, body)) == ["", []]


@pytest.mark.parametrize("name", PATHS)
def test_recorded_answers_come_back(name: str) -> None:
    answers = [
        exchange.answer
        for made in recorded_logs().values()
        for track in made.cassette.tracks
        for exchange in track.exchanges
    ]
    assert len(answers) > 300
    for answer in answers:
        read = whole(name, answer)
        if name not in ("anthropic", "gemini") or all(is_object(part) for part in answer.parts):
            assert contents_of(read) == contents_of(answer)
        assert contents_of(streamed(name, answer)) == contents_of(read)


def is_object(part: Any) -> bool:
    return not isinstance(part, ToolCallPart) or isinstance(part.input_value(), dict)
