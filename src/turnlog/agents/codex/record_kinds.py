"""Every kind of record that Codex is known to write, and what becomes of it.

A kind is the record's `type`, with that of its payload where it has one and that of its item: `response_item/message`,
`event_msg/item_completed/Plan`. `docs/formats/codex.md` describes each of them, which a test compares with this table.
"""

from __future__ import annotations

from enum import StrEnum


class CodexRecordOutcome(StrEnum):
    """What becomes of a record."""

    MESSAGE = "message"
    RESULT = "result"
    DUPLICATE = "duplicate"
    """The other stream has it too. What it adds is joined there, and nothing is shown twice."""
    COMPACTION = "compaction"
    INTERRUPT = "interrupt"
    REWIND = "rewind"
    ERROR = "error"
    RUN_METADATA = "run metadata"
    RECORD = "record"


def _kinds(prefix: str, outcome: CodexRecordOutcome, *names: str) -> dict[str, CodexRecordOutcome]:
    return {f"{prefix}{name}": outcome for name in names}


RECORD_KINDS: dict[str, CodexRecordOutcome] = {
    **_kinds(
        "response_item/",
        CodexRecordOutcome.MESSAGE,
        "message",
        "reasoning",
        "function_call",
        "custom_tool_call",
        "local_shell_call",
        "web_search_call",
        "image_generation_call",
        "tool_search_call",
        "agent_message",
    ),
    **_kinds(
        "response_item/",
        CodexRecordOutcome.RESULT,
        "function_call_output",
        "custom_tool_call_output",
        "tool_search_output",
        "local_shell_call_output",
        "mcp_tool_call_output",
    ),
    **_kinds(
        "response_item/",
        CodexRecordOutcome.RECORD,
        "additional_tools",
        "compaction",
        "compaction_summary",
        "compaction_trigger",
        "configuration_update",
        "context_compaction",
        "ghost_snapshot",
        "other",
    ),
    **_kinds(
        "event_msg/",
        CodexRecordOutcome.DUPLICATE,
        "user_message",
        "agent_message",
        "agent_reasoning",
        "agent_reasoning_raw_content",
        "exec_command_end",
        "mcp_tool_call_end",
        "patch_apply_end",
        "view_image_tool_call",
        "dynamic_tool_call_response",
        "collab_agent_spawn_end",
    ),
    **_kinds(
        "event_msg/item_completed/",
        CodexRecordOutcome.DUPLICATE,
        "UserMessage",
        "AgentMessage",
        "Reasoning",
        "CommandExecution",
        "FileChange",
        "McpToolCall",
        "DynamicToolCall",
        "CollabAgentToolCall",
        "SubAgentActivity",
        "WebSearch",
        "ImageView",
        "ImageGeneration",
        "FunctionCallOutput",
        "Sleep",
    ),
    "event_msg/token_count": CodexRecordOutcome.DUPLICATE,
    "token_usage_record": CodexRecordOutcome.MESSAGE,
    "compacted": CodexRecordOutcome.COMPACTION,
    "event_msg/turn_aborted": CodexRecordOutcome.INTERRUPT,
    "event_msg/thread_rolled_back": CodexRecordOutcome.REWIND,
    "event_msg/error": CodexRecordOutcome.ERROR,
    "event_msg/stream_error": CodexRecordOutcome.ERROR,
    **_kinds(
        "event_msg/",
        CodexRecordOutcome.RUN_METADATA,
        "task_started",
        "task_complete",
        "turn_started",
        "turn_complete",
        "thread_settings_applied",
        "thread_name_updated",
        "thread_goal_updated",
        "entered_review_mode",
        "exited_review_mode",
        "context_compacted",
        "session_configured",
        "item_completed/Plan",
        "item_completed/EnteredReviewMode",
        "item_completed/ExitedReviewMode",
        "item_completed/ContextCompaction",
        "item_completed/HookPrompt",
    ),
    "session_meta": CodexRecordOutcome.RUN_METADATA,
    "turn_context": CodexRecordOutcome.RUN_METADATA,
    **_kinds(
        "",
        CodexRecordOutcome.RECORD,
        "world_state",
        "dynamic_tools_updated",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "security_risk_score",
        "retained_context",
        "realtime_item",
        "state",
    ),
    **_kinds(
        "event_msg/",
        CodexRecordOutcome.RECORD,
        "agent_message_content_delta",
        "agent_message_delta",
        "agent_reasoning_delta",
        "agent_reasoning_raw_content_delta",
        "agent_reasoning_section_break",
        "apply_patch_approval_request",
        "auth_recovery_completed",
        "auth_recovery_started",
        "background_event",
        "collab_agent_interaction_begin",
        "collab_agent_interaction_end",
        "collab_agent_spawn_begin",
        "collab_close_begin",
        "collab_close_end",
        "collab_resume_begin",
        "collab_resume_end",
        "collab_waiting_begin",
        "collab_waiting_end",
        "deprecation_notice",
        "dynamic_tool_call_request",
        "elicitation_abandoned",
        "elicitation_request",
        "environment_connected",
        "environment_disconnected",
        "exec_approval_request",
        "exec_command_begin",
        "exec_command_output_delta",
        "guardian_assessment",
        "guardian_warning",
        "hook_completed",
        "hook_started",
        "image_generation_begin",
        "image_generation_end",
        "item_started",
        "mcp_startup_complete",
        "mcp_startup_update",
        "mcp_tool_call_begin",
        "model_reroute",
        "model_verification",
        "patch_apply_begin",
        "patch_apply_updated",
        "plan_delta",
        "plan_update",
        "raw_response_item",
        "realtime_conversation_closed",
        "realtime_conversation_list_voices_response",
        "realtime_conversation_realtime",
        "realtime_conversation_sdp",
        "realtime_conversation_started",
        "reasoning_content_delta",
        "reasoning_raw_content_delta",
        "request_permissions",
        "request_user_input",
        "safety_buffering",
        "shutdown_complete",
        "sub_agent_activity",
        "terminal_interaction",
        "thread_queue_changed",
        "turn_diff",
        "turn_moderation_metadata",
        "undo_completed",
        "undo_started",
        "warning",
        "web_search_begin",
        "web_search_end",
    ),
}

TYPES = frozenset(kind.partition("/")[0] for kind in RECORD_KINDS)
"""The `type` of every known record."""

ITEM_TYPES = frozenset(
    kind.removeprefix("response_item/") for kind in RECORD_KINDS if kind.startswith("response_item/")
)
"""The `type` of every known item, also of items without an envelope."""

KEPT_FIELDS: dict[str, tuple[str, ...]] = {
    "session_meta": (
        "id",
        "session_id",
        "originator",
        "cli_version",
        "source",
        "thread_source",
        "parent_thread_id",
        "model_provider",
        "history_mode",
        "history_base",
        "forked_from_id",
        "forked_from_ordinal_exclusive",
        "git",
    ),
    "turn_context": ("turn_id", "cwd", "model", "effort", "summary", "approval_policy", "sandbox_policy"),
    "event_msg/token_count": ("rate_limits",),
    "event_msg/task_started": ("turn_id", "started_at", "model_context_window", "collaboration_mode_kind"),
    "event_msg/task_complete": ("turn_id", "duration_ms", "time_to_first_token_ms", "error"),
    "event_msg/turn_aborted": ("turn_id", "reason", "duration_ms"),
    "event_msg/thread_settings_applied": ("thread_settings",),
    "event_msg/thread_name_updated": ("thread_name",),
    "event_msg/thread_goal_updated": ("goal",),
    "event_msg/entered_review_mode": ("target", "user_facing_hint"),
    "event_msg/exited_review_mode": ("review_output",),
    "event_msg/item_completed/Plan": ("item",),
    "event_msg/item_completed/EnteredReviewMode": ("item",),
    "event_msg/item_completed/ExitedReviewMode": ("item",),
    "event_msg/item_completed/HookPrompt": ("item",),
    "event_msg/guardian_assessment": ("id", "target_item_id", "status", "risk_level", "rationale"),
    "event_msg/guardian_warning": ("message",),
    "event_msg/warning": ("message",),
    "event_msg/plan_update": ("explanation", "plan"),
}
"""Fields of a payload that its event has. All others are only in the archived record."""
