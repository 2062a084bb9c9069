"""The shapes of a trajectory (ATIF 1.0 to 1.8), and how they are decoded: as much as fits, the rest is reported.

Fields that the format does not have are kept, since other programs add their own.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import Count, Money
from turnlog.agents.jsonl import JsonLines


class TrajectoryAgent(msgspec.Struct, gc=False):
    """Whose trajectory it is."""

    name: str | None = None
    version: str | None = None
    model_name: str | None = None
    tool_definitions: Raw | UnsetType = UNSET
    extra: Raw | UnsetType = UNSET


class TrajectoryTotals(msgspec.Struct, gc=False):
    """What all steps used. The tokens are without those of subagents or with them, as its writer likes."""

    total_prompt_tokens: Count | None = None
    total_completion_tokens: Count | None = None
    total_cached_tokens: Count | None = None
    total_cost_usd: Money | None = None
    total_steps: Count | None = None
    extra: Raw | UnsetType = UNSET


class TrajectoryRecord(msgspec.Struct, gc=False):
    """A trajectory."""

    schema_version: str | None = None
    session_id: str | None = None
    trajectory_id: str | None = None
    agent: TrajectoryAgent | None = None
    steps: list[Raw] | None = None
    notes: str | None = None
    final_metrics: TrajectoryTotals | None = None
    continued_trajectory_ref: str | None = None
    extra: Raw | UnsetType = UNSET
    subagent_trajectories: list[Raw] | None = None
    others: dict[str, Any] | None = msgspec.field(name="", default=None)
    """Metadata: fields that the format does not have."""


class StepCall(msgspec.Struct, gc=False):
    """A call of a tool."""

    tool_call_id: str | None = None
    function_name: str | None = None
    arguments: Raw | UnsetType = UNSET
    extra: Raw | UnsetType = UNSET


class SubagentRef(msgspec.Struct, gc=False):
    """The trajectory of a subagent: among those in the same file, or in another one."""

    trajectory_id: str | None = None
    session_id: str | None = None
    trajectory_path: str | None = None


class StepResult(msgspec.Struct, gc=False):
    """What a call returned, or what the agent saw without a call."""

    source_call_id: str | None = None
    content: Raw | UnsetType = UNSET
    subagent_trajectory_ref: list[SubagentRef] | None = None
    extra: Raw | UnsetType = UNSET


class StepObservation(msgspec.Struct, gc=False):
    """What a step returned."""

    results: list[StepResult] | None = None


class StepMetrics(msgspec.Struct, gc=False):
    """Tokens and dollars. Those of the prompt include cached ones."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    cached_tokens: Count | None = None
    cost_usd: Money | None = None
    extra: Raw | UnsetType = UNSET


class StepRecord(msgspec.Struct, gc=False):
    """A step."""

    step_id: int | None = None
    timestamp: str | None = None
    source: str | None = None
    model_name: str | None = None
    reasoning_effort: str | float | None = None
    message: Raw | UnsetType = UNSET
    reasoning_content: str | None = None
    tool_calls: list[StepCall] | None = None
    observation: StepObservation | None = None
    metrics: StepMetrics | None = None
    is_copied_context: bool | None = None
    llm_call_count: Count | None = None
    extra: Raw | UnsetType = UNSET
    others: dict[str, Any] | None = msgspec.field(name="", default=None)
    """Metadata: fields that the format does not have."""


def _complete(kind: type[Any]) -> Any:
    return cast(
        "Any",
        msgspec.defstruct(f"_Complete{kind.__name__}", (), bases=(kind,), gc=False, forbid_unknown_fields=True),
    )


TRAJECTORIES: JsonLines[TrajectoryRecord] = JsonLines(
    TrajectoryRecord,
    first_keys=("schema_version",),
    plausible=lambda record: record.steps is not None,
    complete=_complete(TrajectoryRecord),
    strict=False,
)
"""Reads a trajectory out of JSON. Numbers are also read from texts and floats, as programs write tables of them."""

STEPS: JsonLines[StepRecord] = JsonLines(
    StepRecord,
    first_keys=("step_id",),
    plausible=lambda step: step.source is not None,
    complete=_complete(StepRecord),
    strict=False,
)
"""Reads a step out of JSON."""
