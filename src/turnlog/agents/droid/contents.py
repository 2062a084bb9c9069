"""The contents of Droid's messages: blocks -> parts, results, and Droid's tools by kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial

import msgspec
from msgspec import Raw

from turnlog.agents.claude_code.contents import (
    REASONING_BLOCKS,
    exact_input,
    part_of,
    reasoning_part,
    result_id,
    text_of,
)
from turnlog.agents.claude_code.records import ContentBlock
from turnlog.agents.decoding import raw_at
from turnlog.agents.droid.records import DroidBlock
from turnlog.agents.jsonl import UNREADABLE
from turnlog.model import Part, ProviderData, ReasoningPart, ResultStatus, TextPart, ToolCallPart, ToolKind, ToolResult

TOOL_KINDS: dict[str, ToolKind] = {
    "ApplyPatch": ToolKind.EDIT,
    "AskUser": ToolKind.ASK,
    "Create": ToolKind.EDIT,
    "Edit": ToolKind.EDIT,
    "Execute": ToolKind.EXECUTE,
    "ExitSpecMode": ToolKind.SWITCH_MODE,
    "FetchUrl": ToolKind.FETCH,
    "Glob": ToolKind.SEARCH,
    "Grep": ToolKind.SEARCH,
    "LS": ToolKind.SEARCH,
    "MultiEdit": ToolKind.EDIT,
    "Read": ToolKind.READ,
    "Skill": ToolKind.READ,
    "Task": ToolKind.SUBAGENT,
    "TaskOutput": ToolKind.READ,
    "TodoWrite": ToolKind.THINK,
    "ToolSearch": ToolKind.SEARCH,
    "WebSearch": ToolKind.FETCH,
}
"""Tools that the recorded versions offer to the model; any other, MCP's included, is of kind `other`."""

_REFUSED = "Error: Exec ended early: insufficient permission"
"""How the result of a call begins for which `droid exec` may not ask."""

_ERROR = "Error: "

_EXIT_CODE = re.compile(r"\[Process exited with code (\d{1,3})\]\s*\Z")

_LONGEST_DURATION_MS = 1e12
"""What is longer is no duration."""


def message_part(block: DroidBlock, part_id: str, json: bytes, index: int, model: str | None) -> Part:
    """The part of a block that is neither a call nor a result.

    Args:
        block: The block.
        part_id: The id of its part.
        json: The record.
        index: The number of the block in its message.
        model: The model of the message.
    """
    if block.type in REASONING_BLOCKS:
        return _reasoning_part(block, part_id, model)
    return part_of(block, part_id, lambda: raw_at(json, "message", "content", index))


def _reasoning_part(block: DroidBlock, part_id: str, model: str | None) -> ReasoningPart:
    duration = block.duration_ms
    milliseconds = round(duration) if duration is not None and 0 <= duration <= _LONGEST_DURATION_MS else None
    part = reasoning_part(block, part_id, model, milliseconds)
    if part.provider is None or block.signature_provider is None:
        return part
    # With chat completions the signature is the name of the field from which the text came.
    provider = ProviderData(name=block.signature_provider, model=model, opaque=part.provider.opaque)
    return msgspec.structs.replace(part, provider=provider)


def call_part(block: DroidBlock, part_id: str, at: datetime | None) -> tuple[ToolCallPart, bool]:
    """The part of a `tool_use` block, and whether bytes that are not UTF-8 were replaced in its input."""
    name = block.name or ""
    value, is_replaced = exact_input(block.input)
    part = ToolCallPart(
        id=part_id,
        tool_call_id=block.id or part_id,
        tool_name=name,
        kind=TOOL_KINDS.get(name, ToolKind.OTHER),
        input=value,
        started_at=at,
    )
    return part, is_replaced


def result_of(block: DroidBlock, json: bytes, index: int, at: datetime | None) -> ToolResult:
    """The result in a `tool_result` block, the block `index` of its message."""
    call_id, content = block.tool_use_id or "", block.content
    blocks = content if isinstance(content, list) else None
    # Results have no id. A fork copies the record, so the id is made of the content and not of the offset.
    identity = result_id(call_id, text_of(content), blocks)
    if isinstance(content, str):
        parts: tuple[Part, ...] = (TextPart(id=f"{identity}.0", text=content),)
    else:
        parts = tuple(_result_parts(blocks or (), identity, json, index))
    text = text_of(content)
    status = _status_of(text, is_error=block.is_error is True)
    exit_code = _EXIT_CODE.search(text)
    return ToolResult(
        id=identity,
        status=status,
        content=parts,
        error_text=text.removeprefix(_ERROR) if status != "success" else None,
        exit_code=None if exit_code is None else int(exit_code[1]),
        completed_at=at,
    )


def _result_parts(blocks: Sequence[ContentBlock], identity: str, json: bytes, index: int) -> Iterator[Part]:
    for number, block in enumerate(blocks):
        place = ("message", "content", index, "content", number)
        yield part_of(block, f"{identity}.{number}", partial(raw_at, json, *place))


def _status_of(text: str, *, is_error: bool) -> ResultStatus:
    if not is_error:
        return "success"
    # A refused call has `is_error` like a failed one.
    return "denied" if text.startswith(_REFUSED) else "error"


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """The object that the text of a result is; None if the text is no JSON object."""
    try:
        content = msgspec.json.decode(raw_at(record, "message", "content"), type=list[DroidBlock])
        texts = [block.content for block in content if block.tool_use_id == tool_call_id]
        text = texts[0] if texts else None
        if not isinstance(text, str) or not text.startswith("{"):
            return None
        msgspec.json.decode(text, type=dict[str, Raw])
    except (KeyError, *UNREADABLE):
        return None
    return Raw(text.encode())
