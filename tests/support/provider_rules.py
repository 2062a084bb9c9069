"""The structural rules of the provider APIs, as docs/reference/providers.md lists them."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

Body = dict[str, Any]


def check_rules(name: str, body: Body) -> None:
    """Fail where a body breaks a rule of its API."""
    _CHECKS[name](body)


def _with_next(items: list[Body], end: Body) -> list[tuple[Body, Body]]:
    return list(pairwise([*items, end]))


def check_anthropic(body: Body) -> None:
    turns: list[Body] = body["messages"]
    assert not turns or turns[0]["role"] == "user", "A1: the first turn is the user's"
    assert all(one["role"] != other["role"] for one, other in pairwise(turns)), "A2: turns alternate"
    ids = [block["id"] for turn in turns for block in turn["content"] if block["type"] == "tool_use"]
    assert len(ids) == len(set(ids)), "A3: ids of calls are unique"
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]+", call_id) for call_id in ids), "A3: ids are plain"
    for turn, following in _with_next(turns, {"role": "user", "content": []}):
        blocks = turn["content"]
        assert blocks, "A4: no turn is empty"
        assert all(block["text"].strip() for block in blocks if block["type"] == "text"), "A4: no text is blank"
        called = [block["id"] for block in blocks if block["type"] == "tool_use"]
        answers = [block["tool_use_id"] for block in following["content"] if block["type"] == "tool_result"]
        assert called == answers, "A5: the next turn answers every call, once, and nothing else"
        kinds = [block["type"] == "tool_result" for block in following["content"]]
        assert kinds == sorted(kinds, reverse=True), "A5: results stand first"
        if turn["role"] == "assistant":
            assert "thinking" not in blocks[-1]["type"], "A6: no turn ends with thinking"
        for block in blocks:
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,200}", block.get("name", "x")), "A7: names are plain"
            assert isinstance(block.get("input", {}), dict), "A7: arguments are an object"
            assert block["type"] != "tool_result" or block["content"], "A4: no result is empty"
    if turns and turns[-1]["role"] == "assistant":
        text = turns[-1]["content"][-1].get("text", "")
        assert text == text.rstrip(), "A8: what is to be continued does not end in white space"


def check_chat(body: Body) -> None:
    messages: list[Body] = body["messages"]
    assert all(message["role"] != "system" for message in messages[1:]), "C1: the system prompt comes first, once"
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert waiting, "C2: a result belongs to a call"
            assert message["tool_call_id"] == waiting.pop(0), "C2: results follow their calls"
            assert message["content"], "C3: no message is empty"
            continue
        assert not waiting, "C2: all results come before anything else"
        calls = message.get("tool_calls", [])
        assert message["content"] or calls, "C3: no message is empty"
        waiting = [call["id"] for call in calls]
        assert not seen.intersection(waiting), "C4: ids of calls are unique"
        seen.update(waiting)
        for call in calls:
            assert 1 <= len(call["id"]) <= 40, "C4: ids are short"
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["function"]["name"]), "C5: names are plain"
            assert isinstance(call["function"]["arguments"], str), "C5: arguments are a string"
    assert not waiting, "C2: every call has its result"


def check_responses(body: Body) -> None:
    items: list[Body] = body["input"]
    calls = [item["call_id"] for item in items if item["type"] == "function_call"]
    answers = [item["call_id"] for item in items if item["type"] == "function_call_output"]
    assert calls == answers, "R1: every call has one output, in order"
    assert len(set(calls)) == len(calls), "R2: ids of calls are unique"
    assert all(1 <= len(call_id) <= 64 for call_id in calls), "R2: ids are short"
    open_calls: list[str] = []
    for item, following in _with_next(items, {"type": "end"}):
        if item["type"] == "function_call":
            open_calls.append(item["call_id"])
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", item["name"]), "R3: names are plain"
        if item["type"] == "function_call_output":
            assert open_calls.pop(0) == item["call_id"], "R1: an output comes behind its call"
            assert item["output"], "R4: no output is empty"
        if item["type"] == "message":
            assert item["content"], "R4: no message is empty"
            assert item["role"] == "assistant" or not open_calls, "R1: outputs come before the user speaks again"
        if item["type"] == "reasoning":
            led_to = following["type"] in ("reasoning", "function_call", "web_search_call")
            assert led_to or following.get("role") == "assistant", "R5: reasoning is followed by what it led to"


def check_gemini(body: Body, *, signed: bool = True) -> None:
    contents: list[Body] = body["contents"]
    assert not contents or contents[0]["role"] == "user", "G1: the first content is the user's"
    for content, following in _with_next(contents, {"role": "end", "parts": []}):
        assert content["parts"], "G2: no content is empty"
        calls = [part for part in content["parts"] if "functionCall" in part]
        names = [part["functionCall"]["name"] for part in calls]
        answered = [part["functionResponse"]["name"] for part in following["parts"] if "functionResponse" in part]
        assert names == answered, "G3: the next content answers every call, and nothing else"
        assert not answered or len(answered) == len(following["parts"]), "G3: responses stand by themselves"
        assert {content["role"], following["role"]} != {"model"}, "G4: no model content follows another"
        assert not signed or not calls or "thoughtSignature" in calls[0], "G5: the first call of a step is signed"
        assert all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", name) for name in names), "G6: names are plain"


_CHECKS: dict[str, Callable[[Body], None]] = {
    "anthropic": check_anthropic,
    "openai-chat": check_chat,
    "openrouter": check_chat,
    "responses": check_responses,
    "gemini": check_gemini,
}
