"""Amp's threads become messages, as other programs read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.claude_files import Gathered, gather
from support.format_page import FormatPage, named
from support.scripted import Recordings, answers, blocks, calls, in_order, used
from turnlog.agents import agent, detect
from turnlog.agents.amp.contents import TOOL_KINDS
from turnlog.agents.base import Source
from turnlog.agents.commands import resume_command
from turnlog.model import FilePart, InterruptEvent, Origin, ReasoningPart
from turnlog.store.base import SessionFilter

AGENT = agent("amp")
RUNS = Recordings(AGENT, Path(__file__).parents[2] / "data" / "amp")
TOUR, OLDEST = "handwritten/tour", "handwritten/oldest"
THREAD = "T-019ca26f-0000-7000-8000-000000000001"


def fold(thread: bytes) -> Gathered:
    source = Source(agent="amp", path="/a/threads/T-1.json", root="/a", session_id="amp:T-1", appendable=False)
    return gather(AGENT.fold(source).feed(thread, 0))


def test_a_thread_has_its_messages_in_order() -> None:
    found = RUNS.read(TOUR)
    prompt, first, *_ = in_order(found)
    assert (prompt.origin, blocks(prompt)) == (
        Origin.PROMPT,
        [("text", "Please read notes.txt and tell me what is in it.")],
    )
    [picture] = [part for part in prompt.parts if isinstance(part, FilePart)]
    assert (picture.media_type, (picture.data or b"")[:4]) == ("image/png", b"\x89PNG")
    assert blocks(first) == [
        ("thinking", "I should look at the notes file first."),
        ("text", "I will read the notes."),
        ("tool", ("Read", "toolu_read1", {"path": "/home/dev/work/notes.txt"})),
    ]
    [thought] = [part for part in first.parts if isinstance(part, ReasoningPart)]
    assert thought.provider is not None
    assert found.diagnostics == []


def test_tokens_are_in_disjoint_buckets() -> None:
    """R-K1: Amp counts the input of OpenAI's models as written to the cache."""
    found = answers(RUNS.read(TOUR))
    assert used(found) == [
        (1200, 0, 45, 0),
        (14, 1500, 55, 0),
        (16, 1534, 60, 0),
        (18, 1580, 12, 0),
        (900, 0, 9, 0),
    ]
    assert [message.usage and message.usage.cache_write for message in found] == [300, 20, 30, 0, None]
    assert [message.stop_reason for message in found] == ["tool_use", "tool_use", "tool_use", "stop", None]


def test_results_say_how_their_calls_ended() -> None:
    """R-C8"""
    found = {name: call.results for name, call in calls(in_order(RUNS.read(TOUR))).items()}
    assert {name: [(one.status, one.exit_code) for one in each] for name, each in found.items()} == {
        "toolu_read1": [("success", None)],
        "toolu_par1": [("success", 0)],
        "toolu_fail1": [("error", 3)],
        "toolu_edit1": [("success", None)],
        "toolu_rm1": [("denied", None)],
        "toolu_sub1": [("error", None)],
        "toolu_stop1": [("aborted", None)],
    }
    assert found["toolu_edit1"][0].output_text == "-beta\n+BETA"
    assert found["toolu_sub1"][0].error_text == "The helper failed."


def test_an_answer_that_was_stopped_is_an_interrupt() -> None:
    found = RUNS.read(TOUR)
    [event] = [one.event for one in found.events.values() if isinstance(one.event, InterruptEvent)]
    assert event.message_id == answers(found)[-1].id


def test_what_a_tool_returned_is_its_object() -> None:
    [source] = RUNS.sources(TOUR)
    messages = json.loads(RUNS.log_of(source))["messages"]
    found = AGENT.structured_result(json.dumps(messages[4]).encode(), "toolu_fail1")
    assert found is not None
    assert json.loads(bytes(found))["exitCode"] == 3
    assert AGENT.structured_result(json.dumps(messages[4]).encode(), "another") is None


def test_the_oldest_threads_have_results_as_in_anthropics_api() -> None:
    [call] = calls(in_order(RUNS.read(OLDEST))).values()
    assert [(one.status, one.output_text) for one in call.results] == [("success", "package main")]


def test_a_message_has_the_time_that_its_version_writes() -> None:
    message: dict[str, Any] = {
        "role": "user",
        "content": [{"type": "text", "text": "Hi", "startTime": 2000}],
        "messageId": "a1",
    }
    told = [message, message | {"meta": {"sentAt": 3000}, "messageId": 2}]
    told.append(message | {"createdAt": "1970-01-01T00:00:04Z", "messageId": 3})
    found = in_order(fold(json.dumps({"id": "T-1", "created": 1000, "messages": told}).encode()))
    assert [one.created_at and one.created_at.timestamp() for one in found] == [2, 3, 4]
    assert [one.id for one in found] == ["T-1.a1", "T-1.2", "T-1.3"]


def test_of_a_thread_that_is_cut_off_the_complete_messages_are_read() -> None:
    [source] = RUNS.sources(TOUR)
    data = RUNS.log_of(source)
    found = fold(data[: data.index(b'"toolu_edit1"')])
    assert [blocks(message)[0][0] for message in in_order(found)] == ["text", "thinking", "text"]
    assert len(found.diagnostics) == 1


def test_every_message_is_accounted_for() -> None:
    """R-S34: the thread itself is an event."""
    counts = RUNS.read(TOUR).counts
    assert (counts.messages, counts.results, counts.events) == (7, 4, 1)


def test_a_thread_is_listed_and_written_back(tmp_path: Path) -> None:
    """R-S1"""
    with RUNS.stored(TOUR, tmp_path) as store:
        [session] = store.sessions(SessionFilter()).items
        assert (session.title, session.git_branch) == ("Read the notes", "main")
        assert (session.cwd, session.agent_version) == ("/home/dev/work", "0.0.1766000000")
    [(name, data)] = RUNS.restored(TOUR, tmp_path).items()
    assert data == (RUNS.folder / TOUR / "threads" / name).read_bytes()


def test_a_thread_is_known_by_its_content(tmp_path: Path) -> None:
    """R-S21: also one that `amp threads export` has written anywhere."""
    copy = tmp_path / "export.json"
    copy.write_bytes(RUNS.log_of(RUNS.sources(TOUR)[0]))
    found = detect(copy)
    assert found.source is not None
    assert (found.agent, found.source.session_id) == ("amp", f"amp:{THREAD}")
    copy.write_bytes(b'{"id": "T-1", "messages": []}')
    assert detect(copy).agent is None


def test_a_thread_is_continued_by_its_id() -> None:
    assert AGENT.command is not None
    assert resume_command(AGENT.command, THREAD) == ["amp", "threads", "continue", THREAD]


def test_every_tool_is_on_the_page() -> None:
    """R-S23"""
    rows = FormatPage("amp").rows("### Tools")
    tools = {tool: named(kind)[0] for cell, kind in rows for tool in named(cell)}
    assert tools == {name: kind.value for name, kind in TOOL_KINDS.items()}
