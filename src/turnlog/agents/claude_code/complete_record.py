"""A line of a log with all fields that have been seen, so that one with another field can be told (R-C11)."""

from __future__ import annotations

from typing import cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.claude_code.records import Record

_PASSED_OVER = """
    agentName apiErrorType apiRefusalCategory apiRefusalExplanation atis attributionMcpTool backup base cacheControl
    commandRun commandUuid deliveryId durationMs entrypoint failedHookErrorIndexes failedResponseHadNoToolCall hash
    hasOutput hasUnknownModelCost hookAdditionalContext hookCount hookInfos id imagePasteIds isDisplayOnly
    isSnapshotUpdate isVisibleInTranscriptOnly joinedNoticeLengths joinedNoticeOwn joinedNoticeRunIds keep
    lastPrompt level madeBy mcpCallNotReadOnly mcpMeta messageCount messageId mode modelRestriction modelUsage
    operation originalModel params perTurnEffort preventedContinuation promptCacheRequested promptId querySource
    queuePriority queueSkipAttachments queueSkipSlashCommands queueTranscriptOnly reason refusedMessageId
    refusedUserMessageUuid refusingModel renderedBesideToolResult renderedInHumanTurn renderedRole
    repeatsCompactSummary requestDigest requestRef sandboxed scheduledFireId scheduledTaskId serverClassifierRequest
    session_id sessionKind shape shapeHash slug snapshot snapshotMessageId source sourceToolAssistantUUID
    sourceToolUseID startTime stopReason summarizedTurnPromptUuids summarizeMetadata tail thinkingDisplay
    toolEndsTurn toolInputStreamMs tools toolUseID totalAPIDuration totalAPIDurationWithoutRetries totalDuration
    totalLinesAdded totalLinesRemoved totalToolDuration trackingPath turnAttributionKey turnCompanion turnOrigin
    turnPosition userType wakeupSource
"""
"""Further fields that have been seen. What they say is not read, or is read from the record's JSON by who wants it."""

_FIELDS = [
    (f"passed_over_{name}", Raw | UnsetType, msgspec.field(name=name, default=UNSET)) for name in _PASSED_OVER.split()
]

CompleteRecord = cast(
    "type[Record]",
    msgspec.defstruct("CompleteRecord", _FIELDS, bases=(Record,), gc=False, forbid_unknown_fields=True),
)
"""A record that refuses fields that no version seen so far writes."""
