"""Messages that grow -> stream events: what is new of them since they were last seen, everything once.

The same messages come again and again, each time as they are by now: those of a store whose log grows (`tail`), and
those that an agent's fold makes of what it prints (`runtimes`). One assistant message is one step. The results of its
calls belong to it, so a step ends only when the next begins.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from turnlog.model import Message, Part, ReasoningPart, TextPart, ToolCallPart, ToolResult, ToolState
from turnlog.model.stream import ApprovalRequest, StepFinish, StepStart, StreamEvent, ToolOutput
from turnlog.providers.streaming import part_delta, part_end, part_start, part_whole

Events = list[StreamEvent]


class MessageDiffer:
    """Compares the assistant messages of one stream with what was sent of them."""

    def __init__(self, is_growing: Callable[[Message, int], bool]) -> None:
        """Start with nothing sent.

        Args:
            is_growing: Whether the text or reasoning part at this index of a message may still get longer.
        """
        self.finish = StepFinish()
        """How the running step will end, as far as is known."""
        self._is_growing = is_growing
        self._step: str | None = None
        """Id of the message whose step is running."""
        self._messages: set[str] = set()
        self._external: set[str] = set()
        """Messages whose text and inputs another source sends."""
        self._lengths: dict[str, int] = {}
        """Part -> how many characters of its text were sent."""
        self._ended: set[str] = set()
        self._calls: set[str] = set()
        self._inputs: set[str] = set()
        self._requests: set[str] = set()
        """Calls whose permission request was sent."""
        self._results: set[tuple[str, str | None]] = set()

    def diff(self, message: Message) -> Events:
        """The events of what is new in a message."""
        found: Events = []
        is_own = message.id not in self._external
        if is_own and message.id not in self._messages:
            self._messages.add(message.id)
            found = self._begin(message.id, StepStart(model=message.model, response_id=message.response_id))
        if is_own and message.id == self._step:
            self.finish = StepFinish(
                stop_reason=message.stop_reason or self.finish.stop_reason,
                raw_stop_reason=message.raw_stop_reason or self.finish.raw_stop_reason,
                usage=message.usage or self.finish.usage,
            )
        for index, part in enumerate(message.parts):
            if isinstance(part, ToolCallPart):
                found += self._diff_call(part)
            elif is_own:
                named = part if part.id is not None else replace(part, id=f"{message.id}/{index}")
                found += self._diff_part(named, is_growing=self._is_growing(message, index))
        return found

    def diff_result(self, tool_call_id: str, result: ToolResult) -> Events:
        """The event of a result that comes without its message."""
        key = (tool_call_id, result.id)
        if key in self._results:
            return []
        self._results.add(key)
        return [ToolOutput(tool_call_id=tool_call_id, result=result)]

    def end_step(self) -> Events:
        """End the running step, if there is one."""
        if self._step is None:
            return []
        finish, self._step, self.finish = self.finish, None, StepFinish()
        return [finish]

    # -- what another source sends of the same messages

    def begin_external(self, message_id: str, start: StepStart) -> Events:
        """Begin a step whose text and inputs another source sends; only results of its calls are sent from here."""
        self._external.add(message_id)
        return self._begin(message_id, start)

    def note_call(self, tool_call_id: str) -> None:
        """Another source has sent the start of a call."""
        self._calls.add(tool_call_id)

    def note_input(self, tool_call_id: str) -> bool:
        """Another source has the input of a call; whether it was not sent yet."""
        is_new = tool_call_id not in self._inputs
        self._inputs.add(tool_call_id)
        return is_new

    # -- steps and parts

    def _begin(self, message_id: str, start: StepStart) -> Events:
        ended = self.end_step()
        self._step = message_id
        return [*ended, start]

    def _diff_part(self, part: Part, *, is_growing: bool) -> Events:
        part_id = part.id or ""
        if part_id in self._ended:
            return []
        if not isinstance(part, TextPart | ReasoningPart):
            self._ended.add(part_id)
            return part_whole(part)
        length = self._lengths.get(part_id)
        found = part_start(part) if length is None else []
        # A text that was rewritten, and not only got longer, is continued from the length that was sent. The page has
        # the stored text when it loads the session again.
        found += part_delta(part, part.text[length or 0 :])
        self._lengths[part_id] = max(length or 0, len(part.text))
        if not is_growing:
            self._ended.add(part_id)
            # Without the citations of `part_end`: they would be separate sources.
            found += part_end(part)[:1]
        return found

    def _diff_call(self, call: ToolCallPart) -> Events:
        call_id = call.tool_call_id
        if call_id not in self._inputs and call.state is ToolState.INPUT_STREAMING and not call.results:
            return []
        found: Events = []
        if call_id not in self._calls:
            self._calls.add(call_id)
            found += part_start(call)
        if self.note_input(call_id):
            found += part_end(replace(call, results=()))
        approval_id = None if call.approval is None else call.approval.id
        is_requested = call.state is ToolState.APPROVAL_REQUESTED and approval_id is not None
        if is_requested and call_id not in self._requests:
            self._requests.add(call_id)
            found.append(ApprovalRequest(approval_id=approval_id or "", tool_call_id=call_id))
        for result in call.results:
            found += self.diff_result(call_id, result)
        return found
