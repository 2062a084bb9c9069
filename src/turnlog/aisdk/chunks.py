"""`UIMessageChunk`: the events of a UI message stream, for AI SDK 5, 6 and 7.

This module only defines the content of each chunk; annotations of fields say which release knows what. The reader knows
which order of chunks makes a message, the writer how to produce a valid order.

Mirrors `src/ui-message-stream/ui-message-chunks.ts` of ai 6.0.326 and 7.0.173, and `dist/index.mjs` of 5.0.277.
"""

# No `from __future__ import annotations` here: evaluating annotations from text takes five times as long.

from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from msgspec import UNSET, UnsetType

from turnlog.aisdk.base import (
    Chunk,
    OptionalFlag,
    OptionalMetadata,
    OptionalText,
    Since,
    UIValue,
    Without,
    type_of,
)
from turnlog.aisdk.parts import FileUIPart, TextUIPart, UICitation

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
    """A message begins or continues; `message_metadata` is merged into that of the message."""

    type: ClassVar[Literal["start"]] = "start"
    message_id: OptionalText = UNSET
    message_metadata: Any = UNSET


class MessageMetadataChunk(Chunk, frozen=True, kw_only=True, tag="message-metadata"):
    """Metadata to merge into that of the message."""

    type: ClassVar[Literal["message-metadata"]] = "message-metadata"
    message_metadata: Any


class StartStepChunk(Chunk, frozen=True, kw_only=True, tag="start-step"):
    """A model call begins."""

    type: ClassVar[Literal["start-step"]] = "start-step"


class FinishStepChunk(Chunk, frozen=True, kw_only=True, tag="finish-step"):
    """The model call ended."""

    type: ClassVar[Literal["finish-step"]] = "finish-step"


class ResetStepChunk(Chunk, frozen=True, kw_only=True, tag="reset-step"):
    """The parts since the last step began are removed."""

    type: ClassVar[Literal["reset-step"]] = "reset-step"
    feature: ClassVar[str] = "reset-step"


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
    citations: Annotated[tuple[UICitation, ...] | UnsetType, Since("citations")] = UNSET


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


class ToolInputStartChunk(Chunk, frozen=True, kw_only=True, tag="tool-input-start"):
    """A tool call opens; its input follows as text. `dynamic` makes it a `dynamic-tool` part."""

    type: ClassVar[Literal["tool-input-start"]] = "tool-input-start"
    tool_call_id: str
    tool_name: str
    provider_executed: OptionalFlag = UNSET
    dynamic: OptionalFlag = UNSET
    title: Annotated[OptionalText, Since("tool-title")] = UNSET
    provider_metadata: Annotated[OptionalMetadata, Since("streamed-call-metadata")] = UNSET
    tool_metadata: Annotated[dict[str, Any] | UnsetType, Since("tool-metadata")] = UNSET
    input_encoding: Annotated[Literal["json", "text"] | UnsetType, Since("input-encoding")] = UNSET


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
    title: Annotated[OptionalText, Since("tool-title")] = UNSET
    tool_metadata: Annotated[dict[str, Any] | UnsetType, Since("tool-metadata")] = UNSET


class ToolInputErrorChunk(Chunk, frozen=True, kw_only=True, tag="tool-input-error"):
    """A tool call whose input cannot be used."""

    type: ClassVar[Literal["tool-input-error"]] = "tool-input-error"
    feature: ClassVar[str] = "tool-input-error"
    tool_call_id: str
    tool_name: str
    input: Any
    error_text: str
    provider_executed: OptionalFlag = UNSET
    provider_metadata: OptionalMetadata = UNSET
    dynamic: OptionalFlag = UNSET
    title: Annotated[OptionalText, Since("tool-title")] = UNSET
    tool_metadata: Annotated[dict[str, Any] | UnsetType, Since("tool-metadata")] = UNSET


class ToolApprovalRequestChunk(Chunk, frozen=True, kw_only=True, tag="tool-approval-request"):
    """The tool call waits for a decision."""

    type: ClassVar[Literal["tool-approval-request"]] = "tool-approval-request"
    feature: ClassVar[str] = "approvals"
    approval_id: str
    tool_call_id: str
    signature: Annotated[OptionalText, Since("approval-signature")] = UNSET
    approval_descriptor: Annotated[Any, Since("approval-descriptor")] = UNSET
    input_schema_input: Annotated[Any, Since("approval-schema-input")] = UNSET
    reason: Annotated[OptionalText, Since("approval-request-reason")] = UNSET
    is_automatic: Annotated[OptionalFlag, Since("automatic-approvals")] = UNSET


class ToolApprovalResponseChunk(Chunk, frozen=True, kw_only=True, tag="tool-approval-response"):
    """The decision was made on the server."""

    type: ClassVar[Literal["tool-approval-response"]] = "tool-approval-response"
    feature: ClassVar[str] = "automatic-approvals"
    approval_id: str
    approved: bool
    reason: OptionalText = UNSET
    provider_executed: OptionalFlag = UNSET
    provider_metadata: OptionalMetadata = UNSET


class ToolOutputAvailableChunk(Chunk, frozen=True, kw_only=True, tag="tool-output-available"):
    """The output of a tool; a preliminary output is replaced by the next one."""

    type: ClassVar[Literal["tool-output-available"]] = "tool-output-available"
    tool_call_id: str
    output: Any
    provider_executed: OptionalFlag = UNSET
    dynamic: OptionalFlag = UNSET
    preliminary: Annotated[OptionalFlag, Since("preliminary-output")] = UNSET
    provider_metadata: Annotated[OptionalMetadata, Since("result-metadata")] = UNSET
    tool_metadata: Annotated[dict[str, Any] | UnsetType, Since("tool-metadata")] = UNSET


class ToolOutputErrorChunk(Chunk, frozen=True, kw_only=True, tag="tool-output-error"):
    """A tool failed."""

    type: ClassVar[Literal["tool-output-error"]] = "tool-output-error"
    tool_call_id: str
    error_text: str
    provider_executed: OptionalFlag = UNSET
    dynamic: OptionalFlag = UNSET
    provider_metadata: Annotated[OptionalMetadata, Since("result-metadata")] = UNSET
    tool_metadata: Annotated[dict[str, Any] | UnsetType, Since("tool-metadata")] = UNSET


class ToolOutputDeniedChunk(Chunk, frozen=True, kw_only=True, tag="tool-output-denied"):
    """The tool was not allowed to run."""

    type: ClassVar[Literal["tool-output-denied"]] = "tool-output-denied"
    feature: ClassVar[str] = "approvals"
    tool_call_id: str


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
    # 5 accepts it, and its reader drops it.
    provider_metadata: Annotated[OptionalMetadata, Since("file-metadata", validated=5)] = UNSET


class ReasoningFileChunk(Chunk, frozen=True, kw_only=True, tag="reasoning-file"):
    """A file that belongs to reasoning."""

    type: ClassVar[Literal["reasoning-file"]] = "reasoning-file"
    feature: ClassVar[str] = "reasoning-file"
    url: str
    media_type: str
    provider_metadata: OptionalMetadata = UNSET


class CustomChunk(Chunk, frozen=True, kw_only=True, tag="custom"):
    """Content that only its provider understands."""

    type: ClassVar[Literal["custom"]] = "custom"
    feature: ClassVar[str] = "custom-content"
    kind: str
    provider_metadata: OptionalMetadata = UNSET


class SteeringMessageChunk(Chunk, frozen=True, kw_only=True, tag="steering-message"):
    """A user message that was sent during the run."""

    type: ClassVar[Literal["steering-message"]] = "steering-message"
    feature: ClassVar[str] = "steering-messages"
    id: str
    parts: Annotated[tuple[TextUIPart | FileUIPart, ...], Without(("state", "citations"))]


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
    reason: Annotated[OptionalText, Since("abort-reason")] = UNSET


class FinishChunk(Chunk, frozen=True, kw_only=True, tag="finish"):
    """The message is complete."""

    type: ClassVar[Literal["finish"]] = "finish"
    finish_reason: Annotated[
        FinishReason | UnsetType,
        Since(
            "finish-reason",
            values={"unknown": "finish-reason-unknown", "interrupted": "finish-reason-interrupted"},
        ),
    ] = UNSET
    message_metadata: Any = UNSET


class UnknownChunk(UIValue, frozen=True, kw_only=True):
    """A chunk that no known shape fits, kept by lenient parsing: `value` is its whole JSON."""

    value: Any

    @property
    def type(self) -> str:
        """The `type` of its JSON, or an empty string."""
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
"""The chunks with a fixed type; the others are `data-<name>` and unknown ones."""

UIMessageChunk: TypeAlias = TaggedChunk | DataChunk | UnknownChunk

CHUNK_TYPES: dict[str, type[UIValue]] = {str(chunk.__struct_config__.tag): chunk for chunk in get_args(TaggedChunk)}
"""Chunk type -> its class. `data-<name>` is a prefix, see `chunk_class`."""


def chunk_class(kind: str) -> type[UIValue] | None:
    """The class of a chunk type; None if no version knows the type."""
    return DataChunk if kind.startswith("data-") else CHUNK_TYPES.get(kind)
