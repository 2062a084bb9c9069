"""Recorded runs become what the script and the requests say that happened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.claude_files import Gathered, gather
from support.droid_files import AGENT, DATA, calls_of, read, recorded, sources
from turnlog.agents import detect
from turnlog.agents.base import SourceKind
from turnlog.agents.changes import Changes
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    Fate,
    FilePart,
    Message,
    Origin,
    ReasoningPart,
    TextPart,
    ToolCallPart,
)
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.sync.syncer import sync

TOUR = "0.215.0/tour"
MAIN, FORK = "afe1b103-dc2f-4006-ba34-6b90e4b2e5f2", "ea51b0ec-9a3b-47d7-8ff1-38392864c93d"
CASES = sorted(str(folder.relative_to(DATA)) for folder in DATA.glob("*/*"))


def of_session(case: str, session: str) -> Gathered:
    return read(source for source in sources(case) if source.session_id == f"droid:{session}")


def script(case: str, *names: str) -> list[dict[str, Any]]:
    """What the model was told to answer, in order."""
    return [turn for name in names for turn in json.loads((DATA / case / f"{name}.script.json").read_text())["main"]]


def answers(found: Gathered) -> list[Message]:
    """The answers of the conversation."""
    return [each for each in found.messages.values() if each.role == "assistant"]


def blocks(message: Message) -> Iterator[tuple[str, Any]]:
    for part in message.parts:
        if isinstance(part, ReasoningPart):
            yield "thinking", part.text
        elif isinstance(part, TextPart):
            yield "text", part.text
        elif isinstance(part, ToolCallPart):
            yield "tool", (part.tool_name, part.tool_call_id, part.input_value())


def wanted_blocks(turns: list[dict[str, Any]]) -> list[list[tuple[str, Any]]]:
    return [
        [
            (block["type"], (block["name"], block["id"], block["input"]) if "name" in block else block["text"])
            for block in turn["blocks"]
        ]
        for turn in turns
    ]


def synced(case: str, folder: Path) -> Store:
    sync(folder / "store.db", roots=[DATA / case], agents=[AGENT])
    return open_store(folder / "store.db")


@pytest.mark.parametrize(
    ("case", "session", "names"),
    [
        (TOUR, MAIN, ("01main", "02resume")),
        ("0.117.0/tour", "764e1d4d-3e41-4f37-a078-89f02c9156cf", ("01main",)),
        ("0.215.0/messages-api", "04ecd7fd-f35d-4529-81e7-5765d452bdfa", ("02anthropic",)),
        ("0.215.0/image", "fb83d0f4-792a-4ec5-af05-57bb8a706f97", ("03image",)),
    ],
)
def test_a_run_has_the_parts_of_the_script_in_their_order(case: str, session: str, names: tuple[str, ...]) -> None:
    """R-C5, R-K1"""
    found = answers(of_session(case, session))
    # The program's folders were renamed in the log and in the script alike.
    assert [list(blocks(message)) for message in found] == wanted_blocks(script(case, *names))


def test_a_fork_is_what_its_last_request_held() -> None:
    """Each prompt, answer, call and result that was sent, in its order."""
    request = json.loads((DATA / TOUR / "request.json").read_text())["messages"]
    sent: list[tuple[str, Any]] = []
    for message in request:
        content = message.get("content")
        text = content if isinstance(content, str) else "".join(part["text"] for part in content or ())
        if message["role"] == "assistant":
            sent.append(("assistant", (text, [call["id"] for call in message.get("tool_calls", ())])))
        elif message["role"] != "system":
            sent.append((message["role"], text))
    told: list[tuple[str, Any]] = []
    for message in of_session(TOUR, FORK).messages.values():
        text = "".join(part.text for part in message.parts if isinstance(part, TextPart))
        if message.role != "assistant":
            told.append(("user", text))
            continue
        told.append(("assistant", (text, [call.tool_call_id for call in calls_of(message)])))
        told += [("tool", call.results[0].output_text) for call in calls_of(message)]
    # The request asks for the answer that is the last message.
    assert told[:-1] == sent


@pytest.mark.parametrize(
    ("case", "session", "names"),
    [
        (TOUR, MAIN, ("01main", "02resume")),
        (TOUR, FORK, ("03fork",)),
        ("0.117.0/tour", "764e1d4d-3e41-4f37-a078-89f02c9156cf", ("01main",)),
        ("0.215.0/messages-api", "04ecd7fd-f35d-4529-81e7-5765d452bdfa", ("02anthropic",)),
    ],
)
def test_the_totals_of_a_session_are_those_of_the_script(case: str, session: str, names: tuple[str, ...]) -> None:
    """R-C5: a fork has only its own; the cached tokens are not in the input."""
    used = [turn["usage"] for turn in script(case, *names)]
    [total] = of_session(case, session).sessions[f"droid:{session}"].totals.values()
    usage = total.usage
    assert (usage.input, usage.cache_read, usage.cache_write, (usage.output or 0) + (usage.reasoning or 0)) == tuple(
        sum(each.get(name, 0) for each in used) for name in ("in", "cached", "cache_write", "out")
    )
    assert total.model is not None


def test_a_fork_shares_its_messages_and_is_billed_for_its_own(tmp_path: Path) -> None:
    with synced(TOUR, tmp_path) as store:
        original, fork = store.session(f"droid:{MAIN}"), store.session(f"droid:{FORK}")
        assert [(one.kind, one.parent_session_id, one.parent_message_id) for one in fork.relationships] == [
            ("fork", original.id, "08a7b708-e17b-41e0-9811-756d32a60d64")
        ]
        shared = {placed.message.id for placed in store.messages(original.id)}
        placed = list(store.messages(fork.id))
        assert [each.membership.is_billed for each in placed] == [each.message.id not in shared for each in placed]
        assert [session.usage.usage.total for session in (original, fork)] == [7100 + 5700 + 205, 1700 + 1500 + 15]
        # The tokens of each answer are unknown, and in the totals.
        used = [session.usage for session in (original, fork)]
        assert [(each.calls, each.unknown_calls, each.covered_calls) for each in used] == [(5, 0, 5), (1, 0, 1)]
        assert [each.usage.exactness for each in used] == ["estimated"] * 2
        assert "in no sum" not in " ".join(store.usage().missing)


def test_results_have_their_status_exit_code_and_text() -> None:
    """R-C8"""
    found = of_session(TOUR, MAIN)
    calls = {call.tool_call_id: call.results for message in answers(found) for call in calls_of(message)}
    assert {name: [(one.status, one.exit_code) for one in results] for name, results in calls.items()} == {
        "call_read1": [("success", None)],
        "call_fail1": [("error", 3)],
        "call_par1": [("success", 0)],
        "call_par2": [("success", 0)],
    }
    assert calls["call_read1"][0].output_text == "alpha\nbeta\ngamma\n"


def test_a_thought_has_what_its_provider_wants_back() -> None:
    """R-K6"""
    [thought] = [
        part
        for message in answers(recorded("0.215.0/messages-api"))
        for part in message.parts
        if isinstance(part, ReasoningPart)
    ]
    assert thought.provider is not None
    assert (thought.provider.name, thought.provider.opaque) == ("anthropic", {"signature": "c2ln"})
    assert thought.duration_ms == 0


def test_an_edit_has_its_changed_lines_as_structured_result() -> None:
    log = next(source for source in sources("0.215.0/messages-api") if source.kind is SourceKind.SESSION)
    [record] = [line for line in Path(log.path).read_bytes().splitlines() if b'"tool_use_id":"toolu_2"' in line]
    structured = AGENT.structured_result(record, "toolu_2")
    assert structured is not None
    assert json.loads(bytes(structured))["linesAdded"] == 1
    assert AGENT.structured_result(record, "toolu_3") is None


def test_an_image_in_a_result_is_a_file() -> None:
    [call] = [call for message in answers(recorded("0.215.0/image")) for call in calls_of(message)]
    _, image = call.results[0].content
    assert isinstance(image, FilePart)
    assert image.media_type == "image/png"
    assert (image.data or b"").startswith(b"\x89PNG")


def test_a_refused_command_is_denied_and_its_note_is_no_model_call(tmp_path: Path) -> None:
    found = recorded("0.215.0/denied")
    [call] = [call for message in answers(found) for call in calls_of(message)]
    assert [result.status for result in call.results] == ["denied"]
    assert [message.origin for message in answers(found)] == [None, Origin.HARNESS]


@pytest.mark.parametrize("case", ["0.215.0/failed", "0.117.0/failed"])
def test_a_failed_request_is_one_error_with_its_status(case: str) -> None:
    events = [change.event for change in recorded(case).events.values()]
    [error] = [event for event in events if isinstance(event, ErrorEvent)]
    assert error.status == 400
    assert error.error_text.startswith("BYOK Error: 400 mock bad request")


def test_a_subagent_is_a_session_that_its_call_names(tmp_path: Path) -> None:
    """R-C10"""
    found = recorded("0.117.0/subagent")
    [link] = found.links.values()
    assert (link.kind, link.tool_call_id, link.inferred) == ("subagent", "call_task1", False)
    inside = [found.messages[key[1]] for key in found.placements if key[0] == link.child_session_id]
    origins = [message.origin for message in inside]
    assert origins == [Origin.HARNESS, Origin.SUBAGENT_PROMPT, None, None]
    assert found.sessions[link.child_session_id].titles["generated"] == "worker: count lines"
    with synced("0.117.0/subagent", tmp_path) as store:
        [parent] = store.sessions(SessionFilter()).items
        [child] = store.children(parent.id)
        assert (parent.usage.usage.input, child.usage.usage.input) == (200, 230)


def test_a_compaction_keeps_what_came_after_its_anchor(tmp_path: Path) -> None:
    with synced("0.215.0/compaction", tmp_path) as store:
        session = store.session("droid:55aa150a-c5c2-414f-8f06-dd150a493bb0")
        placed = list(store.messages(session.id))
        [event] = [event for event in store.events(session.id) if isinstance(event, CompactionEvent)]
    assert (event.trigger, event.tokens_after) == ("llm_summary", 11)
    [gone] = [each.message for each in placed if each.membership.fate is Fate.COMPACTED]
    assert gone.id == "context-2a56d23f-3870-47d2-adf7-1764b8ec7a75"
    summary = next(each for each in placed if each.message.id == event.summary_message_id)
    assert summary.message.origin is Origin.COMPACTION
    assert summary.membership.fate is Fate.ACTIVE
    assert len(event.kept_message_ids) == 3
    # The model's call for the summary is in the totals, 900 and 33 tokens by the script.
    assert session.usage.usage.input == 500 + 300_000 + 900 + 600 + 1700


def test_an_answer_that_was_stopped_leaves_the_prompt() -> None:
    found = of_session("0.215.0/stopped", "74b2ce13-4d7d-47f2-95fa-8d5808c51cbd")
    assert [message.origin for message in found.messages.values()] == [Origin.HARNESS, Origin.PROMPT]


@pytest.mark.parametrize("case", CASES)
def test_every_file_is_recognised_by_its_content_and_every_record_is_known(case: str, tmp_path: Path) -> None:
    """R-S21, R-C3, R-S34"""
    for source in sources(case):
        copy = tmp_path / f"{Path(source.path).stem}.jsonl"
        copy.write_bytes(Path(source.path).read_bytes())
        assert detect(Path(source.path)).agent == "droid"
        if source.kind is SourceKind.SESSION:
            found = detect(copy)
            assert (found.agent, found.version) == ("droid", "2")
            assert found.source is not None
            assert found.source.session_id == source.session_id
    summary = sync(tmp_path / "store.db", roots=[DATA / case], agents=[AGENT])
    assert summary.diagnostics == 0
    known = [getattr(change.event, "known", True) for change in recorded(case).events.values()]
    assert all(known)


@pytest.mark.parametrize("case", CASES)
def test_any_split_equals_the_whole(case: str) -> None:
    """R-S34: also where a fold is put away and taken up again."""
    for source in sources(case):
        if not source.appendable:
            continue
        data = Path(source.path).read_bytes()
        whole = gather(AGENT.fold(source).feed(data, 0))
        pieces: list[Changes] = []
        state, offset = None, 0
        for line in data.splitlines(keepends=True):
            fold = AGENT.fold(source, state)
            pieces.append(fold.feed(line, offset))
            state, offset = fold.state(), offset + len(line)
        apart = gather(*pieces)
        assert apart.messages == whole.messages
        assert apart.events == whole.events
        assert apart.links == whole.links
        assert apart.counts.total == whole.counts.total == data.count(b"\n")


@pytest.mark.parametrize("case", CASES)
def test_an_archived_home_is_restored_byte_for_byte(case: str, tmp_path: Path) -> None:
    """R-S1"""
    with synced(case, tmp_path) as store:
        restored: dict[str, bytes] = {}
        for session in store.sessions(SessionFilter(subagents=True)).items:
            for file in store.restore(session.id, tmp_path / "restored"):
                restored[file.source] = file.path.read_bytes()
    assert restored == {source.path: Path(source.path).read_bytes() for source in sources(case)}
