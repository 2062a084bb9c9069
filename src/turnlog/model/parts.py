"""Parts: what a message is made of, in the order the model produced them.

Eight kinds, tagged by `type`; what is none of them is an `UnknownPart` with its exact JSON. A part's `id` is
stable: message id plus call id, block index or record id, never its rank among parsed things.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Literal, TypeAlias, cast

import msgspec
from msgspec import UNSET

from turnlog.model.base import BlobRef, ProviderData, RawJson, Value
from turnlog.model.tools import Approval, ResultStatus, ToolKind, ToolState


class _Part(Value, frozen=True, kw_only=True, tag_field="type"):
    id: str | None = None
    provider: ProviderData | None = None
    metadata: dict[str, Any] = {}


class Citation(Value, frozen=True, kw_only=True):
    """A source the model gave for a passage of its text."""

    title: str | None = None
    url: str | None = None
    document: str | None = None
    cited_text: str | None = None
    start_index: int | None = None
    end_index: int | None = None
    metadata: dict[str, Any] = {}


class TextPart(_Part, frozen=True, kw_only=True, tag="text"):
    """Text that was said. In a stored body `text` is a preview when `blob` names the whole."""

    type: ClassVar[Literal["text"]] = "text"
    text: str
    citations: tuple[Citation, ...] = ()
    state: Literal["streaming", "done"] = "done"
    blob: BlobRef | None = None

    @property
    def is_synthetic(self) -> bool:
        """Whether the agent put it into a prompt beside what was typed: `metadata` says so under the agent's name."""
        own_fields = [cast(dict[str, Any], own) for own in self.metadata.values() if isinstance(own, dict)]
        return any(own.get("synthetic") is True for own in own_fields)


class ReasoningPart(_Part, frozen=True, kw_only=True, tag="reasoning"):
    """Thinking that the model produced before or between its answers.

    `text` is empty when the provider withheld it; `redacted` says that it did so on purpose.
    """

    type: ClassVar[Literal["reasoning"]] = "reasoning"
    text: str
    redacted: bool = False
    state: Literal["streaming", "done"] = "done"
    duration_ms: int | None = None
    blob: BlobRef | None = None


class ToolResult(Value, frozen=True, kw_only=True):
    """One answer to a tool call. A call may have several (async launch and report, preliminary and final).

    `content` holds text and files in the order they came. `structured` is the agent's own JSON of the outcome
    (Claude Code's `toolUseResult`); a store leaves it in the archived record and fills it in on request.
    """

    id: str
    status: ResultStatus = "success"
    content: tuple[Part, ...] = ()
    structured: RawJson = UNSET
    error_text: str | None = None
    exit_code: int | None = None
    preliminary: bool = False
    completed_at: datetime | None = None
    duration_ms: int | None = None
    spilled_to: str | None = None
    """Name of the file in the session's own folder that holds the whole output, when `content` is a preview."""
    sequence: int | None = None
    """Where it arrived: the position of its record in the session. Filled in per session, not stored in the body."""
    metadata: dict[str, Any] = {}

    @property
    def output_text(self) -> str:
        """All text of the content, in order, joined by newlines."""
        return "\n".join([part.text for part in self.content if part.type == "text"])


class ToolCallPart(_Part, frozen=True, kw_only=True, tag="tool-call"):
    """One invocation of a tool with everything that came back.

    `input` is the exact JSON the model sent (`input_value()` decodes it); `input_text` is set instead when the
    model sent text that is not JSON (free-form tools, broken arguments).
    """

    type: ClassVar[Literal["tool-call"]] = "tool-call"
    tool_call_id: str
    tool_name: str
    kind: ToolKind = ToolKind.OTHER
    input: RawJson = UNSET
    input_text: str | None = None
    input_blob: BlobRef | None = None
    state: ToolState = ToolState.INPUT_AVAILABLE
    title: str | None = None
    approval: Approval | None = None
    provider_executed: bool = False
    parent_tool_call_id: str | None = None
    """The call this one ran inside of (code mode), where the agent nests calls."""
    started_at: datetime | None = None
    child_session_id: str | None = None
    """The subagent session this call started. Filled in from the links between sessions."""
    results: tuple[ToolResult, ...] = ()

    def input_value(self) -> Any:
        """The input as Python values, or `input_text` when it is not JSON."""
        return self.input_text if self.input is UNSET else msgspec.json.decode(self.input)

    @property
    def output_text(self) -> str:
        """The last known output: text of all final results, in order of arrival; without any, of the newest other one.

        A command that Codex left running in the background may never get a final result.
        """
        final = [result for result in self.results if not result.preliminary]
        return "\n".join([result.output_text for result in final or self.results[-1:]])


class FilePart(_Part, frozen=True, kw_only=True, tag="file"):
    """An image, document or other file: inline bytes, a URL, or a blob of the store. Exactly one is set."""

    type: ClassVar[Literal["file"]] = "file"
    media_type: str
    filename: str | None = None
    url: str | None = None
    data: bytes | None = None
    blob: BlobRef | None = None


class SourceUrlPart(_Part, frozen=True, kw_only=True, tag="source-url"):
    """A web page the model cited or found."""

    type: ClassVar[Literal["source-url"]] = "source-url"
    source_id: str
    url: str
    title: str | None = None


class SourceDocumentPart(_Part, frozen=True, kw_only=True, tag="source-document"):
    """A document the model cited."""

    type: ClassVar[Literal["source-document"]] = "source-document"
    source_id: str
    media_type: str
    title: str
    filename: str | None = None


class DataPart(_Part, frozen=True, kw_only=True, tag="data"):
    """JSON of an application, by `name`; AI SDK's `data-<name>`."""

    type: ClassVar[Literal["data"]] = "data"
    name: str
    data: msgspec.Raw


class UnknownPart(_Part, frozen=True, kw_only=True, tag="unknown"):
    """A block whose kind this version does not know: `kind` is its own word for itself, `data` its exact JSON."""

    type: ClassVar[Literal["unknown"]] = "unknown"
    kind: str
    data: msgspec.Raw


Part: TypeAlias = (
    TextPart | ReasoningPart | ToolCallPart | FilePart | SourceUrlPart | SourceDocumentPart | DataPart | UnknownPart
)
