"""What of each agent's log becomes what of the model: the same questions to recorded runs of every agent."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import pytest

from support.agent_cases import CASES, LACKS, Lack, check_lack
from turnlog.agents import agent as agent_named
from turnlog.agents import agents
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    InterruptEvent,
    Message,
    MessageEvent,
    Origin,
    RecordEvent,
    RunMetadataEvent,
    Session,
    ToolCallPart,
    ToolResultEvent,
    ToolState,
    UnknownPart,
)
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store, ToolCallFilter
from turnlog.store.values import PlacedMessage
from turnlog.sync.syncer import sync

ROOT = Path(__file__).parents[2]

every_agent = pytest.mark.parametrize("name", CASES)

_STATES = {
    ToolState.INPUT_STREAMING,
    ToolState.INPUT_AVAILABLE,
    ToolState.OUTPUT_AVAILABLE,
    ToolState.OUTPUT_ERROR,
    ToolState.OUTPUT_DENIED,
    ToolState.ABORTED,
}


@cache
def _folder(name: str) -> TemporaryDirectory[str]:
    """A folder for what was read of an agent, which goes when the tests have ended."""
    return TemporaryDirectory(prefix=f"turnlog-{name}-")


@cache
def store_of(name: str) -> Path:
    folder = Path(_folder(name).name)
    case = CASES[name]
    homes = [
        case.write_home(recorded, folder / str(number) / case.home) for number, recorded in enumerate(case.recorded)
    ]
    sync(folder / "store.db", roots=homes, agents=[agent_named(name)])
    return folder / "store.db"


@contextmanager
def opened(name: str) -> Generator[tuple[Store, list[Session]]]:
    with open_store(store_of(name)) as store:
        yield store, list(store.sessions(SessionFilter(subagents=True), limit=200).items)


def everything(name: str) -> list[tuple[Session, list[PlacedMessage]]]:
    with opened(name) as (store, sessions):
        return [(session, list(store.messages(session.id))) for session in sessions]


def messages_of(name: str) -> list[Message]:
    return [placed.message for _, messages in everything(name) for placed in messages]


def calls_of(name: str) -> list[ToolCallPart]:
    return [part for message in messages_of(name) for part in message.parts if isinstance(part, ToolCallPart)]


def test_every_agent_has_a_case() -> None:
    """R-C1"""
    assert sorted(CASES) == sorted(agent.name for agent in agents())


def test_what_a_format_may_lack_is_described_with_the_test_that_checks_it() -> None:
    assert set(LACKS) == set(get_args(Lack))
    for thing, sentence in LACKS.items():
        test = ROOT / sentence.partition("(")[2].rstrip(")")
        assert f'"{thing}"' in test.read_text(), thing


def test_a_wrong_claim_in_a_case_fails_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match=r"gptme has no 'run events', and tests/agents/gptme/cases.py does not"):
        check_lack("gptme", "run events", [True, False])
    with pytest.raises(AssertionError, match=r"gptme/cases.py says that gptme lacks 'subagents', but its logs have it"):
        check_lack("gptme", "subagents", [True])


@every_agent
def test_sessions_messages_and_calls_name_their_source(name: str) -> None:
    """R-C1"""
    homes = store_of(name).parent
    with opened(name) as (store, sessions):
        assert {session.agent for session in sessions} == {name}
        assert {call.agent for call in store.tool_calls(ToolCallFilter(), limit=200).items} == {name}
    for _, messages in everything(name):
        for placed in messages:
            assert placed.membership.records
            assert {Path(record.source).is_relative_to(homes) for record in placed.membership.records} == {True}


@every_agent
def test_logs_are_found_at_the_own_place_and_at_several_others(name: str, home: Path, tmp_path: Path) -> None:
    """R-C2"""
    case, reader = CASES[name], agent_named(name)
    assert list(reader.roots()) == []
    case.write_home(case.recorded[0], home / case.home)
    assert list(reader.roots()) == [home / case.home]
    own = {source.path for source in reader.discover()}
    assert own
    elsewhere = [
        case.write_home(recorded, tmp_path / str(number) / case.home) for number, recorded in enumerate(case.recorded)
    ]
    found = {source.path for source in reader.discover(elsewhere)}
    assert {path for path in found if path.startswith(str(elsewhere[-1]))}
    assert found.isdisjoint(own)


@every_agent
def test_no_record_is_of_an_unknown_kind(name: str) -> None:
    """R-C3"""
    with opened(name) as (store, sessions):
        events = [event for session in sessions for event in store.events(session.id)]
    assert [event.kind for event in events if isinstance(event, RecordEvent) and not event.known] == []
    assert [part for message in messages_of(name) for part in message.parts if isinstance(part, UnknownPart)] == []


@every_agent
def test_ids_roles_and_parents_are_known(name: str) -> None:
    """R-C4"""
    for session, messages in everything(name):
        ids = [placed.message.id for placed in messages]
        assert session.id == f"{name}:{session.external_id}"
        assert len(set(ids)) == len(ids)
        assert {placed.message.role for placed in messages} <= {"user", "assistant", "developer", "system"}
        assert {placed.membership.session_id for placed in messages} <= {session.id}
        behind = [placed for placed in messages if placed.membership.parent_id is not None]
        assert {placed.membership.parent_id for placed in behind} <= set(ids)
    assert [message for message in messages_of(name) if message.role == "assistant" and message.origin is None] != []
    assert [message for message in messages_of(name) if message.role == "user" and message.origin is Origin.PROMPT]
    assert all(call.tool_call_id for call in calls_of(name))


@every_agent
def test_tokens_are_disjoint_and_those_of_the_script(name: str) -> None:
    """R-C5"""
    words, *wanted = CASES[name].answer
    if "tokens per call" in CASES[name].lacks:
        assert [message.id for message in messages_of(name) if message.usage is not None] == []
        totals = [total.usage for session, _ in everything(name) for total in session.totals]
        found = [[each.input, each.cache_read or 0, each.output, each.reasoning or 0] for each in totals]
        check_lack(name, "session totals", [wanted in found])
        return
    usage = next(message.usage for message in messages_of(name) if words in str(message.parts))
    assert usage is not None
    assert [usage.input, usage.cache_read or 0, usage.output, usage.reasoning or 0] == wanted
    for message in messages_of(name):
        if message.usage is not None:
            used = message.usage
            written = (used.cache_write, used.cache_write_5m, used.cache_write_1h)
            buckets = (used.input, used.cache_read, *written, used.output, used.reasoning)
            assert used.total == sum(count or 0 for count in buckets)
            assert min(count or 0 for count in buckets) >= 0


@every_agent
def test_a_session_has_its_facts(name: str) -> None:
    """R-C6"""
    sessions = everything(name)
    check_lack(name, "working folder", [session.cwd is not None for session, _ in sessions])
    for session, messages in sessions:
        assert session.external_id
        assert session.title
        assert session.created_at is not None
        assert session.updated_at is not None
        assert session.created_at <= session.updated_at
        assert session.ownership.user is None
        if session.title_source == "prompt":
            asked = [m.message for m in messages if m.message.origin in (Origin.PROMPT, Origin.SUBAGENT_PROMPT)]
            assert any(session.title.split()[0] in str(message.parts) for message in asked)


@every_agent
def test_a_message_has_its_facts(name: str) -> None:
    """R-C7"""
    messages = messages_of(name)
    check_lack(name, "message times", [message.created_at is not None for message in messages])
    answers = [message for message in messages if message.role == "assistant" and message.usage is not None]
    check_lack(name, "tokens per call", [bool(answers)])
    check_lack(name, "models", [message.model is not None for message in answers])
    times = [(message.created_at, message.completed_at) for message in messages]
    assert [began for began, ended in times if began is not None and ended is not None and ended < began] == []


@every_agent
def test_a_call_has_its_facts(name: str) -> None:
    """R-C8"""
    calls = calls_of(name)
    assert {call.state for call in calls} <= _STATES
    assert {ToolState.OUTPUT_AVAILABLE, ToolState.OUTPUT_ERROR} <= {call.state for call in calls}
    for call in calls:
        assert call.tool_name
        assert call.input_value() is not None
        if call.state is ToolState.OUTPUT_AVAILABLE:
            assert call.results or call.provider_executed
        if call.state is ToolState.OUTPUT_ERROR:
            assert any(result.error_text or result.output_text for result in call.results)
    with opened(name) as (store, _):
        listed = store.tool_calls(ToolCallFilter(), limit=200).items
        assert {call.session_id for call in listed} <= {session.id for session, _ in everything(name)}
        check_lack(name, "message times", [call.started_at is not None for call in listed])


@every_agent
def test_a_duration_is_never_negative(name: str) -> None:
    """R-C9"""
    with opened(name) as (store, _):
        listed = store.tool_calls(ToolCallFilter(), limit=200).items
    timed = [call for call in listed if call.duration_ms is not None]
    check_lack(name, "result times", [bool(timed)])
    assert [call for call in timed if (call.duration_ms or 0) < 0] == []


@every_agent
def test_a_subagent_names_the_call_that_it_answers_within(name: str) -> None:
    """R-C10"""
    with opened(name) as (store, sessions):
        children = [session for session in sessions if any(r.kind == "subagent" for r in session.relationships)]
        check_lack(name, "subagents", [bool(children)])
        for child in children:
            relation = next(found for found in child.relationships if found.kind == "subagent")
            assert relation.parent_tool_call_id is not None
            assert store.child_sessions(relation.parent_session_id)[relation.parent_tool_call_id] == child.id
            assert relation.parent_tool_call_id in {call.tool_call_id for call in calls_of(name)}


@every_agent
def test_a_history_is_one_list_of_messages_and_what_happened(name: str) -> None:
    """R-K7, R-S43: in the order in which it arrived, with what the harness said and facts about the run."""
    with opened(name) as (store, sessions):
        for session in sessions:
            history = store.history(session.id)
            told = [event.message.id for event in history if isinstance(event, MessageEvent)]
            assert sorted(told) == sorted(placed.message.id for placed in store.messages(session.id))
            positions = [event.position for event in history]
            assert positions == sorted(positions)
        kinds = {type(event) for session in sessions for event in store.history(session.id)}
    assert {MessageEvent, ToolResultEvent} <= kinds
    happened = kinds & {RunMetadataEvent, InterruptEvent, ErrorEvent, CompactionEvent}
    check_lack(name, "run events", [bool(happened)])
