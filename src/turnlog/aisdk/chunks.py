"""`UIMessageChunk`s: the events of a UI message stream, as AI SDK 5, 6 and 7 know them together.

Only shapes: which order of chunks makes a message is the reader's knowledge, making a valid order the writer's.
Which kinds and fields a version knows stands in `turnlog.aisdk.shapes`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias, get_args

from msgspec import UNSET, UnsetType

from turnlog.aisdk.base import Chunk, OptionalFlag, OptionalMetadata, OptionalText, UIValue, type_of
from turnlog.aisdk.parts import FileUIPart, TextUIPart, UICitation
from turnlog.aisdk.tool_chunks import (
    ToolApprovalRequestChunk,
    ToolApprovalResponseChunk,
    ToolInputAvailableChunk,
    ToolInputDeltaChunk,
    ToolInputErrorChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
)

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
