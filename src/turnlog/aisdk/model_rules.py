"""What differs between the versions' `convertToModelMessages`, and how they read the fields of a part.

Nothing was validated before: like the real functions these take a field that is not there for none, and refuse what
JavaScript would stumble over.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias, cast

from turnlog.errors import ConversionError

Fields: TypeAlias = dict[str, Any]


class Rules(NamedTuple):
    """What differs between the versions."""

    kinds: frozenset[str]
    """Part types, besides tools and data, that stand in a block."""
    complete: frozenset[str] | None
    """States that `ignore_incomplete_tool_calls` keeps; None: all but `incomplete`."""
    incomplete: frozenset[str] = frozenset()
    approvals: bool = True
    empty_messages: bool = False
    """Whether a block without content is a message all the same."""
    urls: bool = False
    """Whether addresses are parsed and files are tagged."""
    answers_denials: bool = False
    drops_old_requests: bool = False
    looks_for_raw_input: bool = False
    """Whether parts are looked for a field that will go, before anything else."""


_CONTENT = frozenset({"text", "reasoning", "file"})
_COMPLETE = frozenset({"approval-responded", "output-available", "output-error", "output-denied"})
RULES = {
    5: Rules(
        _CONTENT,
        None,
        incomplete=frozenset({"input-streaming", "input-available"}),
        approvals=False,
        empty_messages=True,
    ),
    6: Rules(_CONTENT, _COMPLETE),
    7: Rules(
        _CONTENT | {"custom", "reasoning-file"},
        _COMPLETE,
        urls=True,
        answers_denials=True,
        drops_old_requests=True,
        looks_for_raw_input=True,
    ),
}


def parts_of(message: Fields) -> list[Fields]:
    """The parts of a message; raise ConversionError where there is no list."""
    parts = message.get("parts")
    if not isinstance(parts, list):
        raise ConversionError("a message without a list of parts")
    return cast("list[Fields]", parts)


def type_of(part: Any) -> str:
    """The type of a part; raise ConversionError for what is no part."""
    kind: Any = cast("Fields", part).get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        raise ConversionError("a part without a type")
    return kind


def is_tool(part: Any) -> bool:
    """Whether a UI part is a tool part, declared or dynamic."""
    kind = type_of(part)
    return kind == "dynamic-tool" or kind.startswith("tool-")


def look_for_raw_input(messages: list[Fields]) -> None:
    """Raise ConversionError where a message has no parts: up to the first that holds the old `rawInput`."""
    for message in messages:
        if any(_has_raw_input(part) for part in parts_of(message)):
            return


def _has_raw_input(part: Any) -> bool:
    if not isinstance(part, dict) or "rawInput" not in part or not isinstance(cast("Fields", part).get("type"), str):
        return False
    return is_tool(part) and state_of(cast("Fields", part)) == "output-error"


def state_of(part: Fields) -> str | None:
    """The state of a tool part."""
    state: Any = part.get("state")
    return state if isinstance(state, str) else None


def kept_parts(messages: list[Fields], rules: Rules, *, ignore_incomplete: bool) -> list[Fields]:
    """The messages without the calls that a model is not told of."""
    last_user = max((index for index, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    drops_requests = rules.drops_old_requests and last_user > 0

    def keeps(part: Fields, index: int) -> bool:
        if not is_tool(part):
            return True
        if drops_requests and state_of(part) == "approval-requested" and index < last_user:
            return False
        return not ignore_incomplete or _is_complete(part, rules)

    if not ignore_incomplete and not drops_requests:
        return messages
    return [
        {**message, "parts": [part for part in parts_of(message) if keeps(part, index)]}
        for index, message in enumerate(messages)
    ]


def _is_complete(part: Fields, rules: Rules) -> bool:
    state = state_of(part)
    if state == "output-available" and part.get("preliminary") is True:
        return False
    return state not in rules.incomplete if rules.complete is None else state in rules.complete


def options(part: Fields, key: str) -> Fields:
    """The provider's own words at a key, as `providerOptions`, where there are any."""
    return pick_set(part, providerOptions=key)


def pick(fields: Fields, **names: str) -> Fields:
    """Of new name -> old name those that are there."""
    return {new: fields[old] for new, old in names.items() if old in fields}


def pick_set(fields: Fields, **names: str) -> Fields:
    """Of new name -> old name those that are there and not null."""
    return {new: fields[old] for new, old in names.items() if fields.get(old) is not None}
