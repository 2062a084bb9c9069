"""klaude-code's records: every known kind with its outcome, their shapes, and how they are decoded.

A kind is the name of a class of klaude-code's own: since 2.0 those of `HistoryEvent`, up to 1.9 those of
`ConversationItem`. `docs/formats/klaude.md` describes each of them, which a test compares with this table.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import Count, Money
from turnlog.agents.jsonl import JsonLines


class KlaudeRecordOutcome(StrEnum):
    """What a record turns into."""

    MESSAGE = "message"
    MESSAGE_PIECE = "piece of a message"
    RESULT = "result"
    COMPACTION = "compaction"
    REWIND = "rewind"
    RETRACTION = "retraction"
    INTERRUPT = "interrupt"
    ERROR = "error"
    RUN_METADATA = "run metadata"
    RECORD = "record"


HISTORY_EVENTS: dict[str, KlaudeRecordOutcome] = {
    "SystemMessage": KlaudeRecordOutcome.MESSAGE,
    "DeveloperMessage": KlaudeRecordOutcome.MESSAGE,
    "UserMessage": KlaudeRecordOutcome.MESSAGE,
    "AssistantMessage": KlaudeRecordOutcome.MESSAGE,
    "ToolResultMessage": KlaudeRecordOutcome.RESULT,
    "ForkSummaryEntry": KlaudeRecordOutcome.MESSAGE,
    "CompactionEntry": KlaudeRecordOutcome.COMPACTION,
    "RewindEntry": KlaudeRecordOutcome.REWIND,
    "RetractEntry": KlaudeRecordOutcome.RETRACTION,
    "InterruptEntry": KlaudeRecordOutcome.INTERRUPT,
    "StreamErrorItem": KlaudeRecordOutcome.ERROR,
    "TaskMetadataItem": KlaudeRecordOutcome.RUN_METADATA,
    "CacheHitRateEntry": KlaudeRecordOutcome.RUN_METADATA,
    "FallbackModelConfigWarnEntry": KlaudeRecordOutcome.RUN_METADATA,
    "LLMRequestEntry": KlaudeRecordOutcome.RUN_METADATA,
    "SpawnSubAgentEntry": KlaudeRecordOutcome.RUN_METADATA,
    "TaskFileChangeSummaryEntry": KlaudeRecordOutcome.RUN_METADATA,
    "AwaySummaryEntry": KlaudeRecordOutcome.MESSAGE,
    "PromptSuggestionEntry": KlaudeRecordOutcome.RECORD,
    "SideQuestionEntry": KlaudeRecordOutcome.RECORD,
}
"""Since 2.0: one record for each message."""

CONVERSATION_ITEMS: dict[str, KlaudeRecordOutcome] = {
    "SystemMessageItem": KlaudeRecordOutcome.MESSAGE,
    "DeveloperMessageItem": KlaudeRecordOutcome.MESSAGE,
    "UserMessageItem": KlaudeRecordOutcome.MESSAGE,
    "AssistantMessageItem": KlaudeRecordOutcome.MESSAGE_PIECE,
    "ReasoningTextItem": KlaudeRecordOutcome.MESSAGE_PIECE,
    "ReasoningEncryptedItem": KlaudeRecordOutcome.MESSAGE_PIECE,
    "ToolCallItem": KlaudeRecordOutcome.MESSAGE_PIECE,
    "ResponseMetadataItem": KlaudeRecordOutcome.MESSAGE_PIECE,
    "ToolResultItem": KlaudeRecordOutcome.RESULT,
    "InterruptItem": KlaudeRecordOutcome.INTERRUPT,
    "StartItem": KlaudeRecordOutcome.RECORD,
    "ToolCallStartItem": KlaudeRecordOutcome.RECORD,
    "AssistantMessageDelta": KlaudeRecordOutcome.RECORD,
    "ReasoningTextDelta": KlaudeRecordOutcome.RECORD,
}
"""Up to 1.9: an answer is several records. Deltas and stream markers become events and add nothing (R-K8)."""

RECORD_KINDS: dict[str, KlaudeRecordOutcome] = {**HISTORY_EVENTS, **CONVERSATION_ITEMS}


class KlaudeRecord(msgspec.Struct, gc=False):
    """A line: the name of a class, and its data."""

    type: str = ""
    data: Raw | UnsetType = UNSET


class KlaudeUsage(msgspec.Struct, gc=False):
    """Tokens and cost of one call, or of a task."""

    input_tokens: Count = 0
    cached_tokens: Count = 0
    cache_write_tokens: Count = 0
    reasoning_tokens: Count = 0
    output_tokens: Count = 0
    input_cost: Money | None = None
    output_cost: Money | None = None
    cache_read_cost: Money | None = None
    cache_write_cost: Money | None = None
    image_cost: Money | None = None
    currency: str = "USD"
    model_name: str | None = None
    provider: str | None = None


class ImageUrl(msgspec.Struct, gc=False):
    """An image of 1.x."""

    url: str | None = None


class KlaudePart(msgspec.Struct, gc=False):
    """A part of a message, of any kind."""

    type: str = ""
    text: str | None = None
    url: str | None = None
    image_url: ImageUrl | None = None
    file_path: str | None = None
    mime_type: str | None = None
    byte_size: int | None = None
    sha256: str | None = None
    id: str | None = None
    model_id: str | None = None
    reasoning_field: str | None = None
    format: str | None = None
    duration_s: Annotated[float, msgspec.Meta(ge=0, le=1e9)] | None = None
    """Bounded, because what is longer is no duration."""
    signature: str | None = None
    call_id: str | None = None
    tool_name: str | None = None
    arguments_json: str | None = None


class TaskUsage(msgspec.Struct, gc=False):
    """What one agent used for a task."""

    usage: KlaudeUsage | None = None
    model_name: str | None = None


class KlaudeData(msgspec.Struct, gc=False):
    """The data of any record. Every field has a default, because each version writes another subset."""

    id: str | None = None
    created_at: str | None = None
    response_id: str | None = None
    parts: list[Raw] | None = None
    usage: KlaudeUsage | None = None
    stop_reason: str | None = None
    phase: str | None = None
    source: str | None = None
    attachment_position: str | None = None
    ui_extra: Raw | UnsetType = UNSET
    call_id: str | None = None
    tool_name: str | None = None
    status: str | None = None
    output_text: str | None = None
    text: str | None = None
    error: str | None = None
    summary: str | None = None
    first_kept_index: int | None = None
    first_kept_line: int | None = None
    tokens_before: int | None = None
    checkpoint_id: int | None = None
    note: str | None = None
    rationale: str | None = None
    retracted_text: str | None = None
    retracted_line: int | None = None
    session_id: str | None = None
    sub_agent_type: str | None = None
    sub_agent_desc: str | None = None
    source_session_id: str | None = None
    main_agent: TaskUsage | None = None
    sub_agent_task_metadata: list[TaskUsage] | None = None
    is_partial: bool | None = None
    content: str | None = None
    images: list[Raw] | None = None
    name: str | None = None
    arguments: str | None = None
    output: str | None = None
    encrypted_content: str | None = None
    format: str | None = None
    model: str | None = None
    model_name: str | None = None
    provider: str | None = None
    command_output: Raw | UnsetType = UNSET


def _is_record(record: KlaudeRecord) -> bool:
    return record.type in RECORD_KINDS


LINES = JsonLines(KlaudeRecord, first_keys=("type", "data"), plausible=_is_record)
"""Decodes lines."""

DATA = JsonLines(KlaudeData, first_keys=(), plausible=lambda data: True)
"""Decodes the data of a record."""
