"""The shapes of parts and chunks: what they are called, and what becomes of null and of what is missing."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args

import msgspec
import pytest

from turnlog import aisdk
from turnlog.aisdk.base import UIValue
from turnlog.aisdk.chunks import CHUNK_TYPES, chunk_class
from turnlog.aisdk.parts import PART_TYPES, part_class

HEAVY = ("click", "fastapi", "genai_prices", "pydantic", "rich", "sqlite3", "starlette", "uvicorn", "turnlog.store")


def test_importing_it_pulls_in_no_web_command_or_database_package() -> None:
    script = f"import sys, turnlog.aisdk; print([name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(("kind", "struct"), [*PART_TYPES.items(), *CHUNK_TYPES.items()])
def test_the_class_says_the_type_that_its_json_has(kind: str, struct: type[UIValue]) -> None:
    assert struct.__dict__["type"] == kind


def test_every_part_and_chunk_of_the_unions_is_public() -> None:
    members = {*get_args(aisdk.UIMessagePart), *get_args(aisdk.UIMessageChunk)}
    assert {member.__name__ for member in members} <= set(aisdk.__all__)


def test_prefixes_lead_to_tools_and_data() -> None:
    assert part_class("tool-read") is aisdk.ToolUIPart
    assert part_class("data-") is aisdk.DataUIPart
    assert chunk_class("data-x") is aisdk.DataChunk
    assert part_class("tool-invocation") is aisdk.ToolUIPart
    assert part_class("image") is chunk_class("image") is None


def test_a_required_null_is_written_and_what_is_missing_is_not() -> None:
    chunk = aisdk.ToolOutputAvailableChunk(tool_call_id="c", output=None)
    assert msgspec.json.encode(chunk) == b'{"type":"tool-output-available","toolCallId":"c","output":null}'
    part = aisdk.TextUIPart(text="hi")
    assert msgspec.json.encode(part) == b'{"type":"text","text":"hi"}'


def test_names_are_told_from_the_type() -> None:
    tool = aisdk.ToolUIPart(type="tool-a-b", tool_call_id="c", state="input-available", input={})
    assert tool.tool_name == "a-b"
    assert aisdk.DataUIPart(type="data-x", data=None).name == aisdk.DataChunk(type="data-x", data=None).name == "x"
    assert aisdk.UnknownUIPart(value={"type": "image"}).type == "image"
    assert aisdk.UnknownChunk(value=[1]).type == ""
