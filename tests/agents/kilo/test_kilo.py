"""Kilo's database: OpenCode's tables under another name, in another place (R-C1, R-C2)."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.opencode_files import recorded, write_database
from turnlog.agents import agent, agents, detect
from turnlog.model import CompactionEvent, Fate, FilePart, Message, ReasoningPart, Session, TextPart, ToolCallPart
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

DATA = Path(__file__).parents[2] / "data" / "kilo" / "7.7.7"
KILO = agent("kilo")


def read(tmp_path: Path, case: str = "tour") -> list[tuple[Session, list[Message]]]:
    """The sessions of a recorded database, with their messages."""
    tmp_path.mkdir(exist_ok=True)
    home = tmp_path / "kilo"
    shutil.copytree(DATA / case, home)
    assert sync(tmp_path / "store.db", roots=[home], agents=[KILO]).diagnostics == 0
    with open_store(tmp_path / "store.db") as store:
        found = store.sessions(SessionFilter(subagents=True)).items
        return [(session, [placed.message for placed in store.messages(session.id)]) for session in found]


def tour(tmp_path: Path) -> list[Message]:
    return next(messages for session, messages in read(tmp_path) if "notes.txt" in (session.title or ""))


def calls_of(messages: list[Message]) -> list[ToolCallPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolCallPart)]


def blocks(message: Message) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for part in message.parts:
        if isinstance(part, ReasoningPart):
            found.append(("thinking", part.text))
        elif isinstance(part, TextPart):
            found.append(("text", part.text))
        elif isinstance(part, ToolCallPart):
            found.append(("tool", (part.tool_name, part.tool_call_id)))
    return found


def script(name: str) -> list[dict[str, Any]]:
    return json.loads((DATA / f"{name}.script.json").read_text())["main"]


def test_a_tour_has_the_parts_and_tokens_of_the_script(tmp_path: Path) -> None:
    """R-C5, R-K1: the first run was killed before its last answer."""
    wanted = [*script("01main")[:3], *script("02resume")]
    answers = [message for message in tour(tmp_path) if message.role == "assistant" and message.usage is not None]
    assert [blocks(message) for message in answers] == [
        [
            (block["type"], (block["name"], block["id"]) if "name" in block else block["text"])
            for block in turn["blocks"]
        ]
        for turn in wanted
    ]
    usage = [message.usage for message in answers if message.usage is not None]
    assert [(one.input, one.cache_read, (one.output or 0) + (one.reasoning or 0)) for one in usage] == [
        (turn["usage"]["in"], turn["usage"]["cached"], turn["usage"]["out"]) for turn in wanted
    ]


def test_a_run_of_an_older_version_is_what_the_script_says(tmp_path: Path) -> None:
    """R-C5, R-K1: 7.0.33 has no sequence of events, and no table of its own."""
    turns = json.loads((DATA.parent / "7.0.33" / "tour.script.json").read_text())
    found = read(tmp_path, "../7.0.33/tour")
    wanted = [turns["main"], turns["spawn"], turns["subagent"]]
    assert len(found) == len(wanted)
    for turn_list in wanted:
        first = scripted_blocks(turn_list)[0]
        [answers] = [each for _, messages in found if (each := answers_of(messages)) and blocks(each[0]) == first]
        assert [blocks(message) for message in answers] == scripted_blocks(turn_list)
        usage = [message.usage for message in answers if message.usage is not None]
        assert [(one.input, one.cache_read, (one.output or 0) + (one.reasoning or 0)) for one in usage] == [
            (turn["usage"]["in"], turn["usage"]["cached"], turn["usage"]["out"]) for turn in turn_list
        ]
    [child] = [session for session, _ in found if session.relationships]
    assert child.relationships[0].parent_tool_call_id == "call_task1"


def answers_of(messages: list[Message]) -> list[Message]:
    return [message for message in messages if message.role == "assistant"]


def scripted_blocks(turns: list[dict[str, Any]]) -> list[list[tuple[str, Any]]]:
    return [
        [
            (block["type"], (block["name"], block["id"]) if "name" in block else block["text"])
            for block in turn["blocks"]
        ]
        for turn in turns
    ]


def test_a_fork_a_revert_and_an_image_are_what_the_script_says(tmp_path: Path) -> None:
    """R-C5: what the fork shares counts once, and what was taken back still counts."""
    turns = json.loads((DATA / "fork-and-revert.script.json").read_text())
    found = read(tmp_path, "fork-and-revert")
    said = {blocks(answers_of(messages)[-1])[-1][1]: (session, messages) for session, messages in found}
    first, second = scripted_blocks(turns["first"]), scripted_blocks(turns["second"])
    reverted, forked = said["Third answer."], said["Forked answer."]
    both = [blocks(message) for message in answers_of(reverted[1])]
    assert both == [*first, *second, *scripted_blocks(turns["revert"])]
    with open_store(tmp_path / "store.db") as store:
        fates = [one.membership.fate for one in store.messages(reverted[0].id)]
    assert fates == [Fate.ACTIVE] * 3 + [Fate.RETRACTED] * 2 + [Fate.ACTIVE] * 2
    assert [blocks(message) for message in answers_of(forked[1])] == [*first, *second, *scripted_blocks(turns["fork"])]
    [relation] = forked[0].relationships
    assert (relation.kind, relation.parent_session_id) == ("fork", reverted[0].id)
    all_turns = [turn for each in turns.values() for turn in each]
    totals = [session.usage.usage for session, _ in found]
    assert sum(one.input or 0 for one in totals) == sum(turn["usage"]["in"] for turn in all_turns)
    assert sum(one.cache_read or 0 for one in totals) == sum(turn["usage"]["cached"] for turn in all_turns)
    [image] = [part for part in said["A dot."][1][0].parts if isinstance(part, FilePart)]
    assert image.media_type == "image/png"
    assert len(image.data or b"") == 70


def test_results_are_those_that_the_next_request_held(tmp_path: Path) -> None:
    request = json.loads((DATA / "request.json").read_text())["messages"]
    sent = [(message["tool_call_id"], message["content"]) for message in request if message["role"] == "tool"]
    assert [(call.tool_call_id, call.output_text) for call in calls_of(tour(tmp_path))] == sent


def test_a_failed_command_has_its_exit_code(tmp_path: Path) -> None:
    call = next(call for call in calls_of(tour(tmp_path)) if call.tool_call_id == "call_fail1")
    [result] = call.results
    assert (call.state, result.status, result.exit_code) == ("output-error", "error", 3)
    assert result.error_text == call.output_text


def test_a_tool_that_failed_and_a_command_that_was_left_running(tmp_path: Path) -> None:
    [(_, messages)] = read(tmp_path / "errors", "errors")
    states = {
        call.tool_call_id: (call.state, [result.status for result in call.results]) for call in calls_of(messages)
    }
    assert states == {
        "call_missing1": ("output-error", ["error"]),
        "call_write1": ("output-available", ["success"]),
    }
    [(_, messages)] = read(tmp_path / "interrupt", "interrupt")
    assert [call.results for call in calls_of(messages)] == [()]


def test_a_refused_request_is_an_error(tmp_path: Path) -> None:
    [(_, messages)] = read(tmp_path, "refused")
    [error] = [message.error for message in messages if message.error is not None]
    assert (error.status, "bad request here" in error.text) == (400, True)


def test_a_full_context_is_compacted(tmp_path: Path) -> None:
    [(session, messages)] = read(tmp_path, "compaction")
    with open_store(tmp_path / "store.db") as store:
        [event] = [event for event in store.events(session.id) if isinstance(event, CompactionEvent)]
    summary = next(message for message in messages if message.id == event.summary_message_id)
    # The scripted model answers a request without tools with a title.
    assert blocks(summary) == [("text", '{"title": "Mock title", "isNewTopic": true}')]
    assert summary.usage is not None
    assert (summary.usage.input, summary.usage.output) == (100, 20)


def test_a_subagent_is_a_session_that_its_call_names(tmp_path: Path) -> None:
    """R-C10"""
    found = read(tmp_path)
    [child] = [session for session, _ in found if session.relationships]
    [relation] = child.relationships
    [spawn] = [call for _, messages in found for call in calls_of(messages) if call.tool_name == "task"]
    assert relation.parent_session_id.startswith("kilo:")
    assert relation.parent_tool_call_id == spawn.tool_call_id
    assert spawn.child_session_id == child.id


def test_the_cost_of_a_call_excludes_its_subagent(tmp_path: Path) -> None:
    """R-C5: Kilo adds the subagent's cost to the message, and not to its step."""
    costs = [message.cost for _, messages in read(tmp_path) for message in messages if message.usage is not None]
    # By the prices of the run: 1 dollar for a million tokens of input, 2 of output, 0.1 read from the cache.
    assert round(sum(float(cost.amount) for cost in costs if cost is not None), 6) == 0.00632 + 4 * 0.00014


def test_a_database_is_known_by_its_own_table_wherever_it_lies(tmp_path: Path) -> None:
    """R-S21"""
    path = tmp_path / "copy.db"
    shutil.copyfile(DATA / "tour" / "kilo.db", path)
    found = detect(path)
    assert (found.agent, found.version) == ("kilo", "7.7.7")
    assert {source.agent for source in found.sources} == {"kilo"}


def test_a_database_of_opencode_stays_opencodes(tmp_path: Path) -> None:
    path = write_database(recorded("1.18.33", "basic-chat"), tmp_path / "opencode.db")
    assert detect(path).agent == "opencode"


def test_only_one_agent_reads_each_folder(home: Path) -> None:
    """R-C2: both are below one data folder."""
    shutil.copytree(DATA / "tour", home / ".local/share/kilo")
    write_database(recorded("1.18.33", "basic-chat"), home / ".local/share/opencode/opencode.db")
    roots = {found.name: list(found.roots()) for found in agents() if list(found.roots())}
    assert roots == {name: [home / ".local/share" / name] for name in ("kilo", "opencode")}
    assert {source.agent for source in KILO.discover()} == {"kilo"}


def test_a_variable_names_another_database(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(DATA / "tour", tmp_path / "elsewhere")
    monkeypatch.setenv("KILO_DB", str(tmp_path / "elsewhere" / "kilo.db"))
    assert list(KILO.roots()) == [tmp_path / "elsewhere"]
    assert list(agent("opencode").roots()) == []


def test_a_session_is_restored_as_a_database_that_reads_the_same(tmp_path: Path) -> None:
    before = read(tmp_path)
    with open_store(tmp_path / "store.db") as store:
        for session, _ in before:
            if not session.relationships:
                store.restore(session.id, tmp_path / "restored")
    assert sync(tmp_path / "again.db", roots=[tmp_path / "restored"], agents=[KILO]).diagnostics == 0
    with open_store(tmp_path / "again.db") as store:
        after = [
            (session.id, [placed.message for placed in store.messages(session.id)])
            for session in store.sessions(SessionFilter(subagents=True)).items
        ]
    assert sorted(after, key=str) == sorted([(session.id, messages) for session, messages in before], key=str)


@pytest.mark.parametrize("case", ["tour", "../7.0.33/tour"])
def test_restored_rows_are_those_of_the_original(case: str, tmp_path: Path) -> None:
    before = read(tmp_path, case)
    with open_store(tmp_path / "store.db") as store:
        for session, _ in before:
            if not session.relationships:
                store.restore(session.id, tmp_path / "restored")
    assert rows_of(tmp_path / "restored" / "kilo.db") == rows_of(DATA / case / "kilo.db")


def rows_of(path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return sorted(
            row for table in ("message", "part") for row in connection.execute(f"SELECT id, data FROM {table}")
        )
