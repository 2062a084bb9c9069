"""Calling the command: in this process, as a process of its own in a pipe, and on a terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from click.testing import CliRunner, Result

from turnlog.cli.main import cli

Command: TypeAlias = Callable[..., Result]


def call(*arguments: str, input: str | None = None) -> Result:
    """Call the command in this process. What is not an exit is raised, so that a crash fails the test."""
    result = CliRunner().invoke(cli, list(arguments), input=input, prog_name="turnlog")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "turnlog", *arguments]


def heed_signals() -> None:
    """In a process before its program starts: it need not ignore what whoever runs the tests does."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def in_pipe(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Call the command as a process, its output in a pipe."""
    return subprocess.run(
        command(*arguments), env=os.environ | environment, capture_output=True, text=True, check=False
    )


def on_terminal(
    *arguments: str, columns: int = 80, answer: str = "", type_after: str = "", **environment: str
) -> tuple[int, str]:
    """Call the command as a process on a terminal where `answer` is typed; its exit code, and all that is on it.

    With `type_after`, it is typed once the command has written this.
    """
    controller, terminal = pty.openpty()
    settings = os.environ | {"TERM": "xterm-256color", "COLUMNS": str(columns), "PAGER": "cat"} | environment
    process = subprocess.Popen(command(*arguments), stdin=terminal, stdout=terminal, stderr=terminal, env=settings)
    os.close(terminal)
    is_typed = not type_after
    if is_typed:
        os.write(controller, answer.encode())
    written = b""
    # Linux reports the end of a terminal as an error.
    with suppress(OSError):
        while piece := os.read(controller, 65536):
            written += piece
            if not is_typed and type_after.encode() in written:
                os.write(controller, answer.encode())
                is_typed = True
    os.close(controller)
    return process.wait(), written.decode()
