"""Every kind of record that Claude Code is known to write, and what it becomes.

A kind is the record's `type`, with its subtype where it has one: `system/api_error`, `attachment/date`,
`progress/hook_progress`. `docs/formats/claude-code.md` describes each of them, which a test compares with this table.
"""

from __future__ import annotations

from enum import StrEnum

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
        "attachment/agent_listing_delta",
        "attachment/auto_mode",
        "attachment/date",
        "attachment/deferred_tools_delta",
        "attachment/environment",
        "attachment/file",
        "attachment/model",
        "attachment/plan_mode",
        "attachment/plan_mode_exit",
        "attachment/queued_command",
        "attachment/remote_session_change",
        "attachment/session_context",
        "attachment/silent_turn_reminder",
        "attachment/skill_listing",
        "attachment/task_reminder",
        "attachment/total_tokens_reminder",
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
        "cost-state",
        "custom-title",
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
        "attachment/deferred_tools_record",
        "attachment/prompt_snapshot",
        "attachment/structured_output",
        "attribution-snapshot",
        "bridge-session",
        "content-replacement",
        "file-history-delta",
        "file-history-snapshot",
        "fork-context-ref",
        "frame-link",
        "isolation-latch",
        "progress/bash_progress",
        "progress/hook_progress",
        "queue-operation",
        "relocated",
        "session-owner",
        "speculation-accept",
        "system/away_summary",
        "system/informational",
        "system/memory_saved",
        "system/model_refusal_fallback",
        "system/model_refusal_no_fallback",
    ),
    Becomes.RECORD,
)

KINDS: dict[str, Becomes] = {
    **_CONVERSATION,
    "system/compact_boundary": Becomes.COMPACTION,
    "system/api_error": Becomes.ERROR,
    **_RUN_METADATA,
    **_RECORDS,
}

TYPES = frozenset(kind.partition("/")[0] for kind in KINDS)
"""The `type` of every known record."""

KEPT_FIELDS: dict[str, tuple[str, ...]] = {
    "agent-color": ("agentColor",),
    "agent-name": ("agentName",),
    "ai-title": ("aiTitle",),
    "cost-state": ("totalCostUSD", "totalAPIDuration", "totalToolDuration", "totalDuration", "modelUsage"),
    "custom-title": ("customTitle",),
    "last-prompt": ("lastPrompt", "leafUuid", "explicit"),
    "mode": ("mode",),
    "permission-mode": ("permissionMode",),
    "pr-link": ("prNumber", "prUrl", "prRepository"),
    "summary": ("summary", "leafUuid"),
    "system/informational": ("content", "level"),
    "system/model_refusal_fallback": ("content", "originalModel", "apiRefusalCategory", "apiRefusalExplanation"),
    "system/model_refusal_no_fallback": ("content", "originalModel", "apiRefusalCategory", "apiRefusalExplanation"),
    "system/stop_hook_summary": ("hookCount", "hookInfos", "hookErrors", "preventedContinuation", "stopReason"),
    "system/turn_duration": ("durationMs", "messageCount"),
    "tag": ("tag",),
    "tools-used": ("tools",),
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
