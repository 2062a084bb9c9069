"""Whether two messages of one id are one response of a model, and another name for a message that is another one.

Most agents call an answer by the id that the provider gave to the response. Proxies may give one id to all responses.
A session that was copied has the same records, or the same texts. These are pure functions, which the store's writers
and `turnlog.logs` share.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

import msgspec

from turnlog.agents.changes import Changes, EventChange, Link, MessageChange, Placement, ResultChange
from turnlog.model import HistoryEvent, Message, ReasoningPart, TextPart, ToolCallPart

Names = Mapping[tuple[str, str], str]
"""Session id and message id -> what the message is called instead."""


def shared_id(message: Message) -> str:
    """The id that other responses may have, too, without what tells this one from them."""
    return message.id.partition("~")[0]


def is_named_by_provider(message: Message) -> bool:
    """Whether a message has the id that a provider gave to the response, or a name made of it."""
    response = message.response_id
    return message.role == "assistant" and bool(response) and shared_id(message).endswith(response or "")


def response_name(message: Message, placement: Placement) -> str:
    """The name of a message whose id another response has: the same in every copy that has its first record."""
    records = (record for record in placement.record_ids if record != message.id)
    record = next(records, f"{placement.session_id}@{placement.position}")
    return f"{shared_id(message)}~{record}"


def is_same_response(known: Message, known_records: Collection[str], other: Message, records: Collection[str]) -> bool:
    """Whether two readings of one id, of different sessions or places, are one response.

    A common record shows the same, another request id another one. Else it is the same if it begins with the same
    words at the same time. Only the beginning counts, because the rest may not be read yet.
    """
    # Some agents name records by the message.
    known_records, records = {*known_records} - {known.id, other.id}, {*records} - {known.id, other.id}
    if not known_records.isdisjoint(records):
        return True
    if known.request_id is not None and other.request_id is not None and known.request_id != other.request_id:
        return False
    if not _begin_alike(known, other):
        return False
    # A printed stream may have no ids of records.
    if not known_records or not records:
        return bool(known.parts or other.parts) or known.created_at == other.created_at
    is_of_one_time = known.created_at is not None and known.created_at == other.created_at
    return is_of_one_time or _is_copied_later(known, other)


def _is_copied_later(known: Message, other: Message) -> bool:
    """Whether one is a copy with another time: up to 2.0.21, Claude Code wrote the time of the resume.

    Such copies lack the request id, and most of them a stop reason; up to 0.2 there was no such id, but each response
    had its cost, which a copy may have otherwise.
    """
    one, two = known.usage, other.usage
    if one is None or two is None or (one.input, one.cache_read) != (two.input, two.cache_read):
        return False
    if known.request_id is None and other.request_id is None:
        is_cut = one.exactness == two.exactness == "lower_bound"
        return is_cut or known.cost is not None or other.cost is not None
    return known.request_id is None or other.request_id is None


def is_same_in_session(known: Message, other: Message) -> bool:
    """Whether two readings of one id, of two files of one session, are one response: unless another was counted."""
    if known.request_id is not None and other.request_id is not None:
        return known.request_id == other.request_id
    one, two = (each.usage.input if each.usage is not None else None for each in (known, other))
    return not one or not two or one == two


def _begin_alike(known: Message, other: Message) -> bool:
    """Whether both begin with the same words, or with the same call. A text may have grown."""
    one, two = _contents(known), _contents(other)
    if not one or not two:
        return not one and not two
    return _agree(one[0], two[0])


def _contents(message: Message) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            found.append(("call", part.tool_call_id))
        elif isinstance(part, TextPart | ReasoningPart) and part.text:
            found.append((part.type, part.text))
    return found


def _agree(one: tuple[str, str], two: tuple[str, str]) -> bool:
    if one[0] != two[0] or one[0] == "call":
        return one == two
    return one[1].startswith(two[1]) or two[1].startswith(one[1])


# -- names


def named(message: Message, name: str) -> Message:
    """A message under another name; its parts are called by it, too."""
    prefix = f"{message.id}."
    parts = tuple(
        msgspec.structs.replace(part, id=f"{name}.{part.id.removeprefix(prefix)}")
        if part.id is not None and part.id.startswith(prefix)
        else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, id=name, parts=parts)


def with_names(change: MessageChange, names: Names) -> MessageChange:
    """A reading of a message under its name, after a parent under its name."""
    session_id, message = change.placement.session_id, change.message
    name = names.get((session_id, message.id))
    return MessageChange(
        message=message if name is None else named(message, name),
        placement=placement_with_names(change.placement, names),
    )


def placement_with_names(placement: Placement, names: Names) -> Placement:
    """A place after a parent under its name."""
    parent = names.get((placement.session_id, placement.parent_id or ""))
    cause = names.get((placement.session_id, placement.fate_cause or ""))
    if parent is None and cause is None:
        return placement
    return msgspec.structs.replace(
        placement, parent_id=parent or placement.parent_id, fate_cause=cause or placement.fate_cause
    )


def changes_with_names(changes: Changes, names: Names) -> Changes:
    """Changes that name messages, besides the messages themselves, under these names."""
    return msgspec.structs.replace(
        changes,
        results=[_result(change, names) for change in changes.results],
        events=[event_change_with_names(change, names) for change in changes.events],
        links=[_link(link, names) for link in changes.links],
    )


def _result(change: ResultChange, names: Names) -> ResultChange:
    name = names.get((change.session_id, change.message_id or ""))
    return change if name is None else msgspec.structs.replace(change, message_id=name)


def _link(link: Link, names: Names) -> Link:
    name = names.get((link.parent_session_id, link.message_id or ""))
    return link if name is None else msgspec.structs.replace(link, message_id=name)


def event_change_with_names(change: EventChange, names: Names) -> EventChange:
    """An event with the messages that it names, and the one that it follows, under their names."""
    parent = names.get((change.session_id, change.parent_id or ""), change.parent_id)
    event = event_with_names(change.session_id, change.event, names)
    return msgspec.structs.replace(change, event=event, parent_id=parent)


def event_with_names(session_id: str, event: HistoryEvent, names: Names) -> HistoryEvent:
    """An event of a session with the messages that it names under their names."""
    facts = dict[str, Any]()
    for field in ("message_id", "to_message_id", "summary_message_id"):
        name = names.get((session_id, getattr(event, field, None) or ""))
        if name is not None:
            facts[field] = name
    kept = cast("tuple[str, ...]", getattr(event, "kept_message_ids", ()))
    if any((session_id, message_id) in names for message_id in kept):
        facts["kept_message_ids"] = tuple([names.get((session_id, each), each) for each in kept])
    renamed: HistoryEvent = msgspec.structs.replace(event, **facts) if facts else event
    return renamed
