"""Crush's rows become messages, as its own program reads them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.claude_files import Gathered, gather
from support.crush_files import write_home, write_rows
from support.format_page import FormatPage, named
from support.scripted import answers, blocks, calls, in_order, in_pieces
from turnlog.agents import agent, detect
from turnlog.agents.base import Source, SourceKind, reads_rows
from turnlog.agents.commands import prompted_command, resume_command
from turnlog.agents.crush.contents import TOOL_KINDS, time_of
from turnlog.agents.crush.database import KEYS
from turnlog.agents.crush.fold import ROLES
from turnlog.model import CompactionEvent, Fate, FilePart, InterruptEvent, Origin, ReasoningPart
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

AGENT = agent("crush")
TOUR = Path(__file__).parents[2] / "data/crush/handwritten/tour"
MAIN, STOPPED = (f"8c4e2b70-1111-4d3a-8f00-00000000000{number}" for number in (1, 2))
CHILD = "5d2f6c1e-0a4b-4c7d-9e1f-000000000009$$call_sub1"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with Crush's data in its usual place."""
    write_home(TOUR, tmp_path / "work/.crush")
    return tmp_path / "work"


def log_of(source: Source) -> bytes:
    assert reads_rows(AGENT, source)
    return b"".join(AGENT.read_rows(source, ()).lines)


def read(project: Path, session: str, kind: SourceKind = SourceKind.SESSION) -> Gathered:
    found = AGENT.discover([project])
    [source] = [one for one in found if one.session_id == f"crush:{session}" and one.kind is kind]
    return gather(AGENT.fold(source).feed(log_of(source), 0))


def test_answers_have_their_parts_in_order(project: Path) -> None:
    found = answers(read(project, MAIN))
    assert blocks(found[0]) == [
        ("thinking", "I should look at the notes file first."),
        ("text", "I will read the notes."),
        ("tool", ("view", "call_read1", {"file_path": "/home/dev/work/notes.txt"})),
    ]
    assert [name for name, _ in blocks(found[1])] == ["text", "tool", "tool"]
    assert [message.stop_reason for message in found] == ["tool_use", "tool_use", "stop", "tool_use", "stop"]
    assert {message.model for message in found} == {"claude-sonnet-4-5"}
    [thought] = [part for part in found[0].parts if isinstance(part, ReasoningPart)]
    assert thought.duration_ms == 2000
    assert thought.provider is not None
    assert thought.provider.opaque == {"signature": "c2ln"}


def test_results_say_how_their_calls_ended(project: Path) -> None:
    """R-C8"""
    found = {name: call.results for name, call in calls(in_order(read(project, MAIN))).items()}
    assert {name: [(one.status, one.exit_code) for one in each] for name, each in found.items()} == {
        "call_read1": [("success", None)],
        "call_par1": [("success", None)],
        "call_fail1": [("error", 3)],
        "call_edit1": [("success", None)],
        "call_rm1": [("denied", None)],
        "call_sub1": [("success", None)],
    }
    [stopped] = calls(in_order(read(project, STOPPED))).values()
    assert stopped.results[0].status == "aborted"


def test_what_a_tool_says_beside_the_text_is_its_object(project: Path) -> None:
    source = next(one for one in AGENT.discover([project]) if one.session_id == f"crush:{MAIN}")
    [line] = [one for one in log_of(source).splitlines() if b'"tool"' in one and b"call_edit1" in one]
    found = AGENT.structured_result(line, "call_edit1")
    assert found is not None
    assert json.loads(bytes(found))["additions"] == 1
    assert AGENT.structured_result(line, "call_rm1") is None


def test_a_picture_is_a_file_and_a_command_of_the_user_has_its_output(project: Path) -> None:
    first, *_, typed, output = in_order(read(project, MAIN))
    [picture] = [part for part in first.parts if isinstance(part, FilePart)]
    assert (picture.media_type, picture.filename, (picture.data or b"")[:4]) == ("image/png", "dot.png", b"\x89PNG")
    assert [(one.origin, blocks(one)) for one in (typed, output)] == [
        (Origin.SHELL, [("text", "git status")]),
        (Origin.SHELL_OUTPUT, [("text", "nothing to commit\n")]),
    ]


def test_a_subagent_is_named_by_its_call(project: Path) -> None:
    [link] = read(project, CHILD, SourceKind.SIDECAR).links.values()
    assert (link.kind, link.parent_session_id, link.tool_call_id) == ("subagent", f"crush:{MAIN}", "call_sub1")
    assert in_order(read(project, CHILD))[0].origin is Origin.SUBAGENT_PROMPT


def test_what_a_subagent_cost_is_its_own(project: Path) -> None:
    """Crush adds it to its parent."""
    costs = [
        change.reported_cost
        for session in (MAIN, CHILD)
        for change in read(project, session, SourceKind.SIDECAR).sessions.values()
    ]
    assert costs == [pytest.approx(0.04), pytest.approx(0.01)]


def test_an_answer_that_was_stopped_and_one_that_failed_say_so(project: Path) -> None:
    found = read(project, STOPPED)
    stopped, failed = answers(found)
    [interrupt] = [one.event for one in found.events.values() if isinstance(one.event, InterruptEvent)]
    assert (stopped.stop_reason, interrupt.message_id) == ("aborted", stopped.id)
    assert failed.error is not None
    assert failed.error.text == "Provider Error: The model is not available."


def test_a_summary_takes_the_place_of_what_was_said_before(project: Path, tmp_path: Path) -> None:
    found = read(project, STOPPED)
    [event] = [one.event for one in found.events.values() if isinstance(one.event, CompactionEvent)]
    assert found.messages[event.summary_message_id or ""].origin is Origin.COMPACTION
    sync(tmp_path / "store.db", roots=[project], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        fates = [one.membership.fate for one in store.messages(f"crush:{STOPPED}")]
    assert fates == [Fate.COMPACTED] * 2 + [Fate.ACTIVE] * 3


def test_every_row_is_accounted_for_and_any_split_equals_the_whole(project: Path) -> None:
    """R-S34"""
    for source in AGENT.discover([project]):
        data = log_of(source)
        whole = gather(AGENT.fold(source).feed(data, 0))
        assert whole.diagnostics == []
        assert whole.counts.total == data.count(b"\n")
        if source.appendable:
            assert in_pieces(AGENT, source, data).as_json() == whole.as_json()


def test_an_answer_that_grows_is_read_again(project: Path, tmp_path: Path) -> None:
    """Crush writes to the row of an answer while it is streamed."""
    sync(tmp_path / "store.db", roots=[project], agents=[AGENT])
    rows = json.loads((TOUR / "crush.json").read_text())["messages"]
    last = rows[-1] | {"parts": [{"type": "text", "data": {"text": "It is there again."}}]}
    write_rows(project / ".crush", {"messages": [last]})
    sync(tmp_path / "store.db", roots=[project], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        active = [one for one in store.messages(f"crush:{STOPPED}") if one.membership.fate is Fate.ACTIVE]
        assert blocks(active[-1].message) == [("text", "It is there again.")]


def test_parts_behind_one_that_is_cut_out_stay_once(project: Path, tmp_path: Path) -> None:
    """What was cut out stays too, because turnlog has read it."""
    rows = json.loads((TOUR / "crush.json").read_text())["messages"]
    row = next(one for one in rows if one["parts"][0]["type"] == "reasoning")
    shown: list[list[tuple[str, str]]] = []
    for parts in (row["parts"], row["parts"][1:]):
        write_rows(project / ".crush", {"messages": [row | {"parts": parts, "updated_at": row["updated_at"] + 1}]})
        sync(tmp_path / "store.db", roots=[project], agents=[AGENT])
        with open_store(tmp_path / "store.db") as store:
            shown += [
                sorted(blocks(one.message)) for one in store.messages(f"crush:{MAIN}") if one.message.id == row["id"]
            ]
    assert shown[0] == shown[1]


def rows_in(database: Path) -> dict[str, list[dict[str, Any]]]:
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        return {
            table: [
                {name: row[name] for name in sorted(row.keys()) if row[name] is not None}
                for row in connection.execute(f"SELECT * FROM {table} ORDER BY id")
            ]
            for table in KEYS
        }


def test_restored_rows_are_those_of_the_database(project: Path, tmp_path: Path) -> None:
    """R-S1"""
    sync(tmp_path / "store.db", roots=[project], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        for session in store.sessions(SessionFilter(subagents=True)).items:
            store.restore(session.id, tmp_path / "restored")
    [restored] = (tmp_path / "restored").rglob("crush.db")
    wanted = rows_in(project / ".crush/crush.db")
    # A session without messages is none.
    wanted["sessions"] = [row for row in wanted["sessions"] if row["message_count"]]
    assert rows_in(restored) == wanted


# -- where projects are


def test_the_projects_of_the_user_are_found(project: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = {"projects": [{"path": str(project), "data_dir": ".crush"}, {"path": "/gone", "data_dir": "/gone/.crush"}]}
    monkeypatch.setenv("CRUSH_GLOBAL_DATA", str(home / "data"))
    (home / "data").mkdir(parents=True)
    (home / "data/projects.json").write_text(json.dumps(listed))
    assert list(AGENT.roots()) == [project / ".crush"]
    found = [source for source in AGENT.discover() if source.path.endswith("#about")]
    assert len(found) == 3
    facts = found[0]
    [change] = AGENT.fold(facts).feed(log_of(facts), 0).sessions.values()
    assert (change.cwd, change.project_path) == (str(project), str(project))


def test_a_database_is_known_by_its_tables(project: Path, tmp_path: Path) -> None:
    """R-S21"""
    found = detect(project / ".crush/crush.db")
    assert (found.agent, len(found.sources)) == ("crush", 3)
    other = tmp_path / "crush.db"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE sessions (id TEXT)")
        connection.execute("CREATE TABLE messages (id TEXT, parts TEXT)")
    assert detect(other).agent is None


def test_times_are_seconds_or_milliseconds() -> None:
    """Comments in the tables say milliseconds, the statements that fill them write seconds."""
    assert time_of(1787300000) == time_of(1787300000000)
    assert time_of(0) is None


def test_a_session_is_resumed_by_its_id() -> None:
    assert AGENT.command is not None
    assert resume_command(AGENT.command, MAIN) == ["crush", "--session", MAIN]
    assert prompted_command(AGENT.command, MAIN) == ["crush", "run", "--session", MAIN]


def test_every_role_table_and_tool_is_on_the_page() -> None:
    """R-S23"""
    page = FormatPage("crush")
    assert sorted(name for cell, _ in page.rows("## Tables") for name in named(cell)) == sorted(KEYS)
    assert {named(role)[0] for role, *_ in page.rows("### Roles")} == ROLES
    tools = {tool: named(kind)[0] for cell, kind in page.rows("### Tools") for tool in named(cell)}
    assert tools == {name: kind.value for name, kind in TOOL_KINDS.items()}
