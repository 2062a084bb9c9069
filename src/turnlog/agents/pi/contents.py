"""pi's blocks, usage and times become values of the model. Unknown blocks keep their JSON."""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import aware, clean_json, fields_of
from turnlog.agents.pi.records import PiBlock, PiUsage
from turnlog.model import (
    Cost,
    FilePart,
    Part,
    ProviderData,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolKind,
    UnknownPart,
    Usage,
)
from turnlog.model.lenient_json import parse_json

TOOL_KINDS: dict[str, ToolKind] = {
    "ask": ToolKind.ASK,
    "bash": ToolKind.EXECUTE,
    "edit": ToolKind.EDIT,
    "exec": ToolKind.EXECUTE,
    "fetch": ToolKind.FETCH,
    "find": ToolKind.SEARCH,
    "glob": ToolKind.SEARCH,
    "grep": ToolKind.SEARCH,
    "ls": ToolKind.SEARCH,
    "powershell": ToolKind.EXECUTE,
    "process": ToolKind.EXECUTE,
    "python": ToolKind.EXECUTE,
    "read": ToolKind.READ,
    "search": ToolKind.SEARCH,
    "sessions_spawn": ToolKind.SUBAGENT,
    "subagent": ToolKind.SUBAGENT,
    "task": ToolKind.SUBAGENT,
    "todo": ToolKind.THINK,
    "todo_write": ToolKind.THINK,
    "web_fetch": ToolKind.FETCH,
    "web_search": ToolKind.FETCH,
    "write": ToolKind.EDIT,
    "apply_patch": ToolKind.EDIT,
}
"""Tools of the programs of the family and of pi's example extensions; any other is of kind `other`."""

BLOCKS = frozenset({"text", "thinking", "toolCall", "image"})
"""The types of blocks."""


class Answerer(NamedTuple):
    """The provider, model and API that an answer came from. Signatures are good only there."""

    provider: str | None = None
    model: str | None = None
    api: str | None = None


def parts_of(
    content: Raw | UnsetType, message_id: str, answerer: Answerer | None = None, at: datetime | None = None
) -> tuple[Part, ...]:
    """The parts of a message's content, which is a text or a list of blocks.

    Args:
        content: The exact JSON.
        message_id: Id of the message, for the ids of its parts.
        answerer: Where an answer came from.
        at: When the calls of an answer began.
    """
    if content is UNSET or content == Raw(b"null"):
        return ()
    text = _text_of(content)
    # Version 1 and extensions write a plain text, pi itself a list of blocks.
    if text is not None:
        return (TextPart(id=f"{message_id}.0", text=text),) if text else ()
    blocks = _blocks_of(content)
    if blocks is None:
        return (UnknownPart(id=f"{message_id}.0", kind="content", data=Raw(clean_json(bytes(content)))),)
    return tuple([_part_of(raw, f"{message_id}.{index}", answerer, at) for index, raw in enumerate(blocks)])


def _text_of(content: Raw) -> str | None:
    try:
        return msgspec.json.decode(clean_json(bytes(content)), type=str)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _blocks_of(content: Raw) -> list[Raw] | None:
    try:
        return msgspec.json.decode(clean_json(bytes(content)), type=list[Raw])
    except (msgspec.MsgspecError, RecursionError):
        return None


def _part_of(raw: Raw, part_id: str, answerer: Answerer | None, at: datetime | None) -> Part:
    try:
        block = msgspec.json.decode(raw, type=PiBlock)
    except (msgspec.MsgspecError, RecursionError):
        # One field of another type must not hide of which kind the block is.
        kind = fields_of(raw).get("type")
        block = PiBlock(type="block" if kind is None else bytes(kind).decode(errors="replace").strip('"'))
        return UnknownPart(id=part_id, kind=block.type, data=raw)
    if block.type == "text" and block.text is not None:
        return TextPart(id=part_id, text=block.text, provider=_proof(answerer, text_signature=block.textSignature))
    if block.type == "thinking" and block.thinking is not None:
        return _reasoning(block, part_id, answerer)
    if block.type == "toolCall" and block.id is not None:
        return _call(block, part_id, answerer, at)
    if block.type == "image" and block.data is not None:
        return _image(block, part_id)
    return UnknownPart(id=part_id, kind=block.type or "block", data=raw)


def _reasoning(block: PiBlock, part_id: str, answerer: Answerer | None) -> ReasoningPart:
    """A thought with what its provider needs to accept it again.

    `thinkingSignature` means something else for each API: the name of the field that held the thought for OpenAI's chat
    completions, the whole item for its responses, a signature for all others.
    """
    signature, api = block.thinkingSignature, "" if answerer is None else answerer.api or ""
    if api == "openai-completions":
        known = {"reasoning_field": signature}
    elif signature is not None and "responses" in api:
        known = _item_of(signature)
    else:
        known = {"data" if block.redacted else "signature": signature}
    return ReasoningPart(
        id=part_id, text=block.thinking or "", redacted=bool(block.redacted), provider=_proof(answerer, **known)
    )


def _item_of(signature: str) -> dict[str, Any]:
    """The fields of a reasoning item of OpenAI's responses that a later request repeats."""
    item = fields_of(signature.encode(errors="replace"))
    known = {name: parse_json(bytes(item[name])) for name in ("id", "encrypted_content") if name in item}
    return known or {"signature": signature}


def _call(block: PiBlock, part_id: str, answerer: Answerer | None, at: datetime | None) -> ToolCallPart:
    name = block.name or ""
    return ToolCallPart(
        id=part_id,
        tool_call_id=block.id or "",
        tool_name=name,
        kind=TOOL_KINDS.get(name, ToolKind.OTHER),
        input=block.arguments,
        started_at=at,
        provider=_proof(answerer, thought_signature=block.thoughtSignature),
        metadata={"namespace": block.namespace} if block.namespace else {},
    )


def _image(block: PiBlock, part_id: str) -> FilePart:
    media_type, data = block.mimeType or "image/*", block.data or ""
    try:
        return FilePart(id=part_id, media_type=media_type, data=binascii.a2b_base64(data, strict_mode=True))
    except (binascii.Error, ValueError):
        # oh-my-pi keeps large images in separate files, and names them: `blob:sha256:<hash>`.
        url = data if data.startswith("blob:") else f"data:{media_type};base64,{data}"
        return FilePart(id=part_id, media_type=media_type, url=url)


def _proof(answerer: Answerer | None, **facts: Any) -> ProviderData | None:
    known = {name: value for name, value in facts.items() if value is not None}
    if answerer is None or not known:
        return None
    return ProviderData(name=answerer.provider or "unknown", model=answerer.model, opaque=known)


def text_of(parts: Sequence[Part]) -> str:
    """The text of all text parts, a line each."""
    return "\n".join([part.text for part in parts if isinstance(part, TextPart)])


def usage_of(usage: PiUsage | None) -> Usage | None:
    """The usage in disjoint buckets; None if all counts are zero, because pi begins every answer with zeros.

    pi takes cached tokens out of the input itself. Its output includes the reasoning, which is unknown (None) if the
    record does not tell it apart.
    """
    if usage is None:
        return None
    reasoning = usage.reasoningTokens if usage.reasoning is None else usage.reasoning
    counts = (usage.input, usage.output, usage.cacheRead, usage.cacheWrite, reasoning, usage.totalTokens)
    if not any(counts):
        return None
    written, for_an_hour = usage.cacheWrite, usage.cacheWrite1h
    return Usage(
        input=usage.input,
        cache_read=usage.cacheRead,
        # Of the cache written, pi counts separately what is kept for an hour; the rest is kept for five minutes.
        cache_write=written if for_an_hour is None else None,
        cache_write_1h=for_an_hour,
        cache_write_5m=None if for_an_hour is None else max(0, (written or 0) - for_an_hour),
        # Counts come from providers and need not add up; a negative one would lower the totals.
        output=usage.output if reasoning is None or usage.output is None else max(0, usage.output - reasoning),
        reasoning=reasoning,
    )


def cost_of(usage: PiUsage | None) -> Cost | None:
    """The cost that the program computed; None if it knew no price, which it writes as zeros."""
    total = None if usage is None or usage.cost is None or usage_of(usage) is None else usage.cost.total
    return Cost(amount=Decimal(str(total)), kind="reported") if total else None


def time_of(value: str | float | None) -> datetime | None:
    """The time in UTC of a text in ISO format or of Unix milliseconds; None if it is neither."""
    try:
        if isinstance(value, str):
            return aware(datetime.fromisoformat(value))
        return None if value is None else datetime.fromtimestamp(value / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
