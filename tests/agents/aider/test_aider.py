"""Aider's histories become what the script says that happened, as far as they have it (R-C1)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from support.claude_files import Gathered, gather
from support.scripted import Recordings, answers, blocks, calls, in_order, in_pieces, scripted
from turnlog.agents import agent, detect
from turnlog.agents.aider.contents import counted_in
from turnlog.agents.base import Source
from turnlog.agents.commands import read_command
from turnlog.model import ErrorEvent, Fate, InterruptEvent, Message, Origin, RunMetadataEvent
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

AGENT = agent("aider")
RUNS = Recordings(AGENT, Path(__file__).parents[2] / "data" / "aider")
TOUR = "0.86.2/tour"
FIRST, BAD, REFUSED, STOPPED = (
    f"aider:work-2026-11-26T{time}" for time in ("11-42-48", "11-43-11", "11-43-32", "11-43-55")
)


def of_session(session: str) -> list[Message]:
    found = RUNS.read(TOUR)
    wanted = {identity for owner, identity in found.placements if owner == session}
    return [message for message in in_order(found) if message.id in wanted]


COMMANDS = "0.86.2/commands"


def in_runs(case: str) -> list[list[Message]]:
    """The messages of each run in a history."""
    found = RUNS.read(case)
    told: dict[str, list[Message]] = {}
    for message in in_order(found):
        for session, identity in found.placements:
            if identity == message.id:
                told.setdefault(session, []).append(message)
    return list(told.values())


def asked_in(name: str) -> list[str]:
    """The first line of what the model was asked in each request of a recorded step."""
    return json.loads((RUNS.folder / "0.86.2" / f"{name}.script.json").read_text())["asked"]


def fold(*lines: str) -> Gathered:
    """What a history with these lines brings."""
    source = Source(agent="aider", path="/home/dev/work/.aider.chat.history.md", root="/home/dev/work")
    data = "\n".join(("# aider chat started at 2026-11-26 10:00:00", "", *lines, "")).encode()
    return gather(AGENT.fold(source).feed(data, 0))


def test_a_run_has_the_texts_of_the_script_in_their_order() -> None:
    """R-C5, R-K1: each run of the program is a session. An edit is also a call, since the program made it."""
    for session, name in ((FIRST, "main"), (BAD, "bad")):
        found = [message for message in of_session(session) if message.role == "assistant"]
        told = [[block for block in blocks(message) if block[0] != "tool"] for message in found]
        # The answer after an edit that was made is not asked for.
        wanted = scripted(RUNS.script(f"0.86.2/{name}"))[: len(found)]
        assert told == [[(kind, text.strip("\n")) for kind, text in turn] for turn in wanted]


def test_a_run_with_commands_has_what_the_model_received_and_said() -> None:
    """R-C5, R-K1: a command is no prompt. What Aider asks for a commit or a summary is not in the history."""
    for messages, name in zip(in_runs(COMMANDS), ("commands", "image", "summarized"), strict=True):
        asked = asked_in(name)
        logged = [turn for turn, words in enumerate(asked) if "USER" not in words]
        prompts = [message for message in messages if message.origin is Origin.PROMPT]
        assert [blocks(message) for message in prompts] == [[("text", asked[turn])] for turn in logged]
        wanted = [scripted(RUNS.script(f"0.86.2/{name}"))[turn] for turn in logged]
        found = [message for message in messages if message.role == "assistant"]
        assert [[block for block in blocks(message) if block[0] != "tool"] for message in found] == [
            [(kind, text.strip("\n")) for kind, text in turn] for turn in wanted
        ]


def test_a_command_is_what_the_user_typed() -> None:
    found = [message for messages in in_runs(COMMANDS) for message in messages if "command" in str(message.metadata)]
    assert [(message.origin, *message.metadata["aider"]["command"].values()) for message in found] == [
        (Origin.COMMAND, "/undo", ""),
        (Origin.SHELL, "/run", "cat missing.txt; exit 3"),
        (Origin.COMMAND, "/ask", "Only say what it is."),
        (Origin.COMMAND, "/clear", ""),
        (Origin.COMMAND, "/tokens", ""),
        (Origin.COMMAND, "/exit", ""),
    ]
    typed = in_order(fold("#### !ls -a  ", "", "#### Look.  "))
    assert [message.origin for message in typed] == [Origin.SHELL, Origin.PROMPT]


def test_messages_before_a_cleared_history_are_not_in_the_context(tmp_path: Path) -> None:
    with RUNS.stored(COMMANDS, tmp_path) as store:
        [session] = [one for one in store.sessions(SessionFilter()).items if one.title and "beta" in one.title]
        placed = list(store.messages(session.id))
    texts = {fate: [str(one.message.parts) for one in placed if one.membership.fate is fate] for fate in Fate}
    assert "What went wrong?" in "".join(texts[Fate.COMPACTED])
    assert [("And after that?" in each, "Nothing." in each) for each in texts[Fate.ACTIVE][:2]] == [
        (True, False),
        (False, True),
    ]


def test_costs_are_the_sum_of_those_that_the_program_says() -> None:
    run = min(RUNS.read(COMMANDS).sessions.values(), key=lambda one: one.session_id)
    assert run.reported_cost == pytest.approx(0.0026 + 0.0026 + 0.00036 + 0.0025)


def test_a_run_of_an_older_version_is_what_the_script_says() -> None:
    """R-C5, R-C8: 0.75.2 keeps no thoughts."""
    found = RUNS.read("0.75.2/tour")
    first, bad, refused, stopped = in_runs("0.75.2/tour")
    for messages, name in ((first, "main"), (bad, "bad")):
        said = [message for message in messages if message.role == "assistant"]
        wanted = scripted(RUNS.script(f"0.75.2/{name}"), without=frozenset({"thinking"}))[: len(said)]
        assert [[block for block in blocks(message) if block[0] != "tool"] for message in said] == [
            [(kind, text.strip("\n")) for kind, text in turn] for turn in wanted
        ]
    results = [call.results[0].status for call in calls([*first, *bad]).values()]
    assert results == ["success", "error"]
    assert [message.origin for message in bad] == [Origin.PROMPT, None, Origin.HARNESS, None]
    assert [message.role for message in (*refused, *stopped)] == ["user", "user", "assistant"]
    events = [one.event for one in found.events.values()]
    assert [one.error_text for one in events if isinstance(one, ErrorEvent)] == [
        "litellm.BadRequestError: OpenAIException - mock bad request"
    ]
    assert [one for one in events if isinstance(one, InterruptEvent)]


def test_figures_are_those_of_the_program_and_marked_as_estimated() -> None:
    """They are rounded, and counted by Aider itself: the server said 1,500 and 45."""
    sessions = RUNS.read(TOUR).sessions
    [first], [bad] = (sessions[name].totals.values() for name in (FIRST, BAD))
    told = [(one.usage.input, one.usage.output, one.usage.exactness, one.calls) for one in (first, bad)]
    assert told == [(2500, 81, "estimated", 1), (5100, 31, "estimated", 2)]
    assert of_session(FIRST)[-1].metadata == {"aider": {"tokens": "Tokens: 2.5k sent, 81 received."}}


def test_cached_tokens_are_no_input_and_costs_are_the_messages() -> None:
    line = "Tokens: 12k sent, 1.2k cache write, 3k cache hit, 81 received. Cost: $0.0018 message, $0.02 session."
    found = counted_in(line)
    assert found is not None
    assert found == (7800, 3000, 1200, 81, 0.0018)
    assert counted_in("Applied edit to notes.txt") is None


def test_an_edit_is_a_call_that_the_program_made_or_could_not_make() -> None:
    """R-C8: no tool was called, so its metadata says that it is written in the text."""
    [made], [failed] = (calls(of_session(session)).values() for session in (FIRST, BAD))
    assert made.input_value() == {"path": "notes.txt", "search": "beta\n", "replace": "BETA\n"}
    assert made.metadata == {"aider": {"in_text": True}}
    assert [result.status for call in (made, failed) for result in call.results] == ["success", "error"]
    assert "failed to exactly match lines in notes.txt" in (failed.results[0].error_text or "")


def test_what_the_program_tells_the_model_of_a_failed_edit_is_no_prompt() -> None:
    assert [message.origin for message in of_session(BAD)] == [Origin.PROMPT, None, Origin.HARNESS, None]


def test_a_refused_request_is_an_error_a_stopped_answer_keeps_text() -> None:
    found = RUNS.read(TOUR)
    [error] = [change.event for change in found.events.values() if isinstance(change.event, ErrorEvent)]
    assert "mock bad request" in error.error_text
    assert [change for change in found.events.values() if isinstance(change.event, InterruptEvent)]
    assert blocks(of_session(STOPPED)[-1]) == [("text", "Half an answer")]
    assert len(of_session(REFUSED)) == 1


def test_a_quotation_and_a_heading_of_the_model_stay_in_its_text() -> None:
    """Only what ends with two spaces is the program's or the user's."""
    found = in_order(
        fold("#### Write a note.  ", "", "> A quotation", "#### A heading", "", "> Tokens: 2 sent, 1 received.  ")
    )
    assert [blocks(message) for message in found] == [
        [("text", "Write a note.")],
        [("text", "> A quotation\n#### A heading")],
    ]


def test_a_prompt_of_several_lines_is_one() -> None:
    [prompt] = in_order(fold("#### One  ", "#### Two  "))
    assert blocks(prompt) == [("text", "One\nTwo")]


def test_the_line_with_the_command_is_kept_as_the_program_wrote_it() -> None:
    found = RUNS.read(TOUR)
    kinds = [change.event.kind for change in found.events.values() if isinstance(change.event, RunMetadataEvent)]
    assert kinds.count("start") == 4


def test_a_command_with_a_prompt_of_several_lines_is_no_answer() -> None:
    """0.86.2 repeats its command line as it is."""
    found = fold(
        "> /bin/aider --message Look at",
        "",
        "# this",
        "  notes.txt  ",
        "> Aider v0.86.2  ",
        "",
        "#### Look at  ",
        "#### # this  ",
        "",
        "Done.",
        "",
    )
    assert [(message.role, blocks(message)[0][1]) for message in in_order(found)] == [
        ("user", "Look at\n# this"),
        ("assistant", "Done."),
    ]


@pytest.mark.parametrize("case", RUNS.cases)
def test_every_line_is_accounted_for_and_any_split_equals_the_whole(case: str) -> None:
    """R-S34"""
    [source] = RUNS.sources(case)
    data = RUNS.log_of(source)
    whole = gather(AGENT.fold(source).feed(data, 0))
    assert in_pieces(AGENT, source, data).as_json() == whole.as_json()
    assert whole.counts.total == data.count(b"\n")
    assert whole.diagnostics == []


def test_lines_before_the_first_run_are_reported() -> None:
    [source] = RUNS.sources(TOUR)
    found = AGENT.fold(source).feed(b"Some text\n", 0)
    assert (found.counts.unreadable, [each.line for each in found.diagnostics]) == (1, [1])


@pytest.mark.parametrize("case", RUNS.cases)
def test_an_archived_history_is_restored_byte_for_byte(case: str, tmp_path: Path) -> None:
    """R-S1"""
    [source] = RUNS.sources(case)
    assert set(RUNS.restored(case, tmp_path).values()) == {Path(source.path).read_bytes()}


def test_a_history_that_grows_is_read_on(tmp_path: Path) -> None:
    [source] = RUNS.sources(TOUR)
    data = Path(source.path).read_bytes()
    log = tmp_path / "home" / "work" / ".aider.chat.history.md"
    log.parent.mkdir(parents=True)
    for end in (data.index(b"> Tokens"), data.rindex(b"# aider chat"), len(data)):
        log.write_bytes(data[:end])
        sync(tmp_path / "store.db", roots=[tmp_path / "home"], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        sessions = {session.id for session in store.sessions(SessionFilter()).items}
        assert sessions == {FIRST, BAD, REFUSED, STOPPED}
        assert [len(list(store.messages(name))) for name in (FIRST, BAD, REFUSED, STOPPED)] == [2, 4, 1, 2]
        assert store.session(FIRST).agent_version == "0.86.2"
        usage = store.session(BAD).usage
        assert (usage.usage.exactness, usage.covered_calls) == ("estimated", 2)


def test_a_history_is_known_by_its_first_line(tmp_path: Path) -> None:
    """R-S21"""
    [source] = RUNS.sources(TOUR)
    found = detect(Path(source.path))
    assert (found.agent, found.version) == ("aider", "0.86.2")
    moved = tmp_path / "moved.md"
    moved.write_bytes(Path(source.path).read_bytes())
    assert detect(moved).agent == "aider"
    moved.write_text("# Notes\n")
    assert detect(moved).agent is None


def test_a_variable_names_folders_and_nothing_else_is_searched(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(RUNS.folder / TOUR, home / "src")
    assert list(AGENT.discover()) == []
    monkeypatch.setenv("TURNLOG_AIDER_DIR", f"{home / 'src'},{home / 'missing'}")
    assert [Path(source.path).parent.name for source in AGENT.discover()] == ["work"]
    form = AGENT.command
    assert form is not None
    assert read_command(form, ["--model", "m", "--message", "Fix it", "a.py"])[:2] == ("Fix it", "m")
    assert len(answers(RUNS.read(TOUR))) == 4
