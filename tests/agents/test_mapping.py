"""What of each agent's log becomes what of the model: the same questions to recorded runs of every agent."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import pytest

from support.opencode_files import recorded, write_database
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

DATA = Path(__file__).parent.parent / "data"


@dataclass(frozen=True)
class Log:
    """Recorded runs of an agent, and what its log says of them."""

    place: str
    """Its home, below the user's."""
    cases: tuple[str, ...]
    """Folders of recorded homes, or of recorded rows: a tour, a subagent, an interruption or compaction."""
    tokens: tuple[str, int, int, int, int]
    """Words of an answer, and its tokens by the script: input, read from the cache, words, thoughts."""
    lacks: frozenset[Literal["cwd", "model", "subagents", "events"]] = frozenset()
    """What the format does not have. The tests then check that none is invented."""


LOGS = {
    "claude-code": Log(
        ".claude",
        tuple(f"claude_code/scenarios/{name}" for name in ("basic", "subagent-sync", "interrupt")),
        ("I remember", 15, 3000, 11, 0),
    ),
    "codex": Log(
        ".codex",
        tuple(f"codex/scenarios/{name}" for name in ("basic", "subagent-gpt-5.5", "interrupt")),
        ("I remember", 15, 3000, 11, 0),
    ),
    "copilot-cli": Log(
        ".copilot",
        tuple(f"copilot_cli/1.0.102/{name}" for name in ("basic", "subagent", "interrupt")),
        ("The notes hold", 1500, 1400, 55, 5),
    ),
    "gemini-cli": Log(
        ".gemini",
        tuple(f"gemini_cli/scenarios/{name}" for name in ("basic", "subagent", "interrupt")),
        ("I remember", 15, 3000, 11, 4),
    ),
    "opencode": Log(
        ".local/share/opencode",
        tuple(f"opencode/1.18.33/{name}" for name in ("basic-chat", "subagent", "compact")),
        ("I remember", 15, 3000, 7, 4),
    ),
    "pi": Log(
        ".pi/agent",
        ("pi/0.87.1/basic", "pi/0.87.1/tour"),
        ("I remember", 200, 0, 14, 0),
        frozenset({"subagents"}),
    ),
    "qwen-code": Log(
        ".qwen",
        tuple(f"qwen_code/0.24.4/{name}" for name in ("tour", "subagent", "interrupt")),
        ("Resumed: nothing", 1700, 1500, 15, 0),
    ),
    "oh-my-pi": Log(".omp/agent", ("pi/handwritten-oh-my-pi",), ("I remember", 200, 0, 14, 0)),
    "prime-agent": Log(
        ".prime/agent", ("pi/handwritten-prime-agent",), ("I remember", 200, 0, 14, 0), frozenset({"subagents"})
    ),
    "omo": Log(".omo/agent", ("pi/handwritten-omo",), ("I remember", 200, 0, 14, 0), frozenset({"subagents"})),
    "stepcode": Log(
        ".stepcode/agent", ("pi/handwritten-stepcode",), ("I remember", 200, 0, 14, 0), frozenset({"subagents"})
    ),
    "kilo": Log(
        ".local/share/kilo",
        tuple(f"kilo/7.7.7/{name}" for name in ("tour", "errors", "compaction")),
        ("Resumed: nothing", 1700, 1500, 15, 0),
    ),
    "openclaw": Log(
        ".openclaw", ("openclaw/2026.9.6/basic",), ("Resumed: nothing", 1700, 1500, 15, 0), frozenset({"subagents"})
    ),
    "qclaw": Log(
        ".qclaw", ("openclaw/handwritten-qclaw",), ("Resumed: nothing", 1700, 1500, 15, 0), frozenset({"subagents"})
    ),
    "klaude": Log(".klaude", ("klaude/versions/2.43.0",), ("Fixed: it ", 200, 1800, 40, 0)),
}

every_agent = pytest.mark.parametrize("name", LOGS)

_STATES = {
    ToolState.INPUT_STREAMING,
    ToolState.INPUT_AVAILABLE,
    ToolState.OUTPUT_AVAILABLE,
    ToolState.OUTPUT_ERROR,
    ToolState.OUTPUT_DENIED,
    ToolState.ABORTED,
}


def write_home(case: str, folder: Path) -> Path:
    """A recorded home, in a folder."""
    source = DATA / case
    if (source / "rows.jsonl").is_file():
        return write_database(recorded(*case.split("/")[1:]), folder / "opencode.db").parent
    shutil.copytree(source, folder, dirs_exist_ok=True)
    return folder


@cache
def _folder(name: str) -> TemporaryDirectory[str]:
    """A folder for what was read of an agent, which goes when the tests have ended."""
    return TemporaryDirectory(prefix=f"turnlog-{name}-")


@cache
def store_of(name: str) -> Path:
    folder = Path(_folder(name).name)
    homes = [write_home(case, folder / str(number) / LOGS[name].place) for number, case in enumerate(LOGS[name].cases)]
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


def test_every_agent_is_asked() -> None:
    """R-C1"""
    assert sorted(LOGS) == sorted(agent.name for agent in agents())


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
    log, reader = LOGS[name], agent_named(name)
    assert list(reader.roots()) == []
    first, *others = log.cases
    write_home(first, home / log.place)
    assert list(reader.roots()) == [home / log.place]
    own = {source.path for source in reader.discover()}
    assert own
    elsewhere = [write_home(case, tmp_path / str(number) / log.place) for number, case in enumerate((first, *others))]
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
def test_ids_roles_and_parents_are_told(name: str) -> None:
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
    words, *wanted = LOGS[name].tokens
    answer = next(message for message in messages_of(name) if words in str(message.parts))
    usage = answer.usage
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
    for session, messages in everything(name):
        assert session.external_id
        assert session.title
        assert session.created_at is not None
        assert session.updated_at is not None
        assert session.created_at <= session.updated_at
        assert session.ownership.user is None
        if session.title_source == "prompt":
            asked = [m.message for m in messages if m.message.origin in (Origin.PROMPT, Origin.SUBAGENT_PROMPT)]
            assert any(session.title.split()[0] in str(message.parts) for message in asked)
    with opened(name) as (_, sessions):
        without = [session.id for session in sessions if session.cwd is None]
    assert without == ([session.id for session in sessions] if "cwd" in LOGS[name].lacks else [])


@every_agent
def test_a_message_has_its_facts(name: str) -> None:
    """R-C7"""
    messages = messages_of(name)
    assert [message.id for message in messages if message.created_at is None] == []
    answers = [message for message in messages if message.role == "assistant" and message.usage is not None]
    assert answers != []
    without = [message.id for message in answers if message.model is None]
    assert without == ([message.id for message in answers] if "model" in LOGS[name].lacks else [])
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
        assert [call.tool_call_id for call in listed if call.started_at is None] == []


@every_agent
def test_a_duration_is_never_negative(name: str) -> None:
    """R-C9"""
    with opened(name) as (store, _):
        listed = store.tool_calls(ToolCallFilter(), limit=200).items
    timed = [call for call in listed if call.duration_ms is not None]
    assert timed != []
    assert [call for call in timed if (call.duration_ms or 0) < 0] == []


@every_agent
def test_a_subagent_names_the_call_that_it_answers_within(name: str) -> None:
    """R-C10"""
    with opened(name) as (store, sessions):
        children = [session for session in sessions if any(r.kind == "subagent" for r in session.relationships)]
        assert (children == []) == ("subagents" in LOGS[name].lacks)
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
    assert (not happened) == ("events" in LOGS[name].lacks)
