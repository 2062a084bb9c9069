"""Programs that replace an agent: they play a recording back, line by line, and note what they receive.

A recording is the two sides of a real run: `< ` what the agent printed, `> ` where it read a line, `= 3` its exit code.
Tests add `! python` for what no agent should do.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PLAYER = """
import json, os, signal, sys, time

folder = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(folder, "arguments.jsonl"), "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
heard = open(os.path.join(folder, "heard.jsonl"), "ab", buffering=0)
for line in open(os.path.join(folder, "recording.txt"), encoding="utf-8"):
    mark, rest = line[:1], line[2:].rstrip("\\n")
    if mark == "<":
        os.write(1, rest.encode() + b"\\n")
    elif mark == ">":
        told = sys.stdin.buffer.readline()
        heard.write(told)
        if not told:
            sys.exit(70)
    elif mark == "!":
        exec(rest)
    elif mark == "=":
        sys.exit(int(rest))
"""


class FakeAgent:
    """A program in a folder of its own."""

    def __init__(self, folder: Path, *recording: str) -> None:
        folder.mkdir()
        self.folder = folder
        self.program = folder / "agent"
        self.program.write_text(f"#!{sys.executable}\n{PLAYER}")
        self.program.chmod(0o755)
        self.record(*recording)

    def record(self, *recording: str) -> None:
        """Play this from now on."""
        (self.folder / "recording.txt").write_text("".join(line + "\n" for line in recording), encoding="utf-8")

    @property
    def arguments(self) -> list[list[str]]:
        """With which arguments it was started, each time."""
        return [json.loads(line) for line in (self.folder / "arguments.jsonl").read_text().splitlines()]

    @property
    def heard(self) -> list[Any]:
        """The lines that it received."""
        return [json.loads(line) for line in (self.folder / "heard.jsonl").read_text().splitlines()]


def printed(lines: list[str]) -> list[str]:
    """The recording of a run that printed these lines and received nothing."""
    return [f"< {line}" for line in lines]
