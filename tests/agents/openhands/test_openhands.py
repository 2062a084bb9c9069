"""The conversations of OpenHands become what the script says that happened (R-C1)."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.claude_files import Gathered, gather
from support.format_page import FormatPage, named
from support.scripted import Recordings, answers, blocks, calls, in_order, in_pieces, scripted, tokens, used
from turnlog.agents import agent, detect
from turnlog.agents.base import Source
from turnlog.agents.commands import resume_command
from turnlog.agents.file_rows import FileRow
from turnlog.agents.openhands.contents import thought_parts, time_of
from turnlog.agents.openhands.fold import READERS
from turnlog.model import CompactionEvent, ErrorEvent, FilePart, Origin, ToolKind
from turnlog.model.codec import encode
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

AGENT = agent("openhands")
RUNS = Recordings(AGENT, Path(__file__).parents[2] / "data" / "openhands")
TOUR = "1.16.0/tour"


def fold(*events: dict[str, Any], state: dict[str, Any] | None = None) -> Gathered:
    """What a conversation of these events brings."""
    rows = [
        FileRow(path=f"events/event-{number:05}-x.json", text=json.dumps({"id": f"e{number}"} | event))
        for number, event in enumerate(events)
    ]
    if state is not None:
        rows.append(FileRow(path="base_state.json", text=json.dumps(state)))
    data = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
    source = Source(agent="openhands", path="/o/conversations/c/base_state.json", root="/o", session_id="openhands:c")
    return gather(AGENT.fold(source).feed(data, 0))


def said(source: str, *content: dict[str, Any], **fields: Any) -> dict[str, Any]:
    message = {"role": "user" if source == "user" else "assistant", "content": list(content)}
    return {
        "kind": "MessageEvent",
        "source": source,
        "timestamp": "2026-11-22T10:00:00",
        "llm_message": message,
    } | fields


def test_a_run_has_the_parts_and_tokens_of_the_script_in_their_order() -> None:
    """R-C5, R-K1: two calls at once are one answer. The text of thoughts is not kept, their tokens are."""
    found = answers(RUNS.read(TOUR))
    turns = [*RUNS.script("1.16.0/main"), *RUNS.script("1.16.0/resume")]
    assert [blocks(message) for message in found] == scripted(turns, without=frozenset({"thinking"}))
    assert used(found) == list(tokens(turns))
    assert {message.model for message in found} == {"openai/mock-model"}


def test_results_have_their_status_and_exit_code() -> None:
    """R-C8: `is_error` is false also for a command that failed."""
    found = RUNS.read(TOUR)
    results = {name: call.results for name, call in calls(in_order(found)).items()}
    assert {name: [(one.status, one.exit_code) for one in each] for name, each in results.items()} == {
        "call_read1": [("success", None)],
        "call_fail1": [("error", 3)],
        "call_par1": [("success", 0)],
        "call_par2": [("success", 0)],
    }
    assert [each[0].output_text for each in list(results.values())[2:]] == ["one", "two"]


def test_errors_have_their_words() -> None:
    found = calls(in_order(RUNS.read("1.16.0/errors")))
    [gone] = found["call_gone1"].results
    assert gone.status == "error"
    assert "Invalid `path` parameter" in (gone.error_text or "")
    assert found["call_edit1"].kind is ToolKind.EDIT
    [error] = [
        change.event for change in RUNS.read("1.16.0/failed").events.values() if isinstance(change.event, ErrorEvent)
    ]
    assert (error.kind, "mock bad request" in error.error_text) == ("LLMBadRequestError", True)


def test_a_killed_run_leaves_its_call_open() -> None:
    [call] = calls(in_order(RUNS.read("1.16.0/stopped"))).values()
    assert call.results == ()


def test_tokens_that_are_written_after_their_event_belong_to_it(tmp_path: Path) -> None:
    """A sync may see the event before the state, and the state before the event."""
    root = tmp_path / ".openhands"
    shutil.copytree(RUNS.folder / TOUR, root)
    [folder] = (root / "conversations").iterdir()
    late = sorted(folder.glob("events/*.json"))[-1]
    kept = late.read_bytes()
    late.unlink()
    sync(tmp_path / "store.db", roots=[root], agents=[AGENT])
    late.write_bytes(kept)
    sync(tmp_path / "store.db", roots=[root], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        [session] = store.sessions(SessionFilter()).items
        usage = session.usage
    assert (usage.usage.input, usage.usage.cache_read, usage.calls, usage.unknown_calls) == (7100, 5700, 5, 0)


@pytest.mark.parametrize("order", ["reversed", "first last", "a half first"])
def test_events_that_are_read_in_another_order_give_the_same_history(order: str, tmp_path: Path) -> None:
    """Turns, parents, parts and the title do not depend on which pass saw which file."""
    root = tmp_path / ".openhands"
    shutil.copytree(RUNS.folder / TOUR, root)
    whole = history(tmp_path / "whole.db", root)
    files = sorted(root.glob("conversations/*/events/*.json"))
    contents = {file: (file.read_bytes(), file.stat().st_mtime) for file in files}
    for file in files:
        file.unlink()
    first, *others = files
    found: list[Any] = []
    for file in files[::-1] if order == "reversed" else [*others, first]:
        data, modified = contents[file]
        if order == "a half first":
            file.write_bytes(data[: len(data) // 2])
            history(tmp_path / "parts.db", root)
        file.write_bytes(data)
        os.utime(file, (modified, modified))
        found = history(tmp_path / "parts.db", root)
    assert found == whole


def history(path: Path, root: Path) -> list[Any]:
    """What a store has of the only session below a root, after a sync."""
    sync(path, roots=[root], agents=[AGENT])
    with open_store(path) as store:
        [session] = store.sessions(SessionFilter()).items
        found = store.messages(session.id)
    placed = [(one.message, msgspec.structs.replace(one.membership, records=())) for one in found]
    return [session.title, session.counts, session.usage, placed]


def test_a_condensation_forgets_events_and_leaves_a_summary() -> None:
    found = fold(
        said("user", {"type": "text", "text": "Begin"}),
        said("agent", {"type": "text", "text": "Done"}, llm_response_id="r1"),
        {"kind": "Condensation", "forgotten_event_ids": ["e0"], "summary": "It began.", "llm_response_id": "r2"},
    )
    [event] = [change.event for change in found.events.values() if isinstance(change.event, CompactionEvent)]
    assert event.kept_message_ids == ("c.r1",)
    assert [blocks(message) for message in event.replacement] == [[("text", "It began.")]]


def test_a_condensation_that_ran_forgets_events_and_counts_its_tokens(tmp_path: Path) -> None:
    """The context was too long after five steps. The program asks for a summary, and goes on with it."""
    found = RUNS.read("1.16.0/condensation")
    turns = [turn for turn in RUNS.script("1.16.0/condensation") if "blocks" in turn]
    assert [blocks(message) for message in answers(found)] == scripted(turns, without=frozenset())
    assert used(answers(found)) == list(tokens(turns))
    [event] = [change.event for change in found.events.values() if isinstance(change.event, CompactionEvent)]
    assert [blocks(message) for message in event.replacement] == [[("text", "Summary: five steps were run.")]]
    with RUNS.stored("1.16.0/condensation", tmp_path) as store:
        [session] = store.sessions(SessionFilter()).items
        fates = [one.membership.fate for one in store.messages(session.id)]
        usage = session.usage
    # The first two events are always kept.
    assert fates == ["active", "active", *["compacted"] * 4, "active", "active"]
    everything = [turn["usage"] for turn in turns] + [{"in": 2000, "cached": 0, "out": 44}]
    assert (usage.usage.input, usage.usage.cache_read, usage.usage.output) == tuple(
        sum(each[name] for each in everything) for name in ("in", "cached", "out")
    )


@pytest.mark.parametrize("subagent_first", [True, False])
def test_a_subagent_has_its_own_conversation_and_counts_its_tokens_itself(subagent_first: bool, tmp_path: Path) -> None:
    """R-C10: its folder is inside that of its parent, whose state repeats its tokens. No record names the call."""
    root, store = tmp_path / ".openhands", tmp_path / "store.db"
    shutil.copytree(RUNS.folder / "1.16.0/subagent", root)
    [inside] = root.glob("conversations/*/subagents")
    above = inside.parent
    first, moved = (inside, above / "events") if subagent_first else (above / "events", inside)
    shutil.move(moved, tmp_path / "moved")
    sync(store, roots=[root], agents=[AGENT])
    assert first.is_dir()
    shutil.move(tmp_path / "moved", moved)
    sync(store, roots=[root], agents=[AGENT])
    with open_store(store) as opened:
        sessions = opened.sessions(SessionFilter(subagents=True)).items
        [child] = [session for session in sessions if "." in session.id]
        [parent] = [session for session in sessions if "." not in session.id]
        [link] = opened.relationships(child.id)
        said = [one.message for one in opened.messages(child.id)]
    script = json.loads((RUNS.folder / "1.16.0/subagent.script.json").read_text())
    assert said[0].origin is Origin.SUBAGENT_PROMPT
    assert [blocks(message) for message in said[1:]] == scripted(
        script["queues"][0]["turns"], without=frozenset({"thinking"})
    )
    assert (link.relationship.parent_session_id, link.relationship.parent_tool_call_id) == (parent.id, "call_task1")
    for session, turns in ((parent, script["main"]), (child, script["queues"][0]["turns"])):
        used_up = session.usage.usage
        assert (used_up.input, used_up.cache_read, used_up.output) == tuple(
            sum(turn["usage"][name] for turn in turns) for name in ("in", "cached", "out")
        )


def test_an_image_that_a_tool_showed_is_a_file() -> None:
    [result] = calls(in_order(RUNS.read("1.16.0/subagent")))["call_img1"].results
    assert [part.type for part in result.content] == ["text", "file"]


def test_tokens_of_other_uses_are_totals_with_their_task() -> None:
    counted = {"prompt_tokens": 90, "completion_tokens": 10, "response_id": "r2", "model": "m"}
    metrics = {"condenser": {"model_name": "m", "token_usages": [counted]}}
    found = fold(said("user", {"type": "text", "text": "Begin"}), state={"stats": {"usage_to_metrics": metrics}})
    [total] = found.sessions["openhands:c"].totals.values()
    assert (total.task, total.model, total.usage.input, total.calls) == ("condenser", "m", 90, 1)


def test_a_refusal_is_denied_and_an_image_is_a_file() -> None:
    call = {
        "kind": "ActionEvent",
        "source": "agent",
        "tool_name": "terminal",
        "tool_call_id": "c1",
        "llm_response_id": "r",
    }
    refused = {"kind": "UserRejectObservation", "action_id": "e1", "tool_call_id": "c1", "rejection_reason": "No"}
    image = {"type": "image", "image_urls": ["data:image/png;base64,iVBORw=="]}
    found = fold(said("user", image), call, refused)
    [file] = in_order(found)[0].parts
    assert isinstance(file, FilePart)
    assert file.data == b"\x89PNG"
    [result] = calls(in_order(found))["c1"].results
    assert (result.status, result.error_text) == ("denied", "No")


@pytest.mark.parametrize(("ahead", "hour"), [(3600, 9), (-18_000, 15), (20_700, 4)])
def test_the_zone_of_a_time_is_that_by_which_its_file_was_written(ahead: int, hour: int) -> None:
    written = datetime(2026, 11, 22, 10, tzinfo=UTC).timestamp() - ahead + 0.4
    found = time_of("2026-11-22T10:00:00", written)
    assert found is not None
    assert found.hour == hour
    # Of a file that was copied later the zone is unknown.
    assert time_of("2026-11-22T10:00:00", written + 333) == datetime(2026, 11, 22, 10, tzinfo=UTC)


def test_a_half_written_event_is_read_whole_afterwards(tmp_path: Path) -> None:
    """The program writes an event into its file in place."""
    root, store = tmp_path / ".openhands", tmp_path / "store.db"
    shutil.copytree(RUNS.folder / TOUR, root)
    [folder] = (root / "conversations").iterdir()
    files = {path: path.read_bytes() for path in sorted(folder.glob("events/*.json"))}
    for path in files:
        path.unlink()
    for path, data in files.items():
        for size in (len(data) // 2, len(data)):
            path.write_bytes(data[:size])
            sync(store, roots=[root], agents=[AGENT])
    found = answers(RUNS.read(TOUR))
    with open_store(store) as opened:
        [session] = opened.sessions(SessionFilter()).items
        read = [each.message for each in opened.messages(session.id) if each.message.role == "assistant"]
    assert [blocks(message) for message in read] == [blocks(message) for message in found]


@pytest.mark.parametrize("case", RUNS.cases)
def test_every_file_is_accounted_for_and_any_split_equals_the_whole(case: str) -> None:
    """R-S34, R-C3"""
    files = 0
    for source in RUNS.sources(case):
        data = RUNS.log_of(source)
        whole = gather(AGENT.fold(source).feed(data, 0))
        assert in_pieces(AGENT, source, data).as_json() == whole.as_json()
        assert whole.counts.total == data.count(b"\n")
        assert whole.diagnostics == []
        assert all(getattr(change.event, "known", True) for change in whole.events.values())
        files += whole.counts.total
    assert files == len([*(RUNS.folder / case).rglob("*.json")])


@pytest.mark.parametrize("case", RUNS.cases)
def test_an_archived_conversation_is_restored_byte_for_byte(case: str, tmp_path: Path) -> None:
    """R-S1"""
    with RUNS.stored(case, tmp_path) as store:
        for session in store.sessions(SessionFilter(subagents=True)).items:
            store.restore(session.id, tmp_path / "restored")
    assert files_in(tmp_path / "restored") == files_in(RUNS.folder / case)


def files_in(home: Path) -> dict[str, bytes]:
    return {os.fspath(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_a_conversation_without_its_state_is_read_without_tokens(home: Path, tmp_path: Path) -> None:
    """R-C7: the events are what happened; only the tokens are in the state."""
    shutil.copytree(RUNS.folder / TOUR, home / ".openhands")
    [state] = (home / ".openhands").rglob("base_state.json")
    state.unlink()
    store = tmp_path / "store.db"
    sync(store)
    with open_store(store) as opened:
        [session] = opened.sessions(SessionFilter()).items
        read = [each.message for each in opened.messages(session.id) if each.message.role == "assistant"]
    assert [blocks(message) for message in read] == [blocks(message) for message in answers(RUNS.read(TOUR))]
    assert [message.usage for message in read] == [None] * len(read)


@pytest.mark.parametrize("lost", [0, 20, 2000])
def test_what_was_said_of_a_damaged_state_goes_when_it_is_mended(lost: int, home: Path, tmp_path: Path) -> None:
    shutil.copytree(RUNS.folder / TOUR, home / ".openhands")
    [state] = (home / ".openhands").rglob("base_state.json")
    whole, store = state.read_bytes(), tmp_path / "store.db"
    states = (whole, b"{" + whole if lost == 0 else whole[:-lost], whole)
    said: list[int] = []
    used: list[object] = []
    for data in states:
        state.write_bytes(data)
        sync(store)
        with open_store(store) as opened:
            said.append(opened.diagnostics().total or 0)
            used += [session.usage for session in opened.sessions(SessionFilter()).items]
    assert said == [0, 1, 0]
    assert used == [used[0]] * 3


def test_a_conversation_is_known_by_its_state(tmp_path: Path) -> None:
    """R-S21"""
    [source] = RUNS.sources(TOUR)
    found = detect(Path(source.path))
    assert (found.agent, found.source and found.source.session_id) == ("openhands", source.session_id)
    moved = tmp_path / "state.json"
    moved.write_bytes(Path(source.path).read_bytes())
    assert detect(moved).agent == "openhands"


def test_a_variable_names_the_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(RUNS.folder / TOUR, home / "moved")
    monkeypatch.setenv("OPENHANDS_PERSISTENCE_DIR", os.fspath(home / "moved"))
    assert list(AGENT.roots()) == [home / "moved"]


def test_a_conversation_is_resumed_by_the_name_of_its_folder() -> None:
    assert AGENT.command is not None
    assert resume_command(AGENT.command, "18c1") == ["openhands", "--resume", "18c1"]


def test_every_kind_that_is_read_is_on_the_page() -> None:
    """R-S23"""
    kinds = [name for cell, _ in FormatPage("openhands").rows("## Events") for name in named(cell)]
    assert sorted(kinds) == sorted(READERS)


def test_a_thought_that_is_nested_too_deep_is_named_by_its_size() -> None:
    nested = "[" * 600 + "]" * 600
    (part,) = thought_parts({"reasoning_content": "Look.", "thinking_blocks": json.loads(nested)}, "m1", 0)
    assert msgspec.json.decode(encode(part))["provider"]["opaque"] == {"thinking_blocks": {"bytes": len(nested)}}
    (part,) = thought_parts({"thinking_blocks": [{"thinking": "Look."}]}, "m1", 0)
    assert msgspec.json.decode(encode(part))["provider"]["opaque"] == {"thinking_blocks": [{"thinking": "Look."}]}
