"""A chat's UI messages as canonical messages, one a model call.

A UI message shows less than what is stored. What it lacks is in its metadata: the canonical messages that it carries,
what the stream said about each step, and which run of an agent it came from.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar, cast, get_args

import msgspec
from msgspec import UNSET
from msgspec.structs import fields, replace

from turnlog.aisdk.codec import to_plain
from turnlog.aisdk.convert import METADATA
from turnlog.aisdk.parts import StepStartUIPart, UIMessage
from turnlog.aisdk.receive import from_ui_messages
from turnlog.aisdk.view import step_id
from turnlog.model import Message, Part, ReasoningPart, StopReason, TextPart, ToolCallPart, Usage
from turnlog.model.base import Value, field_default
from turnlog.model.stream import RunFinish, RunStart, StreamEvent
from turnlog.store.values import AgentAnswer

SESSION_KEY: Final = "agentSession"
"""Metadata of an agent's answer: the id of its session, `<agent>:<external id>`."""

RECORD_KEY: Final = "agentRecord"
"""Metadata of an agent's answer: the agent's own id of the answer's last record, if it has one."""

RUN_KEY: Final = "run"
"""Metadata of an agent's answer: the id of its run."""

PRIVATE_KEY: Final = "turnlogPrivate"
"""Metadata of an answer that is kept for its next run and never sent to a page."""

_STOP_REASONS = frozenset(get_args(StopReason))

_STEP_FIELDS = ("model", "response_id", "stop_reason", "raw_stop_reason", "usage", "error", "provider")
"""Fields of a message that a UI message may lack."""


def to_canonical(message: UIMessage) -> list[Message]:
    """The canonical messages of a stored UI message, one a model call: those that it carries, else those of its parts.

    The message is the server's own: what its metadata carries is trusted. It is converted once, since every request of
    a chat needs all of its messages.
    """
    key = id(message)
    known = _converted.get(key)
    if known is None or known.message() is not message:
        known = _Converted(weakref.ref(message, lambda _: _converted.pop(key, None)), _to_canonical(message))
        _converted[key] = known
    return list(known.steps)


class _Converted(NamedTuple):
    message: weakref.ref[UIMessage]
    steps: list[Message]


_converted: dict[int, _Converted] = {}
"""Identity of a message that somebody holds -> its canonical messages."""


def _to_canonical(message: UIMessage) -> list[Message]:
    return from_ui_messages([message], trusted=True).messages if carries_steps(message) else to_steps(message)


def to_stored(message: UIMessage) -> list[Message]:
    """The canonical messages of a UI message, under the ids of its steps."""
    carried = [step for step in to_canonical(message) if step.parts or step.role != "assistant"]
    if any(step.role != message.role for step in carried) or (message.role != "assistant" and len(carried) != 1):
        return to_steps(message)
    if message.role != "assistant":
        return [replace(carried[0], id=message.id)]
    return [replace(step, id=step_id(message.id, number)) for number, step in enumerate(carried, 1)]


def to_steps(message: UIMessage) -> list[Message]:
    """The canonical messages that the parts of a UI message make, with the model, usage and end of each step."""
    return _with_step_metadata(message, from_ui_messages([message]).messages)


def has_same_content(one: UIMessage, other: UIMessage) -> bool:
    """Whether two UI messages are the same canonical messages, whatever their JSON looks like."""
    return from_ui_messages([one]).messages == from_ui_messages([other]).messages


# -- metadata


def without_own_metadata(message: UIMessage) -> UIMessage:
    """The message without the metadata that only turnlog and its runtimes write and read."""
    metadata: Any = message.metadata
    if not isinstance(metadata, dict) or not (METADATA in metadata or PRIVATE_KEY in metadata):
        return message
    own = (METADATA, PRIVATE_KEY)
    rest = {key: value for key, value in cast("dict[str, Any]", metadata).items() if key not in own}
    return replace(message, metadata=rest or UNSET)


def private_metadata(message: UIMessage | None) -> dict[str, Any]:
    """What an answer keeps for its next run."""
    metadata: Any = None if message is None else to_plain(message.metadata)
    found: Any = cast("dict[str, Any]", metadata).get(PRIVATE_KEY) if isinstance(metadata, dict) else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def for_pages(event: StreamEvent) -> StreamEvent:
    """The event without what is kept for the next run."""
    if not isinstance(event, RunStart | RunFinish) or PRIVATE_KEY not in event.metadata:
        return event
    return replace(event, metadata={key: value for key, value in event.metadata.items() if key != PRIVATE_KEY})


def carries_steps(message: UIMessage) -> bool:
    """Whether a stored message carries its canonical messages."""
    metadata: Any = message.metadata
    return isinstance(metadata, dict) and METADATA in metadata


def agent_answer_of(message: UIMessage) -> AgentAnswer | None:
    """The agent's session and run that an answer came from; None for other messages."""
    metadata: Any = to_plain(message.metadata)
    if message.role != "assistant" or not isinstance(metadata, dict):
        return None
    facts = cast("dict[str, Any]", metadata)
    session, run = facts.get(SESSION_KEY), facts.get(RUN_KEY)
    if not isinstance(session, str):
        return None
    return AgentAnswer(session, run if isinstance(run, str) else None)


def _with_step_metadata(message: UIMessage, steps: Sequence[Message]) -> list[Message]:
    metadata: Any = to_plain(message.metadata)
    entries = cast("dict[str, Any]", metadata).get("steps") if isinstance(metadata, dict) else None
    if message.role != "assistant" or not isinstance(entries, list):
        return list(steps)
    facts = cast("list[Any]", entries)
    # When a message began without metadata (an older chat) and continued with it, the entries are those of its last
    # steps.
    missing = max(0, sum(isinstance(part, StepStartUIPart) for part in message.parts) - len(facts))
    numbers = step_numbers(message)
    found: list[Message] = []
    for step in steps:
        number = next(numbers, None) if step.role == "assistant" else None
        is_known = number is not None and 0 <= number - missing < len(facts)
        found.append(_with_facts(step, facts[cast("int", number) - missing]) if is_known else step)
    return found


def step_numbers(message: UIMessage) -> Iterator[int]:
    """The number of each step that holds any part: empty steps count, but become no message."""
    begun, is_empty = 0, True
    for part in message.parts:
        if isinstance(part, StepStartUIPart):
            begun, is_empty = begun + 1, True
        elif is_empty:
            is_empty = False
            yield max(begun - 1, 0)


def _with_facts(step: Message, value: Any) -> Message:
    if not isinstance(value, dict):
        return step
    facts = cast("dict[str, Any]", value)
    stop_reason = facts.get("stopReason")
    return replace(
        step,
        model=_text(facts.get("model")),
        response_id=_text(facts.get("responseId")),
        stop_reason=cast("StopReason", stop_reason) if stop_reason in _STOP_REASONS else None,
        raw_stop_reason=_text(facts.get("rawStopReason")),
        usage=_usage(facts.get("usage")),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _usage(value: Any) -> Usage | None:
    try:
        return msgspec.convert(value, Usage | None)
    except msgspec.ValidationError:
        return None


# -- joining a step with what is stored of it


def join_step(stored: Message, new: Message) -> Message | None:
    """A step as it is to be stored: the new one, with what only the stored one has; None if nothing changed."""
    parts = tuple(
        _join_part(stored.parts[index], part, new.updated_at) if index < len(stored.parts) else part
        for index, part in enumerate(new.parts)
    )
    joined = replace(_filled(new, stored, _STEP_FIELDS), parts=parts, created_at=stored.created_at)
    times = {"completed_at": stored.completed_at, "updated_at": stored.updated_at}
    return None if replace(joined, **times) == stored else joined


def _join_part(stored: Part, new: Part, now: datetime | None) -> Part:
    """The new part, with what only the stored one has, unless that is another part."""
    if isinstance(stored, ToolCallPart) and isinstance(new, ToolCallPart) and stored.tool_call_id == new.tool_call_id:
        return _join_call(stored, new, now)
    if isinstance(stored, TextPart | ReasoningPart) and stored.type == new.type:
        return _join_text(stored, cast("TextPart | ReasoningPart", new))
    return new


def _join_text(stored: TextPart | ReasoningPart, new: TextPart | ReasoningPart) -> Part:
    if stored.text != new.text:
        return new
    # A UI message holds only the opaque part of what a provider wants back.
    known = stored.provider
    is_same = new.provider is None or (known is not None and known.opaque == new.provider.opaque)
    return replace(_filled(new, stored, _TEXT_FIELDS), provider=known if is_same else new.provider)


def _join_call(stored: ToolCallPart, new: ToolCallPart, now: datetime | None) -> Part:
    has_input = new.input is not UNSET or new.input_text is not None
    call = _filled(new, stored, _CALL_FIELDS if has_input else (*_CALL_FIELDS, "input", "input_text"))
    if (stored.state, stored.approval, _outcome(stored)) == (new.state, new.approval, _outcome(new)):
        return replace(call, results=stored.results, metadata=stored.metadata)
    timed = [result if result.completed_at else replace(result, completed_at=now) for result in new.results]
    return replace(call, results=tuple(timed))


def _outcome(call: ToolCallPart) -> tuple[str, str | None, bool] | None:
    if not call.results:
        return None
    last = call.results[-1]
    return call.output_text, last.error_text, last.preliminary


_TEXT_FIELDS = ("id", "metadata")

_CALL_FIELDS = ("id", "kind", "title", "provider", "parent_tool_call_id", "started_at", "child_session_id")
"""What a page cannot have told of a call."""

ValueT = TypeVar("ValueT", bound=Value)


def _filled(new: ValueT, stored: ValueT, names: Iterable[str]) -> ValueT:
    """The new value, with the stored one's fields of these names where it has only the default."""
    defaults = _defaults(type(new))
    missing = [name for name in names if getattr(new, name) == defaults[name]]
    return replace(new, **{name: getattr(stored, name) for name in missing})


@cache
def _defaults(kind: type[Value]) -> dict[str, Any]:
    return {field.name: field_default(field) for field in fields(kind)}
