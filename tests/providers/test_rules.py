"""Whatever the history, the request satisfies the rules of its API, and each of the five keeps what it can (R-K29)."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.profiles import examples
from support.provider_histories import histories
from support.provider_messages import MODEL, asking, assistant, call, developer, image, result, system, thinking, user
from support.provider_rules import check_rules
from support.sdk_types import check_with_sdk
from turnlog.errors import LossyConversionError
from turnlog.model import Message, ProviderData, ReasoningPart, TextPart, ToolCallPart
from turnlog.providers import provider, provider_names

NAMES = provider_names()
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(100), deadline=None)
@given(history=histories, model=st.sampled_from([MODEL, "deepseek-x", "kimi-x", "minimax-x"]))
def test_every_request_satisfies_the_rules(name: str, history: list[Message], model: str) -> None:
    """R-K22, R-K29."""
    conversion = provider(name).to_request(history, asking(model))
    check_rules(name, conversion.body)
    check_with_sdk(name, conversion.body)
    assert msgspec.json.decode(msgspec.json.encode(conversion.body)) == conversion.body
    assert provider(name).to_request(history, asking(model)) == conversion
    if conversion.losses:
        with pytest.raises(LossyConversionError) as caught:
            provider(name).to_request(history, asking(model), strict=True)
        assert caught.value.losses == conversion.losses
    else:
        assert provider(name).to_request(history, asking(model), strict=True) == conversion


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(40), deadline=None)
@given(history=histories)
def test_every_executed_call_is_sent_with_its_outcome(name: str, history: list[Message]) -> None:
    """No call of the model's gets lost but one that is reported as left out."""
    conversion = provider(name).to_request(history, asking())
    left_out = {repair.message_id for repair in conversion.repairs if repair.kind == "failed-answer"}
    doubles = sum(repair.kind == "duplicate-call" for repair in conversion.repairs)
    made = [
        part
        for message in history
        if message.role == "assistant" and message.id not in left_out
        for part in message.parts
        if isinstance(part, ToolCallPart) and part.parent_tool_call_id is None
    ]
    executed = [part for part in made if not part.provider_executed]
    sent = count_calls(conversion.body)
    assert len(executed) - doubles <= sent <= len(executed)


def count_calls(body: Any) -> int:
    """How many calls of the agent's tools a body holds, whatever its API calls them."""
    text = json.dumps(body, separators=(",", ":"))
    return sum(
        text.count(mark) for mark in ('"type":"tool_use"', '"type":"function_call"', '"functionCall":', '"function":')
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_system_prompt_is_sent_exactly_once(name: str) -> None:
    history = [system("PROMPT"), user("q"), assistant("a"), system("PROMPT")]
    for options in ({}, {"system": "PROMPT"}, {"model": "anthropic/claude-x"}):
        body = provider(name).to_request(history, asking(**{"model": MODEL, **options})).body
        assert json.dumps(body).count("PROMPT") == 1


@pytest.mark.parametrize("name", NAMES)
def test_developer_messages_are_never_sent_as_such(name: str) -> None:
    """R-K22."""
    history = [
        developer("LEADING"),
        user("USER"),
        developer("BEHIND", image()),
        assistant("ANSWER", call("c1", result("OUTPUT"))),
        developer("REMINDER"),
    ]
    conversion = provider(name).to_request(history, asking())
    text = json.dumps(conversion.body)
    assert '"developer"' not in text
    places = [text.index(word) for word in ("LEADING", "USER", "BEHIND", "ANSWER", "OUTPUT", "REMINDER")]
    assert places == sorted(places)
    assert [repair.kind for repair in conversion.repairs if repair.kind != "added-signature"] == ["leading-developer"]


@pytest.mark.parametrize("name", NAMES)
def test_tools_and_further_fields_are_passed_on_as_they_are(name: str) -> None:
    tools = [{"name": "x", "cache_control": {"type": "ephemeral"}, "unknown": [1]}]
    body = provider(name).to_request([user("q")], asking(tools=tools, extra={"further": {"a": None}})).body
    assert body["tools"] == tools
    assert body["further"] == {"a": None}


def test_every_provider_is_strictly_typed_linted_and_tested() -> None:
    """R-K30; the codec has its property tests in tests/model/test_codec.py."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert tools["pyright"]["typeCheckingMode"] == "strict"
    assert {"src", "tests"} <= set(tools["pyright"]["include"])
    assert not [name for name in tools["ruff"]["lint"]["per-file-ignores"] if "providers" in name]
    assert [provider(name).name for name in NAMES] == list(NAMES)
    tests = {path.stem for path in Path(__file__).parent.glob("test_*.py")}
    assert {f"test_{name.replace('-', '_')}_request" for name in NAMES} <= tests
    assert "@given(" in (ROOT / "tests/model/test_codec.py").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_another_model_reads_no_secret(name: str) -> None:
    """Signatures and encrypted content go only to the model that made them."""
    secret = {
        "signature": "SECRET",
        "encrypted_content": "SECRET",
        "thought_signature": "SECRET",
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "SECRET"}],
    }
    for owner in ("anthropic", "openai", "google", "openrouter"):
        answer = assistant(thinking("hm", owner, model="another-model", **secret), "a", model="another-model")
        assert "SECRET" not in json.dumps(provider(name).to_request([user("q"), answer], asking()).body)


@pytest.mark.parametrize(
    ("name", "owner", "proof"),
    [
        ("anthropic", "anthropic", {"signature": "SECRET"}),
        ("anthropic", "anthropic", {"redactedData": "SECRET"}),
        ("responses", "openai", {"itemId": "rs_1", "reasoningEncryptedContent": "SECRET"}),
        ("gemini", "google", {"thoughtSignature": "U0VDUkVU"}),
        ("openrouter", "openrouter", {"reasoning_details": [{"type": "reasoning.encrypted", "data": "SECRET"}]}),
    ],
)
def test_a_proof_of_the_provider_is_enough_where_no_model_is_named(
    name: str, owner: str, proof: dict[str, Any]
) -> None:
    """As in chats that the AI SDK stored."""
    part = ReasoningPart(text="hm", provider=ProviderData(name=owner, opaque=proof))
    answer = Message(id="a", role="assistant", parts=(part, TextPart(text="a")))

    def sent(to: str) -> str:
        return json.dumps(provider(to).to_request([user("q"), answer], asking()).body)

    assert re.search("SECRET|U0VDUkVU", sent(name))
    others = [other for other in NAMES if other not in (name, "openai-chat")]
    assert not [other for other in others if re.search("SECRET|U0VDUkVU", sent(other))]
