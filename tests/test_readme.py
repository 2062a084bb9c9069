"""What the README and the tutorial show is true: commands and Python print what is shown there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli_runner import call, on_terminal
from turnlog.server.sample import LOGS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)
TUTORIAL = (ROOT / "docs" / "tutorial" / "first-steps.md").read_text()


def commands(page: str) -> list[tuple[str, str]]:
    """The commands of a page, without `turnlog`, and what they print."""
    blocks = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    steps = [step.partition("\n") for block in blocks for step in re.split(r"^\$ turnlog ", block, flags=re.M)[1:]]
    return [(line, output) for line, _, output in steps]


COMMANDS = commands(README)
STEPS = commands(TUTORIAL)
TOOK = re.compile(r"in \d+ ms|in [\d.]+ s")
NUMBERS = re.compile(r"\d[\d,.]*(?: [kM]?B\b)?")
TERMINAL_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


@pytest.fixture
def synced(home: Path) -> Path:
    """A home with the sample's logs, which have been read."""
    shutil.copytree(LOGS / "claude-code", home / ".claude")
    assert call("sync").exit_code == 0
    return home


def tidy(output: str) -> str:
    """Without what a terminal adds at the ends of lines."""
    return "\n".join(line.rstrip() for line in output.splitlines()).strip("\n")


def words_of(arguments: str) -> list[str]:
    """The words of a command line, of which some are quoted."""
    return [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', arguments)]


@pytest.mark.usefixtures("synced")
@pytest.mark.parametrize(("arguments", "output"), [step for step in COMMANDS if step[0] != "sync"])
def test_a_command_shows_what_the_page_says(arguments: str, output: str) -> None:
    code, shown = on_terminal(*words_of(arguments), columns=80, TZ="UTC")
    assert code == 0
    # Where a command takes longer, a terminal first shows how far it is.
    assert tidy(TERMINAL_CODES.sub("", shown)).endswith(tidy(output))


def test_the_first_sync_says_what_the_readme_says(home: Path) -> None:
    shutil.copytree(LOGS / "claude-code", home / ".claude")
    (expected,) = [output for line, output in COMMANDS if line == "sync"]
    assert TOOK.sub("in a while", tidy(call("sync").stdout)) == TOOK.sub("in a while", tidy(expected))


@pytest.mark.usefixtures("home")
def test_the_first_steps_need_no_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert STEPS
    for arguments, expected in STEPS:
        code, shown = on_terminal(*words_of(arguments), columns=80, TZ="UTC")
        assert code == 0
        # While logs are read, a terminal also shows how far that is.
        text, page = tidy(TERMINAL_CODES.sub("", shown)), tidy(expected)
        if arguments.startswith("sync"):  # The sample grows with the agents.
            assert not NUMBERS.search(page)
            text = NUMBERS.sub("…", TOOK.sub("in …", text))
        assert text.endswith(page), arguments
    for command in re.findall(r"`turnlog (\w+ [^`]*--store sample\.db)`", TUTORIAL):
        if not command.startswith("serve"):
            assert call(*words_of(command)).exit_code == 0, command


@pytest.mark.usefixtures("synced")
@pytest.mark.parametrize(("code", "output"), EXAMPLES)
def test_an_example_prints_what_the_readme_says(code: str, output: str, tmp_path: Path) -> None:
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == output


def test_outputs_fit_a_terminal() -> None:
    assert [line for _, output in COMMANDS + STEPS for line in output.splitlines() if len(line) > 80] == []


def test_every_block_is_an_example_that_runs() -> None:
    assert len(COMMANDS + STEPS) == (README + TUTORIAL).count("$ turnlog ") > 0
    assert len(EXAMPLES) == README.count("```python") > 0
