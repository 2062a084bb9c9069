"""A tool call in one line: the field of its input that describes it best, whatever the tool names it."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, cast

import msgspec
from msgspec import UNSET

from turnlog.model.parts import ToolCallPart

_FIELDS = (
    *("command", "cmd", "file_path", "filePath", "path", "absolute_path", "notebook_path", "dir_path"),
    *("pattern", "query", "url", "description", "question", "prompt", "skill"),
)
"""The most descriptive first."""

_SHELL_OPTION = re.compile(r"-[a-z]*c|-Command")
"""Before a command that a shell is to run."""


@cache
def _decoder() -> msgspec.json.Decoder[msgspec.Struct]:
    """Reads these fields of an input, and passes over all others: they may be whole files."""
    return msgspec.json.Decoder(msgspec.defstruct("Fields", [(name, Any, None) for name in _FIELDS]))


def call_summary(call: ToolCallPart) -> str | None:
    """The text of the most descriptive field of a call's input, unchanged; None where there is none.

    A command that is a list of words becomes one line.
    """
    if call.input is UNSET:
        return None
    try:
        fields = _decoder().decode(call.input)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    for name in _FIELDS:
        value = getattr(fields, name)
        text = _command(cast("list[Any]", value)) if isinstance(value, list) else value
        if isinstance(text, str) and text.strip():
            return text
    return None


def _command(words: list[Any]) -> str:
    """A command that is a list of words; of one that a shell is to run (`bash -lc`), what it runs."""
    line = [word for word in words if isinstance(word, str)]
    return line[2] if len(line) == 3 and _SHELL_OPTION.fullmatch(line[1]) else " ".join(line)
