"""A call without a result is aborted once the next turn begins: its process was killed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from support import droid_files, pi_files, qwen_files
from support.claude_files import Gathered, gather
from turnlog.agents import agent, fold_bytes
from turnlog.agents.base import Source
from turnlog.agents.row_files import line_of
from turnlog.model import ToolCallPart
from turnlog.model.parts import ToolState

Reader = Callable[[bool, bool], Gathered]
"""Reads a log with a prompt and a call, then with another prompt (first argument), then with a result (second)."""


def _pi(goes_on: bool, has_result: bool) -> Gathered:
    further = [pi_files.user("On", 3)] if goes_on else []
    late = [pi_files.result("c", 4, parent=2)] if has_result else []
    first = (pi_files.header(), pi_files.user("Hi", 1), pi_files.answer(2, pi_files.call("c")))
    return pi_files.fold(*first, *further, *late)


def _qwen(goes_on: bool, has_result: bool) -> Gathered:
    further = [qwen_files.user("3", "2", "On")] if goes_on else []
    late = [qwen_files.result("4", "2", "c")] if has_result else []
    first = (qwen_files.user("1", None, "Hi"), qwen_files.answer("2", "1", qwen_files.call("c")))
    return qwen_files.fold(*first, *further, *late)


def _droid(goes_on: bool, has_result: bool) -> Gathered:
    further = [droid_files.user("3", "2", "On")] if goes_on else []
    late = [droid_files.user("4", "2", droid_files.result("c", "ok"))] if has_result else []
    first = (droid_files.user("1", None, "Hi"), droid_files.answer("2", "1", droid_files.call("c")))
    return droid_files.fold(*first, *further, *late)


def _kimi(goes_on: bool, has_result: bool) -> Gathered:
    def prompt(at: int) -> dict[str, Any]:
        message = {"role": "user", "content": [{"type": "text", "text": "Hi"}], "id": f"m{at}"}
        return {"type": "context.append_message", "message": message, "time": at}

    def event(at: int, **fields: Any) -> dict[str, Any]:
        return {"type": "context.append_loop_event", "event": fields, "time": at}

    begin = event(2, type="step.begin", uuid="s")
    called = event(3, type="tool.call", stepUuid="s", toolCallId="c", name="Bash", args={"command": "sleep 9"})
    result = event(5, type="tool.result", toolCallId="c", result={"output": "ok"})
    records = [prompt(1), begin, called, *([prompt(4)] if goes_on else []), *([result] if has_result else [])]
    path = "/home/dev/.kimi-code/sessions/wd_work_1/session_1/agents/main/wire.jsonl"
    source = Source(agent="kimi-code", path=path, root="/home/dev/.kimi-code", session_id="kimi-code:session_1")
    lines = [json.dumps(each).encode() + b"\n" for each in records]
    return gather(fold_bytes(agent("kimi-code"), source, b"".join(lines)))


def _hermes(goes_on: bool, has_result: bool) -> Gathered:
    called = json.dumps([{"id": "c", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}])
    rows = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "", "tool_calls": called}]
    rows += [{"role": "user", "content": "On"}] if goes_on else []
    rows += [{"role": "tool", "content": "ok", "tool_call_id": "c", "tool_name": "terminal"}] if has_result else []
    facts = {"session_id": "s", "active": 1, "compacted": 0}
    numbered = [facts | row | {"id": number, "timestamp": number} for number, row in enumerate(rows, 1)]
    source = Source(agent="hermes", path="/h/state.db#s", root="/h", session_id="hermes:s")
    return gather(fold_bytes(agent("hermes"), source, b"".join(line_of("messages", row) for row in numbered)))


def _grok(goes_on: bool, has_result: bool) -> Gathered:
    def update(at: int, kind: str, **fields: Any) -> bytes:
        params = {"sessionId": "s", "update": {"sessionUpdate": kind, **fields}, "_meta": {"eventId": f"s-{at}"}}
        return json.dumps({"timestamp": at, "method": "session/update", "params": params}).encode() + b"\n"

    def prompt(at: int) -> bytes:
        return update(at, "user_message_chunk", content={"type": "text", "text": "Hi"}, _meta={"promptIndex": at})

    lines = [prompt(1), update(2, "tool_call", toolCallId="c", title="run_terminal_command", rawInput={})]
    lines += [prompt(3)] if goes_on else []
    done = [{"type": "content", "content": {"type": "text", "text": "ok"}}]
    lines += [update(4, "tool_call_update", toolCallId="c", status="completed", content=done)] if has_result else []
    path = "/home/dev/.grok/sessions/%2Fwork/s/updates.jsonl"
    source = Source(agent="grok-build", path=path, root="/home/dev/.grok", session_id="grok-build:s")
    return gather(fold_bytes(agent("grok-build"), source, b"".join(lines)))


@pytest.mark.parametrize("read", [_grok, _pi, _qwen, _droid, _kimi, _hermes])
def test_a_call_without_a_result_is_aborted_by_the_next_prompt(read: Reader) -> None:
    assert _state(read(False, False)) is ToolState.INPUT_AVAILABLE
    assert _state(read(True, False)) is ToolState.ABORTED
    # A result that comes after all says how the call ended.
    assert _state(read(True, True)) is ToolState.OUTPUT_AVAILABLE


def _state(found: Gathered) -> ToolState:
    [call] = [part for each in found.messages.values() for part in each.parts if isinstance(part, ToolCallPart)]
    return call.state
