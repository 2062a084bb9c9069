"""pi's records: every known kind with its outcome, their shapes, and how they are decoded.

The programs of the family write the records of pi, and some of their own. `docs/formats/pi.md` describes each kind,
which a test compares with this table.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import Count, Money, fields_of
from turnlog.agents.jsonl import JsonLines
from turnlog.model.lenient_json import parse_json


class PiRecordOutcome(StrEnum):
    """What a record turns into."""

    HEADER = "session"
    MESSAGE = "message"
    COMPACTION = "compaction"
    BRANCH_SUMMARY = "summary of a branch"
    CALL = "model call"
    TITLE = "title"
    RUN_METADATA = "run metadata"
    RECORD = "record"


RECORD_KINDS: dict[str, PiRecordOutcome] = {
    "session": PiRecordOutcome.HEADER,
    "message": PiRecordOutcome.MESSAGE,
    "custom_message": PiRecordOutcome.MESSAGE,
    "compaction": PiRecordOutcome.COMPACTION,
    "branch_summary": PiRecordOutcome.BRANCH_SUMMARY,
    "usage": PiRecordOutcome.CALL,
    "session_info": PiRecordOutcome.TITLE,
    "model_change": PiRecordOutcome.RUN_METADATA,
    "thinking_level_change": PiRecordOutcome.RUN_METADATA,
    "context_edit": PiRecordOutcome.RECORD,
    "custom": PiRecordOutcome.RECORD,
    "label": PiRecordOutcome.RECORD,
    # oh-my-pi's own.
    "model_usage": PiRecordOutcome.CALL,
    "title": PiRecordOutcome.TITLE,
    "title_change": PiRecordOutcome.TITLE,
    "session_init": PiRecordOutcome.RUN_METADATA,
    "mode_change": PiRecordOutcome.RUN_METADATA,
    "service_tier_change": PiRecordOutcome.RUN_METADATA,
    "credential_pin": PiRecordOutcome.RECORD,
    "reset_boundary": PiRecordOutcome.COMPACTION,
    "ttsr_injection": PiRecordOutcome.RECORD,
    # OpenClaw's own.
    "leaf": PiRecordOutcome.RECORD,
    "reset": PiRecordOutcome.COMPACTION,
    # prime-agent's own.
    "session_state": PiRecordOutcome.RUN_METADATA,
    "agent_status": PiRecordOutcome.RUN_METADATA,
    "git_state": PiRecordOutcome.RUN_METADATA,
    "child_usage_attributed": PiRecordOutcome.RUN_METADATA,
}
"""`type` of a record -> what it becomes."""

KINDS_OF: dict[str, frozenset[str]] = {
    "oh-my-pi": frozenset(
        {
            "credential_pin",
            "mode_change",
            "model_usage",
            "reset_boundary",
            "service_tier_change",
            "session_init",
            "title",
            "title_change",
            "ttsr_injection",
        }
    ),
    "prime-agent": frozenset({"agent_status", "child_usage_attributed", "git_state", "session_state"}),
}
"""Program of the family -> the records that only its logs have."""


class PiCost(msgspec.Struct, gc=False):
    """What one call cost, in US dollars."""

    input: Money | None = None
    output: Money | None = None
    cacheRead: Money | None = None
    cacheWrite: Money | None = None
    total: Money | None = None


class PiUsage(msgspec.Struct, gc=False):
    """Tokens and cost of one call. `output` includes the reasoning, `input` nothing of the cache."""

    input: Count | None = None
    output: Count | None = None
    cacheRead: Count | None = None
    cacheWrite: Count | None = None
    cacheWrite1h: Count | None = None
    reasoning: Count | None = None
    reasoningTokens: Count | None = None
    """The name of `reasoning` in oh-my-pi and OpenClaw."""
    totalTokens: Count | None = None
    cost: PiCost | None = None


class PiMessage(msgspec.Struct, gc=False):
    """The message in a record. Every field has a default, because each role has another subset."""

    role: str = ""
    content: Raw | UnsetType = UNSET
    timestamp: float | None = None
    """Unix milliseconds."""
    sections: dict[str, str | None] | None = None
    toolsAdded: Raw | UnsetType = UNSET
    toolsRemoved: Raw | UnsetType = UNSET
    api: str | None = None
    provider: str | None = None
    model: str | None = None
    responseModel: str | None = None
    responseId: str | None = None
    usage: PiUsage | None = None
    stopReason: str | None = None
    rawStopReason: str | None = None
    errorMessage: str | None = None
    errorStatus: int | None = None
    toolCallId: str | None = None
    toolName: str | None = None
    isError: bool | None = None
    durationMs: float | None = None
    """How long the tool ran, or the model answered (1.6.0)."""
    details: Raw | UnsetType = UNSET
    command: str | None = None
    output: str | None = None
    exitCode: int | None = None
    cancelled: bool | None = None
    truncated: bool | None = None
    fullOutputPath: str | None = None
    excludeFromContext: bool | None = None
    customType: str | None = None
    display: bool | None = None
    summary: str | None = None
    fromId: str | None = None
    synthetic: bool | None = None
    openclaw: Raw | UnsetType = msgspec.field(default=UNSET, name="__openclaw")
    """Where OpenClaw got the message from."""


class PiRecord(msgspec.Struct, gc=False):
    """A line. Every field has a default, because each kind has another subset."""

    type: str = ""
    id: str | None = None
    parentId: str | None = None
    timestamp: str | None = None
    version: int | None = None
    cwd: str | None = None
    parentSession: str | None = None
    branchedFrom: str | None = None
    """The name of `parentSession` in version 1."""
    rlmDepth: int | None = None
    """How many sessions above this one started it as a child (prime-agent)."""
    message: Raw | UnsetType = UNSET
    provider: str | None = None
    model: str | None = None
    modelId: str | None = None
    usage: PiUsage | None = None
    kind: str | None = None
    purpose: str | None = None
    stopReason: str | None = None
    errorMessage: str | None = None
    name: str | None = None
    title: str | None = None
    titleSource: str | None = None
    source: str | None = None
    updatedAt: str | None = None
    summary: str | None = None
    fromId: str | None = None
    firstKeptEntryId: str | None = None
    firstKeptEntryIndex: int | None = None
    tokensBefore: int | None = None
    tokensAfter: int | None = None
    targetId: str | None = None
    reason: str | None = None
    customType: str | None = None
    content: Raw | UnsetType = UNSET
    display: bool | None = None
    turnlog: Any = None
    """The mark of a record that turnlog carried over from another session (`agents.handoffs`)."""


class PiBlock(msgspec.Struct, gc=False):
    """A block of a message's content, of any type."""

    type: str = ""
    text: str | None = None
    textSignature: str | None = None
    thinking: str | None = None
    thinkingSignature: str | None = None
    redacted: bool | None = None
    id: str | None = None
    name: str | None = None
    arguments: Raw | UnsetType = UNSET
    thoughtSignature: str | None = None
    namespace: str | None = None
    data: str | None = None
    mimeType: str | None = None


def _is_record(record: PiRecord) -> bool:
    return record.type in RECORD_KINDS


LINES = JsonLines(PiRecord, first_keys=("type",), plausible=_is_record)
"""Decodes lines."""

MESSAGE = JsonLines(PiMessage, first_keys=(), plausible=lambda message: True)
"""Decodes the message of a record."""


def field_of(json: Raw | UnsetType, name: str) -> Any:
    """The plain value of a field of an object; None when it has none or the JSON is no object."""
    found = fields_of(json).get(name)
    # Not msgspec, which reads no number like 1e400.
    return None if found is None else parse_json(bytes(found))
