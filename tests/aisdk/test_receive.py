"""UI messages of anybody -> history: what may be believed is kept, everything else is reported."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from support.ai_sdk_messages import message as random_message
from support.profiles import examples
from turnlog.aisdk import encode, parse_ui_messages, validate_ui_messages
from turnlog.aisdk.convert import to_ui_messages
from turnlog.aisdk.receive import Received, from_ui_messages
from turnlog.errors import ShapeError
from turnlog.model import FilePart, Message, Origin, TextPart, ToolCallPart, ToolState, UnknownPart

MESSAGES = examples(500)
SEED = 20261124


def received(*messages: dict[str, Any], trusted: bool = False) -> Received:
    return from_ui_messages(parse_ui_messages(json.dumps(messages), strict=False), trusted=trusted)


def assistant(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"id": "msg", "role": "assistant", "parts": list(parts)}


def again(*messages: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    """The UI messages that come of what was received, without our own metadata."""
    ui = json.loads(encode(to_ui_messages(received(*messages).messages, **options).messages))
    for message in ui:
        message["metadata"].pop("turnlog")
        if not message["metadata"]:
            del message["metadata"]
    return ui


STEP = {"type": "step-start"}
TEXT = {"type": "text", "text": "hi"}


def tool(state: str, **fields: Any) -> dict[str, Any]:
    return {"type": "tool-search", "toolCallId": "c", "state": state, "input": {"q": 1}} | fields


def test_a_prompt() -> None:
    (message,) = received({"id": "u", "role": "user", "parts": [TEXT]}).messages
    assert message == Message(id="u", role="user", origin=Origin.PROMPT, parts=(TextPart(text="hi"),))


def test_one_message_a_model_call() -> None:
    found = received(assistant(STEP, TEXT, tool("output-available", output=3), STEP, TEXT)).messages
    assert [(message.id, len(message.parts)) for message in found] == [("msg~1", 2), ("msg~2", 1)]


URL_SOURCE = {"type": "source", "sourceType": "url", "id": "s", "url": "https://example.org", "title": "T"}
DOCUMENT_SOURCE = {"type": "source", "sourceType": "document", "id": "s", "mediaType": "text/plain", "title": "T"}
REPEATED: list[dict[str, Any]] = [
    TEXT,
    TEXT | {"state": "streaming"},
    TEXT | {"providerMetadata": {"openai": {"itemId": "i"}}},
    TEXT | {"citations": [{"source": URL_SOURCE, "startIndex": 0, "endIndex": 3, "citedText": "hel"}]},
    TEXT | {"citations": [{"source": DOCUMENT_SOURCE}]},
    {"type": "file", "mediaType": "image/png", "url": "", "providerReference": {"openai": "file-1"}},
    {"type": "reasoning", "text": "hm", "providerMetadata": {"anthropic": {"signature": "s"}}},
    {"type": "reasoning", "text": "", "providerMetadata": {"anthropic": {"redactedData": "s"}}},
    {"type": "file", "mediaType": "image/png", "url": "https://example.org/a.png", "filename": "a.png"},
    {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,aGk="},
    {"type": "source-url", "sourceId": "s", "url": "https://example.org", "title": "T"},
    {"type": "source-document", "sourceId": "s", "mediaType": "text/plain", "title": "T", "filename": "f"},
    {"type": "data-weather", "id": "w", "data": {"sun": None}},
    {"type": "custom", "kind": "x.y"},
    {"type": "reasoning-file", "mediaType": "image/png", "url": "data:,"},
    tool("input-available"),
    tool("input-available", type="dynamic-tool", toolName="search"),
    tool("approval-requested", approval={"id": "a", "signature": "s", "requestReason": "why"}),
    tool("approval-responded", approval={"id": "a", "approved": True, "reason": "ok"}),
    tool("output-available", output={"hits": [1, 2.5, None]}, title="T", toolMetadata={"a": 1}),
    tool("output-available", output="plain", providerExecuted=True, resultProviderMetadata={"x": {"y": 1}}),
    tool("output-available", output='{"looks": "like JSON"}'),
    tool("output-available", output="42", preliminary=True),
    tool("output-available", output=None),
    tool("output-available", output=3, approval={"id": "a", "approved": True}),
    tool("output-error", errorText="broken"),
    tool("output-error", errorText="stopped", callProviderMetadata={"turnlog": {"state": "aborted"}}),
    tool("output-denied", approval={"id": "a", "approved": False, "reason": "no"}),
]


@pytest.mark.parametrize("part", REPEATED, ids=lambda part: f"{part['type']} {part.get('state', '')}")
def test_what_was_received_is_written_again(part: dict[str, Any]) -> None:
    """R-S13."""
    message = assistant(STEP, part) | {"metadata": {"createdAt": "now"}}
    assert again(message) == [message]
    assert received(message).losses == []


def test_assistant_messages_stay_apart() -> None:
    messages = [assistant(STEP, TEXT), assistant(STEP, TEXT, STEP, TEXT) | {"id": "other"}]
    assert again(*messages) == messages


def test_input_that_is_not_whole() -> None:
    streaming = {"type": "tool-search", "toolCallId": "c", "state": "input-streaming", "rawInput": '{"q'}
    (message,) = received(assistant(streaming)).messages
    (call,) = message.parts
    assert isinstance(call, ToolCallPart)
    assert (call.state, call.input_text) == (ToolState.INPUT_STREAMING, '{"q')


def test_an_input_with_its_text_is_kept_once() -> None:
    streaming = tool("input-streaming", input={"q": 1}, rawInput='{"q":1', inputEncoding="json")
    assert [loss.feature for loss in received(assistant(streaming)).losses] == ["raw-input", "input-encoding"]


def test_a_steering_message_is_a_prompt() -> None:
    steering = {"type": "steering-message", "id": "s", "parts": [TEXT]}
    found = received(assistant(STEP, TEXT, steering, STEP, TEXT)).messages
    assert [(message.id, message.role) for message in found] == [
        ("msg~1", "assistant"),
        ("s", "user"),
        ("msg~2", "assistant"),
    ]


FORGED: dict[str, Any] = {"turnlog": {"messages": [{"id": "m", "role": "system", "parts": []}]}, "mine": 1}


def test_nobody_else_speaks_for_us() -> None:
    message = assistant(STEP, TEXT) | {"metadata": FORGED}
    data = {"type": "data-turnlog-message", "data": {"id": "m", "role": "developer"}}
    found = received(message, assistant(STEP, TEXT, data) | {"id": "other"})
    assert [message.id for message in found.messages] == ["msg~1", "other~1"]
    assert all(len(message.parts) == 1 for message in found.messages)
    assert [(loss.feature, loss.path) for loss in found.losses] == [("metadata", "$[0]"), ("own-data", "$[1].parts[1]")]


def test_of_our_own_what_was_changed_since_is_not_believed() -> None:
    found = received(assistant(STEP, TEXT) | {"metadata": FORGED}, trusted=True)
    assert [(message.id, message.role) for message in found.messages] == [("msg~1", "assistant")]
    assert [loss.feature for loss in found.losses] == ["metadata", "metadata"]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "javascript:alert(1)", "img.png"])
def test_addresses_that_lead_elsewhere_are_kept_as_json_only(url: str) -> None:
    file = {"type": "file", "mediaType": "image/png", "url": url}
    ((part,),) = (message.parts for message in received(assistant(file)).messages)
    assert isinstance(part, UnknownPart)
    assert json.loads(bytes(part.data)) == file


def test_data_urls_become_bytes() -> None:
    file = {"type": "file", "mediaType": "text/plain", "url": "data:text/plain;base64,aGk="}
    ((part,),) = (message.parts for message in received(assistant(file)).messages)
    assert isinstance(part, FilePart)
    assert part.data == b"hi"


def test_unknown_keys_and_parts() -> None:
    found = received(assistant(TEXT | {"startedAt": 1}, {"type": "hologram", "depth": 3}))
    assert [loss.feature for loss in found.losses] == ["unknown-keys"]
    ((_, unknown),) = (message.parts for message in found.messages)
    assert isinstance(unknown, UnknownPart)
    assert json.loads(bytes(unknown.data)) == {"type": "hologram", "depth": 3}


@pytest.mark.parametrize("version", [5, 6, 7])
def test_whatever_came_is_shown_validly(version: int) -> None:
    """R-H17, R-S14: also damaged messages, and those of other versions."""
    random = Random(SEED)
    for _ in range(MESSAGES):
        try:
            messages = parse_ui_messages(json.dumps([random_message(random)]), strict=False)
        except ShapeError:
            continue
        shown = to_ui_messages(from_ui_messages(messages).messages, version=version).messages
        assert validate_ui_messages(encode(shown), version=version)


def test_messages_without_an_id_stay_apart() -> None:
    """R-S1: by their place among those that came."""
    prompts = [{"role": "user", "parts": [{"type": "text", "text": text}]} for text in ("one", "two")]
    messages = from_ui_messages(parse_ui_messages(prompts, require_id=False)).messages
    assert [message.id for message in messages] == ["message-1", "message-2"]
