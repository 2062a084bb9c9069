"""Qwen Code's records: every known kind with its outcome, their shapes, and how they are decoded.

`docs/formats/qwen-code.md` describes every kind and field; a test compares it with this module. The envelope is like
Claude Code's, the content of a message like the Gemini API's (`turnlog.agents.gemini_cli.records`).
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import Count
from turnlog.agents.jsonl import JsonLines
from turnlog.model import Origin, Usage


class QwenRecordOutcome(StrEnum):
    """What a record turns into."""

    MESSAGE = "message"
    RESULT = "result"
    TELEMETRY = "telemetry"
    COMPACTION = "compaction"
    REWIND = "rewind"
    TITLE = "title"
    RUN_METADATA = "run metadata"
    RECORD = "record"


RECORD_KINDS: dict[str, QwenRecordOutcome] = {
    "user": QwenRecordOutcome.MESSAGE,
    "user/mid_turn_user_message": QwenRecordOutcome.MESSAGE,
    "user/notification": QwenRecordOutcome.MESSAGE,
    "user/cron": QwenRecordOutcome.MESSAGE,
    "user/goal_runtime": QwenRecordOutcome.MESSAGE,
    "user/realtime_message": QwenRecordOutcome.MESSAGE,
    "assistant": QwenRecordOutcome.MESSAGE,
    "assistant/realtime_message": QwenRecordOutcome.MESSAGE,
    "tool_result": QwenRecordOutcome.RESULT,
    "system/ui_telemetry": QwenRecordOutcome.TELEMETRY,
    "system/chat_compression": QwenRecordOutcome.COMPACTION,
    "system/rewind": QwenRecordOutcome.REWIND,
    "system/custom_title": QwenRecordOutcome.TITLE,
    "system/attribution_snapshot": QwenRecordOutcome.RUN_METADATA,
    "system/at_command": QwenRecordOutcome.RUN_METADATA,
    "system/background_task_completed": QwenRecordOutcome.RUN_METADATA,
    "system/branch_checkpoint": QwenRecordOutcome.RUN_METADATA,
    "system/file_history_snapshot": QwenRecordOutcome.RUN_METADATA,
    "system/goal_state": QwenRecordOutcome.RUN_METADATA,
    "system/goal_turn_end": QwenRecordOutcome.RUN_METADATA,
    "system/omni_recall": QwenRecordOutcome.RUN_METADATA,
    "system/parent_session": QwenRecordOutcome.RUN_METADATA,
    "system/session_artifact_event": QwenRecordOutcome.RUN_METADATA,
    "system/session_artifact_snapshot": QwenRecordOutcome.RUN_METADATA,
    "system/session_model": QwenRecordOutcome.RUN_METADATA,
    "system/session_source": QwenRecordOutcome.RUN_METADATA,
    "system/session_sources_snapshot": QwenRecordOutcome.RUN_METADATA,
    "system/turn_result": QwenRecordOutcome.RUN_METADATA,
    "system/user_text_elements": QwenRecordOutcome.RUN_METADATA,
    "system/slash_command": QwenRecordOutcome.RECORD,
}
"""Kind -> outcome. A kind is a record's `type`, and its `subtype` where it has one."""

TYPES = frozenset(kind.partition("/")[0] for kind in RECORD_KINDS)

INPUT_ORIGINS: dict[str, Origin] = {
    "user": Origin.PROMPT,
    "user/mid_turn_user_message": Origin.PROMPT,
    "user/realtime_message": Origin.PROMPT,
    "user/notification": Origin.NOTIFICATION,
    "user/cron": Origin.NOTIFICATION,
    "user/goal_runtime": Origin.HARNESS,
}
"""Kind of a record of type `user` -> who wrote it; any other subtype is the program's own."""


# -- shapes


class _Wire(msgspec.Struct, rename="camel", gc=False):
    pass


class QwenForkedFrom(_Wire, gc=False):
    """Where a record was copied from."""

    session_id: str | None = None


class UsageMetadata(_Wire, gc=False):
    """Tokens of one model call, by the names of the Gemini API."""

    prompt_token_count: Count | None = None
    cached_content_token_count: Count | None = None
    candidates_token_count: Count | None = None
    thoughts_token_count: Count | None = None
    tool_use_prompt_token_count: Count | None = None
    total_token_count: Count | None = None


class Content(_Wire, gc=False):
    """A content of the Gemini API: its parts stay raw, because ids and offsets come from them."""

    role: str | None = None
    parts: Raw | UnsetType = UNSET


class ToolCallResult(_Wire, gc=False):
    """What the scheduler says of a result."""

    call_id: str | None = None
    status: str | None = None
    duration_ms: float | None = None


class QwenRecord(_Wire, gc=False):
    """One line of a log."""

    uuid: str | None = None
    parent_uuid: str | None = None
    session_id: str | None = None
    timestamp: datetime | None = None
    type: str = ""
    subtype: str | None = None
    provenance: str | None = None
    cwd: str | None = None
    version: str | None = None
    git_branch: str | None = None
    model: str | None = None
    message: Content | None = None
    usage_metadata: UsageMetadata | None = None
    context_window_size: int | None = None
    tool_call_result: Raw | UnsetType = UNSET
    system_payload: Raw | UnsetType = UNSET
    forked_from: QwenForkedFrom | None = None
    agent_id: str | None = None
    agent_name: str | None = None
    is_sidechain: bool | None = None
    agent_run_id: str | None = None
    agent_round: int | None = None
    turnlog: Any = None
    """The mark of a record that turnlog carried over from another session (`agents.handoffs`)."""
    others: dict[str, Any] | None = msgspec.field(name="", default=None)
    """Metadata: the fields that no version seen so far writes."""

    @property
    def kind(self) -> str:
        """The record's kind, as in `RECORD_KINDS`."""
        return f"{self.type}/{self.subtype}" if self.subtype else self.type


_CompleteRecord = cast(
    "type[QwenRecord]",
    msgspec.defstruct("_CompleteRecord", (), bases=(QwenRecord,), gc=False, forbid_unknown_fields=True),
)


class UiEvent(msgspec.Struct, gc=False):
    """What `ui_telemetry` reports: an answer of the model, a failed request, or a call of a tool."""

    name: str = msgspec.field(name="event.name", default="")
    prompt_id: str = ""
    response_id: str | None = None
    response_text: str | None = None
    model: str | None = None
    input_token_count: Count | None = None
    cached_content_token_count: Count | None = None
    output_token_count: Count | None = None
    thoughts_token_count: Count | None = None
    tool_token_count: Count | None = None
    total_token_count: Count | None = None
    subagent_name: str | None = None
    call_id: str | None = None
    duration_ms: float | None = None
    error: str | None = None
    error_message: str | None = None
    error_type: str | None = None
    status_code: int | str | None = None


class QwenPayload(_Wire, gc=False):
    """`systemPayload` of the kinds that are read."""

    ui_event: UiEvent | None = None
    custom_title: str | None = None
    title_source: str | None = None
    info: CompressionInfo | None = None
    compressed_history: list[Content] | None = None


class CompressionInfo(_Wire, gc=False):
    """What a compaction changed."""

    original_token_count: Count | None = None
    new_token_count: Count | None = None
    trigger_reason: str | None = None


# -- decoding


def _is_record(record: QwenRecord) -> bool:
    return record.type in TYPES and record.session_id is not None


LINES = JsonLines(QwenRecord, first_keys=("uuid", "backgroundTurn"), plausible=_is_record, complete=_CompleteRecord)
"""Reads records out of lines."""

PAYLOADS = JsonLines(QwenPayload, first_keys=(), plausible=lambda payload: True)
"""Reads a payload out of JSON."""

TOOL_RESULTS = JsonLines(ToolCallResult, first_keys=(), plausible=lambda result: True)
"""Reads a `toolCallResult` out of JSON."""


def usage_of(tokens: UsageMetadata | None, *, has_thoughts: bool = False) -> Usage | None:
    """Tokens in disjoint buckets; None where nothing was counted.

    Args:
        tokens: The counts. The prompt's include the cached ones.
        has_thoughts: Whether the answer has thoughts. Qwen Code writes 0 for thoughts that nobody counted.
    """
    if tokens is None:
        return None
    prompt, cached = tokens.prompt_token_count, tokens.cached_content_token_count
    output, thoughts = tokens.candidates_token_count, tokens.thoughts_token_count
    if not any((prompt, cached, output, thoughts, tokens.tool_use_prompt_token_count)):
        return None
    # An OpenAI-compatible provider counts thoughts within the output, Gemini's apart from it: the total shows which.
    is_apart = tokens.total_token_count == (prompt or 0) + (output or 0) + (thoughts or 0) and bool(thoughts)
    if output is not None and not is_apart:
        output = max(0, output - (thoughts or 0))
    return Usage(
        input=None if prompt is None else max(0, prompt - (cached or 0)),
        cache_read=cached,
        output=output,
        # Zero would say that an answer with thoughts thought nothing.
        reasoning=None if has_thoughts and not thoughts else thoughts,
        tool_prompt=tokens.tool_use_prompt_token_count,
    )
