"""What `codex exec --json` printed: every line read, a conversation by itself, and nothing beside the thread's log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.codex_files import AGENT, DATA, THREAD
from support.printed_streams import (
    calls,
    check_adds_nothing_beside_its_log,
    check_every_line_is_accounted_for,
    check_is_recognised,
    give,
    messages,
    read,
    unknown_kinds,
)
from turnlog.model import ErrorEvent, FilePart, RunMetadataEvent, TextPart
from turnlog.store import open_store
from turnlog.sync.syncer import sync

STREAMS = sorted((DATA / "streams").glob("*.jsonl"))


def stream(tmp_path: Path, *records: dict[str, Any] | bytes) -> Path:
    path = tmp_path / "stream.jsonl"
    start: list[dict[str, Any] | bytes] = [{"type": "thread.started", "thread_id": THREAD}, {"type": "turn.started"}]
    lines = [record if isinstance(record, bytes) else json.dumps(record).encode() for record in [*start, *records]]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def item(step: str, kind: str, identity: str = "item_0", **fields: Any) -> dict[str, Any]:
    return {"type": f"item.{step}", "item": {"id": identity, "type": kind, **fields}}


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_every_line_is_accounted_for_in_any_split(path: Path) -> None:
    """R-S34, R-S43"""
    check_every_line_is_accounted_for(path)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_stream_is_recognised_by_its_content(path: Path) -> None:
    """R-S21"""
    check_is_recognised(path, "codex")


def test_a_stream_alone_shows_the_conversation() -> None:
    found, _ = read(DATA / "streams" / "openai.jsonl")
    shown = [[part.type for part in message.parts] for message in messages(found)]
    assert shown[0] == ["reasoning", "text", "tool-call"]
    assert shown[-1] == ["reasoning", "text"]
    failed = next(call for call in calls(found) if call.state == "output-error")
    assert (failed.tool_name, failed.results[0].exit_code, failed.output_text) == ("command_execution", 3, "oops\n")
    assert failed.input_value() == {"command": "/bin/bash -lc 'echo oops >&2; exit 3'"}
    (search,) = [call for call in calls(found) if call.tool_name == "web_search"]
    assert search.provider_executed
    assert search.input_value()["query"] == "mock query"
    assert [message.usage for message in messages(found) if message.usage is not None] == []
    errors = [change.event for change in found.events.values() if isinstance(change.event, ErrorEvent)]
    assert len(errors) == 5
    facts = [change.event for change in found.events.values() if isinstance(change.event, RunMetadataEvent)]
    assert facts[-1].data is not msgspec.UNSET
    assert msgspec.json.decode(facts[-1].data)["usage"]["input_tokens"] == 15880


def test_results_of_servers_keep_text_files_and_failures() -> None:
    found, _ = read(DATA / "streams" / "mcp.jsonl")
    picture, boom = calls(found)
    assert picture.tool_name == "mcp__mock__picture"
    content = picture.results[0].content
    assert [part.type for part in content] == ["text", "file", "data"]
    assert isinstance(content[1], FilePart)
    assert content[1].media_type == "image/png"
    assert (boom.state, boom.results[0].error_text) == ("output-error", "boom failed")


def test_the_end_of_a_turn_repeats_its_error() -> None:
    found, _ = read(DATA / "streams" / "error.jsonl")
    assert len([change for change in found.events.values() if isinstance(change.event, ErrorEvent)]) == 1
    assert found.counts.duplicates == 1


def test_a_call_that_was_cut_off_stays_open() -> None:
    found, _ = read(DATA / "streams" / "interrupt.jsonl")
    (call,) = calls(found)
    assert (call.state, call.results) == ("input-available", ())


def test_a_spawned_agent_is_linked() -> None:
    found, _ = read(DATA / "streams" / "subagent-gpt-5.5.jsonl")
    assert {(link.kind, link.child_session_id) for link in found.links.values()} == {
        ("subagent", "codex:01a1fbdc-46b3-7dd2-8a05-5f53ab61b726")
    }


def test_each_change_of_a_plan_is_a_call(tmp_path: Path) -> None:
    first, second = [{"text": "look", "completed": False}], [{"text": "look", "completed": True}]
    path = stream(
        tmp_path,
        item("started", "todo_list", items=first),
        item("updated", "todo_list", items=second),
        item("completed", "todo_list", items=second),
    )
    found, _ = read(path)
    assert [call.input_value() for call in calls(found)] == [{"items": first}, {"items": second}]
    assert found.counts.duplicates == 1


def test_output_so_far_is_preliminary(tmp_path: Path) -> None:
    path = stream(
        tmp_path,
        item("started", "command_execution", command="make", aggregated_output="", status="in_progress"),
        item("updated", "command_execution", command="make", aggregated_output="a\n", status="in_progress"),
        item("completed", "command_execution", command="make", aggregated_output="a\nb\n", status="declined"),
    )
    for by_line in (False, True):
        (call,) = calls(read(path, by_line=by_line)[0])
        assert [result.preliminary for result in call.results].count(True) == 1
        assert (call.state, call.output_text) == ("output-denied", "a\nb\n")


def test_the_end_of_a_call_has_its_status(tmp_path: Path) -> None:
    states = {
        **{"completed": "output-available", "failed": "output-error", "declined": "output-denied"},
        **{"interrupted": "aborted", "in_progress": "input-available"},
    }
    for status, state in states.items():
        path = stream(tmp_path, item("completed", "command_execution", command="make", status=status))
        assert [call.state for call in calls(read(path)[0])] == [state]


def test_runs_in_one_stream_stay_apart(tmp_path: Path) -> None:
    once = stream(tmp_path, item("completed", "agent_message", text="hello"))
    once.write_bytes(once.read_bytes() * 2)
    found, _ = read(once)
    assert [message.parts[0] for message in messages(found)] == [
        TextPart(id=f"{message.id}.0", text="hello") for message in messages(found)
    ]
    assert len(found.messages) == 2


def test_damaged_and_unknown_lines_are_reported(tmp_path: Path) -> None:
    """R-S34"""
    path = stream(
        tmp_path, b'{"type": "item.comp', {"type": "new"}, item("completed", "newer"), item("completed", "reasoning")
    )
    found, _ = read(path)
    assert (found.counts.total, found.counts.unreadable, len(found.diagnostics)) == (6, 1, 1)
    assert unknown_kinds(found) == [
        "new",
        "item/newer",
    ]


def test_the_item_is_the_structured_result() -> None:
    path = DATA / "streams" / "basic.jsonl"
    (call, *_) = calls(read(path)[0])
    record = next(line for line in path.read_bytes().splitlines() if b'"exit_code": 0' in line)
    found = AGENT.structured_result(record, call.tool_call_id)
    assert found is not None
    assert msgspec.json.decode(found) == json.loads(record)["item"]


@pytest.mark.parametrize("scenario", ["basic", "mcp", "subagent-gpt-5.5"])
@pytest.mark.parametrize("log_first", [True, False])
def test_a_stream_beside_its_log_adds_nothing(tmp_path: Path, scenario: str, log_first: bool) -> None:
    home, path = DATA / "scenarios" / scenario, DATA / "streams" / f"{scenario}.jsonl"
    check_adds_nothing_beside_its_log(tmp_path, home, path, log_first=log_first)


def test_a_fork_shares_nothing_that_only_a_stream_has_of_its_parent(tmp_path: Path) -> None:
    """The fork's log, then the parent's stream, then the parent's log: as if there had been no stream."""
    parent_log, fork_log = sorted((DATA / "scenarios" / "basic" / "sessions").rglob("*.jsonl"))
    home, alone, store = tmp_path / "home", tmp_path / "alone.db", tmp_path / "data" / "turnlog.db"
    fork, parent = (home / path.relative_to(DATA / "scenarios" / "basic") for path in (fork_log, parent_log))
    fork.parent.mkdir(parents=True)
    fork.write_bytes(fork_log.read_bytes())
    sync(store, roots=[home])
    give(store, DATA / "streams" / "basic.jsonl")
    fork_id = f"codex:{fork.stem[-36:]}"
    with open_store(store) as opened:
        assert {placed.message.id.partition(":")[0] for placed in opened.messages(fork_id)} == {fork.stem[-36:]}
    parent.write_bytes(parent_log.read_bytes())
    for path in (store, alone):
        sync(path, roots=[home])
    with open_store(alone) as one, open_store(store) as other:
        for known in one.sessions().items:
            found = other.session(known.id)
            assert (found.counts, found.usage, found.cost) == (known.counts, known.usage, known.cost)
            assert list(other.messages(known.id)) == list(one.messages(known.id))
