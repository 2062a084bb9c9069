"""What command lines say: of every agent that has one, through launchers, in every order."""

from __future__ import annotations

import shlex

import pytest

from turnlog.agents import agent, started_agent
from turnlog.agents.commands import CommandForm, prompted_command, resume_command

CASES = [
    ("claude -p 'fix it'", "claude-code", "fix it", None, None, None),
    ("claude 'fix it' -p --model opus --verbose", "claude-code", "fix it", "opus", None, None),
    ("claude --model=opus --allowedTools Bash Edit --verbose -p 'fix'", "claude-code", "fix", "opus", None, None),
    ("claude -p --allowedTools Bash Edit -- 'fix'", "claude-code", "fix", None, None, None),
    ("claude --append-system-prompt short --resume 11 -p go", "claude-code", "go", None, "short", "11"),
    ("/usr/bin/claude.cmd -p x", "claude-code", "x", None, None, None),
    ("npx --yes @anthropic-ai/claude-code@2.1.0 -p x", "claude-code", "x", None, None, None),
    ("env A=b timeout 60 claude -p x", "claude-code", "x", None, None, None),
    ("codex exec --json 'fix it'", "codex", "fix it", None, None, None),
    ("codex -m gpt-5.5 exec -C /work -", "codex", None, "gpt-5.5", None, None),
    ("codex exec resume 0199 'go on'", "codex", "go on", None, None, "0199"),
    ("codex exec resume --last 'go on'", "codex", "go on", None, None, None),
    ("codex resume 0199", "codex", None, None, None, "0199"),
    ("gemini -p 'fix it' -o stream-json -m gemini-3", "gemini-cli", "fix it", "gemini-3", None, None),
    ("gemini fix it", "gemini-cli", "fix it", None, None, None),
    ("opencode run --format json -s ses_1 fix it", "opencode", "fix it", None, None, "ses_1"),
]


@pytest.mark.parametrize(("line", "agent", "prompt", "model", "system_prompt", "session"), CASES, ids=lambda each: each)
def test_a_command_line_is_read(
    line: str, agent: str, prompt: str | None, model: str | None, system_prompt: str | None, session: str | None
) -> None:
    found = started_agent(shlex.split(line))
    assert found is not None
    assert (found[0].name, *found[1]) == (agent, prompt, model, system_prompt, session)


@pytest.mark.parametrize("line", ["", "make test", "bash -c 'claude -p x'", "grep claude notes.txt", "claude-squad"])
def test_other_commands_are_nobodys(line: str) -> None:
    assert started_agent(shlex.split(line)) is None


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini-cli", "opencode"])
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
