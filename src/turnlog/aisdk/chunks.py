"""The chunks of a stream that tell of tool calls: their input, who is asked for leave, their output.

Shapes only, like all of `turnlog.aisdk.chunks`; which order of them a call may take is the writer's knowledge.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias, get_args

from msgspec import UNSET, UnsetType

from turnlog.aisdk.base import Chunk, OptionalFlag, OptionalMetadata, OptionalText, UIValue, type_of
from turnlog.aisdk.parts import FileUIPart, TextUIPart, UICitation


class ToolInputStartChunk(Chunk, frozen=True, kw_only=True, tag="tool-input-start"):
    """A tool call opens; its input follows as text. `dynamic` makes it a `dynamic-tool` part."""

    type: ClassVar[Literal["tool-input-start"]] = "tool-input-start"
    tool_call_id: str
    tool_name: str
    provider_executed: OptionalFlag = UNSET
    dynamic: OptionalFlag = UNSET
    title: OptionalText = UNSET
    provider_metadata: OptionalMetadata = UNSET
    tool_metadata: dict[str, Any] | UnsetType = UNSET
    input_encoding: Literal["json", "text"] | UnsetType = UNSET


class ToolInputDeltaChunk(Chunk, frozen=True, kw_only=True, tag="tool-input-delta"):
    """More text of a tool call's input."""

    type: ClassVar[Literal["tool-input-delta"]] = "tool-input-delta"
    tool_call_id: str
    input_text_delta: str


class ToolInputAvailableChunk(Chunk, frozen=True, kw_only=True, tag="tool-input-available"):
    """A tool call with its whole input; no start is needed before."""

    type: ClassVar[Literal["tool-input-available"]] = "tool-input-available"
    tool_call_id: str
    tool_name: str
    input: Any
    provider_executed: OptionalFlag = UNSET
    provider_metadata: OptionalMetadata = UNSET
    dynamic: OptionalFlag = UNSET
    title: OptionalText = UNSET
    tool_metadata: dict[str, Any] | UnsetType = UNSET


class ToolInputErrorChunk(Chunk, frozen=True, kw_only=True, tag="tool-input-error"):
    """A tool call whose input cannot be used."""

    type: ClassVar[Literal["tool-input-error"]] = "tool-input-error"
    tool_call_id: str
    tool_name: str
    input: Any
    error_text: str
    provider_executed: OptionalFlag = UNSET
    provider_metadata: OptionalMetadata = UNSET
    dynamic: OptionalFlag = UNSET
    title: OptionalText = UNSET
    tool_metadata: dict[str, Any] | UnsetType = UNSET


class ToolApprovalRequestChunk(Chunk, frozen=True, kw_only=True, tag="tool-approval-request"):
    """The tool call waits for a decision."""

    type: ClassVar[Literal["tool-approval-request"]] = "tool-approval-request"
    approval_id: str
    tool_call_id: str
    signature: OptionalText = UNSET
    approval_descriptor: Any = UNSET
    input_schema_input: Any = UNSET
    reason: OptionalText = UNSET
    is_automatic: OptionalFlag = UNSET


class ToolApprovalResponseChunk(Chunk, frozen=True, kw_only=True, tag="tool-approval-response"):
    """The decision was made on the server."""

    type: ClassVar[Literal["tool-approval-response"]] = "tool-approval-response"
    approval_id: str
    approved: bool
    reason: OptionalText = UNSET
    provider_executed: OptionalFlag = UNSET
    provider_metadata: OptionalMetadata = UNSET


class ToolOutputAvailableChunk(Chunk, frozen=True, kw_only=True, tag="tool-output-available"):
    """What a tool answered; a preliminary output is replaced by the next one."""

    type: ClassVar[Literal["tool-output-available"]] = "tool-output-available"
    tool_call_id: str
    output: Any
    provider_executed: OptionalFlag = UNSET
    dynamic: OptionalFlag = UNSET
    preliminary: OptionalFlag = UNSET
    provider_metadata: OptionalMetadata = UNSET
    tool_metadata: dict[str, Any] | UnsetType = UNSET


class ToolOutputErrorChunk(Chunk, frozen=True, kw_only=True, tag="tool-output-error"):
    """A tool failed."""

    type: ClassVar[Literal["tool-output-error"]] = "tool-output-error"
    tool_call_id: str
    error_text: str
    provider_executed: OptionalFlag = UNSET
    dynamic: OptionalFlag = UNSET
    provider_metadata: OptionalMetadata = UNSET
    tool_metadata: dict[str, Any] | UnsetType = UNSET


class ToolOutputDeniedChunk(Chunk, frozen=True, kw_only=True, tag="tool-output-denied"):
    """The tool was not allowed to run."""

    type: ClassVar[Literal["tool-output-denied"]] = "tool-output-denied"
    tool_call_id: str


FinishReason: TypeAlias = Literal[
    "stop",
    "length",
    "content-filter",
    "tool-calls",
    "error",
    "other",
    "unknown",
    "interrupted",
]


class StartChunk(Chunk, frozen=True, kw_only=True, tag="start"):
    """A message begins, or goes on; `message_metadata` is merged into the message's."""

    type: ClassVar[Literal["start"]] = "start"
    message_id: OptionalText = UNSET
    message_metadata: Any = UNSET


class MessageMetadataChunk(Chunk, frozen=True, kw_only=True, tag="message-metadata"):
    """Metadata to merge into the message's."""

    type: ClassVar[Literal["message-metadata"]] = "message-metadata"
    message_metadata: Any


class StartStepChunk(Chunk, frozen=True, kw_only=True, tag="start-step"):
    """A model call begins."""

    type: ClassVar[Literal["start-step"]] = "start-step"


class FinishStepChunk(Chunk, frozen=True, kw_only=True, tag="finish-step"):
    """The model call ended."""

    type: ClassVar[Literal["finish-step"]] = "finish-step"


class ResetStepChunk(Chunk, frozen=True, kw_only=True, tag="reset-step"):
    """Everything since the last step began is taken back."""

    type: ClassVar[Literal["reset-step"]] = "reset-step"


class TextStartChunk(Chunk, frozen=True, kw_only=True, tag="text-start"):
    """A text part opens under `id`."""

    type: ClassVar[Literal["text-start"]] = "text-start"
    id: str
    provider_metadata: OptionalMetadata = UNSET


class TextDeltaChunk(Chunk, frozen=True, kw_only=True, tag="text-delta"):
    """More text."""

    type: ClassVar[Literal["text-delta"]] = "text-delta"
    id: str
    delta: str
    provider_metadata: OptionalMetadata = UNSET


class TextEndChunk(Chunk, frozen=True, kw_only=True, tag="text-end"):
    """The text part is complete."""

    type: ClassVar[Literal["text-end"]] = "text-end"
    id: str
    provider_metadata: OptionalMetadata = UNSET
    citations: tuple[UICitation, ...] | UnsetType = UNSET


class ReasoningStartChunk(Chunk, frozen=True, kw_only=True, tag="reasoning-start"):
    """A reasoning part opens under `id`."""

    type: ClassVar[Literal["reasoning-start"]] = "reasoning-start"
    id: str
    provider_metadata: OptionalMetadata = UNSET


class ReasoningDeltaChunk(Chunk, frozen=True, kw_only=True, tag="reasoning-delta"):
    """More reasoning."""

    type: ClassVar[Literal["reasoning-delta"]] = "reasoning-delta"
    id: str
    delta: str
    provider_metadata: OptionalMetadata = UNSET


class ReasoningEndChunk(Chunk, frozen=True, kw_only=True, tag="reasoning-end"):
    """The reasoning part is complete."""

    type: ClassVar[Literal["reasoning-end"]] = "reasoning-end"
    id: str
    provider_metadata: OptionalMetadata = UNSET


class SourceUrlChunk(Chunk, frozen=True, kw_only=True, tag="source-url"):
    """A web page the model used."""

    type: ClassVar[Literal["source-url"]] = "source-url"
    source_id: str
    url: str
    title: OptionalText = UNSET
    provider_metadata: OptionalMetadata = UNSET


class SourceDocumentChunk(Chunk, frozen=True, kw_only=True, tag="source-document"):
    """A document the model used."""

    type: ClassVar[Literal["source-document"]] = "source-document"
    source_id: str
    media_type: str
    title: str
    filename: OptionalText = UNSET
    provider_metadata: OptionalMetadata = UNSET


class FileChunk(Chunk, frozen=True, kw_only=True, tag="file"):
    """A file the model made; a stream has no field for its name."""

    type: ClassVar[Literal["file"]] = "file"
    url: str
    media_type: str
    provider_metadata: OptionalMetadata = UNSET


class ReasoningFileChunk(Chunk, frozen=True, kw_only=True, tag="reasoning-file"):
    """A file that belongs to reasoning."""

    type: ClassVar[Literal["reasoning-file"]] = "reasoning-file"
    url: str
    media_type: str
    provider_metadata: OptionalMetadata = UNSET


class CustomChunk(Chunk, frozen=True, kw_only=True, tag="custom"):
    """Content that only its provider understands."""

    type: ClassVar[Literal["custom"]] = "custom"
    kind: str
    provider_metadata: OptionalMetadata = UNSET


class SteeringMessageChunk(Chunk, frozen=True, kw_only=True, tag="steering-message"):
    """What the user said in the middle of the run."""

    type: ClassVar[Literal["steering-message"]] = "steering-message"
    id: str
    parts: tuple[TextUIPart | FileUIPart, ...]


class DataChunk(UIValue, frozen=True, kw_only=True):
    """JSON of an application; `type` is `data-<name>`. Transient data never become part of the message."""

    type: str
    data: Any
    id: OptionalText = UNSET
    transient: OptionalFlag = UNSET

    @property
    def name(self) -> str:
        """The type without `data-`."""
        return self.type[5:]


class ErrorChunk(Chunk, frozen=True, kw_only=True, tag="error"):
    """The run failed."""

    type: ClassVar[Literal["error"]] = "error"
    error_text: str


class AbortChunk(Chunk, frozen=True, kw_only=True, tag="abort"):
    """The run was stopped."""

    type: ClassVar[Literal["abort"]] = "abort"
    reason: OptionalText = UNSET


class FinishChunk(Chunk, frozen=True, kw_only=True, tag="finish"):
    """The message is complete."""

    type: ClassVar[Literal["finish"]] = "finish"
    finish_reason: FinishReason | UnsetType = UNSET
    message_metadata: Any = UNSET


class UnknownChunk(UIValue, frozen=True, kw_only=True):
    """A chunk that no known shape fits, kept by lenient parsing: `value` is its whole JSON."""

    value: Any

    @property
    def type(self) -> str:
        """What it calls itself, or an empty string."""
        return type_of(self.value)


TaggedChunk: TypeAlias = (
    StartChunk
    | MessageMetadataChunk
    | StartStepChunk
    | FinishStepChunk
    | ResetStepChunk
    | TextStartChunk
    | TextDeltaChunk
    | TextEndChunk
    | ReasoningStartChunk
    | ReasoningDeltaChunk
    | ReasoningEndChunk
    | ToolInputStartChunk
    | ToolInputDeltaChunk
    | ToolInputAvailableChunk
    | ToolInputErrorChunk
    | ToolApprovalRequestChunk
    | ToolApprovalResponseChunk
    | ToolOutputAvailableChunk
    | ToolOutputErrorChunk
    | ToolOutputDeniedChunk
    | SourceUrlChunk
    | SourceDocumentChunk
    | FileChunk
    | ReasoningFileChunk
    | CustomChunk
    | SteeringMessageChunk
    | ErrorChunk
    | AbortChunk
    | FinishChunk
)
"""The chunks whose type is one word; the rest are `data-<name>` and what nobody knows."""

UIMessageChunk: TypeAlias = TaggedChunk | DataChunk | UnknownChunk

CHUNK_TYPES: dict[str, type[UIValue]] = {str(chunk.__struct_config__.tag): chunk for chunk in get_args(TaggedChunk)}
"""Chunk type -> its class. `data-<name>` is a prefix, see `chunk_class`."""


def chunk_class(kind: str) -> type[UIValue] | None:
    """The class of a chunk type; None for one that no version knows."""
    return DataChunk if kind.startswith("data-") else CHUNK_TYPES.get(kind)
