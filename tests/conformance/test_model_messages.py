"""Our model messages are those of the real `convertToModelMessages`."""

from __future__ import annotations

import json
from random import Random
from typing import Any, cast

import pytest

from support.ai_sdk_judge import VERSIONS, Judge, as_javascript_has_it
from support.ai_sdk_messages import message
from support.ai_sdk_values import flag
from support.profiles import examples
from turnlog.aisdk import UIMessage, encode, parse_ui_messages, validate_ui_messages
from turnlog.aisdk.model_messages import FinishedToolCall, ToModelOutput, to_model_messages
from turnlog.errors import ConversionError, ShapeError

CHATS = examples(2000)
SEED = 20261123

URLS = (
    "https://example.org", "HTTPS://Example.ORG:443/a/../b c?q=ü d#f g", "http://user:pw@h:8080/./x", "https://h/%41'|^",
    "data:image/png;base64,iVBORw0KGgo=", "data:,a b#c", "blob:x", "img.png", "/img.png", "https://", "//h/x", "",
    "http://127.1/", "http://[::ffff:1.2.3.4]:0080/", "http://h:x/", "http://a@b:c@Bücher.de", "gs://b/../k l",
)  # fmt: skip


def with_addresses(random: Random, part: dict[str, Any]) -> dict[str, Any]:
    """The part with an address where it had any text."""
    if isinstance(part.get("parts"), list):
        return {**part, "parts": [with_addresses(random, inner) for inner in part["parts"]]}
    return {**part, "url": random.choice(URLS)} if part.get("type") in ("file", "reasoning-file") else part


def chat(random: Random, version: int) -> list[dict[str, Any]]:
    """Messages that are valid for the version, as its validator leaves them."""
    while True:
        made = [message(random) for _ in range(random.randrange(1, 4))]
        try:
            valid = json.loads(encode(validate_ui_messages(made, version=version)))
        except ShapeError:
            continue
        for each in valid:
            each["parts"] = [with_addresses(random, part) for part in each["parts"]]
        return valid


def ours(messages: list[dict[str, Any]] | list[UIMessage], version: int, **options: Any) -> Any:
    try:
        return to_model_messages(messages, version=version, **options)
    except ConversionError:
        return "refused"


@pytest.mark.parametrize("version", VERSIONS)
def test_messages_need_no_id(judge: Judge, version: int) -> None:
    """R-S1: for a model; the validator wants one."""
    messages = [
        {"role": "user", "parts": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "parts": [{"type": "text", "text": "Ho"}]},
    ]
    [found] = judge.ask("model", version, [{"messages": messages}])
    assert ours(messages, version) == found["messages"]
    assert ours(parse_ui_messages(messages, version=version, require_id=False), version) == found["messages"]
    [verdict] = judge.ask("validate", version, [{"messages": messages}])
    assert "error" in verdict
    with pytest.raises(ShapeError):
        validate_ui_messages(messages, version=version)


NO_LISTS: tuple[Any, ...] = (None, "", "text", 0, {})


def unvalidated(random: Random) -> list[dict[str, Any]]:
    """Messages as some page sends them: of any version, of one call several parts, damaged ones among them."""
    made = [message(random) for _ in range(random.randrange(1, 5))]
    for each in made:
        parts: Any = each.get("parts")
        for part in cast("list[Any]", parts) if isinstance(parts, list) else []:
            if isinstance(part, dict):
                _disturb(random, cast("dict[str, Any]", part))
        if random.random() < 0.02:
            each["parts"] = random.choice(NO_LISTS)
    return made


def _disturb(random: Random, part: dict[str, Any]) -> None:
    if "toolCallId" in part:
        part["toolCallId"] = random.choice(("c1", "c2"))
    elif not isinstance(part.get("text", ""), str):
        # JavaScript joins anything; a text that is none is nobody's.
        part["text"] = "text"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("validated", [True, False])
def test_generated_chats(judge: Judge, version: int, validated: bool) -> None:
    random = Random(SEED + version)
    chats = [(chat(random, version) if validated else unvalidated(random), flag(random)) for _ in range(CHATS)]
    items = [{"messages": messages, "options": {"ignoreIncompleteToolCalls": ignore}} for messages, ignore in chats]
    answers = judge.ask("model", version, items)
    differing: list[str] = []
    for (messages, ignore), answer in zip(chats, answers, strict=True):
        mine = as_javascript_has_it(ours(messages, version, ignore_incomplete_tool_calls=ignore))
        theirs = as_javascript_has_it(answer.get("messages", "refused"))
        if mine != theirs:
            differing.append(f"{json.dumps(messages)}\nours   {mine}\ntheirs {theirs}\n{answer.get('error')}")
    assert len(differing) == 0, f"{len(differing)} of {CHATS}\n" + "\n\n".join(differing[:3])


def as_the_judge_says_it(version: int) -> ToModelOutput:
    """What the judge's tools make of their output: what they were given."""

    def say(answer: FinishedToolCall) -> dict[str, Any]:
        whole = {"toolCallId": answer.tool_call_id, "input": answer.input, "output": answer.output}
        return {"type": "json", "value": answer.output if version == 5 else whole}

    return say


def shown_data(part: dict[str, Any]) -> dict[str, Any] | None:
    """What the judge's application makes of a data part."""
    return {"type": "text", "text": "data", "given": part} if part["type"] == "data-a" else None


@pytest.mark.parametrize("version", VERSIONS)
def test_tools_and_data_that_speak_for_themselves(judge: Judge, version: int) -> None:
    random = Random(SEED + 10 + version)
    items: list[dict[str, Any]] = []
    for _ in range(CHATS // 2):
        tools = {name: flag(random) for name in ("read", "a-b") if flag(random)}
        items.append({"messages": chat(random, version), "tools": tools, "data": flag(random)})
    for item, answer in zip(items, judge.ask("model", version, items), strict=True):
        mine = ours(
            item["messages"],
            version,
            tools={name: as_the_judge_says_it(version) if itself else None for name, itself in item["tools"].items()},
            convert_data_part=shown_data if item["data"] else None,
        )
        assert as_javascript_has_it(mine) == as_javascript_has_it(answer.get("messages", "refused")), item
