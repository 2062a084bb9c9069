"""The shapes of what `claude -p --output-format stream-json` prints, and what becomes of each kind of line.

A kind is the line's `type`, with its `subtype` where it has one: `system/init`, `result/success`. Messages have the
shape of the Messages API and the ids of the session's log. `docs/formats/claude-code.md` describes every kind, and a
test compares it with this table.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw

from turnlog.agents.claude_code.record_kinds import RecordOutcome
from turnlog.agents.claude_code.records import (
    Block,
    CompactMetadata,
    PermissionDecision,
    PreservedMessages,
    ResultFacts,
    WireMessage,
    WireUsage,
)
from turnlog.agents.decoding import Money

STREAM_KINDS: dict[str, RecordOutcome] = {
    **dict.fromkeys(("assistant", "stream_event", "user"), RecordOutcome.MESSAGE),
    "system/compact_boundary": RecordOutcome.COMPACTION,
    "system/api_retry": RecordOutcome.ERROR,
    **dict.fromkeys(
        (
            "result/error_during_execution",
            "result/error_max_budget_usd",
            "result/error_max_structured_output_retries",
            "result/error_max_turns",
            "result/success",
            "system/init",
        ),
        RecordOutcome.RUN_METADATA,
    ),
    **dict.fromkeys(
        (
            "auth_status",
            "command_lifecycle",
            "control_cancel_request",
            "control_request",
            "control_response",
            "conversation_reset",
            "keep_alive",
            "prompt_suggestion",
            "rate_limit_event",
            "system/background_tasks_changed",
            "system/bridge_state",
            "system/cloud_session_delta",
            "system/code_change_published",
            "system/commands_changed",
            "system/control_request_progress",
            "system/elicitation_complete",
            "system/feedback_draft_queued",
            "system/file_attachments_missing",
            "system/files_persisted",
            "system/hook_progress",
            "system/hook_response",
            "system/hook_started",
            "system/informational",
            "system/inherited_asks_settled",
            "system/instruction_size_warning",
            "system/late_allow_not_run",
            "system/local_command",
            "system/local_command_output",
            "system/memory_recall",
            "system/mirror_error",
            "system/model_consent_fallback",
            "system/model_fallback",
            "system/model_refusal_fallback",
            "system/model_refusal_no_fallback",
            "system/notification",
            "system/peer_message_hold",
            "system/per_turn_effort_changed",
            "system/permission_check_status",
            "system/permission_denied",
            "system/plugin_install",
            "system/post_turn_summary",
            "system/session_metadata",
            "system/session_state_changed",
            "system/session_title_changed",
            "system/session_writes_lost",
            "system/shell_cwd",
            "system/status",
            "system/task_list_statuses",
            "system/task_notification",
            "system/task_progress",
            "system/task_started",
            "system/task_summary",
            "system/task_updated",
            "system/thinking_tokens",
            "system/tool_host_result",
            "system/turn_handoff_available",
            "system/turn_preempted",
            "system/ui_invalidate",
            "system/vcs_state_changed",
            "system/worker_shutting_down",
            "tool_progress",
            "tool_use_summary",
        ),
        RecordOutcome.RECORD,
    ),
}
"""Every kind that is known."""

STREAM_TYPES = frozenset(kind.partition("/")[0] for kind in STREAM_KINDS)

_RESULT_FIELDS = (
    "total_cost_usd",
    "usage",
    "modelUsage",
    "num_turns",
    "duration_ms",
    "duration_api_ms",
    "is_error",
    "stop_reason",
    "terminal_reason",
    "permission_denials",
    "errors",
    "subagent_stats",
)

STREAM_FIELDS: dict[str, tuple[str, ...]] = {
    **{kind: _RESULT_FIELDS for kind in STREAM_KINDS if kind.startswith("result/")},
    "system/init": ("model", "permissionMode", "cwd", "claude_code_version", "mcp_servers", "output_style", "agents"),
    "system/informational": ("content", "level"),
    "system/model_refusal_fallback": ("content", "original_model", "api_refusal_category", "api_refusal_explanation"),
    "system/model_refusal_no_fallback": (
        "content",
        "original_model",
        "api_refusal_category",
        "api_refusal_explanation",
    ),
    "system/notification": ("key", "text"),
    "system/permission_denied": ("tool_name", "tool_use_id", "message"),
    "system/session_title_changed": ("title",),
    "system/status": ("status", "compact_result"),
    "system/task_notification": ("task_id", "tool_use_id", "status", "summary", "usage"),
    "system/task_started": ("task_id", "tool_use_id", "description", "subagent_type", "task_type"),
}
"""Fields of a record that its event has."""

FIRST_KEYS = ("type", "subtype", "message", "event", "session_id", "parent_tool_use_id", "uuid", "duration_api_ms")


class ApiEventDelta(msgspec.Struct, gc=False):
    """A text that is added to a block, or why the message ended."""

    text: str | None = None
    thinking: str | None = None
    stop_reason: str | None = None


class ApiEvent(msgspec.Struct, gc=False):
    """An event of the Messages API's stream."""

    type: str = ""
    index: int | None = None
    message: WireMessage | None = None
    content_block: Block | None = None
    delta: ApiEventDelta | None = None
    usage: WireUsage | None = None


class StreamPreserved(msgspec.Struct, gc=False):
    """Records that stay in the context after a compaction."""

    uuids: list[str] | None = None
    all_uuids: list[str] | None = None


class StreamCompaction(msgspec.Struct, gc=False):
    """How a compaction went."""

    trigger: str | None = None
    pre_tokens: int | None = None
    post_tokens: int | None = None
    preserved_messages: StreamPreserved | None = None

    def as_logged(self) -> CompactMetadata:
        """The same as the log has it."""
        kept = self.preserved_messages
        return CompactMetadata(
            trigger=self.trigger,
            pre_tokens=self.pre_tokens,
            post_tokens=self.post_tokens,
            preserved_messages=PreservedMessages(uuids=kept.uuids, all_uuids=kept.all_uuids) if kept else None,
        )


class StreamDecision(msgspec.Struct, gc=False):
    """Who let a tool run or refused it."""

    decision: str | None = None
    source: str | None = None
    reason_type: str | None = None
    reason_code: str | None = None
    rule_source: str | None = None
    grant_scope: str | None = None

    def as_logged(self) -> PermissionDecision:
        """The same as the log has it."""
        return PermissionDecision(**msgspec.structs.asdict(self))


class ResultFact(msgspec.Struct, gc=False):
    """Facts about a tool's result, outside of its message."""

    id: str | None = None
    permission_decision: StreamDecision | None = None
    non_execution_kind: str | None = None


class StreamRecord(msgspec.Struct, gc=False):
    """One line of a stream, or of input for `--input-format stream-json`."""

    type: str = ""
    subtype: str | None = None
    message: WireMessage | str | None = None
    """A string in `system/permission_denied`."""
    event: ApiEvent | str | None = None
    """A string, a name, in a notice for the screen."""
    session_id: str | None = None
    uuid: str | None = None
    timestamp: datetime | None = None
    parent_tool_use_id: str | None = None
    agent_id: str | None = None
    request_id: str | None = None
    thinking_duration_ms: int | None = None
    aborted: bool | None = None
    error: Any = None
    error_status: int | None = None
    is_synthetic: bool | None = msgspec.field(name="isSynthetic", default=None)
    tool_result_meta: list[ResultFact] | None = None
    tool_use_result: ResultFacts | str | list[Raw] | int | float | bool | None = None
    cwd: str | None = None
    claude_code_version: str | None = None
    compact_metadata: StreamCompaction | None = None
    logical_parent_uuid: str | None = None
    attempt: int | None = None
    max_retries: int | None = None
    retry_delay_ms: float | None = None
    task_id: str | None = None
    tool_use_id: str | None = None
    total_cost_usd: Money | None = None
    title: str | None = None

    @property
    def wire_message(self) -> WireMessage | None:
        """The message of the Messages API, if the line has one."""
        return self.message if isinstance(self.message, WireMessage) else None

    @property
    def kind(self) -> str:
        """The line's kind, as in `STREAM_KINDS`."""
        return f"{self.type}/{self.subtype}" if self.subtype else self.type
