"""Prompts from the page: the session's own agent goes on with them, without a screen, in the session's folder.

Off unless the server was started for it (`Settings.prompts`), and never off loopback. What the agent may do is what its
own settings say; what it does comes to the page as with every session, by its log. Each is a run (`turnlog run`), so
that it is on record; one of a session at a time. They end with the server.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from turnlog.errors import ConflictError
from turnlog.model import Session

STOP_SECONDS = 5.0
"""How long an agent may take to end once it is told to."""

PROBLEM_SIZE = 2_000
"""Bytes of what an agent that failed said last."""


class PromptState(msgspec.Struct, frozen=True):
    """What became of the last prompt of a session."""

    is_running: bool = False
    problem: str | None = None
    """Why it failed."""


class Prompts:
    """The agents that this server has started. Any thread may ask."""

    def __init__(self, store_path: Path) -> None:
        """Start nothing yet."""
        self._store_path = store_path
        self._lock = threading.Lock()
        self._running: dict[str, _Run] = {}
        self._problems: dict[str, str] = {}

    def state(self, session_id: str) -> PromptState:
        """Whether the session is being answered, and what went wrong with the last prompt."""
        with self._lock:
            return PromptState(session_id in self._running, self._problems.get(session_id))

    def begin(self, session: Session, command: list[str], prompt: str) -> None:
        """Start the agent with a prompt.

        Raises ConflictError where it is answering one, where the session's folder is gone, and where it cannot start.
        """
        folder = Path(session.cwd) if session.cwd else None
        if folder is None or not folder.is_dir():
            raise ConflictError(f"the session's folder is not there: {session.cwd or 'no log names it'}")
        with self._lock:
            if session.id in self._running:
                raise ConflictError("the agent is answering a prompt of this session")
            self._problems.pop(session.id, None)
            run = _Run(self._recorded(session.agent, command), folder, prompt)
            self._running[session.id] = run
        threading.Thread(target=self._see_it_end, args=(session.id, run), daemon=True).start()

    def stop(self, session_id: str) -> None:
        """Tell the agent to end, and wait for it; does nothing where none runs."""
        with self._lock:
            run = self._running.get(session_id)
        if run is not None:
            run.stop()

    def close(self) -> None:
        """End all."""
        with self._lock:
            running = list(self._running.values())
        for run in running:
            run.stop()

    def _recorded(self, agent: str, command: list[str]) -> list[str]:
        # -P: the folder that it works in is not one to import from.
        wrapper = [sys.executable, "-P", "-m", "turnlog", "run", "--agent", agent, "--store", str(self._store_path)]
        return [*wrapper, "--", *command]

    def _see_it_end(self, session_id: str, run: _Run) -> None:
        problem = run.end()
        with self._lock:
            del self._running[session_id]
            if problem is not None:
                self._problems[session_id] = problem


class _Run:
    """One agent at work."""

    def __init__(self, command: list[str], folder: Path, prompt: str) -> None:
        self._prompt = prompt
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the agent runs: `end`)
        self._is_stopped = False
        try:
            # A session of its own: Ctrl-C in the server's terminal is the server's.
            self._process = subprocess.Popen(
                command,
                cwd=folder,
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
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        """To all of its processes: agents that npm installs are children of a wrapper, and outlive it."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
