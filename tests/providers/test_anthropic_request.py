"""Histories as Anthropic Messages requests (R-K22, R-K25, R-K29)."""

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
from turnlog.model import Citation, DataPart, FilePart, Message, ProviderData, SourceUrlPart, TextPart
from turnlog.model.codec import to_json
from turnlog.providers import provider
from turnlog.providers.base import Conversion


def convert(*messages: Message, **options: Any) -> Conversion:
    conversion = provider("anthropic").to_request(messages, asking(**options))
    check_with_sdk("anthropic", conversion.body)
    return conversion


def turns(*messages: Message, **options: Any) -> list[dict[str, Any]]:
    return convert(*messages, **options).body["messages"]


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_a_round_of_tools() -> None:
    """R-K25: calls are `tool_use`, results are in the one user message behind them."""
    history = [
        user("run both"),
        assistant("on it", call("c1", result("one"), input={"a": 1}), call("c2", result("bad", status="error"))),
        assistant("done"),
    ]
    assert turns(*history) == [
        {"role": "user", "content": [text("run both")]},
        {
            "role": "assistant",
            "content": [
                text("on it"),
                {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"a": 1}},
                {"type": "tool_use", "id": "c2", "name": "Bash", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "one", "is_error": False},
                {"type": "tool_result", "tool_use_id": "c2", "content": "bad", "is_error": True},
            ],
        },
        {"role": "assistant", "content": [text("done")]},
    ]


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({"input_text": ""}, {}),
        ({"input_text": "{broken"}, {"_raw": "{broken"}),
        ({"input": [1, 2]}, {"_value": [1, 2]}),
        ({"input": {"z": 1, "a": 12345678901234567890123}}, {"z": 1, "a": 12345678901234567890123}),
    ],
)
def test_arguments_are_an_object(fields: dict[str, Any], sent: dict[str, Any]) -> None:
    sent_now = turns(user("q"), assistant(call("c1", result("r"), **fields)))[1]["content"][0]["input"]
    assert sent_now == sent
    assert list(sent_now) == list(sent)


def test_thinking_goes_back_to_the_model_that_made_it() -> None:
    """R-K25: text and signature are a thinking block."""
    own = assistant(
        "before",
        thinking("hm", "anthropic", signature="proof"),
        thinking("", "anthropic", signature="only"),
        thinking("", "anthropic", data="hidden"),
        "after",
    )
    conversion = convert(user("q"), own)
    assert conversion.body["messages"][1]["content"] == [
        text("before"),
        {"type": "thinking", "thinking": "hm", "signature": "proof"},
        {"type": "thinking", "thinking": "", "signature": "only"},
        {"type": "redacted_thinking", "data": "hidden"},
        text("after"),
    ]
    assert conversion.losses == ()


@pytest.mark.parametrize(
    "foreign",
    [
        thinking("hm", "anthropic", model="another-model", signature="proof"),
        thinking("hm", "google", thought_signature="proof"),
        thinking("hm", None),
    ],
)
def test_other_thinking_is_text_in_its_place(foreign: Any) -> None:
    conversion = convert(user("q"), assistant("before", foreign, "after"))
    assert conversion.body["messages"][1]["content"] == [
        text("before"),
        text("<thinking>\nhm\n</thinking>"),
        text("after"),
    ]
    assert [loss.kind for loss in conversion.losses] == ["reasoning-as-text"]


def test_servers_that_sign_nothing_get_thinking_unsigned() -> None:
    history = [user("q"), assistant(thinking("hm"), "a", model="kimi-k2")]
    assert turns(*history, model="kimi-k2")[1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": ""}


def test_an_alias_and_its_snapshot_are_one_model() -> None:
    history = [user("q"), assistant(thinking("hm", "anthropic", model="claude-x-20250101", signature="s"), "a")]
    assert turns(*history, model="claude-x")[1]["content"][0]["type"] == "thinking"
    assert turns(*history, model="claude-x-20260101")[1]["content"][0]["type"] == "text"


def test_nothing_follows_the_last_thinking() -> None:
    """The final block of a turn cannot be thinking: an interrupted answer ends before it."""
    conversion = convert(user("q"), assistant("a", thinking("hm", "anthropic", signature="s")), user("go on"))
    assert conversion.body["messages"][1]["content"] == [text("a")]
    assert [repair.kind for repair in conversion.repairs] == ["trailing-reasoning"]


def test_turns_alternate() -> None:
    conversion = convert(user("one"), user("two", id="u2"), assistant("a"), assistant("b ", id="a2"))
    assert conversion.body["messages"] == [
        {"role": "user", "content": [text("one"), text("two")]},
        {"role": "assistant", "content": [text("a"), text("b")]},
    ]
    assert [(repair.kind, repair.message_id) for repair in conversion.repairs] == [
        ("merged-messages", "u2"),
        ("merged-messages", "a2"),
        ("trailing-space", "a2"),
    ]


def test_a_prompt_behind_results_shares_their_turn_without_a_word() -> None:
    conversion = convert(user("q"), assistant(call("c1", result("r"))), user("next", id="u2"))
    assert [block["type"] for block in conversion.body["messages"][2]["content"]] == ["tool_result", "text"]
    assert conversion.repairs == ()


def test_images_and_documents() -> None:
    encoded = base64.b64encode(PNG).decode()
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": encoded}}
    address = FilePart(media_type="image/*", url="https://example.org/a.png")
    paper = FilePart(media_type="application/pdf", data=b"%PDF", filename="a.pdf")
    note = FilePart(media_type="text/plain", data=b"words")
    sent = turns(user("look", image(), address, paper, note), assistant(call("c1", result("see", image()))))
    assert sent[0]["content"] == [
        text("look"),
        block,
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
            "title": "a.pdf",
        },
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
    ]
    assert sent[2]["content"][0]["content"] == [text("see"), block]


def test_system_and_leading_developer_text() -> None:
    conversion = convert(developer("first"), system("prompt"), user("q"), system="prompt")
    assert conversion.body["system"] == [text("prompt"), text("first")]
    assert conversion.body["messages"] == [{"role": "user", "content": [text("q")]}]
    assert [repair.kind for repair in conversion.repairs] == ["system-repeated", "leading-developer"]


def test_the_rest_of_the_body() -> None:
    tool = {"name": "Bash", "description": "run", "input_schema": {"type": "object"}, "cache_control": None}
    body = convert(user("q"), tools=[tool], max_tokens=10, extra={"service_tier": "auto"}).body
    assert body == {
        "model": MODEL,
        "max_tokens": 10,
        "messages": [{"role": "user", "content": [text("q")]}],
        "tools": [tool],
        "service_tier": "auto",
    }


def test_cache_control_only_where_it_is_requested() -> None:
    mark = {"type": "ephemeral"}
    history = [system("prompt"), user("one"), assistant("a"), user("two")]
    assert "cache_control" not in repr(convert(*history).body)
    body = convert(*history, cache_control=mark).body
    assert body["system"][-1]["cache_control"] == mark
    assert body["messages"][-1]["content"][-1]["cache_control"] == mark
    assert repr(body).count("cache_control") == 2


def test_a_search_that_anthropic_ran_goes_back_as_it_was() -> None:
    made = ProviderData(name="anthropic", opaque={"encrypted_content": "x"})
    source = SourceUrlPart(source_id="u", url="https://e.org", title="E", provider=made)
    search = call("srvtoolu_1", result(source), name="web_search", input={"query": "e"}, provider_executed=True)
    found = Citation(url="https://e.org", title="E", cited_text="e", metadata={"encrypted_index": "i"})
    conversion = convert(user("q"), assistant(search, TextPart(text="E is", citations=(found,))))
    blocks = conversion.body["messages"][1]["content"]
    assert [block["type"] for block in blocks] == ["server_tool_use", "web_search_tool_result", "text"]
    assert blocks[1]["content"] == [
        {"type": "web_search_result", "url": "https://e.org", "title": "E", "encrypted_content": "x"}
    ]
    assert blocks[2]["citations"][0]["encrypted_index"] == "i"
    assert conversion.losses == ()


def test_a_failed_search_goes_back_as_it_was() -> None:
    error = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    part = DataPart(name="web_search_tool_result_error", data=to_json(error))
    search = call("srvtoolu_1", result(part, status="error"), name="web_search", provider_executed=True)
    blocks = turns(user("q"), assistant(search, "sorry"))[1]["content"]
    assert blocks[1] == {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": error}


def test_a_tool_that_somebody_else_ran_is_sent_as_text() -> None:
    search = call("ws_1", result("found it"), name="web_search", input={"q": 1}, provider_executed=True)
    conversion = convert(user("q"), assistant(search, "a"))
    assert conversion.body["messages"][1]["content"] == [text('[web_search: {"q":1}]\nfound it'), text("a")]
    assert [loss.kind for loss in conversion.losses] == ["server-tool"]
