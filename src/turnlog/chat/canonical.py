"""The canonical messages of an answer: the steps that its UI message shows, each exactly as it was said and sent.

A UI message shows JSON of tools parsed, several contents as one value, and nothing of what only a provider needs. The
next request must begin with the last one byte for byte, so the chat keeps canonical messages, and the UI message is a
view of them. It carries them in its metadata (`aisdk.convert`), in a form from which they are restored exactly.
`with_steps` makes such a message. Where neither the stored message nor the events of the run say more than the UI
message, the steps are made of its parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from turnlog.aisdk.convert import to_ui_messages
from turnlog.aisdk.metadata import KEY
from turnlog.aisdk.parts import ReasoningUIPart, StepStartUIPart, UIMessage, UIMessagePart
from turnlog.chat.conversion import carries_steps, step_numbers, to_canonical, to_steps
from turnlog.model import (
    Approval,
    FilePart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolState,
)
from turnlog.model.base import RawJson
from turnlog.model.merge import add_results
from turnlog.model.stream import StepFinish, StreamEvent, ToolInputAvailable, ToolOutput


class StepRecord:
    """What the events of a run said that the parts of a UI message have no place for."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.messages: dict[int, Message] = {}
        """Number of a step, from 0 -> the message of its model."""
        self.inputs: dict[str, ToolInputAvailable] = {}
        self.results: dict[str, list[ToolResult]] = {}
        """Call -> its final results."""

    def add(self, event: StreamEvent, step: int) -> None:
        """Keep what an event said; `step` is the number of the step in which it came."""
        if isinstance(event, StepFinish) and event.message is not None:
            self.messages[step] = event.message
        elif isinstance(event, ToolInputAvailable):
            self.inputs.setdefault(event.tool_call_id, event)
        elif isinstance(event, ToolOutput) and not event.result.preliminary:
            self.results.setdefault(event.tool_call_id, []).append(event.result)


def exact_steps(shown: UIMessage, stored: Sequence[Message] = (), record: StepRecord | None = None) -> list[Message]:
    """The canonical messages of a UI message.

    Args:
        shown: As a page has it.
        stored: The canonical messages of its first steps.
        record: What the events said that made the others.
    """
    record = StepRecord() if record is None else record
    known = [step for step in stored if step.role == "assistant" and step.parts]
    numbers = step_numbers(shown)
    steps: list[Message] = []
    for index, step in enumerate(step for step in to_steps(shown) if step.role == "assistant"):
        exact = record.messages.get(next(numbers, -1)) or (known[index] if index < len(known) else None)
        steps.append(_Step(step, record).joined(exact))
    # A page steers from within an answer; such messages stay between its steps.
    made = iter(steps)
    return [next(made) if step.role == "assistant" else step for step in to_steps(shown)]


def with_steps(shown: UIMessage, steps: Iterable[Message]) -> UIMessage:
    """The UI message of canonical messages, which it carries; `shown` is the same as a page has it."""
    made = to_ui_messages(steps).messages
    if len(made) != 1:
        return shown
    parts = made[0].parts
    if parts and not (shown.parts and isinstance(shown.parts[0], StepStartUIPart)):
        parts = parts[1:]
    if len(parts) == len(shown.parts):
        parts = tuple([_with_chunk_id(part, other) for part, other in zip(parts, shown.parts, strict=True)])
    return replace(made[0], id=shown.id, parts=parts)


def _with_chunk_id(part: UIMessagePart, shown: UIMessagePart) -> UIMessagePart:
    """The part; reasoning with the id of its chunks, which the history has no field for."""
    both = isinstance(part, ReasoningUIPart) and isinstance(shown, ReasoningUIPart)
    return replace(part, id=cast("ReasoningUIPart", shown).id) if both else part


def with_decisions(stored: UIMessage, merged: UIMessage) -> UIMessage:
    """A stored message into which the decisions of a page were merged, with its canonical messages as they are now."""
    if not carries_steps(stored):
        return merged
    return with_steps(merged, exact_steps(merged, to_canonical(stored)))


class _Step:
    """Joins a step as it is shown with what is known of it exactly."""

    def __init__(self, shown: Message, record: StepRecord) -> None:
        self._shown = shown
        self._record = record

    def joined(self, exact: Message | None) -> Message:
        shown = self._shown
        if exact is None:
            return replace(shown, parts=tuple([self._part(part, None) for part in shown.parts]))
        facts = replace(exact, id=shown.id, metadata=_metadata(exact, shown), parts=tuple(self._parts(exact.parts)))
        # A run that was stopped ends so, whatever the model said last.
        return replace(facts, stop_reason="aborted") if shown.stop_reason == "aborted" else facts

    def _parts(self, exact: tuple[Part, ...]) -> Iterator[Part]:
        """The exact parts in their order; what only the page shows (sources, data) stays behind what it follows."""
        places = self._places(exact)
        shown = self._shown.parts
        matched = set(places.values())
        yield from _unmatched(shown, 0, matched)
        for index, part in enumerate(exact):
            place = places.get(index)
            yield self._part(part if place is None else shown[place], part)
            if place is not None:
                yield from _unmatched(shown, place + 1, matched)

    def _places(self, exact: tuple[Part, ...]) -> dict[int, int]:
        """Index of an exact part -> that of the part that shows it."""
        found: dict[int, int] = {}
        free = dict(enumerate(self._shown.parts))
        for index, part in enumerate(exact):
            place = next((place for place, shown in free.items() if _shows(shown, part)), None)
            if place is not None:
                found[index] = place
                del free[place]
        return found

    def _part(self, shown: Part, exact: Part | None) -> Part:
        if not isinstance(shown, ToolCallPart):
            return shown if exact is None else exact
        return self._call(shown, cast("ToolCallPart | None", exact))

    def _call(self, shown: ToolCallPart, exact: ToolCallPart | None) -> ToolCallPart:
        call = exact or self._with_input(shown)
        call = add_results(call, self._record.results.get(shown.tool_call_id, ()))
        if call.state != shown.state or bool(call.results) != bool(shown.results):
            # The page decided, or the run ended before the call did.
            call = replace(call, state=shown.state, results=shown.results or call.results)
        return replace(
            call,
            approval=_approval(call.approval, shown.approval),
            title=call.title or shown.title,
            provider=call.provider or shown.provider,
            metadata=_metadata(call, shown),
        )

    def _with_input(self, shown: ToolCallPart) -> ToolCallPart:
        event = self._record.inputs.get(shown.tool_call_id)
        bare = replace(shown, state=ToolState.INPUT_AVAILABLE, results=())
        if event is None or not _is_readable(event.input):
            return bare
        return replace(bare, input=event.input, input_text=event.input_text)


def _is_readable(value: RawJson) -> bool:
    """Whether a store can hold the JSON; a program may have cut it within a character."""
    try:
        msgspec.json.decode(b"null" if value is UNSET else value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _unmatched(shown: tuple[Part, ...], start: int, matched: set[int]) -> Iterator[Part]:
    for place in range(start, len(shown)):
        if place in matched:
            return
        yield shown[place]


def _shows(shown: Part, exact: Part) -> bool:
    if isinstance(shown, ToolCallPart) and isinstance(exact, ToolCallPart):
        return shown.tool_call_id == exact.tool_call_id
    if isinstance(shown, TextPart | ReasoningPart):
        return type(shown) is type(exact) and shown.text == cast("TextPart | ReasoningPart", exact).text
    if isinstance(shown, FilePart) and isinstance(exact, FilePart):
        return (shown.data, shown.url) == (exact.data, exact.url)
    return type(shown) is type(exact) and getattr(shown, "source_id", None) == getattr(exact, "source_id", "")


def _approval(exact: Approval | None, shown: Approval | None) -> Approval | None:
    if exact is None or shown is None:
        return shown or exact
    is_same = (exact.id, exact.approved, exact.reason) == (shown.id, shown.approved, shown.reason)
    return exact if is_same else shown


def _metadata(exact: Message | ToolCallPart, shown: Message | ToolCallPart) -> dict[str, object]:
    """The metadata of both; of what the AI SDK noted, only what is shown now."""
    return {**{key: value for key, value in exact.metadata.items() if key != KEY}, **shown.metadata}
