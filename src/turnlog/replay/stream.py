"""When each event of a replay is due (`timed`), and a history as live streams again (`iter_runs`, `stream_run`).

Each event waits as long as it took then, scaled, with long pauses capped. This module only says how long; waiting is up
to whoever shows the events.

A run is what one prompt brought about, and becomes one message of a chat page (`turnlog.aisdk.writer.ChunkWriter`).
Texts and reasoning grow in pieces over the time that the answer took; calls come whole. What a page has no part for
(errors and interruptions that the run survived, compactions) are data events; what the harness added is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from turnlog.model import (
    CompactionEvent,
    DataPart,
    ErrorEvent,
    FilePart,
    HistoryEvent,
    Message,
    MessageEvent,
    ReasoningPart,
    SourceDocumentPart,
    SourceUrlPart,
    StreamEvent,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultEvent,
    ToolState,
)
from turnlog.model import stream as events
from turnlog.model.codec import to_json
from turnlog.model.parts import STATE_OF_STATUS, can_advance
from turnlog.replay.interruptions import find_interruptions

LONGEST_PAUSE = 3.0
"""Seconds that a replay waits at most, by default: a pause says that time passed, not how much."""

SHORTEST_PIECE = 16
"""Characters of a text that appear at once."""

MOST_PIECES = 200
"""Into so many pieces a long text is cut at most."""


class _Dated(Protocol):
    @property
    def created_at(self) -> datetime | None: ...


DatedT = TypeVar("DatedT", bound=_Dated)

EventT = TypeVar("EventT", covariant=True)


class Timed(NamedTuple, Generic[EventT]):
    """An event, and the seconds to wait before it."""

    delay: float
    event: EventT


def timed(
    events: Iterable[DatedT], speed: float = 1.0, longest_pause: float = LONGEST_PAUSE
) -> Iterator[Timed[DatedT]]:
    """Events with the seconds to wait before each. Raises ValueError as `Pace` does, before the first is read."""
    pace = Pace(speed, longest_pause)
    return (Timed(pace.delay(event.created_at), event) for event in events)


class Pace:
    """Turns times of a log into seconds to wait."""

    def __init__(self, speed: float = 1.0, longest_pause: float = LONGEST_PAUSE) -> None:
        """Wait so many times less than it took then, and never longer than the longest pause (both in real seconds).

        Raises ValueError for a speed that is not above zero, or a pause below it. An infinite speed never waits.
        """
        if not speed > 0:
            raise ValueError(f"a speed is a number above zero, not {speed}")
        if not longest_pause >= 0 or math.isinf(longest_pause):
            raise ValueError(f"the longest pause is a number of seconds, not {longest_pause}")
        self._speed = speed
        self._longest = longest_pause
        self._latest: datetime | None = None

    def delay(self, at: datetime | None) -> float:
        """Seconds to wait for what happened at this time; none where it, or what was before, has no time.

        A time before what was shown already is not waited for, and does not make what follows wait longer.
        """
        if at is None:
            return 0.0
        latest, self._latest = self._latest, at if self._latest is None else max(self._latest, at)
        seconds = 0.0 if latest is None else (at - latest).total_seconds()
        return min(max(seconds, 0.0) / self._speed, self._longest)


class ReplayRun(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt, and everything until the next one."""

    prompts: tuple[Message, ...]
    """User messages; none before the first, or where an agent began by itself."""
    events: tuple[HistoryEvent, ...]
    interrupted_at: tuple[int, ...] = ()
    """Indexes of events after which the user stopped the agent."""


def iter_runs(history: Iterable[HistoryEvent]) -> Iterator[ReplayRun]:
    """The runs of a whole history in causal order. Before the first prompt there is one only if there is an answer."""
    listed = list(history)
    found = find_interruptions(listed)
    prompts: list[Message] = []
    inside: list[HistoryEvent] = []
    stops: list[int] = []
    for index, event in enumerate(listed):
        is_prompt = isinstance(event, MessageEvent) and event.message.role == "user"
        if is_prompt and _has_answer(inside):
            yield ReplayRun(prompts=tuple(prompts), events=tuple(inside), interrupted_at=tuple(stops))
            prompts, inside, stops = [], [], []
        if isinstance(event, MessageEvent) and is_prompt:
            prompts.append(event.message)
        else:
            inside.append(event)
        if index in found.shown_after and inside:
            stops.append(len(inside) - 1)
    if prompts or _has_answer(inside):
        yield ReplayRun(prompts=tuple(prompts), events=tuple(inside), interrupted_at=tuple(stops))


def stream_run(
    run: ReplayRun, speed: float = 1.0, longest_pause: float = LONGEST_PAUSE
) -> Iterator[Timed[StreamEvent]]:
    """The events of a run as they came, begun and ended. Raises ValueError as `turnlog.replay.timed` does."""
    return _Streaming(run, Pace(speed, longest_pause)).events()


def _has_answer(inside: Sequence[HistoryEvent]) -> bool:
    return any(isinstance(event, MessageEvent) and event.message.role == "assistant" for event in inside)


_Chunks: TypeAlias = Iterator[StreamEvent]


class _Streaming:
    """Tells one run."""

    def __init__(self, run: ReplayRun, pace: Pace) -> None:
        self._run = run
        self._pace = pace
        self._open: Message | None = None
        self._calls: dict[str, ToolState] = {}
        self._survived: list[tuple[str, dict[str, Any]]] = []
        """Errors and interruptions since the last answer: the run has survived them when another one comes."""

    def events(self) -> Iterator[Timed[StreamEvent]]:
        # The prompts are shown already. Their times count, so that the first answer waits as long as it took.
        for prompt in self._run.prompts:
            self._pace.delay(prompt.created_at)
        yield Timed(0.0, events.RunStart(message_id=self._first_answer()))
        for index, event in enumerate(self._run.events):
            delay = self._pace.delay(event.created_at)
            yield from _spread(delay, list(self._events_of(event)))
            if index in self._run.interrupted_at:
                self._survived.append(("interrupt", {}))
        for last in self._end():
            yield Timed(0.0, last)

    def _first_answer(self) -> str | None:
        for event in self._run.events:
            if isinstance(event, MessageEvent) and event.message.role == "assistant":
                return event.message.id
        return None

    def _events_of(self, event: HistoryEvent) -> _Chunks:
        match event:
            case MessageEvent(message=Message(role="assistant")):
                yield from self._answer(event.message)
            case ToolResultEvent():
                if not event.duplicate:
                    yield from self._output(event.tool_call_id, event.result)
            case ErrorEvent():
                # A client stops reading at an error chunk, so one is sent only if nothing follows (`_end`).
                self._survived.append(("error", {"errorText": event.error_text}))
            case CompactionEvent():
                details = {
                    "trigger": event.trigger,
                    "tokensBefore": event.tokens_before,
                    "tokensAfter": event.tokens_after,
                }
                yield _data("compaction", {name: value for name, value in details.items() if value is not None})
            case _:
                return

    def _answer(self, message: Message) -> _Chunks:
        yield from self._end_step()
        for name, details in self._survived:
            yield _data(name, details)
        self._survived.clear()
        self._open = message
        yield events.StepStart(model=message.model, response_id=message.response_id)
        for index, part in enumerate(message.parts):
            yield from self._part(part, part.id or f"{message.id}.{index}")
        if message.error is not None:
            self._survived.append(("error", {"errorText": message.error.text}))

    def _part(self, part: Any, identity: str) -> _Chunks:
        match part:
            case TextPart():
                yield events.TextStart(id=identity)
                for piece in _pieces(part.text):
                    yield events.TextDelta(id=identity, delta=piece)
                yield events.TextEnd(id=identity, provider=part.provider)
            case ReasoningPart():
                yield events.ReasoningStart(id=identity)
                for piece in _pieces(part.text):
                    yield events.ReasoningDelta(id=identity, delta=piece)
                yield events.ReasoningEnd(id=identity, provider=part.provider)
            case ToolCallPart():
                yield from self._call(part)
            case FilePart():
                yield events.FileEvent(file=part)
            case SourceUrlPart() | SourceDocumentPart():
                yield events.SourceEvent(source=part)
            case DataPart():
                yield events.DataEvent(name=part.name, data=part.data, id=part.id)
            case _:
                return

    def _call(self, part: ToolCallPart) -> _Chunks:
        # A client keeps one part per id, so a call that is in two messages is sent once.
        if part.tool_call_id in self._calls:
            return
        self._calls[part.tool_call_id] = ToolState.INPUT_AVAILABLE
        yield events.ToolInputAvailable(
            tool_call_id=part.tool_call_id,
            tool_name=part.tool_name,
            input=part.input,
            input_text=part.input_text,
            provider_executed=part.provider_executed,
            provider=part.provider,
        )
        for result in part.results:
            yield from self._output(part.tool_call_id, result)

    def _output(self, tool_call_id: str, result: ToolResult) -> _Chunks:
        """A result that its call may still get; of a call that was refused none, and none without the call."""
        state, following = self._calls.get(tool_call_id), STATE_OF_STATUS[result.status]
        if state is not None and can_advance(state, following):
            self._calls[tool_call_id] = following
            yield events.ToolOutput(tool_call_id=tool_call_id, result=result)

    def _end_step(self) -> _Chunks:
        if self._open is not None:
            yield events.StepFinish(
                stop_reason=self._open.stop_reason,
                raw_stop_reason=self._open.raw_stop_reason,
                usage=self._open.usage,
            )

    def _end(self) -> _Chunks:
        """The run ends as it did: with its answer, with an error, or because the user stopped it."""
        yield from self._end_step()
        names = [name for name, _ in self._survived]
        for name, details in self._survived:
            if name == "error":
                yield events.StreamError(error_text=str(details["errorText"]))
        if "interrupt" in names:
            yield events.Abort()
        else:
            yield events.RunFinish(stop_reason=None if self._open is None else self._open.stop_reason)


def _data(name: str, details: dict[str, Any]) -> events.DataEvent:
    return events.DataEvent(name=name, data=to_json(details))


def _pieces(text: str) -> Iterator[str]:
    size = max(SHORTEST_PIECE, -(-len(text) // MOST_PIECES))
    for start in range(0, len(text), size):
        yield text[start : start + size]


_GROWING = (events.TextDelta, events.ReasoningDelta)


def _spread(delay: float, emitted: list[StreamEvent]) -> Iterator[Timed[StreamEvent]]:
    """The wait in equal shares before the pieces of texts; before everything where there are none."""
    growing = sum(isinstance(event, _GROWING) for event in emitted)
    for number, event in enumerate(emitted):
        waits = isinstance(event, _GROWING) if growing else number == 0
        yield Timed(delay / max(growing, 1) if waits else 0.0, event)
