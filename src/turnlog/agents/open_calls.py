"""Calls without a result. Once the next turn begins they count as aborted: they ended with their process.

A program that was killed while a tool ran writes no result when it goes on; it only tells the model that there is none.
A result that comes later counts nevertheless.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from turnlog.agents.changes import MessageChange, Placement
from turnlog.model import Message, ToolCallPart
from turnlog.model.parts import ToolState


class OpenCall(msgspec.Struct, array_like=True):
    """A call that waits for its result."""

    message: str
    part: str
    tool: str | None
    """None for one that counts as aborted, or was copied and may still run in the session that it is from."""


def open_call(part: ToolCallPart, message_id: str, *, is_copied: bool = False) -> OpenCall:
    """The call of a message, to be remembered until its result is read."""
    return OpenCall(message_id, part.id or "", None if is_copied else part.tool_name)


def message_of(calls: dict[str, OpenCall], call_id: str) -> str | None:
    """Forget a call, because its result is read; returns its message, if the call is remembered."""
    call = calls.pop(call_id, None)
    return None if call is None else call.message


def abort_calls(calls: dict[str, OpenCall], session_id: str, position: int) -> Iterator[MessageChange]:
    """The changes that mark the calls as aborted, each once, where a turn begins at `position`."""
    for call_id, call in calls.items():
        if call.tool is not None:
            part = ToolCallPart(id=call.part, tool_call_id=call_id, tool_name=call.tool, state=ToolState.ABORTED)
            yield MessageChange(
                message=Message(id=call.message, role="assistant", parts=(part,)),
                placement=Placement(session_id=session_id, position=position, record_ids=(call.message,)),
            )
            call.tool = None
