"""Assistant messages and tool calls while their records are read: the blocks, results and counts of one feed."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from functools import reduce
from typing import Any
from zlib import crc32

from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import MessageChange, Placement, RecordRef
from turnlog.agents.claude_code import messages_api
from turnlog.agents.claude_code.messages_api import usage_of
from turnlog.agents.claude_code.records import Record, WireMessage, WireUsage
from turnlog.agents.claude_code.state import ClaudePendingMessage, SeenBlock, message_of_node, record_of_node
from turnlog.agents.claude_code.tools import TOOL_KINDS
from turnlog.agents.decoding import in_order_of_arrival
from turnlog.anthropic_api import STOP_REASONS
from turnlog.model import (
    Approval,
    Cost,
    Fate,
    Message,
    MessageError,
    Origin,
    Part,
    StopReason,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolState,
    Usage,
)
from turnlog.model.merge import join_mappings
from turnlog.model.tools import STATE_OF_STATUS, state_after
from turnlog.model.usage import merge_usage

SYNTHETIC = "<synthetic>"
"""The model of messages that Claude Code itself wrote in the assistant's name."""

_COMPARED_CHARACTERS = 64
"""Characters at either end of a text that its checksum covers."""


class CallDraft:
    """A tool call in a message draft. Results are added as their records are read."""

    __slots__ = (
        "abandoned",
        "approval",
        "draft",
        "id",
        "input",
        "name",
        "part_id",
        "provider_executed",
        "results",
        "started_at",
    )

    def __init__(self, draft: MessageDraft, part_id: str, call_id: str, name: str) -> None:
        self.draft = draft
        self.part_id = part_id
        self.id = call_id
        self.name = name
        self.input: Raw | UnsetType = UNSET
        self.provider_executed = False
        self.started_at: datetime | None = None
        self.approval: Approval | None = None
        self.abandoned = False
        self.results: list[ToolResult] = []

    def add_result(self, result: ToolResult) -> None:
        """Add a result. One with the id of a known result is a copy and changes nothing."""
        if all(known.id != result.id for known in self.results):
            self.results.append(result)

    def part(self) -> ToolCallPart:
        """The call with the results so far."""
        results = self.results
        if not results:
            state = ToolState.ABORTED if self.abandoned else ToolState.INPUT_AVAILABLE
        elif len(results) == 1:
            state = STATE_OF_STATUS[results[0].status]
        else:
            results = in_order_of_arrival(results)
            state = state_after(ToolState.INPUT_AVAILABLE, [result.status for result in results])
        return ToolCallPart(
            id=self.part_id,
            tool_call_id=self.id,
            tool_name=self.name,
            kind=TOOL_KINDS.get(self.name, ToolKind.OTHER),
            input=self.input,
            state=state,
            approval=self.approval,
            provider_executed=self.provider_executed,
            started_at=self.started_at,
            results=tuple(results),
        )


class MessageDraft:
    """What one feed has read of an assistant message. `pending` is its place, which outlives the feed."""

    __slots__ = (
        "aborted",
        "completed_at",
        "copied_from",
        "cost",
        "created_at",
        "error",
        "fate",
        "id",
        "metadata",
        "model",
        "others",
        "parts",
        "pending",
        "raw_stop_reason",
        "record_ids",
        "records",
        "request_id",
        "requested_model",
        "session_id",
        "synthetic",
        "usages",
    )

    def __init__(self, message_id: str, session_id: str, pending_message: ClaudePendingMessage, fate: Fate) -> None:
        self.id = message_id
        self.session_id = session_id
        self.pending = pending_message
        self.fate = fate
        self.parts: dict[int, Part | CallDraft] = {}
        self.records: list[RecordRef] = []
        self.record_ids: list[str] = []
        self.created_at: datetime | None = None
        self.completed_at: datetime | None = None
        self.model: str | None = None
        self.requested_model: str | None = None
        self.request_id: str | None = None
        self.raw_stop_reason: str | None = None
        self.aborted = False
        self.synthetic = False
        self.copied_from: str | None = None
        self.usages: list[tuple[bool, WireUsage]] = []
        self.cost: Cost | None = None
        self.error: MessageError | None = None
        self.metadata: dict[str, Any] = {}
        self.others: dict[str, Any] = {}

    def add_facts(self, record: Record, message: WireMessage) -> None:
        """Add what a line says about the message as a whole: times, model, stop reason, usage, cost, error."""
        moment = record.timestamp
        if moment is not None:
            if self.created_at is None or moment < self.created_at:
                self.created_at = moment
            if self.completed_at is None or moment > self.completed_at:
                self.completed_at = moment
        if message.model == SYNTHETIC:
            self.synthetic = True
            if record.is_api_error_message:
                self.error = _error_of(record, message)
        elif message.model is not None:
            self.model = message.model
        if message.stop_reason is not None:
            self.raw_stop_reason = message.stop_reason
        if record.request_id is not None:
            self.request_id = record.request_id
        if record.requested_model is not None:
            self.requested_model = record.requested_model
        if record.is_aborted_mid_stream:
            self.aborted = True
        if record.cost_usd is not None:
            self.cost = Cost(amount=Decimal(str(record.cost_usd)), kind="reported")
        if message.usage is not None and not self.synthetic:
            usage = (message.stop_reason is not None, message.usage)
            if not self.usages or self.usages[-1] != usage:
                self.usages.append(usage)
        self._add_metadata(record)

    def _add_metadata(self, record: Record) -> None:
        if record.effort is not None:
            self.metadata["effort"] = record.effort
        if record.attribution_agent is not None:
            self.metadata["agent"] = record.attribution_agent
        if record.attribution_skill is not None:
            self.metadata["skill"] = record.attribution_skill
        if record.attribution_mcp_server is not None:
            self.metadata["mcp_server"] = record.attribution_mcp_server
        if record.others:
            self.others = join_mappings(self.others, record.others)

    def _usage(self) -> Usage | None:
        """The usage of the model call; None when no line has counts.

        Every line of a message repeats the counts. Lines with a stop reason have the final ones and overrule the
        others; among lines of the same kind the larger count wins.
        """
        final = any(final for final, _ in self.usages)
        counted = [usage_of(wire, final=final) for is_final, wire in self.usages if is_final is final]
        return reduce(merge_usage, counted, None)

    def number_of(self, kind: str, key: int | str, length: int, text: str) -> int:
        """The number of a block, in the order of first appearance.

        Early streaming versions wrote a block again with more text each time. A block that repeats or continues a
        known one has its number.
        """
        seen = self.pending.blocks
        for block in seen:
            if block.kind != kind:
                continue
            if block.key == key and block.length == length:
                return block.number
            if block.length < length and isinstance(block.key, int) and text_key(text[: block.length]) == block.key:
                block.key, block.length = key, length
                return block.number
        number = seen[-1].number + 1 if seen else 0
        seen.append(SeenBlock(number, kind, length, key))
        return number

    def add_part(self, number: int, part: Part | CallDraft) -> None:
        """Set the part of a number. Where the part is there already, the longer text stays."""
        known = self.parts.get(number)
        if known is None or len(getattr(part, "text", "")) > len(getattr(known, "text", "")):
            self.parts[number] = part

    def change(self) -> MessageChange:
        """The message as this feed knows it. The draft cannot be used afterwards."""
        # A draft and its calls refer to each other. Emptying `parts` frees them without the garbage collector.
        parts, self.parts = self.parts, {}
        numbers = list(parts)
        if numbers != sorted(numbers):
            parts = dict(sorted(parts.items()))
        metadata = self.metadata | self.others
        message = Message(
            id=self.id,
            role="assistant",
            parts=tuple([part.part() if isinstance(part, CallDraft) else part for part in parts.values()]),
            origin=Origin.HARNESS if self.synthetic else None,
            created_at=self.created_at,
            completed_at=self.completed_at,
            model=self.model,
            requested_model=self.requested_model,
            response_id=None if self.synthetic else self.id,
            request_id=self.request_id,
            stop_reason=self._stop_reason(),
            raw_stop_reason=self.raw_stop_reason,
            usage=self._usage(),
            cost=self.cost,
            error=self.error,
            metadata={"claude-code": metadata} if metadata else {},
        )
        place = self.pending
        return MessageChange(
            message=message,
            placement=Placement(
                session_id=self.session_id,
                position=place.position,
                records=tuple(self.records),
                record_ids=tuple(dict.fromkeys(self.record_ids)),
                parent_id=message_of_node(place.parent),
                parent_record=record_of_node(place.parent),
                turn=place.turn,
                step=place.step,
                fate=self.fate,
                copied=self.copied_from is not None,
            ),
        )

    def _stop_reason(self) -> StopReason | None:
        if self.error is not None:
            return "error"
        if self.synthetic:
            return None
        if self.aborted and self.raw_stop_reason is None:
            return "aborted"
        return STOP_REASONS.get(self.raw_stop_reason) if self.raw_stop_reason is not None else None


def text_key(text: str) -> int:
    """A checksum of both ends of a text. Together with the length it says whether two texts are the same block's."""
    return crc32((text[:_COMPARED_CHARACTERS] + text[-_COMPARED_CHARACTERS:]).encode(errors="replace"))


def _error_of(record: Record, message: WireMessage) -> MessageError:
    kind = record.error if isinstance(record.error, str) else None
    return MessageError(text=messages_api.text_of(message.content), kind=kind, status=record.api_error_status)
