"""What command lines say: of every agent that has one, through launchers, in every order."""

from __future__ import annotations

import shlex

import pytest

from support.agent_cases import CASES, CommandLine
from turnlog.agents import agent, started_agent
from turnlog.agents.commands import CommandForm, prompted_command, resume_command

LINES = [(case.name, line) for case in CASES.values() for line in case.commands]


@pytest.mark.parametrize(("agent", "line"), LINES, ids=lambda each: each if isinstance(each, str) else each.line)
def test_a_command_line_is_read(agent: str, line: CommandLine) -> None:
    found = started_agent(shlex.split(line.line))
    assert found is not None
    assert (found[0].name, *found[1]) == (agent, *line[1:])


@pytest.mark.parametrize("line", ["", "make test", "bash -c 'claude -p x'", "grep claude notes.txt", "claude-squad"])
def test_other_commands_are_nobodys(line: str) -> None:
    assert started_agent(shlex.split(line)) is None


@pytest.mark.parametrize("name", sorted({name for name, _ in LINES}))
def test_the_command_that_goes_on_with_a_session_is_read_as_just_that(name: str) -> None:
    form = agent(name).command
    assert form is not None
    command = resume_command(form, "ses_1")
    assert command is not None
    found = started_agent(command)
    assert found is not None
    assert (found[0].name, found[1].session, found[1].prompt) == (name, "ses_1", None)


def test_what_is_no_session_is_not_gone_on_with() -> None:
    assert resume_command(CommandForm(program="other"), "ses_1") is None
    assert resume_command(CommandForm(program="other", resume=("--resume",)), "--dangerous") is None


def test_a_branch_of_a_thread_goes_on_by_the_id_of_its_thread() -> None:
    """R-C4: the program knows the thread, not the file in which it goes on."""
    form = agent("codex").command
    assert form is not None
    thread, file = "01a1fbaa-0000-7000-8000-000000000001", "01a1fbab-0000-7000-8000-00000000000a"
    assert resume_command(form, f"{thread}_{file}") == ["codex", "resume", thread]
    assert (prompted_command(form, f"{thread}_{file}") or [])[-2:] == [thread, "-"]
