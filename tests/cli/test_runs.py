"""`turnlog runs`: the list, one run, and looking for its log again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.cli_runner import Command
from turnlog import paths
from turnlog.cli.documents import RunDocument, RunsDocument
from turnlog.model import Usage
from turnlog.runs.lifecycle import ended, new_run, save, started
from turnlog.store.values import Run


def done(exit_code: int = 0, **facts: Any) -> Run:
    run = started(new_run("command", command=("claude", "-p", "list\x1b[2J the files"), **facts))
    return save(paths.database_path(), ended(run, exit_code))


def test_runs_are_listed_with_what_is_known(run: Command) -> None:
    first = done(agent="claude-code", prompt="list the files")
    second = done(3)
    save(paths.database_path(), msgspec.structs.replace(first, usage=Usage(input=1200), tool_calls=2))
    titles, *lines = run("runs").stdout.splitlines()
    assert titles.split() == ["Run", "Started", "Status", "Agent", "Prompt", "Took", "Tools", "Tokens", "Cost"]
    assert [line.split()[0] for line in lines] == [second.id, first.id]
    assert "completed  claude-code  list the files" in lines[1]
    assert " 2    1.2k" in lines[1]
    assert "claude -p list the files" in lines[0]
    assert "\x1b" not in "".join(lines)


def test_the_list_is_a_document_too(run: Command) -> None:
    failed, _ = done(3), done()
    document = json.loads(run("runs", "--json", "--status", "failed").stdout)
    assert msgspec.to_builtins(msgspec.convert(document, RunsDocument)) == document
    assert [(item["id"], item["exit_code"], item["error"]) for item in document["items"]] == [
        (failed.id, 3, "exit code 3")
    ]


def test_the_list_goes_on_where_a_page_ended(run: Command) -> None:
    made = [done() for _ in range(3)]
    first = run("runs", "--json", "--limit", "2")
    cursor = json.loads(first.stdout)["next_cursor"]
    rest = json.loads(run("runs", "--json", "--cursor", cursor).stdout)
    assert [item["id"] for item in rest["items"]] == [made[0].id]
    assert "2 of 3 runs; --limit shows more." in run("runs", "--limit", "2").stderr
    assert run("runs", "--cursor", "x").exit_code == 2


def test_one_run_is_shown_by_the_beginning_of_its_id(run: Command) -> None:
    made = done(3, agent="claude-code", prompt="list\x1b]0;x\x07 the files", system_prompt="Be short.")
    shown = run("runs", "show", made.id[:8]).stdout
    for text in ("Status:     failed\nWhy:        exit code 3\n", "\nPrompt\nlist the files\n", "\nSystem prompt\n"):
        assert text in shown
    assert "\x1b" not in shown
    document = json.loads(run("runs", "show", made.id, "--json").stdout)
    assert msgspec.to_builtins(msgspec.convert(document, RunDocument)) == document
    assert document["id"] == made.id


def test_a_log_is_looked_for_again(run: Command) -> None:
    """R-S35."""
    made = done(agent="claude-code")
    shown = run("runs", "link", made.id[:8]).stdout
    assert "Remark:     no session of claude-code was found that was prompted while the run lasted\n" in shown


def test_a_run_is_forgotten_with_its_words(run: Command) -> None:
    made, kept = done(3, prompt="a secret that must go", system_prompt="x" * 40_000), done()
    assert run("runs", "forget", made.id[:8]).stdout == f"Forgot run {made.id}.\n"
    assert [item["id"] for item in json.loads(run("runs", "--json").stdout)["items"]] == [kept.id]
    files = paths.database_path().parent.glob("turnlog.db*")
    assert not any(b"a secret that must go" in file.read_bytes() for file in files)
    assert run("runs", "forget", made.id).exit_code == 3


def test_a_run_that_goes_on_is_not_forgotten(run: Command) -> None:
    going = save(paths.database_path(), started(new_run("command")))
    result = run("runs", "forget", going.id)
    assert (result.exit_code, result.stderr) == (4, f"turnlog: run {going.id} has not ended\n")


@pytest.mark.parametrize(
    "arguments", [("runs",), ("runs", "show", "x"), ("runs", "link", "x"), ("runs", "forget", "x")]
)
def test_without_a_store_nothing_is_found(run: Command, arguments: tuple[str, ...], home: Path) -> None:
    assert run(*arguments).exit_code == 3
    assert not paths.database_path().exists()
