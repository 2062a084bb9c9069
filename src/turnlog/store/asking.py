"""Which call started a subagent, where no record says so: the one that began its run, or asked what it was asked.

Pure functions, for the store's writer and for `turnlog.logs` alike. What an agent's records say of a child and its call
comes before: only children without a call, and calls without a child, are looked at here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

import msgspec

from turnlog.agents.changes import RUN, Link
from turnlog.model import Message, Origin, TextPart, ToolCallPart, ToolKind
from turnlog.store.rows import milliseconds

_FIELDS = ("prompt", "objective", "request", "question", "query", "task")
"""What the inputs of subagents' tools call that which is asked."""


class AskingCall(NamedTuple):
    """A call of a subagent tool that no child is known of."""

    tool_call_id: str
    message_id: str
    asked_at: int | None
    """Unix milliseconds."""
    answered_at: int | None
    """When its last result came; None while it has none, or none with a time."""
    texts: tuple[str, ...]
    """What its input may ask."""
    runs: tuple[str, ...] = ()
    """The runs of several subagents that it began."""


class AskedSession(NamedTuple):
    """A subagent's session that no call is known of."""

    session_id: str
    asked_at: int | None
    prompt: str
    run: str | None = None
    """The run that it was started in, with others."""


def asking_calls(message: Message) -> list[AskingCall]:
    """The calls of a message that start subagents."""
    return [
        AskingCall(
            part.tool_call_id,
            message.id,
            milliseconds(message.created_at),
            _answered_at(part),
            _texts(part),
            tuple(run for result in part.results if (run := run_of(result.metadata)) is not None),
        )
        for part in message.parts
        if isinstance(part, ToolCallPart) and part.kind is ToolKind.SUBAGENT
    ]


def run_of(metadata: Mapping[str, Any]) -> str | None:
    """The run that a link or a result tells, under its agent's name."""
    told = (cast("dict[str, Any]", facts).get(RUN) for facts in metadata.values() if isinstance(facts, dict))
    return next((run for run in told if isinstance(run, str)), None)


def asked_session(session_id: str, first: Message, run: str | None = None) -> AskedSession | None:
    """A subagent's session by its first message; None when that is not what it was asked, and no run is known."""
    if run is not None:
        return AskedSession(session_id, milliseconds(first.created_at), "", run)
    if first.origin is not Origin.SUBAGENT_PROMPT:
        return None
    prompt = "\n".join(part.text for part in first.parts if isinstance(part, TextPart)).strip()
    return AskedSession(session_id, milliseconds(first.created_at), prompt) if prompt else None


def find_calls(calls: Iterable[AskingCall], children: Iterable[AskedSession]) -> dict[str, AskingCall]:
    """Session id -> the call that asked it.

    Args:
        calls: In the order of the parent.
        children: In any order.

    A call whose words the prompt is comes before one whose words stand in it on lines of their own (some agents wrap
    them). Of several with the same words the newest before the child began: the last child is given the last call, and
    so on backwards, since a call may have been killed before its child wrote anything. A call may be stamped later than
    its child (Gemini CLI 0.30 logs it once it is answered), but one that was answered before did not ask. A run has any
    number of children; of several calls that began it (and began it again) the newest before the child.
    """
    known = list(calls)
    free = [call for call in known if not call.runs]
    found: dict[str, AskingCall] = {}
    for child in sorted(children, key=lambda child: (child.asked_at or 0, child.session_id), reverse=True):
        if child.run is not None:
            began = [call for call in known if child.run in call.runs]
            if began:
                found[child.session_id] = _newest_before(began, child)
            continue
        unanswered = [call for call in free if not _is_before(call.answered_at, child.asked_at)]
        fits = [call for call in unanswered if child.prompt in call.texts] or [
            call for call in unanswered if any(f"\n{text}\n" in f"\n{child.prompt}\n" for text in call.texts)
        ]
        if fits:
            found[child.session_id] = call = _newest_before(fits, child)
            free.remove(call)
    return found


def with_call(link: Link, call: AskingCall) -> Link:
    """What a link says once its call is found."""
    return msgspec.structs.replace(link, tool_call_id=call.tool_call_id, message_id=call.message_id, inferred=True)


def _newest_before(calls: list[AskingCall], child: AskedSession) -> AskingCall:
    before = [call for call in calls if not _is_before(child.asked_at, call.asked_at)]
    return before[-1] if before else calls[0]


def _is_before(one: int | None, other: int | None) -> bool:
    """Whether both times are known, and the first comes first."""
    return one is not None and other is not None and one < other


def _answered_at(part: ToolCallPart) -> int | None:
    times = [milliseconds(result.completed_at) for result in part.results if not result.preliminary]
    return max((time for time in times if time is not None), default=None)


def _texts(part: ToolCallPart) -> tuple[str, ...]:
    value = part.input_value()
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    texts = (fields.get(name) for name in _FIELDS)
    return tuple(text.strip() for text in texts if isinstance(text, str) and text.strip())
