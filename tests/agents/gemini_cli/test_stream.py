"""What `gemini -o stream-json` printed: every line read, a conversation by itself, and nothing beside the log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.gemini_files import DATA, SESSION
from support.printed_streams import (
    calls,
    check_adds_nothing_beside_its_log,
    check_every_line_is_accounted_for,
    check_is_recognised,
    messages,
    read,
)
from turnlog.model import ErrorEvent, RecordEvent, RunMetadataEvent, TextPart

STREAMS = sorted((DATA / "streams").glob("*.jsonl"))
TIME = "2026-11-21T10:00:00.000Z"


def stream(tmp_path: Path, *records: dict[str, Any] | bytes) -> Path:
    path = tmp_path / "stream.jsonl"
    every = [{"type": "init", "session_id": SESSION, "model": "gemini-3.8-flash"}, *records]
    lines = [r if isinstance(r, bytes) else json.dumps({**r, "timestamp": TIME}).encode() for r in every]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def words(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text, **fields}


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_every_line_is_accounted_for_in_any_split(path: Path) -> None:
    """R-S34, R-S43"""
    check_every_line_is_accounted_for(path)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_stream_is_recognised_by_its_content(path: Path) -> None:
    """R-S21"""
    check_is_recognised(path, "gemini-cli")


def test_a_stream_alone_shows_the_conversation() -> None:
    """An answer is what stands between the results of the one before and its own."""
    found, _ = read(DATA / "streams" / "hooks.jsonl")
    prompt, *answers = messages(found)
    assert (prompt.role, prompt.origin, prompt.parts[0]) == (
        *("user", "prompt"),
        TextPart(id=f"{prompt.id}.0", text="Run with hooks"),
    )
    assert [[part.type for part in answer.parts] for answer in answers] == [
        ["text", "tool-call"],
        ["tool-call"],
        ["tool-call"],
        ["text"],
    ]
    assert answers[-1].parts == (
        TextPart(
            id=f"{answers[-1].id}.0",
            text="Done: **hello**, an edit, a new file, two failures and two parallel calls. ✨",
        ),
    )
    assert {(answer.requested_model, answer.usage) for answer in answers} == {("gemini-2.5-pro", None)}
    (session,) = found.sessions.values()
    assert session.titles == {"prompt": "Run with hooks"}
    assert session.position < 0
    facts = [change.event for change in found.events.values() if isinstance(change.event, RunMetadataEvent)]
    assert facts[-1].data is not msgspec.UNSET
    assert msgspec.json.decode(facts[-1].data)["stats"]["total_tokens"] == 5896


def test_calls_have_their_inputs_and_results() -> None:
    found, _ = read(DATA / "streams" / "mcp.jsonl")
    picture, boom, unknown = calls(found)
    assert picture.input_value() == {"q": "x"}
    assert picture.output_text.startswith("here is the picture")
    assert (boom.state, unknown.state) == ("output-error", "output-error")
    assert (unknown.results[0].error_text or "").startswith('Tool "picture" not found.')
    assert [len(message.parts) for message in messages(found)] == [1, 2, 1, 1]


def test_a_run_that_failed_says_why() -> None:
    found, _ = read(DATA / "streams" / "error.jsonl")
    (error,) = [change.event for change in found.events.values() if isinstance(change.event, ErrorEvent)]
    assert error.error_text.startswith("[API Error: ")


def test_a_call_that_was_cut_off_stays_open() -> None:
    found, _ = read(DATA / "streams" / "interrupt.jsonl")
    (call,) = calls(found)
    assert (call.state, call.results) == ("input-available", ())


def test_a_text_is_unfinished_until_something_follows(tmp_path: Path) -> None:
    open_, _ = read(stream(tmp_path, words("a", delta=True), words("b", delta=True)))
    (message,) = messages(open_)
    assert message.parts == (TextPart(id=f"{message.id}.0", text="ab", state="streaming"),)
    closed, _ = read(stream(tmp_path, words("a", delta=True), words("whole"), {"type": "result", "status": "success"}))
    (message,) = messages(closed)
    assert message.parts == (
        TextPart(id=f"{message.id}.0", text="a"),
        TextPart(id=f"{message.id}.1", text="whole"),
    )


def test_a_warning_is_an_event(tmp_path: Path) -> None:
    found, _ = read(stream(tmp_path, {"type": "error", "severity": "warning", "message": "Loop detected"}))
    (error,) = [change.event for change in found.events.values() if isinstance(change.event, ErrorEvent)]
    assert (error.kind, error.error_text) == ("warning", "Loop detected")


def test_runs_in_one_stream_stay_apart(tmp_path: Path) -> None:
    path = stream(tmp_path, words("hello"))
    path.write_bytes(path.read_bytes() * 2)
    found, _ = read(path)
    assert [message.parts[0] for message in messages(found)] == [
        TextPart(id=f"{message.id}.0", text="hello") for message in messages(found)
    ]
    assert len(found.messages) == 2


def test_damaged_and_unknown_lines_become_diagnostics_and_events(tmp_path: Path) -> None:
    """R-S34"""
    path = stream(tmp_path, b'{"type": "tool_u', {"type": "new"}, {"type": "tool_result", "tool_id": "x"}, words("end"))
    found, _ = read(path)
    assert (found.counts.total, found.counts.unreadable, len(found.diagnostics)) == (5, 1, 1)
    events = [change.event for change in found.events.values()]
    assert [(event.kind, event.known) for event in events if isinstance(event, RecordEvent)] == [
        ("new", False),
        ("tool_result", True),
    ]


@pytest.mark.parametrize("scenario", ["hooks", "interrupt", "mcp", "subagent"])
@pytest.mark.parametrize("log_first", [True, False])
def test_a_stream_beside_its_log_adds_nothing(tmp_path: Path, scenario: str, log_first: bool) -> None:
    home, path = DATA / "scenarios" / scenario, DATA / "streams" / f"{scenario}.jsonl"
    check_adds_nothing_beside_its_log(tmp_path, home, path, log_first=log_first)
