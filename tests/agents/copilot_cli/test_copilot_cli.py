"""Copilot CLI's recorded runs against the scripts that they followed, and records that no run shows."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.claude_files import Gathered, gather
from support.copilot_files import (
    AGENT,
    DATA,
    SESSION,
    SESSION_ID,
    fold,
    lines,
    log_of,
    log_source,
    logs,
    own_id,
    read,
    record,
    request,
)
from turnlog.agents import detect, fold_bytes
from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import Changes, LeafTitle, LineCounts
from turnlog.agents.commands import prompted_command, resume_command
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    Fate,
    FilePart,
    InterruptEvent,
    Message,
    Origin,
    ReasoningPart,
    RecordEvent,
    TextPart,
    ToolCallPart,
    ToolState,
    UnknownPart,
    Usage,
)
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.store.connection import connect
from turnlog.store.sqlite.restore import restore_files
from turnlog.sync.syncer import sync

CASES = sorted(folder.name for folder in DATA.iterdir())
TOUR = "Please read notes.txt and tell me what is in it."

every_log = pytest.mark.parametrize(
    "source", [pytest.param(log, id=f"{case}-{number}") for case in CASES for number, log in enumerate(logs(case))]
)


def answers(found: Gathered, session: str) -> list[Message]:
    return [message for message in found.in_order(session) if message.role == "assistant"]


def said(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))


def events(found: Gathered, kind: type[Any]) -> list[Any]:
    return [change.event for change in found.events.values() if isinstance(change.event, kind)]


def buckets(usage: Usage | None) -> list[int | None]:
    assert usage is not None
    return [usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning]


# -- every recorded log


@every_log
def test_every_record_is_accounted_for_and_known(source: Source) -> None:
    """R-S34, R-K7"""
    found = read(source)
    counted = sum(getattr(found.counts, name) for name in LineCounts.__struct_fields__)
    assert counted == Path(source.path).read_bytes().count(b"\n")
    assert (found.counts.unreadable, found.diagnostics, found.late) == (0, [], [])
    assert [event.kind for event in events(found, RecordEvent) if not event.known] == []
    parts = [part for message in found.messages.values() for part in message.parts]
    assert [part for part in parts if isinstance(part, UnknownPart)] == []


@every_log
@pytest.mark.parametrize("size", [1, 3])
def test_any_split_gives_the_same_changes(source: Source, size: int) -> None:
    """R-K11"""
    data = Path(source.path).read_bytes()
    whole = AGENT.fold(source)
    expected = gather(whole.feed(data, 0)).as_json()
    rows, state, offset, found = data.splitlines(keepends=True), None, 0, list[Changes]()
    for start in range(0, len(rows), size):
        piece = b"".join(rows[start : start + size])
        opened = AGENT.fold(source, state)
        found.append(opened.feed(piece, offset))
        state, offset = opened.state(), offset + len(piece)
    assert gather(*found).as_json() == expected
    assert state == whole.state()


# -- the tour, as it was scripted


def test_the_tour_is_read_as_it_was_scripted() -> None:
    """R-K4, R-C5: an input that includes both kinds of cached tokens, and an output that includes reasoning."""
    [source] = logs("basic")
    found = read(source)
    tour = answers(found, own_id(found))
    assert [said(message) for message in tour] == [
        "I will read the notes.",
        "",
        "Two commands at once.",
        "The notes hold three lines: alpha, beta, gamma. The missing file does not exist.",
        "Resumed: nothing more to do.",
    ]
    assert [buckets(message.usage) for message in tour] == [
        [1200, 300, 0, 33, 12],
        [1300, 1200, 0, 23, 7],
        [1400, 1300, 0, 55, 0],
        [1500, 1400, 0, 55, 5],
        [1700, 1500, 0, 15, 0],
    ]
    thoughts = [part.text for message in tour for part in message.parts if isinstance(part, ReasoningPart)]
    assert thoughts == [
        "I should look at the notes file first.",
        "Now try a command that fails.",
        "All done; sum up.",
    ]
    assert {message.model for message in tour} == {"gpt-5.4"}
    assert [message.stop_reason for message in tour] == ["tool_use", "tool_use", "tool_use", "stop", "stop"]
    assert [found.place(message.id).turn for message in tour] == [1, 1, 1, 1, 2]
    assert [found.place(message.id).step for message in tour] == [1, 2, 3, 4, 1]


def test_a_command_that_fails_has_failed_although_its_tool_succeeded() -> None:
    """R-S16"""
    found = log_of("basic", TOUR)
    calls = {call.tool_call_id: call for call in found.calls()}
    assert list(calls) == ["call_read1", "call_fail1", "call_par1", "call_par2"]
    failed = calls["call_fail1"].results[0]
    assert (failed.status, failed.exit_code) == ("error", 3)
    assert failed.error_text == failed.output_text
    assert "No such file" in failed.output_text
    assert [calls[name].results[0].exit_code for name in ("call_read1", "call_par1", "call_par2")] == [None, 0, 0]
    assert calls["call_read1"].results[0].output_text == "alpha\nbeta\ngamma\n"
    assert calls["call_fail1"].started_at is not None


def test_cache_writes_and_signatures_of_anthropic_are_kept() -> None:
    """R-C5, R-K6"""
    found = log_of("anthropic", TOUR)
    tour = answers(found, own_id(found))
    assert [buckets(message.usage) for message in tour] == [
        [1200, 300, 11, 45, None],
        [1300, 1200, 11, 30, None],
        [1400, 1300, 11, 55, None],
        [1500, 1400, 11, 60, None],
    ]
    thought = tour[0].parts[0]
    assert isinstance(thought, ReasoningPart)
    assert thought.provider is not None
    assert (thought.provider.name, thought.provider.model) == ("anthropic", "claude-sonnet-4.5")
    assert thought.provider.opaque["signature"].startswith("bW9jay1zaWduYXR1cmU6")


def test_what_the_program_put_around_a_prompt_is_separated_from_it() -> None:
    """R-S30: the model saw the time before the words."""
    prompt = log_of("basic", TOUR).in_order(own_id(log_of("basic", TOUR)))[0]
    texts = [part for part in prompt.parts if isinstance(part, TextPart)]
    assert [(part.text[:18], part.is_synthetic) for part in texts] == [("<current_datetime>", True), (TOUR[:18], False)]


# -- subagents


def test_a_subagent_in_its_parents_file_is_a_session_of_its_own() -> None:
    """R-C10"""
    found = log_of("subagent", "Use a subagent to count the lines.")
    parent, child = found.sessions
    assert child.startswith(f"{parent}.")
    assert [said(message) for message in answers(found, parent)] == ["", "The subagent says three."]
    assert [said(message) for message in answers(found, child)] == ["sub reads", "The subagent found three lines."]
    prompt = found.in_order(child)[0]
    assert prompt.origin is Origin.SUBAGENT_PROMPT
    assert said(prompt).endswith("SUBTASK: count the lines of notes.txt")
    [link] = found.links.values()
    assert (link.parent_session_id, link.child_session_id) == (parent, child)
    assert link.message_id == answers(found, parent)[0].id
    assert found.sessions[child].cwd == found.sessions[parent].cwd == "/home/dev/work"
    assert found.sessions[child].agent_version == "1.0.102"


def test_two_subagents_at_once_keep_their_records_apart() -> None:
    """R-C10: a synchronous one and one in the background, whose records alternate."""
    found = log_of("subagents", "Two subagents at once.")
    parent, *children = found.sessions
    ends = [said(answers(found, child)[-1]) for child in children]
    assert ends == ["The subagent one is done.", "The subagent two is done."]
    commands = [call.input_value()["command"] for call in found.calls() if call.tool_name == "bash"]
    assert sorted(commands) == ["echo one", "echo two"]
    assert sorted(link.tool_call_id or "" for link in found.links.values()) == ["call_t1", "call_t2"]
    own = found.in_order(parent)
    assert [message.origin for message in own if message.role == "developer"] == [Origin.NOTIFICATION]


def test_a_call_that_no_model_made_is_no_step() -> None:
    """R-K4: the program reads what a background agent found, and logs that as an answer."""
    found = log_of("subagents", "Two subagents at once.")
    [made] = [
        message for message in found.messages.values() if message.origin is Origin.HARNESS and message.role != "system"
    ]
    assert [part.tool_name for part in made.parts if isinstance(part, ToolCallPart)] == ["read_agent"]
    assert (made.model, made.usage, found.place(made.id).step) == (None, None, None)


def test_a_subagent_that_fails_fails_its_call() -> None:
    found = log_of("subagents", "A subagent that fails.")
    parent, child = found.sessions
    [call] = found.calls()
    assert (call.state, call.output_text) == (ToolState.OUTPUT_ERROR, "400 mock: bad request")
    failed = [change for change in found.events.values() if isinstance(change.event, ErrorEvent)]
    assert {change.session_id for change in failed} == {child}
    assert [change.event.kind for change in failed if isinstance(change.event, ErrorEvent)] == ["query", "subagent"]
    assert [said(message) for message in answers(found, parent)] == ["", "It failed."]


def test_a_subagent_that_was_interrupted_leaves_no_open_call() -> None:
    """R-K9"""
    found = log_of("subagents", "A slow subagent.")
    assert {call.tool_call_id: call.state for call in found.calls()} == {
        "call_t3": ToolState.ABORTED,
        "call_sub_slow": ToolState.ABORTED,
    }


# -- interruptions, failures, permissions, files


def test_interruptions_of_an_answer_and_of_a_command() -> None:
    """R-K9: nothing is logged of an answer that was interrupted."""
    found = log_of("interrupt", "Talk for long.")
    assert [event.during for event in events(found, InterruptEvent)] == ["answer", "tool"]
    [call] = found.calls()
    assert (call.state, call.results) == (ToolState.ABORTED, ())
    assert [said(message) for message in answers(found, own_id(found))] == ["A slow command.", "Resumed."]


def test_a_denied_call_and_who_denied_it() -> None:
    found = log_of("tools", "May I?")
    [call] = found.calls()
    assert call.state is ToolState.OUTPUT_DENIED
    assert call.approval is not None
    assert (call.approval.approved, call.approval.source) == (False, "unattended_fallback")


def test_a_request_that_the_provider_refuses() -> None:
    [failed] = events(log_of("tools", "This fails."), ErrorEvent)
    assert (failed.error_text, failed.kind, failed.status) == ("400 mock: bad request", "query", 400)


def test_an_image_has_its_bytes_where_it_is_first_named() -> None:
    """R-K3: the log has them once, in a record before."""
    found = log_of("tools", "What is in the picture?")
    [attached] = [part for part in found.in_order(own_id(found))[0].parts if isinstance(part, FilePart)]
    assert (attached.media_type, attached.filename) == ("image/png", "p.png")
    assert (attached.data or b"")[:8] == b"\x89PNG\r\n\x1a\n"
    viewed = next(call for call in found.calls() if call.tool_call_id == "call_png").results[0].content[1]
    assert isinstance(viewed, FilePart)
    assert (viewed.data, viewed.url) == (None, attached.metadata["copilot-cli"]["asset_id"])


def test_a_tool_with_text_as_its_input() -> None:
    patch = next(call for call in log_of("tools", "What is in the picture?").calls() if call.tool_name == "apply_patch")
    assert (patch.input_text or "").startswith("*** Begin Patch\n*** Update File: notes.txt")


# -- compaction, rewind, fork


@contextmanager
def stored(home: Path, database: Path) -> Generator[tuple[Store, dict[str, str]]]:
    """A store that has read a home, and the ids of its sessions by their titles."""
    assert sync(database, roots=[home], agents=[AGENT]).problems == []
    with open_store(database) as store:
        found = store.sessions(SessionFilter(subagents=True), limit=50).items
        yield store, {session.title or "": session.id for session in found}


def test_a_compaction_replaces_what_came_before_it(tmp_path: Path) -> None:
    """R-K10: by a summary that cost a model call, which only its own record counts."""
    with stored(DATA / "fork", tmp_path / "turnlog.db") as (store, ids):
        placed = [each for each in store.messages(ids["my name"]) if each.message.role == "assistant"]
        [compaction] = [event for event in store.events(ids["my name"]) if isinstance(event, CompactionEvent)]
    assert [(said(each.message), each.membership.fate) for each in placed] == [
        ("First answer.", Fate.COMPACTED),
        ("Third answer, after the rewind.", Fate.COMPACTED),
        ("<overview>SUMMARY</overview>", Fate.ACTIVE),
        ("Fourth answer, after the compaction.", Fate.ACTIVE),
    ]
    assert buckets(placed[2].message.usage) == [55, 5, 0, 7, None]
    assert (compaction.trigger, compaction.tokens_before, compaction.tokens_after) == ("manual", 12958, 12956)


def test_messages_that_came_while_a_compaction_ran_stay() -> None:
    """The summary is of what was there when it began."""
    found = fold(
        record("user.message", 0, content="One"),
        record("session.compaction_start", 1),
        record("user.message", 2, content="Two"),
        record("session.compaction_complete", 3, success=True, summaryContent="It was One."),
    )
    [compaction] = events(found, CompactionEvent)
    assert (compaction.kept_message_ids, compaction.summary_message_id) == (("e2",), "e3.summary")


def test_a_compaction_that_failed_replaces_nothing() -> None:
    failed = record("session.compaction_complete", 1, success=False, error="too long")
    found = fold(record("user.message", 0, content="One"), failed)
    assert events(found, CompactionEvent) == []
    assert list(found.messages) == ["e0"]


def test_a_rewind_supersedes_what_it_took_out_of_the_file(tmp_path: Path) -> None:
    """R-S43: Copilot CLI writes the file anew without it, and the store keeps it."""
    home, database = tmp_path / "home", tmp_path / "turnlog.db"
    log = home / "session-state" / SESSION / "events.jsonl"
    log.parent.mkdir(parents=True)
    before = [
        record("session.start", 0, sessionId=SESSION, copilotVersion="1.0.102", context={"cwd": "/home/dev/work"}),
        record("user.message", 1, content="First question"),
        record("assistant.message", 2, content="First answer.", model="gpt-5.4"),
        record("user.message", 3, content="Second question"),
    ]
    log.write_bytes(lines(*before))
    sync(database, roots=[home], agents=[AGENT])
    rewound = record("session.info", 4, infoType="rewind", message="Rewound the conversation.")
    log.write_bytes(lines(*before[:3], rewound, record("user.message", 5, content="Third question")))
    with stored(home, database) as (store, ids):
        placed = list(store.messages(ids["First question"]))
    fates = {said(each.message): each.membership.fate for each in placed}
    assert fates == {
        "First question": Fate.ACTIVE,
        "First answer.": Fate.ACTIVE,
        "Second question": Fate.SUPERSEDED,
        "Third question": Fate.ACTIVE,
    }


def test_a_fork_shares_its_parents_messages_and_pays_for_its_own(tmp_path: Path) -> None:
    """R-S25, R-C5: the answers of 101 to 106 tokens and the summary of 55, each once."""
    with stored(DATA / "fork", tmp_path / "turnlog.db") as (store, ids):
        fork = store.session(ids["other"])
        assert fork is not None
        [relation] = fork.relationships
        billed = [
            each.message.usage.input or 0
            for session in ids.values()
            for each in store.messages(session)
            if each.message.usage is not None and each.membership.is_billed
        ]
        shared = {each.message.id for each in store.messages(ids["my name"])}
        assert shared < {each.message.id for each in store.messages(ids["other"])}
    assert (relation.kind, relation.parent_session_id, relation.inferred) == ("fork", ids["my name"], False)
    assert sorted(billed) == [55, 101, 103, 104, 105, 106]


def test_a_forks_copy_of_a_note_about_another_fork_is_not_its_own() -> None:
    child = "9c1d0b7c-1d6b-4a4e-8a51-f1c2d3e4f503"
    note = {"infoType": "fork", "message": f'Forked this session into "x" ({child}).'}
    own = [record("session.start", 1, sessionId=SESSION), record("session.info", 2, **note)]
    [link] = fold(*own).links.values()
    assert (link.parent_session_id, link.child_session_id) == (SESSION_ID, f"copilot-cli:{child}")
    copied = [record("session.start", 9, sessionId=SESSION), record("session.info", 2, **note)]
    assert fold(*copied).links == {}


def test_a_command_of_the_user_and_what_it_printed() -> None:
    """The model gets both with the next prompt."""
    found = read(next(log for log in logs("fork") if log.session_id and log.session_id.endswith("5559")))
    shell = [message for message in found.messages.values() if message.origin in (Origin.SHELL, Origin.SHELL_OUTPUT)]
    assert [(message.role, said(message)) for message in shell] == [
        ("user", "echo from-bang; exit 3"),
        ("developer", "from-bang"),
    ]
    assert shell[1].metadata["copilot-cli"] == {"exit_code": 3}


# -- what older versions write


def test_totals_count_where_no_call_has_a_usage() -> None:
    """R-C5: each run repeats the totals of those before; what answers have counted is not counted again."""

    def shutdown(number: int, tokens: int, output: int) -> dict[str, Any]:
        usage = {"inputTokens": tokens, "outputTokens": output, "cacheReadTokens": 100, "cacheWriteTokens": 0}
        return record("session.shutdown", number, modelMetrics={"gpt-5": {"requests": {"count": 1}, "usage": usage}})

    found = fold(
        record("user.message", 0, content="One"),
        record("assistant.message", 1, content="1", model="gpt-5", interactionId="i", outputTokens=7),
        shutdown(2, 500, 10),
        record("assistant.message", 3, content="2", model="gpt-5", interactionId="i", outputTokens=5),
        shutdown(4, 900, 15),
    )
    used = {message.id: message.usage for message in found.messages.values() if message.usage is not None}
    totals = found.sessions[f"copilot-cli:{SESSION}"].totals
    assert {name: buckets(total.usage) for name, total in totals.items()} == {"gpt-5": [800, 100, 0, 3, None]}
    assert [buckets(usage) for usage in used.values()] == [[None, None, None, 7, None], [None, None, None, 5, None]]


def test_totals_of_single_runs_are_added_and_reasoning_counts_once() -> None:
    """R-C5: 1.0.45 starts anew in each run. Its answers count reasoning in their output."""

    def shutdown(number: int, tokens: int, output: int, reasoning: int) -> dict[str, Any]:
        usage = {
            "inputTokens": tokens, "outputTokens": output, "cacheReadTokens": 100, "cacheWriteTokens": 0,
            "reasoningTokens": reasoning,
        }  # fmt: skip
        return record("session.shutdown", number, modelMetrics={"gpt-5": {"requests": {"count": 1}, "usage": usage}})

    found = fold(
        record("user.message", 0, content="One"),
        record("assistant.message", 1, content="1", model="gpt-5", interactionId="i", outputTokens=17),
        shutdown(2, 500, 17, 12),
        record("assistant.message", 3, content="2", model="gpt-5", interactionId="i", outputTokens=5),
        shutdown(4, 900, 5, 0),
    )
    totals = found.sessions[f"copilot-cli:{SESSION}"].totals
    assert {name: buckets(total.usage) for name, total in totals.items()} == {"gpt-5": [1200, 200, 0, 0, None]}


def test_a_run_of_an_older_version_has_the_calls_and_tokens_of_its_script(home: Path, tmp_path: Path) -> None:
    """R-C5: 1.0.45 wrote no usage of single calls. The script has 7,100 tokens of input, 5,700 cached, 205 output."""
    shutil.copytree(DATA.parent / "1.0.45" / "tour", home / ".copilot")
    store = tmp_path / "store.db"
    sync(store)
    with open_store(store) as opened:
        [session] = opened.sessions(SessionFilter()).items
        used = session.usage.usage
        parts = [part for each in opened.messages(session.id) for part in each.message.parts]
    assert (used.input, used.cache_read, (used.output or 0) + (used.reasoning or 0)) == (7100, 5700, 205)
    assert [(part.tool_call_id, part.state) for part in parts if isinstance(part, ToolCallPart)] == [
        ("call_read1", ToolState.OUTPUT_AVAILABLE),
        ("call_fail1", ToolState.OUTPUT_ERROR),
        ("call_par1", ToolState.OUTPUT_AVAILABLE),
        ("call_par2", ToolState.OUTPUT_AVAILABLE),
    ]
    assert [part.text for part in parts if isinstance(part, TextPart)][-1] == "Resumed: nothing more to do."


def test_totals_of_a_session_with_usages_are_not_counted() -> None:
    """R-C5"""
    found = log_of("basic", TOUR)
    assert [session.totals for session in found.sessions.values() if session.totals] == []


def test_chunks_of_one_model_call_are_one_message() -> None:
    """R-K4"""
    found = fold(
        record("user.message", 0, content="One"),
        record("session.usage_record", 1, usage={"inputTokens": 9, "outputTokens": 4, "apiCallId": "a"}),
        record("assistant.message", 2, content="A", apiCallId="a", model="m", chunkIndex=0, chunkCount=2),
        record("assistant.message", 3, content="B", apiCallId="a", model="m", chunkIndex=1, chunkCount=2),
    )
    answer = found.messages["e2"]
    assert [part.text for part in answer.parts if isinstance(part, TextPart)] == ["A", "B"]
    assert buckets(answer.usage) == [9, None, None, 4, None]
    assert "e3" not in found.messages


def test_an_answer_that_was_cut_off_and_asked_for_again_has_its_tokens() -> None:
    """As 1.0.102 logs an answer that was too long: there is no record of its text. R-K4"""

    def used(number: int, call: str, agent: str | None = None, **facts: Any) -> dict[str, Any]:
        usage = {"model": "m", "inputTokens": 9, "outputTokens": number, "apiCallId": call, **facts}
        return record("session.usage_record", number, agent, usage=usage)

    records = (
        record("user.message", 0, content="One"),
        used(1, "a", finishReason="length"),
        used(2, "b", "sub"),
        record("assistant.turn_end", 3, turnId="0"),
        record("assistant.message", 4, "sub", content="B", apiCallId="b", model="m"),
        record("assistant.turn_end", 5, "sub", turnId="0"),
        used(6, "c"),
        record("assistant.message", 7, content="C", apiCallId="c", model="m"),
        record("assistant.turn_end", 8, turnId="1"),
    )
    found = fold(*records)
    assert {name: buckets(found.messages[name].usage)[3] for name in ("e1", "e4", "e7")} == {"e1": 1, "e4": 2, "e7": 6}
    assert (found.messages["e1"].parts, found.messages["e1"].stop_reason) == ((), "length")
    assert found.counts.total == len(records)


def test_tokens_that_come_after_their_answer_are_its_own_and_count_once() -> None:
    """No version writes them so. R-K4"""
    usage = {"model": "m", "inputTokens": 9, "outputTokens": 4, "apiCallId": "a", "finishReason": "stop"}
    records = (
        record("user.message", 0, content="One"),
        record("assistant.message", 1, content="A", apiCallId="a", model="m", outputTokens=4),
        record("session.usage_record", 2, usage=usage),
        record("session.usage_record", 3, usage=usage),
        record("assistant.turn_end", 4, turnId="0"),
        record("session.usage_record", 5, usage=usage | {"apiCallId": "b"}),
        record("assistant.turn_end", 6, turnId="1"),
    )
    found = fold(*records)
    said = {name: buckets(each.usage) for name, each in found.messages.items() if each.role == "assistant"}
    assert said == {"e1": [9, None, None, 4, None], "e5": [9, None, None, 4, None]}
    assert found.messages["e1"].stop_reason == "stop"
    assert found.counts.total == len(records)


def test_a_subagent_without_an_agent_id_is_known_by_its_call() -> None:
    """R-C10: as 0.0.4xx writes it."""
    found = fold(
        record("assistant.message", 0, content="", toolRequests=[request("call_1", "task")], interactionId="i"),
        record("subagent.started", 1, toolCallId="call_1", agentName="explore", agentDisplayName="Explore"),
        record("assistant.message", 2, content="Inside.", interactionId="i", parentToolCallId="call_1"),
        record("assistant.message", 3, content="Outside.", interactionId="i"),
    )
    child = f"{SESSION_ID}.call_1"
    assert [said(message) for message in found.in_order(child)] == ["Inside."]
    assert [said(message) for message in found.in_order(SESSION_ID)] == ["", "Outside."]
    [link] = found.links.values()
    assert (link.child_session_id, link.tool_call_id, link.message_id) == (child, "call_1", "e0")


def test_the_exit_code_at_the_end_of_an_output() -> None:
    """R-S16: where the record has none of its own."""
    found = fold(
        record("assistant.message", 0, content="", toolRequests=[request("c")], interactionId="i"),
        record(
            "tool.execution_complete",
            1,
            toolCallId="c",
            success=True,
            result={"content": "x\n<exited with exit code 2>"},
        ),
    )
    [call] = found.calls()
    assert (call.results[0].exit_code, call.state) == (2, ToolState.OUTPUT_ERROR)


# -- origins and damage


@pytest.mark.parametrize(
    ("data", "origin", "role"),
    [
        ({}, Origin.PROMPT, "user"),
        ({"source": "skill-pdf"}, Origin.HARNESS, "developer"),
        ({"source": "agent-7"}, Origin.NOTIFICATION, "developer"),
        ({"source": "something-new"}, Origin.NOTIFICATION, "developer"),
        ({"isAutopilotContinuation": True}, Origin.HARNESS, "developer"),
    ],
)
def test_only_a_person_begins_a_turn(data: dict[str, Any], origin: Origin, role: str) -> None:
    found = fold(record("user.message", 0, content="Go on", **data))
    message = found.messages["e0"]
    assert (message.origin, message.role) == (origin, role)
    assert found.place("e0").turn == (1 if origin is Origin.PROMPT else None)


def test_a_result_without_its_call_is_kept_for_the_store_to_place() -> None:
    found = fold(record("tool.execution_complete", 0, toolCallId="c", success=True, result={"content": "late"}))
    assert [(change.tool_call_id, change.message_id) for change in found.late] == [("c", None)]


def test_data_of_another_shape_changes_nothing_else() -> None:
    """R-K11"""
    odd = {"type": "user.message", "data": [1], "id": "x", "timestamp": "2026-11-21T10:00:00Z", "parentId": None}
    field = record("user.message", 2, content="Two", attachments="none")
    found = fold(
        record("user.message", 0, content="One"), odd, field, {"type": "session.future", "id": "y", "data": {}}
    )
    assert [said(message) for message in found.messages.values()] == ["One", "Two"]
    assert [diagnostic.json_path for diagnostic in found.diagnostics] == ["$.data", "$.data.attachments"]
    assert [(event.kind, event.known) for event in events(found, RecordEvent)] == [
        ("user.message", True),
        ("session.future", False),
    ]


# -- where the files are, and what is next to them


def test_every_file_of_a_session_is_found() -> None:
    found = list(AGENT.discover([DATA / "fork"]))
    kinds = [(Path(source.path).name, source.kind) for source in found]
    assert ("workspace.yaml", SourceKind.SIDECAR) in kinds
    assert ("001-session-7d611d7d.md", SourceKind.SIDECAR) in kinds
    assert [source.appendable for source in found if source.kind is SourceKind.SIDECAR] == [False] * 6


def test_a_log_of_an_old_version_is_a_single_file(tmp_path: Path) -> None:
    log = tmp_path / "session-state" / f"{SESSION}.jsonl"
    log.parent.mkdir()
    log.write_bytes(lines(record("session.start", 0, sessionId=SESSION, copilotVersion="0.0.343")))
    assert [(source.session_id, source.path) for source in AGENT.discover([tmp_path])] == [(SESSION_ID, str(log))]
    assert detect(log).version == "0.0.343"


def test_a_log_elsewhere_is_known_by_its_records(tmp_path: Path) -> None:
    """R-S21"""
    [log] = logs("basic")
    copy = tmp_path / "copy.jsonl"
    shutil.copy(log.path, copy)
    found = detect(copy)
    assert found.source is not None
    assert (found.agent, found.version, found.source.session_id) == ("copilot-cli", "1.0.102", log.session_id)


@pytest.mark.parametrize(
    ("name", "titles", "named"),
    [
        ("name: First question\nuser_named: false", {"generated": "First question"}, []),
        ("name: my name\nuser_named: true", {}, ["my name"]),
        ("name: 'it''s: here'\nuser_named: true", {}, ["it's: here"]),
        ('name: "a \\"b\\""\nuser_named: true', {}, ['a "b"']),
        ('name: "cut', {"generated": '"cut'}, []),
        ("name:\n", {}, []),
    ],
)
def test_the_facts_next_to_a_log(name: str, titles: dict[str, str], named: list[str]) -> None:
    path = f"/home/dev/.copilot/session-state/{SESSION}/workspace.yaml"
    source = Source(
        agent="copilot-cli", path=path, root="/home/dev/.copilot", kind=SourceKind.SIDECAR, session_id=SESSION_ID
    )
    changes = fold_bytes(AGENT, source, f"id: {SESSION}\ncwd: /home/dev/work\nbranch: main\n{name}\n".encode())
    change = changes.sessions[SESSION_ID]
    assert (change.cwd, change.git_branch, change.titles) == ("/home/dev/work", "main", titles)
    assert changes.leaf_titles == [LeafTitle(record_id=SESSION_ID, title=title) for title in named]


def test_files_are_written_back_byte_for_byte(tmp_path: Path) -> None:
    """R-S40"""
    home, database = tmp_path / "home", tmp_path / "turnlog.db"
    shutil.copytree(DATA / "fork", home)
    with stored(home, database) as (_, ids):
        session = ids["other"]
    folder = Path("session-state", session.partition(":")[2])
    originals = {path.relative_to(home): path.read_bytes() for path in (home / folder).rglob("*") if path.is_file()}
    shutil.rmtree(home)
    with closing(connect(database)) as connection:
        restore_files(connection, session, tmp_path / "back")
    back = tmp_path / "back"
    assert {path.relative_to(back): path.read_bytes() for path in back.rglob("*") if path.is_file()} == originals


def test_the_commands_that_continue_a_session() -> None:
    assert AGENT.command is not None
    assert resume_command(AGENT.command, SESSION) == ["copilot", "--resume", SESSION]
    assert prompted_command(AGENT.command, f"{SESSION}.call_1") == ["copilot", "--resume", SESSION]


def test_the_outcome_that_the_agent_logged() -> None:
    """R-C8"""
    [log] = logs("basic")
    record_of = next(line for line in Path(log.path).read_bytes().splitlines() if b'"exitCode":3' in line)
    found = AGENT.structured_result(record_of, "call_fail1")
    assert found is not None
    assert b'"shell_error_category":"command_nonzero_exit"' in bytes(found)
    assert AGENT.structured_result(lines(record("user.message", 0, content="x")), "c") is None
    assert log_source().appendable
