"""R-K7, R-K2: messages, results and events as one list."""

from __future__ import annotations

import pytest

from support.replay_values import answer, call, user
from turnlog.history import history
from turnlog.model import (
    ErrorEvent,
    HistoryEvent,
    Membership,
    Message,
    MessageEvent,
    Origin,
    ToolCallPart,
    ToolResult,
    ToolResultEvent,
    ToolState,
)


def names(events: list[HistoryEvent]) -> list[str]:
    return [
        event.message.id
        if isinstance(event, MessageEvent)
        else event.result.id
        if isinstance(event, ToolResultEvent)
        else str(event.__struct_config__.tag)
        for event in events
    ]


def answered(identity: str, *results: str, sequence: int | None = None, provider: bool = False) -> ToolCallPart:
    return ToolCallPart(
        tool_call_id=identity,
        tool_name="Bash",
        state=ToolState.OUTPUT_AVAILABLE,
        provider_executed=provider,
        results=tuple(ToolResult(id=result, sequence=sequence) for result in results),
    )


def test_messages_alone_are_numbered_and_their_results_follow_them() -> None:
    """R-K2, R-K7"""
    messages = [
        user("go").message,
        answer(answered("c", "c1", "c2"), answered("d", "d1"), answered("w", "w1", provider=True)).message,
        answer("done", id="b").message,
        Message(id="n", role="developer", origin=Origin.NOTIFICATION),
        Message(id="v", role="user"),
        answer("more", id="e").message,
    ]
    events = history(messages, [ErrorEvent(id="x", error_text="no", position=1)])
    assert names(events) == ["u", "a", "c1", "c2", "d1", "error", "b", "n", "v", "e"]
    places = [event.membership for event in events if isinstance(event, MessageEvent) and event.membership]
    assert [(place.turn, place.step) for place in places] == [(1, None), (1, 1), (1, 2), (1, None), (2, None), (2, 1)]
    before = events[1]
    assert isinstance(before, MessageEvent)
    states = [(part.state, len(part.results)) for part in before.message.parts if isinstance(part, ToolCallPart)]
    assert states == [
        (ToolState.INPUT_AVAILABLE, 0),
        (ToolState.INPUT_AVAILABLE, 0),
        (ToolState.OUTPUT_AVAILABLE, 1),
    ]


def test_places_of_a_log_decide_the_order() -> None:
    messages = [answer(answered("c", "c1", sequence=30)).message, answer("b", id="b").message]
    members = [
        Membership(session_id="s", message_id="a", position=10, turn=1, step=1),
        Membership(session_id="s", message_id="b", position=20, turn=1, step=2),
    ]
    assert names(history(messages, (), members)) == ["a", "b", "c1"]


def test_every_message_needs_its_place_where_there_are_places() -> None:
    with pytest.raises(ValueError, match="shorter"):
        history([answer(call("c")).message], (), [])
