"""The model's view of a history: the messages that its next request would hold, and the results of their calls.

Which messages those are is one rule for all (`turnlog.providers.context`): the active branch, with compactions
applied. Results of calls that the model no longer sees go with them, so that the view never begins with one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from turnlog.model import HistoryEvent, Membership, Message, MessageEvent, ToolResultEvent
from turnlog.providers.base import Repair
from turnlog.providers.context import select_context


class ModelView(msgspec.Struct, frozen=True, kw_only=True):
    """What of a history the model sees, and what was left out."""

    events: tuple[HistoryEvent, ...]
    """Messages in the order in which the model gets them, each result after its call."""
    repairs: tuple[Repair, ...] = ()


class _Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A history in the shape that `select_context` takes."""

    messages: tuple[Message, ...]
    memberships: tuple[Membership, ...]
    events: tuple[HistoryEvent, ...]


def model_view(events: Iterable[HistoryEvent]) -> ModelView:
    """Of a whole history in causal order, what the model sees at its end. `replay` shows it like any history."""
    listed = tuple(events)
    by_id = {event.message.id: event for event in listed if isinstance(event, MessageEvent)}
    places = {message_id: event.membership or _place(event) for message_id, event in by_id.items()}
    context = select_context(
        _Listed(
            messages=tuple(event.message for event in by_id.values()),
            memberships=tuple(places.values()),
            events=listed,
        )
    )
    seen = [_seen(message, by_id) for message in context.messages]
    results = _results_by_place(listed, seen)
    view = [shown for index, event in enumerate(seen) for shown in (event, *results.get(index, ()))]
    return ModelView(events=tuple(view), repairs=context.repairs)


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
    owners = {event.message.id: index for index, event in enumerate(seen)}
    found: dict[int, list[ToolResultEvent]] = defaultdict(list)
    for event in events:
        if not isinstance(event, ToolResultEvent) or event.duplicate or event.message_id not in owners:
            continue
        owner = index = owners[event.message_id]
        while index + 1 < len(seen) and seen[owner].position < seen[index + 1].position < event.position:
            index += 1
        found[index].append(event)
    return found
