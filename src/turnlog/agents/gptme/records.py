"""gptme's messages (`docs/formats/gptme.md`), and how they are decoded."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from turnlog.agents.decoding import Count, Money
from turnlog.agents.jsonl import JsonLines


class GptmeUsage(msgspec.Struct, gc=False):
    """Tokens of one model call. The input excludes cached ones, the output includes thoughts."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_tokens: Count | None = None
    cache_creation_tokens: Count | None = None
    reasoning_tokens: Count | None = None


class GptmeMetadata(msgspec.Struct, gc=False):
    """What is known of an answer."""

    model: str | None = None
    served_model: str | None = None
    usage: GptmeUsage | None = None
    cost: Money | None = None
    compaction_artifact: str | None = None


class GptmeMessage(msgspec.Struct, gc=False):
    """One line of a log."""

    role: str = ""
    content: str | None = None
    timestamp: str | None = None
    call_id: str | None = None
    files: list[str] | None = None
    file_hashes: dict[str, str] | None = None
    pinned: bool | None = None
    hide: bool | None = None
    quiet: bool | None = None
    metadata: GptmeMetadata | None = None
    others: dict[str, Any] | None = msgspec.field(name="", default=None)
    """Metadata: the fields that are not listed here."""


_CompleteMessage = cast(
    "type[GptmeMessage]",
    msgspec.defstruct("_CompleteMessage", (), bases=(GptmeMessage,), gc=False, forbid_unknown_fields=True),
)

ROLES = frozenset({"system", "user", "assistant"})
"""The roles that are known."""

LINES = JsonLines(
    GptmeMessage, first_keys=("role",), plausible=lambda message: message.role in ROLES, complete=_CompleteMessage
)
"""Reads messages out of lines."""
