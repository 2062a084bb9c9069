"""The chunks that end a stream whose writer is gone: what a killed server has left becomes a valid message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import UNSET, UnsetType

from turnlog.aisdk.chunks import (
    AbortChunk,
    FinishChunk,
    FinishReason,
    FinishStepChunk,
    ReasoningEndChunk,
    ReasoningStartChunk,
    StartChunk,
    StartStepChunk,
    TextEndChunk,
    TextStartChunk,
    UIMessageChunk,
)
from turnlog.aisdk.tool_chunks import (
    ToolApprovalRequestChunk,
    ToolApprovalResponseChunk,
    ToolInputAvailableChunk,
    ToolInputErrorChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
)
from turnlog.aisdk.versions import Version, supports
from turnlog.aisdk.writer_tools import ABORTED

_ENDS = {TextStartChunk: TextEndChunk, ReasoningStartChunk: ReasoningEndChunk}
_ANSWERS = (ToolOutputAvailableChunk, ToolOutputErrorChunk, ToolOutputDeniedChunk, ToolInputErrorChunk)


def closing_chunks(chunks: Iterable[UIMessageChunk], version: Version = 7) -> list[UIMessageChunk]:
    """What must follow these chunks of a writer so that the stream ends; nothing where it has ended.

    Parts end, calls without an output become errors that say so, and the message finishes as interrupted. A call that
    was refused is denied, and a question that nobody has answered stays open.
    """
    unfinished = _Unfinished()
    for chunk in chunks:
        unfinished.see(chunk)
    return [] if unfinished.ended else unfinished.rest(version)


class _Unfinished:
    """What a client has seen begin and not end."""

    def __init__(self) -> None:
        self.ended = False
        self._started = self._in_step = False
        self._parts: dict[tuple[type, str], UIMessageChunk] = {}
        self._calls: dict[str, bool | UnsetType] = {}
        """Call without an output -> whether its part is dynamic."""
        self._asked: dict[str, str] = {}
        """Approval that nobody has answered -> its call."""
        self._refused = set[str]()

    def see(self, chunk: UIMessageChunk) -> None:
        """Take the next chunk into account."""
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
            self._asked[chunk.approval_id] = chunk.tool_call_id
        elif isinstance(chunk, ToolApprovalResponseChunk):
            call = self._asked.pop(chunk.approval_id, None)
            if call is not None and not chunk.approved:
                self._refused.add(call)
        elif isinstance(chunk, StartStepChunk | FinishStepChunk):
            self._in_step = isinstance(chunk, StartStepChunk)
        elif isinstance(chunk, FinishChunk | AbortChunk):
            self.ended = True

    def rest(self, version: Version) -> list[UIMessageChunk]:
        """Everything that is missing."""
        reason: FinishReason = "interrupted" if supports(version, "finish-reason-interrupted") else "other"
        return [
            *([] if self._started else [StartChunk()]),
            *self._parts.values(),
            *self._ends_of_calls(),
            *([FinishStepChunk()] if self._in_step else []),
            FinishChunk(finish_reason=reason if supports(version, "finish-reason") else UNSET),
        ]

    def _ends_of_calls(self) -> Iterator[UIMessageChunk]:
        open_ = set(self._asked.values())
        for call, dynamic in self._calls.items():
            if call in self._refused:
                yield ToolOutputDeniedChunk(tool_call_id=call)
            elif call not in open_:
                yield ToolOutputErrorChunk(tool_call_id=call, error_text=ABORTED, dynamic=dynamic)
