"""One session that OpenCode resumed at five providers, beside what is built from the same history.

OpenCode's requests are what the AI SDK makes of a history. The history is read back from its Anthropic request; what
each provider gave along with its thinking comes from that provider's own. What differs is listed in
docs/reference/providers.md and undone here by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.provider_messages import assistant, call, result, system, user
from turnlog.model import Message, Part, ProviderData, ReasoningPart, TextPart
from turnlog.providers import provider
from turnlog.providers.base import RequestOptions

DATA = Path(__file__).parent.parent / "data/opencode_requests"
MODEL = "mock-1"

Body = dict[str, Any]


def recorded(name: str) -> Body:
    return json.loads((DATA / f"{name}.json").read_text())


def converted(name: str, recording: str) -> Body:
    return provider(name).to_request(history(recording), RequestOptions(model=MODEL)).body


def history(recording: str) -> list[Message]:
    """The session, with what a provider gave along with its parts."""
    turns = recorded("anthropic")["messages"]
    blocks = [block for turn in turns for block in turn["content"]]
    answers = {block["tool_use_id"]: block for block in blocks if block["type"] == "tool_result"}
    signatures = google_signatures()
    messages = [system("PROMPT")]
    for turn in turns:
        if turn["role"] == "assistant":
            parts = [part_of(block, recording, answers, signatures) for block in turn["content"]]
            messages.append(assistant(*parts, model=MODEL))
        elif turn["content"][0]["type"] == "text":
            messages.append(user(*[block["text"] for block in turn["content"]]))
    return messages


def part_of(block: Body, recording: str, answers: dict[str, Body], signatures: Iterator[str]) -> Part:
    if block["type"] == "thinking":
        return ReasoningPart(text=block["thinking"], provider=proof(recording, block))
    if block["type"] == "text":
        return TextPart(text=block["text"])
    answer = answers[block["id"]]
    status = "error" if answer.get("is_error") else "success"
    signed = ProviderData(name="google", model=MODEL, opaque={"thoughtSignature": next(signatures)})
    return call(
        block["id"],
        result(answer["content"], status=status),
        name=block["name"],
        input=block["input"],
        provider=signed if recording == "google" else None,
    )


def proof(recording: str, block: Body) -> ProviderData | None:
    """What OpenCode keeps of a provider's thinking, under the AI SDK's names."""
    signature = block["signature"]
    detail = {"type": "reasoning.text", "text": block["thinking"], "signature": signature}
    kept: dict[str, tuple[str, Body]] = {
        "anthropic": ("anthropic", {"signature": signature}),
        "chat": ("openaiCompatible", {"reasoning_field": "reasoning_content"}),
        "openrouter": (
            "openrouter",
            {"reasoning_details": [{**detail, "format": "anthropic-claude-v1", "index": 0}]},
        ),
        "responses": ("openai", {"reasoningEncryptedContent": signature}),
    }
    if recording not in kept:
        return None
    name, opaque = kept[recording]
    return ProviderData(name=name, model=MODEL, opaque=opaque)


def google_signatures() -> Iterator[str]:
    parts = [part for content in recorded("google")["contents"] for part in content["parts"]]
    return iter([part["thoughtSignature"] for part in parts if "functionCall" in part])


def test_anthropic() -> None:
    expected = recorded("anthropic")["messages"]
    sent = converted("anthropic", "anthropic")["messages"]
    for block in [block for turn in (*expected, *sent) for block in turn["content"]]:
        block.pop("cache_control", None)
        if block["type"] == "tool_result":
            block.setdefault("is_error", False)
    assert sent == expected


@pytest.mark.parametrize(("name", "recording"), [("openai-chat", "chat"), ("openrouter", "openrouter")])
def test_chat(name: str, recording: str) -> None:
    expected = recorded(recording)["messages"][1:]
    sent = converted(name, recording)["messages"][1:]
    for message in (*expected, *sent):
        message["content"] = message["content"] or ""
        for made in message.get("tool_calls", []):
            made["function"]["arguments"] = json.loads(made["function"]["arguments"])
        if message["role"] == "tool":
            message.pop("name", None)
        if recording == "openrouter":
            message.pop("reasoning", None)
    assert sent == expected


def test_responses() -> None:
    expected = recorded("responses")["input"][1:]
    sent = converted("responses", "responses")["input"]
    for item in sent:
        if item["type"] == "message":
            item.pop("type")
        if item.get("type") == "reasoning":
            item.pop("id")
        if item.get("role") == "assistant":
            item["content"] = [{"type": "output_text", "text": item["content"]}]
    for item in (*expected, *sent):
        if "arguments" in item:
            item["arguments"] = json.loads(item["arguments"])
    assert sent == expected


def test_gemini() -> None:
    expected = recorded("google")["contents"]
    sent = converted("gemini", "google")["contents"]
    for part in [part for content in (*expected, *sent) for part in content["parts"]]:
        if "functionResponse" in part:
            (text,) = [value for key, value in part["functionResponse"]["response"].items() if key != "name"]
            part["functionResponse"]["response"] = text
    assert sent == expected
