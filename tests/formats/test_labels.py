"""What documents say of a call."""

from __future__ import annotations

from typing import Any

import pytest

from turnlog.formats.labels import call_outcome, subject
from turnlog.model import ResultStatus, ToolCallPart, ToolResult, ToolState
from turnlog.model.codec import to_json


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"command": "make  test\n  lint"}, "make test lint"),
        ({"command": ["bash", "-lc", "ls"], "description": "Lists"}, "ls"),
        ({"command": ["grep", "-c", "x", "a.txt"]}, "grep -c x a.txt"),
        ({"command": "", "path": 3, "pattern": "x.*"}, "x.*"),
        ({"file_path": "/a/b.py", "old_string": "x"}, "/a/b.py"),
        ({"query": "y" * 500}, "y" * 120 + "…"),
        ({"todos": []}, None),
        (["make"], None),
        ("text", None),
    ],
)
def test_a_call_is_about_what_its_input_says_first(fields: Any, expected: str | None) -> None:
    assert subject(ToolCallPart(tool_call_id="c", tool_name="t", input=to_json(fields))) == expected


def test_a_title_says_it_best_and_text_says_nothing() -> None:
    assert subject(ToolCallPart(tool_call_id="c", tool_name="t", title="Run", input=to_json({"command": "x"}))) == "Run"
    assert subject(ToolCallPart(tool_call_id="c", tool_name="t", input_text="*** Begin Patch")) is None


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([], "no result"),
        (["success"], "done"),
        (["error"], "failed"),
        (["aborted"], "aborted"),
        (["denied"], "denied"),
        (["aborted", "success"], "done"),
    ],
)
def test_a_call_ended_as_its_results_say(statuses: list[ResultStatus], expected: str) -> None:
    call = ToolCallPart(tool_call_id="c", tool_name="t", state=ToolState.INPUT_AVAILABLE)
    assert call_outcome(call, [ToolResult(id=status, status=status) for status in statuses]) == expected
