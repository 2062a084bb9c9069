"""StreamEvents: the one live vocabulary, from provider streams, agents' live output and foreign runtimes.

They are never part of a history. A writer turns them into AI SDK chunks, an accumulator into messages; both
log and skip what makes no sense, so an event here is a claim, not a promise of order.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET

from turnlog.model.base import ProviderData, RawJson, Value, require_json
from turnlog.model.message import Message, StopReason
from turnlog.model.parts import FilePart, SourceDocumentPart, SourceUrlPart, ToolResult
from turnlog.model.usage import Usage


class _StreamEvent(Value, frozen=True, kw_only=True, tag_field="type"):
    pass


class RunStart(_StreamEvent, frozen=True, kw_only=True, tag="run-start"):
    """A run began; what follows belongs to `message_id` when it is known."""

    message_id: str | None = None
    metadata: dict[str, Any] = {}


class RunFinish(_StreamEvent, frozen=True, kw_only=True, tag="run-finish"):
    """The run ended by itself."""

    stop_reason: StopReason | None = None
    usage: Usage | None = None
    metadata: dict[str, Any] = {}


class StepStart(_StreamEvent, frozen=True, kw_only=True, tag="step-start"):
    """A model call began."""

    model: str | None = None
    response_id: str | None = None


class StepFinish(_StreamEvent, frozen=True, kw_only=True, tag="step-finish"):
    """A model call ended."""

    stop_reason: StopReason | None = None
    raw_stop_reason: str | None = None
    usage: Usage | None = None
    message: Message | None = None
    """What the model answered, for a history: with what the events before have no place for. Pages never get it."""


class TextStart(_StreamEvent, frozen=True, kw_only=True, tag="text-start"):
    """A text part opens."""

    id: str
    provider: ProviderData | None = None


class TextDelta(_StreamEvent, frozen=True, kw_only=True, tag="text-delta", gc=False):
    """More text for the open part `id`."""

    id: str
    delta: str


class TextEnd(_StreamEvent, frozen=True, kw_only=True, tag="text-end"):
    """A text part is complete."""

    id: str
    provider: ProviderData | None = None


class ReasoningStart(_StreamEvent, frozen=True, kw_only=True, tag="reasoning-start"):
    """A reasoning part opens."""

    id: str
    provider: ProviderData | None = None


class ReasoningDelta(_StreamEvent, frozen=True, kw_only=True, tag="reasoning-delta", gc=False):
    """More thinking for the open part `id`."""

    id: str
    delta: str


class ReasoningEnd(_StreamEvent, frozen=True, kw_only=True, tag="reasoning-end"):
    """A reasoning part is complete."""

    id: str
    provider: ProviderData | None = None


class ToolInputStart(_StreamEvent, frozen=True, kw_only=True, tag="tool-input-start"):
    """The arguments of a call begin to arrive."""

    tool_call_id: str
    tool_name: str
    provider_executed: bool = False


class ToolInputDelta(_StreamEvent, frozen=True, kw_only=True, tag="tool-input-delta", gc=False):
    """More text of the arguments."""

    tool_call_id: str
    delta: str


class ToolInputAvailable(_StreamEvent, frozen=True, kw_only=True, tag="tool-input-available"):
    """The arguments are complete: JSON in `input`, or `input_text` when they are not JSON."""

    tool_call_id: str
    tool_name: str
    input: RawJson = UNSET
    input_text: str | None = None
    provider_executed: bool = False
    provider: ProviderData | None = None

    def __post_init__(self) -> None:
        """Raise TypeError for plain values in place of JSON."""
        require_json("input", self.input)


class ToolOutput(_StreamEvent, frozen=True, kw_only=True, tag="tool-output"):
    """A result: final or preliminary, a success, an error, a refusal or an abort (`result.status`)."""

    tool_call_id: str
    result: ToolResult


class ApprovalRequest(_StreamEvent, frozen=True, kw_only=True, tag="approval-request"):
    """The agent asks whether a call may run."""

    approval_id: str
    tool_call_id: str
    reason: str | None = None


class ApprovalResponse(_StreamEvent, frozen=True, kw_only=True, tag="approval-response"):
    """The answer to an approval request."""

    approval_id: str
    approved: bool
    reason: str | None = None


class FileEvent(_StreamEvent, frozen=True, kw_only=True, tag="file"):
    """The model produced a file."""

    file: FilePart


class SourceEvent(_StreamEvent, frozen=True, kw_only=True, tag="source"):
    """The model gave a source."""

    source: SourceUrlPart | SourceDocumentPart


class DataEvent(_StreamEvent, frozen=True, kw_only=True, tag="data"):
    """Application data; `transient` data is shown and not kept."""

    name: str
    data: msgspec.Raw
    id: str | None = None
    transient: bool = False

    def __post_init__(self) -> None:
        """Raise TypeError for plain values in place of JSON."""
        require_json("data", self.data)


class StreamError(_StreamEvent, frozen=True, kw_only=True, tag="error"):
    """The run failed."""

    error_text: str
    kind: str | None = None


class Abort(_StreamEvent, frozen=True, kw_only=True, tag="abort"):
    """The run was stopped from outside."""

    reason: str | None = None


class Pause(_StreamEvent, frozen=True, kw_only=True, tag="pause"):
    """The run waits: for an approval, an answer, or its turn."""

    reason: Literal["approval", "input", "other"] = "other"


StreamEvent: TypeAlias = (
    RunStart
    | RunFinish
    | StepStart
    | StepFinish
    | TextStart
    | TextDelta
    | TextEnd
    | ReasoningStart
    | ReasoningDelta
    | ReasoningEnd
    | ToolInputStart
    | ToolInputDelta
    | ToolInputAvailable
    | ToolOutput
    | ApprovalRequest
    | ApprovalResponse
    | FileEvent
    | SourceEvent
    | DataEvent
    | StreamError
    | Abort
    | Pause
)
