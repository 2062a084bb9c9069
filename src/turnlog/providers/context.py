"""The messages of a session that the model sees: the active branch, with compactions applied.

A message that was rewound, retracted, superseded or never part of the conversation is left out by its fate. Of what
comes before the last compaction, only its summary (or replacement) and what it kept count. Whatever is left out is
reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from turnlog.model import CompactionEvent, Fate, HistoryEvent, Membership, Message, Origin, RewindEvent, ToolResultEvent
from turnlog.providers.base import Repair, Report


class ContextHistory(Protocol):
    """What `select_context` chooses from. `turnlog.logs.read_session` gives one."""

    @property
    def messages(self) -> Sequence[Message]:
        """In the order of the log."""
        ...

    @property
    def memberships(self) -> Sequence[Membership]:
        """The place of each message, in the same order."""
        ...

    @property
    def events(self) -> Sequence[HistoryEvent]:
        """What happened, in causal order."""
        ...


class PlacedHistory(NamedTuple):
    """A `ContextHistory` of values at hand."""

    messages: Sequence[Message]
    memberships: Sequence[Membership]
    events: Sequence[HistoryEvent]


class ModelContext(msgspec.Struct, frozen=True, kw_only=True):
    """The messages that the model sees, and a report of what was left out."""

    messages: tuple[Message, ...]
    repairs: tuple[Repair, ...] = ()


def select_context(history: ContextHistory) -> ModelContext:
    """The messages that the next request of a session would have, oldest first."""
    report = Report()
    places = {place.message_id: place for place in history.memberships}
    ordered = sorted(history.messages, key=lambda message: places[message.id].position)
    compactions = standing_compactions(history.events, places)
    compaction = compactions[-1] if compactions else None
    for message in ordered:
        if not _is_seen(message, places[message.id]):
            place = places[message.id]
            cause = f" by {place.fate_cause}" if place.fate_cause else ""
            report.mend("left-out", message.id, f"{place.fate.value}{cause}")
    seen = [message for message in ordered if _is_seen(message, places[message.id])]
    if compaction is not None:
        seen = _compacted(seen, compaction, places, report)
    _report_orphans(history.events, report)
    return ModelContext(messages=tuple(seen), repairs=tuple(report.repairs))


def _is_seen(message: Message, place: Membership) -> bool:
    """Whether a message reaches the model by its fate. Agents compact the conversation, not the system prompt."""
    return place.fate is Fate.ACTIVE or (message.role == "system" and place.fate is Fate.COMPACTED)


def standing_compactions(events: Iterable[HistoryEvent], places: dict[str, Membership]) -> list[CompactionEvent]:
    """The compactions that were not rewound, in order. Only the last one matters to a request."""
    standing: list[CompactionEvent] = []
    for event in events:
        if isinstance(event, CompactionEvent):
            summary = places.get(event.summary_message_id or "")
            if summary is None or summary.fate in (Fate.ACTIVE, Fate.COMPACTED):
                standing.append(event)
        elif isinstance(event, RewindEvent):
            standing = [found for found in standing if not _is_undone(found, event, places)]
    return standing


def _is_undone(compaction: CompactionEvent, rewind: RewindEvent, places: dict[str, Membership]) -> bool:
    """Whether the user went back to before a compaction. If it has a summary, the summary's fate decides."""
    if compaction.summary_message_id in places:
        return False
    if rewind.to_message_id is None:
        return True
    back_to = places.get(rewind.to_message_id)
    return back_to is not None and back_to.position < compaction.position


def _compacted(
    seen: list[Message], compaction: CompactionEvent, places: dict[str, Membership], report: Report
) -> list[Message]:
    """System prompt, then the replacement, or the summary and what was kept, then what came later."""
    system = [message for message in seen if message.role == "system"]
    rest = [message for message in seen if message.role != "system"]
    summary_id = compaction.summary_message_id or _summary_after(rest, compaction, places)
    summary = [message for message in rest if message.id == summary_id]
    others = [message for message in rest if message.id != summary_id]
    kept = [message for message in others if places[message.id].position < compaction.position]
    later = [message for message in others if places[message.id].position >= compaction.position]
    if compaction.replacement:
        for message in (*kept, *summary):
            report.mend("left-out", message.id, f"replaced by {compaction.id}")
        return [*system, *compaction.replacement, *later]
    return [*system, *[as_user(message) for message in summary], *kept, *later]


def _summary_after(
    messages: Sequence[Message], compaction: CompactionEvent, places: dict[str, Membership]
) -> str | None:
    """The summary of a compaction whose record does not name it: the next one that says that it is one."""
    for message in messages:
        if message.origin is Origin.COMPACTION and places[message.id].position >= compaction.position:
            return message.id
    return None


def as_user(message: Message) -> Message:
    """The message as the user's: what the model is to answer, though the agent's harness wrote it."""
    return message if message.role == "user" else msgspec.structs.replace(message, role="user")


def _report_orphans(events: Iterable[HistoryEvent], report: Report) -> None:
    for event in events:
        if isinstance(event, ToolResultEvent) and (event.message_id is None or event.duplicate):
            kind = "duplicate-result" if event.duplicate else "orphan-result"
            owner = event.message_id or ""
            report.mend(kind, owner, f"result {event.result.id} was left out", call=event.tool_call_id)
