"""Calls of subagents that were killed: they are over when that which started the subagent is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path

import pytest

from support.claude_files import AGENT, DATA, Log, call, lines, text
from support.store_dump import check_integrity, differences, dump
from turnlog.logs import read_session
from turnlog.model import Message, ToolCallPart, ToolResult, ToolState
from turnlog.pricing import price_nanos, price_version
from turnlog.store.connection import connect
from turnlog.store.reconcile.calls import ABANDONED, CallEnd, abort_open_calls, end_of_call
from turnlog.sync.reader import SourceReader

KILLED = DATA / "versions" / "2.1.215-killed"
SESSION = "b69bd402-65a2-4ee5-a364-16da6abd085c"
LOG = KILLED / "projects" / "-home-dev-proj" / f"{SESSION}.jsonl"
UNNAMED = DATA / "versions" / "2.1.76-killed"
UNNAMED_LOG = UNNAMED / "projects" / "-home-dev-proj" / "606168f0-4f7e-4df2-a610-48001b1f5652.jsonl"

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def states(store: Path) -> dict[str, str]:
    connection = connect(store, read_only=True)
    try:
        return dict(
            connection.execute("SELECT tool_call_id, tool_state FROM parts WHERE tool_call_id IS NOT NULL").fetchall()
        )
    finally:
        connection.close()


def read(store: Path, home: Path, order: tuple[int, ...] | None = None) -> None:
    """Files in this order, one pass each; None for all in one pass."""
    sources = [(AGENT, source) for source in AGENT.discover([home])]
    connection = connect(store, checked=False)
    try:
        reader = SourceReader(connection, price_nanos, price_version())
        for step in [sources] if order is None else [[sources[number]] for number in order]:
            assert reader.read(step).problems == []
        check_integrity(connection)
    finally:
        connection.close()


def test_open_calls_of_a_killed_subagent_are_aborted_in_any_order(tmp_path: Path) -> None:
    """R-K9, R-C13: 2.1.215 was killed while its subagent ran a command; the parent's next turn ends both."""
    known = None
    for order in (None, *permutations(range(3))):
        store = tmp_path / f"{order}.db"
        read(store, KILLED, order)
        assert states(store) == {"toolu_taskC": "aborted", "toolu_j1": "output-available", "toolu_sC1": "aborted"}
        connection = connect(store, read_only=True)
        known = known or dump(connection)
        assert differences(dump(connection), known) == []
        connection.close()


def test_a_resume_says_that_a_subagent_in_the_background_was_stopped(tmp_path: Path) -> None:
    """R-K9: 2.1.231 was killed, and says so of its subagent when it begins anew."""
    read(tmp_path / "store.db", DATA / "versions" / "2.1.231-stopped")
    assert states(tmp_path / "store.db") == {"toolu_taskC": "aborted", "toolu_w1": "aborted", "toolu_sC1": "aborted"}


def test_a_subagent_whose_call_was_only_found_by_its_words_ends_with_it(tmp_path: Path) -> None:
    """R-K9, R-C13: in 2.1.76 no record names the call of a subagent that was killed."""
    paths = [Path(source.path).name for source in AGENT.discover([UNNAMED])]
    first, last = paths.index(UNNAMED_LOG.name), paths.index("agent-ab3e5454d189434c7.jsonl")
    rest = [number for number in range(len(paths)) if number not in (first, last)]
    for order in (None, (first, last, *rest), (last, *rest, first)):
        store = tmp_path / f"{order}.db"
        read(store, UNNAMED, order)
        assert {name: states(store)[name] for name in ("toolu_x4", "toolu_subK1")} == {
            "toolu_x4": "aborted",
            "toolu_subK1": "aborted",
        }


@pytest.mark.parametrize("backwards", [False, True])
def test_what_a_killed_workflow_left_open_is_aborted(backwards: bool, tmp_path: Path) -> None:
    """R-K9, R-C13: 2.1.330 was killed, and says so of the run when it begins anew."""
    home, store = DATA / "versions" / "2.1.330-workflow", tmp_path / "store.db"
    numbers = range(len(list(AGENT.discover([home]))))
    read(store, home, tuple(reversed(numbers)) if backwards else tuple(numbers))
    assert (states(store)["toolu_wB"], states(store)["toolu_wB2"]) == ("aborted", "output-available")


@pytest.mark.parametrize(("log", "call_id"), [(LOG, "toolu_sC1"), (UNNAMED_LOG, "toolu_subK1")])
def test_a_log_read_alone_says_the_same(log: Path, call_id: str) -> None:
    (child,) = read_session(log).children
    (found,) = [part for message in child.messages for part in message.parts if isinstance(part, ToolCallPart)]
    assert (found.tool_call_id, found.state) == (call_id, ToolState.ABORTED)


@pytest.mark.parametrize(("report", "state"), [(None, "input-available"), ("completed", "aborted")])
def test_a_subagent_in_the_background_goes_on_until_its_report(report: str | None, state: str, tmp_path: Path) -> None:
    folder = tmp_path / "home" / "projects" / "-home-dev-proj"
    child = folder / SESSION / "subagents" / "agent-a1.jsonl"
    child.parent.mkdir(parents=True)
    parent = Log(sessionId=SESSION)
    records = [
        parent.user("Start"),
        parent.assistant("msg_1", call("t1", "Agent", prompt="Count"), stop="tool_use"),
        parent.result("t1", "Async agent launched", toolUseResult={"isAsync": True, "agentId": "a1"}),
        parent.assistant("msg_2", text("It runs.")),
    ]
    inner = Log(sessionId=SESSION, isSidechain=True, agentId="a1")
    inner.count = parent.count
    inner_records = [inner.user("Count"), inner.assistant("msg_3", call("t2"), stop="tool_use")]
    parent.count = inner.count
    if report is not None:
        note = (
            f"<task-notification><task-id>a1</task-id><status>{report}</status><result>2</result></task-notification>"
        )
        records.append(parent.user(note, origin={"kind": "task-notification"}))
    (folder / f"{SESSION}.jsonl").write_bytes(lines(*records))
    child.write_bytes(lines(*inner_records))
    read(tmp_path / "store.db", tmp_path / "home")
    assert states(tmp_path / "store.db")["t2"] == state
    (found,) = read_session(folder / f"{SESSION}.jsonl").children
    assert [part.state for part in found.messages[-1].parts if isinstance(part, ToolCallPart)] == [state]


def calling(*states: ToolState) -> Message:
    """A message with a call in each of these states, a minute apart."""
    parts = [
        ToolCallPart(
            tool_call_id=f"t{number}", tool_name="Bash", state=state, started_at=NOON + timedelta(0, 60 * number)
        )
        for number, state in enumerate(states)
    ]
    return Message(id="m", role="assistant", parts=tuple(parts))


def test_only_open_calls_that_began_before_the_end_are_given_up() -> None:
    message = calling(ToolState.OUTPUT_ERROR, ToolState.INPUT_AVAILABLE, ToolState.INPUT_AVAILABLE)
    result = ToolResult(id="r", status="success", completed_at=NOON + timedelta(0, 90))
    ended = ToolCallPart(tool_call_id="p", tool_name="Agent", state=ToolState.OUTPUT_AVAILABLE, results=(result,))
    end = end_of_call(ended)
    assert end is not None
    calls = [part for part in abort_open_calls(message, end).parts if isinstance(part, ToolCallPart)]
    assert [part.state for part in calls] == ["output-error", "aborted", "input-available"]
    assert abort_open_calls(calling(ToolState.INPUT_AVAILABLE), CallEnd(0)) == calling(ToolState.INPUT_AVAILABLE)
    (given_up,) = [part for part in abort_open_calls(calling(ToolState.INPUT_AVAILABLE), ABANDONED).parts]
    assert isinstance(given_up, ToolCallPart)
    assert given_up.state is ToolState.ABORTED
