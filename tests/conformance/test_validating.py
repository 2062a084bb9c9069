"""Our validator's verdict, and what it leaves of a message, are those of the real `validateUIMessages`."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from support.ai_sdk_judge import VERSIONS, Judge, as_javascript_has_it
from support.ai_sdk_messages import message
from support.profiles import examples
from turnlog.aisdk import ToolSchema, encode, validate_ui_messages
from turnlog.errors import ShapeError

MESSAGES = examples(2000)
SEED = 20261122
OTHERS: list[Any] = [None, [], {}, "text", 5, [None], [5], [[]], [{}]]

Types = list[str]


def schema(types: Types) -> Callable[[Any], Any]:
    """The schema that the judge makes of the same list: which JSON types are accepted."""

    def check(value: Any) -> Any:
        if kind_of(value) not in types:
            raise ValueError(f"no {kind_of(value)}")
        return value

    return check


def kind_of(value: Any) -> str:
    """What JavaScript calls it."""
    kinds = ("boolean", bool), ("number", int | float), ("string", str), ("array", list), ("object", dict)
    if value is None:
        return "null"
    return next((name for name, kind in kinds if isinstance(value, kind)), "undefined")


def ours(messages: Any, version: int, options: dict[str, Any]) -> Any:
    tools = options.get("tools")
    data = options.get("data")
    try:
        valid = validate_ui_messages(
            messages,
            version=version,
            metadata_schema=schema(options["metadata"]) if "metadata" in options else None,
            data_schemas=None if data is None else {name: schema(types) for name, types in data.items()},
            tools=None
            if tools is None
            else {
                name: ToolSchema(
                    input=schema(tool["input"]), output=schema(tool["output"]) if "output" in tool else None
                )
                for name, tool in tools.items()
            },
        )
    except ShapeError:
        return "invalid"
    return json.loads(encode(valid))


def disagreements(judge: Judge, version: int, items: list[dict[str, Any]]) -> list[str]:
    differing: list[str] = []
    for item, answer in zip(items, judge.ask("validate", version, items), strict=True):
        options = {name: value for name, value in item.items() if name != "messages"}
        mine = as_javascript_has_it(ours(item["messages"], version, options))
        theirs = as_javascript_has_it(answer.get("messages", "invalid"))
        if mine != theirs:
            reason = answer.get("error", {}).get("message", "")[:500]
            differing.append(f"{json.dumps(item)}\nours   {mine}\ntheirs {theirs} {reason}")
    return differing


def random_options(random: Random) -> dict[str, Any]:
    types = ("null", "boolean", "number", "string", "array", "object", "undefined")

    def some() -> Types:
        return random.sample(types, random.randrange(4, 8))

    tools = {
        name: {"input": some(), **({"output": some()} if random.random() < 0.3 else {})} for name in ("read", "a-b")
    }
    options: dict[str, Any] = {
        "metadata": some(),
        "data": {name: some() for name in ("a", "b") if random.random() < 0.8},
        "tools": {name: tool for name, tool in tools.items() if random.random() < 0.7},
    }
    return {name: value for name, value in options.items() if random.random() < 0.5}


@pytest.mark.parametrize("version", VERSIONS)
def test_generated_messages(judge: Judge, version: int) -> None:
    """R-S1 to R-S11, R-S14, R-H17."""
    random = Random(SEED + version)
    items = [{"messages": [message(random)]} for _ in range(MESSAGES)] + [{"messages": other} for other in OTHERS]
    differing = disagreements(judge, version, items)
    assert len(differing) == 0, f"{len(differing)} differ\n" + "\n\n".join(differing[:3])


@pytest.mark.parametrize("version", VERSIONS)
def test_generated_messages_with_schemas(judge: Judge, version: int) -> None:
    random = Random(SEED + 10 + version)
    items = [
        {"messages": [message(random) for _ in range(random.randrange(1, 3))], **random_options(random)}
        for _ in range(MESSAGES // 2)
    ]
    differing = disagreements(judge, version, items)
    assert len(differing) == 0, f"{len(differing)} differ\n" + "\n\n".join(differing[:3])
