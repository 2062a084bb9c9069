"""The objects of a trajectory as they are written. Fields are those of ATIF 1.8; what is None or empty is left out.

ATIF allows no other fields: what it has no field for is in `extra`, under the names that the model has.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal

import msgspec

VERSION: Final = "ATIF-v1.8"

IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""The media types of images that a trajectory may contain."""

AUDIO: Final = {
    **{kind: kind for kind in ("audio/wav", "audio/mpeg", "audio/mp4", "audio/aac", "audio/ogg", "audio/flac")},
    **{kind: kind for kind in ("audio/webm", "audio/aiff")},
    **{"audio/mp3": "audio/mpeg", "audio/x-wav": "audio/wav", "audio/m4a": "audio/mp4", "audio/x-m4a": "audio/mp4"},
}
"""Media types of sound -> their names in a trajectory."""


class _Object(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pass


class Media(_Object, frozen=True, kw_only=True):
    """Where an image or a sound is."""

    media_type: str
    path: str


class AtifContentPart(_Object, frozen=True, kw_only=True):
    """A text, or an image or sound by its place."""

    type: Literal["text", "image", "audio"]
    text: str | None = None
    source: Media | None = None


class SubagentReference(_Object, frozen=True, kw_only=True):
    """The trajectory of a subagent, among `subagent_trajectories`."""

    trajectory_id: str
    session_id: str | None = None


class AtifToolCall(_Object, frozen=True, kw_only=True):
    """A call of a tool; `arguments` is a JSON object."""

    tool_call_id: str
    function_name: str
    arguments: msgspec.Raw
    extra: dict[str, Any] = {}


class ObservationResult(_Object, frozen=True, kw_only=True):
    """What a call returned; without `source_call_id` the step has no such call."""

    source_call_id: str | None = None
    content: str | list[AtifContentPart] | None = None
    subagent_trajectory_ref: list[SubagentReference] = []
    extra: dict[str, Any] = {}


class Observation(_Object, frozen=True, kw_only=True):
    """What the calls of a step returned."""

    results: list[ObservationResult]


class AtifMetrics(_Object, frozen=True, kw_only=True):
    """Tokens and dollars of one model call. `prompt_tokens` contains `cached_tokens`."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    extra: dict[str, Any] = {}


class AtifStep(_Object, frozen=True, kw_only=True):
    """A message with what its calls returned."""

    step_id: int
    timestamp: datetime | None = None
    source: Literal["system", "user", "agent"]
    model_name: str | None = None
    message: str | list[AtifContentPart]
    reasoning_content: str | None = None
    tool_calls: list[AtifToolCall] = []
    observation: Observation | None = None
    metrics: AtifMetrics | None = None
    is_copied_context: bool | None = None
    llm_call_count: int | None = None
    extra: dict[str, Any] = {}


class AtifAgent(_Object, frozen=True, kw_only=True):
    """Whose trajectory it is."""

    name: str
    version: str
    model_name: str | None = None


class FinalMetrics(_Object, frozen=True, kw_only=True):
    """Tokens of a trajectory, and its dollars with those of its subagents."""

    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_cost_usd: float | None = None
    total_steps: int | None = None
    extra: dict[str, Any] = {}


class Trajectory(_Object, frozen=True, kw_only=True):
    """A session."""

    schema_version: str
    session_id: str
    trajectory_id: str
    agent: AtifAgent
    steps: list[AtifStep]
    notes: str | None = None
    final_metrics: FinalMetrics | None = None
    extra: dict[str, Any] = {}
    subagent_trajectories: list[Trajectory] = []
