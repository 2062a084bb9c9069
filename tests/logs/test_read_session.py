"""A log read alone has the history that it has in a store."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from support.agent_cases import check_lack, names, one_per_package
from support.plain_agent import Log, PlainAgent, PlainFold
from support.plain_history import write_history
from support.plain_store import read_home
from turnlog.agents.base import SourceKind
from turnlog.agents.claude_code import ClaudeCode
from turnlog.errors import FormatError, NotFoundError, SourceError
from turnlog.history.order import order_history
from turnlog.logs import SessionHistory, discover, extract_tool_calls, parse_log_file, read_session
from turnlog.logs.merger import SourceMerger
from turnlog.model import Membership, Message, Session, ToolCallPart, ToolResult, ToolResultEvent
from turnlog.pricing import price_nanos, price_version
from turnlog.store import open_store
from turnlog.store.connection import connect
from turnlog.sync.reader import SourceReader

DATA = Path(__file__).parent.parent / "data" / "claude_code"
SAMPLE = Path(turnlog.__file__).parent / "sample"
SUBAGENT = DATA / "scenarios" / "subagent" / "projects"


def is_log(path: Path) -> bool:
    return not {"subagents", "streams"} & {*path.parts} and not path.name.startswith("agent-")


LOGS = sorted(path for path in DATA.rglob("*.jsonl") if path.stat().st_size and is_log(path))


def copy_alone(log: Path, folder: Path) -> Path:
    """A home that holds one session only, with all that lies beside its log."""
    project = folder / "projects" / "p"
    project.mkdir(parents=True)
    for sibling in (log, *log.parent.glob("agent-*.jsonl")):
        shutil.copyfile(sibling, project / sibling.name)
    beside = log.with_suffix("")
    if beside.is_dir():
        shutil.copytree(beside, project / beside.name)
    return project / log.name


def read_into_store(home: Path, store: Path) -> None:
    connection = connect(store, checked=False)
    agent = ClaudeCode()
    SourceReader(connection, price_nanos, price_version()).read([(agent, source) for source in agent.discover([home])])
    connection.close()


def family(history: SessionHistory) -> Iterator[SessionHistory]:
    yield history
    for child in history.children:
        yield from family(child)


def test_a_log_without_a_sound_record_is_a_session_of_diagnostics(tmp_path: Path) -> None:
    """R-S34"""
    log = tmp_path / "projects" / "p" / "007df212-04d8-459f-b4ae-2c169607fa5c.jsonl"
    log.parent.mkdir(parents=True)
    log.write_bytes(b'{"type":"user","sessionId":"007df212-04d8-459f-b4ae-2c169607fa5c","mess\n')
    history = read_session(log)
    assert (history.session.id, history.messages) == (f"claude-code:{log.stem}", ())
    assert [found.line for found in history.diagnostics] == [1]
    assert parse_log_file(log) == []


@pytest.mark.parametrize("log", LOGS, ids=lambda path: str(path.relative_to(DATA)))
def test_it_equals_what_a_store_holds(log: Path, tmp_path: Path) -> None:
    """Messages, places, fates, events, totals, of the session and of every subagent, for every recorded log."""
    path = copy_alone(log, tmp_path / "home")
    read_into_store(tmp_path / "home", tmp_path / "turnlog.db")
    with open_store(tmp_path / "turnlog.db") as store:
        for history in family(read_session(path)):
            stored = store.messages(history.session.id)
            assert history.messages == tuple(placed.message for placed in stored)
            assert history.memberships == tuple(with_pay(placed.membership) for placed in stored)
            assert list(history.events) == [paying(event) for event in store.history(history.session.id)]
            if all(placed.membership.is_billed for placed in stored):
                assert comparable(history.session) == comparable(store.session(history.session.id))


def with_pay(membership: Membership) -> Membership:
    # Recorded subagents of one made-up server may hold messages of one id: then a store lets one of them pay.
    return msgspec.structs.replace(membership, is_billed=True)


def paying(event: Any) -> Any:
    membership = getattr(event, "membership", None)
    return event if membership is None else msgspec.structs.replace(event, membership=with_pay(membership))


def comparable(session: Session) -> Session:
    """Without what a store finds out by comparing sessions, and without the torn last line, which a store waits for."""
    return msgspec.structs.replace(
        session,
        relationships=tuple(link for link in session.relationships if not link.inferred),
        counts=msgspec.structs.replace(session.counts, diagnostics=0),
    )


STREAMS = sorted((DATA / "streams").glob("*.jsonl"))


@pytest.mark.parametrize("log", [*LOGS, *STREAMS], ids=lambda path: str(path.relative_to(DATA)))
def test_nothing_of_a_call_is_lost_or_invented(log: Path) -> None:
    """R-S31, R-S33, R-S16: the calls of the messages are all calls, with state, input and results."""
    messages = parse_log_file(log)
    assert messages == list(read_session(log).messages)
    calls = extract_tool_calls(messages)
    assert calls == [part for message in messages for part in message.parts if isinstance(part, ToolCallPart)]
    for call in calls:
        assert call.tool_name
        assert call.input is not msgspec.UNSET or call.input_text is not None


def test_subagents_are_children_with_their_call(tmp_path: Path) -> None:
    """R-C10."""
    (log,) = (path for path in SUBAGENT.rglob("*.jsonl") if is_log(path))
    history = read_session(log)
    children = {child.session.id: child for child in history.children}
    assert len(children) == 2
    started = {call.child_session_id for call in extract_tool_calls(history.messages)}
    assert set(children) <= started
    for child in children.values():
        assert child.messages
        assert child.session.relationships[0].parent_session_id == history.session.id
    assert [child.session.created_at for child in history.children] == sorted(
        child.session.created_at for child in history.children if child.session.created_at
    )


def test_results_know_where_they_arrived_and_what_the_agent_kept_of_them() -> None:
    (log,) = (path for path in (DATA / "scenarios" / "tools" / "projects").rglob("*.jsonl") if is_log(path))
    plain, full = read_session(log), read_session(log, structured=True)
    results = [result for call in extract_tool_calls(plain.messages) for result in call.results]
    kept = [result for call in extract_tool_calls(full.messages) for result in call.results]
    data = log.read_bytes()
    assert all(
        result.sequence is not None and data[result.sequence : result.sequence + 1] == b"{" for result in results
    )
    assert {result.structured for result in results} == {msgspec.UNSET}
    assert any(result.structured is not msgspec.UNSET for result in kept)
    assert [without_structure(result) for result in kept] == results


def without_structure(result: ToolResult) -> ToolResult:
    return msgspec.structs.replace(result, structured=msgspec.UNSET)


def test_spilled_outputs_lie_beside_the_log(tmp_path: Path) -> None:
    log = tmp_path / "projects" / "p" / "11111111-1111-4111-8111-111111111111.jsonl"
    outputs = log.with_suffix("") / "tool-results"
    outputs.mkdir(parents=True)
    (outputs / "b1.txt").write_bytes(b"all of it")
    (outputs / "evil.txt").symlink_to("/etc/passwd")
    log.write_bytes(
        b'{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"11111111-1111-4111-8111-111111111111",'
        b'"timestamp":"2026-11-20T10:00:00Z","message":{"role":"user","content":"hi"}}\n'
    )
    history = read_session(log)
    assert list(history.spills) == ["b1.txt"]
    assert history.read_spill("b1.txt") == b"all of it"
    with pytest.raises(NotFoundError):
        history.read_spill("evil.txt")
    (outputs / "b1.txt").unlink()
    with pytest.raises(SourceError, match=r"b1\.txt"):
        history.read_spill("b1.txt")


def test_what_cannot_be_read_is_a_diagnostic(tmp_path: Path) -> None:
    """R-S34: a torn last line too; the rest is read."""
    log = tmp_path / "s.jsonl"
    record = b'{"type":"user","uuid":"u1","sessionId":"s","message":{"role":"user","content":"hi"}}\n'
    log.write_bytes(record + b"{broken\n" + record.replace(b"u1", b"u2") + b'{"type":"user","mess')
    history = read_session(log)
    assert len(history.messages) == 2
    assert [(found.line, found.path) for found in history.diagnostics] == [(2, str(log)), (4, str(log))]
    assert history.session.counts.diagnostics == 2


def test_what_is_no_log_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "notes.jsonl"
    file.write_text("just text\n")
    for read in (read_session, parse_log_file):
        with pytest.raises(FormatError, match=r"notes\.jsonl"):
            read(file)
        with pytest.raises(SourceError, match=r"missing\.jsonl"):
            read(tmp_path / "missing.jsonl")
        with pytest.raises(SourceError, match=tmp_path.name):
            read(tmp_path)


def test_an_empty_log_has_no_messages(tmp_path: Path) -> None:
    """R-S31: a session that has just begun."""
    (tmp_path / "new.jsonl").touch()
    assert parse_log_file(tmp_path / "new.jsonl") == []
    with pytest.raises(FormatError, match="empty"):
        read_session(tmp_path / "new.jsonl")


def test_a_log_without_a_word_about_its_session_is_known_by_its_place(tmp_path: Path) -> None:
    log = tmp_path / "projects" / "p" / "s.jsonl"
    log.parent.mkdir(parents=True)
    log.write_bytes(b'{"type":"user","uuid":"u1","message":{"role":"user","content":"hi"}}\n')
    assert read_session(log).session.id == "claude-code:s"


def test_discover_lists_logs_with_project_and_session(tmp_path: Path) -> None:
    """R-S20, R-S21."""
    assert discover([tmp_path / "missing"]) == []
    sources = discover([SUBAGENT.parent])
    logs = [source for source in sources if source.kind is SourceKind.SESSION]
    assert [source.session_id for source in logs] == ["claude-code:11111111-1111-4111-8111-111111111111"]
    assert Path(logs[0].path).parent.parent == SUBAGENT
    assert {source.project for source in sources} == {Path(logs[0].path).parent.name}
    assert {source.kind for source in sources} == {SourceKind.SESSION, SourceKind.SUBAGENT, SourceKind.SIDECAR}


@pytest.mark.parametrize("agent", names(one_per_package()))
def test_every_log_is_listed_with_its_session_and_project(agent: str) -> None:
    """R-S20, R-S43: also of Gemini CLI, whose files have but the beginning of an id in their names."""
    kinds = (SourceKind.SESSION, SourceKind.SUBAGENT)
    logs = [source for source in discover(SAMPLE / agent) if source.agent == agent and source.kind in kinds]
    assert logs
    assert [source.session_id for source in logs] == [read_session(source.path).session.id for source in logs]
    check_lack(agent, "project in the path", [source.project is not None for source in logs])


def test_a_log_that_says_nothing_of_its_session_is_listed_without_one(tmp_path: Path) -> None:
    """R-S20"""
    chats = tmp_path / "tmp" / "work" / "chats"
    chats.mkdir(parents=True)
    (chats / "session-1-abcdef12.jsonl").write_text("no record\n")
    (chats / "session-2-abcdef12.json").write_text("")
    (chats / "session-3-abcdef12.jsonl").symlink_to(tmp_path / "gone")
    assert [(source.project, source.session_id) for source in discover(tmp_path)] == [("work", None), ("work", None)]


def test_discover_takes_one_root_as_it_is(tmp_path: Path) -> None:
    """R-S20"""
    log = tmp_path / "projects" / "-work" / "s.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text("")
    assert [source.path for source in discover(tmp_path)] == [str(log)]
    assert discover(str(tmp_path)) == discover([tmp_path])


def test_discover_looks_in_the_users_own_homes(home: Path) -> None:
    """R-S20."""
    assert discover() == []
    project = home / ".claude" / "projects" / "p"
    project.mkdir(parents=True)
    (project / "s.jsonl").touch()
    assert [source.session_id for source in discover()] == ["claude-code:s"]


# -- any history, read in any way, in memory as in tables


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one of everything, and a store of it."""
    folder = tmp_path_factory.mktemp("history")
    (folder / "home").mkdir()
    write_history(folder / "home")
    early = Log(folder / "home", "early")
    early.result("late", ToolResult(id="late:1", status="error"))
    early.message(Message(id="early", role="assistant", parts=(ToolCallPart(tool_call_id="late", tool_name="Bash"),)))
    early.result("never", ToolResult(id="never:1"))
    read_home(folder / "turnlog.db", folder / "home")
    return folder


@given(data=st.data())
def test_memory_and_tables_join_alike(written: Path, data: st.DataObject) -> None:
    """R-S32: any cut of the lines, any order of the files."""
    agent = PlainAgent(written / "home")
    merger = SourceMerger()
    for source in data.draw(st.permutations(list(agent.discover()))):
        content = Path(source.path).read_bytes()
        lines = content.splitlines(keepends=True)
        cuts = sorted(data.draw(st.sets(st.integers(0, len(lines)), max_size=4)) | {0, len(lines)})
        offset = 0
        for start, end in pairwise(cuts):
            piece = b"".join(lines[start:end]) if source.appendable else content
            merger.add(source, PlainFold(source).feed(piece, offset))
            if not source.appendable:
                break
            offset += len(piece)
    with open_store(written / "turnlog.db") as store:
        for session_id in merger.sessions:
            placed = merger.placed(session_id)
            stored = store.messages(session_id)
            assert placed == [(found.message, with_pay(found.membership)) for found in stored]
            events = order_history(placed, merger.events(session_id))
            assert events == [paying(event) for event in store.history(session_id)]


def test_an_orphan_stays_an_event(written: Path) -> None:
    with open_store(written / "turnlog.db") as store:
        results = [event for event in store.history("plain:early") if isinstance(event, ToolResultEvent)]
        assert [(event.tool_call_id, event.message_id) for event in results] == [("late", "early"), ("never", None)]


def test_the_counts_of_one_message_are_numbers(tmp_path: Path) -> None:
    log = tmp_path / "11111111-1111-4111-8111-111111111111.jsonl"
    record = {"type": "user", "uuid": "u", "sessionId": log.stem, "isMeta": True, "message": {"content": "context"}}
    log.write_bytes(msgspec.json.encode(record) + b"\n")
    counts = msgspec.json.decode(msgspec.json.encode(read_session(log).session.counts))
    assert [type(count) for count in counts.values()] == [int] * len(counts)
    assert counts["messages"] == 1


def test_of_a_file_of_no_agent_one_short_sentence_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello\n")
    with pytest.raises(FormatError, match=r"notes\.txt: of no agent that turnlog reads$") as caught:
        read_session(tmp_path / "notes.txt")
    assert "Codex: no line is a JSON object" in caught.value.of_agents
