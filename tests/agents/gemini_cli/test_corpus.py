"""Recorded logs of three generations, read whole: every record accounted for, tokens and order as scripted."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from support.claude_files import calls_of, gather
from support.gemini_files import AGENT, DATA, data_of, read, sources
from turnlog.agents import detect, fold_bytes
from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import Changes, LineCounts
from turnlog.logs import read_session
from turnlog.model import Message, ReasoningPart, RecordEvent, TextPart, ToolState, UnknownPart

FOLDERS = [(group.name, case.name) for group in sorted(DATA.iterdir()) for case in sorted(group.iterdir())]
SCRIPTED = [name for group, name in FOLDERS if (DATA / group / name / "script.json").exists()]
LOGS = (SourceKind.SESSION, SourceKind.SUBAGENT)

each_folder = pytest.mark.parametrize("folder", FOLDERS, ids="/".join)


def logs(*folder: str) -> list[Source]:
    return [source for source in sources(*folder) if source.kind in LOGS]


def total(counts: LineCounts) -> int:
    return sum(getattr(counts, name) for name in LineCounts.__struct_fields__)


@each_folder
def test_every_record_is_accounted_for(folder: tuple[str, str]) -> None:
    """R-S34, R-C3: a line, or a message of a JSON file, is a message, a result or an event; none is unreadable."""
    for source in logs(*folder):
        gathered = read([source])
        records = data_of(source).count(b"\n")
        if not source.appendable:
            records = len(json.loads(data_of(source))["messages"]) + 1
        assert total(gathered.counts) == records
        assert gathered.counts.unreadable == gathered.counts.blank == 0
        assert not gathered.diagnostics


@each_folder
def test_nothing_is_unknown(folder: tuple[str, str]) -> None:
    """R-C3"""
    gathered = read(sources(*folder))
    events = [change.event for change in gathered.events.values()]
    assert [event.kind for event in events if isinstance(event, RecordEvent) and not event.known] == []
    parts = [part for message in gathered.messages.values() for part in message.parts]
    inner = [part for call in gathered.calls() for result in call.results for part in result.content]
    assert [part for part in (*parts, *inner) if isinstance(part, UnknownPart)] == []


@each_folder
def test_every_call_has_one_result(folder: tuple[str, str]) -> None:
    """R-S16: the log stores a result twice and a resume three times; it is one all the same."""
    gathered = read(sources(*folder))
    assert [call.tool_call_id for call in gathered.calls() if len(call.results) != 1] == []
    assert gathered.late == []
    ids = [call.tool_call_id for call in gathered.calls()]
    assert len(ids) == len(set(ids))


@each_folder
def test_the_agent_is_detected_by_the_content(folder: tuple[str, str]) -> None:
    """R-S21"""
    for source in sources(*folder):
        found = detect(Path(source.path))
        assert found.agent == "gemini-cli"
        assert found.source is not None
        assert found.source.appendable == source.appendable
        assert found.source.kind is source.kind
        assert found.version


def spoken(message: Message) -> dict[str, Any]:
    usage = message.usage
    assert usage is not None
    return {
        "thinking": [part.text for part in message.parts if isinstance(part, ReasoningPart)],
        "text": "".join(part.text for part in message.parts if isinstance(part, TextPart)),
        "calls": [[call.tool_name, call.input_value()] for call in calls_of(message)],
        "usage": {"in": usage.input, "cached": usage.cache_read, "out": usage.output, "reasoning": usage.reasoning},
    }


@pytest.mark.parametrize("scenario", SCRIPTED)
def test_answers_are_what_the_model_was_scripted_to_say(scenario: str) -> None:
    """R-C4, R-C5, R-S15: order, thoughts, texts, calls, and tokens in disjoint buckets."""
    script = json.loads((DATA / "scenarios" / scenario / "script.json").read_text())
    gathered = read(source for source in logs("scenarios", scenario) if source.kind is SourceKind.SESSION)
    found = max(
        ([m for m in gathered.in_order(session) if m.role == "assistant"] for session in gathered.sessions), key=len
    )
    said = [spoken(message) for message in found]
    for answer, wanted in zip(said, script, strict=True):
        # The CLI cuts a thought into its bold line and the rest, and joins them with a space.
        answer["thinking"] = [text.strip() for text in answer["thinking"]]
        assert answer == wanted


def test_a_session_that_was_resumed_has_each_answer_once() -> None:
    """R-C5: a checkpoint repeats every message without its tokens, thoughts and calls."""
    gathered = read(logs("scenarios", "basic"))
    answers = [message for message in gathered.messages.values() if message.role == "assistant"]
    script = json.loads((DATA / "scenarios/basic/script.json").read_text())
    another = script[-1]
    assert len(answers) == len([*script, another])
    spent = sum(sum(answer["usage"].values()) for answer in [*script, another])
    assert sum(message.usage.total or 0 for message in answers if message.usage) == spent


@pytest.mark.parametrize(("version", "model"), [("0.20.0", "gemini-2.5-flash"), ("0.35.0", "gemini-3-flash-preview")])
def test_files_of_json_hold_the_same(version: str, model: str) -> None:
    gathered = read(logs("versions", version))
    (session,) = gathered.sessions
    messages = gathered.in_order(session)
    assert {message.model for message in messages if message.role == "assistant"} == {model}
    assert [call.tool_name for message in messages for call in calls_of(message)][:3] == [
        "run_shell_command",
        "read_file",
        "replace",
    ]
    assert len(gathered.calls()) == 9
    assert [gathered.place(message.id).turn for message in messages] == sorted(
        gathered.place(message.id).turn or 0 for message in messages
    )


def steps(version: str) -> list[tuple[int | None, list[str], bool]]:
    """Step, tools and whether the tokens are known, of each answer."""
    gathered = read(logs("versions", version))
    (session,) = gathered.sessions
    answers = [message for message in gathered.in_order(session) if message.role == "assistant"]
    return [
        (gathered.place(found.id).step, [call.tool_name for call in calls_of(found)], found.usage is not None)
        for found in answers
    ]


def test_an_answer_with_the_calls_of_several_requests_is_one_a_request() -> None:
    """R-C5: up to 0.30 they stand in one message, with the tokens of the first."""
    old, new = steps("0.20.0"), steps("0.35.0")
    assert [(step, tools) for step, tools, _ in old] == [(step, tools) for step, tools, _ in new]
    assert [known for *_, known in old] == [True, False, False, True, True]
    numbered = steps("0.30.1")
    assert numbered == [
        (1, ["run_shell_command"], True),
        (2, ["read_file"], False),
        (3, ["run_shell_command", "read_file"], True),
        (4, ["run_shell_command", "run_shell_command"], True),
        (5, ["no_such_tool"], False),
        (6, ["run_shell_command", "run_shell_command"], False),
        (7, [], True),
    ]


def test_a_failed_call_an_exit_code_and_a_picture() -> None:
    by_name = {call.tool_call_id: call for call in read(logs("scenarios", "basic")).calls()}
    codes = [result.exit_code for call in by_name.values() for result in call.results if result.exit_code]
    assert codes == [3]
    failed = [call for call in by_name.values() if call.state is ToolState.OUTPUT_ERROR]
    assert sorted(call.tool_name for call in failed) == ["no_such_tool", "read_file"]
    (picture,) = read(logs("scenarios", "images")).calls()
    assert [part.type for part in picture.results[0].content] == ["text", "file"]


def test_a_subagent_is_linked_to_its_call_from_both_sides() -> None:
    """R-S43"""
    gathered = read(logs("scenarios", "subagent"))
    (link,) = gathered.links.values()
    (call,) = [call for call in gathered.calls() if call.tool_name == "invoke_agent"]
    assert link.tool_call_id == call.tool_call_id
    assert link.message_id in gathered.messages
    assert {link.parent_session_id, link.child_session_id} == set(gathered.sessions)
    (prompt,) = [m for m in gathered.in_order(link.child_session_id) if m.role == "user"]
    assert prompt.origin == "subagent_prompt"


def test_a_log_read_by_itself_has_its_subagents() -> None:
    """They lie in a folder that is called as the session."""
    log = next(source for source in logs("scenarios", "subagent") if source.kind is SourceKind.SESSION)
    history = read_session(Path(log.path))
    (child,) = history.children
    assert child.session.external_id in {
        call.child_session_id.partition(":")[2]
        for message in history.messages
        for call in calls_of(message)
        if call.child_session_id
    }


@each_folder
def test_any_split_of_a_log_gives_the_same_changes(folder: tuple[str, str]) -> None:
    chance = random.Random(7)
    for source in logs(*folder):
        if not source.appendable:
            continue
        data = data_of(source)
        rows = data.splitlines(keepends=True)
        whole = AGENT.fold(source)
        expected = gather(whole.feed(data, 0)).as_json()
        for size in (1, chance.randint(2, 9)):
            state, offset, found = None, 0, list[Changes]()
            for start in range(0, len(rows), size):
                piece = b"".join(rows[start : start + size])
                fold = AGENT.fold(source, state)
                found.append(fold.feed(piece, offset))
                state, offset = fold.state(), offset + len(piece)
            assert state == whole.state()
            assert gather(*found).as_json() == expected


@each_folder
def test_a_result_gives_its_display(folder: tuple[str, str]) -> None:
    """What the CLI showed of a result, from the bytes that its record has in the file."""
    for source in logs(*folder):
        data = data_of(source)
        changes = fold_bytes(AGENT, source, data)
        for change in changes.messages:
            for offset, length, what in change.placement.records:
                if isinstance(what, str):
                    record = json.loads(data[offset : offset + length])
                    found = AGENT.structured_result(data[offset : offset + length], record["id"])
                    assert (json.loads(bytes(found)) if found else None) == record.get("resultDisplay")
