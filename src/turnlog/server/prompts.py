"""Prompts from the page: the session's own agent continues it, without a screen, in the session's folder.

Off unless the server was started for it (`Settings.prompts`), and never off loopback. What the agent may do is up to
its own settings. If they want a person asked and the agent can ask without a screen, the page is asked
(`interactive`); otherwise the agent does without (`BatchRun`). What the agent does reaches the page through its log,
as with every session. Each prompt is a recorded run; one of a session at a time. They end with the server.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from turnlog import agents
from turnlog.errors import ConflictError, TurnlogError
from turnlog.model import Session
from turnlog.paths import find_program
from turnlog.platforms.processes import in_own_group, stop_group

if TYPE_CHECKING:
    from turnlog.chat.runtimes import AgentCommand
    from turnlog.server.interactive import InteractiveRun, InteractiveRuns, OpenRequest

STOP_SECONDS = 5.0
"""Seconds that a batch agent may take to end after it was stopped."""

_MAX_PROBLEM_BYTES = 2_000
"""How much of the last output of a failed batch agent is shown."""


class PromptState(msgspec.Struct, frozen=True):
    """How the last prompt of a session goes."""

    is_running: bool = False
    problem: str | None = None
    """Why it failed."""
    permission_requests: tuple[OpenRequest, ...] = ()
    """The open permission requests of the agent, oldest first."""


def can_ask(agent: str) -> bool:
    """Whether this agent can request permission without a screen."""
    return _interactive_command(agent) is not None


def _interactive_command(agent: str) -> Callable[[Path], AgentCommand] | None:
    """What starts an agent in a folder, with its own settings; None if it cannot ask or is not installed."""
    try:
        target = agents.agent(agent).interactive_command
    except TurnlogError:
        return None
    return None if target is None else agents.load_target(target).with_own_settings


class Prompts:
    """The agents that this server has started. Every method may be called from any thread."""

    def __init__(self, store_path: Path, on_change: Callable[[str], None]) -> None:
        """Start nothing yet.

        Args:
            store_path: The store in which the runs are recorded.
            on_change: Called with a session's id when a permission request of it came or went, on any thread.
        """
        self._store_path = store_path
        self._on_change = on_change
        self._lock = threading.Lock()
        self._interactive: InteractiveRuns | None = None
        self._running: dict[str, InteractiveRun | BatchRun] = {}
        self._problems: dict[str, str] = {}

    def state(self, session_id: str) -> PromptState:
        """Whether the session is being answered, which permission it requests, and why the last prompt failed."""
        with self._lock:
            run = self._running.get(session_id)
            requests = () if run is None else run.permission_requests
            return PromptState(run is not None, self._problems.get(session_id), requests)

    def begin(self, session: Session, command: list[str], prompt: str) -> None:
        """Start the session's agent with a prompt.

        Args:
            session: The session, whose folder must exist.
            command: What starts the agent as a batch run; used if the agent cannot request permission.
            prompt: What the agent is asked.

        Raises:
            ConflictError: The agent is answering a prompt, the session's folder is gone, or the agent cannot start.
        """
        folder = Path(session.cwd) if session.cwd else None
        if folder is None or not folder.is_dir():
            raise ConflictError(f"the session's folder is not there: {session.cwd or 'no log names it'}")
        with self._lock:
            if session.id in self._running:
                raise ConflictError("the agent is answering a prompt of this session")
            self._problems.pop(session.id, None)
            batch = BatchRun(self._store_path, session.agent, command, folder, prompt)
            interactive = self._begin_interactive(session, folder, prompt)
            if interactive is None:
                batch.start()
            self._running[session.id] = interactive or batch
        threading.Thread(target=self._watch, args=(session.id, interactive, batch), daemon=True).start()

    def _begin_interactive(self, session: Session, folder: Path, prompt: str) -> InteractiveRun | None:
        """Start the session's agent; None if it cannot request permission without a screen."""
        command = _interactive_command(session.agent)
        if command is None:
            return None
        if self._interactive is None:
            from turnlog.server.interactive import InteractiveRuns

            self._interactive = InteractiveRuns(self._store_path)
        return self._interactive.begin(session.id, command(folder), prompt, lambda: self._on_change(session.id))

    def answer(self, session_id: str, request_id: str, *, allow: bool, reason: str | None) -> None:
        """Answer a permission request. Raises ConflictError if it is not open any more."""
        with self._lock:
            run = self._running.get(session_id)
        if run is None or not run.answer(request_id, allow=allow, reason=reason):
            raise ConflictError("the agent does not ask this any more")
        self._on_change(session_id)

    def stop(self, session_id: str) -> None:
        """Stop the session's agent and wait for its end; does nothing if none runs."""
        with self._lock:
            run = self._running.get(session_id)
        if run is not None:
            run.stop()

    def close(self) -> None:
        """Stop all agents."""
        with self._lock:
            running = list(self._running.values())
        for run in running:
            run.stop()
        if self._interactive is not None:
            self._interactive.close()

    def _watch(self, session_id: str, interactive: InteractiveRun | None, batch: BatchRun) -> None:
        """Wait for the end of a run, in its own thread."""
        problem = None if interactive is None else interactive.wait()
        if interactive is None or (problem is not None and not interactive.has_begun):
            # An agent that is too old for its interactive protocol has done nothing yet: it answers as a batch run.
            problem = self._answer_in_batch(session_id, batch)
        with self._lock:
            del self._running[session_id]
            if problem is not None:
                self._problems[session_id] = problem
        self._on_change(session_id)

    def _answer_in_batch(self, session_id: str, batch: BatchRun) -> str | None:
        if not batch.is_started:
            try:
                batch.start()
            except ConflictError as error:
                return str(error)
            with self._lock:
                self._running[session_id] = batch
        return batch.wait()


# -- agents that cannot request permission


class BatchRun:
    """An agent at work that asks nothing: `turnlog run` gives it the prompt, and its log has the rest."""

    permission_requests: tuple[OpenRequest, ...] = ()

    def __init__(self, store_path: Path, agent: str, command: list[str], folder: Path, prompt: str) -> None:
        """Start nothing yet."""
        # -P: modules must not be imported from the folder that the agent works in.
        wrapper = [sys.executable, "-P", "-m", "turnlog", "run", "--agent", agent, "--store", str(store_path)]
        self._program = command[0]
        self._command = [*wrapper, "--", find_program(command[0]) or command[0], *command[1:]]
        self._folder = folder
        self._prompt = prompt
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    @property
    def is_started(self) -> bool:
        """Whether its process was started."""
        return self._process is not None

    def start(self) -> None:
        """Start the agent. Raises ConflictError if that fails."""
        if find_program(self._program) is None:
            raise ConflictError(f"{self._program} is not installed")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the agent runs: `wait`)
        try:
            # A session of its own, so that Ctrl-C in the server's terminal reaches the server only.
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                **in_own_group(),
            )
        except OSError as error:
            self._errors.close()
            raise ConflictError(f"the agent cannot be started: {error.strerror}") from error

    def wait(self) -> str | None:
        """Give it the prompt and wait for its end; return why it failed, None if it did not or was stopped."""
        assert self._process is not None
        with self._errors:
            self._process.communicate(self._prompt.encode())
            if self._process.returncode == 0 or self._is_stopped:
                return None
            size = self._errors.seek(0, 2)
            self._errors.seek(max(0, size - _MAX_PROBLEM_BYTES))
            text = self._errors.read().decode("utf-8", "replace").strip()
            return text or f"the agent ended with status {self._process.returncode}"

    def answer(self, request_id: str, *, allow: bool, reason: str | None) -> bool:
        """Return that the agent has asked nothing."""
        return False

    def stop(self) -> None:
        """Stop the agent, by SIGKILL if it does not end in time."""
        self._is_stopped = True
        if self._process is None:
            return
        stop_group(self._process, "terminate")
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            stop_group(self._process, "kill")
