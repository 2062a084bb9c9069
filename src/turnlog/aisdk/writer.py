"""`StreamEvent`s -> chunks of a UI message stream for one release of the AI SDK.

Whatever the events are, the client accepts the order of the chunks: parts end before others start, deltas belong to
open parts, calls go through their states, and the stream ends once, with everything closed. An event that is impossible
in its place is logged, skipped and listed in `losses`; with `strict` it raises. `turnlog.aisdk.sse` encodes chunks,
`turnlog.aisdk.streaming` iterates over live sources.
"""

from __future__ import annotations

import logging
import secrets
import string
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, cast

from msgspec import UNSET, Struct, UnsetType

from turnlog.aisdk.chunks import (
    AbortChunk,
    ErrorChunk,
    FinishChunk,
    FinishReason,
    FinishStepChunk,
    MessageMetadataChunk,
    ReasoningDeltaChunk,
    ReasoningEndChunk,
    ReasoningStartChunk,
    StartChunk,
    StartStepChunk,
    TextDeltaChunk,
    TextEndChunk,
    TextStartChunk,
    ToolApprovalRequestChunk,
    ToolApprovalResponseChunk,
    ToolInputAvailableChunk,
    ToolInputErrorChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
    UIMessageChunk,
)
from turnlog.aisdk.parts import UIMessage
from turnlog.aisdk.versions import Loss, SdkVersion, Version, sdk_version, supports
from turnlog.aisdk.writer_parts import (
    FAILED,
    FINISH_REASONS,
    AddLoss,
    Chunks,
    ContentChunks,
    Delta,
    End,
    OpenParts,
    RefusedEvent,
    Start,
    Steps,
    UnusableValue,
    check_fields,
    plain_json,
)
from turnlog.aisdk.writer_tools import ABORTED, ToolCallChunks
from turnlog.arguments import checked
from turnlog.errors import StreamStateError
from turnlog.model import stream as events
from turnlog.model.stream import StreamEvent, TextDelta

logger = logging.getLogger(__name__)

MOST_LOSSES = 1_000
"""Maximum number of losses kept; `ChunkWriter.skipped` counts all."""

_ID_LETTERS = string.ascii_letters + string.digits


def generate_message_id() -> str:
    """A new id like the AI SDK's: `msg_` and 16 letters or digits, without characters that split a URL path."""
    return "msg_" + "".join([secrets.choice(_ID_LETTERS) for _ in range(16)])


class ChunkWriter:
    """Turns the events of one stream into the chunks of one message.

    `write` an event, send its chunks, and `close` at the end; `closed` is true once a terminal event was written. A
    *lane* is a separate source within the stream (a node of a flow, a subagent), in which one part is open at a time.
    """

    @checked
    def __init__(
        self,
        version: Version = 7,
        *,
        message_id: str | None = None,
        generate_id: Callable[[], str] = generate_message_id,
        continued: UIMessage | None = None,
        tools: Literal["dynamic", "named"] = "dynamic",
        strict: bool = False,
    ) -> None:
        """Write for a release of the AI SDK.

        Args:
            version: The client's version: 5, 6, 7 or an exact release. A client of another major may refuse the stream.
            message_id: Wins over the id in the source; if both are missing, `generate_id` makes one.
            generate_id: Makes the id of a message without one.
            continued: The assistant message at the end of the client's request, whose id and calls are continued.
            tools: `dynamic-tool` parts, or `tool-<name>` parts for pages that declare their tools.
            strict: Raise StreamStateError instead of skipping an event (R-O23).
        """
        self.release = sdk_version(version)
        self.losses: list[Loss] = []
        """What could not be sent, at the number of its event; at most `MOST_LOSSES`."""
        self.skipped = 0
        """How many events made no sense."""
        self._strict = strict
        self._event = -1
        self._message = MessageWriter(
            self.release,
            self._add_loss,
            message_id=message_id,
            generate_id=generate_id,
            continued=continued,
            dynamic=tools == "dynamic",
            strict=strict,
        )

    @property
    def closed(self) -> bool:
        """Whether the stream has ended."""
        return self._message.closed

    @property
    def message_id(self) -> str | None:
        """The id of the message, once the stream has begun."""
        return self._message.message_id

    def write(self, event: StreamEvent, lane: str = "") -> Chunks:
        """The chunks of an event; empty if it is skipped or adds nothing."""
        message = self._message
        # Most events are text deltas of an open part: they skip everything but the checks of their two fields.
        if type(event) is TextDelta and not message.closed:
            part = message.parts.text(event.id, lane)
            if part is not None and type(event.delta) is str and event.delta:
                self._event += 1
                return [TextDeltaChunk(id=part.chunk_id, delta=event.delta)]
        return self._write_any(event, lane)

    def open_delta(self, event: Start | Delta) -> TextDeltaChunk | ReasoningDeltaChunk | None:
        """A delta chunk without text for the part of an event, if it is open: a template for further deltas."""
        return None if self.closed else self._message.parts.open_delta(event)

    def count_deltas(self, number: int) -> None:
        """Count deltas of an open part that were sent without calling `write`."""
        self._event += number

    def close(self) -> Chunks:
        """End the stream after its source is exhausted; does nothing if it has ended already."""
        if self.closed:
            return []
        self._message.source_ended()
        return self._message.take_chunks()

    @checked
    def fail(self, error_text: str = FAILED) -> Chunks:
        """End the stream because its source failed."""
        return [*self.write(events.StreamError(error_text=error_text)), *self.close()]

    @checked
    def abort(self, reason: str | None = None) -> Chunks:
        """End the stream because it was stopped from outside."""
        return self.write(events.Abort(reason=reason)) if not self.closed else []

    # The way of an event

    def _write_any(self, event: StreamEvent, lane: str) -> Chunks:
        self._event += 1
        kind = type(event)
        try:
            if self.closed:
                raise RefusedEvent("the stream has ended")
            handler = HANDLERS.get(kind)
            if handler is None:
                raise RefusedEvent(f"{kind.__name__} is no event of a stream")
            check_fields(cast("Struct", event))
            handler(self._message, event, lane)
        except (RefusedEvent, UnusableValue) as refusal:
            self._refuse(event, str(refusal))
        except Exception as error:  # A source may build any event; none may end the stream.
            self._refuse(event, f"{type(error).__name__}: {error}")
        return self._message.take_chunks()

    def _refuse(self, event: object, reason: str) -> None:
        name = type(event).__name__
        logger.warning("event %d (%s) of a stream was skipped: %s", self._event, name, reason)
        self.skipped += 1
        if self._strict:
            raise StreamStateError(f"event {self._event} ({name}): {reason}", chunk_type=name)
        self._add_loss("event", f"{name} was skipped: {reason}")

    def _add_loss(self, feature: str, reason: str) -> None:
        if len(self.losses) < MOST_LOSSES:
            self.losses.append(Loss(feature=feature, path=f"$[{self._event}]", reason=reason))


@checked
def write_chunks(stream: Iterable[StreamEvent], writer: ChunkWriter) -> Iterator[UIMessageChunk]:
    """The chunks of a list of events, up to the end of the stream."""
    for event in stream:
        yield from writer.write(event)
        if writer.closed:
            return
    yield from writer.close()


class MessageWriter:
    """The state of one message. Each method takes an event and its lane; it raises RefusedEvent if impossible."""

    def __init__(
        self,
        release: SdkVersion,
        add_loss: AddLoss,
        *,
        message_id: str | None,
        generate_id: Callable[[], str],
        continued: UIMessage | None,
        dynamic: bool,
        strict: bool,
    ) -> None:
        """Write a message for a release; the arguments are those of `ChunkWriter`."""
        self.closed = False
        """Whether the stream has ended."""
        self.parts = OpenParts(add_loss, strict=strict)
        self._add_loss = add_loss
        # A page goes on with its last message only under that message's id; with any other it appends a new one.
        self._message_id = message_id if continued is None else continued.id
        self._generate_id = generate_id
        self._tools = ToolCallChunks(release, add_loss, dynamic=dynamic, continued=continued)
        self._features = frozenset(name for name in _FEATURES if supports(release, name))
        self._out: Chunks = []
        self._started = self._in_step = self._failed = False
        self._content = ContentChunks(release, add_loss)
        self._steps = Steps(continued)

    @property
    def message_id(self) -> str | None:
        """The id of the message, once the stream has begun."""
        return self._message_id if self._started else None

    def take_chunks(self) -> Chunks:
        """Return and remove the chunks that were not taken yet."""
        out, self._out = self._out, []
        return out

    def source_ended(self) -> None:
        """The source ended without a terminal event."""
        # Clients before 7.0.149 refuse this value, and with it the whole stream.
        interrupted = "interrupted" if "finish-reason-interrupted" in self._features else "other"
        self._finish("error" if self._failed else interrupted, self._steps.metadata())

    def _send(self, chunk: UIMessageChunk) -> None:
        if not self._started:
            self._begin({})
        self._out.append(chunk)

    def _send_all(self, chunks: Iterable[UIMessageChunk]) -> None:
        for chunk in chunks:
            self._send(chunk)

    # The message

    def run_start(self, event: events.RunStart, lane: str) -> None:
        """The run begins, and with it the message, or the message continues."""
        metadata = plain_json(event.metadata)
        if not self._started:
            self._message_id = self._message_id or event.message_id
            self._begin(metadata)
            return
        # A client that gets another id within a message begins a new one.
        if event.message_id not in (None, self._message_id):
            self._add_loss("message-id", "the message has another id already; what follows goes on in it")
        if metadata:
            self._send(MessageMetadataChunk(message_metadata=metadata))

    def _begin(self, metadata: dict[str, Any]) -> None:
        self._started = True
        self._message_id = self._message_id or self._generate_id()
        self._out.append(StartChunk(message_id=self._message_id, message_metadata=metadata or UNSET))

    def run_finish(self, event: events.RunFinish, lane: str) -> None:
        """The run finished normally."""
        metadata = dict(plain_json(event.metadata))
        reason = None if event.stop_reason is None else FINISH_REASONS[event.stop_reason]
        # The client runs the calls of `tool_use`; a provider's `pause` continues with the next request.
        left_to_client = event.stop_reason in ("tool_use", "pause")
        steps = self._steps.metadata(event.usage)
        # The source's own total wins over the sum of its steps.
        if "usage" in metadata:
            steps.pop("usage", None)
        self._finish("error" if self._failed else reason, metadata | steps, waits=left_to_client)

    def pause(self, event: events.Pause, lane: str) -> None:
        """The run waits for the client."""
        self._finish("tool-calls" if self._tools.has_open_calls else "other", self._steps.metadata(), waits=True)

    def _finish(self, reason: FinishReason | None, metadata: dict[str, Any], *, waits: bool = False) -> None:
        self._settle(waits=waits)
        shown_reason = UNSET if reason is None or "finish-reason" not in self._features else reason
        self._send(FinishChunk(finish_reason=shown_reason, message_metadata=metadata or UNSET))
        self.closed = True

    def stream_error(self, event: events.StreamError, lane: str) -> None:
        """Send an error. The client reads nothing after it, so close everything first; the run itself may continue."""
        self._send_all(self.parts.end_all())
        self._send_all(self._tools.abort_open_calls())
        self._failed = True
        self._send(ErrorChunk(error_text=event.error_text or FAILED))

    def abort(self, event: events.Abort, lane: str) -> None:
        """The run was stopped."""
        self._settle(waits=False)
        self._steps.abort()
        # An `abort` chunk has no metadata, so they go before it.
        metadata = self._steps.metadata()
        if metadata:
            self._send(MessageMetadataChunk(message_metadata=metadata))
        reason = event.reason if event.reason is not None and "abort-reason" in self._features else UNSET
        self._send(AbortChunk(reason=reason))
        self.closed = True

    def _settle(self, *, waits: bool) -> None:
        self._send_all(self.parts.end_all())
        self._send_all(self._tools.leave_open_calls() if waits else self._tools.abort_open_calls())
        self._end_step()

    # Steps

    def step_start(self, event: events.StepStart, lane: str) -> None:
        """A model call begins."""
        self._end_step()
        self._send(StartStepChunk())
        self._in_step = True
        self._steps.start(event)

    def step_finish(self, event: events.StepFinish, lane: str) -> None:
        """A model call ended."""
        if not self._in_step:
            raise RefusedEvent("no step has begun")
        self._steps.finish(event)
        self._end_step()

    def _end_step(self) -> None:
        # Up to 7.0.78 `finish-step` forgets open parts, and a later delta of one ends the stream.
        self._send_all(self.parts.end_all())
        self._send_all(self._tools.complete_inputs())
        if self._in_step:
            self._in_step = False
            self._send(FinishStepChunk())

    # What a message holds

    def part_start(self, event: Start, lane: str) -> None:
        """A text or reasoning part begins."""
        self._send_all(self.parts.start(event, lane))

    def part_delta(self, event: Delta, lane: str) -> None:
        """A text or reasoning part grows."""
        self._send_all(self.parts.delta(event, lane))

    def part_end(self, event: End, lane: str) -> None:
        """A text or reasoning part is complete."""
        self._send_all(self.parts.end(event, lane))

    def tool_input(self, event: events.ToolInputStart | events.ToolInputAvailable, lane: str) -> None:
        """A call begins, or its input is complete."""
        tools = self._tools
        # Made before the part is ended: the event may be refused, and then the part goes on.
        chunks = tools.start_input(event) if isinstance(event, events.ToolInputStart) else tools.complete_input(event)
        self._send_all(self.parts.end_lane(lane))
        self._send_all(chunks)

    def tool_step(self, event: StreamEvent, lane: str) -> None:
        """A call changes state; open parts stay open."""
        self._send_all(_TOOL_STEPS[type(event)](self._tools, event))

    def file(self, event: events.FileEvent, lane: str) -> None:
        """Add a file."""
        chunk = self._content.file(event)
        self._send_all(self.parts.end_lane(lane))
        self._send(chunk)

    def source(self, event: events.SourceEvent, lane: str) -> None:
        """Add a source."""
        chunk = self._content.source(event)
        self._send_all(self.parts.end_lane(lane))
        self._send(chunk)

    def data(self, event: events.DataEvent, lane: str) -> None:
        """Add data of the application."""
        chunk, is_part = self._content.data(event)
        # Transient data and updates of earlier data have no place among the parts, so text goes on around them.
        if is_part:
            self._send_all(self.parts.end_lane(lane))
        self._send(chunk)


_FEATURES = ("abort-reason", "finish-reason", "finish-reason-interrupted")

_TOOL_STEPS: dict[type, Callable[[ToolCallChunks, Any], Chunks]] = {
    events.ToolInputDelta: ToolCallChunks.add_input,
    events.ToolOutput: ToolCallChunks.add_output,
    events.ApprovalRequest: ToolCallChunks.request,
    events.ApprovalResponse: ToolCallChunks.respond,
}
"""Events that change a call and leave open parts alone."""

HANDLERS: dict[type, Callable[[MessageWriter, Any, str], None]] = {
    events.RunStart: MessageWriter.run_start,
    events.RunFinish: MessageWriter.run_finish,
    events.StepStart: MessageWriter.step_start,
    events.StepFinish: MessageWriter.step_finish,
    **dict.fromkeys((events.TextStart, events.ReasoningStart), MessageWriter.part_start),
    **dict.fromkeys((events.TextDelta, events.ReasoningDelta), MessageWriter.part_delta),
    **dict.fromkeys((events.TextEnd, events.ReasoningEnd), MessageWriter.part_end),
    **dict.fromkeys((events.ToolInputStart, events.ToolInputAvailable), MessageWriter.tool_input),
    **dict.fromkeys(_TOOL_STEPS, MessageWriter.tool_step),
    events.FileEvent: MessageWriter.file,
    events.SourceEvent: MessageWriter.source,
    events.DataEvent: MessageWriter.data,
    events.StreamError: MessageWriter.stream_error,
    events.Abort: MessageWriter.abort,
    events.Pause: MessageWriter.pause,
}
"""Type of event -> the method that writes it."""


_ENDS = {TextStartChunk: TextEndChunk, ReasoningStartChunk: ReasoningEndChunk}
_ANSWERS = (ToolOutputAvailableChunk, ToolOutputErrorChunk, ToolOutputDeniedChunk, ToolInputErrorChunk)


@checked
def closing_chunks(chunks: Iterable[UIMessageChunk], version: Version = 7) -> list[UIMessageChunk]:
    """The chunks that must follow a writer's chunks to end the stream; empty if it has ended.

    Parts end, calls without an output become errors that say so, and the message finishes as interrupted. A refused
    call is denied, and an unanswered request stays open.
    """
    unfinished = _Unfinished()
    for chunk in chunks:
        unfinished.see(chunk)
    return [] if unfinished.ended else unfinished.rest(version)


class _Unfinished:
    """What a client has seen begin but not end."""

    def __init__(self) -> None:
        self.ended = False
        self._started = self._in_step = False
        self._parts: dict[tuple[type, str], UIMessageChunk] = {}
        self._calls: dict[str, bool | UnsetType] = {}
        """Call without an output -> whether its part is dynamic."""
        self._by_approval_id: dict[str, str] = {}
        """Open approval -> its call."""
        self._refused = set[str]()

    def see(self, chunk: UIMessageChunk) -> None:
        """Process the next chunk."""
        self._started = self._started or isinstance(chunk, StartChunk)
        if isinstance(chunk, TextStartChunk | ReasoningStartChunk):
            end = _ENDS[type(chunk)]
            self._parts[end, chunk.id] = end(id=chunk.id)
        elif isinstance(chunk, TextEndChunk | ReasoningEndChunk):
            self._parts.pop((type(chunk), chunk.id), None)
        elif isinstance(chunk, ToolInputStartChunk | ToolInputAvailableChunk):
            self._calls[chunk.tool_call_id] = chunk.dynamic
        elif isinstance(chunk, _ANSWERS):
            self._calls.pop(chunk.tool_call_id, None)
        elif isinstance(chunk, ToolApprovalRequestChunk):
            self._by_approval_id[chunk.approval_id] = chunk.tool_call_id
        elif isinstance(chunk, ToolApprovalResponseChunk):
            call = self._by_approval_id.pop(chunk.approval_id, None)
            if call is not None and not chunk.approved:
                self._refused.add(call)
        elif isinstance(chunk, StartStepChunk | FinishStepChunk):
            self._in_step = isinstance(chunk, StartStepChunk)
        elif isinstance(chunk, FinishChunk | AbortChunk):
            self.ended = True

    def rest(self, version: Version) -> list[UIMessageChunk]:
        """The chunks that are missing."""
        reason: FinishReason = "interrupted" if supports(version, "finish-reason-interrupted") else "other"
        return [
            *([] if self._started else [StartChunk()]),
            *self._parts.values(),
            *self._ends_of_calls(),
            *([FinishStepChunk()] if self._in_step else []),
            FinishChunk(finish_reason=reason if supports(version, "finish-reason") else UNSET),
        ]

    def _ends_of_calls(self) -> Iterator[UIMessageChunk]:
        open_ = set(self._by_approval_id.values())
        for call, dynamic in self._calls.items():
            if call in self._refused:
                yield ToolOutputDeniedChunk(tool_call_id=call)
            # AI SDK 6 and 7 call a message invalid in which a call failed while nobody has answered its request.
            elif call not in open_:
                yield ToolOutputErrorChunk(tool_call_id=call, error_text=ABORTED, dynamic=dynamic)
