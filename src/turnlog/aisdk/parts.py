"""`UIMessage` and its parts, as AI SDK 5, 6 and 7 know them together.

A value may hold more than one version can: which field came when stands in `turnlog.aisdk.shapes`, whether a message
is valid for a version says `validate_ui_messages`, and `downgrade_ui_message` takes out what an older one lacks.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from msgspec import UNSET, UnsetType

from turnlog.aisdk.base import OptionalFlag, OptionalMetadata, OptionalText, UIValue, type_of

TextState: TypeAlias = Literal["streaming", "done"]
UIRole: TypeAlias = Literal["system", "user", "assistant"]
ToolPartState: TypeAlias = Literal[
    "input-streaming",
    "input-available",
    "approval-requested",
    "approval-responded",
    "output-available",
    "output-error",
    "output-denied",
]


class _Part(UIValue, frozen=True, kw_only=True, tag_field="type"):
    pass


class UrlCitationSource(UIValue, frozen=True, kw_only=True, tag_field="sourceType", tag="url"):
    """A web page that a text refers to."""

    type: Literal["source"]
    id: str
    url: str
    title: OptionalText = UNSET
    provider_metadata: OptionalMetadata = UNSET


class DocumentCitationSource(UIValue, frozen=True, kw_only=True, tag_field="sourceType", tag="document"):
    """A document that a text refers to."""

    type: Literal["source"]
    id: str
    media_type: str
    title: str
    filename: OptionalText = UNSET
    provider_metadata: OptionalMetadata = UNSET


class UICitation(UIValue, frozen=True, kw_only=True):
    """A reference that supports a passage of a text part; indexes count from 0 in its text."""

    source: UrlCitationSource | DocumentCitationSource
    start_index: int | float | UnsetType = UNSET
    end_index: int | float | UnsetType = UNSET
    cited_text: OptionalText = UNSET


class TextUIPart(_Part, frozen=True, kw_only=True, tag="text"):
    """Text (R-S3)."""

    type: ClassVar[Literal["text"]] = "text"
    text: str
    state: TextState | UnsetType = UNSET
    provider_metadata: OptionalMetadata = UNSET
    citations: tuple[UICitation, ...] | UnsetType = UNSET


class ReasoningUIPart(_Part, frozen=True, kw_only=True, tag="reasoning"):
    """Reasoning (R-S4); `id` is the one that its chunks had."""

    type: ClassVar[Literal["reasoning"]] = "reasoning"
    text: str
    id: OptionalText = UNSET
    state: TextState | UnsetType = UNSET
    provider_metadata: OptionalMetadata = UNSET


class SourceUrlUIPart(_Part, frozen=True, kw_only=True, tag="source-url"):
    """A web page the model used (R-S5)."""

    type: ClassVar[Literal["source-url"]] = "source-url"
    source_id: str
    url: str
    title: OptionalText = UNSET
    provider_metadata: OptionalMetadata = UNSET


class SourceDocumentUIPart(_Part, frozen=True, kw_only=True, tag="source-document"):
    """A document the model used (R-S6)."""

    type: ClassVar[Literal["source-document"]] = "source-document"
    source_id: str
    media_type: str
    title: str
    filename: OptionalText = UNSET
    provider_metadata: OptionalMetadata = UNSET


class FileUIPart(_Part, frozen=True, kw_only=True, tag="file"):
    """A file (R-S7): `url` is http(s) or a data URL; `provider_reference` (provider -> file id) wins over it."""

    type: ClassVar[Literal["file"]] = "file"
    media_type: str
    url: str
    filename: OptionalText = UNSET
    provider_metadata: OptionalMetadata = UNSET
    provider_reference: dict[str, str] | UnsetType = UNSET


class ReasoningFileUIPart(_Part, frozen=True, kw_only=True, tag="reasoning-file"):
    """A file that belongs to reasoning."""

    type: ClassVar[Literal["reasoning-file"]] = "reasoning-file"
    media_type: str
    url: str
    provider_metadata: OptionalMetadata = UNSET


class CustomUIPart(_Part, frozen=True, kw_only=True, tag="custom"):
    """Content that only its provider understands; `kind` is `<provider>.<type>`."""

    type: ClassVar[Literal["custom"]] = "custom"
    kind: str
    provider_metadata: OptionalMetadata = UNSET


class StepStartUIPart(_Part, frozen=True, kw_only=True, tag="step-start"):
    """Where a model call begins (R-S8)."""

    type: ClassVar[Literal["step-start"]] = "step-start"


class SteeringMessageUIPart(_Part, frozen=True, kw_only=True, tag="steering-message"):
    """What the user said while the assistant message was being made."""

    type: ClassVar[Literal["steering-message"]] = "steering-message"
    id: str
    parts: tuple[TextUIPart | FileUIPart, ...]


class ToolApproval(UIValue, frozen=True, kw_only=True):
    """The question whether a tool may run, and its answer; `approved` is UNSET while it is open."""

    id: str
    approved: OptionalFlag = UNSET
    reason: OptionalText = UNSET
    request_reason: OptionalText = UNSET
    is_automatic: OptionalFlag = UNSET
    signature: OptionalText = UNSET
    descriptor: Any = UNSET
    input_schema_input: Any = UNSET


class _ToolFields(UIValue, frozen=True, kw_only=True):
    """What `tool-<name>` and `dynamic-tool` share; which fields a state allows stands in `shapes.TOOL_STATES`."""

    tool_call_id: str
    state: ToolPartState
    input: Any = UNSET
    raw_input: Any = UNSET
    input_encoding: Literal["json", "text"] | UnsetType = UNSET
    output: Any = UNSET
    error_text: OptionalText = UNSET
    preliminary: OptionalFlag = UNSET
    approval: ToolApproval | UnsetType = UNSET
    provider_executed: OptionalFlag = UNSET
    title: OptionalText = UNSET
    tool_metadata: dict[str, Any] | UnsetType = UNSET
    call_provider_metadata: OptionalMetadata = UNSET
    result_provider_metadata: OptionalMetadata = UNSET


class ToolUIPart(_ToolFields, frozen=True, kw_only=True):
    """A call of a tool that the application declared; `type` is `tool-<name>`."""

    type: str

    @property
    def tool_name(self) -> str:
        """The type without `tool-`."""
        return self.type[5:]


class DynamicToolUIPart(_ToolFields, frozen=True, kw_only=True, tag_field="type", tag="dynamic-tool"):
    """A call of a tool whose types nobody declared (R-S9).

    `dynamic` is false where a declared tool became unavailable, and otherwise UNSET.
    """

    type: ClassVar[Literal["dynamic-tool"]] = "dynamic-tool"
    tool_name: str
    dynamic: OptionalFlag = UNSET


class DataUIPart(UIValue, frozen=True, kw_only=True):
    """JSON of an application; `type` is `data-<name>`. A part with `id` is replaced by later data of that id.

    `transient` stands on a stored part only where a chunk said literally that it is not.
    """

    type: str
    data: Any
    id: OptionalText = UNSET
    transient: OptionalFlag = UNSET

    @property
    def name(self) -> str:
        """The type without `data-`."""
        return self.type[5:]


class UnknownUIPart(UIValue, frozen=True, kw_only=True):
    """A part that no known shape fits, kept by lenient parsing: `value` is its whole JSON."""

    value: Any

    @property
    def type(self) -> str:
        """What it calls itself, or an empty string."""
        return type_of(self.value)


UIMessagePart: TypeAlias = (
    TextUIPart
    | ReasoningUIPart
    | ToolUIPart
    | DynamicToolUIPart
    | SourceUrlUIPart
    | SourceDocumentUIPart
    | FileUIPart
    | ReasoningFileUIPart
    | CustomUIPart
    | StepStartUIPart
    | SteeringMessageUIPart
    | DataUIPart
    | UnknownUIPart
)


class UIMessage(UIValue, frozen=True, kw_only=True):
    """One message of a chat (R-S1); `metadata` is any JSON of the application."""

    id: str
    role: UIRole
    parts: tuple[UIMessagePart, ...]
    metadata: Any = UNSET


_TAGGED: tuple[type[UIValue], ...] = (
    TextUIPart,
    ReasoningUIPart,
    DynamicToolUIPart,
    SourceUrlUIPart,
    SourceDocumentUIPart,
    FileUIPart,
    ReasoningFileUIPart,
    CustomUIPart,
    StepStartUIPart,
    SteeringMessageUIPart,
)

PART_TYPES: dict[str, type[UIValue]] = {str(part.__struct_config__.tag): part for part in _TAGGED}
"""Part type -> its class. `tool-<name>` and `data-<name>` are prefixes, see `part_class`."""


def part_class(kind: str) -> type[UIValue] | None:
    """The class of a part type; None for one that no version knows."""
    if kind.startswith("tool-"):
        return ToolUIPart
    if kind.startswith("data-"):
        return DataUIPart
    return PART_TYPES.get(kind)


_USUAL: dict[UIRole, tuple[str, ...]] = {"system": ("text",), "user": ("text", "file")}
"""Assistants may say anything."""


class UnusualPart(NamedTuple):
    """A part that one would not expect in a message of this role."""

    path: str
    role: UIRole
    type: str


def unusual_parts(message: UIMessage) -> list[UnusualPart]:
    """The parts that are unusual for the message's role, in order."""
    usual = _USUAL.get(message.role)
    if usual is None:
        return []
    return [
        UnusualPart(f"$.parts[{index}]", message.role, part.type)
        for index, part in enumerate(message.parts)
        if part.type not in usual
    ]
