"""Random UI messages: parts of every kind and state, with fields of other versions and states, and damaged ones."""

from __future__ import annotations

from random import Random
from typing import Any

from support.ai_sdk_streams import Maker, any_dict, citations, one_of, user_parts
from support.ai_sdk_values import any_json, damaged, flag, provider_metadata, text

Message = dict[str, Any]

_METADATA: dict[str, Maker] = {"providerMetadata": provider_metadata}
_STATE: dict[str, Maker] = {"state": one_of("streaming", "done")}

PARTS: dict[str, tuple[dict[str, Maker], dict[str, Maker]]] = {
    "text": ({"text": text}, {**_STATE, **_METADATA, "citations": citations}),
    "reasoning": ({"text": text}, {**_STATE, **_METADATA, "id": text}),
    "source-url": ({"sourceId": text, "url": text}, {"title": text, **_METADATA}),
    "source-document": (
        {"sourceId": text, "mediaType": text, "title": text},
        {"filename": text, **_METADATA},
    ),
    "file": (
        {"mediaType": text, "url": text},
        {"filename": text, "providerReference": one_of({}, {"a": "b"}, {"a": 1}), **_METADATA},
    ),
    "reasoning-file": ({"mediaType": text, "url": text}, _METADATA),
    "custom": ({"kind": text}, _METADATA),
    "steering-message": ({"id": text, "parts": user_parts}, {}),
    "step-start": ({}, {}),
    "data-a": ({"data": any_json}, {"id": text, "transient": flag}),
    "data-b": ({"data": any_json}, {"id": text}),
}
"""Part type -> what it must have, what it may have."""


def approval(*answers: bool | None) -> Maker:
    def make(random: Random) -> Message:
        made: Message = {"id": text(random)}
        answer = random.choice(answers)
        if answer is not None:
            made["approved"] = answer
        options: dict[str, Maker] = {
            "reason": text,
            "descriptor": any_json,
            "requestReason": text,
            "isAutomatic": flag,
            "signature": text,
        }
        made |= {name: maker(random) for name, maker in options.items() if random.random() < 0.15}
        return damaged(random, made) if random.random() < 0.1 else made

    return make


_INPUT: dict[str, Maker] = {"input": any_json}
_ALL_STATES: dict[str, Maker] = {
    "title": text,
    "toolMetadata": any_dict,
    "providerExecuted": flag,
    "callProviderMetadata": provider_metadata,
}
_RESULT: dict[str, Maker] = {"resultProviderMetadata": provider_metadata}

TOOL_STATES: dict[str, tuple[dict[str, Maker], dict[str, Maker]]] = {
    "input-streaming": ({}, {**_INPUT, "rawInput": text, "inputEncoding": one_of("json", "text")}),
    "input-available": (_INPUT, {}),
    "approval-requested": ({**_INPUT, "approval": approval(None)}, {}),
    "approval-responded": ({**_INPUT, "approval": approval(True, False)}, {}),
    "output-available": (
        {**_INPUT, "output": any_json},
        {"preliminary": flag, "approval": approval(True, True, False), **_RESULT},
    ),
    "output-error": (
        {"errorText": text},
        {**_INPUT, "rawInput": any_json, "approval": approval(True), **_RESULT},
    ),
    "output-denied": ({**_INPUT, "approval": approval(False, False, True)}, {}),
}
"""Tool state -> what it must have, what it may have."""


def _filled(random: Random, required: dict[str, Maker], optional: dict[str, Maker]) -> Message:
    chosen = {name: make for name, make in optional.items() if random.random() < 0.25}
    return {name: make(random) for name, make in {**required, **chosen}.items()}


def tool_part(random: Random) -> Message:
    state = random.choice(list(TOOL_STATES))
    named: Message = random.choice(
        ({"type": "tool-read"}, {"type": "tool-a-b"}, {"type": "dynamic-tool", "toolName": "read"})
    )
    required, optional = TOOL_STATES[state]
    made = _filled(random, required, {**optional, **_ALL_STATES})
    if random.random() < 0.05:
        # What belongs to another state.
        made |= _filled(random, *TOOL_STATES[random.choice(list(TOOL_STATES))])
    if random.random() < 0.05:
        made["dynamic"] = flag(random)
    return {**named, "toolCallId": "c", "state": state, **made}


def any_part(random: Random) -> Message:
    if random.random() < 0.5:
        part = tool_part(random)
    else:
        kind = random.choice(list(PARTS))
        part = {"type": kind, **_filled(random, *PARTS[kind])}
    if random.random() < 0.04:
        part["unknown"] = any_json(random, 1)
    return damaged(random, part) if random.random() < 0.07 else part


def message(random: Random) -> Message:
    made: Message = {
        "id": text(random),
        "role": random.choice(("assistant", "assistant", "user", "system")),
        "parts": [any_part(random) for _ in range(random.randrange(5))],
    }
    if random.random() < 0.3:
        made["metadata"] = any_json(random)
    if random.random() < 0.05:
        made["createdAt"] = "now"
    return damaged(random, made) if random.random() < 0.05 else made
