"""Every recorded session, as UI messages, is valid for the real AI SDK and becomes model messages (R-H17)."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from support.ai_sdk_judge import VERSIONS, Judge, assert_same_in_javascript
from support.profiles import THOROUGH, of_view, some_of
from support.recorded_sessions import recorded_sessions
from turnlog.aisdk import from_ui_messages, parse_ui_messages, validate_ui_messages
from turnlog.aisdk.convert import to_ui_json
from turnlog.aisdk.model_messages import to_model_messages
from turnlog.model.codec import encode

OPTIONS: list[dict[str, Any]] = [{}, {"tools": "named", "developer": "user", "merge_steps": False}]


@cache
def shown(version: int, **options: Any) -> dict[str, list[dict[str, Any]]]:
    """Session -> its UI messages; AI SDK takes no empty list. Made once: nobody changes them."""
    view = VERSIONS.index(version) + len(VERSIONS) * OPTIONS.index(options)
    found: dict[str, list[dict[str, Any]]] = {}
    for name, messages in of_view([*recorded_sessions().items()], view, len(VERSIONS) * len(OPTIONS)):
        bodies = [encode(message) for message in messages]
        found[name] = json.loads(to_ui_json(bodies, version=version, **options).to_json())
    return {name: messages for name, messages in found.items() if messages}


def without_titles(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """6 shows the title of a tool call while it streams, but its validator takes it out of what is stored."""
    return [{**message, "parts": [_without_title(part) for part in message["parts"]]} for message in messages]


def _without_title(part: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name != "title" or "toolCallId" not in part}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_sessions_are_valid_and_lose_nothing(judge: Judge, version: int, options: dict[str, Any]) -> None:
    sessions = shown(version, **options)
    assert len(sessions) > 50 / (1 if THOROUGH else len(VERSIONS) * len(OPTIONS))
    answers = judge.ask("validate", version, [{"messages": messages} for messages in sessions.values()])
    for (name, messages), answer in zip(sessions.items(), answers, strict=True):
        wanted = without_titles(messages) if version == 6 else messages
        assert_same_in_javascript(answer.get("messages", answer), wanted, name)


@pytest.mark.parametrize("version", VERSIONS)
def test_sessions_come_back_from_what_a_validator_leaves(judge: Judge, version: int) -> None:
    """R-H17, also where the messages were kept by another program."""
    sessions = dict(some_of([*shown(version).items()], 20))
    answers = judge.ask("validate", version, [{"messages": messages} for messages in sessions.values()])
    for name, answer in zip(sessions, answers, strict=True):
        received = from_ui_messages(parse_ui_messages(json.dumps(answer["messages"])), trusted=True)
        back = [json.loads(encode(message)) for message in received.messages]
        recorded = [json.loads(encode(message)) for message in recorded_sessions()[name]]
        assert_same_in_javascript(back, recorded, name)


@pytest.mark.parametrize("version", VERSIONS)
def test_sessions_become_model_messages(judge: Judge, version: int) -> None:
    sessions = shown(version)
    answers = judge.ask("model", version, [{"messages": messages} for messages in sessions.values()])
    for (name, messages), answer in zip(sessions.items(), answers, strict=True):
        mine = to_model_messages(messages, version=version)
        assert_same_in_javascript(mine, answer.get("messages", answer), name)
        # The one thing for which the real function warns.
        failed = [part for message in messages for part in message["parts"] if part.get("state") == "output-error"]
        assert not [part for part in failed if "rawInput" in part], name


def test_the_judge_and_our_validator_agree_on_them() -> None:
    for name, messages in shown(7).items():
        assert len(validate_ui_messages(messages, version=7)) == len(messages), name
