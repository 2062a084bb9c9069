"""Prompts from the page: the session's own agent continues it, without a screen, in the session's folder.

Off unless the server was started for it (`Settings.prompts`), and never off loopback. What the agent may do is up to
its own settings. If they want a person asked and the agent can ask without a screen, the page is asked
(`InteractiveRun`); otherwise the agent does without (`BatchRun`). What the agent does reaches the page through its log,
as with every session. Each prompt is a recorded run; one of a session at a time. They end with the server.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from turnlog import agents
from turnlog.aisdk.parts import DynamicToolUIPart, TextUIPart, ToolApproval, UIMessage
from turnlog.chat.conversion import SESSION_KEY
from turnlog.chat.runtime import RunRequest
from turnlog.chat.runtimes import AgentCommand, AgentRuntime
from turnlog.errors import ConflictError, TurnlogError
from turnlog.model import Session
from turnlog.model.stream import ApprovalRequest, Pause, RunStart, StreamError, StreamEvent, ToolInputAvailable
from turnlog.platforms.processes import in_own_group, stop_group
from turnlog.server.responses import PermissionRequest

logger = logging.getLogger(__name__)

_GRACE_SECONDS = 2.0
"""How long an interactive agent has for each way of stopping it."""

STOP_SECONDS = 5.0
"""Seconds that a batch agent may take to end after it was stopped."""

_MAX_PROBLEM_BYTES = 2_000
"""How much of the last output of a failed batch agent is shown."""


class OpenRequest(NamedTuple):
    """A permission request that nobody has answered yet."""

    request: PermissionRequest
    requested_at: datetime


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
        self._interactive = _InteractiveRuns(store_path)
        self._running: dict[str, InteractiveRun | BatchRun] = {}
        self._problems: dict[str, str] = {}

    def state(self, session_id: str) -> PromptState:
        """Whether the session is being answered, which permission it requests, and why the last prompt failed."""
        with self._lock:
            run = self._running.get(session_id)
            requests = run.permission_requests if isinstance(run, InteractiveRun) else ()
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
            interactive = self._interactive.begin(session, folder, prompt, lambda: self._on_change(session.id))
            if interactive is None:
                batch.start()
            self._running[session.id] = interactive or batch
        threading.Thread(target=self._watch, args=(session.id, interactive, batch), daemon=True).start()

    def answer(self, session_id: str, request_id: str, *, allow: bool, reason: str | None) -> None:
        """Answer a permission request. Raises ConflictError if it is not open any more."""
        with self._lock:
            run = self._running.get(session_id)
        if not isinstance(run, InteractiveRun) or not run.answer(request_id, allow=allow, reason=reason):
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


# -- agents that request permission


class _InteractiveRuns:
    """The event loop on which interactive runs are, in its own thread."""

    def __init__(self, store_path: Path) -> None:
        self._store_path = store_path
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def begin(
        self, session: Session, folder: Path, prompt: str, on_request: Callable[[], None]
    ) -> InteractiveRun | None:
        """Start the session's agent; None if it cannot request permission without a screen."""
        command = _interactive_command(session.agent)
        if command is None:
            return None
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run_loop, args=(self._loop,), name="turnlog-prompts", daemon=True)
            self._thread.start()
        runtime = AgentRuntime(command(folder), store_path=self._store_path, grace_seconds=_GRACE_SECONDS)
        return InteractiveRun(self._loop, runtime, session.id, prompt, on_request)

    def close(self) -> None:
        """End the event loop; every run must have ended."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


class _Response(NamedTuple):
    request: PermissionRequest
    allow: bool
    reason: str | None


class InteractiveRun:
    """An agent at work that requests permission from the page. Public methods may be called from any thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        runtime: AgentRuntime,
        session_id: str,
        prompt: str,
        on_request: Callable[[], None],
    ) -> None:
        """Begin to answer the prompt; `on_request` is called for each permission request, on any thread."""
        self._loop = loop
        self._runtime = runtime
        self._session_id = session_id
        self._on_request = on_request
        self._lock = threading.Lock()
        self._requests: dict[str, OpenRequest] = {}
        self._calls: dict[str, ToolInputAvailable] = {}
        self._responses: asyncio.Queue[_Response | None] = asyncio.Queue()
        self._problem: str | None = None
        self._is_paused = self._is_stopped = False
        self.has_begun = False
        """Whether the agent has said that it continues the session."""
        self._ended: Future[None] = asyncio.run_coroutine_threadsafe(self._run(prompt), loop)

    @property
    def permission_requests(self) -> tuple[OpenRequest, ...]:
        """The open requests, oldest first."""
        with self._lock:
            return tuple(self._requests.values())

    def answer(self, request_id: str, *, allow: bool, reason: str | None) -> bool:
        """Answer a permission request; False if it is not open."""
        with self._lock:
            request = self._requests.pop(request_id, None)
        if request is not None:
            self._put(_Response(request.request, allow, reason))
        return request is not None

    def wait(self) -> str | None:
        """Wait for its end; return why it failed, None if it did not or was stopped."""
        try:
            self._ended.result()
        except Exception as error:  # Any: otherwise the session would count as running for ever.
            logger.warning("a prompt of %s failed", self._session_id, exc_info=error)
            self._problem = str(error) or type(error).__name__
        return None if self._is_stopped else self._problem

    def stop(self) -> None:
        """Stop the agent and wait for its end."""
        self._is_stopped = self.has_begun = True
        self._put(None)
        asyncio.run_coroutine_threadsafe(self._runtime.abort(self._session_id), self._loop).result()
        self.wait()

    def _put(self, response: _Response | None) -> None:
        self._loop.call_soon_threadsafe(self._responses.put_nowait, response)

    # -- on the event loop

    async def _run(self, prompt: str) -> None:
        request = _run_request(self._session_id, prompt)
        try:
            await self._follow(request)
            while self._is_paused:
                response = await self._responses.get()
                if response is None or self._is_stopped:
                    break
                await self._follow(_continued(request, response))
        finally:
            await self._runtime.release(self._session_id)
            await self._runtime.close()

    async def _follow(self, request: RunRequest) -> None:
        self._is_paused = False
        async with self._runtime.subscribe(self._session_id) as events:
            await (self._runtime.resume(request) if request.continued else self._runtime.send(request))
            async for event in events:
                self._apply(event)

    def _apply(self, event: StreamEvent) -> None:
        match event:
            case RunStart():
                self.has_begun = True
            case ToolInputAvailable():
                self._calls[event.tool_call_id] = event
            case ApprovalRequest():
                request = self._permission_request(event)
                with self._lock:
                    self._requests[request.id] = OpenRequest(request, datetime.now(UTC))
                self._on_request()
            case Pause():
                self._is_paused = True
            case StreamError():
                self._problem = event.error_text
            case _:
                return

    def _permission_request(self, event: ApprovalRequest) -> PermissionRequest:
        call = self._calls.get(event.tool_call_id)
        return PermissionRequest(
            id=event.approval_id,
            tool_call_id=event.tool_call_id,
            tool_name=None if call is None else call.tool_name,
            input=None if call is None or call.input is UNSET else call.input,
            reason=event.reason,
        )


def _run_request(session_id: str, prompt: str) -> RunRequest:
    """The request that continues the session, as a chat would make it."""
    before = UIMessage(id="before", role="assistant", parts=(), metadata={SESSION_KEY: session_id})
    question = UIMessage(id="prompt", role="user", parts=(TextUIPart(text=prompt),))
    return RunRequest(chat_id=session_id, messages=(before, question))


def _continued(run: RunRequest, response: _Response) -> RunRequest:
    """The request that continues a run with the answer to a permission request, as a chat would make it."""
    request = response.request
    approval = ToolApproval(id=request.id, approved=response.allow, reason=response.reason or UNSET)
    part = DynamicToolUIPart(
        tool_call_id=request.tool_call_id,
        tool_name=request.tool_name or "",
        state="approval-responded",
        approval=approval,
    )
    message = UIMessage(id="answer", role="assistant", parts=(part,))
    return msgspec.structs.replace(run, messages=(*run.messages, message), continued=message)


# -- agents that cannot request permission


class BatchRun:
    """An agent at work that asks nothing: `turnlog run` gives it the prompt, and its log has the rest."""

    def __init__(self, store_path: Path, agent: str, command: list[str], folder: Path, prompt: str) -> None:
        """Start nothing yet."""
        # -P: modules must not be imported from the folder that the agent works in.
        wrapper = [sys.executable, "-P", "-m", "turnlog", "run", "--agent", agent, "--store", str(store_path)]
        self._command = [*wrapper, "--", *command]
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
