"""Assistant messages and tool calls while their records are read: what one feed has of them."""

from __future__ import annotations

from datetime import datetime
from operator import itemgetter
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import MessageChange, Placement, RecordRef
from turnlog.agents.codex.sources import NAME
from turnlog.agents.codex.state import CodexPendingMessage
from turnlog.agents.decoding import in_order_of_arrival
from turnlog.model import (
    Message,
    Origin,
    Part,
    ProviderData,
    StopReason,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolState,
    Usage,
)
from turnlog.model.tools import STATE_OF_STATUS, state_after


class CallDraft(msgspec.Struct, eq=False):
    """A tool call in a message draft. Results are added as their records are read."""

    draft: MessageDraft
    number: int
    id: str
    name: str
    kind: ToolKind
    input: Raw | UnsetType = UNSET
    input_text: str | None = None
    provider: ProviderData | None = None
    provider_executed: bool = False
    parent: str | None = None
    started_at: datetime | None = None
    state: ToolState = ToolState.INPUT_AVAILABLE
    metadata: dict[str, Any] = {}
    results: list[ToolResult] = []

    def add_result(self, result: ToolResult) -> None:
        """Add a result. One with the id of a known result changes nothing."""
        if not self.results or all(known.id != result.id for known in self.results):
            self.results.append(result)

    def part(self) -> ToolCallPart:
        """The call with the results so far."""
        results, state = self.results, self.state
        if len(results) == 1:
            state = STATE_OF_STATUS[results[0].status]
        elif results:
            results = in_order_of_arrival(results)
            state = state_after(ToolState.INPUT_AVAILABLE, [result.status for result in results])
        return ToolCallPart(
            id=f"{self.draft.id}.{self.number}",
            provider=self.provider,
            metadata={NAME: self.metadata} if self.metadata else {},
            tool_call_id=self.id,
            tool_name=self.name,
            kind=self.kind,
            input=self.input,
            input_text=self.input_text,
            state=state,
            provider_executed=self.provider_executed,
            parent_tool_call_id=self.parent,
            started_at=self.started_at,
            results=tuple(results),
        )


class MessageDraft(msgspec.Struct, eq=False):
    """What one feed has read of an assistant message. `pending` is its place, which outlives the feed."""

    id: str
    session_id: str
    pending: CodexPendingMessage
    record_ids: tuple[str, ...]
    parts: dict[int, Part | CallDraft] = {}
    records: list[RecordRef] = []
    in_order: bool = True
    """Whether the records are in file order."""
    created_at: datetime | None = None
    completed_at: datetime | None = None
    model: str | None = None
    provider: str | None = None
    origin: Origin | None = None
    response_id: str | None = None
    stop_reason: StopReason | None = None
    usage: Usage | None = None
    metadata: dict[str, Any] = {}

    def add_time(self, moment: datetime | None) -> None:
        """Widen the message's times by that of a record."""
        if moment is None:
            return
        if self.created_at is None or self.completed_at is None:
            self.created_at = self.completed_at = moment
        elif moment > self.completed_at:
            self.completed_at = moment
        elif moment < self.created_at:
            self.created_at = moment

    def change(self) -> MessageChange:
        """The message as this feed knows it. The draft cannot be used afterwards."""
        place = self.pending
        # A draft and its calls refer to each other. Emptying `parts` frees them without the garbage collector.
        parts, self.parts = self.parts, {}
        numbers = list(parts)
        if numbers != sorted(numbers):
            parts = dict(sorted(parts.items()))
        message = Message(
            id=self.id,
            role="assistant",
            parts=tuple([part.part() if isinstance(part, CallDraft) else part for part in parts.values()]),
            origin=self.origin,
            created_at=self.created_at,
            # The records of a copy have the time of the copying. Only the original has the time of the end.
            completed_at=None if place.copied else self.completed_at,
            model=self.model,
            response_id=self.response_id,
            stop_reason=self.stop_reason,
            usage=self.usage,
            provider=None if self.provider is None else ProviderData(name=self.provider),
            metadata={NAME: self.metadata} if self.metadata else {},
        )
        if not self.in_order:
            self.records.sort(key=itemgetter(0))
        return MessageChange(
            message=message,
            placement=Placement(
                session_id=self.session_id,
                position=place.position,
                records=tuple(self.records),
                record_ids=self.record_ids,
                parent_id=place.parent,
                turn=place.turn,
                step=place.step,
                copied=place.copied,
            ),
        )
