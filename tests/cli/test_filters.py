"""Names of agents, projects, models and tools on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli_runner import Command, in_pipe
from support.plain_history import SESSION
from turnlog.agents.built_in import BUILT_IN


@pytest.mark.parametrize("command", [("sessions",), ("usage",), ("search", "scout"), ("files",)])
@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--agent", "gemini-cl1", "there is no agent 'gemini-cl1': did you mean gemini-cli?"),
        ("--agent", "cldex", "there is no agent 'cldex': did you mean codex or cline?"),
        ("--agent", "cluade", "there is no agent 'cluade': did you mean claude-ai or claude-code or klaude?"),
        ("--agent", "foo", "there is no agent 'foo'; there are "),
        ("--agent", "nobody", "there is no agent 'nobody'; there are "),
        ("--agent", "", "there is no agent ''; there are "),
        ("--project", "webshp", "there is no project 'webshp': did you mean webshop?"),
        ("--project", "nothing like it", "there is no project 'nothing like it'; there are "),
    ],
)
def test_a_name_that_nothing_has_is_an_error_with_the_near_ones(
    command: tuple[str, ...], option: str, value: str, message: str, run: Command, store: Path
) -> None:
    result = run(*command, option, value)
    assert (result.exit_code, result.stdout) == (3, "")
    assert message in result.stderr


@pytest.mark.parametrize(("limit", "reason"), [("abc", "'abc' is no whole number."), ("0", "0 is not in the range")])
def test_a_limit_that_is_none_is_reported_in_plain_words(limit: str, reason: str, run: Command, store: Path) -> None:
    result = run("sessions", "--limit", limit)
    assert result.exit_code == 2
    assert f"Invalid value for '--limit': {reason}" in result.stderr


def test_an_error_with_some_names_counts_the_others(run: Command, store: Path) -> None:
    listed = run("sessions", "--agent", "nobody").stderr.partition("; there are ")[2]
    names, _, others = listed.rpartition(" and ")
    assert int(others.removesuffix(" more\n")) + len(names.split(", ")) >= len(BUILT_IN)


def test_an_agent_of_which_nothing_is_stored_is_no_error(run: Command, store: Path) -> None:
    assert run("sessions", "--agent", "codex").exit_code == 0


def test_a_project_is_named_by_its_beginning_or_its_folder(
    run: Command, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = run("sessions", "--project", "webshop", "--json").stdout
    assert run("sessions", "--project", "websh", "--json").stdout == everything
    assert run("sessions", "--project", "/work/webshop", "--json").stdout == everything


@pytest.mark.parametrize(
    ("option", "beginning", "expected"),
    [("--agent", "pl", "plain"), ("--project", "web", "webshop"), ("--model", "la", "large"), ("--tool", "B", "Bash")],
)
def test_the_shell_completes_names(option: str, beginning: str, expected: str, store: Path) -> None:
    command = "search" if option == "--tool" else "usage"
    line = f"turnlog {command} {option} {beginning}"
    result = in_pipe(_TURNLOG_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD="3")
    assert f"plain,{expected}" in result.stdout.splitlines()


@pytest.mark.parametrize("command", ["usage", "sessions"])
def test_a_model_that_was_never_called_is_an_error(command: str, run: Command, store: Path) -> None:
    result = run(command, "--model", "larg")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "there is no model 'larg': did you mean large?" in result.stderr


@pytest.mark.parametrize("sort", ["relevance", "newest"])
def test_a_tool_that_nobody_called_is_an_error_where_nothing_is_found(sort: str, run: Command, store: Path) -> None:
    result = run("search", "scout", "--tool", "Bsh", "--sort", sort)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "there is no tool 'Bsh': did you mean Bash?" in result.stderr
    known = run("search", "nothingatall", "--tool", "bash", "--sort", sort)
    assert (known.exit_code, known.stderr) == (0, "Nothing found.\n")


def test_a_session_is_handed_only_to_agents_that_take_one(run: Command, store: Path) -> None:
    result = run("resume", SESSION, "--in", "clod", "--print")
    agents = "claude-code, codex, gemini-cli, kilo, opencode, pi, qwen-code"
    assert (result.exit_code, result.stderr) == (3, f"turnlog: there is no agent 'clod'; there are {agents}\n")


@pytest.mark.parametrize("option", ["branch", "tag", "task"])
def test_a_branch_tag_or_task_of_no_session_is_an_error(option: str, run: Command, store: Path) -> None:
    result = run("sessions", f"--{option}", "nosuch")
    assert (result.exit_code, result.stdout) == (3, "")
    assert f"there is no {option} 'nosuch'" in result.stderr


def test_a_branch_that_no_session_of_the_agent_has_is_an_empty_list(run: Command, store: Path) -> None:
    near = run("sessions", "--branch", "nosuch").stderr
    [branch, *_] = near.partition("; there are ")[2].split(", ")
    result = run("sessions", "--branch", branch.strip(), "--agent", "codex")
    assert (result.exit_code, "Nothing found." in result.stderr) == (0, True)


def test_a_context_says_which_files_no_session_touched(run: Command, store: Path) -> None:
    assert "no session that was read touched nosuchfile" in run("context", "nosuchfile").stderr


def test_an_unknown_session_leads_to_the_list(run: Command, store: Path) -> None:
    result = run("show", "zzzz")
    assert (result.exit_code, result.stderr) == (
        3,
        "turnlog: there is no session zzzz; `turnlog sessions` lists them\n",
    )


def test_an_empty_text_is_no_session(run: Command, store: Path) -> None:
    result = run("show", "")
    assert (result.exit_code, result.stderr) == (3, "turnlog: there is no session with an empty id\n")
