"""The shapes of Continue's files (`docs/formats/continue.md`), and how they are decoded."""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import Count
from turnlog.agents.jsonl import JsonLines


class _Wire(msgspec.Struct, rename="camel", gc=False):
    pass


class SessionUsage(_Wire, gc=False):
    """What the program counted for the calls that it made itself: without those that a fork copied."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None


class SessionFile(_Wire, gc=False):
    """A session."""

    session_id: str | None = None
    title: str | None = None
    workspace_directory: str | None = None
    history: list[Raw] | None = None
    usage: SessionUsage | None = None
    mode: str | None = None
    chat_model_title: str | None = None


class HistoryMessage(_Wire, gc=False):
    """What was said."""

    role: str = ""
    content: Raw | UnsetType = UNSET
    tool_calls: list[Raw] | None = None
    usage: Raw | UnsetType = UNSET
    tool_call_id: str | None = None


class HistoryItem(_Wire, gc=False):
    """A message with what belongs to it."""

    message: HistoryMessage | None = None
    context_items: list[Raw] | None = None
    editor_state: Raw | UnsetType = UNSET
    tool_call_states: list[Raw] | None = None
    reasoning: Raw | UnsetType = UNSET
    conversation_summary: str | None = None
    others: dict[str, Any] | None = msgspec.field(name="", default=None)
    """Metadata: the fields that are not read."""


_CompleteItem = cast(
    "type[HistoryItem]",
    msgspec.defstruct("_CompleteItem", (), bases=(HistoryItem,), gc=False, forbid_unknown_fields=True),
)


class CallFunction(msgspec.Struct, gc=False):
    """What a call asks for."""

    name: str | None = None
    arguments: str | None = None


class ModelCall(msgspec.Struct, gc=False):
    """A call of the model."""

    id: str | None = None
    function: CallFunction | None = None


class CallOutput(msgspec.Struct, gc=False):
    """A piece of what a tool answered."""

    content: str | None = None
    name: str | None = None


class CallState(_Wire, gc=False):
    """What became of a call."""

    tool_call_id: str | None = None
    tool_call: ModelCall | None = None
    status: str | None = None
    output: list[CallOutput] | None = None


class InputDetails(msgspec.Struct, gc=False):
    """Parts of the tokens of a prompt."""

    cached_tokens: Count | None = None
    cache_read_tokens: Count | None = None
    cache_write_tokens: Count | None = None


class CompletionDetails(msgspec.Struct, gc=False):
    """Parts of the tokens of an answer."""

    reasoning_tokens: Count | None = None


class CallUsage(msgspec.Struct, gc=False):
    """Tokens of one model call. Those of the prompt include cached ones."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    prompt_tokens_details: InputDetails | None = None
    completion_tokens_details: CompletionDetails | None = None
    model: str | None = None


FILES = JsonLines(SessionFile, first_keys=("sessionId",), plausible=lambda file: True)
"""Reads a session out of JSON."""

ITEMS = JsonLines(HistoryItem, first_keys=("message",), plausible=lambda item: True, complete=_CompleteItem)
"""Reads an item of the history out of JSON."""
