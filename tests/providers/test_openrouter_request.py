"""Histories as OpenRouter requests (R-K22, R-K23, R-K24, R-K29)."""

from typing import Any

import pytest

from support.provider_messages import MODEL, asking, assistant, call, result, system, thinking, user
from support.sdk_types import check_with_sdk
from turnlog.model import Message, ReasoningPart, ToolCallPart
from turnlog.model.base import ProviderData
from turnlog.providers import provider
from turnlog.providers.base import Conversion


def convert(*messages: Message, **options: Any) -> Conversion:
    conversion = provider("openrouter").to_request(messages, asking(**options))
    if "cache_control" not in options:
        check_with_sdk("openrouter", conversion.body)
    return conversion


def sent(*messages: Message, **options: Any) -> list[dict[str, Any]]:
    return convert(*messages, **options).body["messages"]


@pytest.mark.parametrize(
    ("part", "detail"),
    [
        (
            thinking("hm", "openrouter", signature="s", format="anthropic-claude-v1"),
            {"type": "reasoning.text", "text": "hm", "signature": "s", "format": "anthropic-claude-v1"},
        ),
        (
            thinking("", "openrouter", data="sealed", id="rs_1", format="openai-responses-v1"),
            {"type": "reasoning.encrypted", "data": "sealed", "id": "rs_1", "format": "openai-responses-v1"},
        ),
        (thinking("hm"), {"type": "reasoning.text", "text": "hm"}),
    ],
)
def test_a_model_gets_its_own_reasoning_back_as_details(part: ReasoningPart, detail: dict[str, str]) -> None:
    """R-K24."""
    conversion = convert(user("q"), assistant(part, "a"))
    assert conversion.body["messages"][1] == {"role": "assistant", "content": "a", "reasoning_details": [detail]}
    assert conversion.losses == ()


def test_details_that_are_on_parts_are_sent_once_each() -> None:
    one, two = {"type": "reasoning.text", "text": "hm", "index": 0}, {"type": "reasoning.encrypted", "data": "d"}
    on_call = ProviderData(name="openrouter", model=MODEL, opaque={"reasoning_details": [one, two]})
    made = call("c1", result("r"), provider=on_call)
    assert isinstance(made, ToolCallPart)
    answer = sent(user("q"), assistant(thinking("hm", "openrouter", reasoning_details=[one]), made))[1]
    assert answer["reasoning_details"] == [one, two]


def test_other_reasoning_is_text_where_it_was() -> None:
    conversion = convert(user("q"), assistant("a", thinking("hm", "anthropic", signature="s"), "b"))
    assert conversion.body["messages"][1]["content"] == "a\n\n<thinking>\nhm\n</thinking>\n\nb"
    assert [loss.kind for loss in conversion.losses] == ["reasoning-as-text"]


def test_withheld_reasoning_of_another_model_is_reported_as_lost() -> None:
    conversion = convert(user("q"), assistant(thinking("", "anthropic", data="d"), "b"))
    assert conversion.body["messages"][1] == {"role": "assistant", "content": "b"}
    assert [loss.kind for loss in conversion.losses] == ["reasoning-omitted"]


def test_cache_control_for_claude_where_it_is_requested() -> None:
    mark = {"type": "ephemeral"}
    history = [system("prompt"), user("q"), assistant(call("c1", result("r")))]
    marked = sent(*history, model="anthropic/claude-x", cache_control=mark)
    assert marked[0]["content"] == [{"type": "text", "text": "prompt", "cache_control": mark}]
    assert marked[3]["content"] == [{"type": "text", "text": "r", "cache_control": mark}]
    assert repr(marked).count("cache_control") == 2
    for model, asked in (("anthropic/claude-x", None), ("openai/gpt-5", mark)):
        assert "cache_control" not in repr(convert(*history, model=model, cache_control=asked).body)


def test_the_rest_of_the_body() -> None:
    tool = {"type": "function", "function": {"name": "Bash", "parameters": {"type": "object"}}}
    body = convert(user("q"), tools=[tool], max_tokens=10, stream=True, extra={"reasoning": {"effort": "high"}}).body
    assert body == {
        "model": MODEL,
        "messages": [{"role": "user", "content": "q"}],
        "tools": [tool],
        "max_tokens": 10,
        "stream": True,
        "stream_options": {"include_usage": True},
        "reasoning": {"effort": "high"},
    }
