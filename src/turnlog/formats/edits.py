"""What an editing tool changed, as a diff: as the agent recorded it, else as the model asked for it.

Goes by the shape of JSON, not by an agent's name: the fields are those that agents' editing tools have. A recorded
change knows its line numbers and the lines around it; a requested change knows neither.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec

from turnlog.model import ToolCallPart, ToolKind, ToolResult

_OLD = ("old_string", "oldString", "old_str", "old_text", "oldText")
_NEW = ("new_string", "newString", "new_str", "new_text", "newText")
_CONTENT = ("content", "contents", "file_text", "new_source")
_PATCHES = ("patch", "patchText", "diff", "unified_diff", "fileDiff", "input", "command")
_PATHS = ("file_path", "filePath", "path", "absolute_path", "notebook_path", "fileName")
_PATCH_MARKS = ("*** Begin Patch", "--- ", "diff --git ", "Index: ", "@@ ")
_MOST_LINES = 2000
"""Lines of one side that are compared line by line; longer ones are shown as replaced as a whole."""

Fields = dict[str, Any]


def edit_diff(call: ToolCallPart, results: Iterable[ToolResult] = ()) -> str | None:
    """The change that a call made, or asks for; None where it edits nothing or the log does not say how."""
    if call.kind is not ToolKind.EDIT:
        return None
    recorded = (_recorded(result.structured) for result in results if isinstance(result.structured, msgspec.Raw))
    return next((diff for diff in recorded if diff), None) or _asked_for(call)


def _asked_for(call: ToolCallPart) -> str | None:
    try:
        value = call.input_value()
    except msgspec.DecodeError:
        return None
    if isinstance(value, str):
        return value if value.startswith(_PATCH_MARKS) else None
    fields = _fields(value)
    return _patch_in(fields) or "\n".join(_replaced(fields)) or None


def _recorded(structured: msgspec.Raw) -> str | None:
    """What an agent wrote down of a change: hunks, a whole new file, a patch, or one of these a file."""
    try:
        found = _fields(msgspec.json.decode(structured))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if (files := _fields(found.get("changes"))) != {}:
        return "\n".join([line for path, change in files.items() for line in _file(path, _fields(change))]) or None
    hunks = [_fields(hunk) for hunk in _listed(found.get("structuredPatch"))]
    path = _text(found, _PATHS)
    if hunks:
        return "\n".join([*_names(path), *[line for hunk in hunks for line in _hunk(hunk)]])
    if found.get("type") == "create":
        return "\n".join(_added(path, _text(found, _CONTENT) or "")) or None
    return _patch_in(_fields(found.get("filediff"))) or _patch_in(found)


def _file(path: str, change: Fields) -> Iterator[str]:
    """One of many files, as Codex records them."""
    if change.get("type") == "add":
        yield from _added(path, _text(change, _CONTENT) or "")
    elif change.get("type") == "delete":
        yield from [f"--- {path}", "+++ /dev/null", *(f"-{line}" for line in _lines(_text(change, _CONTENT) or ""))]
    else:
        patch, moved_to = _patch_in(change), _text(change, ("move_path",))
        if patch is not None or moved_to is not None:
            yield from () if patch is not None and patch.startswith("--- ") else _names(path, moved_to)
            yield from () if patch is None else [patch.rstrip("\n")]


def _hunk(hunk: Fields) -> Iterator[str]:
    """A hunk as Claude Code records it."""
    numbers = [hunk.get(name) for name in ("oldStart", "oldLines", "newStart", "newLines")]
    yield "@@ -{},{} +{},{} @@".format(*numbers) if all(isinstance(number, int) for number in numbers) else "@@"
    yield from [line for line in _listed(hunk.get("lines")) if isinstance(line, str)]


def _patch_in(fields: Fields) -> str | None:
    """A patch by itself, or as the last word of a command."""
    for found in (fields.get(name) for name in _PATCHES):
        words = _listed(found) or [found]
        if isinstance(words[-1], str) and words[-1].startswith(_PATCH_MARKS):
            return words[-1]
    return None


def _replaced(fields: Fields) -> Iterator[str]:
    path = _text(fields, _PATHS)
    for edit in [_fields(edit) for edit in _listed(fields.get("edits"))] or [fields]:
        new, content = _text(edit, _NEW), _text(edit, _CONTENT)
        if new is not None:
            yield from [*_names(path), *_compared(_text(edit, _OLD) or "", new)]
            path = None
        elif content is not None:
            yield from _added(path, content)


def _compared(old: str, new: str) -> Iterator[str]:
    before, after = _lines(old), _lines(new)
    if max(len(before), len(after)) > _MOST_LINES:
        yield from [*(f"-{line}" for line in before), *(f"+{line}" for line in after)]
        return
    made = difflib.unified_diff(before, after, lineterm="", n=3)
    # The first two lines name files. A text has no line numbers in its file.
    yield from ("@@" if line.startswith("@@") else line for line in list(made)[2:])


def _added(path: str | None, content: str) -> Iterator[str]:
    """A whole file: the content does not say whether there was one before."""
    yield from [*_names(path), *(f"+{line}" for line in _lines(content))]


def _names(path: str | None, moved_to: str | None = None) -> list[str]:
    return [] if path is None else [f"--- {path}", f"+++ {moved_to or path}"]


def _lines(text: str) -> list[str]:
    """As a patch counts them: other line separators than the line feed do not part a line."""
    return text.removesuffix("\n").split("\n") if text else []


def _text(fields: Fields, names: Iterable[str]) -> str | None:
    return next((fields[name] for name in names if isinstance(fields.get(name), str)), None)


def _fields(value: Any) -> Fields:
    return cast("Fields", value) if isinstance(value, dict) else {}


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
