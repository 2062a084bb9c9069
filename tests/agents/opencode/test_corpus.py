"""On all recorded rows, in every form that OpenCode has: nothing is lost, nothing unknown, tokens are right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.claude_files import Gathered, calls_of
from support.exact_json import exact
from support.opencode_files import (
    AGENT,
    CASES,
    DATA,
    changes_of,
    log_of,
    read,
    read_rows,
    recorded,
    sessions_in,
    write_export,
    write_project_storage,
    write_storage,
)
from turnlog.agents.base import Source
from turnlog.agents.changes import LineCounts
from turnlog.model import Message, ReasoningPart, RecordEvent, TextPart, ToolCallPart, UnknownPart

NAMES = [str(case.relative_to(DATA)) for case in CASES]
TOURS = [name for name in NAMES if "/basic-" in name]

every_case = pytest.mark.parametrize("name", NAMES)


def said(gathered: Gathered) -> dict[str, Any]:
    """What messages say, and where they stand, without the records that it was read from."""
    found: dict[str, Any] = {}
    for message in gathered.messages.values():
        plain = {name: getattr(message, name) for name in Message.__struct_fields__ if name != "updated_at"}
        found[message.id] = json.loads(msgspec.json.encode(plain))
    for (session, message_id), place in gathered.placements.items():
        found[f"{session} {message_id}"] = (place.position, place.turn, place.step, place.parent_id, place.fate)
    return found


@every_case
def test_every_line_is_accounted_for_and_understood(name: str, tmp_path: Path) -> None:
    """R-S34, R-C3"""
    gathered = read_rows(recorded(name), tmp_path)
    lines = sum(log_of(source).count(b"\n") for source in sessions_in(tmp_path))
    assert sum(getattr(gathered.counts, field) for field in LineCounts.__struct_fields__) == lines
    assert gathered.diagnostics == []
    parts = [part for message in gathered.messages.values() for part in message.parts]
    assert [part for part in parts if isinstance(part, UnknownPart)] == []
    events = [change.event for change in gathered.events.values()]
    assert [event for event in events if isinstance(event, RecordEvent) and not event.known] == []


@every_case
def test_every_message_and_part_is_there(name: str, tmp_path: Path) -> None:
    """R-C3, R-C4"""
    rows = recorded(name)
    gathered = read_rows(rows, tmp_path)
    changes = [change for source in sessions_in(tmp_path) for change in changes_of(source).messages]
    assert len(changes) == len(rows["message"])
    wanted = [json.loads(row["data"]) for row in rows["part"]]
    calls = {part["callID"] for part in wanted if part["type"] == "tool"}
    assert {call.tool_call_id for call in gathered.calls()} == calls
    texts = {part["text"] for part in wanted if part["type"] in ("text", "reasoning")}
    parts = [part for message in gathered.messages.values() for part in message.parts]
    found = {part.text for part in parts if isinstance(part, TextPart | ReasoningPart)}
    assert found == texts


@every_case
@pytest.mark.parametrize("write", [write_storage, write_project_storage])
def test_all_storages_give_the_same_history(name: str, write: Any, tmp_path: Path) -> None:
    """R-C13"""
    rows = {table: rows for table, rows in recorded(name).items() if not table.startswith("event")}
    database = read_rows(rows, tmp_path / "database")
    storage = read(write(rows, tmp_path / "storage"))
    assert said(storage) == said(database)
    assert set(storage.links) == set(database.links)


@every_case
def test_an_export_gives_the_same_history(name: str, tmp_path: Path) -> None:
    """R-C13"""
    rows = recorded(name)
    database = read_rows(rows, tmp_path)
    for row in rows["session"]:
        if "(fork #" in row["title"]:
            continue  # an export knows no other session that its messages could come from
        path = write_export(rows, row["id"], tmp_path / "export.json")
        detection = AGENT.detect(path, path.read_bytes())
        assert (detection.agent, detection.version) == ("opencode", row["version"])
        assert detection.source is not None
        changes = AGENT.fold(detection.source).feed(path.read_bytes(), 0)
        # An export knows no other session, so it says which ids OpenCode has not made, and counts in that session only.
        unsure = "handwritten" in name
        assert {found.severity for found in changes.diagnostics} == ({"note"} if unsure else set())
        by_key = {message_id.rpartition(":")[2]: message for message_id, message in database.messages.items()}
        for change in changes.messages:
            message_id = change.message.id
            assert message_id.startswith(f"{row['id']}-") == unsure
            stored = by_key[message_id.rpartition(":")[2]] if unsure else database.messages[message_id]
            assert [str(part.type) for part in change.message.parts] == [str(part.type) for part in stored.parts]
            assert (change.message.usage, change.message.cost) == (stored.usage, stored.cost)


@every_case
def test_calls_that_were_left_have_a_result(name: str, tmp_path: Path) -> None:
    gathered = read_rows(recorded(name), tmp_path)
    assert [call.tool_call_id for call in gathered.calls() if not call.results] == []


@pytest.mark.parametrize("name", [name for name in NAMES if "handwritten" not in name])
def test_the_totals_of_a_session_are_those_that_opencode_counted(name: str, tmp_path: Path) -> None:
    """R-C5: each bucket, of each session's own messages. An import does not count what it brings."""
    rows = recorded(name)
    read_rows(rows, tmp_path)
    for source in sessions_in(tmp_path):
        (row,) = [row for row in rows["session"] if source.session_id == f"opencode:{row['id']}"]
        if "tokens_input" not in row:
            continue
        found = totals(source)
        for bucket in ("input", "output", "reasoning", "cache_read", "cache_write"):
            assert found[bucket] == row[f"tokens_{bucket}"], bucket


def totals(source: Source) -> dict[str, int]:
    usages = [change.message.usage for change in changes_of(source).messages]
    buckets = ("input", "output", "reasoning", "cache_read", "cache_write")
    return {name: sum(getattr(usage, name) or 0 for usage in usages if usage) for name in buckets}


@pytest.mark.parametrize("name", TOURS)
def test_steps_are_those_of_the_script(name: str, tmp_path: Path) -> None:
    """R-C4, R-C5: the order of parts, inputs and tokens that the model server sent."""
    gathered = read_rows(recorded(name), tmp_path)
    session = min(gathered.sessions.values(), key=lambda change: str(change.first_at)).session_id
    answers = [message for message in gathered.in_order(session) if message.role == "assistant"]
    script: list[dict[str, Any]] = []
    for path in sorted((DATA / name).glob("*.scenario.json")):
        if path.name[:1] in "12":
            script += json.loads(path.read_text())["main"]
    assert len(script) >= 9
    for turn, answer in zip(script, answers, strict=False):
        kinds = {"thinking": "reasoning", "text": "text", "tool": "tool-call"}
        parts = [part for part in answer.parts if part.type in kinds.values()]
        assert [part.type for part in parts] == [kinds[block["type"]] for block in turn["blocks"]]
        wanted = [block for block in turn["blocks"] if block["type"] == "tool"]
        assert [call.tool_name for call in calls_of(answer)] == [block["name"] for block in wanted]
        for call, block in zip(calls_of(answer), wanted, strict=True):
            if not call.metadata:  # of a call that could not be made, OpenCode keeps the name only
                assert call.input_value() == block["input"]
        assert answer.usage is not None
        assert (answer.usage.input, answer.usage.cache_read) == (turn["usage"]["in"], turn["usage"].get("cached", 0))


def test_a_result_comes_after_its_call_and_before_the_next_answer(tmp_path: Path) -> None:
    read_rows(recorded("1.18.33", "basic-chat"), tmp_path)
    for source in sessions_in(tmp_path):
        changes = changes_of(source).messages
        following = [*(change.placement.position for change in changes[1:]), 1 << 53]
        for change, end in zip(changes, following, strict=True):
            for offset, length, what in change.placement.records:
                if isinstance(what, str):
                    assert length == 0
                    assert change.placement.position < offset < end


def test_structured_results_come_from_the_line(tmp_path: Path) -> None:
    read_rows(recorded("1.18.33", "subagent"), tmp_path)
    for source in sessions_in(tmp_path):
        log = log_of(source)
        for change in changes_of(source).messages:
            (offset, length, _), *_ = change.placement.records
            for part in change.message.parts:
                if isinstance(part, ToolCallPart):
                    found = AGENT.structured_result(log[offset : offset + length], part.tool_call_id)
                    assert found is not None
                    assert bytes(found) == exact(part.results[0].structured)
