"""A chat's UI messages as canonical messages, one a model call.

A UI message holds less than what is stored. What it lacks comes from its metadata: what the stream said about each
step, and which run of an agent it came from. When a message continues, everything that did not change is taken from
what is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, cast, get_args

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from turnlog.aisdk.codec import to_plain
from turnlog.aisdk.convert import METADATA
from turnlog.aisdk.parts import StepStartUIPart, UIMessage
from turnlog.aisdk.receive import from_ui_messages
from turnlog.model import Message, Part, ReasoningPart, StopReason, TextPart, ToolCallPart, Usage
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

_STEP_FIELDS = ("model", "response_id", "stop_reason", "raw_stop_reason", "usage")
"""Fields of a message that the metadata of a UI message holds for each step."""


def to_canonical(message: UIMessage, *, has_client_results: bool = False) -> list[Message]:
    """Convert a stored UI message to canonical messages, one a model call.

    Args:
        message: The server's own, with what a store or our writer put into its metadata.
        has_client_results: Whether approvals or outcomes of the client were merged into it since it was loaded.
    """
    converted = to_steps(message)
    if not _has_own_metadata(message):
        return converted
    stored = from_ui_messages([message], trusted=True).messages
    if not has_client_results or len(stored) != len(converted):
        return stored
    # The metadata holds each step as it was stored; the parts are newer. Join them, so that what only the store has
    # (what providers want back, times) is kept.
    joined = [join_step(before, step) for before, step in zip(stored, converted, strict=True)]
    return [
        before if step is None else replace(step, id=before.id) for before, step in zip(stored, joined, strict=True)
    ]


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


def _has_own_metadata(message: UIMessage) -> bool:
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
    numbers = iter(list(_step_numbers(message)))
    found: list[Message] = []
    for step in steps:
        number = next(numbers, None) if step.role == "assistant" else None
        is_known = number is not None and 0 <= number - missing < len(facts)
        found.append(_with_facts(step, facts[cast("int", number) - missing]) if is_known else step)
    return found


def _step_numbers(message: UIMessage) -> Iterator[int]:
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
    kept = {name: getattr(stored, name) for name in _STEP_FIELDS if getattr(new, name) is None}
    joined = replace(
        new, parts=parts, created_at=stored.created_at, error=stored.error, provider=stored.provider, **kept
    )
    times = {"completed_at": stored.completed_at, "updated_at": stored.updated_at}
    return None if replace(joined, **times) == stored else joined


def _join_part(stored: Part, new: Part, now: datetime | None) -> Part:
    """The stored part, updated; the new one if it is another part."""
    if isinstance(stored, ToolCallPart) and isinstance(new, ToolCallPart) and stored.tool_call_id == new.tool_call_id:
        return _join_call(stored, new, now)
    if isinstance(stored, TextPart | ReasoningPart) and stored.type == new.type:
        return _join_text(stored, cast("TextPart | ReasoningPart", new))
    return new


def _join_text(stored: TextPart | ReasoningPart, new: TextPart | ReasoningPart) -> Part:
    if stored.text != new.text:
        return new
    # What a provider wants back (a signature) often comes with the end of a text, after the text itself; and a UI
    # message holds only the opaque part of it.
    known = stored.provider
    is_same = new.provider is None or (known is not None and known.opaque == new.provider.opaque)
    return replace(stored, state=new.state, provider=known if is_same else new.provider)


def _join_call(stored: ToolCallPart, new: ToolCallPart, now: datetime | None) -> Part:
    with_input = stored if new.input is UNSET and new.input_text is None else new
    call = replace(
        stored, input=with_input.input, input_text=with_input.input_text, provider=new.provider or stored.provider
    )
    if (stored.state, stored.approval, _outcome(stored)) == (new.state, new.approval, _outcome(new)):
        return call
    results = tuple(replace(result, completed_at=now) for result in new.results)
    return replace(call, state=new.state, approval=new.approval, results=results, metadata=new.metadata)


def _outcome(call: ToolCallPart) -> tuple[str, str | None] | None:
    return (call.output_text, call.results[-1].error_text) if call.results else None
