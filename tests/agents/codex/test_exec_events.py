"""What `codex exec --json` printed up to 0.43: a conversation by itself, called by what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.codex_files import AGENT, DATA
from support.printed_streams import calls, messages, read, unknown_kinds
from turnlog.model import ErrorEvent, FilePart, InterruptEvent, RecordEvent, RunMetadataEvent, TextPart, ToolCallPart

STREAMS = DATA / "streams"
BASIC = [STREAMS / "events-0.20-basic.jsonl", STREAMS / "events-0.39-basic.jsonl"]
SETTINGS = {"workdir": "/w", "sandbox": "read-only", "model": "gpt-5", "approval": "never"}


def run(tmp_path: Path, *events: dict[str, Any], prompt: str = "Hi") -> Path:
    path = tmp_path / "run.jsonl"
    lines = [SETTINGS, {"prompt": prompt}, *({"id": "0", "msg": event} for event in events)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("path", BASIC, ids=lambda path: path.stem)
def test_a_stream_shows_prompts_and_assistant_messages(path: Path) -> None:
    """R-C4, R-C7: a message for each response, with its thoughts, words and calls in order."""
    found, _ = read(path)
    prompt, *answers = messages(found)
    assert (prompt.role, prompt.origin) == ("user", "prompt")
    assert prompt.parts == (TextPart(id=f"{prompt.id}.0", text="Give me a tour of the tools, please"),)
    assert [part.type for part in answers[0].parts] == ["reasoning", "text", "tool-call"]
    assert [part.type for part in answers[-1].parts] == ["reasoning", "text"]
    called = [[part.tool_call_id for part in answer.parts if isinstance(part, ToolCallPart)] for answer in answers]
    assert ["call_m_par1", "call_m_par2"] in called
    assert {answer.requested_model for answer in answers} == {"gpt-5"}
    assert {answer.usage for answer in answers} == {None}


@pytest.mark.parametrize("path", BASIC, ids=lambda path: path.stem)
def test_calls_have_their_inputs_and_results(path: Path) -> None:
    """R-C8"""
    found = {call.tool_call_id: call for call in calls(read(path)[0])}
    failed = found["call_m_fail1"]
    assert (failed.tool_name, failed.state) == ("exec_command", "output-error")
    assert (failed.results[0].exit_code, failed.output_text) == (3, "oops\n")
    assert failed.input_value()["command"] == ["bash", "-lc", "echo oops >&2; exit 3"]
    assert found["call_m_par2"].output_text == "two\ncafé 你好\n"
    patch = found["call_m_patch1"]
    assert (patch.tool_name, patch.state) == ("apply_patch", "output-available")
    assert set(patch.input_value()["changes"]) == {"/home/user/work/new.py", "/home/user/work/notes.txt"}
    (plan,) = [call for call in found.values() if call.tool_name == "update_plan"]
    assert (plan.state, plan.input_value()["plan"][0]["status"]) == ("output-available", "completed")


def test_settings_and_prompt_identify_the_session() -> None:
    """R-C6"""
    (session,) = read(BASIC[1])[0].sessions.values()
    assert session.session_id.startswith("codex:stream-")
    assert (session.cwd, session.titles) == ("/home/user/work", {"prompt": "Give me a tour of the tools, please"})
    assert session.position < 0


def test_the_tokens_of_each_response_are_events() -> None:
    """The thread's log has the same, and nothing tells which thread it is."""
    facts = [change.event for change in read(BASIC[1])[0].events.values()]
    tokens = [event for event in facts if isinstance(event, RunMetadataEvent) and event.kind == "event_msg/token_count"]
    assert len(tokens) == 11
    assert tokens[0].data is not msgspec.UNSET
    assert msgspec.json.decode(tokens[0].data)["info"]["last_token_usage"]["input_tokens"] == 1200


def test_runs_of_other_prompts_are_other_sessions(tmp_path: Path) -> None:
    said = {"type": "agent_message", "message": "hello"}
    ids: set[str] = set()
    for prompt in ("one", "two", "one"):
        path = run(tmp_path, said, prompt=prompt)
        ids |= set(read(path)[0].sessions)
    assert len(ids) == 2


def test_a_run_in_the_same_stream_is_another_session(tmp_path: Path) -> None:
    said = {"type": "agent_message", "message": "hello"}
    first, second = (run(tmp_path, said, prompt=prompt).read_bytes() for prompt in ("one", "two"))
    both = tmp_path / "both.jsonl"
    both.write_bytes(first + second)
    for by_line in (False, True):
        found, _ = read(both, by_line=by_line)
        assert len(found.sessions) == 2
        assert found.counts.total == 6


def test_a_call_that_was_cut_off_stays_open() -> None:
    (call,) = calls(read(STREAMS / "events-0.39-interrupt.jsonl")[0])
    assert (call.state, call.results) == ("input-available", ())


def test_failures_of_the_connection_are_errors() -> None:
    events = [change.event for change in read(STREAMS / "events-0.42-error.jsonl")[0].events.values()]
    errors = [event for event in events if isinstance(event, ErrorEvent)]
    assert len(errors) == 3
    assert errors[0].error_text.startswith("stream error: unexpected status 400")


def test_results_of_servers_keep_text_files_and_failures(tmp_path: Path) -> None:
    invocation = {"server": "mock", "tool": "picture", "arguments": {"q": "x"}}
    content = [{"type": "text", "text": "here"}, {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]
    events = [
        {"type": "mcp_tool_call_begin", "call_id": "c1", "invocation": invocation},
        {
            "type": "mcp_tool_call_end",
            "call_id": "c1",
            "invocation": invocation,
            "result": {"Ok": {"content": content}},
        },
        {"type": "mcp_tool_call_end", "call_id": "c2", "invocation": invocation, "result": {"Err": "no such tool"}},
        {
            "type": "mcp_tool_call_end",
            "call_id": "c3",
            "invocation": invocation,
            "result": {"Ok": {"content": content[:1], "isError": True}},
        },
    ]
    picture, missing, failed = calls(read(run(tmp_path, *events))[0])
    assert (picture.tool_name, picture.input_value(), picture.state) == (
        *("mcp__mock__picture", {"q": "x"}, "output-available"),
    )
    assert [part.type for part in picture.results[0].content] == ["text", "file"]
    assert isinstance(picture.results[0].content[1], FilePart)
    assert (missing.state, missing.results[0].error_text) == ("output-error", "no such tool")
    assert (failed.state, failed.results[0].error_text) == ("output-error", "here")


def test_an_interrupt_is_an_event_and_unknown_lines_are_kept(tmp_path: Path) -> None:
    """R-S34"""
    path = run(tmp_path, {"type": "turn_aborted", "reason": "interrupted"}, {"type": "news"}, {"type": "turn_diff"})
    found, _ = read(path)
    assert found.counts.total == 5
    events = [change.event for change in found.events.values()]
    assert [type(event) for event in events if not isinstance(event, RunMetadataEvent)] == [
        *(InterruptEvent, RecordEvent, RecordEvent),
    ]
    assert unknown_kinds(found) == ["event_msg/news"]


def test_the_event_is_the_structured_result() -> None:
    record = next(line for line in BASIC[1].read_bytes().splitlines() if b'"exit_code":3' in line)
    found = AGENT.structured_result(record, "call_m_fail1")
    assert found is not None
    assert msgspec.json.decode(found) == json.loads(record)["msg"]


def test_settings_of_another_shape_cost_only_themselves(tmp_path: Path) -> None:
    """R-S34"""
    path = run(tmp_path, {"type": "agent_message", "message": "hello"})
    path.write_text(path.read_text().replace('"gpt-5"', '["gpt-5"]'))
    found, _ = read(path)
    assert [message.requested_model for message in messages(found)] == [None, None]
    assert [diagnostic.json_path for diagnostic in found.diagnostics] == ["$.model"]
