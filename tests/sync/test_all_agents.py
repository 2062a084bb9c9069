"""The bundled logs of all agents in one store: every row that must hold for each of them alike, asked of the store."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from support.agent_cases import CASES, check_lack, has_lines, lines_of, names, one_per_package, reads_files
from support.environment import hide_places
from turnlog.agents import agent
from turnlog.model import Message, MessageEvent, Session, TextPart, ToolCallPart, ToolResultEvent, ToolState
from turnlog.server.sample import LOGS, sample_roots
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store, ToolCallFilter
from turnlog.store.connection import connect
from turnlog.store.values import PlacedMessage
from turnlog.sync.syncer import sync

every_agent = pytest.mark.parametrize("name", CASES)


def write_homes(home: Path) -> None:
    """Every agent's sample, where the agent keeps its logs below a user's home."""
    for name, case in CASES.items():
        shutil.copytree(LOGS / name, home / case.home)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that has read the logs of a home in which every agent has written."""
    folder = tmp_path_factory.mktemp("all")
    write_homes(folder / "home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder / "home"))
        hide_places(patch)
        sync(folder / "turnlog.db")
    return folder / "turnlog.db"


@pytest.fixture(scope="module")
def store(path: Path) -> Iterator[Store]:
    with open_store(path) as found:
        yield found


def sessions(store: Store, name: str) -> list[Session]:
    return [
        *store.sessions(SessionFilter(agent=name), limit=200).items,
        *store.sessions(SessionFilter(agent=name, relationship="subagent"), limit=200).items,
    ]


def placed(store: Store, name: str) -> list[PlacedMessage]:
    return [found for session in sessions(store, name) for found in store.messages(session.id)]


def messages(store: Store, name: str) -> list[Message]:
    return [found.message for found in placed(store, name)]


def calls(store: Store, name: str) -> list[ToolCallPart]:
    return [part for message in messages(store, name) for part in message.parts if isinstance(part, ToolCallPart)]


@every_agent
def test_every_session_message_and_call_names_its_source(store: Store, path: Path, name: str) -> None:
    """R-C1; R-C2: each was found at the agent's own place; R-S43."""
    assert sessions(store, name)
    assert {session.id for session in sessions(store, name)} == {
        f"{name}:{session.external_id}" for session in sessions(store, name)
    }
    found = store.tool_calls(ToolCallFilter(agent=name), limit=200).items
    assert {call.agent for call in found} == {name}
    assert {call.tool_call_id for call in found} == {call.tool_call_id for call in calls(store, name)}
    with closing(connect(path, read_only=True)) as connection:
        rows = connection.execute("SELECT DISTINCT agent FROM messages").fetchall()
    assert {row[0] for row in rows} == set(CASES)


@every_agent
def test_a_result_is_behind_its_call_and_before_the_answer_to_it(store: Store, name: str) -> None:
    """R-S19, R-K7: in the history of the store, whatever an agent's places are made of."""
    results = 0
    for session in sessions(store, name):
        called: set[str] = set()
        places: list[int] = []
        for event in store.history(session.id):
            places.append(event.position)
            if isinstance(event, MessageEvent):
                called |= {part.tool_call_id for part in event.message.parts if isinstance(part, ToolCallPart)}
            elif isinstance(event, ToolResultEvent):
                assert event.tool_call_id in called
                results += 1
        assert places == sorted(places)
    assert results


@every_agent
def test_the_record_behind_every_event_can_be_read(store: Store, name: str) -> None:
    """R-K7: whatever an agent's places are made of, what an event names are the bytes of its record."""
    records = 0
    for session in sessions(store, name):
        for event in store.history(session.id):
            for place in event.records:
                assert place.offset is not None
                assert place.length is not None
                record = store.record(place.source, place.offset, place.length)
                assert record.strip() if "lines of JSON" in CASES[name].lacks else json.loads(record)
                records += 1
    assert records


@every_agent
def test_other_homes_can_be_named_and_several_at_once(name: str, tmp_path: Path) -> None:
    """R-C2, R-S20: with their sessions, and one that is not there is empty."""
    one, missing, two = roots = [tmp_path / number / CASES[name].home for number in ("1", "2", "3")]
    for root in (one, two):
        shutil.copytree(LOGS / name, root)
    found = list(agent(name).discover(roots))
    assert {source.root for source in found} == {str(one), str(two)}
    assert not missing.exists()


@every_agent
def test_a_session_has_what_every_session_has(store: Store, name: str) -> None:
    """R-C6, R-S22: ids, title, folder, times, owner; the branch where the agent tells of it."""
    subagents = [each for each in sessions(store, name) if any(link.kind == "subagent" for link in each.relationships)]
    check_lack(name, "subagent titles", [all(each.title for each in subagents)] if subagents else [])
    check_lack(name, "working folder", [each.cwd is not None for each in sessions(store, name)])
    for session in sessions(store, name):
        assert (session.agent, session.external_id != "") == (name, True)
        assert session.title or session in subagents
        assert session.title == (session.title and session.title.strip())
        assert session.cwd in (None, CASES[name].sample_cwd)
        assert session.created_at is not None
        assert session.updated_at is not None
        assert session.created_at <= session.updated_at
        assert session.ownership is not None
        if session.title_source == "prompt" and not any(link.kind == "fork" for link in session.relationships):
            first = next(m for m in (p.message for p in store.messages(session.id)) if m.role == "user")
            said = " ".join(part.text for part in first.parts if isinstance(part, TextPart))
            assert session.title is not None
            assert session.title.rstrip("…") in " ".join(said.split())
    branches = {session.git_branch for session in sessions(store, name)}
    assert branches == {CASES[name].sample_branch}


@every_agent
def test_a_message_has_what_every_message_has(store: Store, name: str) -> None:
    """R-C7, R-C4, R-S24: id, session, role, time; parent, model and tokens where there are any."""
    for session in sessions(store, name):
        found = store.messages(session.id)
        assert len({each.message.id for each in found}) == len(found)
        assert all(before.membership.position < after.membership.position for before, after in pairwise(found))
        assert {each.membership.session_id for each in found} == {session.id}
        ids = {each.message.id for each in found}
        parents = [each.membership.parent_id for each in found]
        assert parents.count(None) < max(len(found), 2)
        assert {parent for parent in parents if parent is not None} <= ids
    check_lack(name, "message times", [message.created_at is not None for message in messages(store, name)])
    for message in messages(store, name):
        assert message.role in ("user", "assistant", "system", "developer")
        assert message.completed_at is None or (message.created_at and message.completed_at >= message.created_at)
        assert message.role == "assistant" or (message.model, message.usage) == (None, None)
    answers = [message for message in messages(store, name) if message.role == "assistant"]
    assert answers
    assert "models" in CASES[name].lacks or all(answer.model for answer in answers)
    # One without parts was interrupted before anything came.
    counted = [answer.usage is not None and (answer.usage.total or 0) > 0 for answer in answers if answer.parts]
    assert counted
    check_lack(name, "tokens per call", counted)


@every_agent
def test_a_call_has_what_every_call_has(store: Store, name: str) -> None:
    """R-C8, R-C9, R-S16: id, name, input, state, times; and as many are counted as there are parts."""
    check_lack(name, "message times", [call.started_at is not None for call in calls(store, name)])
    for call in calls(store, name):
        assert call.tool_call_id
        assert call.tool_name
        assert call.input_value() is not None or call.input_text is not None
        assert call.results or call.provider_executed or call.state in (ToolState.INPUT_AVAILABLE, ToolState.ABORTED)
        assert all(result.duration_ms is None or result.duration_ms >= 0 for result in call.results)
    for session in sessions(store, name):
        parts = [part for found in store.messages(session.id) for part in found.message.parts]
        assert session.counts.tool_calls == sum(isinstance(part, ToolCallPart) for part in parts)


@every_agent
def test_a_subagent_names_the_call_that_it_answers_within(store: Store, name: str) -> None:
    """R-C10."""
    for session in sessions(store, name):
        for relationship in session.relationships:
            if relationship.kind == "subagent":
                parent = relationship.parent_session_id
                started = [
                    part
                    for found in store.messages(parent)
                    for part in found.message.parts
                    if isinstance(part, ToolCallPart) and part.child_session_id == session.id
                ]
                assert [part.tool_call_id for part in started] == [relationship.parent_tool_call_id]
                assert relationship.parent_tool_call_id is not None


@every_agent
def test_what_was_thought_can_be_asked_for_by_itself(store: Store, name: str) -> None:
    """R-S17, R-S41: as much as is in the parts."""
    thought = sum(
        len(part.text) for message in messages(store, name) for part in message.parts if part.type == "reasoning"
    )
    volumes = [store.reasoning(session.id) for session in sessions(store, name)]
    assert sum(volume.characters for volume in volumes) == thought
    check_lack(name, "reasoning text", [thought > 0])


def test_what_lies_where_nobody_can_look_is_not_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is told of each time until it can be looked into again, and the other agents are read all the same."""
    home, database = tmp_path / "home", tmp_path / "turnlog.db"
    monkeypatch.setenv("HOME", str(home))
    write_homes(home)
    everything = sync(database)
    for name in names(one_per_package()):
        hidden = home / CASES[name].home / CASES[name].sample_logs
        hidden.rename(tmp_path / "away")
        hidden.symlink_to(hidden.name)  # a link to itself leads nowhere, for whoever may read anything too
        for _ in range(2):
            summary = sync(database)
            assert [problem.path for problem in summary.problems if "links" in problem.reason] == [str(hidden.parent)]
            assert summary.vanished == 0, name
            assert 0 < summary.sources < everything.sources, name
        hidden.unlink()
        (tmp_path / "away").rename(hidden)
        assert sync(database).problems == [], name


CALL_IDS = {case.name: case.call_ids for case in CASES.values() if case.call_ids is not None}


@pytest.mark.parametrize("name", CALL_IDS)
def test_a_model_call_is_one_message_with_usage_and_stop_reason(store: Store, name: str) -> None:
    """R-K4, R-S15: however many records tell of it, and its parts are in their order."""
    lines = [line for source in agent(name).discover([LOGS / name]) if source.appendable for line in lines_of(source)]
    made = {call for line in lines for call in CALL_IDS[name](json.loads(line))}
    answers = {message.id: message for message in messages(store, name) if message.role == "assistant"}
    assert len(answers) == len(made) > 0
    check_lack(name, "stop reasons", [answer.stop_reason is not None for answer in answers.values()])
    for answer in answers.values():
        assert answer.usage is not None
        kinds = [part.type for part in answer.parts]
        assert kinds == sorted(kinds, key=["reasoning", "text", "tool-call"].index)


@pytest.mark.parametrize("name", [name for name in names(one_per_package()) if reads_files(name) and has_lines(name)])
def test_a_field_that_nobody_knows_stays_with_its_message(name: str, tmp_path: Path) -> None:
    """R-C11: in the records that the message names, as the agent wrote it; and it changes nothing else."""
    home = tmp_path / "home"
    shutil.copytree(LOGS / name, home)
    lines: set[bytes] = set()
    for log in home.rglob("*.jsonl"):
        grown = [line[:-1] + b', "of_tomorrow": {"depth": 3.50}}' for line in log.read_bytes().splitlines()]
        log.write_bytes(b"\n".join(grown) + b"\n")
        lines |= set(grown)
    summary = sync(tmp_path / "turnlog.db", roots=[home], agents=[agent(name)])
    assert (summary.problems, summary.diagnostics) == ([], 0)
    with open_store(tmp_path / "turnlog.db") as store:
        # Totals of a session come from another file than its log.
        logged = [
            message for message in messages(store, name) if message.parts or "tokens per call" not in CASES[name].lacks
        ]
        for message in logged:
            records = [record.data for record in store.records(message.id)]
            assert all(record in lines or any(record in line for line in lines) for record in records)
            assert records
        whole = [record.data in lines for message in logged for record in store.records(message.id)]
        check_lack(name, "one message per record", [all(whole)])


def test_every_sample_has_sessions_of_its_own_agent_only(tmp_path: Path) -> None:
    """They are read together, and some agents' folders are named alike."""
    sync(tmp_path / "a.db", roots=sample_roots())
    with open_store(tmp_path / "a.db") as store:
        found = {(Path(source.path).relative_to(LOGS).parts[0], source.agent) for source in store.sources()}
        sessions = store.sessions(SessionFilter(subagents=True), limit=200).items
    assert {sample for sample, agent in found if sample != agent} == set()
    assert [each.id for each in sessions if not each.counts.messages] == []
