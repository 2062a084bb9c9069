"""What each event of one stream tells of its message: the chunks, in an order that the client accepts.

Parts, calls, steps and contents know their own rules; here they are put in order, and the message begins and ends.
Which events come in, and what becomes of one that makes no sense, is `turnlog.aisdk.writer`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import UNSET

from turnlog.aisdk.chunks import (
    AbortChunk,
    ErrorChunk,
    FinishChunk,
    FinishReason,
    FinishStepChunk,
    MessageMetadataChunk,
    StartChunk,
    StartStepChunk,
    UIMessageChunk,
)
from turnlog.aisdk.parts import UIMessage
from turnlog.aisdk.versions import SdkVersion, supports
from turnlog.aisdk.writer_base import FAILED, Chunks, Lose, RefusedEvent
from turnlog.aisdk.writer_content import Content
from turnlog.aisdk.writer_parts import Delta, End, OpenParts, Start
from turnlog.aisdk.writer_steps import Steps
from turnlog.aisdk.writer_tools import ToolCalls
from turnlog.aisdk.writer_values import FINISH_REASONS, plain_json
from turnlog.model import stream as events
from turnlog.model.stream import StreamEvent


class MessageTeller:
    """The state of one message; each method takes an event and its lane, and raises RefusedEvent for nonsense."""

    def __init__(
        self,
        release: SdkVersion,
        lose: Lose,
        *,
        message_id: str | None,
        generate_id: Callable[[], str],
        continued: UIMessage | None,
        dynamic: bool,
        strict: bool,
    ) -> None:
        """Tell a message to a release; the arguments are those of `ChunkWriter`."""
        self.closed = False
        """Whether the stream has ended."""
        self.parts = OpenParts(lose, strict=strict)
        self._lose = lose
        self._message_id = message_id if continued is None else continued.id
        self._generate_id = generate_id
        self._tools = ToolCalls(release, lose, dynamic=dynamic, continued=continued)
        self._features = frozenset(name for name in _FEATURES if supports(release, name))
        self._out: Chunks = []
        self._started = self._in_step = self._failed = False
        self._content = Content(release, lose)
        self._steps = Steps(continued)

    @property
    def message_id(self) -> str | None:
        """The id of the message, once the stream has begun."""
        return self._message_id if self._started else None

    def taken(self) -> Chunks:
        """The chunks that were not taken yet."""
        out, self._out = self._out, []
        return out

    def exhausted(self) -> None:
        """The source has ended without a word."""
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
        """The run begins: its message does, or goes on."""
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

    def run_finish(self, event: events.RunFinish, lane: str) -> None:
        """The run ended by itself."""
        metadata = dict(plain_json(event.metadata))
        reason = None if event.stop_reason is None else FINISH_REASONS[event.stop_reason]
        left_to_client = event.stop_reason in ("tool_use", "pause")
        steps = self._steps.metadata(event.usage)
        if "usage" in metadata:
            steps.pop("usage", None)
        self._finish("error" if self._failed else reason, metadata | steps, waits=left_to_client)

    def pause(self, event: events.Pause, lane: str) -> None:
        """The run waits for the client."""
        self._finish("tool-calls" if self._tools.any_waiting else "other", self._steps.metadata(), waits=True)

    def _finish(self, reason: FinishReason | None, metadata: dict[str, Any], *, waits: bool = False) -> None:
        self._settle(waits=waits)
        told = UNSET if reason is None or "finish-reason" not in self._features else reason
        self._send(FinishChunk(finish_reason=told, message_metadata=metadata or UNSET))
        self.closed = True

    def stream_error(self, event: events.StreamError, lane: str) -> None:
        """The client reads nothing after an error, so everything is closed before; a run may go on nevertheless."""
        self._send_all(self.parts.end_all())
        self._send_all(self._tools.abort_waiting())
        self._failed = True
        self._send(ErrorChunk(error_text=event.error_text or FAILED))

    def abort(self, event: events.Abort, lane: str) -> None:
        """The run was stopped."""
        self._settle(waits=False)
        self._steps.abort()
        metadata = self._steps.metadata()
        if metadata:
            self._send(MessageMetadataChunk(message_metadata=metadata))
        reason = event.reason if event.reason is not None and "abort-reason" in self._features else UNSET
        self._send(AbortChunk(reason=reason))
        self.closed = True

    def _settle(self, *, waits: bool) -> None:
        self._send_all(self.parts.end_all())
        self._send_all(self._tools.keep_waiting() if waits else self._tools.abort_waiting())
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
        self._send_all(self.parts.end_all())
        self._send_all(self._tools.complete_inputs())
        if self._in_step:
            self._in_step = False
            self._send(FinishStepChunk())

    # What a message holds

    def part_start(self, event: Start, lane: str) -> None:
        """A text or a thought begins."""
        self._send_all(self.parts.start(event, lane))

    def part_delta(self, event: Delta, lane: str) -> None:
        """A text or a thought grows."""
        self._send_all(self.parts.delta(event, lane))

    def part_end(self, event: End, lane: str) -> None:
        """A text or a thought is complete."""
        self._send_all(self.parts.end(event, lane))

    def tool_input(self, event: events.ToolInputStart | events.ToolInputAvailable, lane: str) -> None:
        """A call begins, or is complete."""
        tools = self._tools
        chunks = tools.start_input(event) if isinstance(event, events.ToolInputStart) else tools.complete_input(event)
        self._send_all(self.parts.end_lane(lane))
        self._send_all(chunks)

    def tool_step(self, event: StreamEvent, lane: str) -> None:
        """A call goes on; the open parts stay as they are."""
        self._send_all(_TOOL_STEPS[type(event)](self._tools, event))

    def file(self, event: events.FileEvent, lane: str) -> None:
        """A file is there."""
        chunk = self._content.file(event)
        self._send_all(self.parts.end_lane(lane))
        self._send(chunk)

    def source(self, event: events.SourceEvent, lane: str) -> None:
        """A source was used."""
        chunk = self._content.source(event)
        self._send_all(self.parts.end_lane(lane))
        self._send(chunk)

    def data(self, event: events.DataEvent, lane: str) -> None:
        """The application tells something of its own."""
        chunk, is_part = self._content.data(event)
        if is_part:
            self._send_all(self.parts.end_lane(lane))
        self._send(chunk)


_FEATURES = ("abort-reason", "finish-reason", "finish-reason-interrupted")

_TOOL_STEPS: dict[type, Callable[[ToolCalls, Any], Chunks]] = {
    events.ToolInputDelta: ToolCalls.add_input,
    events.ToolOutput: ToolCalls.add_output,
    events.ApprovalRequest: ToolCalls.ask,
    events.ApprovalResponse: ToolCalls.answer,
}
"""Events that change a call and leave the open parts alone."""

HANDLERS: dict[type, Callable[[MessageTeller, Any, str], None]] = {
    events.RunStart: MessageTeller.run_start,
    events.RunFinish: MessageTeller.run_finish,
    events.StepStart: MessageTeller.step_start,
    events.StepFinish: MessageTeller.step_finish,
    **dict.fromkeys((events.TextStart, events.ReasoningStart), MessageTeller.part_start),
    **dict.fromkeys((events.TextDelta, events.ReasoningDelta), MessageTeller.part_delta),
    **dict.fromkeys((events.TextEnd, events.ReasoningEnd), MessageTeller.part_end),
    **dict.fromkeys((events.ToolInputStart, events.ToolInputAvailable), MessageTeller.tool_input),
    **dict.fromkeys(_TOOL_STEPS, MessageTeller.tool_step),
    events.FileEvent: MessageTeller.file,
    events.SourceEvent: MessageTeller.source,
    events.DataEvent: MessageTeller.data,
    events.StreamError: MessageTeller.stream_error,
    events.Abort: MessageTeller.abort,
    events.Pause: MessageTeller.pause,
}
"""Every event of the vocabulary -> what tells it."""
