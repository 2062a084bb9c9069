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

from turnlog.aisdk.building import to_plain
from turnlog.aisdk.convert import METADATA
from turnlog.aisdk.parts import StepStartUIPart, UIMessage
from turnlog.aisdk.receive import from_ui_messages
from turnlog.model import Message, Part, ReasoningPart, StopReason, TextPart, ToolCallPart, Usage
from turnlog.store.writing.answers import AgentAnswer

SESSION_KEY: Final = "agentSession"
"""Id of the session, `<agent>:<external id>`."""

RECORD_KEY: Final = "agentRecord"
"""The agent's own id of the answer's last record, where it has one."""

RUN_KEY: Final = "run"
"""Id of the run."""


def answer_of(message: UIMessage) -> AgentAnswer | None:
    """The agent's session and run that a message came from, if it did."""
    metadata: Any = to_plain(message.metadata)
    if message.role != "assistant" or not isinstance(metadata, dict):
        return None
    facts = cast("dict[str, Any]", metadata)
    session, run = facts.get(SESSION_KEY), facts.get(RUN_KEY)
    if not isinstance(session, str):
        return None
    return AgentAnswer(session, run if isinstance(run, str) else None)


_STOP_REASONS = frozenset(get_args(StopReason))


def canonical_steps(message: UIMessage, *, changed: bool = False) -> list[Message]:
    """The canonical messages of one that is the server's own.

    Args:
        message: With what a store put into its metadata, or as our writer made it.
        changed: Whether answers of a page were put into it since it was loaded.
    """
    told = with_step_facts(message, from_ui_messages([message]).messages)
    if not holds_own_metadata(message):
        return told
    stored = from_ui_messages([message], trusted=True).messages
    if not changed or len(stored) != len(told):
        return stored
    joined = [join_step(before, step) for before, step in zip(stored, told, strict=True)]
    return [
        before if step is None else replace(step, id=before.id) for before, step in zip(stored, joined, strict=True)
    ]


def holds_own_metadata(message: UIMessage) -> bool:
    """Whether the message says what only turnlog says and reads."""
    metadata: Any = message.metadata
    return isinstance(metadata, dict) and METADATA in metadata


def with_step_facts(message: UIMessage, steps: Sequence[Message]) -> list[Message]:
    """Model, usage and how it ended, of each step, from the metadata that our own writer put on the message."""
    metadata: Any = to_plain(message.metadata)
    told = cast("dict[str, Any]", metadata).get("steps") if isinstance(metadata, dict) else None
    if message.role != "assistant" or not isinstance(told, list):
        return list(steps)
    facts = cast("list[Any]", told)
    numbers = list(_numbers(message))
    # Of a message whose first steps came without metadata, the last ones are told of.
    missing = max(0, sum(isinstance(part, StepStartUIPart) for part in message.parts) - len(facts))
    answers = iter(numbers)
    found: list[Message] = []
    for step in steps:
        number = next(answers, None) if step.role == "assistant" else None
        known = number is not None and 0 <= number - missing < len(facts)
        found.append(_with(step, facts[cast("int", number) - missing]) if known else step)
    return found


def _numbers(message: UIMessage) -> Iterator[int]:
    """Of each step that holds anything, how many steps have begun before it."""
    begun, empty = 0, True
    for part in message.parts:
        if isinstance(part, StepStartUIPart):
            begun, empty = begun + 1, True
        elif empty:
            empty = False
            yield max(begun - 1, 0)


def _with(step: Message, told: Any) -> Message:
    if not isinstance(told, dict):
        return step
    facts = cast("dict[str, Any]", told)
    stop = facts.get("stopReason")
    return replace(
        step,
        model=_text(facts.get("model")),
        response_id=_text(facts.get("responseId")),
        stop_reason=cast("StopReason", stop) if stop in _STOP_REASONS else None,
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


_TOLD = ("model", "response_id", "stop_reason", "raw_stop_reason", "usage")


def join_step(stored: Message, told: Message) -> Message | None:
    """A step as it is to be stored now; None where nothing changed."""
    parts = tuple(
        _join_part(stored.parts[index], part, told.updated_at) if index < len(stored.parts) else part
        for index, part in enumerate(told.parts)
    )
    kept = {name: getattr(stored, name) for name in _TOLD if getattr(told, name) is None}
    joined = replace(
        told, parts=parts, created_at=stored.created_at, error=stored.error, provider=stored.provider, **kept
    )
    times = {"completed_at": stored.completed_at, "updated_at": stored.updated_at}
    return None if replace(joined, **times) == stored else joined


def _join_part(stored: Part, told: Part, now: datetime | None) -> Part:
    """The stored part, with what is new of it; another part where another stands now."""
    if isinstance(stored, ToolCallPart) and isinstance(told, ToolCallPart) and stored.tool_call_id == told.tool_call_id:
        return _join_call(stored, told, now)
    if isinstance(stored, TextPart | ReasoningPart) and stored.type == told.type:
        return _join_text(stored, cast("TextPart | ReasoningPart", told))
    return told


def _join_text(stored: TextPart | ReasoningPart, told: TextPart | ReasoningPart) -> Part:
    """What providers want back often comes with the end of a text, and the page's form does not hold all of it."""
    if stored.text != told.text:
        return told
    known = stored.provider
    same = told.provider is None or (known is not None and known.opaque == told.provider.opaque)
    return replace(stored, state=told.state, provider=known if same else told.provider)


def _join_call(stored: ToolCallPart, told: ToolCallPart, now: datetime | None) -> Part:
    whole = stored if told.input is UNSET and told.input_text is None else told
    call = replace(stored, input=whole.input, input_text=whole.input_text, provider=told.provider or stored.provider)
    if (stored.state, stored.approval, _outcome(stored)) == (told.state, told.approval, _outcome(told)):
        return call
    results = tuple(replace(result, completed_at=now) for result in told.results)
    return replace(call, state=told.state, approval=told.approval, results=results, metadata=told.metadata)


def _outcome(call: ToolCallPart) -> tuple[str, str | None] | None:
    return (call.output_text, call.results[-1].error_text) if call.results else None
