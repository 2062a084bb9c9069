"""Server-sent events as JSON values, from bytes that may be cut anywhere. Knows no provider.

Fields other than `data` are left out: every provider repeats the event's name inside of the data. What is no JSON
object is given back as text, for the caller to judge.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, cast

import msgspec

from turnlog.model import FilePart, Message, MessageError, Part, ReasoningPart, TextPart, ToolCallPart, ToolResult
from turnlog.model.codec import parse_json
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

_LINE_END = re.compile(rb"\r\n|\n|\r")
_LAST = "[DONE]"
"""What OpenAI's servers send behind the last event."""


class SseDecoder:
    """Takes bytes, gives the events that are complete."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._rest = b""
        self._data: list[str] = []
        self.done = False
        """Whether `[DONE]` came."""

    def feed(self, data: bytes) -> list[dict[str, Any] | str]:
        """The events that these bytes complete, in order; a text is data that is no JSON object."""
        events: list[dict[str, Any] | str] = []
        *lines, self._rest = self._lines(self._rest + data)
        for line in lines:
            events += self._take(line)
        return events

    def finish(self) -> list[dict[str, Any] | str]:
        """The event that stands unclosed at the end of the bytes, if all of it is there."""
        events = [*self.feed(b"\n"), *self._dispatch()]
        return [event for event in events if not isinstance(event, str)]

    def _lines(self, data: bytes) -> list[bytes]:
        # A CR at the very end may be the first half of CR LF.
        if data.endswith(b"\r"):
            lines = _LINE_END.split(data[:-1])
            return [*lines[:-1], lines[-1] + b"\r"]
        return _LINE_END.split(data)

    def _take(self, line: bytes) -> list[dict[str, Any] | str]:
        if not line:
            return self._dispatch()
        name, _, value = line.decode(errors="replace").removeprefix("\ufeff").partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))
        return []

    def _dispatch(self) -> list[dict[str, Any] | str]:
        data, self._data = "\n".join(self._data), []
        if not data.strip():
            return []
        if data.strip() == _LAST:
            self.done = True
            return []
        try:
            value: Any = parse_json(data)
        except (ValueError, RecursionError):
            return [data]
        return [cast("dict[str, Any]", value) if isinstance(value, dict) else data]


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
        """What some bytes of the stream, or one parsed event of it, tell. Nothing after the end."""
        if self._finished:
            return []
        values = self._decoder.feed(piece) if isinstance(piece, bytes) else [dict(piece)]
        return self._take(values)

    def finish(self, *, aborted: bool = False) -> list[StreamEvent]:
        """End the stream. `aborted`: it was stopped here, whatever the provider said last (R-K10)."""
        if self._finished:
            return []
        events = self._take(self._decoder.finish())
        self._finished = True
        self._aborted = aborted
        if aborted:
            return [*events, Abort()]
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
            told = self._assembler.add(value)
            events += [*(self._start() if told else []), *told]
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
    """What is told when a part begins."""
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
    """What is told when more of a part comes."""
    if not delta:
        return []
    if isinstance(part, TextPart):
        return [TextDelta(id=part.id or "", delta=delta)]
    if isinstance(part, ReasoningPart):
        return [ReasoningDelta(id=part.id or "", delta=delta)]
    return [ToolInputDelta(tool_call_id=part.tool_call_id, delta=delta)] if isinstance(part, ToolCallPart) else []


def part_end(part: Part) -> list[StreamEvent]:
    """What is told when a part is complete."""
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
    """What is told of a part that comes in one piece."""
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
    cited = {citation.url: citation.title for citation in part.citations if citation.url}
    return [
        SourceEvent(source=SourceUrlPart(id=f"{part.id}:{url}", source_id=url, url=url, title=title))
        for url, title in cited.items()
    ]
