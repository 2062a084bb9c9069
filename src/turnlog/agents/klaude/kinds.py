"""Every kind of record that klaude-code is known to write, and what it becomes.

A kind is the name of a class of klaude-code's own: since 2.0 those of `HistoryEvent`, up to 1.9 those of
`ConversationItem`. `docs/formats/klaude.md` describes each of them, which a test compares with this table.
"""

from __future__ import annotations

from enum import StrEnum


class Becomes(StrEnum):
    """What a record turns into."""

    MESSAGE = "message"
    PIECE = "piece of a message"
    RESULT = "result"
    COMPACTION = "compaction"
    REWIND = "rewind"
    RETRACTION = "retraction"
    INTERRUPT = "interrupt"
    ERROR = "error"
    RUN_METADATA = "run metadata"
    RECORD = "record"


HISTORY_EVENTS: dict[str, Becomes] = {
    "SystemMessage": Becomes.MESSAGE,
    "DeveloperMessage": Becomes.MESSAGE,
    "UserMessage": Becomes.MESSAGE,
    "AssistantMessage": Becomes.MESSAGE,
    "ToolResultMessage": Becomes.RESULT,
    "ForkSummaryEntry": Becomes.MESSAGE,
    "CompactionEntry": Becomes.COMPACTION,
    "RewindEntry": Becomes.REWIND,
    "RetractEntry": Becomes.RETRACTION,
    "InterruptEntry": Becomes.INTERRUPT,
    "StreamErrorItem": Becomes.ERROR,
    "TaskMetadataItem": Becomes.RUN_METADATA,
    "CacheHitRateEntry": Becomes.RUN_METADATA,
    "FallbackModelConfigWarnEntry": Becomes.RUN_METADATA,
    "LLMRequestEntry": Becomes.RUN_METADATA,
    "SpawnSubAgentEntry": Becomes.RUN_METADATA,
    "TaskFileChangeSummaryEntry": Becomes.RUN_METADATA,
    "AwaySummaryEntry": Becomes.RECORD,
    "PromptSuggestionEntry": Becomes.RECORD,
    "SideQuestionEntry": Becomes.RECORD,
}
"""Since 2.0: one record a message."""

CONVERSATION_ITEMS: dict[str, Becomes] = {
    "SystemMessageItem": Becomes.MESSAGE,
    "DeveloperMessageItem": Becomes.MESSAGE,
    "UserMessageItem": Becomes.MESSAGE,
    "AssistantMessageItem": Becomes.PIECE,
    "ReasoningTextItem": Becomes.PIECE,
    "ReasoningEncryptedItem": Becomes.PIECE,
    "ToolCallItem": Becomes.PIECE,
    "ResponseMetadataItem": Becomes.PIECE,
    "ToolResultItem": Becomes.RESULT,
    "InterruptItem": Becomes.INTERRUPT,
    "StartItem": Becomes.RECORD,
    "ToolCallStartItem": Becomes.RECORD,
    "AssistantMessageDelta": Becomes.RECORD,
    "ReasoningTextDelta": Becomes.RECORD,
}
"""Up to 1.9: an answer is several records. Deltas and markers of a stream are kept, and say nothing (R-K8)."""

KINDS: dict[str, Becomes] = {**HISTORY_EVENTS, **CONVERSATION_ITEMS}
