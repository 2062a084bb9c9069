"""Subagents of which no record names the call belong to the call that began their run or has their prompt."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from itertools import permutations
from pathlib import Path

import pytest

from support.store_dump import differences, dump
from turnlog.agents import agents, find_sources
from turnlog.logs import SessionHistory, read_session
from turnlog.model import Part, Relationship, ToolCallPart
from turnlog.pricing import price_nanos, price_version
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.store.connection import connect
from turnlog.store.reconcile.calls import SpawnCall, SpawnedSession, match_spawn_calls
from turnlog.sync.reader import SourceReader

DATA = Path(__file__).parents[2] / "data"
KILLED = DATA / "claude_code" / "versions" / "2.1.76-killed"
KILLED_LOG = KILLED / "projects" / "-home-dev-proj" / "606168f0-4f7e-4df2-a610-48001b1f5652.jsonl"
WORKFLOW = DATA / "claude_code" / "versions" / "2.1.330-workflow"
WORKFLOW_LOG = WORKFLOW / "projects" / "-home-dev-proj" / "11111111-1111-4111-8111-111111111111.jsonl"
NESTED = DATA / "claude_code" / "versions" / "2.1.330-nested"
GEMINI = DATA / "gemini_cli" / "subagents"

LOGS = {KILLED: KILLED_LOG, WORKFLOW: WORKFLOW_LOG}
RECORDED = {
    # A run that was killed and begun again: the last began in the second. A call shows the first by id of its own.
    "2.1.330": (
        WORKFLOW,
        {
            f"claude-code:{WORKFLOW_LOG.stem}.{agent}": call
            for agent, call in (
                ("aca1fa22d72b04b6f", "toolu_wf"),
                ("a33d9a82c7f6813ca", "toolu_wf"),
                ("a245254fb61f34fc9", "toolu_wf"),
                ("a72891879b2e660a0", "toolu_wf2"),
            )
        },
    ),
    "2.1.76": (KILLED, {"claude-code:606168f0-4f7e-4df2-a610-48001b1f5652.ab3e5454d189434c7": "toolu_x4"}),
    "0.30.1": (
        GEMINI / "0.30.1",
        {"gemini-cli:2d2617ac-699a-4b36-8988-ee08e8133f30.20261121T182951": ("codebase_investigator_1795285791710_0")},
    ),
    "0.34.0": (
        GEMINI / "0.34.0",
        {"gemini-cli:34e1383b-9e93-4c46-a11e-4c0f6fff11b7.20261121T183252": ("codebase_investigator_1795285971876_0")},
    ),
    "0.38.2": (
        GEMINI / "0.38.2",
        {
            "gemini-cli:9xxa7p": "codebase_investigator_1795286112679_0",
            "gemini-cli:920q5f": "codebase_investigator_1795286115434_0",
            "gemini-cli:n1pp6a": "codebase_investigator_1795286115435_1",
            "gemini-cli:xfiw2k": "codebase_investigator_1795286199861_0",
        },
    ),
}


def call(number: int, *texts: str, at: int | None = None, answered: int | None = None) -> SpawnCall:
    return SpawnCall(f"c{number}", f"m{number}", at, answered, texts)


def child(name: str, prompt: str, at: int | None = None) -> SpawnedSession:
    return SpawnedSession(name, at, prompt)


def children_in(parts: Iterable[tuple[Part, ...]]) -> dict[str, str]:
    """Call -> the session that it started."""
    calls = (part for found in parts for part in found if isinstance(part, ToolCallPart))
    return {call.tool_call_id: call.child_session_id for call in calls if call.child_session_id is not None}


def inferred(relationships: Iterable[Relationship]) -> list[str]:
    """The calls of inferred relationships."""
    return sorted(known.parent_tool_call_id for known in relationships if known.inferred and known.parent_tool_call_id)


def family(history: SessionHistory) -> Iterator[SessionHistory]:
    yield history
    for known in history.children:
        yield from family(known)


def found(calls: list[SpawnCall], *children: SpawnedSession) -> dict[str, str]:
    return {name: call.tool_call_id for name, call in match_spawn_calls(calls, children).items()}


def test_the_call_with_the_same_words_asked() -> None:
    calls = [call(1, "Count", at=1), call(2, "Count the files", at=2)]
    assert found(calls, child("a", "Count the files", 3)) == {"a": "c2"}
    assert found(calls, child("a", "Count the folders", 3)) == {}


def test_words_may_be_in_the_prompt_on_lines_of_their_own() -> None:
    calls = [call(1, "Count", at=1)]
    assert found(calls, child("a", "Do this:\n<task>\nCount\n</task>", 3)) == {"a": "c1"}
    assert found(calls, child("a", "Count on me to do this", 3)) == {}
    both = [call(1, "Count", at=1), call(2, "As I said\nCount", at=1)]
    assert found(both, child("a", "As I said\nCount", 3)) == {"a": "c2"}


def test_equal_words_are_distinguished_by_their_times() -> None:
    calls = [call(1, "Go", at=1), call(2, "Go", at=5), call(3, "Go", at=5)]
    assert found(calls, child("a", "Go", 2), child("b", "Go", 6), child("c", "Go", 7)) == {
        "a": "c1",
        "b": "c2",
        "c": "c3",
    }
    # The first call was killed before its child wrote anything.
    assert found(calls[:2], child("b", "Go", 6)) == {"b": "c2"}
    assert found([call(1, "Go"), call(2, "Go")], child("a", "Go"), child("b", "Go")) == {"a": "c1", "b": "c2"}


def test_a_call_that_was_answered_before_did_not_ask() -> None:
    late = [call(1, "Go", at=4, answered=4), call(2, "Go", at=8, answered=8)]
    assert found(late, child("a", "Go", 2), child("b", "Go", 6)) == {"a": "c1", "b": "c2"}
    assert found([call(1, "Go", at=1, answered=2)], child("a", "Go", 3)) == {}


def test_a_run_has_many_children_and_its_words_are_nobodys_question() -> None:
    began = call(1, "Go", at=1, answered=4)._replace(runs=("r",))
    again = call(2, at=5)._replace(runs=("r",))
    of_run = [SpawnedSession(name, at, "", "r") for name, at in (("a", 2), ("b", 2), ("c", 6))]
    assert found([began, again], *of_run, child("d", "Go", 3)) == {"a": "c1", "b": "c1", "c": "c2"}
    assert found([began], SpawnedSession("a", 2, "", "other")) == {}


def test_a_subagents_subagent_has_one_parent(tmp_path: Path) -> None:
    """R-C13: its own log knows only the session that a person sees; its parent is named by the call's result."""
    root = f"claude-code:{WORKFLOW_LOG.stem}"
    store = tmp_path / "store.db"
    connection = connect(store, checked=False)
    SourceReader(connection, price_nanos, price_version()).read(
        [(agent, source) for agent in agents() for source in agent.discover([NESTED])]
    )
    connection.close()
    log = next((NESTED / "projects").glob("*/*.jsonl"))
    alone = {each.session.id: each.session for each in family(read_session(log))}
    with open_store(store) as opened:
        for nested in ("aacdbd0c7d247149d", "a722cd30addde570d"):
            (link,) = opened.session(f"{root}.{nested}").relationships
            assert [link] == list(alone[f"{root}.{nested}"].relationships)
            assert not link.inferred
        children = {link.child_session_id for link in opened.relationships(root)}
        assert children == {child.id for child in opened.children(root)} == {f"{root}.a722cd30addde570d"}


@pytest.mark.parametrize("case", RECORDED)
def test_a_store_finds_the_call_in_any_order_of_the_files(case: str, tmp_path: Path) -> None:
    """R-C13"""
    home, calls = RECORDED[case]
    sources = list(find_sources(agents(), [home]))
    orders = list(permutations(sources)) if len(sources) < 4 else [tuple(sources), tuple(reversed(sources))]
    known = None
    for number, order in enumerate(orders):
        for step in (1, len(order)):
            store = tmp_path / f"{number}-{step}.db"
            connection = connect(store, checked=False)
            reader = SourceReader(connection, price_nanos, price_version())
            for start in range(0, len(order), step):
                reader.read(list(order[start : start + step]))
            known = known or dump(connection)
            assert differences(dump(connection), known) == []
            connection.close()
            with open_store(store) as opened:
                sessions = opened.sessions(SessionFilter(subagents=True)).items
                assert inferred(relationship for known in sessions for relationship in known.relationships) == sorted(
                    calls.values()
                )
                children: dict[str, str] = {}
                for session in sessions:
                    children |= children_in(placed.message.parts for placed in opened.messages(session.id))
                assert children == {call: child for child, call in calls.items()}


@pytest.mark.parametrize("case", RECORDED)
def test_a_log_read_alone_finds_it_too(case: str, tmp_path: Path) -> None:
    home, calls = RECORDED[case]
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    logs = [LOGS[home]] if home in LOGS else sorted((home / "tmp" / "work" / "chats").glob("*.json"))[:1]
    history = read_session(tmp_path / logs[0].relative_to(home))
    assert children_in(message.parts for message in history.messages) == {call: child for child, call in calls.items()}
    assert inferred(r for each in family(history) for r in each.session.relationships) == sorted(calls.values())
