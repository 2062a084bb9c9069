"""Joins must not show in which order things were read."""

from __future__ import annotations

from functools import reduce
from itertools import permutations
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.plain_store import at
from turnlog.agents.changes import EventChange, Link, Placement, ResultChange, SessionChange
from turnlog.model import (
    Approval,
    CompactionEvent,
    Fate,
    Message,
    RecordEvent,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolState,
)
from turnlog.model.session import TitleSource
from turnlog.model.tree import Placed
from turnlog.store.reconcile.merge import (
    add_late_result,
    merge_links,
    merge_placements,
    merge_records,
    merge_session_changes,
    messages_of_records,
    parents_of,
    place_messages,
    relationship_of,
)
from turnlog.store.reconcile.titles import choose_title

SESSION = "plain:one"

names = st.sampled_from(["a", "b", "c"])
brought = st.sets(st.none() | st.integers(0, 2) | names)
titled: st.SearchStrategy[TitleSource] = st.sampled_from(["custom", "prompt"])
times = st.none() | st.integers(0, 5).map(at)


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    """A reading of one message: what is at a position is the same in every reading."""
    position = draw(st.integers(0, 4))
    return Placement(
        session_id=SESSION,
        position=position,
        records=merge_records(
            [(position, 10, what) for what in draw(st.sets(st.none() | st.integers(0, 2) | names))], ()
        ),
        record_ids=(f"record {position}",),
        parent_id=f"parent of {position}" if position % 2 else None,
        parent_record=f"before {position}" if position == 2 else None,
        turn=position if position < 3 else None,
        fate=draw(st.sampled_from([Fate.ACTIVE, Fate.SIDECAR])),
        copied=draw(st.booleans()),
    )


@st.composite
def session_changes(draw: st.DrawFn) -> SessionChange:
    titles = draw(st.dictionaries(titled, names))
    return SessionChange(
        session_id=SESSION,
        position=draw(st.integers(0, 9)),
        project_path=draw(st.none() | names),
        project_at=draw(times),
        cwd=draw(st.none() | names),
        titles=titles,
        titled_at=draw(times) if "prompt" in titles else None,
        first_at=draw(times),
        last_at=draw(times),
        active_leaf=draw(st.none() | names),
        has_branches=draw(st.booleans()),
    )


@given(st.lists(placements(), min_size=1, max_size=5), st.randoms())
def test_placements_join_in_any_order(readings: list[Placement], random: Random) -> None:
    shuffled = list(readings)
    random.shuffle(shuffled)
    joined = reduce(merge_placements, readings)
    again = reduce(merge_placements, [*shuffled, *readings])
    assert set(again.record_ids) == set(joined.record_ids)
    assert facts_of(again) == facts_of(joined)
    assert joined.position == min(reading.position for reading in readings)


def facts_of(placement: Placement) -> list[object]:
    """All but the order of record ids, which nothing depends on."""
    names = ("position", "records", "parent_id", "parent_record", "turn", "step", "fate", "copied")
    return [getattr(placement, name) for name in names]


def test_the_first_record_decides_the_parent_and_the_turn() -> None:
    first = Placement(session_id=SESSION, position=10, parent_id=None, turn=1, records=((10, 5, 0),))
    later = Placement(session_id=SESSION, position=30, parent_id="other", turn=2, step=1, records=((30, 5, 1),))
    for one, other in ((first, later), (later, first)):
        joined = merge_placements(one, other)
        assert (joined.position, joined.parent_id, joined.turn, joined.step) == (10, None, 1, 1)
        assert joined.records == ((10, 5, 0), (30, 5, 1))


def test_records_are_in_file_order_once() -> None:
    assert merge_records([(9, 1, "r"), (3, 1, None)], [(3, 1, None), (9, 1, 10), (9, 1, 9), (3, 1, 0)]) == (
        (3, 1, None),
        (3, 1, 0),
        (9, 1, 9),
        (9, 1, 10),
        (9, 1, "r"),
    )


@given(session_changes(), session_changes())
def test_session_facts_join_either_way(one: SessionChange, other: SessionChange) -> None:
    assert merge_session_changes(one, other) == merge_session_changes(other, one)


@given(st.lists(session_changes(), min_size=3, max_size=3, unique_by=lambda change: change.position))
def test_session_facts_join_in_any_grouping(changes: list[SessionChange]) -> None:
    """In the order of the log, however the feeds were cut."""
    one, two, three = sorted(changes, key=lambda change: change.position)
    assert merge_session_changes(merge_session_changes(one, two), three) == merge_session_changes(
        one, merge_session_changes(two, three)
    )


def test_of_two_values_the_later_wins_and_the_first_project_stays() -> None:
    early = SessionChange(session_id=SESSION, position=1, project_path="/a", cwd="/a", first_at=at(3))
    late = SessionChange(session_id=SESSION, position=2, project_path="/b", cwd="/b", first_at=at(1))
    early.titles, late.titles = {"prompt": "x"}, {"prompt": "y"}
    joined = merge_session_changes(late, early)
    assert (joined.project_path, joined.cwd, joined.titles, joined.first_at) == ("/a", "/b", {"prompt": "y"}, at(1))


def test_the_earlier_of_two_projects_or_prompts_counts() -> None:
    first = SessionChange(session_id=SESSION, position=9, project_path="/b", project_at=at(1), titled_at=at(1))
    second = SessionChange(session_id=SESSION, position=1, project_path="/a", project_at=at(2), titled_at=at(2))
    untimed = SessionChange(session_id=SESSION, position=0, project_path="/c")
    first.titles, second.titles, untimed.titles = {"prompt": "one"}, {"prompt": "two"}, {"prompt": "three"}
    for changes in permutations((first, second, untimed)):
        joined = reduce(merge_session_changes, changes)
        assert (joined.project_path, joined.project_at) == ("/b", at(1))
        assert (joined.titles, joined.titled_at) == ({"prompt": "one"}, at(1))


def link(**fields: Any) -> Link:
    return Link(kind="subagent", parent_session_id="p", child_session_id="c", **fields)


def test_both_sides_of_a_relationship_are_one_link() -> None:
    sides = [link(inferred=True), link(tool_call_id="t"), link(message_id="m", metadata={"kind": "scout"})]
    joined = {repr(reduce(merge_links, order)) for order in permutations(sides)}
    assert joined == {repr(link(tool_call_id="t", message_id="m", metadata={"kind": "scout"}))}
    assert relationship_of(link(tool_call_id="t", inferred=True)).parent_tool_call_id == "t"


@pytest.mark.parametrize(
    ("titles", "chosen"),
    [
        ({}, None),
        ({"prompt": "p"}, ("p", "prompt")),
        ({"prompt": "p", "generated": "g", "custom": "c"}, ("c", "custom")),
        ({"user": "", "summary": "s", "prompt": "p"}, ("s", "summary")),
        ({"generated": '"A till"', "prompt": "p"}, ("A till", "generated")),
        ({"custom": '"A till"', "prompt": "p"}, ('"A till"', "custom")),
    ],
)
def test_titles_have_an_order(titles: dict[TitleSource, str], chosen: tuple[str, TitleSource] | None) -> None:
    """R-C6."""
    assert choose_title(titles) == chosen


def test_a_late_result_changes_its_call_only() -> None:
    calls = tuple(ToolCallPart(id=f"m.{id}", tool_call_id=id, tool_name="Bash") for id in ("a", "b"))
    message = Message(id="m", role="assistant", parts=(TextPart(text="x"), *calls))
    change = ResultChange(
        session_id=SESSION,
        tool_call_id="b",
        result=ToolResult(id="b:1", status="denied"),
        position=9,
        record=(9, 1),
        approval=Approval(approved=False),
    )
    text, first, second = add_late_result(message, change).parts
    assert (text, first) == message.parts[:2]
    assert isinstance(second, ToolCallPart)
    assert (second.state, second.approval) == (ToolState.OUTPUT_DENIED, Approval(approved=False))
    assert add_late_result(add_late_result(message, change), change) == add_late_result(message, change)


# -- the tree of a session


def place(position: int, parent: str | None = None, **fields: Any) -> Placement:
    record_ids = (f"r{position}",)
    return Placement(session_id=SESSION, position=position, parent_id=parent, record_ids=record_ids, **fields)


def event(position: int, parent: str) -> EventChange:
    return EventChange(
        session_id=SESSION,
        event=RecordEvent(id=f"e{position}", kind="note", position=position),
        record_id=f"r{position}",
        parent_id=parent,
    )


TREE = {
    "start": place(0),
    "first": place(1, "start"),
    "chatter": place(2, "first", fate=Fate.SIDECAR),
    "second": Placement(session_id=SESSION, position=4, parent_record="r3", record_ids=("r4",)),
    "answer": place(5, "second"),
}
EVENTS = [event(3, "start")]


def test_a_parent_is_found_through_the_event_between() -> None:
    message_of = messages_of_records(TREE, EVENTS)
    assert message_of["r3"] == "start"
    assert parents_of(TREE, message_of) == {
        "start": None,
        "first": "start",
        "chatter": "first",
        "second": "start",
        "answer": "second",
    }


def test_a_lost_parent_is_replaced_by_the_message_before() -> None:
    """It begins no new root, off which all that came before would be rewound. What is beside is nobody's parent."""
    assert parents_of(TREE, messages_of_records(TREE, []))["second"] == "first"
    placed = place_messages(TREE, [], messages_of_records(TREE, []), None)
    assert placed["first"] == Placed(fate=Fate.ACTIVE)
    lost = {"only": Placement(session_id=SESSION, position=4, parent_record="gone")}
    assert parents_of(lost, {}) == {"only": None}


def test_the_branch_that_was_left_is_rewound() -> None:
    assert place_messages(TREE, EVENTS, messages_of_records(TREE, EVENTS), None) == {
        "start": Placed(fate=Fate.ACTIVE),
        "first": Placed(fate=Fate.REWOUND, cause="second"),
        "chatter": Placed(fate=Fate.SIDECAR),
        "second": Placed(fate=Fate.ACTIVE),
        "answer": Placed(fate=Fate.ACTIVE),
    }


@pytest.mark.parametrize(
    ("leaf", "active"),
    [
        ("r1", {"start", "first"}),
        ("r3", {"start"}),
        ("", set[str]()),
        ("unknown", {"start", "second", "answer"}),
        (None, {"start", "second", "answer"}),
    ],
)
def test_the_agent_may_name_the_end_of_the_branch(leaf: str | None, active: set[str]) -> None:
    placed = place_messages(TREE, EVENTS, messages_of_records(TREE, EVENTS), leaf)
    assert {id for id, place in placed.items() if place.fate is Fate.ACTIVE} == active


def test_what_a_compaction_replaced_is_compacted() -> None:
    compaction = CompactionEvent(id="c", position=4, kept_message_ids=("start",))
    events = [*EVENTS, EventChange(session_id=SESSION, event=compaction)]
    tree = {**TREE, "second": place(3, "first")}
    placed = place_messages(tree, events, messages_of_records(tree, events), None)
    assert (placed["start"].fate, placed["first"].fate, placed["answer"].fate) == (
        Fate.ACTIVE,
        Fate.COMPACTED,
        Fate.ACTIVE,
    )
    assert placed["first"].cause == "c"
