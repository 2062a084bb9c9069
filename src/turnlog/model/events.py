"""The causal history of a session: messages, and everything that happened between them.

`HistoryEvent`s are stored or derived facts in the order their records arrived. Deltas of a running answer are
`StreamEvent`s (turnlog.model.stream) and are never part of a history (R-K7, R-K8).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

from msgspec import UNSET

from turnlog.model.base import RawJson, Value
from turnlog.model.message import Membership, Message, Provenance
from turnlog.model.parts import Approval, Part, ToolResult


class _Event(Value, frozen=True, kw_only=True, tag_field="type"):
    position: int = 0
    """Order within the session, comparable with `Membership.position`."""
    created_at: datetime | None = None
    records: tuple[Provenance, ...] = ()


class MessageEvent(_Event, frozen=True, kw_only=True, tag="message"):
    """A message, without the results that its calls got later (those are separate events)."""

    message: Message
    membership: Membership | None = None


class ToolResultEvent(_Event, frozen=True, kw_only=True, tag="tool-result"):
    """A result arrived. `message_id` is None for an orphan: no call of that id is known."""

    tool_call_id: str
    result: ToolResult
    tool_name: str | None = None
    message_id: str | None = None
    approval: Approval | None = None
    """Who let the call run or refused it, where only the result's record says so and the call is not known."""
    duplicate: bool = False

    @property
    def output_text(self) -> str:
        """All text of the result, joined."""
        return self.result.output_text

    @property
    def parts(self) -> tuple[Part, ...]:
        """What the result holds besides text (R-K3)."""
        return tuple(part for part in self.result.content if part.type != "text")


class CompactionEvent(_Event, frozen=True, kw_only=True, tag="compaction"):
    """The model's context was replaced by a summary. The messages before it stay, with fate `compacted`."""

    id: str
    trigger: str | None = None
    summary_message_id: str | None = None
    kept_message_ids: tuple[str, ...] = ()
    replacement: tuple[Message, ...] = ()
    """The replacement history, where the agent logged one instead of a summary."""
    tokens_before: int | None = None
    tokens_after: int | None = None
    metadata: dict[str, Any] = {}


class RewindEvent(_Event, frozen=True, kw_only=True, tag="rewind"):
    """The user went back: what followed `to_message_id` left the active branch (None: back to the start)."""

    id: str
    to_message_id: str | None = None
    metadata: dict[str, Any] = {}


class InterruptEvent(_Event, frozen=True, kw_only=True, tag="interrupt"):
    """The user stopped the agent, while it was talking or while a tool ran."""

    id: str
    during: Literal["answer", "tool"] | None = None
    message_id: str | None = None
    derived: bool = False


class ErrorEvent(_Event, frozen=True, kw_only=True, tag="error"):
    """Something failed outside any tool call: a provider, the agent, a hook."""

    id: str
    error_text: str
    kind: str | None = None
    status: int | None = None
    will_retry: bool = False
    """The log says that the agent tries the request again by itself."""
    metadata: dict[str, Any] = {}


class RunMetadataEvent(_Event, frozen=True, kw_only=True, tag="run-metadata"):
    """Facts about the run that belong to no message: totals, durations, modes, titles, settings."""

    id: str
    kind: str
    data: RawJson = UNSET


class RecordEvent(_Event, frozen=True, kw_only=True, tag="record"):
    """Any other record of the log, by its own kind. `known` is False when this version does not know the kind."""

    id: str
    kind: str
    known: bool = True
    data: RawJson = UNSET
    """The record's JSON; absent in listings, where it stays in the archive."""


HistoryEvent: TypeAlias = (
    MessageEvent
    | ToolResultEvent
    | CompactionEvent
    | RewindEvent
    | InterruptEvent
    | ErrorEvent
    | RunMetadataEvent
    | RecordEvent
)
