"""Agents that do without asking: a prompt goes in, by `turnlog run`, and what comes of it is read from the log."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from turnlog.errors import ConflictError

STOP_SECONDS = 5.0
"""How long an agent may take to end once it is told to."""

PROBLEM_SIZE = 2_000
"""Bytes of what an agent that failed said last."""


class SilentRun:
    """One agent at work."""

    def __init__(self, store_path: Path, agent: str, command: list[str], folder: Path, prompt: str) -> None:
        """Start nothing yet."""
        # -P: the folder that it works in is not one to import from.
        wrapper = [sys.executable, "-P", "-m", "turnlog", "run", "--agent", agent, "--store", str(store_path)]
        self._command = [*wrapper, "--", *command]
        self._folder = folder
        self._prompt = prompt
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    @property
    def is_started(self) -> bool:
        """Whether it was."""
        return self._process is not None

    def start(self) -> None:
        """Start the agent. Raises ConflictError where that cannot be done."""
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the agent runs: `end`)
        try:
            # A session of its own: Ctrl-C in the server's terminal is the server's.
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                start_new_session=True,
            )
        except OSError as error:
            self._said.close()
            raise ConflictError(f"the agent cannot be started: {error.strerror}") from error

    def end(self) -> str | None:
        """Give it the prompt and wait until it has ended; why it failed, None where it did not or was stopped."""
        assert self._process is not None
        with self._said:
            self._process.communicate(self._prompt.encode())
            if self._process.returncode == 0 or self._is_stopped:
                return None
            size = self._said.seek(0, 2)
            self._said.seek(max(0, size - PROBLEM_SIZE))
            said = self._said.read().decode("utf-8", "replace").strip()
            return said or f"the agent ended with status {self._process.returncode}"

    def stop(self) -> None:
        """Tell it to end; kill it where it does not."""
        self._is_stopped = True
        if self._process is None:
            return
        self._signal(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._signal(self._process.pid, signal.SIGKILL)

    def _signal(self, process_id: int, number: signal.Signals) -> None:
        """To all of its processes: agents that npm installs are children of a wrapper, and outlive it."""
        with suppress(ProcessLookupError):
            os.killpg(process_id, number)
