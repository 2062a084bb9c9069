"""Calls that were left open when what they belong to ended: a subagent's, once its own call or its process has ended.

Pure functions, for the store's writer and for `turnlog.logs` alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from turnlog.agents.changes import ENDED_AT
from turnlog.model import Message, ToolCallPart, ToolState
from turnlog.model.tools import OPEN_STATES
from turnlog.store.rows import milliseconds


class CallEnd(NamedTuple):
    """That a call has ended, and when."""

    at: int | None
    """Unix milliseconds of its last result; None when it has none: it was given up."""

    def is_behind(self, started_at: int | None) -> bool:
        """Whether a call of its subagent that began at that time is over too.

        A subagent in the background goes on behind the result that says it was started.
        """
        return self.at is None or (started_at is not None and started_at <= self.at)


GIVEN_UP = CallEnd(None)


def later_end(one: CallEnd | None, metadata: Mapping[str, Any]) -> CallEnd | None:
    """The end of a subagent: that of its call, or of the process that ran it, if its link tells that that one ended."""
    told: int | None = metadata.get(ENDED_AT)
    if told is None or one == GIVEN_UP:
        return one
    return CallEnd(told if one is None or one.at is None else max(one.at, told))


def ended_at(state: str, completed_at: int | None) -> CallEnd | None:
    """The end of a call in this state; None for one that is open."""
    return None if state in OPEN_STATES else CallEnd(completed_at)


def calls_in(message: Message) -> Iterator[ToolCallPart]:
    """The calls of a message."""
    return (part for part in message.parts if isinstance(part, ToolCallPart))


def end_of(call: ToolCallPart) -> CallEnd | None:
    """The end of a call; None for one that is open."""
    times = [moment for result in call.results if (moment := milliseconds(result.completed_at)) is not None]
    return ended_at(call.state, times[-1] if times else None)


def give_up_open_calls(message: Message, end: CallEnd) -> Message:
    """The message with its unanswered calls that began before this end aborted."""
    parts = tuple(
        msgspec.structs.replace(part, state=ToolState.ABORTED)
        if isinstance(part, ToolCallPart) and part.state in OPEN_STATES and end.is_behind(milliseconds(part.started_at))
        else part
        for part in message.parts
    )
    return message if parts == message.parts else msgspec.structs.replace(message, parts=parts)
