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
    ),
    Becomes.MESSAGE,
)

_INJECTED = (
    "agent_listing_delta",
    "agent_mention",
    "already_read_file",
    "async_agent_status",
    "async_hook_response",
    "async_hook_response_batch",
    "at_mention_reference",
    "attention_budget",
    "auto_mode",
    "auto_mode_exit",
    "background_remote_session_status",
    "background_shell_status",
    "budget_usd",
    "claude_app_notice",
    "compact_file_reference",
    "compaction_reminder",
    "companion_intro",
    "context_efficiency",
    "context_sections",
    "coordinator_context",
    "critical_system_reminder",
    "date",
    "date_change",
    "deferred_tools_delta",
    "diagnostics",
    "directory",
    "document",
    "dynamic_skill",
    "edited_image_file",
    "edited_text_file",
    "environment",
    "file",
    "goal_status",
    "hook_additional_context",
    "hook_blocking_error",
    "hook_stopped_continuation",
    "hook_success",
    "image",
    "instruction_files_not_loaded",
    "instructions",
    "invoked_skills",
    "language",
    "mcp_instructions_delta",
    "mcp_resource",
    "memory",
    "model",
    "nested_memory",
    "opened_file_in_ide",
    "output_style",
    "output_style_instructions",
    "output_token_usage",
    "pdf_reference",
    "plan_file_reference",
    "plan_mode",
    "plan_mode_exit",
    "plan_mode_reentry",
    "queued_command",
    "relevant_memories",
    "remote_session_change",
    "sandbox_instructions",
    "secondary_reminder",
    "selected_lines_in_diff",
    "selected_lines_in_ide",
    "session_context",
    "silent_turn_reminder",
    "skill_listing",
    "task_reminder",
    "task_status",
    "team_context",
    "teammate_mailbox",
    "teammate_shutdown_batch",
    "todo",
    "todo_reminder",
    "token_usage",
    "tool_hosts_notice",
    "total_tokens_reminder",
    "ultra_effort_enter",
    "ultra_effort_exit",
    "ultramemory",
    "ultrathink_effort",
    "verify_plan_reminder",
    "withheld_memory",
)
"""Attachments that tell the model something. Where the log has no text of one it stays an event."""

_NOTED = (
    "advisor_stripped",
    "command_permissions",
    "deferred_tools_record",
    "hook_cancelled",
    "hook_deferred_tool",
    "hook_error_during_execution",
    "hook_non_blocking_error",
    "hook_permission_decision",
    "hook_system_message",
    "max_turns_reached",
    "prompt_render_point",
    "prompt_snapshot",
    "secondary_reminder_sent",
    "structured_output",
    "thinking_stripped",
    "tool_offer_record",
    "tool_results_cut",
)
"""Attachments that the model never sees."""

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
        "attribution-snapshot",
        "bridge-session",
        "content-replacement",
        "file-history-delta",
        "file-history-snapshot",
        "fork-context-ref",
        "frame-link",
        "history-suppression",
        "host-row",
        "hybrid-organization",
        "isolation-latch",
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
        "system/file_snapshot",
        "system/informational",
        "system/memory_saved",
        "system/microcompact_boundary",
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
    **{f"attachment/{name}": Becomes.MESSAGE for name in _INJECTED},
    "system/compact_boundary": Becomes.COMPACTION,
    "system/api_error": Becomes.ERROR,
    **_RUN_METADATA,
    **_RECORDS,
    **{f"attachment/{name}": Becomes.RECORD for name in _NOTED},
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
