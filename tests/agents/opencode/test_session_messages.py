"""Sessions of OpenCode's next generation, whose messages are rows of `session_message`: recorded runs of its server."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.claude_files import Gathered
from support.opencode_files import (
    AGENT,
    DATA,
    Rows,
    dump,
    log_of,
    read,
    read_rows,
    read_table_rows,
    sessions_in,
    write_database,
)
from turnlog.model import CompactionEvent, FilePart, Message, ReasoningPart, RecordEvent, TextPart, ToolCallPart

TOUR = DATA / "next" / "tour.jsonl"
STOPS = DATA / "next" / "stops.jsonl"
SESSION = "ses_next"
SESSION_ROW = {
    "id": SESSION,
    "project_id": "p",
    "version": "1.18.33",
    "time_created": 1_800_000_000_000,
    "time_updated": 1_800_000_000_000,
}

every_case = pytest.mark.parametrize("path", [TOUR, STOPS], ids=lambda path: path.stem)


def messages(gathered: Gathered) -> list[Message]:
    """In the order of their places."""
    places = {message_id: place.position for (_, message_id), place in gathered.placements.items()}
    return sorted(gathered.messages.values(), key=lambda message: places[message.id])


def made_up(tmp_path: Path, *data: dict[str, Any], **more: list[dict[str, Any]]) -> list[Message]:
    """What rows of these types and fields become, one a second."""
    rows: Rows = {
        "session": [SESSION_ROW],
        "session_message": [row(index, **fields) for index, fields in enumerate(data)],
        **more,
    }
    return messages(read_rows(rows, tmp_path))


def row(index: int, type: str, **fields: Any) -> dict[str, Any]:  # the column's name
    created = 1_800_000_000_000 + index * 1000
    return {
        "id": f"msg_{created * 4096 % 2**48:012x}00",
        "session_id": SESSION,
        "type": type,
        "seq": index,
        "time_created": created,
        "time_updated": created,
        "data": json.dumps({"time": {"created": created}, **fields}),
    }


@every_case
def test_every_row_is_accounted_for_and_understood(path: Path, tmp_path: Path) -> None:
    """R-S34, R-C3"""
    rows = read_table_rows(path)
    gathered = read_rows(rows, tmp_path)
    assert gathered.diagnostics == []
    assert gathered.counts.total == sum(log_of(source).count(b"\n") for source in sessions_in(tmp_path))
    events = [change.event for change in gathered.events.values()]
    assert [event for event in events if isinstance(event, RecordEvent) and not event.known] == []
    found = [event for event in events if isinstance(event, RecordEvent) and event.kind.startswith("session.next.")]
    assert found == []
    said = [row for row in rows["session_message"] if not row["type"].endswith("-switched")]
    assert [message.id for message in messages(gathered)] == [row["id"] for row in said]


def test_messages_are_in_order(tmp_path: Path) -> None:
    """R-C4, R-C5, R-C7"""
    found = messages(read_rows(read_table_rows(TOUR), tmp_path))
    assert [message.role for message in found].count("user") == 6
    first = found[1]
    assert [part.type for part in first.parts] == ["reasoning", "text", "tool-call"]
    reasoning, text, _ = first.parts
    assert isinstance(reasoning, ReasoningPart)
    assert (reasoning.text, reasoning.duration_ms) == ("The user wants a tour. First run echo.", 7)
    assert isinstance(text, TextPart)
    assert text.text == "I'll start with a shell command."
    assert (first.model, first.stop_reason, first.completed_at) == (
        *("mock-1", "tool_use"),
        datetime(2026, 11, 21, 18, 30, 30, 465000, UTC),
    )
    usage = first.usage
    assert usage is not None
    assert (usage.input, usage.output, usage.reasoning, usage.cache_read) == (1200, 34, 30, 0)


def test_turns_and_steps_are_counted(tmp_path: Path) -> None:
    gathered = read_rows(read_table_rows(TOUR), tmp_path)
    places = [gathered.placements["opencode:ses_e00a03f7cffeuR9tU4HKYTRf6r", m.id] for m in messages(gathered)]
    assert [place.turn for place in places if place.step is None] == [1, 2, 3, 4, 5, 6]
    assert [place.step for place in places if place.turn == 1] == [None, *range(1, 11)]


def test_calls_have_their_inputs_outputs_and_ends(tmp_path: Path) -> None:
    """R-C8, R-C9"""
    calls = {call.tool_call_id: call for call in read_rows(read_table_rows(TOUR), tmp_path).calls()}
    failed, unknown, stopped = calls["call_m_fail1"], calls["call_m_unknown"], calls["call_i1"]
    assert failed.input_value() == {"command": "echo oops >&2; exit 3", "description": "Fail on purpose"}
    assert (failed.output_text, failed.results[0].exit_code) == ("oops\n\nCommand exited with code 3.", 3)
    assert failed.results[0].duration_ms == 1064
    assert (unknown.tool_name, unknown.state, unknown.results[0].error_text) == (
        *("no_such_tool", "output-error", "Unknown tool: no_such_tool"),
    )
    assert stopped.state == "aborted"
    assert calls["call_m_big"].results[0].spilled_to == "tool_1ff601820001yjIjI5d9gz2l2g"


def test_a_call_that_was_refused_and_one_that_waits(tmp_path: Path) -> None:
    found = read_rows(read_table_rows(STOPS), tmp_path)
    assert {call.tool_call_id: str(call.state) for call in found.calls()} == {
        "call_d1": "aborted",
        "call_d2": "input-available",
    }


def test_a_prompt_keeps_its_files(tmp_path: Path) -> None:
    found = messages(read_rows(read_table_rows(STOPS), tmp_path))
    (prompt,) = [message for message in found if len(message.parts) == 2 and message.role == "user"]
    text, file = prompt.parts
    assert isinstance(text, TextPart)
    assert isinstance(file, FilePart)
    assert (text.text, file.media_type, file.filename) == ("Look at this", "image/png", "pic.png")
    assert file.data is not None
    assert file.data.startswith(b"\x89PNG")


def test_the_facts_of_a_tool_are_the_structured_result(tmp_path: Path) -> None:
    write_database(read_table_rows(TOUR), tmp_path / "opencode.db")
    (source,) = sessions_in(tmp_path)
    line = next(
        line for line in log_of(source).splitlines() if b"call_m_fail1" in line and b'"table":"message"' in line
    )
    found = AGENT.structured_result(line, "call_m_fail1")
    assert found is not None
    assert msgspec.json.decode(found) == {"exit": 3, "truncated": False}


@every_case
def test_rows_are_given_back_to_their_table(path: Path, tmp_path: Path) -> None:
    """R-S34"""
    write_database(read_table_rows(path), tmp_path / "opencode.db")
    (source,) = sessions_in(tmp_path)
    AGENT.restore_rows(source, [log_of(source)], tmp_path / "back")
    assert set(dump(tmp_path / "back" / "opencode.db")) == set(dump(tmp_path / "opencode.db"))


def test_a_session_that_was_not_begun_with_such_rows_has_its_messages_once(tmp_path: Path) -> None:
    created = 1_800_000_000_000
    older = {"id": "msg_1", "session_id": SESSION, "time_created": created, "time_updated": created}
    data = {"role": "user", "time": {"created": created}}
    part = {**older, "id": "prt_1", "message_id": "msg_1", "data": json.dumps({"type": "text", "text": "Hi"})}
    found = made_up(
        tmp_path, {"type": "user", "text": "Hi"}, message=[{**older, "data": json.dumps(data)}], part=[part]
    )
    assert [message.id for message in found] == [f"{SESSION}:msg_1"]


def test_injected_context_is_no_prompt(tmp_path: Path) -> None:
    """R-C4, R-K7"""
    found = made_up(
        tmp_path,
        {"type": "system", "text": "Rules"},
        {"type": "user", "text": "Hi", "agents": [{"name": "plan"}]},
        {"type": "synthetic", "sessionID": SESSION, "text": "Note"},
        {"type": "shell", "callID": "call_1", "command": "ls", "output": "a\n"},
    )
    assert [(message.role, message.origin) for message in found] == [
        *(("developer", "harness"), ("user", "prompt"), ("developer", "harness"), ("user", "shell")),
    ]
    assert [part.type for part in found[1].parts] == ["text", "data"]
    shown = found[3].parts[1]
    assert isinstance(shown, TextPart)
    assert shown.text == "ls\na"


def test_a_compaction_has_its_summary(tmp_path: Path) -> None:
    rows: Rows = {
        "session": [SESSION_ROW],
        "session_message": [
            row(0, "user", text="Hi"),
            row(1, "compaction", reason="auto", summary="They said hi.", recent="Hi"),
        ],
    }
    gathered = read_rows(rows, tmp_path)
    (event,) = [change.event for change in gathered.events.values() if isinstance(change.event, CompactionEvent)]
    prompt, summary = messages(gathered)
    assert (event.trigger, event.summary_message_id) == ("auto", summary.id)
    assert summary.origin == "compaction"
    assert [part.text for part in summary.parts if isinstance(part, TextPart)] == ["They said hi.", "Hi"]
    assert gathered.placements[f"opencode:{SESSION}", prompt.id].position < event.position


def test_a_prompt_that_waited_has_the_position_at_which_it_entered(tmp_path: Path) -> None:
    """Its row is written then, and tells when it was sent."""
    model = {"id": "m", "providerID": "p"}
    waited = row(1, "user", text="Later")
    waited["time_updated"] += 1500
    rows: Rows = {
        "session": [SESSION_ROW],
        "session_message": [
            row(0, "user", text="Hi"),
            waited,
            row(2, "assistant", agent="build", model=model, content=[{"type": "text", "id": "0", "text": "Hello."}]),
        ],
    }
    found = messages(read_rows(rows, tmp_path))
    assert [message.role for message in found] == ["user", "assistant", "user"]
    assert found[2].created_at == datetime.fromtimestamp(1_800_000_001, UTC)


def test_calls_under_way_show_what_is_known_of_them(tmp_path: Path) -> None:
    model = {"id": "m", "providerID": "anthropic", "variant": "high"}
    content: list[dict[str, Any]] = [
        {"type": "tool", "id": "c1", "name": "bash", "state": {"status": "pending", "input": '{"comm'}, "time": {}},
        {
            "type": "tool",
            "id": "c2",
            "name": "web_search",
            "provider": {"executed": True, "metadata": {"anthropic": {"x": 1}}},
            "state": {"status": "running", "input": {"q": 1}, "structured": {}, "content": []},
            "time": {},
        },
        {"type": "news"},
    ]
    (answer,) = made_up(tmp_path, {"type": "assistant", "agent": "build", "model": model, "content": content})
    pending, running, unknown = answer.parts
    assert isinstance(pending, ToolCallPart)
    assert isinstance(running, ToolCallPart)
    assert (pending.state, pending.input_text) == ("input-streaming", '{"comm')
    assert (running.state, running.input_value(), running.provider_executed) == ("input-available", {"q": 1}, True)
    assert running.provider is not None
    assert running.provider.opaque == {"x": 1}
    assert unknown.type == "unknown"
    assert answer.metadata == {"opencode": {"agent": "build", "variant": "high"}}


def test_a_result_without_text_has_the_structured_result(tmp_path: Path) -> None:
    """R-C8: as the model was told, in a recorded run."""
    state: dict[str, Any] = {
        "status": "completed",
        "input": {},
        "content": [],
        "structured": {"name": "notes.txt", "content": "a\n"},
    }
    call: dict[str, Any] = {"type": "tool", "id": "c1", "name": "read", "state": state, "time": {}}
    model = {"id": "m", "providerID": "p"}
    (answer,) = made_up(tmp_path, {"type": "assistant", "agent": "build", "model": model, "content": [call]})
    (part,) = answer.parts
    assert isinstance(part, ToolCallPart)
    assert part.output_text == '{"name":"notes.txt","content":"a\\n"}'


def test_an_unreadable_row_becomes_a_diagnostic(tmp_path: Path) -> None:
    broken = row(0, "user", text="Hi")
    broken["data"] = "no JSON"
    rows: Rows = {
        "session": [SESSION_ROW],
        "session_message": [broken],
    }
    write_database(rows, tmp_path / "opencode.db")
    gathered = read(tmp_path)
    assert [found.reason for found in gathered.diagnostics] != []
    assert gathered.messages == {}


def test_ids_that_are_no_text_are_read_as_the_others(tmp_path: Path) -> None:
    """Rows older than their session are looked for in others, in the order of their ids."""
    early = [{**row(-1, "user", text=text), "id": identity} for text, identity in (("One", 5), ("Two", "msg_a"))]
    found = messages(read_rows({"session": [SESSION_ROW], "session_message": early}, tmp_path))
    assert sorted(part.text for message in found for part in message.parts if isinstance(part, TextPart)) == [
        "One",
        "Two",
    ]
