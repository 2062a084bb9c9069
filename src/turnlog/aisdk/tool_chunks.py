"""The chunks of a stream that tell of tool calls: their input, who is asked for leave, their output.

Shapes only, like all of `turnlog.aisdk.chunks`; which order of them a call may take is the writer's knowledge.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from msgspec import UNSET, UnsetType

from turnlog.aisdk.base import Chunk, OptionalFlag, OptionalMetadata, OptionalText


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
