"""What Claude Code sent on its next request, beside what is built from its log for the same model.

The logs are the agent's after all requests, so each request must be how ours begins. What its harness put in differs
(docs/reference/providers.md says how and why) and is left out of the comparison; what the user, the model and tools
said must be the same, in the same order.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from support.sdk_types import check_with_sdk
from turnlog.logs import SessionHistory, read_session
from turnlog.providers import provider
from turnlog.providers.base import RequestOptions
from turnlog.providers.context import select_context

DATA = Path(__file__).parent.parent / "data/claude_code/scenarios"

HARNESS = re.compile(
    r"<system-reminder>|<local-command|<command-name>|<task-notification>|\[Request interrupted|\[Image: source"
    r"|No response requested|This session is being continued|Output token limit hit|Your response above was stopped"
    r"|Tool loaded\."
)

REQUESTS = [
    ("basic", "2-resume"),
    ("branch", "4-branch"),
    ("branch", "5-resume"),
    ("compact", "3-resume"),
    ("errors", "4-maxtok"),
    ("errors", "6-cut"),
    ("errors", "8-auth"),
    ("hooks", "4-apierror"),
    ("hooks", "5-denied"),
    ("images", "1-image"),
    ("images", "2-resume"),
    ("interrupt", "2-resume"),
    ("interrupt", "4-resume"),
    ("interrupt", "6-resume"),
    ("mcp", "1-mcp"),
    ("subagent", "2-resume"),
    ("subagent-bg", "1-bg"),
    ("subagent-sync", "2-resume"),
    ("tools", "3-resume"),
    ("tui", "1-tui"),
    ("tui-rewind", "1-tui"),
]


def contents_of(messages: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """What a request says, one entry a block, without what the harness put in."""
    blocks: list[tuple[str, Any]] = []
    for message in messages:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            plain = {key: value for key, value in block.items() if key != "cache_control"}
            if message["role"] != "system" and not HARNESS.match(plain.get("text", "")):
                blocks.append((message["role"], same_form(plain)))
    return blocks


def same_form(block: dict[str, Any]) -> dict[str, Any]:
    """One form for what an API takes in several; Claude Code also renames its oldest tool in requests."""
    if block["type"] == "tool_use" and block["name"] == "Task":
        return {**block, "name": "Agent"}
    if block["type"] == "text":
        return {**block, "text": block["text"].strip()}
    if block["type"] != "tool_result":
        return block
    content = block["content"]
    texts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    # Reminders that the harness attached to a result are in its text.
    texts = [
        {**part, "text": part["text"].partition("\n<system-reminder>")[0].strip()} if part["type"] == "text" else part
        for part in texts
    ]
    return {**block, "content": texts, "is_error": bool(block.get("is_error"))}


@cache
def history(scenario: str) -> SessionHistory:
    (log,) = (DATA / scenario).glob("projects/*/11111111-*.jsonl")
    return read_session(log)


@pytest.mark.parametrize(("scenario", "step"), REQUESTS)
def test_it_begins_with_what_claude_code_sent(scenario: str, step: str) -> None:
    requests = json.loads((DATA / scenario / "requests.json").read_text())
    sent = [found for found in requests if found["step"] == step and found["queue"] == "main"][-1]
    context = select_context(history(scenario))
    conversion = provider("anthropic").to_request(context.messages, RequestOptions(model="claude-opus-5-5"))
    check_with_sdk("anthropic", conversion.body)
    expected = contents_of(sent["messages"])
    assert expected
    assert contents_of(conversion.body["messages"])[: len(expected)] == expected


@pytest.mark.parametrize("name", ["openai-chat", "openrouter", "responses", "gemini"])
@pytest.mark.parametrize("scenario", sorted({scenario for scenario, _ in REQUESTS}))
def test_every_recorded_session_can_go_on_elsewhere(scenario: str, name: str) -> None:
    context = select_context(history(scenario))
    conversion = provider(name).to_request(context.messages, RequestOptions(model="another-model"))
    check_with_sdk(name, conversion.body)
    reasoning = [loss for loss in conversion.losses if loss.kind.startswith("reasoning")]
    thoughts = [part for message in context.messages for part in message.parts if part.type == "reasoning"]
    assert len(reasoning) == len(thoughts)
