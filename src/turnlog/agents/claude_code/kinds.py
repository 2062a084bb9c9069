"""Every kind of record that Claude Code is known to write, and what it becomes.

A kind is the record's `type`, with its subtype where it has one: `system/api_error`, `attachment/date`,
`progress/hook_progress`. `docs/formats/claude-code.md` describes each of them, which a test compares with this table.
"""

from __future__ import annotations

from enum import StrEnum

from turnlog.agents.claude_code.attachments import INJECTED, NOTED
from turnlog.agents.claude_code.records import Record


class Becomes(StrEnum):
    """What a record turns into."""

    MESSAGE = "message"
    COMPACTION = "compaction"
    ERROR = "error"
    RUN_METADATA = "run metadata"
    RECORD = "record"


_CONVERSATION = dict.fromkeys(
    (
        "user",
        "assistant",
        "system/local_command",
        "progress/agent_progress",
    ),
    Becomes.MESSAGE,
)

_RUN_METADATA = dict.fromkeys(
    (
        "agent-color",
        "agent-name",
        "agent-setting",
        "ai-title",
        "atis-latch",
        "continued-in",
        "cost-state",
        "custom-title",
        "derived-from",
        "last-prompt",
        "mode",
        "permission-mode",
        "pr-link",
        "summary",
        "system/stop_hook_summary",
        "system/turn_duration",
        "tag",
        "tools-used",
        "worktree-state",
    ),
    Becomes.RUN_METADATA,
)

_RECORDS = dict.fromkeys(
    (
        "agent-server",
        "agent-server-menu",
        "api-request",
        "api-request-blob",
        "api-request-resumed",
        "api-request-shape",
        "artifact-autoreact-ledger",
        "artifact-comment-monitor",
        "attribution-snapshot",
        "bridge-session",
        "content-replacement",
        "data-flow-incomplete",
        "data-flow-records",
        "dev-mods",
        "ended-by-model",
        "file-history-delta",
        "file-history-snapshot",
        "fork-context-ref",
        "frame-link",
        "history-suppression",
        "host-row",
        "hybrid-organization",
        "isolation-latch",
        "marble-origami-commit",
        "marble-origami-reset",
        "marble-origami-snapshot",
        "memory-mode",
        "observer-ref",
        "progress/bash_progress",
        "progress/hook_progress",
        "queue-operation",
        "relocated",
        "repl-mode",
        "resume-head-vouch",
        "session-owner",
        "speculation-accept",
        "system/agents_killed",
        "system/away_summary",
        "system/bridge_status",
        "system/cloud_session_status",
        "system/file_snapshot",
        "system/informational",
        "system/memory_saved",
        "system/microcompact_boundary",
        "system/model_consent_fallback",
        "system/model_fallback",
        "system/model_refusal_fallback",
        "system/model_refusal_no_fallback",
        "system/permission_retry",
        "system/rewind_stand_in",
        "system/scheduled_task_fire",
    ),
    Becomes.RECORD,
)

KINDS: dict[str, Becomes] = {
    **_CONVERSATION,
    **{f"attachment/{name}": Becomes.MESSAGE for name in INJECTED},
    "system/compact_boundary": Becomes.COMPACTION,
    "system/api_error": Becomes.ERROR,
    **_RUN_METADATA,
    **_RECORDS,
    **{f"attachment/{name}": Becomes.RECORD for name in NOTED},
}

TYPES = frozenset(kind.partition("/")[0] for kind in KINDS)
"""The `type` of every known record."""

KEPT_FIELDS: dict[str, tuple[str, ...]] = {
    "agent-color": ("agentColor",),
    "agent-name": ("agentName",),
    "ai-title": ("aiTitle",),
    "continued-in": ("continuedInSessionId",),
    "cost-state": ("totalCostUSD", "totalAPIDuration", "totalToolDuration", "totalDuration", "modelUsage"),
    "custom-title": ("customTitle",),
    "derived-from": ("sessions",),
    "last-prompt": ("lastPrompt", "leafUuid", "explicit"),
    "mode": ("mode",),
    "permission-mode": ("permissionMode",),
    "pr-link": ("prNumber", "prUrl", "prRepository"),
    "summary": ("summary", "leafUuid"),
    "system/informational": ("content", "level"),
    "system/model_consent_fallback": ("content", "choice", "originalModel", "fallbackModel"),
    "system/microcompact_boundary": ("content", "microcompactMetadata"),
    "system/model_refusal_fallback": ("content", "originalModel", "apiRefusalCategory", "apiRefusalExplanation"),
    "system/model_refusal_no_fallback": ("content", "originalModel", "apiRefusalCategory", "apiRefusalExplanation"),
    "system/stop_hook_summary": ("hookCount", "hookInfos", "hookErrors", "preventedContinuation", "stopReason"),
    "system/turn_duration": ("durationMs", "messageCount"),
    "tag": ("tag",),
    "tools-used": ("tools",),
    "attachment/command_permissions": ("attachment",),
    "attachment/hook_additional_context": ("attachment",),
    "attachment/hook_blocking_error": ("attachment",),
    "attachment/hook_cancelled": ("attachment",),
    "attachment/hook_error_during_execution": ("attachment",),
    "attachment/hook_non_blocking_error": ("attachment",),
    "attachment/hook_permission_decision": ("attachment",),
    "attachment/hook_stopped_continuation": ("attachment",),
    "attachment/hook_success": ("attachment",),
    "attachment/hook_system_message": ("attachment",),
    "attachment/max_turns_reached": ("attachment",),
    "attachment/structured_output": ("attachment",),
    "queue-operation": ("operation", "content", "reason"),
}
"""Fields of a record that its event carries; of the others it carries none, the record being in the archive."""


def kind_of(record: Record) -> str:
    """The kind of a record, in the words of `KINDS`."""
    if record.type == "system" and record.subtype:
        return f"system/{record.subtype}"
    if record.type == "attachment" and record.attachment:
        return f"attachment/{record.attachment.type}"
    if record.type == "progress" and record.data:
        return f"progress/{record.data.type}"
    return record.type
