"""What the model sees of a history, and that a replay never begins in the middle."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from support.replay_values import answer, call, kinds, message, placed, result, user
from turnlog import read_session
from turnlog.model import (
    CompactionEvent,
    Fate,
    HistoryEvent,
    Membership,
    Message,
    MessageEvent,
    Origin,
    RewindEvent,
    ToolResultEvent,
)
from turnlog.replay import model_view, replay

DATA = Path(__file__).parent.parent / "data"


def with_fate(event: MessageEvent, fate: Fate = Fate.COMPACTED) -> MessageEvent:
    place = Membership(session_id="s", message_id=event.message.id, position=0, fate=fate)
    return replace(event, membership=place)


def at_places(events: list[HistoryEvent]) -> list[HistoryEvent]:
    """Positions for the events and for their messages' places."""
    return [
        replace(event, membership=replace(event.membership, position=event.position))
        if isinstance(event, MessageEvent) and event.membership is not None
        else event
        for event in placed(events)
    ]


def ids(events: tuple[HistoryEvent, ...]) -> list[str]:
    return [
        event.message.id if isinstance(event, MessageEvent) else event.tool_call_id
        for event in events
        if isinstance(event, MessageEvent | ToolResultEvent)
    ]


SUMMARY = message("s", "developer", "so far", origin=Origin.COMPACTION)


def test_a_compaction_leaves_its_summary_and_what_it_kept() -> None:
    """Results of calls that are gone go too, also where the cut is between a call and its result."""
    history = at_places(
        [
            with_fate(message("p", "system", "prompt")),
            with_fate(user("old")),
            with_fate(answer(call("c"), id="a")),
            result("c", of="a"),
            answer(call("k"), id="kept"),
            result("k", of="kept"),
            CompactionEvent(id="x", summary_message_id="s", kept_message_ids=("kept",)),
            SUMMARY,
            message("v", "user", "next"),
        ]
    )
    view = model_view(history)
    assert ids(view.events) == ["p", "s", "kept", "k", "v"]
    assert {repair.message_id for repair in view.repairs} == {"u", "a"}
    assert kinds(replay(view.events)) == ["user", "turn-start", "assistant", "tool-call", "tool-result", "user"]
    assert len(kinds(replay(history))) > len(kinds(replay(view.events)))


def test_only_the_last_compaction_counts() -> None:
    first = with_fate(message("s1", "developer", "first", origin=Origin.COMPACTION))
    history = at_places(
        [
            with_fate(user("old")),
            CompactionEvent(id="x1", summary_message_id="s1"),
            first,
            with_fate(answer("more")),
            CompactionEvent(id="x2", summary_message_id="s"),
            SUMMARY,
        ]
    )
    assert ids(model_view(history).events) == ["s"]


def test_a_replacement_is_seen_though_no_record_names_it() -> None:
    replaced = Message(id="new", role="user")
    history = at_places([with_fate(user("old")), CompactionEvent(id="x", replacement=(replaced,)), answer("go on")])
    assert ids(model_view(history).events) == ["new", "a"]


@pytest.mark.parametrize("fate", [Fate.REWOUND, Fate.RETRACTED, Fate.SUPERSEDED, Fate.SIDECAR])
def test_what_left_the_branch_is_not_seen(fate: Fate) -> None:
    history = at_places(
        [user("go"), with_fate(answer(call("c")), fate), result("c"), RewindEvent(id="r"), answer("so", id="b")]
    )
    assert ids(model_view(history).events) == ["u", "b"]


def test_a_result_that_was_late_is_where_it_arrived() -> None:
    history = placed([answer(call("c")), message("v", "user", "wait"), result("c"), answer("so", id="b")])
    assert ids(model_view(history).events) == ["a", "v", "c", "b"]


def test_orphans_and_duplicates_are_not_seen() -> None:
    again = replace(result("c"), duplicate=True)
    history = placed([answer(call("c")), result("c"), again, result("x", of=None)])
    view = model_view(history)
    assert ids(view.events) == ["a", "c"]
    assert {repair.kind for repair in view.repairs} == {"duplicate-result", "orphan-result"}


@pytest.mark.parametrize("version", ["1.9.0", "2.0.0", "2.43.0"])
def test_recorded_sessions_begin_with_no_result(version: str) -> None:
    for log in sorted((DATA / "klaude/versions" / version).rglob("events.jsonl")):
        view = model_view(read_session(log).events)
        calls: set[str] = set()
        for event in view.events:
            if isinstance(event, MessageEvent):
                calls |= {part.tool_call_id for part in event.message.parts if part.type == "tool-call"}
            elif isinstance(event, ToolResultEvent):
                assert event.tool_call_id in calls


def test_a_call_without_a_result_gets_one_before_the_results_that_came() -> None:
    """As requests have it; nobody stopped the call as far as is known, so nothing was interrupted."""
    history = placed([user("go"), answer(call("one"), call("two")), result("two"), answer("so", id="b")])
    view = model_view(history)
    assert ids(view.events) == ["u", "a", "one", "two", "b"]
    added = view.events[2]
    assert isinstance(added, ToolResultEvent)
    assert (added.result.status, added.message_id) == ("error", "a")
    assert "no result" in added.output_text
    assert [(repair.kind, repair.tool_call_id) for repair in view.repairs] == [("unanswered-call", "one")]
    assert "interrupt" not in kinds(replay(view.events))
