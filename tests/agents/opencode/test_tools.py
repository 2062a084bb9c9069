"""What became of a call, by the words of its row."""

from __future__ import annotations

from typing import Any

import pytest

from turnlog.agents.opencode.tools import read_call
from turnlog.model import ToolState

STOPPED = "(no output)\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>"
TIMED_OUT = "x\n<shell_metadata>\nshell tool terminated command after exceeding timeout 10 ms\n</shell_metadata>"


def state_of(tool: str, **state: Any) -> ToolState:
    part: dict[str, Any] = {"type": "tool", "tool": tool, "callID": "c1", "state": {"input": {}, **state}}
    return read_call(part, "p1", None, is_over=True).part.state


@pytest.mark.parametrize(
    ("error", "state"),
    [
        ("The user rejected permission to use this specific tool call.", ToolState.OUTPUT_DENIED),
        ('PermissionRejectedError({"_tag":"PermissionRejectedError"})', ToolState.OUTPUT_DENIED),
        ('PermissionCorrectedError({"feedback":"use cat"})', ToolState.OUTPUT_DENIED),
        ('PermissionDeniedError({"ruleset":[]})', ToolState.OUTPUT_DENIED),
        ('QuestionRejectedError({"_tag":"QuestionRejectedError"})', ToolState.OUTPUT_DENIED),
        ("Tool execution aborted", ToolState.ABORTED),
        ("Task cancelled", ToolState.ABORTED),
        ("File not found: x", ToolState.OUTPUT_ERROR),
        ("Error: EACCES: permission denied, open '/etc/shadow'", ToolState.OUTPUT_ERROR),
    ],
)
def test_the_error_text_decides_the_state_of_a_call(error: str, state: ToolState) -> None:
    """R-K9: stopped is not failed is not refused. 1.2.27 tells a refusal by the name of its error."""
    assert state_of("task", status="error", error=error) is state


@pytest.mark.parametrize(
    ("output", "exit_code", "state"),
    [
        (STOPPED, None, ToolState.ABORTED),
        (STOPPED.replace("shell", "bash"), None, ToolState.ABORTED),
        (STOPPED, 0, ToolState.OUTPUT_AVAILABLE),
        (f"{STOPPED} is what the file says", None, ToolState.OUTPUT_AVAILABLE),
        (TIMED_OUT, None, ToolState.OUTPUT_AVAILABLE),
        ("no such file", 3, ToolState.OUTPUT_ERROR),
        ("", 3, ToolState.OUTPUT_ERROR),
        ("", 0, ToolState.OUTPUT_AVAILABLE),
    ],
)
def test_the_end_of_a_command_decides_the_state_of_its_call(
    output: str, exit_code: int | None, state: ToolState
) -> None:
    """R-K9: since about 1.14 one that the user stopped is completed, without an exit code; its output says so."""
    assert state_of("bash", status="completed", output=output, metadata={"exit": exit_code}) is state


def test_an_input_that_is_nested_too_deep_is_named_by_its_size() -> None:
    """R-S34"""
    deep: Any = []
    for _ in range(600):
        deep = [deep]
    part = {"type": "tool", "tool": "task", "callID": "c1", "state": {"status": "completed", "input": deep}}
    assert read_call(part, "p1", None, is_over=True).part.input_value() == {"bytes": 1202}
