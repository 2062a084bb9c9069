"""A message that is complete so far -> the chunks from which every client builds it again."""

from __future__ import annotations

from typing import Any

import pytest

from turnlog.aisdk import validate_ui_messages
from turnlog.aisdk.chunks import ToolInputAvailableChunk
from turnlog.aisdk.codec import encode_chunk, to_plain
from turnlog.aisdk.message_chunks import message_chunks
from turnlog.aisdk.reader import read_ui_message

TEXT = {"type": "text", "text": "Hello", "state": "done"}
CALL = {"type": "dynamic-tool", "toolName": "Bash", "toolCallId": "c", "input": {"command": "ls", "n": [1, 0.5, None]}}
NAMED = {"type": "tool-weather", "toolCallId": "w", "input": "Rome"}
YES = {"id": "q", "approved": True, "reason": "fine"}
NO = {"id": "q", "approved": False}

SINCE_5: list[dict[str, Any]] = [
    TEXT,
    {**TEXT, "text": ""},
    {**TEXT, "providerMetadata": {"p": {"id": "1"}}},
    {"type": "reasoning", "text": "Hm", "id": "r", "state": "done", "providerMetadata": {"p": {"signature": "s"}}},
    {"type": "source-url", "sourceId": "s", "url": "https://a.example", "title": "A"},
    {"type": "source-document", "sourceId": "d", "mediaType": "application/pdf", "title": "D", "filename": "d.pdf"},
    {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AA=="},
    {"type": "data-note", "id": "n", "data": {"a": 1}},
    {**CALL, "state": "input-available"},
    {**CALL, "state": "output-available", "output": {"ok": [1, 2.5]}},
    {**CALL, "state": "output-error", "errorText": "no"},
    {**NAMED, "state": "input-available", "callProviderMetadata": {"p": {"id": "i"}}},
    {**NAMED, "state": "output-available", "output": None},
]
SINCE_6: list[dict[str, Any]] = [{**CALL, "state": "approval-requested", "approval": {"id": "q"}}]
SINCE_7: list[dict[str, Any]] = [
    {**CALL, "state": "approval-responded", "approval": YES},
    {**CALL, "state": "output-available", "approval": YES, "output": "x"},
    {**CALL, "state": "output-error", "approval": YES, "errorText": "no"},
    {**NAMED, "state": "output-denied", "approval": NO},
    {**NAMED, "state": "output-error", "errorText": "no", "providerExecuted": True},
    {**NAMED, "state": "output-error", "errorText": "no", "approval": YES},
    {"type": "custom", "kind": "p.block", "providerMetadata": {"p": {"a": 1}}},
    {"type": "reasoning-file", "mediaType": "image/png", "url": "data:image/png;base64,AA=="},
]


def _message(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"id": "m", "role": "assistant", "metadata": {"a": 1}, "parts": list(parts)}


def _built(message: dict[str, Any], version: int) -> Any:
    (given,) = validate_ui_messages([message], version=version)
    read = read_ui_message([encode_chunk(chunk) for chunk in message_chunks(given, version=version)], version=version)
    assert read.error is None
    return to_plain(read.message)


@pytest.mark.parametrize("version", [5, 6, 7])
def test_every_part_is_built_again(version: int) -> None:
    step = {"type": "step-start"}
    for part in [*SINCE_5, *(SINCE_6 if version > 5 else []), *(SINCE_7 if version > 6 else [])]:
        message = _message(step, TEXT, part, step, TEXT)
        assert _built(message, version) == message


def _decided(message: dict[str, Any]) -> dict[str, Any]:
    """The message with the answer that no chunk of 6 has; a request adds it (`parse_chat_request`)."""
    for part in message["parts"]:
        if part.get("state") == "output-denied":
            part["approval"]["approved"] = False
    return message


@pytest.mark.parametrize("part", SINCE_7)
def test_what_a_release_lacks_is_valid_in_it(part: dict[str, Any]) -> None:
    (given,) = validate_ui_messages([_message(TEXT, part, TEXT)], version=7)
    for version in (5, 6):
        chunks = [encode_chunk(chunk) for chunk in message_chunks(given, version=version)]
        read = read_ui_message(chunks, version=version)
        assert read.error is None
        validate_ui_messages([_decided(to_plain(read.message))], version=version)
        texts = [part["text"] for part in to_plain(read.message)["parts"] if part["type"] == "text"]
        assert texts[0] == texts[-1] == "Hello"


def test_no_page_runs_a_tool_again_whose_outcome_is_known() -> None:
    for part in [*SINCE_5, *SINCE_7]:
        (given,) = validate_ui_messages([_message(part)], version=7)
        runs = any(isinstance(chunk, ToolInputAvailableChunk) for chunk in message_chunks(given))
        has_ended = str(part.get("state")).startswith("output-") and part["state"] != "output-denied"
        assert runs == ("toolCallId" in part and not has_ended)
