"""The causal history of a session: messages, results and events as one list, in the order in which they arrived.

Pure, over the values of `turnlog.model`; where they were read from is nobody's business here. Showing a history again
is `turnlog.replay`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from turnlog.history.lines import BadLine, HistoryLines, decode_lines, encode_lines
from turnlog.history.order import order_history
from turnlog.model import HistoryEvent, Membership, Message, Origin, ToolCallPart
from turnlog.model.message import is_counted_call

__all__ = ["BadLine", "HistoryLines", "decode_lines", "encode_lines", "history", "order_history"]


def history(
    messages: Iterable[Message],
    events: Iterable[HistoryEvent] = (),
    memberships: Sequence[Membership] | None = None,
) -> list[HistoryEvent]:
    """Everything that happened, in causal order, each result as a separate event (R-K2, R-K7).

    What `read_session(...).events` and `Store.history` answer has been through this already.

    Args:
        messages: In order, with the results of their calls.
        events: What else happened.
        memberships: The place of each message, where they come from a log. Without them the messages get places by
            their order: results come after the message of their calls, and the position of an event is the index of
            the message that it follows.

    Raises ValueError where there are places, and not one for each message.
    """
    listed = list(messages)
    if memberships is None:
        return order_history(_number(listed), events)
    return order_history(zip(listed, memberships, strict=True), events)


_TURN_ORIGINS = frozenset({None, Origin.PROMPT, Origin.COMMAND, Origin.SHELL, Origin.SUBAGENT_PROMPT})


def _number(messages: Sequence[Message]) -> list[tuple[Message, Membership]]:
    """The messages with places: position, turn, and step within the turn."""
    placed: list[tuple[Message, Membership]] = []
    turn = step = 0
    for position, message in enumerate(messages):
        is_step = is_counted_call(message)
        if message.role == "user" and message.origin in _TURN_ORIGINS:
            turn, step = turn + 1, 0
        step += is_step
        place = Membership(
            session_id="",
            message_id=message.id,
            position=position,
            turn=turn or None,
            step=step if is_step else None,
        )
        placed.append((_with_arrivals(message, position), place))
    return placed


def _with_arrivals(message: Message, position: int) -> Message:
    """The message with results that arrived right after it, without those that the provider returned with the call."""
    parts = tuple(
        msgspec.structs.replace(
            part, results=tuple(msgspec.structs.replace(result, sequence=position) for result in part.results)
        )
        if isinstance(part, ToolCallPart) and not part.provider_executed
        else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)
