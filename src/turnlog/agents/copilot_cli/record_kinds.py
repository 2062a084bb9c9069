"""Every known kind of Copilot CLI's events, with its outcome.

The names are those of the schema of session events that 1.0.102 unpacks (163 kinds, 78 of them persisted), one kind of
0.0.423 that 1.0.102 no longer has, and those that a compaction of 1.0.102 also persists although the schema does not
have them. `docs/formats/copilot-cli.md` describes those that are read, which a test compares with this table.
"""

from __future__ import annotations

from enum import StrEnum


class CopilotRecordOutcome(StrEnum):
    """What a record turns into."""

    MESSAGE = "message"
    CALL = "call"
    RESULT = "result"
    COMPACTION = "compaction"
    INTERRUPT = "interrupt"
    ERROR = "error"
    RUN_METADATA = "run metadata"
    RECORD = "record"


READ: dict[str, CopilotRecordOutcome] = {
    "abort": CopilotRecordOutcome.INTERRUPT,
    "assistant.message": CopilotRecordOutcome.MESSAGE,
    "permission.completed": CopilotRecordOutcome.RECORD,
    "session.binary_asset": CopilotRecordOutcome.RECORD,
    "session.compaction_complete": CopilotRecordOutcome.COMPACTION,
    "session.compaction_start": CopilotRecordOutcome.RECORD,
    "session.context_changed": CopilotRecordOutcome.RUN_METADATA,
    "session.error": CopilotRecordOutcome.ERROR,
    "session.info": CopilotRecordOutcome.RECORD,
    "session.model_change": CopilotRecordOutcome.RUN_METADATA,
    "session.resume": CopilotRecordOutcome.RUN_METADATA,
    "session.shutdown": CopilotRecordOutcome.RUN_METADATA,
    "session.start": CopilotRecordOutcome.RUN_METADATA,
    "session.usage_record": CopilotRecordOutcome.RUN_METADATA,
    "subagent.completed": CopilotRecordOutcome.RUN_METADATA,
    "subagent.configured": CopilotRecordOutcome.RECORD,
    "subagent.failed": CopilotRecordOutcome.ERROR,
    "subagent.started": CopilotRecordOutcome.RUN_METADATA,
    "system.message": CopilotRecordOutcome.MESSAGE,
    "system.notification": CopilotRecordOutcome.MESSAGE,
    "tool.execution_complete": CopilotRecordOutcome.RESULT,
    "tool.execution_start": CopilotRecordOutcome.CALL,
    "tool.user_requested": CopilotRecordOutcome.MESSAGE,
    "user.message": CopilotRecordOutcome.MESSAGE,
}
"""Kinds that are more than an event of their own, or that say something about the session."""


def _names(group: str, words: str) -> list[str]:
    return [f"{group}.{word}" for word in words.split()]


PERSISTED: frozenset[str] = frozenset(
    [
        *_names("assistant", "fusion_phase_completed fusion_phase_failed reasoning turn_end turn_start"),
        *("external_tool.requested", "hook.end", "hook.start", "human_response.recorded"),
        *("mcp.oauth_recovery_completed", "tool_search.activated"),
        *_names(
            "permission",
            "assentDetected carriedForward contextualAuthorization messageAuthorization messageAuthorizationDegraded"
            " messageAuthorizationRead requested",
        ),
        *_names(
            "session",
            "auto_mode_resolved autopilot_objective_changed canvas.recorded canvas.removed completion_receipt"
            " context_cleared fusion_change_checkpoint fusion_commit_started fusion_completed fusion_handoff"
            " fusion_resolved fusion_route_failed handoff import_legacy mode_changed mode_notice_delivered"
            " model_deselected permission_recovery permissions_changed plan_changed remote_steerable_changed"
            " request_body_compression_disabled schedule_cancelled schedule_created schedule_rearmed"
            " session_limits_changed task_complete truncation usage_checkpoint warning workspace_file_changed",
        ),
        *_names("skill", "context_delivered context_delivered_ref invoked invoked_ref"),
        *_names("subagent", "deselected selected"),
        *_names(
            "model",
            "message messages_snapshot model_call_started model_call_success response turn_ended turn_started",
        ),
    ]
)
"""Other kinds that logs contain: each is a separate event. Those of `model` are written during a compaction."""

EPHEMERAL: frozenset[str] = frozenset(
    [
        *("agent.interrupted", "capabilities.changed", "commands.changed", "external_tool.completed", "hook.progress"),
        *("mcp_app.tool_call_complete", "pending_messages.modified", "prompt_cache_break", "sandbox.decision"),
        "ui.ephemeral_query",
        *_names(
            "assistant",
            "fusion_phase_activity fusion_phase_started idle intent message_delta message_start reasoning_delta"
            " server_tool_progress streaming_delta tool_call_delta turn_retry usage",
        ),
        *_names("auto_mode_switch", "completed requested"),
        *_names("command", "completed execute queued"),
        *_names("elicitation", "completed requested"),
        *_names("exit_plan_mode", "completed requested"),
        *_names(
            "mcp",
            "headers_refresh_completed headers_refresh_required oauth_completed oauth_required prompts.list_changed"
            " resources.list_changed tools.list_changed",
        ),
        *_names("model", "call_failure call_final_result call_finished call_start"),
        *_names("sampling", "completed requested"),
        *_names(
            "session",
            "auto_tier_recommendation auto_tier_switch_failed autopilot_stopped background_tasks_changed canvas.closed"
            " canvas.opened canvas.registry_changed canvas.unavailable custom_agents_updated custom_notification"
            " extensions.attachments_pushed extensions_loaded fusion_route_started idle indexed_search"
            " managed_plugin_progress managed_settings_enforced managed_settings_resolved mcp_server_needs_reconnect"
            " mcp_server_removed mcp_server_status_changed mcp_server_tools_loaded mcp_servers_loaded memory_changed"
            " quota_observation skills_loaded snapshot_rewind title_changed todos_changed tools_updated usage_info",
        ),
        *_names("session_limits_exhausted", "completed requested"),
        *_names("tool", "execution_partial_result execution_progress shell_output"),
        *_names("user_input", "completed requested"),
        *_names("workflow", "run_settled run_started run_updated"),
    ]
)
"""Kinds that 1.0.102 sends to its clients and does not write. One in a log is a separate event."""

RECORD_KINDS: dict[str, CopilotRecordOutcome] = {
    **dict.fromkeys(sorted(PERSISTED | EPHEMERAL), CopilotRecordOutcome.RECORD),
    **READ,
}
"""Every known kind, and what becomes of it."""
