"""The causal order of a session: messages, results and events, each where its record arrived.

Pure: works on messages whose results know their place (`ToolResult.sequence`), wherever they were read from.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from turnlog.model import (
    HistoryEvent,
    Membership,
    Message,
    MessageEvent,
    Provenance,
    ToolCallPart,
    ToolResult,
    ToolResultEvent,
    ToolState,
)
from turnlog.model.parts import state_after

SHARED_SPAN = 1 << 40
"""What separates the positions that a fork shares with its parent from its own.

A position is an offset in the session's log. A message that a fork shares and has no copy of has its position in the
parent less this, which is more than any log is long, so that it comes before the fork's own. What the parent itself
shares so has this taken off once more.
"""

_RESULT, _MESSAGE, _OTHER = range(3)
"""Order within one record: results come before the text of the same line, and an interruption after its result."""


def order_history(placed: Iterable[tuple[Message, Membership]], events: Iterable[HistoryEvent]) -> list[HistoryEvent]:
    """Everything that happened, in the order of the records.

    A result whose record is known becomes a separate event; one that came with its call (a tool that the
    provider runs) or was brought by another session stays in its message. A result that says what an earlier one
    of the same call said is marked as a duplicate.
    """
    ordered: list[tuple[int, int, int, HistoryEvent]] = []
    for message, membership in placed:
        arrived = _arrivals(message, membership)
        event = MessageEvent(
            position=membership.position,
            created_at=message.created_at,
            records=membership.records,
            message=_before_results(message) if arrived else message,
            membership=membership,
        )
        ordered.append((membership.position, _MESSAGE, len(ordered), event))
        for result in arrived:
            # A log that writes call and result in one record still has the call first.
            rank = _OTHER if result.position == membership.position else _RESULT
            # `len(ordered)` keeps the order of equal entries and stops the comparison before the events.
            ordered.append((result.position, rank, len(ordered), result))
    for event in events:
        ordered.append((event.position, _OTHER, len(ordered), event))
    return [event for *_, event in sorted(ordered, key=lambda entry: entry[:3])]


def record_position(position: int, offset: int, first: int) -> int:
    """The position of a record, in a session that has the record's message at `position`.

    Positions are offsets, in a fork those of its parent less some spans. Gemini CLI's are beyond every offset: they
    hold the minute in which the file was begun. There the distance of the record from the message is that in the file.

    Args:
        position: Of the message.
        offset: Of the record.
        first: Offset of the first of the message's records.
    """
    if position >= SHARED_SPAN:
        return position - first + offset
    return offset if position >= 0 else offset + position // SHARED_SPAN * SHARED_SPAN


def result_positions(position: int, records: Iterable[tuple[int, int, int | str | None]]) -> dict[str, int]:
    """Result id -> position of the record that contains it, for the message at `position`.

    Args:
        position: The position of the message.
        records: As in `agents.changes.RecordRef`: offset, length and what it contributed. If the length is 0, the
            offset is a position.
    """
    known = list(records)
    first = min((offset for offset, length, _ in known if length), default=0)
    return {
        what: record_position(position, offset, first) if length or position < 0 else offset
        for offset, length, what in known
        if isinstance(what, str)
    }


def place_results(message: Message, places: dict[str, int], children: dict[str, str]) -> Message:
    """The message with what one session adds to its calls: where results arrived, and the subagents they started.

    Args:
        message: As its own records say it.
        places: Result id -> position of its record.
        children: Tool call id -> id of the session that the call started.
    """
    if not any(isinstance(part, ToolCallPart) for part in message.parts):
        return message
    parts = tuple(
        _place_call(part, places, children) if isinstance(part, ToolCallPart) else part for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)


def _place_call(part: ToolCallPart, places: dict[str, int], children: dict[str, str]) -> ToolCallPart:
    return msgspec.structs.replace(
        part,
        child_session_id=children.get(part.tool_call_id),
        results=tuple(msgspec.structs.replace(result, sequence=places.get(result.id)) for result in part.results),
    )


def _arrivals(message: Message, membership: Membership) -> list[ToolResultEvent]:
    known = [(record.offset, record) for record in membership.records if record.offset is not None]
    first = min((offset for offset, _ in known), default=0)
    records = {record_position(membership.position, offset, first): record for offset, record in known}
    return [
        event
        for part in message.parts
        if isinstance(part, ToolCallPart)
        for event in _result_events(part, message.id, records)
    ]


def _result_events(part: ToolCallPart, message_id: str, records: dict[int, Provenance]) -> list[ToolResultEvent]:
    events: list[ToolResultEvent] = []
    seen: list[tuple[object, ...]] = []
    for result in sorted(part.results, key=lambda result: result.sequence or 0):
        # Its record is unknown, so it came with the call or from another session.
        if result.sequence is None:
            continue
        content = (result.status, result.content, result.error_text, result.preliminary)
        record = records.get(result.sequence)
        events.append(
            ToolResultEvent(
                position=result.sequence,
                created_at=result.completed_at,
                records=() if record is None else (record,),
                tool_call_id=part.tool_call_id,
                tool_name=part.tool_name,
                result=result,
                message_id=message_id,
                duplicate=content in seen,
            )
        )
        seen.append(content)
    return events


def _before_results(message: Message) -> Message:
    """The message before any result of its calls had arrived."""
    parts = tuple(_before_arrivals(part) if isinstance(part, ToolCallPart) else part for part in message.parts)
    return msgspec.structs.replace(message, parts=parts)


def _before_arrivals(part: ToolCallPart) -> ToolCallPart:
    kept: tuple[ToolResult, ...] = tuple(result for result in part.results if result.sequence is None)
    if len(kept) == len(part.results):
        return part
    state = state_after(ToolState.INPUT_AVAILABLE, [result.status for result in kept])
    return msgspec.structs.replace(part, results=kept, state=state)
