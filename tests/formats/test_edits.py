"""Inputs of editing tools as diffs, by their shape."""

from __future__ import annotations

from typing import Any

import pytest

from turnlog.formats.edits import edit_diff
from turnlog.model import ToolCallPart, ToolKind, ToolResult
from turnlog.model.codec import to_json

PATCH = "*** Begin Patch\n*** Update File: a.py\n-old\n+new\n*** End Patch"


def call(value: Any, kind: ToolKind = ToolKind.EDIT) -> ToolCallPart:
    return ToolCallPart(tool_call_id="c", tool_name="Edit", kind=kind, input=to_json(value))


@pytest.mark.parametrize(
    "value",
    [
        {"file_path": "a.py", "old_string": "one\ntwo\n", "new_string": "one\n2\n"},
        {"filePath": "a.py", "oldString": "one\ntwo", "newString": "one\n2", "replaceAll": True},
        {"path": "a.py", "old_str": "one\ntwo", "new_str": "one\n2"},
        {"path": "a.py", "edits": [{"oldText": "one\ntwo", "newText": "one\n2"}]},
    ],
)
def test_old_and_new_text_are_a_diff(value: Any) -> None:
    assert edit_diff(call(value)) == "--- a.py\n+++ a.py\n@@\n one\n-two\n+2"


def test_several_edits_of_a_file_are_one_diff() -> None:
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": ""}, {"odd": 1}, 3]
    assert edit_diff(call({"file_path": "x", "edits": edits})) == "--- x\n+++ x\n@@\n-a\n+b\n@@\n-c"


def test_patches_are_themselves() -> None:
    for value in (PATCH, {"patch": PATCH}, {"input": PATCH}, {"command": ["apply_patch", PATCH]}):
        assert edit_diff(call(value)) == PATCH
    assert edit_diff(ToolCallPart(tool_call_id="c", tool_name="p", kind=ToolKind.EDIT, input_text=PATCH)) == PATCH


@pytest.mark.parametrize("value", [None, 3, [], {}, "text", {"old_string": "x", "new_string": 1}, {"edits": None}])
def test_what_says_no_change_has_no_diff(value: Any) -> None:
    assert edit_diff(call(value)) is None


def test_what_is_written_is_all_new() -> None:
    made = edit_diff(call({"file_path": "a.py", "content": "one\n\x0ctwo\n"}))
    assert made == "--- a.py\n+++ a.py\n+one\n+\x0ctwo"


HUNK = {"oldStart": 10, "oldLines": 2, "newStart": 10, "newLines": 3, "lines": [" one", "-two", "+2", "+3"]}
DIFF = "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-a\n+b\n"
RECORDED: dict[str, tuple[Any, str]] = {
    "hunks, as Claude Code": (
        {"filePath": "a.py", "structuredPatch": [HUNK, {"lines": [" z"]}, 3], "originalFile": "one\ntwo"},
        "--- a.py\n+++ a.py\n@@ -10,2 +10,3 @@\n one\n-two\n+2\n+3\n@@\n z\n@@",
    ),
    "a new file, as Claude Code": (
        {"type": "create", "filePath": "a.py", "content": "x\ny\n", "structuredPatch": []},
        "--- a.py\n+++ a.py\n+x\n+y",
    ),
    "files, as Codex": (
        {
            "type": "patch_apply_end",
            "changes": {
                "new.py": {"type": "add", "content": "x\n"},
                "old.py": {"type": "delete", "content": "y\n"},
                "a.py": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-a\n+b\n", "move_path": "b.py"},
            },
        },
        "--- new.py\n+++ new.py\n+x\n--- old.py\n+++ /dev/null\n-y\n--- a.py\n+++ b.py\n@@ -1 +1 @@\n-a\n+b",
    ),
    "a patch, as Gemini CLI": ({"fileDiff": DIFF, "fileName": "a.py"}, DIFF),
    "a patch, as OpenCode": ({"diff": "", "filediff": {"file": "a.py", "patch": DIFF}}, DIFF),
}


@pytest.mark.parametrize("name", RECORDED)
def test_what_an_agent_recorded_counts(name: str) -> None:
    structured, expected = RECORDED[name]
    edit_call = call({"file_path": "a.py", "old_string": "ASKED", "new_string": "FOR"})
    done = ToolResult(id="r", structured=to_json(structured))
    assert edit_diff(edit_call, [ToolResult(id="p"), done]) == expected


@pytest.mark.parametrize(
    "structured",
    [
        "denied",
        None,
        {},
        [],
        {"structuredPatch": []},
        {"changes": {}},
        {"changes": {"a": 3}},
        {"filediff": 3},
        {"diff": 1},
    ],
)
def test_without_a_record_the_input_counts(structured: Any) -> None:
    edit_call = call({"old_string": "a", "new_string": "b"})
    done = ToolResult(id="r", structured=to_json(structured))
    assert edit_diff(edit_call, [done]) == "@@\n-a\n+b"


def test_only_editing_tools_edit() -> None:
    assert edit_diff(call({"old_string": "a", "new_string": "b"}, ToolKind.READ)) is None
    assert edit_diff(ToolCallPart(tool_call_id="c", tool_name="Edit", kind=ToolKind.EDIT)) is None


def test_long_texts_are_replaced_as_a_whole() -> None:
    old, new = "a\n" * 3000, "b\n" * 3000
    made = edit_diff(call({"old_string": old, "new_string": new}))
    assert made == "\n".join(["-a"] * 3000 + ["+b"] * 3000)
