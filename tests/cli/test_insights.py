"""`turnlog insights` as text, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from pathlib import Path

import msgspec
import pytest

from support.cli_runner import Command, on_terminal
from support.plain_agent import Log
from support.plain_history import SESSION
from support.plain_store import at, read_home
from turnlog.cli.formatting import tokens
from turnlog.cli.insights import insights
from turnlog.model import ErrorEvent, Message, ToolCallPart, ToolKind, ToolResult, ToolState, Usage
from turnlog.store.insights import SECTIONS

pytestmark = pytest.mark.usefixtures("store")


def test_each_section_with_rows_is_a_table(run: Command) -> None:
    result = run("insights", "--utc")
    assert result.exit_code == 0, result.stderr
    titles = [line for line in result.stdout.splitlines() if line in ("Activity", "Projects", "Tools", "Models")]
    assert titles == ["Activity", "Projects", "Tools", "Models"]
    assert "approximate" in result.stderr


def test_projects_of_one_name_stay_apart(run: Command, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for number, folder in enumerate(("/a/work", "/b/work", "/c/shop")):
        log = Log(logs, f"s{number}")
        log.session(project_path=folder, cwd=folder)
        usage = Usage(input=10, output=1)
        log.message(Message(id=f"m{number}", role="assistant", model="large", created_at=at(number), usage=usage))
    read_home(tmp_path / "other.db", logs)
    table = run("insights", "--utc", "--store", str(tmp_path / "other.db")).stdout.partition("Projects\n")[2]
    assert [line.split()[0] for line in table.splitlines()[1:4]] == ["/a/work", "/b/work", "shop"]


def test_json_and_csv_have_the_same_rows(run: Command) -> None:
    document = json.loads(run("insights", "--json").stdout)
    for section in SECTIONS:
        rows = list(csv.DictReader(io.StringIO(run("insights", "--csv", section).stdout)))
        found = document[section]
        assert len(rows) == (1 if isinstance(found, dict) else len(found))


def test_csv_and_json_have_every_file_and_a_table_says_how_many_more(run: Command, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    log = Log(logs, "s")
    edits = tuple(
        ToolCallPart(
            tool_call_id=f"e{number}",
            tool_name="Edit",
            kind=ToolKind.EDIT,
            state=ToolState.OUTPUT_AVAILABLE,
            input=msgspec.Raw(b'{"file_path": "/w/f%d.py"}' % number),
        )
        for number in range(120)
    )
    log.message(Message(id="m", role="assistant", model="large", created_at=at(1), usage=Usage(input=1), parts=edits))
    read_home(tmp_path / "many.db", logs)
    many = ("insights", "--store", str(tmp_path / "many.db"))
    assert len(run(*many, "--csv", "files").stdout.splitlines()) == 121
    document = json.loads(run(*many, "--json").stdout)
    assert (len(document["files"]), document["files_found"]) == (120, 120)
    assert "… 110 more" in run(*many).stdout.splitlines()


def test_commands_are_listed_by_time_failures_or_calls(run: Command, tmp_path: Path) -> None:
    """Those that come first in one order are none of the first ten in another."""
    logs = tmp_path / "logs"
    logs.mkdir()
    log = Log(logs, "s")
    log.message(
        Message(
            id="m",
            role="assistant",
            model="large",
            created_at=at(1),
            usage=Usage(input=1),
            parts=(
                *(shell(f"slow{number}", 10_000 + number) for number in range(12)),
                *(shell("flaky", 5, ToolState.OUTPUT_ERROR, str(each)) for each in range(3)),
                *(shell(f"often{number}", 1, number=str(each)) for number in range(11) for each in range(2 + number)),
            ),
        )
    )
    read_home(tmp_path / "orders.db", logs)
    orders = ("insights", "--store", str(tmp_path / "orders.db"))
    for options, first in (
        ((), ["slow11", "slow10", "slow9"]),
        (("--sort", "failures"), ["flaky", "slow11", "slow10"]),
        (("--sort", "calls"), ["often10", "often9", "often8"]),
    ):
        table = run(*orders, *options).stdout.partition("Commands\n")[2].splitlines()
        assert [line.split()[0] for line in table[1:4]] == first
        assert "… 14 more" in table
        document = json.loads(run(*orders, *options, "--json").stdout)
        assert [each["command"] for each in document["commands"][:3]] == first
        rows = list(csv.DictReader(io.StringIO(run(*orders, *options, "--csv", "commands").stdout)))
        assert (len(rows), [row["command"] for row in rows[:3]]) == (24, first)


def test_errors_are_in_plain_words_and_an_unknown_kind_is_code(run: Command, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    log = Log(logs, "s")
    log.message(Message(id="m", role="assistant", created_at=at(0), parts=(shell("{ a; }", 5), shell("", 5))))
    for number, kind in enumerate(("api_req_failed", "hologram_error")):
        log.event(ErrorEvent(id=f"e{number}", created_at=at(number), error_text="No.", kind=kind, status=429))
    read_home(tmp_path / "errors.db", logs)
    table = run("insights", "--store", str(tmp_path / "errors.db")).stdout
    assert "plain, model request failed, 429, limit" in table
    assert "plain, `hologram_error`, 429, limit" in table
    assert "(no program recognised)" in table
    assert "unknown" not in table.partition("Commands\n")[2].partition("Models")[0]


def shell(
    command: str, milliseconds: int, state: ToolState = ToolState.OUTPUT_AVAILABLE, number: str = ""
) -> ToolCallPart:
    id = f"{command} {number}"
    return ToolCallPart(
        tool_call_id=id,
        tool_name="Bash",
        kind=ToolKind.EXECUTE,
        state=state,
        input=msgspec.Raw(msgspec.json.encode({"command": command})),
        started_at=at(2),
        results=(ToolResult(id=f"{id} result", duration_ms=milliseconds),),
    )


def test_csv_can_be_requested_of_every_section() -> None:
    (option,) = [each for each in insights.params if each.name == "section"]
    assert getattr(option.type, "choices", None) == (*SECTIONS, "context")


def test_a_time_without_anything_is_empty(run: Command) -> None:
    result = run("insights", "--since", "2027-01-01")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Nothing found.\n")


def test_a_project_that_there_is_not_is_an_error(run: Command) -> None:
    assert run("insights", "--project", "nowhere").exit_code == 3
    assert run("insights", "--json", "--csv", "tools").exit_code == 2


def test_the_context_of_one_session_is_a_table_json_and_csv(run: Command) -> None:
    table = run("insights", "--session", SESSION)
    summary, _, head, *lines = table.stdout.splitlines()
    assert head.split() == ["Turn", "Time", "Context", "From", "cache", "Output"]
    steps = json.loads(run("insights", "--session", SESSION, "--json").stdout)["context"]
    rows = list(csv.DictReader(io.StringIO(run("insights", "--session", SESSION, "--csv", "context").stdout)))
    assert [row["message_id"] for row in rows] == [step["message_id"] for step in steps]
    assert len(lines) == len(steps) > 0
    largest, now = max(step["context"] for step in steps), steps[-1]["context"]
    assert summary == (
        f"{len(steps)} model calls, 1 compaction. Context: {tokens(largest)} tokens at most, {tokens(now)} now."
    )
    for wrong in (["--csv", "context"], ["--session", SESSION, "--csv", "tools"]):
        assert "--session goes with" in run("insights", *wrong).stderr


@pytest.mark.parametrize("command", ["insights", "usage"])
def test_notes_are_wrapped_between_words_on_a_narrow_terminal(command: str, run: Command) -> None:
    notes = run(command, "--utc").stderr.splitlines()
    assert any(len(note) > 40 for note in notes)
    _, shown = on_terminal(command, "--utc", columns=40)
    lines = [line.rstrip() for line in shown.replace("\r", "").splitlines()]
    wrapped = lines[-sum(len(textwrap.wrap(note, 40)) for note in notes) :]
    assert all(len(line) <= 40 for line in wrapped)
    assert " ".join(wrapped) == " ".join(notes)
