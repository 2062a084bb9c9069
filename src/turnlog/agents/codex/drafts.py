"""Messages and calls in the making: what one feed brings of them."""

from __future__ import annotations

from datetime import datetime
from operator import itemgetter
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.base import MessageChange, Placement, RecordRef
from turnlog.agents.codex.sources import NAME
from turnlog.agents.codex.state import OpenMessage
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


class CallDraft:
    """A call whose results may still come in this feed."""

    __slots__ = (
        "draft",
        "id",
        "input",
        "input_text",
        "kind",
        "metadata",
        "name",
        "number",
        "parent",
        "provider",
        "provider_executed",
        "results",
        "started_at",
        "state",
    )

    def __init__(self, draft: MessageDraft, number: int, call_id: str, name: str, kind: ToolKind) -> None:
        self.draft = draft
        self.number = number
        self.id = call_id
        self.name = name
        self.kind = kind
        self.input: Raw | UnsetType = UNSET
        self.input_text: str | None = None
        self.provider: ProviderData | None = None
        self.provider_executed = False
        self.parent: str | None = None
        self.started_at: datetime | None = None
        self.state = ToolState.INPUT_AVAILABLE
        self.metadata: dict[str, Any] = {}
        self.results: list[ToolResult] = []

    def add_result(self, result: ToolResult) -> None:
        """One more answer; the same one again changes nothing."""
        if not self.results or all(known.id != result.id for known in self.results):
            self.results.append(result)

    def part(self) -> ToolCallPart:
        """The call with all that came back so far."""
        results, state = self.results, self.state
        if len(results) == 1:
            state = STATE_OF_STATUS[results[0].status]
        elif results:
            results.sort(key=_arrival)
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


def _arrival(result: ToolResult) -> tuple[bool, float, str]:
    moment = result.completed_at
    return (moment is None, moment.timestamp() if moment else 0.0, result.id)


class MessageDraft:
    """What one feed has of an assistant message: a response of the model."""

    __slots__ = (
        "completed_at",
        "created_at",
        "id",
        "in_order",
        "metadata",
        "model",
        "open",
        "origin",
        "parts",
        "provider",
        "record_ids",
        "records",
        "response_id",
        "session_id",
        "stop_reason",
        "usage",
    )

    def __init__(self, message_id: str, session_id: str, open_message: OpenMessage) -> None:
        self.id = message_id
        self.session_id = session_id
        self.open = open_message
        self.parts: dict[int, Part | CallDraft] = {}
        self.records: list[RecordRef] = []
        self.record_ids: tuple[str, ...] = (message_id,)
        self.in_order = True
        """Whether the records are in file order."""
        self.created_at: datetime | None = None
        self.completed_at: datetime | None = None
        self.model: str | None = None
        self.provider: str | None = None
        self.origin: Origin | None = None
        self.response_id: str | None = None
        self.stop_reason: StopReason | None = None
        self.usage: Usage | None = None
        self.metadata: dict[str, Any] = {}

    def at(self, moment: datetime | None) -> None:
        """A record of the message was written at this moment."""
        if moment is None:
            return
        if self.created_at is None or self.completed_at is None:
            self.created_at = self.completed_at = moment
        elif moment > self.completed_at:
            self.completed_at = moment
        elif moment < self.created_at:
            self.created_at = moment

    def change(self) -> MessageChange:
        """The message as this feed knows it. Ends the draft."""
        # A draft and its calls name each other: letting go here frees them without a garbage collection.
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
            completed_at=self.completed_at,
            model=self.model,
            response_id=self.response_id,
            stop_reason=self.stop_reason,
            usage=self.usage,
            provider=None if self.provider is None else ProviderData(name=self.provider),
            metadata={NAME: self.metadata} if self.metadata else {},
        )
        if not self.in_order:
            self.records.sort(key=itemgetter(0))
        place = self.open
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
