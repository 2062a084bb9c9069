"""Kimi Code's records: every known kind with its outcome, their shapes, and how they are decoded.

`docs/formats/kimi-code.md` describes every kind and field; a test compares it with this module. The kinds are those of
the producer's own list (`packages/agent-core-v2/docs/wire-manifest.d.ts`, protocol 1.5), and those that 2.1.0 wrote
besides.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import Count
from turnlog.agents.jsonl import JsonLines
from turnlog.model import Origin


class KimiRecordOutcome(StrEnum):
    """What a record turns into."""

    HEADER = "header"
    INSTRUCTIONS = "instructions"
    MESSAGE = "message"
    LOOP_EVENT = "loop event"
    USAGE = "usage"
    REQUEST = "request"
    COMPACTION = "compaction"
    REWIND = "rewind"
    CLEAR = "clear"
    SUBAGENT = "subagent"
    APPROVAL = "approval"
    CANCEL = "cancel"
    RETRY = "retry"
    TURN_END = "turn end"
    DUPLICATE = "duplicate"
    RUN_METADATA = "run metadata"


_RUN_METADATA = (
    *("agent.switched", "agent.turn.ended", "agent.turn.started", "context.undone"),
    *("cron.add", "cron.cursor", "cron.delete"),
    *("file_history.checkpoint", "file_history.tracked"),
    *("forked", "full_compaction.begin", "full_compaction.cancel", "full_compaction.complete", "goal.account_usage"),
    *("goal.clear", "goal.continuation", "goal.create", "goal.update", "interaction.request", "interaction.resolved"),
    *("interruptionReminder.recorded", "llm.tools_snapshot", "mcp.tools_discovered", "permission.set_mode"),
    *("plan.revision", "plan_mode.cancel", "plan_mode.enter", "plan_mode.exit", "plugin.session_start"),
    *("prompt.aborted", "prompt.accepted", "prompt.completed", "runtime.set_binding", "staleGuard.cleared"),
    *("staleGuard.recorded", "subagent.completed", "subagent.failed", "subagent.started", "swarm_mode.enter"),
    *("swarm_mode.exit", "task.started", "task.terminated", "task.waitDelivered", "token_counting.measured"),
    *("token_counting.rebased", "token_counting.truncated", "token_counting.turn_recorded"),
    *("tools.register_user_tool", "tools.reset_active_tools", "tools.set_active_tools", "tools.unregister_user_tool"),
    *("tools.update_store", "tower_mode.enter", "tower_mode.exit", "turn.prompt", "turn.steer"),
    "turn.step.interrupted",
)

RECORD_KINDS: dict[str, KimiRecordOutcome] = {
    "metadata": KimiRecordOutcome.HEADER,
    "profile.bind": KimiRecordOutcome.INSTRUCTIONS,
    "config.update": KimiRecordOutcome.INSTRUCTIONS,
    "context.append_message": KimiRecordOutcome.MESSAGE,
    "context.append_loop_event": KimiRecordOutcome.LOOP_EVENT,
    "usage.record": KimiRecordOutcome.USAGE,
    "llm.request": KimiRecordOutcome.REQUEST,
    "context.apply_compaction": KimiRecordOutcome.COMPACTION,
    "context.undo": KimiRecordOutcome.REWIND,
    "context.clear": KimiRecordOutcome.CLEAR,
    "subagent.spawned": KimiRecordOutcome.SUBAGENT,
    "permission.record_approval_result": KimiRecordOutcome.APPROVAL,
    "turn.cancel": KimiRecordOutcome.CANCEL,
    "turn.step.retrying": KimiRecordOutcome.RETRY,
    "turn.ended": KimiRecordOutcome.TURN_END,
    "agent.message.appended": KimiRecordOutcome.DUPLICATE,
    **dict.fromkeys(_RUN_METADATA, KimiRecordOutcome.RUN_METADATA),
}
"""Kind -> outcome."""

INPUT_ORIGINS: dict[str, Origin] = {
    "user": Origin.PROMPT,
    "retry": Origin.PROMPT,
    "shell_command": Origin.SHELL,
    "skill_activation": Origin.COMMAND,
    "plugin_command": Origin.COMMAND,
    "compaction_summary": Origin.COMPACTION,
    "cron_job": Origin.NOTIFICATION,
    "cron_missed": Origin.NOTIFICATION,
    "task": Origin.NOTIFICATION,
    "hook_result": Origin.HARNESS,
    "injection": Origin.HARNESS,
    "system_trigger": Origin.HARNESS,
}
"""`origin.kind` of a user's message -> who wrote it; any other kind is the program's own."""


# -- shapes


class _Wire(msgspec.Struct, rename="camel", gc=False):
    pass


class KimiTokenUsage(_Wire, gc=False):
    """Tokens of one model call. The buckets are disjoint; thoughts are within `output`."""

    input_other: Count | None = None
    output: Count | None = None
    input_cache_read: Count | None = None
    input_cache_creation: Count | None = None


class MessageOrigin(_Wire, gc=False):
    """Who wrote a message in the user's place."""

    kind: str = ""
    variant: str | None = None
    name: str | None = None


class Disclosure(_Wire, gc=False):
    """What the model learned about its environment."""

    cwd: str | None = None


class Failure(_Wire, gc=False):
    """Why a turn failed."""

    code: str | None = None
    message: str | None = None
    details: FailureDetails | None = None


class FailureDetails(_Wire, gc=False):
    """The provider's answer to a request that failed."""

    status_code: int | None = None


class ApprovalResult(_Wire, gc=False):
    """What the user decided about a call."""

    decision: str | None = None
    feedback: str | None = None


class KimiRecord(_Wire, gc=False):
    """One line of a log."""

    type: str = ""
    time: float | None = None
    agent_id: str | None = None
    protocol_version: str | None = msgspec.field(name="protocol_version", default=None)
    created_at: float | None = msgspec.field(name="created_at", default=None)
    message: Raw | UnsetType = UNSET
    event: Raw | UnsetType = UNSET
    usage: KimiTokenUsage | None = None
    kind: str | None = None
    model: str | None = None
    model_alias: str | None = None
    system_prompt: str | None = None
    environment_disclosure: Disclosure | None = None
    cwd: str | None = None
    usage_scope: str | None = None
    count: int | None = None
    error_name: str | None = None
    error_message: str | None = None
    status_code: int | None = None
    summary: Raw | UnsetType = UNSET
    context_summary: str | None = None
    tokens_before: Count | None = None
    tokens_after: Count | None = None
    kept_user_message_count: Count | None = None
    kept_head_user_message_count: Count | None = None
    source: str | None = None
    subagent_id: str | None = None
    subagent_name: str | None = None
    parent_tool_call_id: str | None = None
    description: str | None = None
    tool_call_id: str | None = None
    result: ApprovalResult | None = None
    reason: str | None = None
    error: Failure | None = None


class CalledFunction(_Wire, gc=False):
    """The function of a call, as protocol 1.0 writes it."""

    name: str | None = None
    arguments: str | None = None


class WireCall(_Wire, gc=False):
    """A call in a message."""

    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    function: CalledFunction | None = None


class ContextMessage(_Wire, gc=False):
    """A message of the model's context."""

    role: str = ""
    id: str | None = None
    content: Raw | UnsetType = UNSET
    tool_calls: list[WireCall] | None = None
    tool_call_id: str | None = None
    origin: MessageOrigin | None = None
    is_error: bool | None = None
    note: str | None = None
    others: dict[str, Any] | None = msgspec.field(name="", default=None)
    """Metadata: the fields that are not read."""


class AppendedMessage(_Wire, gc=False):
    """The second copy of a message."""

    message: ContextMessage | None = None


class ToolOutcome(_Wire, gc=False):
    """What a tool returned."""

    output: Raw | UnsetType = UNSET
    is_error: bool | None = None
    note: str | None = None
    duration_ms: float | None = None


class LoopEvent(_Wire, gc=False):
    """A piece of a step: its begin, a part of the answer, a call, a result, its end."""

    type: str = ""
    uuid: str | None = None
    step_uuid: str | None = None
    turn_id: str | int | None = None
    step: int | None = None
    part: Raw | UnsetType = UNSET
    tool_call_id: str | None = None
    name: str | None = None
    args: Raw | UnsetType = UNSET
    parent_uuid: str | None = None
    result: ToolOutcome | None = None
    usage: KimiTokenUsage | None = None
    finish_reason: str | None = None
    raw_finish_reason: str | None = None
    message_id: str | None = None
    others: dict[str, Any] | None = msgspec.field(name="", default=None)
    """Metadata: the fields that are not read, most of them times."""


_CompleteMessage = cast(
    "type[ContextMessage]",
    msgspec.defstruct("_CompleteMessage", (), bases=(ContextMessage,), gc=False, forbid_unknown_fields=True),
)
_CompleteEvent = cast(
    "type[LoopEvent]",
    msgspec.defstruct("_CompleteEvent", (), bases=(LoopEvent,), gc=False, forbid_unknown_fields=True),
)


# -- decoding


LINES = JsonLines(
    KimiRecord,
    first_keys=("type", "message", "turnId"),
    plausible=lambda record: record.type in RECORD_KINDS and record.time is not None,
)
"""Reads records out of lines."""

MESSAGES = JsonLines(ContextMessage, first_keys=(), plausible=lambda message: True, complete=_CompleteMessage)
"""Reads a message out of JSON."""

APPENDED = JsonLines(AppendedMessage, first_keys=(), plausible=lambda message: True)
"""Reads the second copy of a message out of JSON."""

EVENTS = JsonLines(LoopEvent, first_keys=(), plausible=lambda event: True, complete=_CompleteEvent)
"""Reads a loop event out of JSON."""
