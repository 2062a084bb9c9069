"""Kimi CLI's records: every known kind with its outcome, their shapes, and how they are decoded.

`docs/formats/kimi-cli.md` describes every kind; a test compares it with this module. The kinds are those of the
program's own module (`kimi_cli/wire/types.py`, 1.49).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import Count
from turnlog.agents.jsonl import JsonLines
from turnlog.agents.kimi.records import WireCall


class CliRecordOutcome(StrEnum):
    """What a record turns into."""

    PROMPT = "prompt"
    STEP = "step"
    PART = "part"
    CALL = "call"
    STATUS = "status"
    RESULT = "result"
    COMPACTION = "compaction"
    INTERRUPT = "interrupt"
    APPROVAL_REQUEST = "approval request"
    APPROVAL = "approval"
    SUBAGENT = "subagent"
    RUN_METADATA = "run metadata"


CLI_RECORD_KINDS: dict[str, CliRecordOutcome] = {
    "TurnBegin": CliRecordOutcome.PROMPT,
    "SteerInput": CliRecordOutcome.PROMPT,
    "StepBegin": CliRecordOutcome.STEP,
    "ContentPart": CliRecordOutcome.PART,
    "ToolCall": CliRecordOutcome.CALL,
    "StatusUpdate": CliRecordOutcome.STATUS,
    "ToolResult": CliRecordOutcome.RESULT,
    "CompactionEnd": CliRecordOutcome.COMPACTION,
    "StepInterrupted": CliRecordOutcome.INTERRUPT,
    "ApprovalRequest": CliRecordOutcome.APPROVAL_REQUEST,
    "ApprovalResponse": CliRecordOutcome.APPROVAL,
    "ApprovalRequestResolved": CliRecordOutcome.APPROVAL,
    "SubagentEvent": CliRecordOutcome.SUBAGENT,
    **dict.fromkeys(
        (
            *("metadata", "TurnEnd", "StepRetry", "CompactionBegin", "HookTriggered", "HookResolved", "HookRequest"),
            *("MCPLoadingBegin", "MCPLoadingEnd", "Notification", "PlanDisplay", "BtwBegin", "BtwEnd", "ToolCallPart"),
            *("ToolCallRequest", "QuestionRequest", "QuestionResponse"),
        ),
        CliRecordOutcome.RUN_METADATA,
    ),
}
"""Kind -> outcome."""


class CliTokens(msgspec.Struct, gc=False):
    """Tokens of one model call. The buckets are disjoint; thoughts are within `output`."""

    input_other: Count | None = None
    output: Count | None = None
    input_cache_read: Count | None = None
    input_cache_creation: Count | None = None


class ReturnValue(msgspec.Struct, gc=False):
    """What a tool returned."""

    is_error: bool | None = None
    output: Raw | UnsetType = UNSET
    message: str | None = None


class CliPayload(msgspec.Struct, gc=False):
    """The payload of the kinds that are read."""

    user_input: Raw | UnsetType = UNSET
    id: str | None = None
    function: Raw | UnsetType = UNSET
    token_usage: CliTokens | None = None
    message_id: str | None = None
    tool_call_id: str | None = None
    return_value: ReturnValue | None = None
    request_id: str | None = None
    response: str | None = None
    parent_tool_call_id: str | None = None
    agent_id: str | None = None


class Envelope(msgspec.Struct, gc=False):
    """What a record is."""

    type: str = ""
    payload: Raw | UnsetType = UNSET


class CliRecord(msgspec.Struct, gc=False):
    """One line of a log: the first has a `type` and no message."""

    type: str | None = None
    protocol_version: str | None = None
    timestamp: float | None = None
    message: Envelope | None = None

    @property
    def kind(self) -> str:
        """The record's kind, as in `CLI_RECORD_KINDS`."""
        return self.message.type if self.message is not None else self.type or ""


CLI_LINES = JsonLines(
    CliRecord,
    first_keys=("timestamp", "type"),
    plausible=lambda record: record.kind in CLI_RECORD_KINDS,
)
"""Reads records out of lines."""

PAYLOADS = JsonLines(CliPayload, first_keys=(), plausible=lambda payload: True)
"""Reads a payload out of JSON."""

CLI_CALLS = msgspec.json.Decoder(WireCall)
"""Reads a call."""
