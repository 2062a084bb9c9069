"""Histories as Chat Completions requests (R-K22, R-K23, R-K24, R-K29), for OpenAI and the dialects."""

import base64
from typing import Any

import pytest

from support.provider_messages import (
    MODEL,
    PNG,
    asking,
    assistant,
    call,
    developer,
    image,
    result,
    system,
    thinking,
    user,
)
from support.sdk_types import check_with_sdk
from turnlog.model import FilePart, Message
from turnlog.providers import provider
from turnlog.providers.base import Conversion

PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(PNG).decode()}"}}


def convert(*messages: Message, **options: Any) -> Conversion:
    conversion = provider("openai-chat").to_request(messages, asking(**options))
    check_with_sdk("openai-chat", conversion.body)
    return conversion


def sent(*messages: Message, **options: Any) -> list[dict[str, Any]]:
    return convert(*messages, **options).body["messages"]


def function(call_id: str, arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "Bash", "arguments": arguments}}


def test_a_round_of_tools() -> None:
    """R-K23: text is content, calls are `tool_calls`, results `tool` messages."""
    history = [
        system("prompt"),
        user("run both"),
        assistant("on it", call("c1", result("one"), input={"a": 1}), call("c2", result("two"))),
        assistant(call("c3", result("three"))),
        assistant("done"),
    ]
    assert sent(*history) == [
        {"role": "system", "content": "prompt"},
        {"role": "user", "content": "run both"},
        {"role": "assistant", "content": "on it", "tool_calls": [function("c1", '{"a":1}'), function("c2")]},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
        {"role": "assistant", "content": None, "tool_calls": [function("c3")]},
        {"role": "tool", "tool_call_id": "c3", "content": "three"},
        {"role": "assistant", "content": "done"},
    ]


@pytest.mark.parametrize("text", ["", "{broken", "[1,2]", '{"b": 1,  "a": 1.50}'])
def test_arguments_are_sent_as_they_were(text: str) -> None:
    assert sent(assistant(call("c1", result("r"), input_text=text)))[0]["tool_calls"] == [function("c1", text)]


def test_texts_of_a_user_stay_apart() -> None:
    before = developer("BEFORE", metadata={"attachment_position": "prepend"})
    content = sent(user("USER"), before, developer("AFTER"))[0]["content"]
    assert [part["text"] for part in content] == ["BEFORE\n", "USER", "AFTER\n"]
    assert sent(user("USER"), developer("AFTER"), dialect="deepseek")[0]["content"] == "USER\nAFTER\n"


def test_text_around_a_call_stays_apart_and_cut_text_does_not() -> None:
    assert sent(assistant("before", call("c1", result("r")), "af", "ter"))[0]["content"] == "before\n\nafter"


def test_developer_text_behind_a_tool_is_in_its_result() -> None:
    assert sent(assistant(call("c1", result("out"))), developer("REMINDER"))[1]["content"] == "out\nREMINDER\n"


def test_images_wait_until_all_results_are_out() -> None:
    history = [assistant(call("c1", result(image())), call("c2", result("two", image()))), user("next")]
    assert sent(*history)[1:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "(see the attached files)"},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Attached image(s) from tool result:"}, PICTURE, PICTURE],
        },
        {"role": "user", "content": "next"},
    ]


def test_files() -> None:
    paper = FilePart(media_type="application/pdf", data=b"%PDF", filename="a.pdf")
    sound = FilePart(media_type="audio/wav", data=b"x")
    content = sent(user("see", image(), paper, sound))[0]["content"]
    assert content[1:] == [
        PICTURE,
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
        {"type": "input_audio", "input_audio": {"data": "eA==", "format": "wav"}},
    ]
    address = FilePart(media_type="application/pdf", url="https://example.org/a.pdf")
    assert [loss.kind for loss in convert(user("see", address)).losses] == ["file-unsupported"]


def test_reasoning_is_left_out() -> None:
    conversion = convert(user("q"), assistant(thinking("hm"), "a"))
    assert conversion.body["messages"][1] == {"role": "assistant", "content": "a"}
    assert [loss.kind for loss in conversion.losses] == ["reasoning-omitted"]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
def test_reasoning_goes_back_into_the_field_it_came_from(field: str) -> None:
    """R-K24, and only to the model that it came from."""
    own = assistant(thinking("hm", "some-server", reasoning_field=field), "a")
    conversion = provider("openai-chat").to_request([own], asking())
    assert conversion.body["messages"] == [{"role": "assistant", "content": "a", field: "hm"}]
    assert conversion.losses == ()
    other = provider("openai-chat").to_request([own], asking("another-model"))
    assert other.body["messages"] == [{"role": "assistant", "content": "a"}]
    assert [loss.kind for loss in other.losses] == ["reasoning-omitted"]


@pytest.mark.parametrize(
    ("dialect", "fields"),
    [
        ("deepseek", {"reasoning_content": "one\ntwo"}),
        ("kimi", {"reasoning_content": "one\ntwo"}),
        ("qwen", {"reasoning_content": "one\ntwo"}),
        (
            "minimax",
            {"reasoning_details": [{"type": "reasoning.text", "text": text} for text in ("one", "two")]},
        ),
    ],
)
def test_each_dialect_has_its_field(dialect: str, fields: dict[str, Any]) -> None:
    own = assistant(thinking("one"), thinking("two"), "a")
    assert sent(own, dialect=dialect)[0] == {"role": "assistant", "content": "a", **fields}


@pytest.mark.parametrize(
    ("model", "missing"),
    [
        ("deepseek-v4-pro", {"reasoning_content": ""}),
        ("moonshotai/kimi-k2-thinking", {"reasoning_content": " "}),
        ("qwen3-max", {}),
        ("gpt-5", {}),
    ],
)
def test_servers_that_miss_reasoning_at_a_call_get_it_empty(model: str, missing: dict[str, str]) -> None:
    history = [assistant(thinking("hm"), call("c1", result("r"))), assistant("a")]
    first, _, last = provider("openai-chat").to_request(history, asking(model)).body["messages"]
    assert {name: value for name, value in first.items() if name.startswith("reasoning")} == missing
    assert last == {"role": "assistant", "content": "a"}


def test_details_go_back_as_they_were() -> None:
    details = [{"type": "reasoning.text", "text": "hm", "id": "reasoning-text-1"}]
    own = assistant(thinking("hm", "minimax", reasoning_details=details), "a")
    assert sent(own, dialect="minimax")[0]["reasoning_details"] == details
    withheld = assistant(thinking("", "minimax", reasoning_details=details, reasoning_field="reasoning"), "a")
    assert sent(withheld)[0] == {"role": "assistant", "content": "a", "reasoning_details": details}


def test_reasoning_alone_is_no_message() -> None:
    conversion = convert(user("q"), assistant(thinking("hm")), dialect="deepseek")
    assert [message["role"] for message in conversion.body["messages"]] == ["user"]
    assert [repair.kind for repair in conversion.repairs] == ["trailing-reasoning"]


@pytest.mark.parametrize(("dialect", "field"), [(None, "max_completion_tokens"), ("kimi", "max_tokens")])
def test_the_rest_of_the_body(dialect: Any, field: str) -> None:
    tool = {"type": "function", "function": {"name": "Bash", "parameters": {"type": "object"}}}
    options: dict[str, Any] = {"tools": [tool], "max_tokens": 10, "stream": True, "extra": {"temperature": 0.5}}
    conversion = provider("openai-chat").to_request([user("q")], asking(dialect=dialect, **options))
    assert conversion.body == {
        "model": MODEL,
        "messages": [{"role": "user", "content": "q"}],
        "tools": [tool],
        field: 10,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
    }
