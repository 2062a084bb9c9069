"""The shapes of Cline's files (`docs/formats/cline.md`), and how they are decoded."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import Count, Money
from turnlog.agents.jsonl import JsonLines


class _Wire(msgspec.Struct, rename="camel", gc=False):
    pass


class FileOrigin(_Wire, gc=False):
    """Who wrote a file of messages."""

    version: str | None = None
    mode: str | None = None
    parent_thread_id: str | None = None


class MessageFile(_Wire, gc=False):
    """A file of messages, without them."""

    version: int | None = None
    updated_at: datetime | None = msgspec.field(name="updated_at", default=None)
    session_id: str | None = None
    origin: FileOrigin | None = None
    messages: list[Raw] | None = None
    system_prompt: str | None = msgspec.field(name="system_prompt", default=None)


class ClineMetrics(_Wire, gc=False):
    """Tokens and cost of one model call. `inputTokens` includes those read from and written to the cache."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    cost: Money | None = None


class ClineModel(_Wire, gc=False):
    """Which model answered."""

    id: str | None = None
    provider: str | None = None
    family: str | None = None


class ClineMessage(_Wire, gc=False):
    """A message: what the user or the program said, results of calls, or an answer."""

    id: str | None = None
    role: str = ""
    content: Raw | UnsetType = UNSET
    ts: float | None = None
    metadata: dict[str, Any] | None = None
    model_info: ClineModel | None = None
    metrics: ClineMetrics | None = None
    others: dict[str, Any] | None = msgspec.field(name="", default=None)
    """Metadata: the fields that are not read."""


class ClineBlock(msgspec.Struct, gc=False):
    """A block of a content."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    media_type: str | None = msgspec.field(name="mediaType", default=None)
    path: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw | UnsetType = UNSET
    tool_use_id: str | None = None
    content: Raw | UnsetType = UNSET
    is_error: bool | None = None


class ToolAnswer(msgspec.Struct, gc=False):
    """One answer of a tool: a call may contain several questions."""

    query: str | None = None
    result: Raw | UnsetType = UNSET
    error: str | None = None
    success: bool | None = None


_CompleteMessage = cast(
    "type[ClineMessage]",
    msgspec.defstruct("_CompleteMessage", (), bases=(ClineMessage,), gc=False, forbid_unknown_fields=True),
)

FILES = JsonLines(MessageFile, first_keys=("version",), plausible=lambda file: True)
"""Reads a file of messages out of JSON."""

MESSAGES = JsonLines(ClineMessage, first_keys=("id",), plausible=lambda message: True, complete=_CompleteMessage)
"""Reads a message out of JSON."""
