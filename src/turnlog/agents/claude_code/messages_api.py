"""What a log has of Anthropic's Messages API: content blocks -> parts, token counts -> usage.

A block of an unknown type keeps its exact JSON.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.claude_code.records import Block, BlockCitation, WireUsage
from turnlog.agents.decoding import clean_json
from turnlog.anthropic_api import UNKNOWN_REGION
from turnlog.model import (
    Citation,
    DataPart,
    FilePart,
    Part,
    ProviderData,
    ReasoningPart,
    SourceUrlPart,
    TextPart,
    UnknownPart,
    Usage,
)

PROVIDER = "anthropic"

CALL_BLOCKS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
REASONING_BLOCKS = frozenset({"thinking", "redacted_thinking"})
DATA_BLOCKS = frozenset({"tool_reference", "fallback"})
"""Known blocks without a part type of their own: a `DataPart` holds their JSON."""

RawBlock = Callable[[], Raw]
"""Returns the exact JSON of a block. It is called only where the JSON is kept, because finding it costs a decode."""


def part_of(block: Block, part_id: str | None, raw: RawBlock) -> Part:
    """The part of a block in any message or tool result. Blocks of calls and results are not for this function."""
    kind = block.type
    if kind == "text" and block.text is not None:
        return text_part(block, part_id)
    if kind in ("image", "document"):
        return _file_part(block, part_id) or DataPart(id=part_id, name=kind, data=raw())
    if kind in DATA_BLOCKS:
        return DataPart(id=part_id, name=kind, data=raw())
    if kind == "web_search_result" and block.url is not None:
        return source_part(block, part_id)
    return UnknownPart(id=part_id, kind=kind, data=raw())


def text_part(block: Block, part_id: str | None) -> TextPart:
    """The part of a `text` block, with its citations."""
    citations = tuple([_citation(citation) for citation in block.citations]) if block.citations else ()
    return TextPart(id=part_id, text=block.text or "", citations=citations)


def reasoning_part(block: Block, part_id: str, model: str | None, duration_ms: int | None) -> ReasoningPart:
    """The part of a `thinking` or `redacted_thinking` block.

    `provider` has the signature: without it the API does not accept the thinking when it is sent back.
    """
    redacted = block.type == "redacted_thinking"
    name, proof = ("data", block.data) if redacted else ("signature", block.signature)
    return ReasoningPart(
        id=part_id,
        text=block.thinking or "",
        redacted=redacted,
        duration_ms=duration_ms,
        provider=ProviderData(name=PROVIDER, model=model, opaque={name: proof}) if proof is not None else None,
    )


def source_part(block: Block, part_id: str | None) -> SourceUrlPart:
    """The source part of a `web_search_result` block: a hit of a search that the provider ran."""
    opaque = {"encrypted_content": block.encrypted_content, "page_age": block.page_age}
    known = {name: value for name, value in opaque.items() if value is not None}
    return SourceUrlPart(
        id=part_id,
        source_id=block.url or "",
        url=block.url or "",
        title=block.title,
        provider=ProviderData(name=PROVIDER, opaque=known) if known else None,
    )


def exact_input(raw: Raw | UnsetType) -> tuple[Raw | UnsetType, bool]:
    """A call's input as exact JSON, and whether bytes that are not UTF-8 were replaced in it."""
    if raw is UNSET:
        return UNSET, False
    data = bytes(raw)
    clean = clean_json(data)
    return (raw, False) if clean is data else (Raw(clean), True)


def text_of(content: str | list[Block] | Block | None) -> str:
    """The text of a content: that of its text blocks, joined by newlines."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join([block.text for block in content if block.type == "text" and block.text is not None])
    return ""


def _citation(citation: BlockCitation) -> Citation:
    encrypted = citation.encrypted_index
    metadata: dict[str, Any] = {"encrypted_index": encrypted} if encrypted is not None else {}
    return Citation(
        title=citation.title,
        url=citation.url,
        document=citation.document_title,
        cited_text=citation.cited_text,
        start_index=citation.start_char_index,
        end_index=citation.end_char_index,
        metadata=metadata,
    )


def _file_part(block: Block, part_id: str | None) -> FilePart | None:
    source = block.source
    if source is None:
        return None
    if source.type == "url" and source.url is not None:
        media_type = source.media_type or ("image/*" if block.type == "image" else "application/octet-stream")
        return FilePart(id=part_id, media_type=media_type, url=source.url, filename=block.title)
    if source.data is None or source.media_type is None:
        return None
    if source.type == "text":
        return FilePart(id=part_id, media_type=source.media_type, data=source.data.encode(), filename=block.title)
    data = from_base64(source.data)
    if data is None:
        return None
    return FilePart(id=part_id, media_type=source.media_type, data=data, filename=block.title)


def from_base64(text: str) -> bytes | None:
    """The bytes of a Base64 text; None when it is cut off or not Base64."""
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        return None


def usage_of(wire: WireUsage, *, final: bool) -> Usage:
    """The usage of one model call, in disjoint buckets.

    `output_tokens` contains the thinking tokens, which become `reasoning` where the log has them (since 2.1.2x).
    `final`: the line has a stop reason. Without one the counts are those of the stream's start and so lower bounds:
    Claude Code 1.0.24 to 2.1.20 wrote such counts on most lines, and an aborted stream never has others.
    """
    write_5m, write_1h, write = _cache_writes(wire)
    output, reasoning = _outputs(wire)
    server = wire.server_tool_use
    return Usage(
        input=wire.input_tokens,
        cache_read=wire.cache_read_input_tokens,
        cache_write_5m=write_5m,
        cache_write_1h=write_1h,
        cache_write=write,
        output=output,
        reasoning=reasoning,
        service_tier=wire.service_tier,
        speed=wire.speed,
        region=None if wire.inference_geo == UNKNOWN_REGION else wire.inference_geo or None,
        web_searches=server.web_search_requests if server else None,
        web_fetches=server.web_fetch_requests if server else None,
        exactness="exact" if final else "lower_bound",
    )


def _cache_writes(wire: WireUsage) -> tuple[int | None, int | None, int | None]:
    """Tokens written to the cache for five minutes, for one hour, and for a time that is not known."""
    split, total = wire.cache_creation, wire.cache_creation_input_tokens
    if split is None:
        return None, None, total
    write_5m, write_1h = split.ephemeral_5m_input_tokens, split.ephemeral_1h_input_tokens
    rest = (total or 0) - (write_5m or 0) - (write_1h or 0)
    return write_5m, write_1h, rest if rest > 0 else None


def _outputs(wire: WireUsage) -> tuple[int | None, int | None]:
    details, output = wire.output_tokens_details, wire.output_tokens
    thinking = details.thinking_tokens if details else None
    if thinking is None or output is None:
        return output, thinking
    return max(output - thinking, 0), thinking
