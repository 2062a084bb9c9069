"""What Goose's messages hold: texts, thoughts, calls, results and tokens -> parts, and its tools by kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.claude_code.contents import from_base64
from turnlog.agents.databases import Row
from turnlog.agents.decoding import clean_json, list_of, object_of, text_of, value_of
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.row_files import RowLine, row_of
from turnlog.model import (
    Cost,
    FilePart,
    Part,
    ProviderData,
    ReasoningPart,
    ResultStatus,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    UnknownPart,
    Usage,
)

TOOL_KINDS: dict[str, ToolKind] = {
    "analyze": ToolKind.READ,
    "delegate": ToolKind.SUBAGENT,
    "edit": ToolKind.EDIT,
    "list_resources": ToolKind.SEARCH,
    "load": ToolKind.READ,
    "load_skill": ToolKind.READ,
    "read_image": ToolKind.READ,
    "read_resource": ToolKind.READ,
    "shell": ToolKind.EXECUTE,
    "subagent": ToolKind.SUBAGENT,
    "text_editor": ToolKind.EDIT,
    "todo_write": ToolKind.THINK,
    "tree": ToolKind.SEARCH,
    "write": ToolKind.EDIT,
}
"""Tools that the recorded and earlier versions offer to the model, without the extension before `__`; any other, MCP's
included, is of kind `other`."""

INDEX = "goose.toolCall.providerIndex"
"""In `_meta` of a call: its place in the model's answer."""

_DECLINED = "The user has declined to run this tool"
"""How the result of a call begins that the user did not allow."""


class Block(msgspec.Struct, rename="camel"):
    """A piece of a message."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: Raw | UnsetType = UNSET
    mime_type: str | None = None
    name: str | None = None
    id: str | None = None
    tool_call: Raw | UnsetType = UNSET
    tool_result: Raw | UnsetType = UNSET
    meta: Raw | UnsetType = msgspec.field(name="_meta", default=UNSET)
    message: str | None = None


def blocks_in(content: bytes | None) -> list[tuple[Block, Raw]] | None:
    """The blocks of a message, each with its JSON; None if there is no list of them."""
    try:
        raws = msgspec.json.decode(content or b"", type=list[Raw])
    except UNREADABLE:
        return None
    return [(_block_in(raw), raw) for raw in raws]


def _block_in(raw: Raw) -> Block:
    try:
        return msgspec.json.decode(raw, type=Block)
    except UNREADABLE:
        return Block()


def value_in(raw: Raw | UnsetType) -> dict[str, Any]:
    """An object in a block; empty for anything else."""
    return {} if isinstance(raw, UnsetType) else object_of(value_of(raw))


def part_of(block: Block, raw: Raw, part_id: str, at: datetime | None) -> Part:
    """A block of a message as a part."""
    match block.type:
        case "text" if block.text is not None:
            return TextPart(id=part_id, text=block.text)
        case "thinking" | "reasoning" | "redactedThinking":
            return _thought(block, part_id)
        case "toolRequest" | "frontendToolRequest":
            return _call(block, part_id, at)
        case "image" | "document":
            return _file(block, raw, part_id)
        case _:
            return _unknown(block.type, raw, part_id)


def _unknown(kind: str, raw: Raw, part_id: str) -> UnknownPart:
    return UnknownPart(id=part_id, kind=kind, data=Raw(clean_json(bytes(raw))))


def _thought(block: Block, part_id: str) -> ReasoningPart:
    text = block.thinking or block.text or ""
    encrypted = None if isinstance(block.data, UnsetType) else value_of(block.data)
    opaque = {"signature": block.signature} if block.signature else {"data": encrypted} if encrypted else None
    # The block does not name the provider that signed it.
    provider = ProviderData(name="unknown", opaque=opaque) if opaque else None
    return ReasoningPart(id=part_id, text=text, redacted=not text, provider=provider)


def _call(block: Block, part_id: str, at: datetime | None) -> ToolCallPart:
    called = value_in(block.tool_call)
    value = object_of(called.get("value"))
    name = text_of(value.get("name")) or ""
    # What a model writes that is no call has an error in its place.
    failed = text_of(called.get("error"))
    arguments = value.get("arguments")
    return ToolCallPart(
        id=part_id,
        tool_call_id=block.id or part_id,
        tool_name=name,
        kind=TOOL_KINDS.get(name.rpartition("__")[2], ToolKind.OTHER),
        input=UNSET if failed is not None else Raw(msgspec.json.encode({} if arguments is None else arguments)),
        input_text=failed,
        started_at=at,
    )


def _file(block: Block, raw: Raw, part_id: str) -> Part:
    content = None if isinstance(block.data, UnsetType) else value_of(block.data)
    data = from_base64(content) if isinstance(content, str) else None
    if data is None:
        return _unknown(block.type, raw, part_id)
    return FilePart(id=part_id, media_type=block.mime_type or "image/*", filename=block.name, data=data)


# -- results


def result_of(block: Block, identity: str, at: datetime | None) -> ToolResult:
    """The result in a block. Before 1.10 it was a list of contents, later an object around it."""
    outcome = value_in(block.tool_result)
    value = outcome.get("value")
    facts = object_of(value)
    contents = list_of(facts.get("content")) if facts else list_of(value)
    parts = tuple(_result_parts(contents, identity))
    code = object_of(facts.get("structuredContent")).get("exit_code")
    text = "\n".join(part.text for part in parts if isinstance(part, TextPart)) or text_of(outcome.get("error"))
    status = _status_of(outcome, facts, text)
    return ToolResult(
        id=identity,
        status=status,
        content=parts,
        error_text=text if status != "success" else None,
        exit_code=code if isinstance(code, int) and not isinstance(code, bool) else None,
        completed_at=at,
    )


def _status_of(outcome: Mapping[str, Any], facts: Mapping[str, Any], text: str | None) -> ResultStatus:
    if (text or "").startswith(_DECLINED):
        return "denied"
    return "error" if outcome.get("status") == "error" or facts.get("isError") is True else "success"


def _result_parts(contents: list[Any], identity: str) -> Iterator[Part]:
    for number, content in enumerate(map(object_of, contents)):
        raw = Raw(msgspec.json.encode(content))
        block = _block_in(raw)
        part_id = f"{identity}.{number}"
        resource = object_of(content.get("resource"))
        if block.type == "resource" and isinstance(resource.get("text"), str):
            yield TextPart(id=part_id, text=resource["text"])
        else:
            yield part_of(block, raw, part_id, None)


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """The object that a tool returned beside its texts, from the line of its message; None if there is none."""
    try:
        row: Row = row_of(msgspec.json.decode(record, type=RowLine))
    except UNREADABLE:
        return None
    for block, _ in blocks_in(str(row.get("content_json")).encode(errors="replace")) or ():
        if block.id == tool_call_id and not isinstance(block.tool_result, UnsetType):
            found = object_of(value_in(block.tool_result).get("value")).get("structuredContent")
            return Raw(msgspec.json.encode(found)) if isinstance(found, dict) else None
    return None


# -- tokens


def usage_of(counts: Mapping[str, Any]) -> Usage | None:
    """Tokens in disjoint buckets; None if none were counted. The input includes cached tokens, the output thoughts."""
    prompt, output, read, written = (
        _count(counts.get(name)) for name in ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
    )
    if prompt is None and output is None:
        return None
    return Usage(
        input=None if prompt is None else max(0, prompt - (read or 0) - (written or 0)),
        cache_read=read,
        cache_write=written,
        output=output,
    )


def cost_of(counts: Mapping[str, Any]) -> Cost | None:
    """The cost of a call in US dollars, as far as Goose knows it."""
    cost = counts.get("cost")
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 < cost < 1e9:
        return None
    return Cost(amount=Decimal(repr(cost)), kind="reported")


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1 << 53 else None
