"""Sessions as a cassette: what each call of the model saw, and what it answered.

What the model saw is computed at the time of each call: a compaction counts from its position, a result from when
it had come. Only the active conversation is recorded; everything that is left out is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from turnlog.cassette.tape import (
    AskedFile,
    AskedResult,
    AskedText,
    Cassette,
    EarlierAnswer,
    Entry,
    Exchange,
    Track,
)
from turnlog.errors import ConversionError
from turnlog.model import (
    CompactionEvent,
    Fate,
    FilePart,
    HistoryEvent,
    Membership,
    Message,
    Origin,
    Part,
    ReasoningPart,
    Session,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolState,
)
from turnlog.providers.base import Report, RequestOptions
from turnlog.providers.context import PlacedHistory, select_context, standing_compactions
from turnlog.providers.repair import answer_calls, without_failed_answers

_OPTIONAL = frozenset({Origin.HARNESS, Origin.COMMAND, Origin.COMMAND_OUTPUT, Origin.SHELL, Origin.SHELL_OUTPUT})
"""What the model gets besides the prompt: agents word it differently each time, or leave it out."""

_ANSWER_FIELDS = ("id", "role", "model", "response_id", "stop_reason", "raw_stop_reason", "usage")
"""What an API says about an answer besides its parts."""


class RecordedSession(NamedTuple):
    """One session, as it is recorded."""

    session: Session
    placed: Sequence[tuple[Message, Membership]]
    """Its messages with their results, contents whole, and their places."""
    events: Sequence[HistoryEvent]


class Omission(NamedTuple):
    """Something of a session that its cassette does not play."""

    kind: str
    detail: str


class Recorded(NamedTuple):
    """A cassette, and what it does not hold."""

    cassette: Cassette
    losses: tuple[Omission, ...]


_Placed: TypeAlias = tuple[Message, Membership]


def record(histories: Iterable[RecordedSession]) -> Recorded:
    """The cassette of a session and its subagents'.

    Raises:
        ConversionError: In none of them a model has answered.
    """
    losses: list[Omission] = []
    tracks = [track for history in histories if (track := _track(history, losses)).exchanges]
    if not tracks:
        raise ConversionError("no model has answered in this session: there is nothing to play")
    return Recorded(Cassette(cassette=1, tracks=tuple(tracks)), tuple(losses))


def _track(history: RecordedSession, losses: list[Omission]) -> Track:
    session = history.session
    exchanges = list(_exchanges(history, losses))
    if exchanges and all(isinstance(entry, AskedText) and entry.optional for entry in exchanges[0].asks):
        losses.append(Omission("prompt", f"{session.id} does not contain its first prompt"))
        exchanges = _with_any_prompt(exchanges)
    return Track(session=session.id, agent=session.agent, title=session.title, exchanges=tuple(exchanges))


def _with_any_prompt(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """The exchanges after a prompt that may be any."""
    first, *others = exchanges
    # One more entry at the beginning moves those that later exchanges keep.
    moved = [msgspec.structs.replace(each, keeps=each.keeps + 1) if each.keeps else each for each in others]
    return [msgspec.structs.replace(first, asks=(AskedText(text=None), *first.asks)), *moved]


def _exchanges(history: RecordedSession, losses: list[Omission]) -> Iterator[Exchange]:
    before: list[Entry] = []
    for messages, answers in _segments(history, losses):
        entries: list[Entry] = []
        known = None
        for message in messages:
            if message.role != "assistant":
                entries += _request_entries(message)
                continue
            is_played = message.id in answers
            answer = _answer(message, losses if is_played else [])
            if is_played and answer.parts:
                keeps = _common(before, entries) if known is None else known
                asks = tuple(entries[keeps:])
                yield Exchange(keeps=None if keeps == len(before) else keeps, asks=asks, answer=answer)
                # Within a segment the context only grows, by this answer.
                known = len(entries) + 1
                before = [*entries, EarlierAnswer(parts=answer.parts)]
            entries += [EarlierAnswer(parts=answer.parts)] if answer.parts else []
            entries += _results(message)


def _common(before: Sequence[Entry], now: Sequence[Entry]) -> int:
    """How many entries at the beginning are the same."""
    pairs = zip(before, now, strict=False)
    return next((index for index, (one, other) in enumerate(pairs) if one != other), min(len(before), len(now)))


def _segments(history: RecordedSession, losses: list[Omission]) -> Iterator[tuple[list[Message], set[str]]]:
    """From each compaction to the next: what the model saw at its end, and ids of the answers that it gave in it."""
    places = {place.message_id: place for _, place in history.placed}
    standing = _in_conversation(history, losses)
    compactions = standing_compactions(history.events, places)
    borders = [compaction.position for compaction in compactions]
    starts = [None, *borders]
    for index, end in enumerate([*borders, None]):
        known = [
            (message, place)
            for message, place in standing
            if (end is None or place.position < end) and not _is_hidden(message, place, compactions[:index])
        ]
        start = starts[index]
        # An answer is played once: in the segment in which it was given, not in later ones that kept it.
        answers = {m.id for m, place in known if m.role == "assistant" and (start is None or place.position >= start)}
        if answers:
            yield _seen(known, history.events, compactions[:index], answers, losses), answers


def _in_conversation(history: RecordedSession, losses: list[Omission]) -> list[_Placed]:
    kept: list[_Placed] = []
    for message, place in sorted(history.placed, key=lambda placed: placed[1].position):
        if place.fate in (Fate.ACTIVE, Fate.COMPACTED):
            kept.append((message, place))
        else:
            losses.append(Omission(place.fate.value, f"message {message.id} is not part of the conversation"))
    return kept


def _is_hidden(message: Message, place: Membership, compactions: Sequence[CompactionEvent]) -> bool:
    return any(
        place.position < compaction.position
        and message.id not in compaction.kept_message_ids
        and message.id != compaction.summary_message_id
        for compaction in compactions
    )


def _seen(
    known: Sequence[_Placed],
    events: Sequence[HistoryEvent],
    compactions: Sequence[CompactionEvent],
    answers: set[str],
    losses: list[Omission],
) -> list[Message]:
    """The messages in the model's order, each call with the one result that it had when the model continued."""
    # Earlier compactions are applied already: `known` lacks what they hid.
    others = [event for event in events if not isinstance(event, CompactionEvent)]
    active = [msgspec.structs.replace(place, fate=Fate.ACTIVE) for _, place in known]
    messages = [_as_of_then(message, place, known) for message, place in known]
    context = select_context(PlacedHistory(messages, active, [*others, *compactions[-1:]]))
    report = Report()
    messages = without_failed_answers(list(context.messages), report)
    losses += [
        Omission(found.kind, f"message {found.message_id}: {found.detail}")
        for found in report.repairs
        if found.message_id in answers
    ]
    return answer_calls(messages, RequestOptions(model=""), Report())


def _as_of_then(message: Message, place: Membership, known: Sequence[_Placed]) -> Message:
    """The message without results that came after the next answer."""
    if not any(isinstance(part, ToolCallPart) and len(part.results) > 1 for part in message.parts):
        return message
    # The next request had the results of that time; a background task's report came later, in its own message.
    following = [p.position for other, p in known if other.role == "assistant" and p.position > place.position]
    if not following:
        return message
    parts = tuple(_cut(part, min(following)) if isinstance(part, ToolCallPart) else part for part in message.parts)
    return msgspec.structs.replace(message, parts=parts)


def _cut(call: ToolCallPart, end: int) -> ToolCallPart:
    arrived = tuple(result for result in call.results if result.sequence is None or result.sequence < end)
    return msgspec.structs.replace(call, results=arrived or call.results[:1])


def _request_entries(message: Message) -> list[Entry]:
    """The entries for what a message asks. A system prompt asks nothing."""
    if message.role == "system":
        return []
    optional = message.role == "developer" or message.origin in _OPTIONAL
    entries: list[Entry] = []
    for part in message.parts:
        if isinstance(part, TextPart) and part.text.strip():
            entries.append(AskedText(text=part.text, optional=optional))
        elif isinstance(part, FilePart) and not optional:
            entries.append(AskedFile(media_type=part.media_type))
    return entries


def _results(message: Message) -> list[Entry]:
    return [
        _result(part, part.results[0])
        for part in message.parts
        if isinstance(part, ToolCallPart) and _is_played(part) and part.results
    ]


def _result(call: ToolCallPart, result: ToolResult) -> Entry:
    media_types = tuple(part.media_type for part in result.content if isinstance(part, FilePart))
    output = result.output_text or result.error_text
    text = None if result.status == "aborted" else output or None
    return AskedResult(tool_call_id=call.tool_call_id, text=text, media_types=media_types)


def _is_played(call: ToolCallPart) -> bool:
    """Whether the model made the call, to its end, for the agent to answer."""
    return not (call.provider_executed or call.parent_tool_call_id or call.state is ToolState.INPUT_STREAMING)


def _answer(message: Message, losses: list[Omission]) -> Message:
    """What the model said, as far as every API can say it again."""
    parts: list[Part] = []
    for part in message.parts:
        kept = _played(part)
        if kept is not None:
            parts.append(kept)
        elif not (isinstance(part, ToolCallPart) and part.parent_tool_call_id):
            losses.append(Omission(f"{part.type}-part", f"message {message.id}: {_why_not(part)}"))
    return Message(**{name: getattr(message, name) for name in _ANSWER_FIELDS}, parts=tuple(parts))


def _played(part: Part) -> Part | None:
    if isinstance(part, TextPart):
        return TextPart(text=part.text, provider=part.provider)
    if isinstance(part, ReasoningPart):
        return ReasoningPart(text=part.text, provider=part.provider)
    if isinstance(part, ToolCallPart) and _is_played(part):
        return ToolCallPart(
            tool_call_id=part.tool_call_id,
            tool_name=part.tool_name,
            input=part.input,
            input_text=part.input_text,
            provider=part.provider,
        )
    return None


def _why_not(part: Part) -> str:
    if not isinstance(part, ToolCallPart):
        return "not every API can say it"
    return "the provider ran it" if part.provider_executed else "it was not said to its end"
