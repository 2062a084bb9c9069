"""`StreamEvent`s -> chunks of a UI message stream for one release of AI SDK.

Whatever the events say, the chunks are in an order that the client accepts: parts end before others start, deltas
belong to open parts, calls go through their states, and the stream ends once, with everything closed. An event that
makes no sense is logged, skipped and told in `losses`; with `strict` it raises instead. Encoding is in
`turnlog.aisdk.sse`, iterating over live sources in `turnlog.aisdk.streaming`.
"""

from __future__ import annotations

import logging
import secrets
import string
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, cast

from msgspec import UNSET, Struct

from turnlog.aisdk.chunks import (
    AbortChunk,
    ErrorChunk,
    FinishChunk,
    FinishReason,
    FinishStepChunk,
    MessageMetadataChunk,
    ReasoningDeltaChunk,
    StartChunk,
    StartStepChunk,
    TextDeltaChunk,
    UIMessageChunk,
)
from turnlog.aisdk.losses import Loss
from turnlog.aisdk.parts import UIMessage
from turnlog.aisdk.versions import Version, sdk_version, supports
from turnlog.aisdk.writer_base import Chunks, RefusedEvent
from turnlog.aisdk.writer_content import Content
from turnlog.aisdk.writer_parts import Delta, End, OpenParts, Start
from turnlog.aisdk.writer_steps import Steps
from turnlog.aisdk.writer_tools import ToolCalls
from turnlog.aisdk.writer_values import FINISH_REASONS, UnusableValue, check_fields, plain_json
from turnlog.errors import StreamStateError
from turnlog.model import stream as events
from turnlog.model.stream import StreamEvent, TextDelta

logger = logging.getLogger(__name__)

MOST_LOSSES = 1_000
"""So many losses are kept; `ChunkWriter.skipped` counts on."""

FAILED = "An error occurred."
"""What a client reads of an error whose text is empty or nobody's business."""

_ID_LETTERS = string.ascii_letters + string.digits


def generate_message_id() -> str:
    """A new id as AI SDK makes them: `msg_` and 16 letters or digits, and nothing that a URL path would split."""
    return "msg_" + "".join([secrets.choice(_ID_LETTERS) for _ in range(16)])


class ChunkWriter:
    """Turns the events of one stream into the chunks of one message.

    `write` an event, send its chunks, and `close` at the end; `closed` tells that a terminal event has done it. A
    *lane* is a source of its own inside the stream (a node of a flow, a subagent): one part is open at a time in each.
    """

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
        """Write for a release of AI SDK.

        Args:
            version: The client's: 5, 6, 7 or an exact release. A client of another major may refuse the stream.
            message_id: Wins over the id that the source names; without both, `generate_id` makes one.
            generate_id: Makes the id of the message where nobody gave one.
            continued: The assistant message at the end of the client's request, whose id and calls go on.
            tools: `dynamic-tool` parts, or `tool-<name>` parts for pages that declare their tools.
            strict: Raise StreamStateError where an event would be skipped (R-O23).
        """
        self.release = sdk_version(version)
        self.losses: list[Loss] = []
        """What could not be told to the client, at the number of its event; at most `MOST_LOSSES`."""
        self.skipped = 0
        """How many events made no sense."""
        self.closed = False
        self._strict = strict
        self._message_id = message_id if continued is None else continued.id
        self._generate_id = generate_id
        self._tools = ToolCalls(self.release, self._lose, dynamic=tools == "dynamic", continued=continued)
        self._features = frozenset(name for name in _FEATURES if supports(self.release, name))
        self._out: Chunks = []
        self._event = -1
        self._started = self._in_step = self._failed = False
        self._parts = OpenParts(self._lose, strict=strict)
        self._content = Content(self.release, self._lose)
        self._steps = Steps(continued)

    @property
    def message_id(self) -> str | None:
        """The id of the message, once the stream has begun."""
        return self._message_id if self._started else None

    def write(self, event: StreamEvent, lane: str = "") -> Chunks:
        """The chunks of one event; none for one that is skipped or says nothing new."""
        if type(event) is TextDelta and not self.closed:
            part = self._parts.text(event.id, lane)
            if part is not None and type(event.delta) is str and event.delta:
                self._event += 1
                return [TextDeltaChunk(id=part.chunk_id, delta=event.delta)]
        return self._write_any(event, lane)

    def growing(self, event: Start | Delta) -> TextDeltaChunk | ReasoningDeltaChunk | None:
        """A delta without text of the part of an event, if it is open now: others tell the same of its next deltas."""
        return None if self.closed else self._parts.growing(event)

    def pass_by(self, number: int) -> None:
        """So many deltas of an open part were told without `write`."""
        self._event += number

    def close(self) -> Chunks:
        """End the stream whose source is exhausted; does nothing where it has ended already."""
        if self.closed:
            return []
        interrupted = "interrupted" if "finish-reason-interrupted" in self._features else "other"
        self._finish("error" if self._failed else interrupted, self._steps.metadata())
        return self._taken()

    def fail(self, error_text: str = FAILED) -> Chunks:
        """End the stream whose source has broken down."""
        return [*self.write(events.StreamError(error_text=error_text)), *self.close()]

    def abort(self, reason: str | None = None) -> Chunks:
        """End the stream that was stopped from outside."""
        return self.write(events.Abort(reason=reason)) if not self.closed else []

    # The way of an event

    def _write_any(self, event: StreamEvent, lane: str) -> Chunks:
        self._event += 1
        kind = type(event)
        try:
            if self.closed:
                raise RefusedEvent("the stream has ended")
            handler = _HANDLERS.get(kind)
            if handler is None:
                raise RefusedEvent(f"{kind.__name__} is no event of a stream")
            check_fields(cast("Struct", event))
            handler(self, event, lane)
        except (RefusedEvent, UnusableValue) as refusal:
            self._refuse(event, str(refusal))
        except Exception as error:  # A source may build anything; no event may end the stream.
            self._refuse(event, f"{type(error).__name__}: {error}")
        return self._taken()

    def _refuse(self, event: object, reason: str) -> None:
        name = type(event).__name__
        logger.warning("event %d (%s) of a stream was skipped: %s", self._event, name, reason)
        self.skipped += 1
        if self._strict:
            raise StreamStateError(f"event {self._event} ({name}): {reason}", chunk_type=name)
        self._lose("event", f"{name} was skipped: {reason}")

    def _lose(self, feature: str, reason: str) -> None:
        if len(self.losses) < MOST_LOSSES:
            self.losses.append(Loss(feature=feature, path=f"$[{self._event}]", reason=reason))

    def _taken(self) -> Chunks:
        out, self._out = self._out, []
        return out

    def _send(self, chunk: UIMessageChunk) -> None:
        if not self._started:
            self._begin({})
        self._out.append(chunk)

    def _send_all(self, chunks: Iterable[UIMessageChunk]) -> None:
        for chunk in chunks:
            self._send(chunk)

    # The message

    def _run_start(self, event: events.RunStart, lane: str) -> None:
        metadata = plain_json(event.metadata)
        if not self._started:
            self._message_id = self._message_id or event.message_id
            self._begin(metadata)
            return
        if event.message_id not in (None, self._message_id):
            self._lose("message-id", "the message has another id already; what follows goes on in it")
        if metadata:
            self._send(MessageMetadataChunk(message_metadata=metadata))

    def _begin(self, metadata: dict[str, Any]) -> None:
        self._started = True
        self._message_id = self._message_id or self._generate_id()
        self._out.append(StartChunk(message_id=self._message_id, message_metadata=metadata or UNSET))

    def _run_finish(self, event: events.RunFinish, lane: str) -> None:
        metadata = dict(plain_json(event.metadata))
        reason = None if event.stop_reason is None else FINISH_REASONS[event.stop_reason]
        left_to_client = event.stop_reason in ("tool_use", "pause")
        steps = self._steps.metadata(event.usage)
        if "usage" in metadata:
            steps.pop("usage", None)
        self._finish("error" if self._failed else reason, metadata | steps, waits=left_to_client)

    def _pause(self, event: events.Pause, lane: str) -> None:
        self._finish("tool-calls" if self._tools.any_waiting else "other", self._steps.metadata(), waits=True)

    def _finish(self, reason: FinishReason | None, metadata: dict[str, Any], *, waits: bool = False) -> None:
        self._settle(waits=waits)
        told = UNSET if reason is None or "finish-reason" not in self._features else reason
        self._send(FinishChunk(finish_reason=told, message_metadata=metadata or UNSET))
        self.closed = True

    def _stream_error(self, event: events.StreamError, lane: str) -> None:
        """The client reads nothing after an error, so everything is closed before; a run may go on nevertheless."""
        self._send_all(self._parts.end_all())
        self._send_all(self._tools.abort_waiting())
        self._failed = True
        self._send(ErrorChunk(error_text=event.error_text or FAILED))

    def _abort(self, event: events.Abort, lane: str) -> None:
        self._settle(waits=False)
        self._steps.abort()
        metadata = self._steps.metadata()
        if metadata:
            self._send(MessageMetadataChunk(message_metadata=metadata))
        reason = event.reason if event.reason is not None and "abort-reason" in self._features else UNSET
        self._send(AbortChunk(reason=reason))
        self.closed = True

    def _settle(self, *, waits: bool) -> None:
        self._send_all(self._parts.end_all())
        self._send_all(self._tools.keep_waiting() if waits else self._tools.abort_waiting())
        self._end_step()

    # Steps

    def _step_start(self, event: events.StepStart, lane: str) -> None:
        self._end_step()
        self._send(StartStepChunk())
        self._in_step = True
        self._steps.start(event)

    def _step_finish(self, event: events.StepFinish, lane: str) -> None:
        if not self._in_step:
            raise RefusedEvent("no step has begun")
        self._steps.finish(event)
        self._end_step()

    def _end_step(self) -> None:
        self._send_all(self._parts.end_all())
        self._send_all(self._tools.complete_inputs())
        if self._in_step:
            self._in_step = False
            self._send(FinishStepChunk())

    # What a message holds

    def _part_start(self, event: Start, lane: str) -> None:
        self._send_all(self._parts.start(event, lane))

    def _part_delta(self, event: Delta, lane: str) -> None:
        self._send_all(self._parts.delta(event, lane))

    def _part_end(self, event: End, lane: str) -> None:
        self._send_all(self._parts.end(event, lane))

    def _tool_input(self, event: events.ToolInputStart | events.ToolInputAvailable, lane: str) -> None:
        tools = self._tools
        chunks = tools.start_input(event) if isinstance(event, events.ToolInputStart) else tools.complete_input(event)
        self._send_all(self._parts.end_lane(lane))
        self._send_all(chunks)

    def _tool_step(self, event: StreamEvent, lane: str) -> None:
        self._send_all(_TOOL_STEPS[type(event)](self._tools, event))

    def _file(self, event: events.FileEvent, lane: str) -> None:
        chunk = self._content.file(event)
        self._send_all(self._parts.end_lane(lane))
        self._send(chunk)

    def _source(self, event: events.SourceEvent, lane: str) -> None:
        chunk = self._content.source(event)
        self._send_all(self._parts.end_lane(lane))
        self._send(chunk)

    def _data(self, event: events.DataEvent, lane: str) -> None:
        chunk, is_part = self._content.data(event)
        if is_part:
            self._send_all(self._parts.end_lane(lane))
        self._send(chunk)


def write_chunks(stream: Iterable[StreamEvent], writer: ChunkWriter) -> Iterator[UIMessageChunk]:
    """The chunks of events that are at hand, to the end of the stream."""
    for event in stream:
        yield from writer.write(event)
        if writer.closed:
            return
    yield from writer.close()


_FEATURES = ("abort-reason", "finish-reason", "finish-reason-interrupted")

_TOOL_STEPS: dict[type, Callable[[ToolCalls, Any], Chunks]] = {
    events.ToolInputDelta: ToolCalls.add_input,
    events.ToolOutput: ToolCalls.add_output,
    events.ApprovalRequest: ToolCalls.ask,
    events.ApprovalResponse: ToolCalls.answer,
}
"""Events that change a call and leave the open parts alone."""

# pyright: reportPrivateUsage=false
_HANDLERS: dict[type, Callable[[ChunkWriter, Any, str], None]] = {
    events.RunStart: ChunkWriter._run_start,
    events.RunFinish: ChunkWriter._run_finish,
    events.StepStart: ChunkWriter._step_start,
    events.StepFinish: ChunkWriter._step_finish,
    **dict.fromkeys((events.TextStart, events.ReasoningStart), ChunkWriter._part_start),
    **dict.fromkeys((events.TextDelta, events.ReasoningDelta), ChunkWriter._part_delta),
    **dict.fromkeys((events.TextEnd, events.ReasoningEnd), ChunkWriter._part_end),
    **dict.fromkeys((events.ToolInputStart, events.ToolInputAvailable), ChunkWriter._tool_input),
    **dict.fromkeys(_TOOL_STEPS, ChunkWriter._tool_step),
    events.FileEvent: ChunkWriter._file,
    events.SourceEvent: ChunkWriter._source,
    events.DataEvent: ChunkWriter._data,
    events.StreamError: ChunkWriter._stream_error,
    events.Abort: ChunkWriter._abort,
    events.Pause: ChunkWriter._pause,
}
"""Every event of the vocabulary -> what tells it."""
