"""Numbers that make no sense are refused where they are given, with what to give."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from support.chat_script import ANSWER, Script
from turnlog.chat import (
    Chat,
    ChatApp,
    Limits,
    Ownership,
    ProviderRuntime,
    RequestOptions,
    Retry,
    Streams,
    Tool,
    chat_endpoint,
    keep_turns,
)
from turnlog.chat.numbers import ALLOWED, check_numbers
from turnlog.chat.runtimes.agent import AgentRuntime
from turnlog.chat.runtimes.claude_code import ClaudeCodeCommand


def agent(grace_seconds: float = 5.0, wait_seconds: float = 5.0) -> object:
    return AgentRuntime(ClaudeCodeCommand(), grace_seconds=grace_seconds, wait_seconds=wait_seconds)


def plain(max_bytes: int) -> object:
    return ChatApp(Chat(Script(ANSWER)), max_bytes=max_bytes)


def fastapi(max_bytes: int) -> object:
    return chat_endpoint(Chat(Script(ANSWER)), max_bytes=max_bytes)


NONE = "or None for no limit"
FORMS: list[tuple[Callable[..., object], str, str]] = [
    (Limits, "calls", "1 or more"),
    (Limits, "tokens", f"1 or more, {NONE}"),
    (Limits, "seconds", f"a number above 0, {NONE}"),
    (Limits, "tool_seconds", f"a number above 0, {NONE}"),
    (Retry, "times", "0 or more"),
    (Retry, "seconds", "0 or more"),
    (keep_turns, "turns", "1 or more"),
    (Streams, "keep_alive", "a number above 0"),
    (Streams, "keep_finished", "0 or more"),
    (agent, "grace_seconds", "0 or more"),
    (agent, "wait_seconds", "0 or more"),
    (plain, "max_bytes", "1 or more"),
    (fastapi, "max_bytes", "1 or more"),
]

SECONDS = [(make, name) for make, name, _ in FORMS if "second" in name or "keep_" in name]


@pytest.mark.parametrize(("make", "name", "expected"), FORMS)
def test_a_number_below_its_least_is_refused_at_once(make: Callable[..., object], name: str, expected: str) -> None:
    with pytest.raises(ValueError, match=rf"\w+: {name} cannot be -1: expected {expected}$"):
        make(**{name: -1})


@pytest.mark.parametrize("given", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(("make", "name"), SECONDS)
def test_seconds_are_a_number_and_end(make: Callable[..., object], name: str, given: float) -> None:
    with pytest.raises(ValueError, match=f"{name} cannot be {given}: expected"):
        make(**{name: given})


@pytest.mark.parametrize(("make", "name"), SECONDS)
def test_a_number_that_no_clock_reaches_is_refused(make: Callable[..., object], name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} cannot be a number of this size: expected"):
        make(**{name: 10**5000})


def test_numbers_that_something_can_be_done_with_are_taken() -> None:
    assert Limits(1, 1, 0.1, None).calls == 1
    assert Retry(times=0, seconds=0).times == 0
    Streams(keep_alive=0.1, keep_finished=0)
    for place in ALLOWED:
        owner, name = place.split(".")
        check_numbers(owner, **{name: 1})


def test_a_replaced_limit_is_refused_by_what_is_limited() -> None:
    async def send(body: dict[str, Any]) -> AsyncGenerator[bytes, None]:
        yield b""

    with pytest.raises(ValueError, match=r"Limits: calls cannot be 0: expected 1 or more"):
        ProviderRuntime("anthropic", RequestOptions(model="m"), send, limits=Limits()._replace(calls=0))


@pytest.mark.parametrize(
    ("make", "name", "rest"),
    [
        (RequestOptions, "system_prompt", r"model, system, tools, .*; did you mean 'system'\?$"),
        (Ownership, "users", r"user, team, task, machine; did you mean 'user'\?$"),
        (Limits, "timeout", "calls, tokens, seconds, tool_seconds$"),
        (Retry, "time", r"times, seconds; did you mean 'times'\?$"),
        (Tool, "needs_approval", "run, needs_permission"),
    ],
)
def test_a_name_that_there_is_not_is_refused_with_those_that_there_are(
    make: Callable[..., object], name: str, rest: str
) -> None:
    with pytest.raises(TypeError, match=rf"^{make.__name__} has no parameter '{name}': expected some of {rest}"):
        make(**{name: 5})
