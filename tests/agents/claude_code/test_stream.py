"""What `claude -p --output-format stream-json` printed: every line read, and the same messages as in the log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.claude_files import AGENT, DATA, SESSION, Gathered
from turnlog.agents import detect
from turnlog.agents.base import Source, SourceKind
from turnlog.agents.claude_code.record_kinds import STREAM_FIELDS, STREAM_KINDS
from turnlog.model import CompactionEvent, ErrorEvent, Message, ReasoningPart, RecordEvent, TextPart, Usage
from turnlog.model.merge import merge_messages
from turnlog.model.usage import merge_usage

STREAMS = sorted((DATA / "streams").glob("*.jsonl"))


def source_at(path: Path) -> Source:
    found = detect(path).source
    assert found is not None
    return found


def read(path: Path, *, by_line: bool = False) -> Gathered:
    """What a stream brings, in one feed or in one for each line, the fold being put away between them."""
    gathered, state, offset = Gathered(), None, 0
    data = path.read_bytes()
    for piece in data.splitlines(keepends=True) if by_line else [data]:
        fold = AGENT.fold(source_at(path), state)
        gathered.add(fold.feed(piece, offset))
        state, offset = fold.state(), offset + len(piece)
    return gathered


def log_of(scenario: str) -> Gathered:
    gathered = Gathered()
    for source in AGENT.discover([DATA / "scenarios" / scenario]):
        gathered.add(AGENT.fold(source).feed(Path(source.path).read_bytes(), 0))
    return gathered


def stream(tmp_path: Path, *records: dict[str, Any]) -> Path:
    path = tmp_path / "stream.jsonl"
    path.write_text("".join(json.dumps({"session_id": "s", **record}) + "\n" for record in records))
    return path


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_every_line_is_accounted_for(path: Path) -> None:
    """R-S34: no line is lost, and no kind unknown."""
    gathered = read(path)
    assert gathered.counts.total == len(path.read_bytes().splitlines())
    assert gathered.diagnostics == []
    events = [change.event for change in gathered.events.values()]
    assert [event.kind for event in events if isinstance(event, RecordEvent) and not event.known] == []


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        ({"type": "system", "subtype": "ui_invalidate", "event": "ui.render"}, "system/ui_invalidate"),
        ({"type": "command_lifecycle", "command_uuid": "aaaaaaaa", "state": "queued"}, "command_lifecycle"),
    ],
)
def test_what_only_a_screen_or_a_host_wants_is_a_record(record: dict[str, Any], kind: str, tmp_path: Path) -> None:
    """Printed by 2.1.330; other lines have an object as their `event`."""
    found = read(stream(tmp_path, record))
    assert found.diagnostics == []
    (event,) = [change.event for change in found.events.values()]
    assert isinstance(event, RecordEvent)
    assert (event.kind, event.known) == (kind, True)


def test_a_custom_title_is_the_sessions(tmp_path: Path) -> None:
    """R-C6: `/rename`, since 2.1.330."""
    found = read(stream(tmp_path, {"type": "system", "subtype": "session_title_changed", "title": "Named"}))
    (session,) = found.sessions.values()
    assert session.titles == {"custom": "Named"}
    (event,) = [change.event for change in found.events.values()]
    assert isinstance(event, RecordEvent)
    assert event.known


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_line_by_line_equals_one_pass(path: Path) -> None:
    assert read(path, by_line=True).as_json() == read(path).as_json()


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_stream_is_recognised_by_its_content(path: Path) -> None:
    """R-S21"""
    detection = detect(path)
    assert (detection.agent, detection.version) == ("claude-code", "2.1.329")
    assert detection.source is not None
    assert detection.source.kind is SourceKind.STREAM


@pytest.mark.parametrize("path", [path for path in STREAMS if path.stem in ("basic", "interrupt", "subagent-sync")])
def test_a_logged_message_gains_only_what_its_log_left_out(path: Path) -> None:
    """R-S43: usage, order of blocks, states of calls and origins are those of the log."""
    log, streamed = log_of(path.stem), read(path)
    shared = log.messages.keys() & streamed.messages.keys()
    assert shared
    for message_id in shared:
        whole = merge_messages(log.messages[message_id], streamed.messages[message_id])
        assert without_durations(whole) == without_durations(log.messages[message_id])
    calls = {call.tool_call_id: call.state for call in log.calls()}
    assert {call.tool_call_id: calls[call.tool_call_id] for call in streamed.calls()} == {
        call.tool_call_id: call.state for call in streamed.calls()
    }


def without_durations(message: Message) -> Message:
    """Only some streams tell how long a thought took."""
    parts = tuple(
        msgspec.structs.replace(part, duration_ms=None) if isinstance(part, ReasoningPart) else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)


def test_partial_messages_have_the_final_counts_that_blocks_lack() -> None:
    log, streamed = log_of("basic"), read(DATA / "streams" / "basic.jsonl")
    answers = [message for message in streamed.messages.values() if message.role == "assistant"]
    assert len(answers) == 8
    for answer in answers:
        logged = log.messages[answer.id].usage
        assert answer.usage is not None
        assert logged is not None
        assert (answer.usage.output, answer.usage.exactness) == (logged.output, "exact")
        assert merge_usage(answer.usage, logged) == logged


def test_without_partial_messages_counts_are_lower_bounds() -> None:
    streamed = read(DATA / "streams" / "subagent-sync.jsonl")
    usages = [message.usage for message in streamed.messages.values() if message.usage is not None]
    assert {usage.exactness for usage in usages} == {"lower_bound"}


def test_the_cost_in_a_result_yields_to_that_of_the_log() -> None:
    streamed = read(DATA / "streams" / "basic.jsonl").sessions[f"claude-code:{SESSION}"]
    assert streamed.reported_cost == pytest.approx(0.022125)
    assert streamed.agent_version == "2.1.329"
    assert streamed.position < 0


def test_retries_and_compactions_are_events() -> None:
    errors = [change.event for change in read(DATA / "streams" / "retry.jsonl").events.values()]
    assert [(event.status, event.kind) for event in errors if isinstance(event, ErrorEvent)] != []
    events = [change.event for change in read(DATA / "streams" / "compact.jsonl").events.values()]
    (compaction,) = [event for event in events if isinstance(event, CompactionEvent)]
    assert (compaction.trigger, compaction.tokens_before, compaction.tokens_after) == ("manual", 2674, 2773)


def test_a_block_that_was_never_finished_is_kept(tmp_path: Path) -> None:
    start = {"type": "message_start", "message": {"id": "m", "model": "opus", "usage": {"input_tokens": 5}}}
    block = {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}
    pieces = [{"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": t}} for t in "ab"]
    path = stream(
        tmp_path,
        {"type": "system", "subtype": "init", "uuid": "u"},
        *({"type": "stream_event", "event": event, "uuid": "u"} for event in (start, block, *pieces)),
    )
    for by_line in (False, True):
        (message,) = read(path, by_line=by_line).messages.values()
        assert message.parts == (TextPart(id="m.1", text="ab", state="streaming"),)
        assert message.usage == Usage(input=5, exactness="lower_bound")


def test_prompts_that_were_fed_to_the_agent_are_read_too(tmp_path: Path) -> None:
    """`--input-format stream-json`: no line needs an id or a session."""
    path = tmp_path / "input.jsonl"
    record = {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "Say hello"}]}}
    path.write_text(json.dumps(record) + "\n")
    gathered = read(path)
    (message,) = gathered.messages.values()
    assert (message.origin, message.parts[0]) == ("prompt", TextPart(id=f"{message.id}.0", text="Say hello"))
    (session,) = gathered.sessions
    assert session.startswith("claude-code:stream-")


def test_an_unknown_kind_is_kept(tmp_path: Path) -> None:
    path = stream(tmp_path, {"type": "system", "subtype": "init", "uuid": "u"}, {"type": "system", "subtype": "new"})
    events = [change.event for change in read(path).events.values()]
    assert [event.kind for event in events if isinstance(event, RecordEvent) and not event.known] == ["system/new"]


def test_the_structured_result_is_found_in_a_stream() -> None:
    lines = (DATA / "streams" / "basic.jsonl").read_bytes().splitlines()
    record = next(line for line in lines if b'"tool_use_result":' in line)
    call = json.loads(record)["message"]["content"][0]["tool_use_id"]
    found = AGENT.structured_result(record, call)
    assert found is not None
    assert msgspec.json.decode(found) == json.loads(record)["tool_use_result"]


def test_fields_are_kept_only_of_known_kinds() -> None:
    assert set(STREAM_FIELDS) <= set(STREAM_KINDS)


def test_a_stream_without_ids_of_its_lines(tmp_path: Path) -> None:
    """R-S21: up to 1.0 no line has a `uuid`; a message is known by its own id, a result by its call's."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.txt"}
    path = stream(
        tmp_path,
        {"type": "system", "subtype": "init", "cwd": "/w", "model": "sonnet"},
        {"type": "assistant", "message": {"id": "msg_1", "role": "assistant", "content": [call]}},
        {"type": "user", "message": {"role": "user", "content": [result]}},
        {
            "type": "assistant",
            "message": {"id": "msg_2", "role": "assistant", "content": [{"type": "text", "text": "x"}]},
        },
        {"type": "result", "subtype": "success", "result": "x"},
    )
    for by_line in (False, True):
        gathered = read(path, by_line=by_line)
        assert list(gathered.messages) == ["msg_1", "msg_2"]
        assert [found.output_text for found in gathered.calls()] == ["a.txt"]
        assert gathered.counts.total == 5


def test_the_end_of_a_run_alone_has_its_last_words(tmp_path: Path) -> None:
    """`--output-format json`: one object, whose text and tokens stand nowhere else."""
    end: dict[str, Any] = {
        "result": "All done.",
        "usage": {"input_tokens": 15, "output_tokens": 11},
        "modelUsage": {"opus": {}},
    }
    gathered = read(stream(tmp_path, {"type": "result", "subtype": "success", "uuid": "u1", "is_error": False, **end}))
    (message,) = gathered.messages.values()
    assert (message.role, message.model, message.parts) == (
        "assistant",
        "opus",
        (TextPart(id="u1.result.0", text="All done."),),
    )
    assert message.usage == Usage(input=15, output=11)
    assert gathered.counts.total == 1


def test_the_end_of_a_printed_run_repeats_nothing(tmp_path: Path) -> None:
    said = {"id": "msg_1", "role": "assistant", "content": [{"type": "text", "text": "x"}]}
    path = stream(
        tmp_path, {"type": "assistant", "message": said}, {"type": "result", "subtype": "success", "result": "x"}
    )
    assert list(read(path).messages) == ["msg_1"]
