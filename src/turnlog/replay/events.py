"""What a screen shows when a history is played again: the replay's events, in the order in which they are shown.

Derived and never stored. Each says where it belongs; turn and step are the session's own numbers, so that a page of a
replay has the numbers that the whole has (R-K12 to R-K20).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

from msgspec import UNSET

from turnlog.model import Cost, Fate, FilePart, ResultStatus, StopReason, ToolKind, Usage
from turnlog.model.base import RawJson, Value


class _Shown(Value, frozen=True, kw_only=True, tag_field="type"):
    position: int = 0
    """Of the record that it was derived from, as in the history."""
    created_at: datetime | None = None
    message_id: str | None = None
    turn: int | None = None
    step: int | None = None
    fate: Fate = Fate.ACTIVE
    """What became of the message."""


class UserShown(_Shown, frozen=True, kw_only=True, tag="user"):
    """What the user said: texts joined by newlines (R-K12)."""

    text: str = ""
    images: tuple[FilePart, ...] = ()
    files: tuple[FilePart, ...] = ()
    """What was attached and is no image."""


class DeveloperShown(_Shown, frozen=True, kw_only=True, tag="developer"):
    """What the agent's harness put in (R-K12)."""

    text: str = ""
    origin: str | None = None
    images: tuple[FilePart, ...] = ()
    files: tuple[FilePart, ...] = ()


class TurnStarted(_Shown, frozen=True, kw_only=True, tag="turn-start"):
    """The model begins to answer (R-K18)."""


class ImageShown(_Shown, frozen=True, kw_only=True, tag="image"):
    """An image that the model made (R-K14)."""

    image: FilePart


class AnswerShown(_Shown, frozen=True, kw_only=True, tag="assistant"):
    """What the model said: its text parts joined as they are; empty where it only called tools (R-K13)."""

    text: str = ""
    reasoning: str = ""
    """What it thought before, texts joined by newlines."""
    model: str | None = None
    files: tuple[FilePart, ...] = ()


class ToolCallShown(_Shown, frozen=True, kw_only=True, tag="tool-call"):
    """A call, with the arguments exactly as the model wrote them (R-K15)."""

    tool_call_id: str
    tool_name: str
    arguments: str
    kind: ToolKind = ToolKind.OTHER
    title: str | None = None
    child_session_id: str | None = None


class ToolResultShown(_Shown, frozen=True, kw_only=True, tag="tool-result"):
    """A result where it arrived: `status` as two-valued as a screen needs it, `outcome` as it is (R-K16)."""

    tool_call_id: str
    result: str
    """All text of the result, joined."""
    status: Literal["success", "error"]
    outcome: ResultStatus
    tool_name: str | None = None
    images: tuple[FilePart, ...] = ()
    error_text: str | None = None
    exit_code: int | None = None
    preliminary: bool = False
    duplicate: bool = False
    structured: RawJson = UNSET
    """The agent's own JSON of the outcome (klaude-code's `ui_extra`), where the history holds it."""
    metadata: dict[str, Any] = {}


class InterruptShown(_Shown, frozen=True, kw_only=True, tag="interrupt"):
    """The user stopped the agent (R-K17)."""

    derived: bool = False
    """No record says so: the answer or the result was aborted."""


class ErrorShown(_Shown, frozen=True, kw_only=True, tag="error"):
    """Something failed outside any tool (R-K19)."""

    error_text: str
    kind: str | None = None
    status: int | None = None


class RunMetadataShown(_Shown, frozen=True, kw_only=True, tag="run-metadata"):
    """A fact about the run (R-K19)."""

    kind: str
    data: RawJson = UNSET


class ResponseMetadata(_Shown, frozen=True, kw_only=True, tag="response-metadata"):
    """What a model call took and why it ended (R-K20)."""

    stop_reason: StopReason | None = None
    raw_stop_reason: str | None = None
    usage: Usage | None = None
    cost: Cost | None = None
    model: str | None = None
    response_id: str | None = None


class CompactionShown(_Shown, frozen=True, kw_only=True, tag="compaction"):
    """The model's context was replaced by a summary."""

    trigger: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None


class RewindShown(_Shown, frozen=True, kw_only=True, tag="rewind"):
    """The user went back; `message_id` is the last message that stayed (None: back to the start)."""


ReplayEvent: TypeAlias = (
    UserShown
    | DeveloperShown
    | TurnStarted
    | ImageShown
    | AnswerShown
    | ToolCallShown
    | ToolResultShown
    | InterruptShown
    | ErrorShown
    | RunMetadataShown
    | ResponseMetadata
    | CompactionShown
    | RewindShown
)
