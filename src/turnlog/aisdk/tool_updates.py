"""What becomes of a tool part when a chunk tells something of its call, by the rules of each major version."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from turnlog.aisdk.base import OptionalMetadata, OptionalText
from turnlog.aisdk.parts import DynamicToolUIPart, ToolUIPart

ToolPart: TypeAlias = ToolUIPart | DynamicToolUIPart

_OUTPUT_STATES = ("output-available", "output-error")


class ToolUpdate(msgspec.Struct, kw_only=True):
    """What a chunk makes of a tool part. Everything that is not told is taken away, but for the last four."""

    tool_call_id: str
    tool_name: str
    state: str
    input: Any = UNSET
    raw_input: Any = UNSET
    input_encoding: OptionalText = UNSET
    output: Any = UNSET
    error_text: OptionalText = UNSET
    preliminary: Any = UNSET
    provider_executed: Any = UNSET
    provider_metadata: OptionalMetadata = UNSET
    title: OptionalText = UNSET
    tool_metadata: Any = UNSET


def updated_part(part: ToolPart, update: ToolUpdate, major: int) -> ToolPart:
    """The part after an update, by the rules of a major version."""
    executed = update.provider_executed
    changes: dict[str, Any] = {
        "state": update.state,
        "input": update.input,
        "raw_input": update.raw_input,
        "output": update.output,
        "error_text": update.error_text,
        "preliminary": update.preliminary,
        "provider_executed": part.provider_executed if executed is UNSET else executed,
    }
    if isinstance(part, DynamicToolUIPart):
        changes["tool_name"] = update.tool_name
    if major > 5:
        changes |= _changes_since_6(part, update)
    elif update.provider_metadata is not UNSET and update.state == "input-available":
        changes["call_provider_metadata"] = update.provider_metadata
    return replace(part, **changes)


def _changes_since_6(part: ToolPart, update: ToolUpdate) -> dict[str, Any]:
    changes: dict[str, Any] = {"input_encoding": update.input_encoding}
    if isinstance(part, ToolUIPart):
        changes["type"] = f"tool-{update.tool_name}"
    if update.title is not UNSET:
        changes["title"] = update.title
    if update.tool_metadata is not UNSET:
        changes["tool_metadata"] = update.tool_metadata
    if update.provider_metadata is not UNSET:
        changes[_metadata_field(update.state)] = update.provider_metadata
    return changes


def new_part(update: ToolUpdate, major: int, *, dynamic: bool) -> ToolPart:
    """A part for a call that has none in its step. A dynamic one begins without its raw input."""
    fields: dict[str, Any] = {
        "tool_call_id": update.tool_call_id,
        "state": update.state,
        "input": update.input,
        "output": update.output,
        "error_text": update.error_text,
        "preliminary": update.preliminary,
        "provider_executed": update.provider_executed,
    }
    if major > 5:
        fields["input_encoding"] = update.input_encoding
        fields["title"] = update.title
        fields["tool_metadata"] = update.tool_metadata
    holder = "call_provider_metadata" if major == 5 else _metadata_field(update.state)
    fields[holder] = update.provider_metadata
    if dynamic:
        return DynamicToolUIPart(tool_name=update.tool_name, **fields)
    return ToolUIPart(type=f"tool-{update.tool_name}", raw_input=update.raw_input, **fields)


def _metadata_field(state: str) -> str:
    return "result_provider_metadata" if state in _OUTPUT_STATES else "call_provider_metadata"
