"""What an editing tool was asked to change, as a diff: from the old and the new text of its input, or its own patch.

Goes by the shape of the input, not by an agent's name: the fields are those that agents' editing tools have.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from turnlog.model import ToolCallPart, ToolKind

_PAIRS = (("old_string", "new_string"), ("oldString", "newString"), ("old_str", "new_str"), ("oldText", "newText"))
_PATCHES = ("patch", "patchText", "input", "diff", "command")
_PATHS = ("file_path", "filePath", "path", "absolute_path")
_PATCH_MARKS = ("*** Begin Patch", "--- ", "diff --git ")
_MOST_LINES = 2000
"""Lines of one side that are compared line by line; longer ones are told as replaced as a whole."""


def edit_diff(call: ToolCallPart) -> str | None:
    """The change that a call asks for; None for a call that edits nothing, or does not say how."""
    if call.kind is not ToolKind.EDIT:
        return None
    try:
        value = call.input_value()
    except msgspec.DecodeError:
        return None
    if isinstance(value, str):
        return value if value.startswith(_PATCH_MARKS) else None
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    return _patch_in(fields) or "\n".join(_lines(fields)) or None


def _patch_in(fields: dict[str, Any]) -> str | None:
    """A patch by itself, or as the last word of a command."""
    for found in (fields.get(name) for name in _PATCHES):
        words = cast("list[Any]", found) if isinstance(found, list) else [found]
        if words and isinstance(words[-1], str) and words[-1].startswith(_PATCH_MARKS):
            return words[-1]
    return None


def _lines(fields: dict[str, Any]) -> Iterator[str]:
    path = next((fields[name] for name in _PATHS if isinstance(fields.get(name), str)), None)
    edits = fields.get("edits")
    listed = cast("list[Any]", edits) if isinstance(edits, list) else [fields]
    for edit in listed:
        pair = _pair_of(edit)
        if pair is not None:
            yield from [f"--- {path}", f"+++ {path}"] if path else []
            path = None
            yield from _changed(*pair)


def _pair_of(edit: Any) -> tuple[str, str] | None:
    if not isinstance(edit, dict):
        return None
    fields = cast("dict[str, Any]", edit)
    for old, new in _PAIRS:
        if isinstance(fields.get(old), str) and isinstance(fields.get(new), str):
            return fields[old], fields[new]
    return None


def _changed(old: str, new: str) -> Iterator[str]:
    before, after = old.splitlines(), new.splitlines()
    if max(len(before), len(after)) > _MOST_LINES:
        yield from [*(f"-{line}" for line in before), *(f"+{line}" for line in after)]
        return
    made = difflib.unified_diff(before, after, lineterm="", n=3)
    # The first two lines name files. A text has no line numbers in its file.
    yield from ("@@" if line.startswith("@@") else line for line in list(made)[2:])
