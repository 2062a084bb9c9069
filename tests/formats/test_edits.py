"""Inputs of editing tools as diffs, by their shape."""

from __future__ import annotations

from typing import Any

import pytest

from turnlog.formats.edits import edit_diff
from turnlog.model import ToolCallPart, ToolKind
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


@pytest.mark.parametrize("value", [None, 3, [], {}, "text", {"old_string": 1, "new_string": "x"}, {"edits": None}])
def test_what_says_no_change_has_no_diff(value: Any) -> None:
    assert edit_diff(call(value)) is None


def test_only_editing_tools_edit() -> None:
    assert edit_diff(call({"old_string": "a", "new_string": "b"}, ToolKind.READ)) is None
    assert edit_diff(ToolCallPart(tool_call_id="c", tool_name="Edit", kind=ToolKind.EDIT)) is None


def test_long_texts_are_replaced_as_a_whole() -> None:
    old, new = "a\n" * 3000, "b\n" * 3000
    made = edit_diff(call({"old_string": old, "new_string": new}))
    assert made == "\n".join(["-a"] * 3000 + ["+b"] * 3000)
