"""Random JSON for messages and chunks: seeded, small, and with everything in it that has ever made trouble."""

from __future__ import annotations

from random import Random
from typing import Any

TEXTS = (
    "", "a", "Hello", "line\nbreak", "\"quoted\"", "back\\slash", "ünï", "日本語", "😀", "\u2028", "\u0000",
    "</script>", "data: x", "\ud83d", "\ude00", "__proto__", "constructor", "tool-x", "null", "{}",
)  # fmt: skip
NUMBERS = (0, 1, -1, 2, 1.5, -0.0, 1e21, 2**53, 2**53 + 1, 2**64, 10**30, 1e-7, 3.0)
KEYS = ("a", "b", "c", "0", "", "x y", "constructor", "prototype", "toString", "length", "id", "type", "日")


def any_json(random: Random, depth: int = 2) -> Any:
    """Any JSON value, at most so deep."""
    kind = random.randrange(9 if depth else 6)
    if kind < 2:
        return random.choice(TEXTS)
    if kind < 4:
        return random.choice(NUMBERS)
    if kind == 4:
        return random.choice((True, False))
    if kind == 5:
        return None
    if kind == 6:
        return [any_json(random, depth - 1) for _ in range(random.randrange(3))]
    return any_object(random, depth)


def any_object(random: Random, depth: int = 2) -> dict[str, Any]:
    return {random.choice(KEYS): any_json(random, depth - 1) for _ in range(random.randrange(4))}


def provider_metadata(random: Random) -> dict[str, Any]:
    return {random.choice(("anthropic", "openai", "x")): any_object(random, 1) for _ in range(random.randrange(3))}


def text(random: Random) -> str:
    return random.choice(TEXTS)


def flag(random: Random) -> bool:
    return random.random() < 0.5


def maybe(random: Random, likelihood: float, fields: dict[str, Any]) -> dict[str, Any]:
    """Each of the fields with this likelihood."""
    return {name: value for name, value in fields.items() if random.random() < likelihood}


def damaged(random: Random, value: dict[str, Any]) -> dict[str, Any]:
    """The object with one thing wrong, or odd, somewhere in it."""
    result = dict(value)
    key = random.choice([*value, "zzz"])
    kind = random.randrange(8)
    if kind == 0:
        result.pop(key, None)
    elif kind == 1:
        result[key] = None
    elif kind == 2:
        result[key] = any_json(random)
    elif kind == 3:
        result[random.choice(("title", "state", "output", "errorText", "approval", "providerMetadata", "id"))] = (
            any_json(random)
        )
    elif kind == 4:
        result["unknown key"] = any_json(random)
    elif kind == 5:
        result["type"] = random.choice(("text", "image", "tool-invocation", "data", "data-", "", "custom", None))
    else:
        nested = [name for name, item in value.items() if isinstance(item, dict) and item]
        if nested:
            name = random.choice(nested)
            result[name] = damaged(random, value[name])
        else:
            result.pop(key, None)
    return result
