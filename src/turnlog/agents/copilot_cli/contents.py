"""Copilot CLI's files, thoughts and token counts become values of the model."""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Iterator
from mimetypes import guess_type
from pathlib import PurePath
from typing import Any

from msgspec import Raw

from turnlog.agents.copilot_cli import NAME
from turnlog.agents.copilot_cli.fold_context import CopilotContext
from turnlog.agents.copilot_cli.records import FILE, CopilotData, CopilotFile, CopilotUsage, ReasoningBlock
from turnlog.agents.decoding import clean_json
from turnlog.model import DataPart, FilePart, Part, ProviderData, ReasoningPart, StopReason, UnknownPart, Usage
from turnlog.model.usage import Exactness

STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "tool_calls": "tool_use",
    "tool_use": "tool_use",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "refusal": "refusal",
}
"""`finishReason` -> its meaning; `tool_calls` and `stop` were seen, the others are the words of the same APIs."""

FILES = frozenset({"file", "image", "blob", "resource"})
"""Types of attachments and outputs that are files."""

REFERENCES = frozenset(
    {
        *("directory", "selection", "extension_context"),
        *("github_reference", "github_commit", "github_release", "github_actions_job", "github_repository"),
        *("github_file_diff", "github_tree_comparison", "github_url", "github_file", "github_snippet"),
    }
)
"""Types of attachments that name something without its bytes."""

_PROVIDERS = {"anthropic-messages": "anthropic", "openai-responses": "openai"}
"""`reasoningBlocks.provider` -> the provider that takes the blocks back."""


# -- tokens


def usage_of(usage: CopilotUsage | None, exactness: Exactness = "exact") -> Usage | None:
    """The usage in disjoint buckets: `inputTokens` includes what was read from and written to the cache."""
    if usage is None or (usage.input_tokens is None and usage.output_tokens is None):
        return None
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    return Usage(
        # Counts come from providers and need not add up; a negative one would lower the totals.
        input=None if usage.input_tokens is None else max(0, usage.input_tokens - cached),
        cache_read=usage.cache_read_tokens,
        cache_write=usage.cache_write_tokens,
        output=None if usage.output_tokens is None else max(0, usage.output_tokens - (usage.reasoning_tokens or 0)),
        reasoning=usage.reasoning_tokens,
        exactness=exactness,
    )


# -- thoughts


def reasoning_parts(data: CopilotData, message_id: str, first: int) -> Iterator[ReasoningPart]:
    """The thoughts of an answer, numbered from `first`, with what their provider needs to accept them again."""
    blocks = data.reasoning_blocks
    # A signature is good only at the provider that made it, whatever model was chosen later.
    name = None if blocks is None else _PROVIDERS.get(blocks.provider or "", blocks.provider)
    if blocks is not None and blocks.blocks:
        for number, block in enumerate(blocks.blocks, first):
            yield _block_part(block, f"{message_id}.{number}", name or "unknown", data.model)
        return
    # With chat completions there are no blocks: the text is all that the provider gives.
    opaque = {"signature": data.reasoning_opaque, "encrypted_content": data.encrypted_content}
    known = {name: value for name, value in opaque.items() if value is not None}
    if data.reasoning_text or known:
        provider = ProviderData(name="unknown", model=data.model, opaque=known) if known else None
        yield ReasoningPart(
            id=f"{message_id}.{first}",
            text=data.reasoning_text or "",
            redacted=not data.reasoning_text,
            provider=provider,
        )


def _block_part(block: ReasoningBlock, part_id: str, provider: str, model: str | None) -> ReasoningPart:
    summary = "\n\n".join(piece.text for piece in block.summary or () if piece.text)
    facts = {
        "id": block.id,
        "signature": block.signature,
        "encrypted_content": block.encrypted_content,
        "data": block.data,
    }
    text = block.thinking or summary
    return ReasoningPart(
        id=part_id,
        text=text,
        redacted=not text,
        provider=ProviderData(
            name=provider, model=model, opaque={name: value for name, value in facts.items() if value is not None}
        ),
    )


# -- files


def file_parts(context: CopilotContext, raws: Iterable[Raw], message_id: str | None, first: int) -> Iterator[Part]:
    """The parts of attachments or outputs, numbered from `first`; those of a result have no ids."""
    for number, raw in enumerate(raws, first):
        yield _file_part(context, Raw(clean_json(bytes(raw))), None if message_id is None else f"{message_id}.{number}")


def _file_part(context: CopilotContext, raw: Raw, part_id: str | None) -> Part:
    found = FILE.decode(bytes(raw))
    if isinstance(found, str) or found.record.type not in FILES | REFERENCES:
        kind = "file" if isinstance(found, str) else found.record.type
        return UnknownPart(id=part_id, kind=kind, data=raw)
    file = found.record
    if file.type in REFERENCES:
        return DataPart(id=part_id, name=file.type, data=raw)
    data = _bytes_of(context, file)
    name = file.display_name or (PurePath(file.path).name if file.path else None)
    facts: dict[str, Any] = {"asset_id": file.asset_id, "path": file.path, "description": file.description}
    return FilePart(
        id=part_id,
        media_type=file.mime_type or guess_type(name or "")[0] or "application/octet-stream",
        filename=name,
        data=data,
        # Bytes that an earlier record has are named by their hash; a file that was sent by its path, by that path.
        url=None if data is not None else (file.asset_id or (f"file://{file.path}" if file.path else "about:blank")),
        metadata={NAME: {name: value for name, value in facts.items() if value is not None}},
    )


def _bytes_of(context: CopilotContext, file: CopilotFile) -> bytes | None:
    # 1.0.102 writes the bytes of an image once, in a record before, and refers to it by its hash.
    written = file.data if file.data is not None else context.state.assets.pop(file.asset_id or "", None)
    if written is None:
        return None
    try:
        return binascii.a2b_base64(written, strict_mode=True)
    except (binascii.Error, ValueError):
        context.report("the bytes of a file are not Base64", json_path="$.data")
        return None
