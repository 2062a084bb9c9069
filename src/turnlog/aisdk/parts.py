"""`UIMessage` and its parts, for AI SDK 5, 6 and 7.

A value may have fields that a version lacks; annotations of fields say which release knows what. `validate_ui_messages`
checks a message for a version, and `downgrade_ui_message` removes what an older one lacks.

Mirrors `src/ui/ui-messages.ts` and `src/ui/validate-ui-messages.ts` of ai 6.0.326 and 7.0.173, and the schemas in
`dist/index.mjs` of 5.0.277.
"""

# No `from __future__ import annotations` here: evaluating annotations from text takes five times as long.

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

from msgspec import UNSET, UnsetType

from turnlog.aisdk.base import (
    REFUSED_ELSEWHERE,
    STRIPPED,
    CheckedAs,
    InStates,
    OptionalFlag,
    OptionalMetadata,
    OptionalText,
    Since,
    UIValue,
    Without,
    type_of,
)
from turnlog.arguments import checked

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
    """A web page to which a text refers."""

    type: Literal["source"]
    id: str
    url: str
    title: OptionalText = UNSET
    provider_metadata: OptionalMetadata = UNSET


class DocumentCitationSource(UIValue, frozen=True, kw_only=True, tag_field="sourceType", tag="document"):
    """A document to which a text refers."""

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
    citations: Annotated[tuple[UICitation, ...] | UnsetType, Since("citations")] = UNSET


class ReasoningUIPart(_Part, frozen=True, kw_only=True, tag="reasoning"):
    """Reasoning (R-S4); `id` is that of its chunks."""

    type: ClassVar[Literal["reasoning"]] = "reasoning"
    text: str
    id: Annotated[OptionalText, Since("reasoning-id")] = UNSET
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
    provider_reference: Annotated[dict[str, str] | UnsetType, Since("provider-reference")] = UNSET


class ReasoningFileUIPart(_Part, frozen=True, kw_only=True, tag="reasoning-file"):
    """A file that belongs to reasoning."""

    type: ClassVar[Literal["reasoning-file"]] = "reasoning-file"
    feature: ClassVar[str] = "reasoning-file"
    media_type: str
    url: str
    provider_metadata: OptionalMetadata = UNSET


class CustomUIPart(_Part, frozen=True, kw_only=True, tag="custom"):
    """Content that only its provider understands; `kind` is `<provider>.<type>`."""

    type: ClassVar[Literal["custom"]] = "custom"
    feature: ClassVar[str] = "custom-content"
    kind: str
    provider_metadata: OptionalMetadata = UNSET


class StepStartUIPart(_Part, frozen=True, kw_only=True, tag="step-start"):
    """The beginning of a model call (R-S8)."""

    type: ClassVar[Literal["step-start"]] = "step-start"


class SteeringMessageUIPart(_Part, frozen=True, kw_only=True, tag="steering-message"):
    """A user message that was sent while the assistant message was being made."""

    type: ClassVar[Literal["steering-message"]] = "steering-message"
    feature: ClassVar[str] = "steering-messages"
    id: str
    parts: Annotated[tuple[TextUIPart | FileUIPart, ...], Without(("state", "citations"))]


_ANSWERED = ("approval-responded", "output-available", "output-error", "output-denied")
_CALLED = ("input-available", "approval-requested", "approval-responded", "output-available", "output-denied")
"""The states with a complete input. A failed call may lack it, because the input may be what failed."""


class ToolApproval(UIValue, frozen=True, kw_only=True):
    """A permission request for a tool call, and its answer; `approved` is UNSET until there is one."""

    id: str
    approved: Annotated[
        OptionalFlag,
        InStates(("approval-responded",), required=True),
        InStates(("output-available", "output-error"), required=True, type=Literal[True]),
        InStates(("output-denied",), required=True, type=Literal[False]),
        REFUSED_ELSEWHERE,
    ] = UNSET
    reason: Annotated[OptionalText, InStates(_ANSWERED), REFUSED_ELSEWHERE] = UNSET
    request_reason: Annotated[OptionalText, Since("approval-request-reason")] = UNSET
    is_automatic: Annotated[OptionalFlag, Since("automatic-approvals")] = UNSET
    signature: Annotated[OptionalText, Since("approval-signature")] = UNSET
    descriptor: Annotated[Any, Since("approval-descriptor")] = UNSET
    input_schema_input: Annotated[Any, Since("approval-schema-input")] = UNSET


class _ToolFields(UIValue, frozen=True, kw_only=True):
    """What `tool-<name>` and `dynamic-tool` share (R-S10). A field of another state is left out or an error (R-S11)."""

    tool_call_id: str
    state: ToolPartState
    input: Annotated[Any, InStates(_CALLED, required=True), InStates(("input-streaming", "output-error"))] = UNSET
    raw_input: Annotated[
        Any,
        InStates(("input-streaming",), type=str, since=Since("raw-input")),
        InStates(("output-error",)),
    ] = UNSET
    input_encoding: Annotated[
        Literal["json", "text"] | UnsetType, InStates(("input-streaming",)), Since("input-encoding")
    ] = UNSET
    output: Annotated[Any, InStates(("output-available",), required=True), REFUSED_ELSEWHERE] = UNSET
    error_text: Annotated[OptionalText, InStates(("output-error",), required=True), REFUSED_ELSEWHERE] = UNSET
    preliminary: Annotated[OptionalFlag, InStates(("output-available",)), Since("preliminary-output")] = UNSET
    approval: Annotated[
        ToolApproval | UnsetType,
        InStates(("approval-requested", "approval-responded", "output-denied"), required=True),
        InStates(("output-available", "output-error")),
        REFUSED_ELSEWHERE,
        # The validator of 5 accepts approvals of static tools, although 5 never requests any.
        Since("approvals", validated=5),
    ] = UNSET
    provider_executed: OptionalFlag = UNSET
    # 6 shows the title of a tool, but its validator removes it; 7.0.93 was the first to keep it.
    title: Annotated[OptionalText, Since("tool-title", validated=7)] = UNSET
    tool_metadata: Annotated[dict[str, Any] | UnsetType, Since("tool-metadata")] = UNSET
    call_provider_metadata: Annotated[
        OptionalMetadata,
        InStates(("input-streaming",), since=Since("streamed-call-metadata")),
        InStates((*_CALLED, "output-error")),
    ] = UNSET
    result_provider_metadata: Annotated[
        OptionalMetadata, InStates(("output-available", "output-error")), Since("result-metadata")
    ] = UNSET


class ToolUIPart(_ToolFields, frozen=True, kw_only=True):
    """A call of a tool that the application declares; `type` is `tool-<name>`."""

    type: str

    @property
    def tool_name(self) -> str:
        """The type without `tool-`."""
        return self.type[5:]


class DynamicToolUIPart(_ToolFields, frozen=True, kw_only=True, tag_field="type", tag="dynamic-tool"):
    """A call of a tool without declared types (R-S9).

    `dynamic` is false if a static tool became unavailable, otherwise UNSET.
    """

    type: ClassVar[Literal["dynamic-tool"]] = "dynamic-tool"
    validated: ClassVar[Mapping[str, int]] = MappingProxyType({"approval": 6})
    """Fields that validators check from another major version on than in `tool-<name>` parts."""
    tool_name: str
    dynamic: Annotated[OptionalFlag, CheckedAs(Literal[False]), Since("unavailable-tool")] = UNSET


class DataUIPart(UIValue, frozen=True, kw_only=True):
    """JSON of an application; `type` is `data-<name>`. Later data with the same `id` replaces the part.

    A stored part has `transient` only if a chunk explicitly set it to false.
    """

    type: str
    data: Any
    id: OptionalText = UNSET
    transient: Annotated[OptionalFlag, STRIPPED] = UNSET

    @property
    def name(self) -> str:
        """The type without `data-`."""
        return self.type[5:]


class UnknownUIPart(UIValue, frozen=True, kw_only=True):
    """A part that no known shape fits, kept by lenient parsing: `value` is its whole JSON."""

    value: Any

    @property
    def type(self) -> str:
        """The `type` of its JSON, or an empty string."""
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


class UIMessage(UIValue, frozen=True, kw_only=True, weakref=True):
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
    """The class of a part type; None if no version knows the type."""
    if kind.startswith("tool-"):
        return ToolUIPart
    if kind.startswith("data-"):
        return DataUIPart
    return PART_TYPES.get(kind)


_USUAL: dict[UIRole, tuple[str, ...]] = {"system": ("text",), "user": ("text", "file")}
"""Role -> usual part types; assistant messages may have any."""


class UnusualPart(NamedTuple):
    """A part that is unusual in a message with this role."""

    path: str
    role: UIRole
    type: str


@checked
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
