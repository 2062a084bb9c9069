"""Grok Build's sessions become what the script says that happened (R-C1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.agent_cases import CASES
from support.claude_files import Gathered, gather
from support.format_page import FormatPage, named
from support.scripted import Recordings, answers, blocks, calls, in_order, in_pieces, scripted, tokens, used
from turnlog.agents import agent, detect
from turnlog.agents.base import Source, SourceKind
from turnlog.agents.commands import prompted_command, resume_command
from turnlog.agents.grok_build.contents import TOOL_KINDS
from turnlog.agents.grok_build.fold import KINDS
from turnlog.model import CompactionEvent, ErrorEvent, Fate, FilePart, Origin, RewindEvent
from turnlog.store import open_store
from turnlog.sync.importing import import_file
from turnlog.sync.syncer import sync

AGENT = agent("grok-build")
RUNS = Recordings(AGENT, Path(__file__).parents[2] / "data" / "grok_build")
TOUR = "0.2.111/tour"
MAIN, EDIT, SUBAGENT, STOPPED, FORK, DENIED, FAILED, PICTURE = range(1, 9)
FOREGROUND = 10


def name_of(number: int) -> str:
    return f"01a20000-0000-7000-8000-{number:012x}"


def sources_of(session: str) -> dict[SourceKind, Source]:
    return {one.kind: one for one in RUNS.sources(TOUR) if one.session_id == f"grok-build:{session}"}


def session_at(number: int, home: str | None = None) -> Gathered:
    """What a session brings; `home` if its own log of the program is not there."""
    source = sources_of(name_of(number))[SourceKind.SESSION]
    if home is not None:
        log = RUNS.log_of(source)
        return gather(AGENT.fold(msgspec.structs.replace(source, root=home)).feed(log, 0))
    return gather(AGENT.fold(source).feed(RUNS.log_of(source), 0))


def facts_at(number: int) -> Gathered:
    source = sources_of(name_of(number))[SourceKind.SIDECAR]
    return gather(AGENT.fold(source).feed(RUNS.log_of(source), 0))


def fold(*updates: dict[str, Any]) -> Gathered:
    """What a session of these updates brings."""
    lines = [
        {"timestamp": 1, "method": "session/update", "params": {"sessionId": "s", "update": one, "_meta": meta(number)}}
        for number, one in enumerate(updates)
    ]
    source = Source(agent="grok-build", path="/g/s/updates.jsonl", root="/g", session_id="grok-build:s")
    return gather(AGENT.fold(source).feed(b"".join(json.dumps(line).encode() + b"\n" for line in lines), 0))


def meta(number: int) -> dict[str, Any]:
    return {"eventId": f"s-{number}", "agentTimestampMs": 1000 + number, "promptId": "p", "streamStartMs": 1000}


# -- a tour


def test_a_run_has_the_parts_of_the_script_in_their_order() -> None:
    """R-C5, R-K1"""
    found = answers(session_at(MAIN))
    assert [blocks(message) for message in found] == scripted(
        [*RUNS.script("0.2.111/main"), *RUNS.script("0.2.111/resume")]
    )
    assert {message.model for message in found} == {"mock-model"}
    assert [message.stop_reason for message in found] == [None, None, None, "stop", "stop"]


def test_each_call_has_its_tokens() -> None:
    """R-K1: the log of the home has them."""
    found = session_at(MAIN)
    turns = [*RUNS.script("0.2.111/main"), *RUNS.script("0.2.111/resume")]
    assert used(answers(found)) == list(tokens(turns))
    assert next(iter(found.sessions.values())).totals == {}


def test_without_the_log_of_the_home_tokens_are_known_of_a_turn() -> None:
    found = session_at(MAIN, home="/nowhere")
    first, second = next(iter(found.sessions.values())).totals.values()
    for total, step in ((first, "main"), (second, "resume")):
        turns = list(tokens(RUNS.script(f"0.2.111/{step}")))
        counted = total.usage
        spent = (counted.input, counted.cache_read, (counted.output or 0) + (counted.reasoning or 0), counted.reasoning)
        assert spent == tuple(sum(column) for column in zip(*turns, strict=True))
        assert (total.model, total.calls) == ("mock-model", len(turns))
    assert used(answers(found)) == []


@pytest.mark.parametrize("kept", [slice(12, None), slice(None, -4)], ids=["its end", "its beginning"])
def test_a_turn_of_which_the_log_lost_a_call_counts_as_a_whole(kept: slice, tmp_path: Path) -> None:
    """The program cuts off the older half: nothing is counted twice, and nothing is left out."""
    log = tmp_path / "logs" / "unified.jsonl"
    log.parent.mkdir()
    lines = (RUNS.folder / TOUR / "logs" / "unified.jsonl").read_bytes().splitlines(keepends=True)
    own = [line for line in lines if name_of(MAIN).encode() in line and b"shell.turn.inference_" in line]
    log.write_bytes(b"".join(own[2:]) if kept.start else b"".join(own[:-2]))
    found = session_at(MAIN, home=str(tmp_path))
    [total] = next(iter(found.sessions.values())).totals.values()
    of_calls = [sum(column) for column in zip(*used(answers(found)), strict=True)]
    of_turn = [total.usage.input, total.usage.cache_read, (total.usage.output or 0) + (total.usage.reasoning or 0)]
    script = [*RUNS.script("0.2.111/main"), *RUNS.script("0.2.111/resume")]
    whole = [sum(column) for column in zip(*tokens(script), strict=True)]
    assert [one + (other or 0) for one, other in zip(of_calls[:3], of_turn, strict=True)] == whole[:3]


@pytest.mark.parametrize("is_late", [False, True], ids=["without an end", "that a prompt came into"])
def test_calls_count_when_the_next_prompt_precedes_the_turns_end(is_late: bool) -> None:
    """0.2.111 writes no end of a turn whose process is killed."""
    source = sources_of(name_of(MAIN))[SourceKind.SESSION]
    lines = RUNS.log_of(source).splitlines(keepends=True)
    end, *_ = (place for place, line in enumerate(lines) if b'"turn_completed"' in line)
    first, rest = lines[:end], lines[end + 1 :]
    late = [rest.pop(0), lines[end]] if is_late else []
    found = gather(AGENT.fold(source).feed(b"".join([*first, *late, *rest]), 0))
    turns = [*RUNS.script("0.2.111/main"), *RUNS.script("0.2.111/resume")]
    assert used(answers(found)) == list(tokens(turns))
    assert next(iter(found.sessions.values())).totals == {}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["home first", "copy first"])
def test_updates_that_are_also_read_without_the_log_of_the_home_count_once(
    order: tuple[int, int], tmp_path: Path
) -> None:
    home = CASES[AGENT.name].write_home("grok_build/0.2.111/tour", tmp_path / ".grok")
    store, log = tmp_path / "turnlog.db", sources_of(name_of(MAIN))[SourceKind.SESSION]
    steps = (lambda: sync(store, roots=[home], agents=[AGENT]), lambda: import_file(store, Path(log.path)))
    for step in order:
        steps[step]()
    with open_store(store) as opened:
        session = opened.session(f"grok-build:{name_of(MAIN)}")
    script = [*RUNS.script("0.2.111/main"), *RUNS.script("0.2.111/resume")]
    whole = [sum(column) for column in zip(*tokens(script), strict=True)]
    counted = session.usage.usage
    assert [counted.input, counted.cache_read, (counted.output or 0) + (counted.reasoning or 0)] == whole[:3]
    assert (session.totals, session.usage.covered_calls, session.usage.calls) == ((), 0, 5)


def test_results_say_how_their_commands_ended() -> None:
    """R-C8"""
    found = {name: call.results for name, call in calls(in_order(session_at(MAIN))).items()}
    assert {name: [(one.status, one.exit_code) for one in each] for name, each in found.items()} == {
        "call_read1": [("success", None)],
        "call_fail1": [("error", 3)],
        "call_par1": [("success", 0)],
        "call_par2": [("success", 0)],
    }
    edits = {name: call.results[0].status for name, call in calls(in_order(session_at(EDIT))).items()}
    assert edits == {"call_write1": "success", "call_edit1": "success", "call_edit2": "error", "call_todo1": "success"}
    [denied] = calls(in_order(session_at(DENIED))).values()
    assert denied.results[0].status == "denied"


def test_what_a_tool_returned_is_the_object_of_its_line() -> None:
    lines = RUNS.log_of(sources_of(name_of(MAIN))[SourceKind.SESSION]).splitlines()
    [line] = [one for one in lines if b'"call_fail1","status":"completed"' in one]
    found = AGENT.structured_result(line, "call_fail1")
    assert found is not None
    assert json.loads(bytes(found))["exit_code"] == 3
    assert AGENT.structured_result(line, "another") is None


def test_a_picture_is_part_of_its_prompt() -> None:
    prompt, _ = in_order(session_at(PICTURE))
    assert blocks(prompt) == [("text", "What is on it?")]
    [picture] = [part for part in prompt.parts if isinstance(part, FilePart)]
    assert (picture.media_type, (picture.data or b"")[:4]) == ("image/png", b"\x89PNG")


def test_a_failed_request_is_an_error_and_a_stopped_run_leaves_the_prompt() -> None:
    [error] = [one.event for one in session_at(FAILED).events.values() if isinstance(one.event, ErrorEvent)]
    assert "The model is not available." in error.error_text
    assert [message.origin for message in in_order(session_at(STOPPED))] == [Origin.PROMPT]


# -- how sessions come out of each other


@pytest.mark.parametrize(("number", "call"), [(SUBAGENT, "call_sub1"), (FOREGROUND, "call_sub2")])
def test_a_subagent_is_linked_to_its_call(number: int, call: str) -> None:
    [link] = session_at(number).links.values()
    assert (link.kind, link.tool_call_id, link.inferred) == ("subagent", call, False)
    source = sources_of(link.child_session_id.partition(":")[2])[SourceKind.SUBAGENT]
    child = gather(AGENT.fold(source).feed(RUNS.log_of(source), 0))
    assert in_order(child)[0].origin is Origin.SUBAGENT_PROMPT
    turns = json.loads((RUNS.folder / "0.2.111/sub.script.json").read_text())
    assert [blocks(message) for message in answers(child)] == scripted(turns["sub"])


def test_a_turn_that_counts_the_calls_of_a_subagent_is_not_counted_twice() -> None:
    """It counts 4 calls, of which 2 are the subagent's, whose session has them too."""
    main = json.loads((RUNS.folder / "0.2.111/sub.script.json").read_text())["main"]
    found = session_at(FOREGROUND)
    assert next(iter(found.sessions.values())).totals == {}
    assert used(answers(found)) == list(tokens(main))
    without = session_at(FOREGROUND, home="/nowhere")
    assert next(iter(without.sessions.values())).totals == {}
    assert used(answers(without)) == []


def test_a_fork_shares_the_messages_of_its_origin(tmp_path: Path) -> None:
    [link] = facts_at(FORK).links.values()
    assert (link.kind, link.parent_session_id) == ("fork", f"grok-build:{name_of(MAIN)}")
    # Of its own it has the turn before the compaction and the one behind it.
    assert used(answers(session_at(FORK))) == [(1700, 1500, 15, 0), (400, 0, 11, 0)]
    with RUNS.stored(TOUR, tmp_path) as store:
        copied, own = (
            [one.message.id for one in store.messages(f"grok-build:{name_of(each)}")] for each in (FORK, MAIN)
        )
        assert copied[: len(own)] == own
        fates = [one.membership.fate for one in store.messages(f"grok-build:{name_of(FORK)}")]
    # After the compaction there are a prompt and its answer.
    assert fates == [Fate.COMPACTED] * (len(fates) - 2) + [Fate.ACTIVE] * 2
    assert [one for one in session_at(FORK).events.values() if isinstance(one.event, CompactionEvent)]


def test_what_was_said_before_a_rewind_left_the_conversation(tmp_path: Path) -> None:
    [event] = [one.event for one in session_at(EDIT).events.values() if isinstance(one.event, RewindEvent)]
    assert event.to_message_id is None
    with RUNS.stored(TOUR, tmp_path) as store:
        fates = [one.membership.fate for one in store.messages(f"grok-build:{name_of(EDIT)}")]
    assert fates == [Fate.REWOUND] * 4 + [Fate.ACTIVE] * 2


def test_a_rewind_goes_back_to_before_the_prompt_with_its_number() -> None:
    """By hand, after the source."""

    def prompt(number: int) -> dict[str, Any]:
        content = {"type": "text", "text": f"Prompt {number}"}
        return {"sessionUpdate": "user_message_chunk", "content": content, "_meta": {"promptIndex": number}}

    found = fold(
        prompt(0), prompt(1), prompt(2), {"sessionUpdate": "rewind_marker", "target_prompt_index": 1}, prompt(1)
    )
    placed = sorted(found.placements.values(), key=lambda place: place.position)
    assert [place.parent_id for place in placed] == [None, "s-0@1000", "s-1@1001", "s-0@1000"]


# -- the log


def test_what_is_known_beside_the_log_is_in_the_summary() -> None:
    [change] = facts_at(MAIN).sessions.values()
    assert (change.cwd, change.git_branch) == ("/home/dev/work", "main")
    assert change.titles == {"generated": "Please read notes.txt and tell me what is in it."}


def test_every_line_is_accounted_for_and_any_split_equals_the_whole() -> None:
    """R-S34"""
    for source in RUNS.sources(TOUR):
        data = RUNS.log_of(source)
        whole = gather(AGENT.fold(source).feed(data, 0))
        assert whole.diagnostics == []
        if source.appendable:
            assert whole.counts.total == data.count(b"\n")
            assert in_pieces(AGENT, source, data).as_json() == whole.as_json()


def test_an_unknown_update_is_an_event() -> None:
    found = fold({"sessionUpdate": "some_future_feature", "data": 42})
    [change] = found.events.values()
    assert getattr(change.event, "known", None) is False


def test_restored_files_are_those_of_the_home(tmp_path: Path) -> None:
    """R-S1"""
    restored = RUNS.restored(TOUR, tmp_path)
    assert sorted(restored) == ["summary.json", "updates.jsonl"]
    for file in (tmp_path / "restored").rglob("*.json*"):
        assert file.read_bytes() == (RUNS.folder / TOUR / file.relative_to(tmp_path / "restored")).read_bytes()


def test_a_log_is_known_by_its_lines(tmp_path: Path) -> None:
    """R-S21"""
    copy = tmp_path / "any.jsonl"
    copy.write_bytes(RUNS.log_of(sources_of(name_of(MAIN))[SourceKind.SESSION]))
    found = detect(copy)
    assert found.source is not None
    assert (found.agent, found.source.session_id) == ("grok-build", f"grok-build:{name_of(MAIN)}")
    copy.write_bytes(b'{"method": "session/update", "params": {"sessionId": "s"}}\n')
    assert detect(copy).agent is None


def test_a_session_is_resumed_by_its_id() -> None:
    assert AGENT.command is not None
    assert resume_command(AGENT.command, "01a2") == ["grok", "--resume", "01a2"]
    assert prompted_command(AGENT.command, "01a2") == ["grok", "--resume", "01a2", "--prompt-file", "/dev/stdin"]


# -- the page


def test_every_update_and_tool_is_on_the_page() -> None:
    """R-S23"""
    page = FormatPage("grok-build")
    assert sorted(name for cell, _ in page.rows("## Updates") for name in named(cell)) == sorted(KINDS)
    tools = {tool: named(kind)[0] for cell, kind in page.rows("### Tools") for tool in named(cell)}
    assert tools == {name: kind.value for name, kind in TOOL_KINDS.items()}
