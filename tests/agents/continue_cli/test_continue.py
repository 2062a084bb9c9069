"""Continue's sessions become what the script says that happened (R-C1)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.claude_files import Gathered, gather
from support.format_page import FormatPage, named
from support.scripted import Recordings, answers, blocks, calls, in_order, scripted, tokens, used
from turnlog.agents import agent, detect
from turnlog.agents.base import Source, SourceKind
from turnlog.agents.commands import resume_command
from turnlog.agents.continue_cli.records import CallState, HistoryItem, HistoryMessage, SessionFile
from turnlog.model import CompactionEvent, FilePart, ReasoningPart
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

AGENT = agent("continue")
RUNS = Recordings(AGENT, Path(__file__).parents[2] / "data" / "continue_cli")
TOUR, ERRORS = "1.5.47/tour", "1.5.47/errors"
MAIN, FORK = "continue:684be4dd-c41d-48d4-bbb0-3a9c10959bd0", "continue:a8ae2a7f-3a5c-4dfd-acc7-af594d0372ec"


def of_session(session: str) -> Gathered:
    [source] = [source for source in RUNS.sources(TOUR) if source.session_id == session]
    return gather(AGENT.fold(source).feed(RUNS.log_of(source), 0))


def fold(*items: Any, **fields: Any) -> Gathered:
    """What a session with these items brings."""
    source = Source(agent="continue", path="/c/sessions/s.json", root="/c", session_id="continue:s", appendable=False)
    document = {"sessionId": "s", "title": "T", "workspaceDirectory": "/w", "history": list(items)} | fields
    return gather(AGENT.fold(source).feed(json.dumps(document).encode(), 0))


def said(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    item: dict[str, Any] = {"message": {"role": role, "content": content}, "contextItems": []}
    return item | fields


def test_a_run_has_the_parts_and_tokens_of_the_script_in_their_order() -> None:
    """R-C5, R-K1: the prompt's tokens include cached ones. The text of thoughts is not kept, their tokens are."""
    found = answers(of_session(MAIN))
    turns = [*RUNS.script("1.5.47/main"), *RUNS.script("1.5.47/resume")]
    assert [blocks(message) for message in found] == scripted(turns, without=frozenset({"thinking"}))
    assert used(found) == list(tokens(turns))


def test_a_run_of_an_older_version_is_what_the_script_says() -> None:
    """R-C5, R-C8: 1.5.11 logs neither tokens nor models."""
    found = answers(RUNS.read("1.5.11/tour"))
    turns = [*RUNS.script("1.5.11/main"), *RUNS.script("1.5.11/resume")]
    assert [blocks(message) for message in found] == scripted(turns, without=frozenset({"thinking"}))
    assert {(message.model, message.usage) for message in found} == {(None, None)}
    results = {name: call.results[0] for name, call in calls(found).items()}
    assert {name: (one.status, one.exit_code) for name, one in results.items()} == {
        "call_read1": ("success", None),
        "call_fail1": ("error", 3),
        "call_par1": ("success", None),
        "call_par2": ("success", None),
    }


def test_results_have_their_status_and_exit_code() -> None:
    """R-C8"""
    found = {name: call.results for name, call in calls(answers(of_session(MAIN))).items()}
    assert {name: [(one.status, one.exit_code) for one in each] for name, each in found.items()} == {
        "call_read1": [("success", None)],
        "call_fail1": [("error", 3)],
        "call_par1": [("success", None)],
        "call_par2": [("success", None)],
    }
    assert [each[0].output_text for each in list(found.values())[2:]] == ["one\n", "two\n"]
    errors = calls(answers(RUNS.read(ERRORS)))
    assert {name: [one.status for one in call.results] for name, call in errors.items()} == {
        "call_gone1": ["error"],
        "call_edit1": ["error"],
        "call_write1": ["success"],
        "call_none1": ["error"],
    }


def test_a_fork_is_billed_for_its_own_calls_alone(tmp_path: Path) -> None:
    """No field names its origin, but it counts only its own tokens."""
    with RUNS.stored(TOUR, tmp_path) as store:
        sessions = {session.id: session for session in store.sessions(SessionFilter()).items}
        billed = [placed.membership.is_billed for placed in store.messages(FORK)]
    assert billed == [False] * 7 + [True] * 2
    assert [sessions[name].usage.usage.input for name in (MAIN, FORK)] == [7100, 800]


def test_the_list_has_the_time_of_each_session(tmp_path: Path) -> None:
    with RUNS.stored(TOUR, tmp_path) as store:
        session = store.session(MAIN)
    assert session.created_at is not None
    assert session.created_at.timestamp() == 1795693139.926
    assert (session.cwd, session.title) == ("/home/dev/work", "Please read notes.txt and tell me what is in it.")


def test_a_summary_takes_the_place_of_what_was_said() -> None:
    found = fold(said("user", "One"), said("assistant", "Two", conversationSummary="One and two."))
    [event] = [change.event for change in found.events.values() if isinstance(change.event, CompactionEvent)]
    assert [blocks(message) for message in event.replacement] == [[("text", "One and two.")]]


def test_pictures_and_thoughts_of_the_extension_are_read() -> None:
    image = {"type": "imageUrl", "imageUrl": {"url": "data:image/png;base64,iVBORw=="}}
    found = in_order(
        fold(
            said("user", [{"type": "text", "text": "Look"}, image]),
            said("thinking", "Hm."),
            said("assistant", "A dot.", reasoning={"text": "Small."}),
        )
    )
    assert isinstance(found[0].parts[1], FilePart)
    thoughts = [part.text for message in found for part in message.parts if isinstance(part, ReasoningPart)]
    assert thoughts == ["Hm.", "Small."]


def test_a_call_that_was_stopped_is_aborted_and_one_that_runs_is_open() -> None:
    def asked(status: str) -> dict[str, Any]:
        call = {"id": "c", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
        message = {"role": "assistant", "content": "", "toolCalls": [call]}
        return {"message": message, "toolCallStates": [{"toolCallId": "c", "status": status, "output": []}]}

    for status, wanted in (("canceled", ["aborted"]), ("calling", [])):
        [call] = calls(in_order(fold(asked(status)))).values()
        assert [result.status for result in call.results] == wanted


def test_unknown_fields_of_an_item_are_kept() -> None:
    [message] = in_order(fold(said("user", "Hi", colour="red")))
    assert message.metadata == {"continue": {"other_fields": {"colour": "red"}}}


@pytest.mark.parametrize("case", RUNS.cases)
def test_every_item_is_accounted_for(case: str) -> None:
    """R-S34"""
    for source in RUNS.sources(case):
        found = AGENT.fold(source).feed(RUNS.log_of(source), 0)
        is_list = source.kind is SourceKind.SIDECAR
        items = 0 if is_list else len(json.loads(Path(source.path).read_bytes())["history"])
        assert (found.counts.total, found.diagnostics) == (items + 1, [])


@pytest.mark.parametrize("case", RUNS.cases)
def test_an_archived_session_is_restored_byte_for_byte(case: str, tmp_path: Path) -> None:
    """R-S1"""
    restored = RUNS.restored(case, tmp_path)
    for source in RUNS.sources(case):
        if source.kind is SourceKind.SESSION:
            assert Path(source.path).read_bytes() in restored.values()


def test_a_damaged_file_keeps_the_messages_that_are_whole() -> None:
    """R-S34"""
    source = RUNS.sources(ERRORS)[0]
    data = RUNS.log_of(source)
    found = AGENT.fold(source).feed(data[: data.rindex(b'"Errors were seen."')], 0)
    assert [each.severity for each in found.diagnostics] == ["error"]


def test_a_session_is_known_by_its_fields(tmp_path: Path) -> None:
    """R-S21"""
    for source in RUNS.sources(TOUR):
        assert detect(Path(source.path)).agent == "continue"
    moved = tmp_path / "moved.json"
    [source, *_] = [source for source in RUNS.sources(TOUR) if source.session_id == MAIN]
    moved.write_bytes(Path(source.path).read_bytes())
    found = detect(moved)
    assert (found.agent, found.source and found.source.session_id) == ("continue", MAIN)


def test_a_variable_names_the_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(RUNS.folder / TOUR, home / "moved")
    monkeypatch.setenv("CONTINUE_GLOBAL_DIR", str(home / "moved"))
    assert list(AGENT.roots()) == [home / "moved"]
    sync(home / "store.db", agents=[AGENT])
    with open_store(home / "store.db") as store:
        assert len(list(store.sessions(SessionFilter()).items)) == 2


def test_a_session_is_continued_as_a_fork() -> None:
    assert AGENT.command is not None
    assert resume_command(AGENT.command, "684b") == ["cn", "--fork", "684b"]


def test_every_field_that_is_read_is_on_the_page() -> None:
    """R-S23"""
    described = [named(fields) for fields, _ in FormatPage("continue").rows("### Fields")]
    assert described == [
        [field.encode_name for field in msgspec.structs.fields(shape) if field.encode_name]
        for shape in (SessionFile, HistoryItem, HistoryMessage, CallState)
    ]
