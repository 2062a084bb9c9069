"""Parts: what a message is made of, in the order the model produced them.

Eight kinds, tagged by `type`; what is none of them is an `UnknownPart` with its exact JSON. A part's `id` is
stable: message id plus call id, block index or record id, never its rank among parsed things.

Tool calls have a kind, a state and results. `advance()` is the only judge of a state change. Aborted is not failed is
not denied, here and everywhere. The states up to `output-denied` are AI SDK's (R-S10); `aborted` is ours (R-K9) and has
no counterpart in AI SDK.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar, Literal, TypeAlias, cast

import msgspec
from msgspec import UNSET

from turnlog.model.base import BlobRef, ProviderData, RawJson, Value, require_json
from turnlog.model.lenient_json import parse_json

_SUMMARY_FIELDS = (
    *("command", "cmd", "file_path", "filePath", "path", "absolute_path", "notebook_path", "dir_path"),
    *("pattern", "query", "url", "description", "question", "prompt", "skill"),
)
"""The most descriptive first."""

_SHELL_OPTION = re.compile(r"-[a-z]*c|-Command")
"""Before a command that a shell is to run."""


class ToolKind(StrEnum):
    """What a tool does, whatever its agent calls it (the kinds of the Agent Client Protocol)."""

    READ = "read"
    EDIT = "edit"
    DELETE = "delete"
    MOVE = "move"
    SEARCH = "search"
    EXECUTE = "execute"
    THINK = "think"
    FETCH = "fetch"
    SUBAGENT = "subagent"
    ASK = "ask"
    SWITCH_MODE = "switch_mode"
    OTHER = "other"


class ToolState(StrEnum):
    """The state of a call. The last four are final, though a later result may still replace a final state."""

    INPUT_STREAMING = "input-streaming"
    INPUT_AVAILABLE = "input-available"
    APPROVAL_REQUESTED = "approval-requested"
    APPROVAL_RESPONDED = "approval-responded"
    OUTPUT_AVAILABLE = "output-available"
    OUTPUT_ERROR = "output-error"
    OUTPUT_DENIED = "output-denied"
    ABORTED = "aborted"


_OUTCOMES = frozenset({ToolState.OUTPUT_AVAILABLE, ToolState.OUTPUT_ERROR, ToolState.OUTPUT_DENIED, ToolState.ABORTED})

OPEN_STATES = frozenset(ToolState) - _OUTCOMES
"""What has neither an output nor an end."""

TRANSITIONS: dict[ToolState, frozenset[ToolState]] = {
    ToolState.INPUT_STREAMING: frozenset({ToolState.INPUT_AVAILABLE}) | _OUTCOMES,
    ToolState.INPUT_AVAILABLE: frozenset({ToolState.APPROVAL_REQUESTED}) | _OUTCOMES,
    ToolState.APPROVAL_REQUESTED: frozenset({ToolState.APPROVAL_RESPONDED}) | _OUTCOMES,
    ToolState.APPROVAL_RESPONDED: _OUTCOMES,
    # An async call answers twice ("launched", then its report), and a preliminary output precedes the final one.
    ToolState.OUTPUT_AVAILABLE: _OUTCOMES,
    ToolState.OUTPUT_ERROR: _OUTCOMES,
    ToolState.OUTPUT_DENIED: frozenset(),
    # A killed agent may come back: the next run appends a late result for the unfinished call.
    ToolState.ABORTED: _OUTCOMES,
}
"""From each state, the states that may follow. Staying in a state is always allowed."""


def can_advance(current: ToolState, following: ToolState) -> bool:
    """Whether `following` may come after `current`."""
    return following == current or following in TRANSITIONS[current]


def advance(current: ToolState, following: ToolState) -> ToolState:
    """Return `following`. Raises ValueError if the table does not allow it after `current`."""
    if not can_advance(current, following):
        raise ValueError(f"a tool call cannot go from {current} to {following}")
    return following


ResultStatus = Literal["success", "error", "aborted", "denied"]

STATE_OF_STATUS: dict[ResultStatus, ToolState] = {
    "success": ToolState.OUTPUT_AVAILABLE,
    "error": ToolState.OUTPUT_ERROR,
    "aborted": ToolState.ABORTED,
    "denied": ToolState.OUTPUT_DENIED,
}


def state_after(current: ToolState, statuses: Iterable[ResultStatus]) -> ToolState:
    """The state of a call after results of these statuses: that of the last one that the table allows."""
    for status in statuses:
        following = STATE_OF_STATUS[status]
        if can_advance(current, following):
            current = following
    return current


class Approval(Value, frozen=True, kw_only=True):
    """Who allowed or refused a call, and why, as far as the log says."""

    id: str | None = None
    approved: bool | None = None
    """None while the question is open."""
    source: str | None = None
    """What decided: `config`, `user`, `hook`, … in the agent's own word."""
    reason: str | None = None
    metadata: dict[str, Any] = {}


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
        """Whether the agent added it to a typed prompt: `metadata` says so under the agent's name."""
        return any(own.get("synthetic") is True for own in self._own_fields())

    @property
    def is_attached(self) -> bool:
        """Whether it is the content of what the user attached to a prompt: `metadata` names that as `attached`."""
        return any("attached" in own for own in self._own_fields())

    def _own_fields(self) -> list[dict[str, Any]]:
        """What each agent has in `metadata` under its name."""
        return [cast(dict[str, Any], own) for own in self.metadata.values() if isinstance(own, dict)]


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

    def __post_init__(self) -> None:
        """Raise TypeError for plain values in place of JSON."""
        require_json("input", self.input)

    def input_value(self) -> Any:
        """The input as Python values, or `input_text` if it is not JSON.

        A number that no float holds is a string, as in `turnlog.model.lenient_json.parse_json`.
        """
        if self.input is UNSET:
            return self.input_text
        try:
            return msgspec.json.decode(self.input)
        except (msgspec.DecodeError, UnicodeDecodeError):
            # The JSON is sound, but msgspec reads no number like 1e400 and no half of a surrogate pair.
            return parse_json(bytes(self.input))

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

    def __post_init__(self) -> None:
        """Raise TypeError for plain values in place of JSON."""
        require_json("data", self.data)


class UnknownPart(_Part, frozen=True, kw_only=True, tag="unknown"):
    """A block whose kind this version does not know: `kind` is its own word for itself, `data` its exact JSON."""

    type: ClassVar[Literal["unknown"]] = "unknown"
    kind: str
    data: msgspec.Raw

    def __post_init__(self) -> None:
        """Raise TypeError for plain values in place of JSON."""
        require_json("data", self.data)


Part: TypeAlias = (
    TextPart | ReasoningPart | ToolCallPart | FilePart | SourceUrlPart | SourceDocumentPart | DataPart | UnknownPart
)


def call_summary(call: ToolCallPart) -> str | None:
    """The text of the most descriptive field of a call's input, unchanged; None if it has none."""
    return None if call.input is UNSET else input_summary(call.input)


def input_summary(json: bytes | str) -> str | None:
    """As `call_summary`, of the JSON of an input; None where it is no JSON object."""
    try:
        fields = _summary_decoder().decode(json)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    for name in _SUMMARY_FIELDS:
        value = getattr(fields, name)
        text = _command(cast("list[Any]", value)) if isinstance(value, list) else value
        if isinstance(text, str) and text.strip():
            return text
    return None


@cache
def _summary_decoder() -> msgspec.json.Decoder[msgspec.Struct]:
    """Reads these fields of an input, and passes over all others: they may be whole files."""
    return msgspec.json.Decoder(msgspec.defstruct("Fields", [(name, Any, None) for name in _SUMMARY_FIELDS]))


def _command(words: list[Any]) -> str:
    """A command that is a list of words; of one that a shell is to run (`bash -lc`), what it runs."""
    line = [word for word in words if isinstance(word, str)]
    return line[2] if len(line) == 3 and _SHELL_OPTION.fullmatch(line[1]) else " ".join(line)
