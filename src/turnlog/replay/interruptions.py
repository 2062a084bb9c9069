"""Where a replay shows that the user stopped the agent: at its record, or where something was aborted (R-K17).

What follows an answer or a prompt, up to the next one, is a stretch; a stretch has one interruption at most. The record
of one is shown at its position. Without a record it is shown right after the aborted result (several in a row: after
the last), or where the stretch of an aborted answer ends. A call that ran on in the background when it was aborted
shows none: something else than the user may have ended it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from turnlog.model import (
    HistoryEvent,
    InterruptEvent,
    Message,
    MessageEvent,
    RecordEvent,
    RunMetadataEvent,
    ToolCallPart,
    ToolResultEvent,
)


class Interruptions(msgspec.Struct, frozen=True, kw_only=True):
    """Indexes into the history."""

    derived_after: frozenset[int]
    """An interruption that no record names is shown after these events."""
    repeated: frozenset[int]
    """Records of an interruption that another record contains too."""
    shown_after: frozenset[int]
    """Where interruptions are shown: at records (their own indexes), or derived."""


def find_interruptions(events: Sequence[HistoryEvent], interrupted: Iterable[str] = ()) -> Interruptions:
    """Where interruptions of a whole history are shown, or of a passage: `replay` says what it must hold.

    `interrupted` are messages that records outside a passage name.
    """
    recorded = {event.message_id for event in events if isinstance(event, InterruptEvent)} | set(interrupted)
    aborted = _aborted_results(events)
    derived: set[int] = set()
    repeated: set[int] = set()
    shown_records: set[int] = set()
    for stretch in _stretches(events):
        records = [index for index in stretch if isinstance(events[index], InterruptEvent)]
        if records:
            # One interruption may have several records: the agent's, a hook's, and one that the log's reader derived.
            shown = next((index for index in records if not _is_derived(events[index])), records[0])
            shown_records.add(shown)
            repeated.update(index for index in records if index != shown)
            recorded.update(_message_ids(events, stretch))
            continue
        place = _place(events, stretch, recorded, aborted)
        if place is not None:
            derived.add(place)
            recorded.update(_message_ids(events, stretch))
    return Interruptions(
        derived_after=frozenset(derived),
        repeated=frozenset(repeated),
        shown_after=frozenset(derived | shown_records),
    )


def is_aborted(message: Message) -> bool:
    """Whether the user stopped the answer, or a tool whose result came with it."""
    return message.role == "assistant" and (
        message.stop_reason == "aborted"
        or any(
            result.status == "aborted"
            for part in message.parts
            if isinstance(part, ToolCallPart)
            for result in part.results
        )
    )


def _stretches(events: Sequence[HistoryEvent]) -> Iterator[range]:
    start = 0
    for index, event in enumerate(events):
        if isinstance(event, MessageEvent) and event.message.role in ("user", "assistant") and index > start:
            yield range(start, index)
            start = index
    yield range(start, len(events))


def _is_derived(event: HistoryEvent) -> bool:
    return isinstance(event, InterruptEvent) and event.derived


def _aborted_results(events: Sequence[HistoryEvent]) -> dict[int, str | None]:
    """Index -> message of the results that may show an interruption: of calls that were still awaited.

    A call is not awaited if it has its result, or was reported as running before the conversation continued.
    """
    found: dict[int, str | None] = {}
    running: dict[tuple[str | None, str], int] = {}
    answered: set[tuple[str | None, str]] = set()
    for number, stretch in enumerate(_stretches(events)):
        for index in stretch:
            event = events[index]
            # A resumed log repeats results; the copy is no second interruption.
            if not isinstance(event, ToolResultEvent) or event.duplicate:
                continue
            call = (event.message_id, event.tool_call_id)
            awaited = call not in answered and running.setdefault(call, number) == number
            if event.result.status == "aborted" and awaited:
                found[index] = event.message_id
            if not event.result.preliminary:
                answered.add(call)
    return found


def _place(
    events: Sequence[HistoryEvent], stretch: range, recorded: set[str | None], aborted: dict[int, str | None]
) -> int | None:
    """After which event of a stretch without a record its interruption is shown; None if it has no interruption."""
    for index in stretch:
        if index in aborted and (aborted[index] is None or aborted[index] not in recorded):
            return _last_in_a_row(events, index, stretch)
    # The answer itself was stopped. What its calls had returned by then came before the stop.
    head = events[stretch.start] if stretch else None
    if isinstance(head, MessageEvent) and is_aborted(head.message) and head.message.id not in recorded:
        return max(
            (index for index in stretch if isinstance(events[index], ToolResultEvent)),
            default=stretch.start,
        )
    return None


def _last_in_a_row(events: Sequence[HistoryEvent], first: int, stretch: range) -> int:
    last = first
    for index in range(first + 1, stretch.stop):
        event = events[index]
        if isinstance(event, ToolResultEvent) and event.result.status == "aborted":
            last = index
        # Facts about the run may come between the aborted results of parallel calls.
        elif not isinstance(event, RecordEvent | RunMetadataEvent):
            break
    return last


def _message_ids(events: Sequence[HistoryEvent], stretch: range) -> set[str | None]:
    """The answers that a stretch is about: the one at its head, and those whose aborted results arrived in it."""
    ids: set[str | None] = set()
    for index in stretch:
        event = events[index]
        if isinstance(event, MessageEvent) and event.message.role == "assistant":
            ids.add(event.message.id)
        elif isinstance(event, ToolResultEvent) and event.result.status == "aborted":
            ids.add(event.message_id)
    return ids
