"""What our chat reader shows of an answer is what the real `AbstractChat`, and so `useChat`, shows."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from support.ai_sdk_judge import VERSIONS, Judge, as_javascript_has_it, sse
from support.ai_sdk_streams import stream
from support.profiles import examples
from turnlog.aisdk import encode, parse_ui_messages, read_chat
from turnlog.errors import ShapeError

ANSWERS = examples(700)
"""For each version others."""
SEED = 20261123

USER = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}
ANSWER = {"id": "a1", "role": "assistant", "parts": [{"type": "step-start"}, {"type": "text", "text": "Hm"}]}
CALLED: dict[str, Any] = {
    "id": "a2",
    "role": "assistant",
    "parts": [{"type": "dynamic-tool", "toolName": "t", "toolCallId": "c", "state": "input-streaming", "input": {}}],
}
CHATS: list[list[dict[str, Any]]] = [
    [],
    [USER],
    [USER, ANSWER],
    [USER, CALLED],
    [USER, ANSWER, {**USER, "id": "u2"}],
    [USER, ANSWER, {**USER, "id": "u2"}, CALLED],
]
TRIGGERS = ("submit-message", "submit-message", "regenerate-message", "resume-stream")


def disturbed(random: Random) -> list[str]:
    """An answer that may name another message on its way, or fail there."""
    texts = stream(random)
    for chunk in random.choices(EXTRA, k=random.choice((0, 1, 1, 2, 3))):
        texts.insert(random.randrange(len(texts) + 1), json.dumps(chunk))
    return texts


EXTRA: tuple[dict[str, Any], ...] = (
    {"type": "start"},
    {"type": "start", "messageId": "a1"},
    {"type": "start", "messageId": "m1"},
    {"type": "start", "messageId": "m2"},
    {"type": "start", "messageId": "m2", "messageMetadata": {"n": 1}},
    {"type": "start-step"},
    {"type": "text-start", "id": "t9"},
    {"type": "finish", "messageMetadata": {"end": True}},
    {"type": "error", "errorText": "The model is busy"},
)


def user_message(random: Random, texts: list[str]) -> dict[str, Any]:
    messages = random.choice(CHATS)
    trigger = random.choice(TRIGGERS)
    known = [message["id"] for message in messages]
    continued = {"messageId": random.choice([*known, "unknown"])} if random.random() < 0.3 else {}
    return {"sse": sse(texts), "messages": messages, "trigger": trigger, **continued}


def ours(item: dict[str, Any], texts: list[str], version: int) -> dict[str, Any]:
    result = read_chat(
        texts,
        parse_ui_messages(item["messages"], version=version),
        trigger=item["trigger"],
        message_id=item.get("messageId"),
        new_id="made",
        version=version,
    )
    refused = isinstance(result.error, ShapeError)
    return {"messages": json.loads(encode(result.messages)), "error": "refused" if refused else result.error_text}


def theirs(answer: dict[str, Any]) -> dict[str, Any]:
    error = answer.get("error")
    refused = error is not None and error["name"] in ("AI_TypeValidationError", "AI_JSONParseError")
    return {"messages": answer["messages"], "error": "refused" if refused else error and error["message"]}


@pytest.mark.parametrize("version", VERSIONS)
def test_generated_answers(judge: Judge, version: int) -> None:
    random = Random(SEED + version)
    answers = [disturbed(random) for _ in range(ANSWERS)]
    items = [user_message(random, texts) for texts in answers]
    differing: list[str] = []
    for item, texts, found in zip(items, answers, judge.ask("chat", version, items), strict=True):
        made, wanted = as_javascript_has_it(ours(item, texts, version)), as_javascript_has_it(theirs(found))
        if made != wanted:
            differing.append(
                f"{item['trigger']} {item.get('messageId')} {item['messages']}\n{chr(10).join(texts)}\n"
                f"ours   {made}\ntheirs {wanted}"
            )
    assert len(differing) == 0, f"{len(differing)} of {ANSWERS}\n" + "\n\n".join(differing[:3])
