"""A runtime whose runs are processes of a coding agent: one start of its command answers one message.

The agent keeps the conversation in a session of its own, which the next run goes on with; its id comes back to the page
in the metadata of the answer, and from there with the next request. Where the agent asks for permission the run pauses
and its process waits. Every run is a row, linked to the agent's log when it has ended (`turnlog.runs`).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, cast

from msgspec.structs import replace

from turnlog.aisdk.parts import UIMessage
from turnlog.chat.runtime import AnswerRuntime, RunRequest
from turnlog.chat.runtimes.process import AgentProcess
from turnlog.chat.runtimes.record import RunRecord
from turnlog.errors import ConflictError, TurnlogError
from turnlog.model import Usage, sum_usage
from turnlog.model.stream import Pause, RunFinish, RunStart, StepFinish, StreamError, StreamEvent

logger = logging.getLogger(__name__)

SESSION_KEY: Final = "agentSession"
"""In the metadata of an answer: id of the session, `<agent>:<external id>`."""

RECORD_KEY: Final = "agentRecord"
"""In the metadata of an answer: the agent's own id of the answer's last record, where it has one."""

RUN_KEY: Final = "run"
"""In the metadata of an answer: id of the run."""

_SILENCE_SECONDS: Final = 2.0
"""An agent that has asked and is silent for so long will not end its answer first."""

_ID: Final = re.compile(r"[A-Za-z0-9][\w.-]*")
"""An id of the agent's own: nothing that its command could take for an option."""


class SessionPoint(NamedTuple):
    """Where a chat goes on."""

    session: str
    """The agent's own id of the session."""
    record: str | None = None
    """The record to go back to; None for the session's end."""


class AgentStream(Protocol):
    """One run of an agent, from what it prints to events, and back."""

    @property
    def is_asking(self) -> bool:
        """It has asked for permission. It may still be in the middle of an answer."""
        ...

    @property
    def is_waiting(self) -> bool:
        """It has asked, and will tell nothing before it has an answer."""
        ...

    def feed(self, line: bytes) -> list[StreamEvent]:
        """What a line tells. `RunFinish` and `StreamError` are the end."""
        ...

    def pause(self) -> list[StreamEvent]:
        """What is to be told before the run pauses: its step has ended."""
        ...

    def answers(self, message: UIMessage) -> bytes:
        """What the agent is to read: the page's answers to what it asked. Nothing where none of them is its own."""
        ...

    def interrupt(self) -> bytes | None:
        """What the agent is to read so that it stops; None where only a signal makes it."""
        ...


class AgentCommand(Protocol):
    """How an agent is started for a chat. Everything it depends on is said here."""

    @property
    def agent(self) -> str:
        """The agent's name, as of its logs."""
        ...

    @property
    def model(self) -> str | None:
        """The model that is asked for; the agent's own choice without one."""
        ...

    @property
    def system_prompt(self) -> str | None:
        """What is added to the agent's system prompt."""
        ...

    @property
    def cwd(self) -> Path | None:
        """Where it works; where the server does, without one."""
        ...

    @property
    def environment(self) -> Mapping[str, str] | None:
        """All of its environment; that of the server without one."""
        ...

    @property
    def keeps_input(self) -> bool:
        """Whether it reads on while it works."""
        ...

    def arguments(self, point: SessionPoint | None) -> list[str]:
        """The program and its arguments, to go on with a session or to begin one."""
        ...

    def opening(self, request: RunRequest) -> bytes:
        """What it reads first."""
        ...

    def open_stream(self, metadata: dict[str, Any]) -> AgentStream:
        """A reader of what it prints; the metadata goes into `RunStart`, with the session's id."""
        ...


class AgentRuntime:
    """A `turnlog.chat.runtime.Runtime`. Use it on one event loop; `close` it at the end."""

    def __init__(
        self,
        command: AgentCommand,
        *,
        store_path: Path | None = None,
        grace_seconds: float = 5.0,
        wait_seconds: float = 3600.0,
    ) -> None:
        """Answer chats by this command.

        Args:
            command: How the agent is started.
            store_path: The store in which runs are recorded; they are not, without one.
            grace_seconds: How long an agent has to stop by itself.
            wait_seconds: How long one that asked for permission waits for the answer.
        """
        self._command = command
        self._store_path = store_path
        self._grace = grace_seconds
        self._patience = wait_seconds
        self._answering = AnswerRuntime(self._answer)
        self._waiting: dict[str, _Live] = {}
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, str] = {}
        """Session -> its last record, as far as this process knows."""

    def subscribe(self, chat_id: str) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]:
        """Listen to the chat's run."""
        return self._answering.subscribe(chat_id)

    async def send(self, request: RunRequest) -> None:
        """Start the agent; raise ConflictError where it still answers this chat. One that waits is stopped."""
        await self._answering.send(request)

    async def resume(self, request: RunRequest) -> None:
        """Give the waiting agent its answers.

        Raises:
            ConflictError: It still answers this chat, or none waits for this answer any more.
        """
        live = self._waiting.get(request.chat_id)
        if live is None or request.continued is None:
            raise ConflictError(f"no agent waits for an answer of chat {request.chat_id}")
        await self._answering.send(request)

    async def abort(self, chat_id: str) -> None:
        """Stop the agent that answers the chat. One that waits for the page's permission waits on."""
        await self._answering.abort(chat_id)

    async def release(self, chat_id: str) -> None:
        """Stop the agent that waits for the page's permission, if one does: there will be no answer."""
        live = self._waiting.pop(chat_id, None)
        if live is not None:
            await self._stop(live)

    async def close(self) -> None:
        """Stop every agent that waits, and wait until every run is recorded. Abort first what still answers."""
        for chat_id in list(self._waiting):
            await self.release(chat_id)
        if self._ending:
            await asyncio.wait(list(self._ending.values()))

    # -- one run

    async def _answer(self, request: RunRequest) -> AsyncGenerator[StreamEvent, None]:
        chat_id = request.chat_id
        live = await self._begin(request)
        is_over = False
        try:
            async with aclosing(live.events()) as events:
                async for event in events:
                    yield event
                    is_over = isinstance(event, RunFinish | StreamError)
                    if isinstance(event, Pause):
                        self._keep_waiting(chat_id, live)
                    elif isinstance(event, RunFinish):
                        self._note_end(live, event)
        finally:
            if is_over:
                self._wind_up(chat_id, live)
            elif live is not self._waiting.get(chat_id):
                await self._stop(live)

    async def _begin(self, request: RunRequest) -> _Live:
        live = self._waiting.pop(request.chat_id, None)
        if live is not None and request.continued is not None:
            live.lose_no_patience()
            await live.process.write(live.stream.answers(request.continued))
            return live
        if live is not None:
            await self._stop(live)
        ending = self._ending.get(request.chat_id)
        if ending is not None:
            # Two processes of one session would both write its log.
            await asyncio.wait([ending])
        return await self._start(request)

    async def _start(self, request: RunRequest) -> _Live:
        command = self._command
        point = self._point_of(request)
        arguments = command.arguments(point)
        record = RunRecord(self._store_path, command, arguments, request.prompt, point.session if point else None)
        await record.begin()
        stream = command.open_stream({RUN_KEY: record.run.id} if self._store_path is not None else {})
        try:
            process = await AgentProcess.start(arguments, cwd=command.cwd, environment=command.environment)
        except OSError as error:
            await record.end(None, error=f"{arguments[0]}: {error.strerror}")
            raise TurnlogError(f"{arguments[0]} cannot be started: {error.strerror}") from error
        await record.start()
        live = _Live(process, stream, record)
        await process.write(command.opening(request))
        if not command.keeps_input:
            process.close_input()
        return live

    def _point_of(self, request: RunRequest) -> SessionPoint | None:
        """Where the chat goes on: behind its last answer, which is not the session's last where the user went back."""
        point = point_of(request, self._command.agent)
        if point is None:
            return None
        end = self._ends.pop(point.session, None)
        return point._replace(record=None) if end == point.record else point

    def _note_end(self, live: _Live, finish: RunFinish) -> None:
        record = finish.metadata.get(RECORD_KEY)
        if live.session is not None and isinstance(record, str):
            self._ends[live.session] = record

    def _keep_waiting(self, chat_id: str, live: _Live) -> None:
        self._waiting[chat_id] = live

        def lose_patience() -> None:
            if self._waiting.get(chat_id) is live:
                del self._waiting[chat_id]
                self._end_with(chat_id, self._stop(live))

        live.patience = asyncio.get_running_loop().call_later(self._patience, lose_patience)

    # -- the end of a run

    def _wind_up(self, chat_id: str, live: _Live) -> None:
        """Let the process end by itself, behind the page's back: its stream has ended."""
        self._end_with(chat_id, self._finish(live))

    def _end_with(self, chat_id: str, ending: Coroutine[Any, Any, None]) -> None:
        task = self._ending[chat_id] = asyncio.create_task(ending)
        task.add_done_callback(lambda task: self._forget(chat_id, task))

    def _forget(self, chat_id: str, task: asyncio.Task[None]) -> None:
        if self._ending.get(chat_id) is task:
            del self._ending[chat_id]
        if not task.cancelled() and task.exception() is not None:
            logger.error("the end of a run could not be recorded", exc_info=task.exception())

    async def _finish(self, live: _Live) -> None:
        live.process.close_input()
        await live.process.wait(self._grace)
        await live.close(self._grace)
        await live.record.end(live.process.exit_code, error=live.error)

    async def _stop(self, live: _Live) -> None:
        """Stop a process that is in the middle of a run."""
        live.lose_no_patience()
        words = live.stream.interrupt()
        if words is not None and live.process.exit_code is None:
            await live.process.write(words)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._grace):
                    await live.drain()
            live.process.close_input()
            await live.process.wait(self._grace)
        await live.close(self._grace)
        await live.record.end(live.process.exit_code, stopped=True)


class _Live:
    """A process, what is read of it, and its row."""

    def __init__(self, process: AgentProcess, stream: AgentStream, record: RunRecord) -> None:
        self.process = process
        self.stream = stream
        self.record = record
        self.error: str | None = None
        self.session: str | None = None
        """The agent's own id of the session, once it has told."""
        self.patience: asyncio.TimerHandle | None = None
        self._usages: list[Usage | None] = []

    def lose_no_patience(self) -> None:
        """Somebody cares for it."""
        if self.patience is not None:
            self.patience.cancel()

    async def events(self) -> AsyncGenerator[StreamEvent, None]:
        """What is told until the run ends, or waits. It can be asked for again behind a pause."""
        while not self.stream.is_waiting:
            try:
                async with asyncio.timeout(_SILENCE_SECONDS if self.stream.is_asking else None):
                    line = await self.process.line()
            except TimeoutError:
                break
            if line is None:
                await self.process.wait(1.0)
                yield self._died()
                return
            self.record.keep(line)
            for event in self.stream.feed(line):
                self._note(event)
                yield self._with_usage(event)
                if isinstance(event, RunFinish | StreamError):
                    return
        for event in self.stream.pause():
            yield self._with_usage(event)
        yield Pause(reason="approval")

    def _note(self, event: StreamEvent) -> None:
        if isinstance(event, StreamError):
            self.error = event.error_text
        elif isinstance(event, RunStart):
            self.session = str(event.metadata.get(SESSION_KEY, "")).partition(":")[2] or None

    def _with_usage(self, event: StreamEvent) -> StreamEvent:
        """The event; of a recorded run tokens are told once, at its end.

        The agent's log has those of each call. A chat that is kept in the same store must not count them again.
        """
        if not self.record.is_kept:
            return event
        if isinstance(event, StepFinish):
            self._usages.append(event.usage)
            return replace(event, usage=None)
        if isinstance(event, RunFinish):
            total = sum_usage(self._usages)
            return replace(event, usage=total.usage if total.calls > total.unknown_calls else None)
        return event

    def _died(self) -> StreamError:
        code = self.process.exit_code
        logger.warning("an agent ended in the middle of a run (exit code %s): %s", code, self.process.last_error)
        self.error = self.process.last_error or None
        how = "closed its output" if code is None else f"ended with exit code {code}"
        return StreamError(error_text=f"The agent {how} before it had answered.", kind="agent-ended")

    async def drain(self) -> None:
        """Read on to the end of the run, telling nobody."""
        while (line := await self.process.line()) is not None:
            self.record.keep(line)
            if any(isinstance(event, RunFinish | StreamError) for event in self.stream.feed(line)):
                return

    async def close(self, grace: float) -> None:
        """End the process, whatever it does."""
        await self.process.stop(grace)


def point_of(request: RunRequest, agent: str) -> SessionPoint | None:
    """Where the chat's last answer stands in a session of the agent; None where there is none."""
    for message in reversed(request.messages):
        metadata: Any = message.metadata
        if message.role == "assistant" and isinstance(metadata, dict):
            facts = cast("dict[str, Any]", metadata)
            owner, _, session = str(facts.get(SESSION_KEY, "")).partition(":")
            if owner == agent:
                record = str(facts.get(RECORD_KEY, ""))
                found = SessionPoint(session, record if _ID.fullmatch(record) else None)
                return found if _ID.fullmatch(session) else None
    return None
