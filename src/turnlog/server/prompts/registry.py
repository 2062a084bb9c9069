"""Which session's agent answers a prompt, what it asks, and how the last one failed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from turnlog.errors import ConflictError
from turnlog.model import Session
from turnlog.server.prompts.asking import AskingRun, AskingRuns, Question
from turnlog.server.prompts.silent import SilentRun


class PromptState(msgspec.Struct, frozen=True):
    """What became of the last prompt of a session."""

    is_running: bool = False
    problem: str | None = None
    """Why it failed."""
    questions: tuple[Question, ...] = ()
    """What the agent asks leave for, in the order in which it did."""


class Prompts:
    """The agents that this server has started. Any thread may ask."""

    def __init__(self, store_path: Path, on_change: Callable[[str], None]) -> None:
        """Start nothing yet. `on_change` hears of each session where a question came or went, on any thread."""
        self._store_path = store_path
        self._on_change = on_change
        self._lock = threading.Lock()
        self._asking = AskingRuns(store_path)
        self._running: dict[str, AskingRun | SilentRun] = {}
        self._problems: dict[str, str] = {}

    def state(self, session_id: str) -> PromptState:
        """Whether the session is being answered, what is asked, and what went wrong with the last prompt."""
        with self._lock:
            run = self._running.get(session_id)
            questions = run.questions if isinstance(run, AskingRun) else ()
            return PromptState(run is not None, self._problems.get(session_id), questions)

    def begin(self, session: Session, command: list[str], prompt: str) -> None:
        """Start the agent with a prompt: by `command` where it cannot be asked in another way.

        Raises ConflictError where it is answering one, where the session's folder is gone, and where it cannot start.
        """
        folder = Path(session.cwd) if session.cwd else None
        if folder is None or not folder.is_dir():
            raise ConflictError(f"the session's folder is not there: {session.cwd or 'no log names it'}")
        with self._lock:
            if session.id in self._running:
                raise ConflictError("the agent is answering a prompt of this session")
            self._problems.pop(session.id, None)
            silent = SilentRun(self._store_path, session.agent, command, folder, prompt)
            run = self._asking.begin(session, folder, prompt, lambda: self._on_change(session.id))
            if run is None:
                silent.start()
            self._running[session.id] = run or silent
        threading.Thread(target=self._see_it_end, args=(session.id, run, silent), daemon=True).start()

    def answer(self, session_id: str, question_id: str, *, allow: bool, reason: str | None) -> None:
        """Tell the agent whether it may. Raises ConflictError where it does not ask that any more."""
        with self._lock:
            run = self._running.get(session_id)
        if not isinstance(run, AskingRun) or not run.answer(question_id, allow=allow, reason=reason):
            raise ConflictError("the agent does not ask this any more")
        self._on_change(session_id)

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
        self._asking.close()

    def _see_it_end(self, session_id: str, run: AskingRun | None, silent: SilentRun) -> None:
        problem = None if run is None else run.end()
        if run is None or (problem is not None and not run.has_begun):
            # Nothing was done yet: an agent that is too old to be asked so answers as it can.
            problem = self._answer_silently(session_id, silent)
        with self._lock:
            del self._running[session_id]
            if problem is not None:
                self._problems[session_id] = problem
        self._on_change(session_id)

    def _answer_silently(self, session_id: str, silent: SilentRun) -> str | None:
        if not silent.is_started:
            try:
                silent.start()
            except ConflictError as error:
                return str(error)
            with self._lock:
                self._running[session_id] = silent
        return silent.end()
