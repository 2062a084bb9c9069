"""gptme's conversations become what the script says that happened (R-C1)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.claude_files import Gathered, gather
from support.format_page import FormatPage, named
from support.scripted import Recordings, answers, blocks, calls, in_order, in_pieces, scripted, tokens, used
from turnlog.agents import agent, detect
from turnlog.agents.base import Source, SourceKind
from turnlog.agents.commands import resume_command
from turnlog.agents.gptme.records import GptmeMessage
from turnlog.model import CompactionEvent, Origin, ToolKind
from turnlog.store.base import SessionFilter

AGENT = agent("gptme")
RUNS = Recordings(AGENT, Path(__file__).parents[2] / "data" / "gptme")
TOUR = "0.35.1/tour"
NUDGE = "(mock: script exhausted)"
"""What the model says after its script, when gptme asks whether it is done."""


def fold(*messages: dict[str, Any]) -> Gathered:
    """What a log of these messages brings."""
    source = Source(agent="gptme", path="/g/logs/c/conversation.jsonl", root="/g", session_id="gptme:c")
    lines = [
        json.dumps({"timestamp": f"2026-11-26T10:00:0{number}.5"} | message) for number, message in enumerate(messages)
    ]
    return gather(AGENT.fold(source).feed("\n".join([*lines, ""]).encode(), 0))


def said(role: str, content: str, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content} | fields


def test_a_run_has_the_parts_and_tokens_of_the_script_in_their_order() -> None:
    """R-C5, R-K1: of two calls at once gptme makes and logs only the first."""
    found = [message for message in answers(RUNS.read(TOUR)) if ("text", NUDGE) not in blocks(message)]
    turns = [*RUNS.script("0.35.1/main"), *RUNS.script("0.35.1/resume")]
    wanted = [[block for block in turn if "call_par2" not in str(block)] for turn in scripted(turns)]
    assert [blocks(message) for message in found] == wanted
    assert used(found) == list(tokens(turns))
    assert {message.model for message in found} == {"mock-model"}


def test_a_run_of_an_older_version_is_what_the_script_says() -> None:
    """R-C5, R-C8: 0.28.3 logs neither tokens nor models."""
    found = RUNS.read("0.28.3/tour")
    turns = [*RUNS.script("0.28.3/main"), *RUNS.script("0.28.3/resume")]
    wanted = [[block for block in turn if "call_par2" not in str(block)] for turn in scripted(turns)]
    assert [blocks(message) for message in answers(found)] == wanted
    assert [(message.model, message.usage) for message in answers(found)] == [(None, None)] * len(wanted)
    results = {name: call.results[0] for name, call in calls(in_order(found)).items()}
    assert {name: (one.status, one.exit_code) for name, one in results.items()} == {
        "call_read1": ("success", None),
        "call_fail1": ("error", 3),
        "call_par1": ("success", None),
    }
    [stopped] = calls(in_order(RUNS.read("0.28.3/stopped")))["call_long1"].results
    assert stopped.status == "aborted"


def test_results_have_the_status_that_their_words_say() -> None:
    """R-C8: no field does."""
    found = {name: call.results for name, call in calls(in_order(RUNS.read(TOUR))).items()}
    assert {name: [(one.status, one.exit_code) for one in each] for name, each in found.items()} == {
        "call_read1": [("success", None)],
        "call_fail1": [("error", 3)],
        "call_par1": [("success", None)],
    }
    assert "alpha\nbeta\ngamma" in found["call_read1"][0].output_text
    [stopped] = calls(in_order(RUNS.read("0.35.1/stopped")))["call_long1"].results
    assert stopped.status == "aborted"


def test_a_call_that_a_person_refused_is_denied() -> None:
    """R-C8: two tools say it in different words."""
    statuses = {
        name: call.results[0].status
        for source in RUNS.sources("0.35.1/refused")
        if source.kind is SourceKind.SESSION
        for name, call in calls(in_order(gather(AGENT.fold(source).feed(RUNS.log_of(source), 0)))).items()
    }
    assert statuses == {"call_rm1": "denied", "call_py1": "denied"}


def test_an_output_that_begins_with_the_words_of_a_refusal_is_a_success() -> None:
    found = fold(
        said("assistant", '@read(a): {"path": "x"}'), said("system", "Declined by user\nwas the reply.", call_id="a")
    )
    [call] = calls(in_order(found)).values()
    assert [result.status for result in call.results] == ["success"]


def test_edits_have_their_kind() -> None:
    found = answers(RUNS.read("0.35.1/edits"))[:3]
    assert [blocks(message) for message in found] == scripted(RUNS.script("0.35.1/edits"))
    assert {call.kind for call in calls(found).values()} == {ToolKind.EDIT}


def test_a_block_of_code_that_is_a_call_is_one_and_what_follows_its_result() -> None:
    """The format `markdown`, in which calls have no ids."""
    found = in_order(RUNS.read("0.35.1/markdown"))
    [call] = calls(found).values()
    assert (call.tool_name, call.input_value(), call.metadata) == (
        "shell",
        {"content": "echo markdown"},
        {"gptme": {"in_text": True}},
    )
    [result] = call.results
    assert (result.status, "`markdown`" in result.output_text) == ("success", True)
    told = [block for block in blocks(answers(RUNS.read("0.35.1/markdown"))[0]) if block[0] != "tool"]
    assert told == [("thinking", "One echo."), ("text", "I run it.")]


def test_an_element_that_is_a_call_is_one_and_what_follows_its_result() -> None:
    """The format `xml`, in which calls have no ids."""
    found = in_order(RUNS.read("0.35.1/xml"))
    [call] = calls(found).values()
    assert (call.tool_name, call.input_value(), call.results[0].status) == ("shell", {"content": "echo xml"}, "success")
    assert blocks(answers(RUNS.read("0.35.1/xml"))[0])[:2] == [("thinking", "In xml."), ("text", "I run it.")]


def test_a_fork_shares_the_messages_of_its_origin_and_counts_them_once(tmp_path: Path) -> None:
    """R-C5: the fork repeats them, and names no origin."""
    turns = RUNS.script("0.35.1/fork")
    with RUNS.stored("0.35.1/fork", tmp_path) as store:
        sessions = {session.id: session for session in store.sessions(SessionFilter()).items}
    [relation] = sessions["gptme:forked"].relationships
    assert (relation.kind, relation.parent_session_id) == ("continuation", "gptme:original")
    used = [one.usage.usage for one in sessions.values()]
    assert sum(one.input or 0 for one in used) == sum(turn["usage"]["in"] for turn in turns)
    assert sum(one.output or 0 for one in used) == sum(turn["usage"]["out"] for turn in turns)


def test_what_was_taken_back_is_not_in_the_log() -> None:
    """`/undo 2` took the second prompt and both answers back; gptme keeps them in a file that is not read."""
    found = in_order(RUNS.read("0.35.1/undo"))
    assert [blocks(each)[0][1] for each in found if each.origin is Origin.PROMPT] == [
        "First question.",
        "Third question.",
    ]
    assert used(answers(RUNS.read("0.35.1/undo")))[0] == next(tokens(RUNS.script("0.35.1/undo")[2:]))


def test_a_summary_is_no_answer() -> None:
    found = RUNS.read("0.35.1/compaction")
    [event] = [change.event for change in found.events.values() if isinstance(change.event, CompactionEvent)]
    summary = found.messages[event.summary_message_id or ""]
    assert (summary.role, summary.origin, blocks(summary)) == (
        "developer",
        Origin.COMPACTION,
        [("text", "A short title")],
    )
    assert used(answers(found)) == list(tokens(RUNS.script("0.35.1/compaction")))


def test_a_block_of_code_that_is_none_stays_text() -> None:
    [answer] = answers(fold(said("assistant", "See:\n```json\n{}\n```\nDone.")))
    assert blocks(answer) == [("text", "See:\n```json\n{}\n```\nDone.")]


def test_text_between_calls_keeps_its_place() -> None:
    content = 'One.\n@shell(a): {"command": "echo"}\nTwo.\n@save(b): {"path": "x"}'
    [answer] = answers(fold(said("assistant", content)))
    assert [kind if kind != "text" else value for kind, value in blocks(answer)] == ["One.", "tool", "\nTwo.", "tool"]


def test_times_are_those_of_the_zone_that_the_program_names() -> None:
    found = fold(
        said("system", "## Current Date\n\n**Local date:** 2026-11-26 UTC-05:30", hide=True), said("user", "Hi")
    )
    [message] = in_order(found)
    assert message.created_at is not None
    assert message.created_at.isoformat() == "2026-11-26T15:30:01.500000+00:00"


def test_what_the_program_asks_in_a_persons_place_is_no_prompt() -> None:
    found = in_order(RUNS.read(TOUR))
    prompts = [message for message in found if message.origin is Origin.PROMPT]
    assert [blocks(message)[0][1].splitlines()[0] for message in prompts] == [
        "Please read notes.txt and tell me what is in it.",
        "And now?",
    ]


def test_a_conversation_has_the_facts_of_its_settings(tmp_path: Path) -> None:
    with RUNS.stored(TOUR, tmp_path) as store:
        session = store.session("gptme:tour")
    assert (session.cwd, session.title) == ("/home/dev/work", "A short title")


@pytest.mark.parametrize(
    ("root", "folder"),
    [
        ("/home/ann/.local/share/gptme", "/home/ann/a b/work"),
        ("/Users/ann/Library/Application Support/gptme", "/Users/ann/a b/work"),
        ("/elsewhere/gptme", "~/a b/work"),
    ],
)
def test_a_folder_below_the_users_home_is_whole(root: str, folder: str) -> None:
    """0.35.1 writes it with `~`."""
    source = Source(agent="gptme", path=f"{root}/logs/x/config.toml", root=root, kind=SourceKind.SIDECAR)
    [session] = AGENT.fold(source).feed(b'[chat]\nworkspace = "~/a b/work"\n', 0).sessions.values()
    assert (session.cwd, session.project_path) == (folder, folder)


@pytest.mark.parametrize("case", RUNS.cases)
def test_every_record_is_accounted_for_and_any_split_equals_the_whole(case: str) -> None:
    """R-S34, R-C3"""
    for source in RUNS.sources(case):
        data = RUNS.log_of(source)
        whole = gather(AGENT.fold(source).feed(data, 0))
        assert whole.diagnostics == []
        if source.kind is SourceKind.SESSION:
            assert in_pieces(AGENT, source, data).as_json() == whole.as_json()
            assert whole.counts.total == data.count(b"\n")
            assert all(getattr(change.event, "known", True) for change in whole.events.values())


@pytest.mark.parametrize("case", RUNS.cases)
def test_an_archived_conversation_is_restored_byte_for_byte(case: str, tmp_path: Path) -> None:
    """R-S1"""
    wanted = {path.name: path.read_bytes() for path in (RUNS.folder / case).rglob("*") if path.is_file()}
    assert RUNS.restored(case, tmp_path) == wanted


def test_a_log_is_known_by_its_messages(tmp_path: Path) -> None:
    """R-S21"""
    for source in RUNS.sources(TOUR):
        assert detect(Path(source.path)).agent == "gptme"
    moved = tmp_path / "moved.jsonl"
    moved.write_bytes((RUNS.folder / TOUR / "logs/tour/conversation.jsonl").read_bytes())
    assert detect(moved).agent == "gptme"


def test_a_variable_names_the_logs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(RUNS.folder / TOUR, home / "moved")
    monkeypatch.setenv("GPTME_LOGS_HOME", str(home / "moved" / "logs"))
    assert list(AGENT.roots()) == [home / "moved"]


def test_a_conversation_is_resumed_by_its_name() -> None:
    assert AGENT.command is not None
    assert resume_command(AGENT.command, "tour") == ["gptme", "--name", "tour"]


def test_every_field_that_is_read_is_on_the_page() -> None:
    """R-S23"""
    described = [name for cell, _ in FormatPage("gptme").rows("### Fields") for name in named(cell)]
    assert sorted(described) == sorted(name for name in GptmeMessage.__struct_encode_fields__ if name)
