"""The scripts of `turnlog completion` complete in the shells themselves, where these are installed."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

if sys.platform != "win32":
    import pty

TYPED = {"turnlog sessi": "sessions", "turnlog sessions --arch": "--archived", "turnlog export --as parq": "parquet"}
SECONDS = 60.0


def needs(shell: str) -> str:
    program = shutil.which(shell)
    if program is None or sys.platform == "win32":
        pytest.skip(f"{shell} is not installed")
    return program


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home of its own, in which `turnlog` is the one that is tested."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "turnlog"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m turnlog "$@"\n')
    program.chmod(0o755)
    return {
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "TERM": "dumb",
        "LANG": "C.UTF-8",
    }


def said(command: list[str], environment: Mapping[str, str]) -> list[str]:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=True)
    assert done.stderr == ""
    return [line.partition("\t")[0] for line in done.stdout.splitlines()]


@pytest.mark.parametrize(("typed", "completed"), TYPED.items())
def test_fish(environment: dict[str, str], typed: str, completed: str) -> None:
    script = f"turnlog completion fish | source; complete --do-complete '{typed}'"
    assert said([needs("fish"), "--no-config", "-c", script], environment) == [completed]


@pytest.mark.parametrize(("typed", "completed"), TYPED.items())
def test_bash(environment: dict[str, str], typed: str, completed: str) -> None:
    script = (
        f'eval "$(turnlog completion bash)"; COMP_WORDS=({typed}); COMP_CWORD=$(({len(typed.split())} - 1));'
        " _turnlog_completion turnlog; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    assert said([needs("bash"), "--norc", "-c", script], environment) == [completed]


@pytest.mark.parametrize(("typed", "completed"), TYPED.items())
def test_zsh(environment: dict[str, str], typed: str, completed: str) -> None:
    """zsh completes only what is typed, at a terminal."""
    ours, theirs = pty.openpty()
    running = subprocess.Popen([needs("zsh"), "-f", "-i"], env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        setup = 'autoload compinit; compinit -u -D; eval "$(turnlog completion zsh)"; PS1=; echo re""ady\n'
        os.write(ours, setup.encode())
        read_until(ours, "ready\r\n")
        os.write(ours, f"{typed}\t".encode())
        beginning = typed.rpartition(" ")[0]
        assert f"{beginning} {completed}" in read_until(ours, f"{beginning} {completed}")
    finally:
        running.kill()
        running.wait()
        os.close(ours)


def read_until(terminal: int, wanted: str) -> str:
    """What a terminal shows, until it has this."""
    shown, end = "", time.monotonic() + SECONDS
    while wanted not in shown and time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            shown += os.read(terminal, 4096).decode(errors="replace")
    return shown
