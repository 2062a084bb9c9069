"""The line that resumes a session is shown on terminals and typed into shells."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from turnlog.plain_text import plain
from turnlog.runs.resuming import shell_line

NAMES = [
    "plain",
    "with space",
    "it's",
    "a\u202eb",
    "\x1b]0;owned\x07",
    "two\nlines",
    "\x1b[2J'\\ \x7f1 日",
    "-n",
    "$HOME`id`",
]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_shell_goes_to_the_folder_and_a_terminal_obeys_nothing(name: str, tmp_path: Path) -> None:
    """C7: an agent may have worked in a folder of any name."""
    folder = tmp_path / name
    folder.mkdir()
    line = shell_line(str(folder), ["printf", "%s\\0", "it's", name])
    assert plain(line) == line
    assert "\n" not in line
    typed = subprocess.run(["bash", "-c", f"{line} && pwd -P"], capture_output=True, check=True).stdout
    assert typed.split(b"\0") == [b"it's", name.encode(), bytes(folder) + b"\n"]
