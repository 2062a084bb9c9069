"""Fields that only one agent tells, and that a coming version may bring, are kept as metadata (R-C11)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gemini_files
import klaude_files
import opencode_files
from turnlog.agents.reading import other_fields
from turnlog.model import Message, ToolCallPart

NEWS: dict[str, Any] = {"colour": "red", "nested": {"deep": [1, None]}, "nothing": None, "large": "x" * 5000}
KEPT = {"colour": "red", "nested": {"deep": [1, None]}, "large": {"bytes": 5002}}


def test_what_is_known_is_left_out_and_what_is_large_is_told_by_its_size() -> None:
    """R-C11"""
    assert other_fields({"id": "1", **NEWS}, frozenset({"id"})) == {"other_fields": KEPT}
    assert other_fields({"id": "1"}, frozenset({"id"})) == {}


def test_gemini_cli_keeps_them_on_messages_and_calls() -> None:
    """R-C11"""
    call: dict[str, Any] = {"id": "c", "name": "read_file", "args": {}, "status": "success", "result": [], **NEWS}
    user: dict[str, Any] = {"id": "u", "timestamp": "2026-11-21T10:00:00Z", "type": "user", "content": "Hi", **NEWS}
    answer = {**user, "id": "g", "type": "gemini", "toolCalls": [call]}
    found = gemini_files.fold(gemini_files.header(), user, answer)
    messages = list(found.messages.values())
    assert [message.metadata["gemini-cli"] for message in messages] == [{"other_fields": KEPT}] * 2
    assert found.calls()[0].metadata == {"gemini-cli": {"other_fields": KEPT}}


def test_klaude_keeps_them_on_messages_and_results() -> None:
    """R-C11"""
    found = klaude_files.fold(
        klaude_files.user("u", "Hi", **NEWS),
        klaude_files.answer("a", klaude_files.call("c"), phase="final", **NEWS),
        klaude_files.result("c", **NEWS),
    )
    prompt, answer = found.messages.values()
    assert prompt.metadata == {"klaude": {"other_fields": KEPT}}
    assert answer.metadata == {"klaude": {"phase": "final", "other_fields": KEPT}}
    assert calls_of(answer)[0].results[0].metadata == {"klaude": {"other_fields": KEPT}}


def test_opencode_keeps_them_on_messages_parts_and_results(tmp_path: Path) -> None:
    """R-C11"""
    created = 1_800_000_000_000
    ids = {"session_id": "ses_1", "time_created": created, "time_updated": created}
    info = {"role": "assistant", "time": {"created": created, "completed": created}, **NEWS}
    state = {"status": "completed", "input": {}, "output": "ok", "time": {"start": created, "end": created}, **NEWS}
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": "Hi", **NEWS},
        {"type": "reasoning", "text": "Hm", **NEWS},
        {"type": "tool", "callID": "c", "tool": "bash", "state": state, **NEWS},
    ]
    rows: opencode_files.Rows = {
        "session": [{"id": "ses_1", "project_id": "p", "version": "1.18.33", **ids}],
        "message": [{"id": "msg_1", **ids, "data": json.dumps(info)}],
        "part": [
            {"id": f"prt_{number}", "message_id": "msg_1", **ids, "data": json.dumps(part)}
            for number, part in enumerate(parts)
        ],
    }
    (message,) = opencode_files.read_rows(rows, tmp_path).messages.values()
    assert {name: message.metadata["opencode"][name] for name in NEWS} == NEWS
    assert [part.metadata["opencode"] for part in message.parts] == [{"other_fields": KEPT}] * 3
    assert calls_of(message)[0].results[0].metadata == {"opencode": {"other_fields": KEPT}}


def calls_of(message: Message) -> list[ToolCallPart]:
    return [part for part in message.parts if isinstance(part, ToolCallPart)]
