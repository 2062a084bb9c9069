"""What a session is doing: the rules of docs/reference/session-state.md, one line each."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import pytest

from turnlog.agents import agents
from turnlog.agents.base import HOOK_MARKERS
from turnlog.cli.status import status
from turnlog.model import ToolKind, ToolState
from turnlog.store.session_state import (
    QUIET_AFTER,
    Evidence,
    MarkerKind,
    PlacedCall,
    PlacedMarker,
    RunEvidence,
    StateName,
    TurnFacts,
    UnfinishedCall,
    session_state,
    status_of,
)

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "session-state.md").read_text()

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SOON, LATE = NOW - timedelta(seconds=30), NOW - timedelta(minutes=10)
ALIVE, KILLED = RunEvidence(is_alive=True), RunEvidence(is_alive=False, ended_at=NOW, exit_code=-9)
LOST = RunEvidence(is_alive=False)


def markers(*kinds: MarkerKind | tuple[MarkerKind, str]) -> list[PlacedMarker]:
    """Markers one behind the other, 10 apart; a kind may have a detail."""
    found: list[PlacedMarker] = []
    for position, given in enumerate(kinds, 1):
        kind, detail = given if isinstance(given, tuple) else (given, None)
        found.append(PlacedMarker(kind, 10 * position, LATE, detail))
    return found


def call(position: int, kind: str = ToolKind.EXECUTE, state: str = ToolState.INPUT_AVAILABLE) -> PlacedCall:
    return PlacedCall(position, UnfinishedCall("c1", "Bash", kind, state, SOON, "make"))


PROMPT, ANSWER = markers("prompt"), markers("prompt", ("answer", "stop"))
WORKING = markers("prompt", ("answer", "tool_use"))

CASES: dict[str, tuple[TurnFacts, RunEvidence | None, str]] = {
    "nothing was asked": (TurnFacts(), None, "done nothing"),
    "a prompt is new": (TurnFacts(PROMPT, last_at=SOON), None, "running open-turn"),
    "a prompt is old": (TurnFacts(PROMPT, last_at=LATE), None, "quiet silence"),
    "no time is known": (TurnFacts(PROMPT), None, "quiet silence"),
    "a request failed long ago": (TurnFacts(PROMPT, last_at=LATE, has_failed=True), None, "done answer"),
    "a request failed just now": (TurnFacts(PROMPT, last_at=SOON, has_failed=True), None, "running open-turn"),
    "a request failed beside a call": (TurnFacts(WORKING, [call(20)], LATE, True), None, "quiet silence"),
    "the model stopped": (TurnFacts(ANSWER, last_at=SOON), None, "done answer"),
    "the model gave no reason": (TurnFacts(markers("prompt", "answer"), last_at=SOON), None, "done answer"),
    "a call has its result": (TurnFacts(WORKING, last_at=SOON), None, "running open-turn"),
    "a call is open": (TurnFacts(WORKING, [call(20)], SOON), None, "running open-call"),
    "a call is open for long": (TurnFacts(WORKING, [call(20)], LATE), None, "quiet silence"),
    "a call waits": (TurnFacts(WORKING, [call(20, state="approval-requested")], LATE), None, "waiting approval"),
    "a call asks": (TurnFacts(WORKING, [call(20, kind="ask")], LATE), None, "waiting question"),
    "a plan is shown": (TurnFacts(WORKING, [call(20, kind="switch_mode")], LATE), None, "waiting question"),
    "an event asks": (TurnFacts(markers("prompt", "asks"), last_at=LATE), None, "waiting approval"),
    "a question is answered": (TurnFacts(markers("prompt", "asks"), last_at=SOON), None, "running open-turn"),
    "an end is told": (TurnFacts(markers("prompt", "answer", "end"), last_at=SOON), None, "done turn-ended"),
    "an end closes calls": (TurnFacts(markers("prompt", "answer", "end"), [call(20)], SOON), None, "done turn-ended"),
    "it was stopped": (TurnFacts(markers("prompt", "answer", "interrupt"), [call(20)], SOON), None, "done interrupt"),
    "the agent has ended": (TurnFacts(markers("prompt", "closed"), last_at=SOON), None, "done closed"),
    "the next turn began": (TurnFacts(markers("prompt", "end", "prompt"), last_at=SOON), None, "running open-turn"),
    "a call is old": (TurnFacts(markers("answer", "prompt", "answer"), [call(10)], SOON), None, "done answer"),
    "starts promise ends": (TurnFacts(markers("start", "prompt", "answer"), last_at=SOON), None, "running open-turn"),
    "a start has its end": (TurnFacts(markers("start", "answer", "end"), last_at=LATE), None, "done turn-ended"),
    "the run of a call lives": (TurnFacts(WORKING, [call(20)], LATE), ALIVE, "running process"),
    "the run of a prompt lives": (TurnFacts(PROMPT, last_at=LATE), ALIVE, "running process"),
    "only the turn is over": (TurnFacts(ANSWER, last_at=LATE), ALIVE, "done answer"),
    "the run was killed": (TurnFacts(WORKING, [call(20)], LATE), KILLED, "killed process-ended"),
    "the run was killed afterwards": (TurnFacts(ANSWER, last_at=LATE), KILLED, "done answer"),
    "the log went on": (TurnFacts(PROMPT, last_at=NOW + timedelta(1)), KILLED, "running open-turn"),
    "the run was lost": (TurnFacts(PROMPT, last_at=LATE), LOST, "quiet silence"),
}


@pytest.mark.parametrize("case", CASES)
def test_states(case: str) -> None:
    facts, run, expected = CASES[case]
    found = session_state(facts, run, NOW)
    assert f"{found.state} {found.evidence}" == expected


def test_what_is_reported_besides() -> None:
    running = session_state(TurnFacts(WORKING, [call(20)], SOON), None, NOW)
    assert running.doing == call(20).call
    assert (running.since, running.quiet_at) == (SOON, SOON + QUIET_AFTER)
    quiet = session_state(TurnFacts(WORKING, [call(20)], LATE), None, NOW)
    assert (quiet.since, quiet.quiet_at, quiet.doing) == (LATE, None, call(20).call)
    killed = session_state(TurnFacts(WORKING, [call(20)], LATE), KILLED, NOW)
    assert (killed.since, killed.detail) == (NOW, "-9")
    assert session_state(TurnFacts(ANSWER, last_at=LATE), None, NOW).detail == "stop"


def test_a_failed_request_in_the_place_of_an_answer_is_a_failure() -> None:
    for ended in markers("prompt", ("answer", "error")), markers("prompt", ("answer", "error"), "end"):
        failed = session_state(TurnFacts(ended, last_at=LATE), None, NOW)
        assert (failed.state, failed.evidence, failed.detail) == ("done", "answer", "error")
        assert (status_of(failed), status(failed)) == ("failed", "Failed")
    again = markers("prompt", ("answer", "error"), "prompt", ("answer", "stop"))
    assert status_of(session_state(TurnFacts(again, last_at=LATE), None, NOW)) == "done"
    assert status(session_state(TurnFacts(markers("prompt", "interrupt"), last_at=LATE), None, NOW)) == "Stopped"


def test_running_turns_quiet_when_it_says() -> None:
    facts = TurnFacts(WORKING, [call(20)], SOON)
    quiet_at = session_state(facts, None, NOW).quiet_at
    assert quiet_at is not None
    assert session_state(facts, None, quiet_at - timedelta(seconds=1)).state == "running"
    assert session_state(facts, None, quiet_at).state == "quiet"


def test_the_page_names_every_state_evidence() -> None:
    assert set(re.findall(r"^\| `?(\w*)`? ?\| `([\w-]+)` \|", PAGE, re.MULTILINE)) >= {("running", "process")}
    table = PAGE.partition("## The rules")[0]
    assert {word for word in get_args(StateName) if f"`{word}`" not in table} == set()
    assert {word for word in get_args(Evidence) if f"| `{word}` |" not in table} == set()


def test_each_agents_markers_are_kinds_of_its_own_page() -> None:
    marked = [agent for agent in agents() if agent.turn_markers]
    assert len(marked) > 3
    for agent in marked:
        page = (Path(__file__).parents[2] / "docs" / "formats" / f"{agent.name}.md").read_text()
        assert {kind for kind in agent.turn_markers if f"`{kind}`" not in page} == set(), agent.name
    assert {kind for kind in HOOK_MARKERS if f"`{kind.removeprefix('hook:')}`" not in PAGE} == set()
