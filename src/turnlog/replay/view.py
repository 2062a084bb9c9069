"""The model's view of a history: the messages that its next request would hold, and the results of their calls.

Which messages those are is one rule for all (`turnlog.providers.context`): the active branch, with compactions
applied. Results of calls that the model no longer sees go with them, so that the view never begins with one; a call
that nothing answered gets the result that a request has for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from turnlog.model import (
    HistoryEvent,
    Membership,
    Message,
    MessageEvent,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultEvent,
)
from turnlog.providers.base import Repair, RequestOptions
from turnlog.providers.context import PlacedHistory, select_context

_UNANSWERED = RequestOptions(model="").aborted_result


class ModelView(msgspec.Struct, frozen=True, kw_only=True):
    """What of a history the model sees, and what was left out."""

    events: tuple[HistoryEvent, ...]
    """Messages in the order in which the model gets them, each call with its results after it."""
    repairs: tuple[Repair, ...] = ()


def model_view(events: Iterable[HistoryEvent]) -> ModelView:
    """Of a whole history in causal order, what the model sees at its end. `replay` shows it like any history."""
    listed = tuple(events)
    by_id = {event.message.id: event for event in listed if isinstance(event, MessageEvent)}
    places = {message_id: event.membership or _place(event) for message_id, event in by_id.items()}
    context = select_context(PlacedHistory([event.message for event in by_id.values()], list(places.values()), listed))
    seen = [_seen(message, by_id) for message in context.messages]
    results = _results_by_place(listed, seen)
    answered = {result.tool_call_id for found in results.values() for result in found}
    view: list[HistoryEvent] = []
    repairs = list(context.repairs)
    for index, event in enumerate(seen):
        added = [_unanswered(call, event) for call in _open_calls(event.message, answered)]
        repairs += [_added_result(result) for result in added]
        view += (event, *added, *results.get(index, ()))
    return ModelView(events=tuple(view), repairs=tuple(repairs))


def _open_calls(message: Message, answered: set[str]) -> list[ToolCallPart]:
    """Calls that the agent had to answer, and did not as far as the history goes."""
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    return [call for call in calls if not (call.provider_executed or call.results or call.tool_call_id in answered)]


def _unanswered(call: ToolCallPart, event: MessageEvent) -> ToolResultEvent:
    """An error, not an abort: nothing says that the user stopped the call."""
    result = ToolResult(id=f"{call.tool_call_id}:unanswered", status="error", content=(TextPart(text=_UNANSWERED),))
    return ToolResultEvent(
        position=event.position,
        created_at=event.created_at,
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        message_id=event.message.id,
        result=result,
    )


def _added_result(added: ToolResultEvent) -> Repair:
    return Repair(
        kind="unanswered-call",
        message_id=added.message_id or "",
        detail="a result was added that says so",
        tool_call_id=added.tool_call_id,
    )


def _place(event: MessageEvent) -> Membership:
    return Membership(session_id="", message_id=event.message.id, position=event.position)


def _seen(message: Message, by_id: dict[str, MessageEvent]) -> MessageEvent:
    """The event of a message as the model gets it; one that only replaces others has none of its own."""
    event = by_id.get(message.id)
    if event is None:
        return MessageEvent(created_at=message.created_at, message=message)
    return msgspec.structs.replace(event, message=message)


def _results_by_place(events: Iterable[HistoryEvent], seen: Sequence[MessageEvent]) -> dict[int, list[ToolResultEvent]]:
    """Index of a message that the model sees -> the results that arrived after it and before the next one."""
    owners = {
        (event.message.id, part.tool_call_id): index
        for index, event in enumerate(seen)
        for part in event.message.parts
        if isinstance(part, ToolCallPart)
    }
    found: dict[int, list[ToolResultEvent]] = defaultdict(list)
    for event in events:
        if not isinstance(event, ToolResultEvent) or event.duplicate or event.message_id is None:
            continue
        owner = owners.get((event.message_id, event.tool_call_id))
        if owner is None:
            continue
        index = owner
        while index + 1 < len(seen) and seen[owner].position < seen[index + 1].position < event.position:
            index += 1
        found[index].append(event)
    return found
