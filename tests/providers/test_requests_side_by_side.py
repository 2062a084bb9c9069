"""The same history at every API: what becomes of each feature, as whole messages of the five request bodies.

The bodies are in tests/data/provider_requests.json, a line an API. What they must say is in
docs/reference/providers.md.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.provider_messages import asking, assistant, call, developer, image, result, system, thinking, user
from support.provider_rules import check_rules
from support.sdk_types import check_with_sdk
from turnlog.model import Message, Part, ProviderData, ReasoningPart, TextPart, ToolCallPart
from turnlog.providers import provider, provider_names

DATA = Path(__file__).parents[1] / "data/provider_requests.json"
EXPECTED: dict[str, dict[str, Any]] = json.loads(DATA.read_text())
"""Case -> API -> the body's messages (`instructions`, `system`, where there are any), losses, repairs."""

MODEL_OF = {
    "anthropic": "claude-x",
    "openai-chat": "deepseek-x",
    "openrouter": "anthropic/claude-x",
    "responses": "gpt-x",
    "gemini": "gemini-3-x",
}
MAKER_OF = {
    "anthropic": "anthropic",
    "openai-chat": "deepseek",
    "openrouter": "openrouter",
    "responses": "openai",
    "gemini": "google",
}
OTHER = "another-model"
HIDDEN = {"ui": "HIDDEN"}
SIGNATURES: dict[str, dict[str, str]] = {
    "anthropic": {"signature": "c2ln"},
    "openai-chat": {"reasoning_field": "reasoning_content"},
    "openrouter": {"signature": "c2ln", "format": "anthropic-claude-v1"},
    "responses": {"encrypted_content": "c2ln", "id": "rs_1"},
    "gemini": {"thought_signature": "c2ln"},
}


class Target(NamedTuple):
    """The target of a request: cases with reasoning of its own need to know."""

    name: str

    @property
    def model(self) -> str:
        return MODEL_OF[self.name]

    def own(self, text: str, *, signed: bool = True) -> ReasoningPart:
        """Reasoning of the target model."""
        return thinking(text, MAKER_OF[self.name], self.model, **(SIGNATURES[self.name] if signed else {}))

    def says(self, *parts: Part | str, **fields: Any) -> Message:
        return assistant(*parts, **{"model": self.model, **fields})

    def signed_call(self) -> ToolCallPart:
        opaque = SIGNATURES[self.name] if self.name == "gemini" else {}
        made = ProviderData(name=MAKER_OF[self.name], model=self.model, opaque=opaque)
        return call("c1", result("out"), input={"b": 1, "a": [2]}, provider=made)


MakeHistory = Callable[[Target], list[Message]]


def _with_arguments(text: str) -> MakeHistory:
    return lambda target: [user("q"), target.says(call("c1", result("out"), input_text=text))]


def _thinking(*parts: Part | str) -> MakeHistory:
    return lambda _: [user("q"), assistant(*parts, model=OTHER), user("next")]


# The rows that each case proves, and its history.
CASES: dict[str, tuple[str, MakeHistory]] = {
    "a call and its result": (
        "R-K23 R-K25 R-K26 R-K27",
        lambda a: [user("q"), a.says("I look", a.signed_call()), a.says("done", id="b")],
    ),
    "two calls": (
        "R-K23 R-K25 R-K26 R-K27",
        lambda a: [user("q"), a.says(call("c1", result("1")), call("c2", result("2"), name="Read"))],
    ),
    "a failed result": (
        "R-K23 R-K25 R-K26 R-K27",
        lambda a: [user("q"), a.says(call("c1", result("no", status="error")))],
    ),
    "an aborted result": (
        "R-K23 R-K25 R-K26 R-K27",
        lambda a: [user("q"), a.says(call("c1", result("stopped", status="aborted")))],
    ),
    "a result without text": ("R-K23 R-K25 R-K26 R-K27", lambda a: [user("q"), a.says(call("c1", result()))]),
    "developer before and behind": (
        "R-K22",
        lambda _: [
            user("USER"),
            developer("BEFORE", metadata={"klaude": {"attachment_position": "prepend"}}),
            developer("AFTER", image()),
        ],
    ),
    "developer behind a result": (
        "R-K22",
        lambda a: [user("q"), a.says(call("c1", result("out"))), developer("REMINDER")],
    ),
    "developer behind an answer": ("R-K22", lambda a: [user("q"), a.says("a"), developer("LATE"), user("next")]),
    "developer before all": ("R-K22", lambda _: [developer("LEADING"), user("q")]),
    "own reasoning with its proof": (
        "R-K24 R-K25 R-K26 R-K27",
        lambda a: [user("q"), a.says(a.own("hm"), "a"), user("next")],
    ),
    "own reasoning without proof": (
        "R-K24 R-K25 R-K26 R-K27",
        lambda a: [user("q"), a.says(a.own("hm", signed=False), "a"), user("next")],
    ),
    "own reasoning that is proof alone": (
        "R-K24 R-K25 R-K26 R-K27",
        lambda a: [user("q"), a.says(a.own(""), "a"), user("next")],
    ),
    "another model's reasoning": (
        "R-K24 R-K25 R-K26 R-K27",
        _thinking(thinking("hm", "elsewhere", OTHER, signature="eA=="), "a"),
    ),
    "another model's reasoning without text": ("R-K24 R-K25 R-K26 R-K27", _thinking(thinking(" "), "a")),
    "text, another model's reasoning, text": (
        "R-K24 R-K25 R-K26 R-K27",
        _thinking("before", thinking("hm", "elsewhere", OTHER), "after"),
    ),
    "text, a call, text": (
        "R-K23 R-K25 R-K26 R-K27",
        lambda a: [user("q"), a.says("before", call("c1", result("out")), "after")],
    ),
    "an image in the first of two results": (
        "R-K23 R-K25 R-K26 R-K27",
        lambda a: [user("q"), a.says(call("c1", result("seen", image())), call("c2", result("2")))],
    ),
    "an image of a question": ("R-K23 R-K25 R-K26 R-K27", lambda _: [user("see", image())]),
    "an image that the model made": (
        "R-K23 R-K25 R-K26 R-K27",
        lambda a: [user("q"), a.says("here", image()), user("next")],
    ),
    "no arguments": ("R-K23 R-K25 R-K26 R-K27", _with_arguments("")),
    "broken arguments": ("R-K23 R-K25 R-K26 R-K27", _with_arguments("{broken")),
    "arguments that are no object": ("R-K23 R-K25 R-K26 R-K27", _with_arguments("[1,2]")),
    "answers without a word": (
        "R-K29",
        lambda a: [
            user("q"),
            a.says(stop_reason="aborted"),
            user("again"),
            a.says("", stop_reason="error", id="b"),
            user("so?"),
        ],
    ),
    "a call without a result, one with two": (
        "R-K29",
        lambda a: [user("q"), a.says(call("c1"), call("c2", result("2", id="r"), result("2", id="r")))],
    ),
    "a question without a word": ("R-K29", lambda a: [user("q"), a.says("a"), user("")]),
    "the system prompt, twice": ("R-K29", lambda _: [system("PROMPT"), user("q"), system("PROMPT")]),
    "what only screens show": (
        "R-K22",
        lambda a: [
            Message(
                id="u", role="user", parts=(TextPart(text="q", metadata={"ui": "HIDDEN"}),), metadata={"ui": "HIDDEN"}
            ),
            a.says(call("c1", result("out", metadata=HIDDEN), title="HIDDEN")),
        ],
    ),
}


def outcome(name: str, case: str) -> dict[str, Any]:
    """What a case becomes at an API."""
    target = Target(name)
    conversion = provider(name).to_request(CASES[case][1](target), asking(target.model))
    check_rules(name, conversion.body)
    check_with_sdk(name, conversion.body)
    reported_once = {
        field: conversion.body[field]
        for field in ("instructions", "system", "systemInstruction", "messages", "input", "contents")
        if field in conversion.body
    }
    reported = {
        "losses": [loss.kind for loss in conversion.losses],
        "repairs": [repair.kind for repair in conversion.repairs],
    }
    return {**reported_once, **{kind: found for kind, found in reported.items() if found}}


@pytest.mark.parametrize("name", provider_names())
@pytest.mark.parametrize("case", CASES)
def test_each_api_is_sent_what_it_understands(case: str, name: str) -> None:
    """R-K22, R-K23, R-K24, R-K25, R-K26, R-K27, R-K29: `CASES` says which of them a case proves."""
    assert outcome(name, case) == EXPECTED[case][name]


def test_every_case_is_listed_with_every_api() -> None:
    assert {case: set(found) for case, found in EXPECTED.items()} == {case: set(provider_names()) for case in CASES}
