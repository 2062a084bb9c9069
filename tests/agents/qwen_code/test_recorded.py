"""Recorded runs become what the script and the requests say that happened."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.claude_files import Gathered
from support.qwen_files import AGENT, DATA, calls_of, read, recorded, sources
from turnlog.agents import detect
from turnlog.agents.base import SourceKind
from turnlog.agents.changes import ANSWERED_BY
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    Fate,
    FilePart,
    InterruptEvent,
    Message,
    Origin,
    ReasoningPart,
    TextPart,
    ToolCallPart,
)
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

TOUR = "0.24.4/tour"
CASES = sorted(str(folder.relative_to(DATA)) for folder in DATA.glob("*/*"))


def script(case: str, *names: str) -> list[dict[str, Any]]:
    """What the model was told to answer, in order."""
    return [turn for name in names for turn in json.loads((DATA / case / f"{name}.script.json").read_text())["main"]]


def answers(found: Gathered) -> list[Message]:
    """Answers of the conversation, without those outside of it."""
    placed = {key[1]: place for key, place in found.placements.items()}
    said = [each for each in found.messages.values() if each.role == "assistant"]
    return [each for each in said if placed[each.id].fate is Fate.ACTIVE]


def blocks(message: Message) -> Iterator[tuple[str, Any]]:
    for part in message.parts:
        if isinstance(part, ReasoningPart):
            yield "thinking", part.text
        elif isinstance(part, TextPart):
            yield "text", part.text
        elif isinstance(part, ToolCallPart):
            yield "tool", (part.tool_name, part.tool_call_id, part.input_value())


def test_a_tour_has_the_parts_of_the_script_in_their_order() -> None:
    """R-C5, R-K1"""
    wanted = [
        [
            (block["type"], (block["name"], block["id"], block["input"]) if "name" in block else block["text"])
            for block in turn["blocks"]
        ]
        for turn in script(TOUR, "01main", "02resume")
    ]
    assert [list(blocks(message)) for message in answers(recorded(TOUR))] == wanted


@pytest.mark.parametrize("case", [TOUR, "0.7.1/tour"])
def test_tokens_are_those_of_the_script_in_disjoint_buckets(case: str) -> None:
    """R-C5: the log's prompt includes what was cached, and its candidates include the thoughts."""
    wanted = [turn["usage"] for turn in script(TOUR, "01main", "02resume")]
    found = [message.usage for message in answers(recorded(case))]
    assert [
        (usage.input, usage.cache_read, (usage.output or 0) + (usage.reasoning or 0), usage.reasoning)
        for usage in found
        if usage is not None
    ] == [(one["in"], one["cached"], one["out"], one.get("reasoning", 0)) for one in wanted]


def test_a_tour_is_what_the_last_request_held() -> None:
    """The request after the resume: each prompt, answer, call and result that was sent, in its order."""
    request = json.loads((DATA / TOUR / "request.json").read_text())["messages"]
    sent: list[tuple[str, Any]] = []
    for message in request:
        if message["role"] == "assistant":
            calls = [(call["id"], call["function"]["name"]) for call in message.get("tool_calls", ())]
            sent.append(("assistant", (message["content"] or "", calls)))
        elif message["role"] == "tool":
            sent.append(("tool", (message["tool_call_id"], "".join(part["text"] for part in message["content"]))))
    found = recorded(TOUR)
    told: list[tuple[str, Any]] = []
    for message in answers(found)[:-1]:
        text = "".join(part.text for part in message.parts if isinstance(part, TextPart))
        told.append(("assistant", (text, [(call.tool_call_id, call.tool_name) for call in calls_of(message)])))
        told += [("tool", (call.tool_call_id, call.results[0].output_text)) for call in calls_of(message)]
    assert told == sent


def test_a_failed_command_has_its_status_exit_code_and_duration() -> None:
    """R-C8"""
    [call] = [
        call for message in answers(recorded(TOUR)) for call in calls_of(message) if call.tool_call_id == "call_fail1"
    ]
    [result] = call.results
    assert (result.status, result.exit_code, result.duration_ms) == ("error", 3, 537)
    assert "No such file" in (result.error_text or "")


def test_a_failed_command_of_an_old_version_succeeded_for_the_scheduler() -> None:
    found = [call for message in answers(recorded("0.7.1/tour")) for call in calls_of(message)]
    result = next(call for call in found if call.tool_call_id == "call_fail1").results[0]
    assert (result.status, result.exit_code) == ("success", 3)


def test_a_call_outside_of_the_conversation_is_a_sidecar_with_its_tokens() -> None:
    """Nothing but telemetry tells of the call that collected memories."""
    found = recorded(TOUR)
    [side] = [key[1] for key, place in found.placements.items() if place.fate is Fate.SIDECAR]
    message = found.messages[side]
    assert message.usage is not None
    assert (message.usage.input, message.usage.output, message.model) == (100, 20, "mock-model")
    assert message.metadata == {"qwen-code": {"side_call": "managed-auto-memory-extractor"}}
    assert not any(place.parent_id == side for place in found.placements.values())


def test_calls_of_a_subagent_without_a_log_are_no_messages() -> None:
    """0.7.1 keeps no log of a subagent, but its tokens were used."""
    found = recorded("0.7.1/subagent")
    [side] = [found.messages[key[1]] for key, place in found.placements.items() if place.fate is Fate.SIDECAR]
    assert side.metadata["qwen-code"] == {"side_call": "general-purpose"}
    assert side.usage is not None
    assert side.usage.input == 100
    # What was reported is the whole response of the API, which is no text to show.
    assert side.parts == ()


@pytest.mark.parametrize("case", ["0.24.4/subagent", "0.21.2/subagent"])
def test_a_subagent_has_a_session_that_its_call_names(case: str) -> None:
    """R-C10"""
    found = recorded(case)
    [link] = found.links.values()
    assert link.kind == "subagent"
    assert not link.inferred
    [spawn] = [call for message in answers(found) for call in calls_of(message) if call.tool_name == "agent"]
    assert link.tool_call_id == spawn.tool_call_id
    inside = [found.messages[key[1]] for key in found.placements if key[0] == link.child_session_id]
    assert [message.origin for message in inside] == [Origin.SUBAGENT_PROMPT, None, None]
    # An answer of a subagent is two records: its texts with the tokens, then its calls.
    assert [kind for kind, _ in blocks(inside[1])] == ["thinking", "text", "tool"]
    # No record of the log names the model, only the file next to it.
    assert found.sessions[link.child_session_id].metadata[ANSWERED_BY] == "mock-model"
    assert not any(place.fate is Fate.SIDECAR for place in found.placements.values())


def test_a_log_of_a_subagent_alone_names_its_session_and_infers_its_parent() -> None:
    [source] = [source for source in sources("0.24.4/subagent") if source.kind is SourceKind.SUBAGENT]
    [link] = read([source]).links.values()
    assert link.inferred
    assert link.child_session_id == f"{link.parent_session_id}.general-purpose-call_mock9523f9f4bcd34762"


@pytest.mark.parametrize("case", ["0.24.4/interrupt", "0.7.1/interrupt"])
def test_a_stopped_command_is_aborted_and_not_failed(case: str) -> None:
    found = recorded(case)
    [call] = [call for message in found.messages.values() for call in calls_of(message)]
    assert [result.status for result in call.results] == ["aborted"]
    assert any(isinstance(change.event, InterruptEvent) for change in found.events.values())


def test_a_failed_request_is_an_error_with_its_status() -> None:
    [event] = [
        change.event for change in recorded("0.24.4/error").events.values() if isinstance(change.event, ErrorEvent)
    ]
    assert (event.error_text, event.status) == ("400 bad request here", 400)


def test_an_image_is_a_file_and_what_was_inserted_is_no_title() -> None:
    found = recorded("0.7.1/image")
    prompt = next(message for message in found.messages.values() if message.origin is Origin.PROMPT)
    [image] = [part for part in prompt.parts if isinstance(part, FilePart)]
    assert image.media_type == "image/png"
    assert (image.data or b"").startswith(b"\x89PNG")
    [change] = found.sessions.values()
    assert change.titles == {"prompt": "Look at @dot.png and write a file."}


def test_the_name_that_the_user_gave_wins(tmp_path: Path) -> None:
    sync(tmp_path / "store.db", roots=[DATA / "0.24.4/title"], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        [session] = store.sessions(SessionFilter()).items
        assert (session.title, session.title_source) == ("My title", "custom")
        # Each call of the model is reported once, those outside of the conversation too.
        [source] = sources("0.24.4/title")
        assert session.usage.calls == Path(source.path).read_bytes().count(b'"qwen-code.api_response"') == 9


def test_a_fork_shares_its_messages_and_is_billed_for_its_own(tmp_path: Path) -> None:
    sync(tmp_path / "store.db", roots=[DATA / "0.24.4/fork"], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        found = {session.external_id: session for session in store.sessions(SessionFilter()).items}
        original = found["8a08c541-a446-403f-8b14-0ea23762b334"]
        fork = found["ce5b6e4d-baef-401e-97df-cbb55dc1d1fa"]
        assert [(one.kind, one.parent_session_id) for one in fork.relationships] == [("fork", original.id)]
        billed = [placed.membership.is_billed for placed in store.messages(fork.id)]
        shared = {placed.message.id for placed in store.messages(original.id)}
        own = [placed.message.id not in shared for placed in store.messages(fork.id)]
        assert billed == own


def test_a_compaction_leaves_the_summary_and_what_came_later(tmp_path: Path) -> None:
    sync(tmp_path / "store.db", roots=[DATA / "0.24.4/compaction"], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        [session] = store.sessions(SessionFilter()).items
        placed = list(store.messages(session.id))
        [event] = [event for event in store.events(session.id) if isinstance(event, CompactionEvent)]
    assert (event.trigger, event.tokens_before, event.tokens_after) == ("manual", 45000, 31458)
    assert [message.role for message in event.replacement] == ["user", "assistant"]
    summary = next(each for each in placed if each.message.id == event.summary_message_id)
    assert summary.message.origin is Origin.COMPACTION
    fates = {Fate.ACTIVE: 0, Fate.COMPACTED: 0, Fate.SIDECAR: 0}
    for each in placed:
        fates[each.membership.fate] += 1
        if each.membership.fate is Fate.COMPACTED:
            assert each.membership.position < summary.membership.position
    assert fates == {Fate.ACTIVE: 7, Fate.COMPACTED: 6, Fate.SIDECAR: 1}


def test_a_file_of_json_has_the_messages_and_tokens_of_its_run() -> None:
    found = recorded("0.1.4/files")
    tour = next(change for change in found.sessions.values() if "notes.txt" in change.titles.get("prompt", ""))
    messages = [found.messages[key[1]] for key in found.placements if key[0] == tour.session_id]
    assert [message.role for message in messages] == ["user", "assistant", "assistant", "assistant"]
    usage = [message.usage for message in messages[1:]]
    assert [(one.input, one.cache_read, one.output) for one in usage if one] == [
        (1200, 300, 45),
        (1300, 1200, 30),
        (1500, 1400, 60),
    ]
    # It drops thoughts, so that nobody knows how many tokens they had.
    assert found.diagnostics == []


@pytest.mark.parametrize("case", CASES)
def test_every_file_is_recognised_by_its_content_and_every_record_is_known(case: str, tmp_path: Path) -> None:
    """R-S21, R-C3, R-S34"""
    for source in sources(case):
        # A file of JSON without an answer looks like Gemini CLI's.
        if source.appendable or b'"qwen"' in Path(source.path).read_bytes():
            assert detect(Path(source.path)).agent == "qwen-code"
    summary = sync(tmp_path / "store.db", roots=[DATA / case], agents=[AGENT])
    assert summary.diagnostics == 0
    found = recorded(case)
    assert [change.event for change in found.events.values() if getattr(change.event, "known", True) is False] == []


@pytest.mark.parametrize("case", CASES)
def test_an_archived_home_is_restored_byte_for_byte(case: str, tmp_path: Path) -> None:
    """R-S1"""
    sync(tmp_path / "store.db", roots=[DATA / case], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        restored: dict[str, bytes] = {}
        for session in store.sessions(SessionFilter(subagents=True)).items:
            for file in store.restore(session.id, tmp_path / "restored"):
                restored[file.source] = file.path.read_bytes()
    assert restored == {source.path: Path(source.path).read_bytes() for source in sources(case)}


def test_a_file_of_json_without_an_answer_is_known_by_its_place(tmp_path: Path) -> None:
    """R-S21: Gemini CLI's look the same."""
    folder = tmp_path / ".qwen" / "tmp" / "0" / "chats"
    folder.mkdir(parents=True)
    [source] = [source for source in sources("0.1.4/files") if b'"qwen"' not in Path(source.path).read_bytes()]
    path = folder / "session-2026-11-23T20-46-3ae1c44d.json"
    path.write_bytes(Path(source.path).read_bytes())
    assert detect(path).agent == "qwen-code"
    assert detect(Path(source.path)).agent == "gemini-cli"


@pytest.mark.parametrize("first", ["half of it", "the log alone", "the facts alone"])
def test_the_model_of_a_subagent_is_the_same_in_any_order_of_files(first: str, tmp_path: Path) -> None:
    home = tmp_path / ".qwen"
    shutil.copytree(DATA / "0.24.4/subagent", home)
    [facts] = home.rglob("*.meta.json")
    log = facts.with_name(facts.name.replace(".meta.json", ".jsonl"))
    kept = {file: file.read_bytes() for file in (facts, log)}
    if first == "half of it":
        facts.write_bytes(kept[facts][: len(kept[facts]) // 2])
    else:
        (facts if first == "the log alone" else log).unlink()
    sync(tmp_path / "store.db", roots=[home], agents=[AGENT])
    for file, data in kept.items():
        file.write_bytes(data)
    sync(tmp_path / "store.db", roots=[home], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        [session] = store.sessions(SessionFilter(relationship="subagent")).items
        found = [one.message.model for one in store.messages(session.id) if one.message.role == "assistant"]
        assert found == ["mock-model", "mock-model"]
