"""Agents that can ask for leave without a screen: they are spoken to, and what they ask waits for the page's answer.

How such an agent is started is said by its description (`Agent.interactive_command`). Their runs live on one event loop
in a thread of its own.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from turnlog import agents
from turnlog.aisdk.parts import DynamicToolUIPart, TextUIPart, ToolApproval, UIMessage
from turnlog.chat.conversion import SESSION_KEY
from turnlog.chat.runtime import RunRequest
from turnlog.chat.runtimes import AgentCommand, AgentRuntime
from turnlog.errors import TurnlogError
from turnlog.model import Session
from turnlog.model.base import RawJson
from turnlog.model.stream import ApprovalRequest, Pause, RunStart, StreamError, StreamEvent, ToolInputAvailable

_GRACE_SECONDS = 2.0
"""How long an agent that is stopped has for each way of telling it."""

_log = logging.getLogger(__name__)


def can_ask(agent: str) -> bool:
    """Whether this agent can ask for leave without a screen."""
    return _interactive_command(agent) is not None


def _interactive_command(agent: str) -> Callable[[Path], AgentCommand] | None:
    """What starts an agent in a folder, with its own settings; None where it cannot ask or is not installed."""
    try:
        target = agents.agent(agent).interactive_command
    except TurnlogError:
        return None
    return None if target is None else agents.load_target(target).with_own_settings


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A call that the agent asks leave for."""

    id: str
    tool_call_id: str
    tool_name: str | None = None
    input: RawJson = UNSET
    reason: str | None = None
    """What the agent says of it."""
    asked_at: datetime


class _Answer(NamedTuple):
    question: Question
    allow: bool
    reason: str | None


class AskingRuns:
    """The runs of agents that can ask, and the event loop on which they are."""

    def __init__(self, store_path: Path) -> None:
        """Start nothing yet."""
        self._store_path = store_path
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def begin(self, session: Session, folder: Path, prompt: str, on_question: Callable[[], None]) -> AskingRun | None:
        """Start the session's agent; None where it cannot ask. `on_question` hears of each, on any thread."""
        command = _interactive_command(session.agent)
        if command is None:
            return None
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_turn, args=(self._loop,), name="turnlog-prompts", daemon=True)
            self._thread.start()
        runtime = AgentRuntime(command(folder), store_path=self._store_path, grace_seconds=_GRACE_SECONDS)
        return AskingRun(self._loop, runtime, session.id, prompt, on_question)

    def close(self) -> None:
        """Let the event loop end; every run has."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


class AskingRun:
    """One agent at work. Any thread may ask."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        runtime: AgentRuntime,
        session_id: str,
        prompt: str,
        on_question: Callable[[], None],
    ) -> None:
        """Begin to answer the prompt."""
        self._loop = loop
        self._runtime = runtime
        self._session_id = session_id
        self._on_question = on_question
        self._lock = threading.Lock()
        self._questions: dict[str, Question] = {}
        self._calls: dict[str, ToolInputAvailable] = {}
        self._answers: asyncio.Queue[_Answer | None] = asyncio.Queue()
        self._problem: str | None = None
        self._is_paused = self._is_stopped = False
        self.has_begun = False
        """Whether the agent has said that it goes on with the session."""
        self._ended: Future[None] = asyncio.run_coroutine_threadsafe(self._run(prompt), loop)

    @property
    def questions(self) -> tuple[Question, ...]:
        """What waits for an answer."""
        with self._lock:
            return tuple(self._questions.values())

    def answer(self, question_id: str, *, allow: bool, reason: str | None) -> bool:
        """Tell the agent whether it may; False where it does not ask that."""
        with self._lock:
            question = self._questions.pop(question_id, None)
        if question is not None:
            self._put(_Answer(question, allow, reason))
        return question is not None

    def end(self) -> str | None:
        """Wait until it has ended; why it failed, None where it did not or was stopped."""
        try:
            self._ended.result()
        except Exception as error:  # Whatever it was: the session must not stay taken.
            _log.warning("a prompt of %s failed", self._session_id, exc_info=error)
            self._problem = str(error) or type(error).__name__
        return None if self._is_stopped else self._problem

    def stop(self) -> None:
        """Tell it to end, and wait for it."""
        self._is_stopped = self.has_begun = True
        self._put(None)
        asyncio.run_coroutine_threadsafe(self._runtime.abort(self._session_id), self._loop).result()
        self.end()

    def _put(self, answer: _Answer | None) -> None:
        self._loop.call_soon_threadsafe(self._answers.put_nowait, answer)

    # -- on the event loop

    async def _run(self, prompt: str) -> None:
        request = _request(self._session_id, prompt)
        try:
            await self._listen(request)
            while self._is_paused:
                answer = await self._answers.get()
                if answer is None or self._is_stopped:
                    break
                await self._listen(_continued(request, answer))
        finally:
            await self._runtime.release(self._session_id)
            await self._runtime.close()

    async def _listen(self, request: RunRequest) -> None:
        self._is_paused = False
        async with self._runtime.subscribe(self._session_id) as events:
            await (self._runtime.resume(request) if request.continued else self._runtime.send(request))
            async for event in events:
                self._note(event)

    def _note(self, event: StreamEvent) -> None:
        match event:
            case RunStart():
                self.has_begun = True
            case ToolInputAvailable():
                self._calls[event.tool_call_id] = event
            case ApprovalRequest():
                question = self._question(event)
                with self._lock:
                    self._questions[question.id] = question
                self._on_question()
            case Pause():
                self._is_paused = True
            case StreamError():
                self._problem = event.error_text
            case _:
                return

    def _question(self, asked: ApprovalRequest) -> Question:
        call = self._calls.get(asked.tool_call_id)
        told: dict[str, Any] = {} if call is None else {"tool_name": call.tool_name, "input": call.input}
        return Question(
            id=asked.approval_id,
            tool_call_id=asked.tool_call_id,
            reason=asked.reason,
            asked_at=datetime.now(UTC),
            **told,
        )


def _request(session_id: str, prompt: str) -> RunRequest:
    """To go on with the session, by what a chat would know of it."""
    before = UIMessage(id="before", role="assistant", parts=(), metadata={SESSION_KEY: session_id})
    asked = UIMessage(id="prompt", role="user", parts=(TextUIPart(text=prompt),))
    return RunRequest(chat_id=session_id, messages=(before, asked))


def _continued(request: RunRequest, answer: _Answer) -> RunRequest:
    """The run that goes on with an answer, as a chat would give it."""
    question = answer.question
    approval = ToolApproval(id=question.id, approved=answer.allow, reason=answer.reason or UNSET)
    part = DynamicToolUIPart(
        tool_call_id=question.tool_call_id,
        tool_name=question.tool_name or "",
        state="approval-responded",
        approval=approval,
    )
    message = UIMessage(id="answer", role="assistant", parts=(part,))
    return msgspec.structs.replace(request, messages=(*request.messages, message), continued=message)
