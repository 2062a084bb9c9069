"""What the README and the tutorial show is true: commands and Python print what stands there."""

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
CONSOLE = re.findall(r"```console\n(.*?)```", README + TUTORIAL, re.DOTALL)
COMMANDS = [step.partition("\n") for block in CONSOLE for step in re.split(r"^\$ turnlog ", block, flags=re.M)[1:]]
FIRST_SYNCS = [output for line, _, output in COMMANDS if line == "sync"]
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


@pytest.mark.usefixtures("synced")
@pytest.mark.parametrize(("arguments", "output"), [(line, output) for line, _, output in COMMANDS if line != "sync"])
def test_a_command_shows_what_the_page_says(arguments: str, output: str) -> None:
    words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', arguments)]
    code, shown = on_terminal(*words, columns=100, TZ="UTC")
    assert code == 0
    assert tidy(TERMINAL_CODES.sub("", shown)) == tidy(output)


@pytest.mark.parametrize("expected", FIRST_SYNCS, ids=["readme", "tutorial"])
def test_the_first_sync_says_what_the_page_says(home: Path, expected: str) -> None:
    shutil.copytree(LOGS / "claude-code", home / ".claude")
    took = re.compile(r"in \d+ ms")
    assert took.sub("in a while", tidy(call("sync").stdout)) == took.sub("in a while", tidy(expected))


@pytest.mark.usefixtures("synced")
@pytest.mark.parametrize(("code", "output"), EXAMPLES)
def test_an_example_prints_what_the_readme_says(code: str, output: str, tmp_path: Path) -> None:
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == output


def test_every_block_is_an_example_that_runs() -> None:
    assert len(COMMANDS) == (README + TUTORIAL).count("$ turnlog ") > 0
    assert len(EXAMPLES) == README.count("```python") > 0
