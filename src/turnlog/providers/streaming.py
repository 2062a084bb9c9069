"""One response as it comes: bytes or parsed events of a provider -> `StreamEvent`s and the message so far.

Knows no provider: each has an `Assembler`, which puts its events together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, cast

import msgspec

from turnlog.model import FilePart, Message, MessageError, Part, ReasoningPart, TextPart, ToolCallPart, ToolResult
from turnlog.model.lenient_json import parse_json
from turnlog.model.parts import SourceDocumentPart, SourceUrlPart
from turnlog.model.stream import (
    Abort,
    FileEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    RunFinish,
    RunStart,
    SourceEvent,
    StepFinish,
    StepStart,
    StreamError,
    StreamEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolInputAvailable,
    ToolInputDelta,
    ToolInputStart,
    ToolOutput,
)
from turnlog.providers.body import error_of
from turnlog.sse import END_OF_STREAM, SseDecoder

_LAST = END_OF_STREAM.decode()

Event = dict[str, Any]
Read = Callable[[Event], Message]


class Assembler(Protocol):
    """Puts one response together. One provider's knowledge; no I/O."""

    error: Any
    """The API's error object, when it sent one."""

    @property
    def complete(self) -> bool:
        """Whether the API said that this was all."""
        ...

    def add(self, event: Event) -> list[StreamEvent]:
        """Take one event of the API."""
        ...

    def body(self) -> Event:
        """The body so far; blocks that have not ended carry `body.OPEN`."""
        ...


class ResponseStream:
    """One response as it comes. Feed it, then `finish` it; `message` may be asked at any time."""

    def __init__(self, assembler: Assembler, read: Read) -> None:
        """Begin a response that `assembler` puts together and `read` understands."""
        self._assembler = assembler
        self._read = read
        self._decoder = SseDecoder()
        self._error: MessageError | None = None
        self._aborted = False
        self._started = False
        self._finished = False

    def feed(self, piece: bytes | Mapping[str, Any]) -> list[StreamEvent]:
        """The events of some bytes of the stream, or of one parsed event. None after the end."""
        if self._finished:
            return []
        return self._take(parse_events(self._decoder.feed(piece)) if isinstance(piece, bytes) else [dict(piece)])

    def finish(self, *, aborted: bool = False) -> list[StreamEvent]:
        """End the stream. `aborted`: it was stopped here, whatever the provider said last (R-K10)."""
        if self._finished:
            return []
        # Half an event at the end is no news: `complete` decides whether the response was cut off.
        events = self._take([event for event in parse_events(self._decoder.finish()) if not isinstance(event, str)])
        self._finished = True
        self._aborted = aborted
        if aborted:
            return [*events, Abort()]
        # A connection that closes without the API's last event may have lost text.
        if self._error is None and not self._assembler.complete:
            events += self._fail(MessageError(text="the stream ended early", kind="stream-ended"))
        message = self.message
        how, usage = message.stop_reason, message.usage
        finish = StepFinish(stop_reason=how, raw_stop_reason=message.raw_stop_reason, usage=usage)
        return [*events, *self._start(), finish, RunFinish(stop_reason=how, usage=usage)]

    @property
    def message(self) -> Message:
        """The answer so far; after the end, the whole of it."""
        message = self._read(self._assembler.body())
        if self._aborted:
            return msgspec.structs.replace(message, stop_reason="aborted")
        if self._error is not None:
            return msgspec.structs.replace(message, stop_reason="error", error=self._error)
        return message

    def _take(self, values: Iterable[Event | str]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for value in values:
            if self._error is not None:
                break
            if isinstance(value, str):
                events += self._fail(MessageError(text=f"not JSON: {value[:200]}", kind="bad-event"))
                break
            added = self._assembler.add(value)
            # The message begins with the first event that shows something: until then its id may still come.
            events += [*(self._start() if added else []), *added]
            if self._assembler.error is not None:
                events += self._fail(error_of(self._assembler.error) or MessageError(text="error"))
        return events

    def _start(self) -> list[StreamEvent]:
        if self._started:
            return []
        self._started = True
        message = self.message
        return [RunStart(message_id=message.id), StepStart(model=message.model, response_id=message.response_id)]

    def _fail(self, error: MessageError) -> list[StreamEvent]:
        self._error = error
        return [*self._start(), StreamError(error_text=error.text, kind=error.kind)]


def parse_events(data: Iterable[bytes]) -> list[Event | str]:
    """The events of server-sent data. What is no JSON object is given back as text, for the caller to judge.

    The names of the events are not needed: every provider repeats them inside of the data.
    """
    return [_parse_event(text) for each in data if (text := each.decode(errors="replace")).strip() not in ("", _LAST)]


def _parse_event(text: str) -> Event | str:
    try:
        value: Any = parse_json(text)
    except (ValueError, RecursionError):
        return text
    return cast("Event", value) if isinstance(value, dict) else text


class StreamReading:
    """The StreamEvents of a response, by iteration; then its `message`."""

    def __init__(self, stream: ResponseStream, pieces: Iterable[bytes | Mapping[str, Any]]) -> None:
        """Read `pieces` with `stream`."""
        self.stream = stream
        self._pieces = pieces

    def __iter__(self) -> Iterator[StreamEvent]:
        """Read on, event by event."""
        for piece in self._pieces:
            yield from self.stream.feed(piece)
        yield from self.stream.finish()

    @property
    def message(self) -> Message:
        """The answer so far; after the iteration, the whole of it."""
        return self.stream.message


def part_start(part: Part) -> list[StreamEvent]:
    """The events of a part that begins."""
    if isinstance(part, TextPart):
        return [TextStart(id=part.id or "")]
    if isinstance(part, ReasoningPart):
        return [ReasoningStart(id=part.id or "")]
    if isinstance(part, ToolCallPart):
        executed = part.provider_executed
        return [
            ToolInputStart(tool_call_id=part.tool_call_id, tool_name=part.tool_name, provider_executed=executed),
        ]
    return []


def part_delta(part: Part, delta: str) -> list[StreamEvent]:
    """The events of a part that grows."""
    if not delta:
        return []
    if isinstance(part, TextPart):
        return [TextDelta(id=part.id or "", delta=delta)]
    if isinstance(part, ReasoningPart):
        return [ReasoningDelta(id=part.id or "", delta=delta)]
    return [ToolInputDelta(tool_call_id=part.tool_call_id, delta=delta)] if isinstance(part, ToolCallPart) else []


def part_end(part: Part) -> list[StreamEvent]:
    """The events of a part that is complete."""
    if isinstance(part, TextPart):
        return [TextEnd(id=part.id or "", provider=part.provider), *_cited(part)]
    if isinstance(part, ReasoningPart):
        return [ReasoningEnd(id=part.id or "", provider=part.provider)]
    if isinstance(part, ToolCallPart):
        return [_available(part), *[event for result in part.results for event in tool_output(part, result)]]
    if isinstance(part, FilePart):
        return [FileEvent(file=part)]
    return [SourceEvent(source=part)] if isinstance(part, SourceUrlPart | SourceDocumentPart) else []


def part_whole(part: Part) -> list[StreamEvent]:
    """The events of a part that comes in one piece."""
    written = part.text if isinstance(part, TextPart | ReasoningPart) else ""
    return [*part_start(part), *part_delta(part, written), *part_end(part)]


def tool_output(call: ToolCallPart, result: ToolResult) -> list[StreamEvent]:
    """A result of a tool that the provider ran."""
    return [ToolOutput(tool_call_id=call.tool_call_id, result=result)]


def _available(part: ToolCallPart) -> ToolInputAvailable:
    return ToolInputAvailable(
        tool_call_id=part.tool_call_id,
        tool_name=part.tool_name,
        input=part.input,
        input_text=part.input_text,
        provider_executed=part.provider_executed,
        provider=part.provider,
    )


def _cited(part: TextPart) -> list[StreamEvent]:
    """The web pages that a text cites, once each."""
    # Several passages may cite one page.
    cited = {citation.url: citation.title for citation in part.citations if citation.url}
    return [
        SourceEvent(source=SourceUrlPart(id=f"{part.id}:{url}", source_id=url, url=url, title=title))
        for url, title in cited.items()
    ]
