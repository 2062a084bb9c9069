"""Messages that grow in a store -> StreamEvents, each thing once: what was told before is not told again.

Messages come in order, again and again as they are by now. A text that was rewritten goes on as it was told; the page
has the stored one when it loads the session anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from turnlog.model import Message, Part, ReasoningPart, TextPart, ToolCallPart, ToolState
from turnlog.model.stream import (
    ApprovalRequest,
    ReasoningEnd,
    StepFinish,
    StepStart,
    StreamEvent,
    TextEnd,
)
from turnlog.providers.streaming import part_delta, part_start, part_whole, tool_output


class Telling:
    """Tells the assistant's messages of one turn."""

    def __init__(self) -> None:
        """Nothing is told yet."""
        self._step: Message | None = None
        """The newest message that was told of, as it was then."""
        self._begun: set[str] = set()
        self._lengths: dict[str, int] = {}
        """Part -> how much of its text was told; every part that was begun is in it."""
        self._results: dict[str, set[str]] = {}
        """Tool call -> the results that were told, and the question."""

    def tell(self, messages: Iterable[Message]) -> Iterator[StreamEvent]:
        """What is new of these messages."""
        for message in messages:
            if message.id not in self._begun:
                yield from self.end_step()
                self._begun.add(message.id)
                yield StepStart(model=message.model, response_id=message.response_id)
                self._step = message
            elif self._step is not None and self._step.id == message.id:
                self._step = message
            for number, part in enumerate(message.parts):
                is_last = number == len(message.parts) - 1 and message.stop_reason is None
                yield from self._tell_part(replace(part, id=part.id or f"{message.id}/{number}"), is_last=is_last)

    def end_step(self) -> Iterator[StreamEvent]:
        """The newest message is complete."""
        step, self._step = self._step, None
        if step is not None:
            yield StepFinish(stop_reason=step.stop_reason, raw_stop_reason=step.raw_stop_reason, usage=step.usage)

    def _tell_part(self, part: Part, *, is_last: bool) -> Iterator[StreamEvent]:
        if isinstance(part, ToolCallPart):
            yield from self._tell_call(part)
        elif isinstance(part, TextPart | ReasoningPart):
            yield from self._tell_text(part, is_last=is_last)
        elif part.id is not None and part.id not in self._lengths:
            self._lengths[part.id] = 0
            yield from part_whole(part)

    def _tell_text(self, part: TextPart | ReasoningPart, *, is_last: bool) -> Iterator[StreamEvent]:
        name, told = part.id or "", self._lengths.get(part.id or "")
        if told == _ENDED:
            return
        if told is None:
            yield from part_start(part)
        yield from part_delta(part, part.text[told or 0 :])
        self._lengths[name] = len(part.text)
        if not is_last:
            self._lengths[name] = _ENDED
            end = TextEnd if isinstance(part, TextPart) else ReasoningEnd
            yield end(id=name, provider=part.provider)

    def _tell_call(self, call: ToolCallPart) -> Iterator[StreamEvent]:
        told = self._results.get(call.tool_call_id)
        if told is None and call.state is ToolState.INPUT_STREAMING and not call.results:
            return
        if told is None:
            told = self._results[call.tool_call_id] = set()
            yield from part_whole(replace(call, results=()))
        approval = call.approval
        asks = call.state is ToolState.APPROVAL_REQUESTED and approval is not None and approval.id is not None
        if asks and approval is not None and _QUESTION not in told:
            told.add(_QUESTION)
            yield ApprovalRequest(approval_id=approval.id or "", tool_call_id=call.tool_call_id)
        for result in call.results:
            if result.id not in told:
                told.add(result.id)
                yield from tool_output(call, result)


_ENDED = -1
_QUESTION = ""
