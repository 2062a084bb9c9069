"""What an agent prints of its session as StreamEvents: its own fold reads the lines, and what is new of them is told.

One message of the model is one step. Results belong to the step of their call, so a step ends when the next begins. Of
subagents only what comes back to the main session is told.
"""

from __future__ import annotations

from msgspec import UNSET

from turnlog.agents import agent as agent_named
from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.model import (
    ErrorEvent,
    FilePart,
    Message,
    Part,
    ReasoningPart,
    SourceDocumentPart,
    SourceUrlPart,
    TextPart,
    ToolCallPart,
    ToolResult,
)
from turnlog.model.stream import (
    FileEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    SourceEvent,
    StepFinish,
    StepStart,
    StreamEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolInputAvailable,
    ToolInputStart,
    ToolOutput,
)

Told = list[StreamEvent]


class Telling:
    """Tells of one stream."""

    def __init__(self, agent: str) -> None:
        """Begin with nothing of this agent's."""
        source = Source(agent=agent, path="-", root="", kind=SourceKind.STREAM)
        self._fold = agent_named(agent).fold(source)
        self._offset = 0
        self.session_id: str | None = None
        """Id of the main session."""
        self.error: str | None = None
        """What failed last, outside of any call."""
        self.finish = StepFinish()
        """How the step that runs will have ended."""
        self._step: str | None = None
        self._own: set[str] = set()
        self._foreign: set[str] = set()
        """Messages of which somebody else tells."""
        self._lengths: dict[str, int] = {}
        self._ended: set[str] = set()
        self._calls: set[str] = set()
        self._inputs: set[str] = set()
        self._results: set[tuple[str, str | None]] = set()

    def feed(self, line: bytes) -> Told:
        """What a line tells."""
        data = line + b"\n"
        changes = self._fold.feed(data, self._offset)
        self._offset += len(data)
        return self._tell(changes)

    def begin_step(self, message_id: str, start: StepStart) -> Told:
        """A message begins that somebody else tells of; only results of its calls are still told here."""
        self._foreign.add(message_id)
        return self._open(message_id, start)

    def note_start(self, tool_call_id: str) -> None:
        """Somebody else has told that a call begins."""
        self._calls.add(tool_call_id)

    def note_input(self, tool_call_id: str) -> bool:
        """Somebody else has the input of a call; whether nobody has told of it yet."""
        is_new = tool_call_id not in self._inputs
        self._inputs.add(tool_call_id)
        return is_new

    def end_step(self) -> Told:
        """The step that runs is over."""
        if self._step is None:
            return []
        told, self._step, self.finish = self.finish, None, StepFinish()
        return [told]

    def _open(self, message_id: str, start: StepStart) -> Told:
        told = self.end_step()
        self._step = message_id
        return [*told, start]

    def _tell(self, changes: Changes) -> Told:
        if self.session_id is None:
            self.session_id = next(iter(changes.sessions), None)
        told: Told = []
        for change in changes.messages:
            if change.placement.session_id == self.session_id and change.message.role == "assistant":
                told += self._message(change.message)
        for late in changes.results:
            if late.session_id == self.session_id:
                told += self._output(late.tool_call_id, late.result)
        for event in changes.events:
            if isinstance(event.event, ErrorEvent):
                self.error = event.event.error_text
        return told

    def _message(self, message: Message) -> Told:
        told: Told = []
        is_own = message.id not in self._foreign
        if is_own and message.id not in self._own:
            self._own.add(message.id)
            told = self._open(message.id, StepStart(model=message.model, response_id=message.response_id))
        if is_own and message.id == self._step:
            self.finish = StepFinish(
                stop_reason=message.stop_reason or self.finish.stop_reason,
                raw_stop_reason=message.raw_stop_reason or self.finish.raw_stop_reason,
                usage=message.usage or self.finish.usage,
            )
        for part in message.parts:
            told += self._part(part, is_own=is_own)
        return told

    def _part(self, part: Part, *, is_own: bool) -> Told:
        if isinstance(part, ToolCallPart):
            return [
                *self._call(part),
                *(event for result in part.results for event in self._output(part.tool_call_id, result)),
            ]
        if not is_own or part.id is None:
            return []
        if isinstance(part, TextPart | ReasoningPart):
            return self._text(part, part.id)
        if part.id in self._ended:
            return []
        self._ended.add(part.id)
        if isinstance(part, FilePart):
            return [FileEvent(file=part)]
        return [SourceEvent(source=part)] if isinstance(part, SourceUrlPart | SourceDocumentPart) else []

    def _text(self, part: TextPart | ReasoningPart, part_id: str) -> Told:
        if part_id in self._ended:
            return []
        is_text = isinstance(part, TextPart)
        told: Told = []
        length = self._lengths.get(part_id)
        if length is None:
            told.append(TextStart(id=part_id) if is_text else ReasoningStart(id=part_id))
        more = part.text[length or 0 :]
        self._lengths[part_id] = max(length or 0, len(part.text))
        if more:
            told.append(TextDelta(id=part_id, delta=more) if is_text else ReasoningDelta(id=part_id, delta=more))
        if part.state != "streaming":
            self._ended.add(part_id)
            provider = part.provider
            told.append(
                TextEnd(id=part_id, provider=provider) if is_text else ReasoningEnd(id=part_id, provider=provider)
            )
        return told

    def _call(self, part: ToolCallPart) -> Told:
        told: Told = []
        name, executed = part.tool_name, part.provider_executed
        if part.tool_call_id not in self._calls:
            self._calls.add(part.tool_call_id)
            told.append(ToolInputStart(tool_call_id=part.tool_call_id, tool_name=name, provider_executed=executed))
        is_whole = part.input is not UNSET or part.input_text is not None or bool(part.results)
        if is_whole and part.tool_call_id not in self._inputs:
            self._inputs.add(part.tool_call_id)
            told.append(
                ToolInputAvailable(
                    tool_call_id=part.tool_call_id,
                    tool_name=name,
                    input=part.input,
                    input_text=part.input_text,
                    provider_executed=executed,
                    provider=part.provider,
                )
            )
        return told

    def _output(self, tool_call_id: str, result: ToolResult) -> Told:
        key = (tool_call_id, result.id)
        if key in self._results:
            return []
        self._results.add(key)
        return [ToolOutput(tool_call_id=tool_call_id, result=result)]
