"""A history -> the events that a screen shows, in order (R-K12 to R-K20). A table finds the function of each kind.

Where interruptions are shown is `turnlog.replay.interruptions`; which events the model saw `turnlog.replay.view`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeAlias

from msgspec import UNSET

from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    FilePart,
    HistoryEvent,
    InterruptEvent,
    Message,
    MessageEvent,
    ReasoningPart,
    ResultStatus,
    RewindEvent,
    RunMetadataEvent,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultEvent,
)
from turnlog.replay.events import (
    AnswerShown,
    CompactionShown,
    DeveloperShown,
    ErrorShown,
    ImageShown,
    InterruptShown,
    ReplayEvent,
    ResponseMetadata,
    RewindShown,
    RunMetadataShown,
    ToolCallShown,
    ToolResultShown,
    TurnStarted,
    UserShown,
)
from turnlog.replay.interruptions import find_interruptions

_STATUSES: dict[ResultStatus, Literal["success", "error"]] = {
    "success": "success",
    "error": "error",
    "aborted": "error",
    "denied": "error",
}

Place: TypeAlias = dict[str, Any]
"""Fields that every event of a replay has: position, time, message, turn, step, fate."""


def replay(
    events: Iterable[HistoryEvent], *, response_metadata: bool = False, interrupted: Iterable[str] = ()
) -> list[ReplayEvent]:
    """What a screen shows when a history is played again.

    Args:
        events: A whole history in causal order (`turnlog.history.history`, `read_session(...).events`,
            `Store.history`), or a passage with what it depends on (`Store.passage`): of what is derived from that, the
            events from `first` up to `end` are those of the whole.
        response_metadata: Tell after each answer what it took (R-K20), which screens rarely show.
        interrupted: Ids of messages of which a record outside a passage says that the user stopped them.
    """
    listed = list(events)
    found = find_interruptions(listed, interrupted)
    derivation = _Derivation(response_metadata=response_metadata)
    shown: list[ReplayEvent] = []
    for index, event in enumerate(listed):
        # An interruption is shown once, although the log, a hook and the reader may each have a record of it.
        if index not in found.repeated:
            shown.extend(derivation.derive(event))
        if index in found.derived_after:
            shown.append(InterruptShown(**derivation.place_of(event), derived=True))
    return shown


def response_metadata_of(message: Message, **place: Any) -> ResponseMetadata | None:
    """What an answer says of its model call; None where it says neither usage nor why it ended (R-K20)."""
    if message.role != "assistant" or (message.usage is None and message.stop_reason is None):
        return None
    belongs: Place = {"message_id": message.id, "created_at": message.created_at, **place}
    return ResponseMetadata(
        **belongs,
        stop_reason=message.stop_reason,
        raw_stop_reason=message.raw_stop_reason,
        usage=message.usage,
        cost=message.cost,
        model=message.model,
        response_id=message.response_id,
    )


_Previous: TypeAlias = Literal["user", "developer", "tool", "system", "assistant", "error"]

_TURN_BEFORE: frozenset[_Previous | None] = frozenset({None, "user", "tool", "developer"})
"""What an answer must follow so that a turn starts with it. Facts about the run may come in between."""


class _Derivation:
    """Takes the events of one history in order, and remembers the positions of calls that results belong to."""

    def __init__(self, *, response_metadata: bool) -> None:
        self._with_metadata = response_metadata
        self._previous: _Previous | None = None
        self._places: dict[str, Place] = {}
        self._turn: int | None = None

    def derive(self, event: HistoryEvent) -> Iterator[ReplayEvent]:
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            yield from handler(self, event)

    def place_of(self, event: HistoryEvent) -> Place:
        """Where something that was derived from an event belongs."""
        owner = self._places.get(getattr(event, "message_id", None) or "")
        place: Place = {"turn": self._turn} if owner is None else dict(owner)
        if isinstance(event, MessageEvent):
            place = self._places.get(event.message.id, place)
        message_id = getattr(event, "message_id", None)
        # The message may be outside of the passage; its id is known all the same.
        fallback = {"message_id": message_id} if message_id is not None else {}
        return place | fallback | {"position": event.position, "created_at": event.created_at}

    def message(self, event: MessageEvent) -> Iterator[ReplayEvent]:
        message, place = event.message, self._remember(event)
        if message.role == "assistant":
            yield from self._answer(message, place)
            return
        # Developer messages count too: an answer after injected context begins a turn.
        self._previous = message.role
        content = _content(message)
        if message.role == "user":
            yield UserShown(**place, **content)
        elif message.role == "developer":
            yield DeveloperShown(**place, **content, origin=message.origin)

    def _remember(self, event: MessageEvent) -> Place:
        message, member = event.message, event.membership
        place: Place = {
            "position": event.position,
            "created_at": event.created_at or message.created_at,
            "message_id": message.id,
        }
        if member is not None:
            place |= {"turn": member.turn, "step": member.step, "fate": member.fate}
            self._turn = member.turn
        self._places[message.id] = place
        return place

    def _answer(self, message: Message, place: Place) -> Iterator[ReplayEvent]:
        if self._previous in _TURN_BEFORE:
            yield TurnStarted(**place)
        # R-K14 wants the images before the answer.
        images, files = _files_of(message.parts)
        for image in images:
            yield ImageShown(**place, image=image)
        yield AnswerShown(
            **place,
            text="".join([part.text for part in message.parts if isinstance(part, TextPart)]),
            reasoning="\n".join([part.text for part in message.parts if isinstance(part, ReasoningPart) and part.text]),
            model=message.model,
            files=files,
        )
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        for call in calls:
            yield _call_shown(call, place)
        for call in calls:
            # Results with their own records arrive as events; these came with the answer, as from a tool that the
            # provider ran.
            for result in call.results:
                yield _result_shown(result, call.tool_call_id, call.tool_name, place)
        yield from self._aside(message, place)
        # The next answer begins a turn only if it answers results; what the provider ran is part of the same answer.
        answered = any(call.results and not call.provider_executed for call in calls)
        self._previous = "tool" if answered else "assistant"

    def _aside(self, message: Message, place: Place) -> Iterator[ReplayEvent]:
        if message.error is not None:
            error = message.error
            yield ErrorShown(**place, error_text=error.text, kind=error.kind, status=error.status)
        metadata = response_metadata_of(message, **place) if self._with_metadata else None
        if metadata is not None:
            yield metadata

    def result(self, event: ToolResultEvent) -> Iterator[ReplayEvent]:
        self._previous = "tool"
        place = self.place_of(event)
        yield _result_shown(event.result, event.tool_call_id, event.tool_name, place, duplicate=event.duplicate)

    def interrupt(self, event: InterruptEvent) -> Iterator[ReplayEvent]:
        yield InterruptShown(**self.place_of(event), derived=event.derived)

    def error(self, event: ErrorEvent) -> Iterator[ReplayEvent]:
        self._previous = "error"
        place = self.place_of(event)
        yield ErrorShown(**place, error_text=event.error_text, kind=event.kind, status=event.status)

    def run_metadata(self, event: RunMetadataEvent) -> Iterator[ReplayEvent]:
        yield RunMetadataShown(**self.place_of(event), kind=event.kind, data=event.data)

    def compaction(self, event: CompactionEvent) -> Iterator[ReplayEvent]:
        yield CompactionShown(
            **self.place_of(event),
            trigger=event.trigger,
            tokens_before=event.tokens_before,
            tokens_after=event.tokens_after,
        )

    def rewind(self, event: RewindEvent) -> Iterator[ReplayEvent]:
        # A rewind belongs to the message to which it returns.
        place: Place = {**self.place_of(event), "message_id": event.to_message_id}
        yield RewindShown(**place)


_HANDLERS: dict[type, Callable[[_Derivation, Any], Iterator[ReplayEvent]]] = {
    MessageEvent: _Derivation.message,
    ToolResultEvent: _Derivation.result,
    InterruptEvent: _Derivation.interrupt,
    ErrorEvent: _Derivation.error,
    RunMetadataEvent: _Derivation.run_metadata,
    CompactionEvent: _Derivation.compaction,
    RewindEvent: _Derivation.rewind,
}
"""Other records of a log are not shown."""


def _content(message: Message) -> dict[str, Any]:
    images, files = _files_of(message.parts)
    text = "\n".join([part.text for part in message.parts if isinstance(part, TextPart)])
    return {"text": text, "images": images, "files": files}


def _files_of(parts: Iterable[Any]) -> tuple[tuple[FilePart, ...], tuple[FilePart, ...]]:
    """Images, and other files."""
    files = [part for part in parts if isinstance(part, FilePart)]
    images = tuple(file for file in files if file.media_type.startswith("image/"))
    return images, tuple(file for file in files if not file.media_type.startswith("image/"))


def _call_shown(call: ToolCallPart, place: Place) -> ToolCallShown:
    arguments = call.input_text or "" if call.input is UNSET else bytes(call.input).decode(errors="replace")
    return ToolCallShown(
        **place,
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        arguments=arguments,
        kind=call.kind,
        title=call.title,
        child_session_id=call.child_session_id,
    )


def _result_shown(
    result: ToolResult, tool_call_id: str, tool_name: str | None, place: Place, *, duplicate: bool = False
) -> ToolResultShown:
    return ToolResultShown(
        **place,
        tool_call_id=tool_call_id,
        result=result.output_text,
        status=_STATUSES[result.status],
        outcome=result.status,
        tool_name=tool_name,
        images=_files_of(result.content)[0],
        error_text=result.error_text,
        exit_code=result.exit_code,
        preliminary=result.preliminary,
        duplicate=duplicate,
        structured=result.structured,
        metadata=result.metadata,
    )
