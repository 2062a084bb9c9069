"""A session as Markdown: turns and speakers as headings, texts, calls and results below them.

Inputs and outputs of tools are whole. Results are below their calls, or where they arrived if the call is missing.
Images and files are listed by name and size, subagents by name. The heading of a message that is no longer part of
the conversation says why. `escaping` keeps markup in the log from being interpreted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import UNSET

from turnlog.formats.escaping import fence, inline
from turnlog.formats.labels import (
    Note,
    author_words,
    call_outcome,
    event_label,
    facts,
    part_label,
    pretty,
    result_label,
    subject,
)
from turnlog.model import (
    Fate,
    HistoryEvent,
    MessageEvent,
    Part,
    ReasoningPart,
    Session,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultEvent,
)

ReadSpill = Callable[[str], "str | None"]


def to_markdown(
    session: Session,
    events: Sequence[HistoryEvent],
    *,
    names: Mapping[str, str] | None = None,
    read_spill: ReadSpill = lambda name: None,
) -> Iterator[str]:
    """The document, block by block.

    Args:
        session: Whose it is.
        events: All that happened, in causal order, results as separate events.
        names: Session id -> title, for subagents.
        read_spill: The whole of an output that its result only previews, by its name; None where it is gone.
    """
    yield from (f"{block}\n\n" for block in _Writer(events, names or {}, read_spill).document(session, events))


class _Writer:
    def __init__(self, events: Iterable[HistoryEvent], names: Mapping[str, str], read_spill: ReadSpill) -> None:
        self._names = names
        self._read_spill = read_spill
        self._turn: int | None = None
        self._results: dict[tuple[str | None, str], list[ToolResultEvent]] = defaultdict(list)
        for event in events:
            if isinstance(event, ToolResultEvent) and event.message_id is not None:
                self._results[event.message_id, event.tool_call_id].append(event)

    def document(self, session: Session, events: Iterable[HistoryEvent]) -> Iterator[str]:
        yield f"# {inline(session.title or session.id)}"
        yield "\n".join(f"- {name}: {inline(value)}" for name, value in facts(session))
        for event in events:
            yield from self._event(event)

    def _event(self, event: HistoryEvent) -> Iterator[str]:
        if isinstance(event, MessageEvent):
            yield from self._message(event)
        elif (note := event_label(event)) is not None:
            yield from _noted(note)
            if isinstance(event, ToolResultEvent):
                yield from self._result(event.result)

    def _message(self, event: MessageEvent) -> Iterator[str]:
        message, place = event.message, event.membership
        if place is not None and place.turn not in (None, self._turn):
            self._turn = place.turn
            yield f"## Turn {place.turn}"
        fate = f" ({place.fate.value})" if place is not None and place.fate is not Fate.ACTIVE else ""
        yield f"### {' · '.join(inline(word) for word in author_words(event))}{fate}"
        for part in message.parts:
            yield from self._part(part, message.id)
        if message.error is not None:
            yield from _noted(Note("Error", text=message.error.text))

    def _part(self, part: Part, message_id: str) -> Iterator[str]:
        match part:
            case TextPart():
                yield fence(part.text, "markdown")
            case ReasoningPart():
                yield "#### Reasoning"
                yield fence(part.text, "markdown") if part.text else "*withheld by the provider*"
            case ToolCallPart():
                yield from self._call(part, message_id)
            case _:
                yield from _noted(part_label(part) or Note("Unknown part"))

    def _call(self, call: ToolCallPart, message_id: str) -> Iterator[str]:
        arrived = [event.result for event in self._results.get((message_id, call.tool_call_id), ())]
        results = (*call.results, *arrived)
        yield f"#### Tool call: {inline(call.tool_name)}{_and(subject(call))} · {call_outcome(call, results)}"
        if call.child_session_id is not None:
            name = self._names.get(call.child_session_id)
            yield f"Subagent: {inline(name or call.child_session_id)}{_and(call.child_session_id if name else None)}"
        if call.approval is not None and call.approval.reason:
            yield f"Reason: {inline(call.approval.reason)}"
        if call.input is not UNSET:
            yield fence(pretty(call.input), "json")
        elif call.input_text is not None:
            yield fence(call.input_text, "text")
        for result in results:
            yield from self._result(result, message_id)

    def _result(self, result: ToolResult, message_id: str = "") -> Iterator[str]:
        yield from _noted(result_label(result))
        whole = None if result.spilled_to is None else self._read_spill(result.spilled_to)
        if whole is not None:
            yield fence(whole, "text")
        for part in result.content:
            if isinstance(part, TextPart) and whole is None:
                yield fence(part.text, "text")
            elif not isinstance(part, TextPart):
                yield from self._part(part, message_id)
        if result.error_text is not None and result.error_text != result.output_text:
            yield fence(result.error_text, "text")


def _and(text: str | None) -> str:
    return f" · {inline(text)}" if text else ""


def _noted(note: Note) -> Iterator[str]:
    yield f"**{note.name}**{''.join(_and(word) for word in note.words)}"
    if note.text is not None:
        yield fence(note.text, "text")
    if note.json is not None:
        yield fence(note.json, "json")
