"""A runtime whose runs are processes of a coding agent: one start of its command answers one message.

The agent keeps the conversation in a session of its own, which the next run continues; the session's id goes to the
page in the metadata of the answer, and comes back with the next request. When the agent asks for permission, the run
pauses and its process waits. Every run is a row, linked to the agent's log when it has ended (`turnlog.runs`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turnlog.chat.conversion import RECORD_KEY, RUN_KEY
from turnlog.chat.runtime import FunctionRuntime, RunRequest
from turnlog.chat.runtimes.command import AgentCommand, SessionPoint, point_of
from turnlog.chat.runtimes.live import AgentProcess, LiveRun, RunRecord
from turnlog.errors import ConflictError, TurnlogError
from turnlog.model.stream import Pause, RunFinish, StreamError, StreamEvent

if TYPE_CHECKING:
    from turnlog.chat.runtimes.command import AgentCommand


logger = logging.getLogger(__name__)


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
            command: Starts the agent.
            store_path: The store in which runs are recorded; None to record none.
            grace_seconds: How long an agent may take for each way of stopping it.
            wait_seconds: How long an agent that requested permission waits for the answer.
        """
        self._command = command
        self._store_path = store_path
        self._grace = grace_seconds
        self._wait_seconds = wait_seconds
        self._answering = FunctionRuntime(self._answer)
        self._waiting: dict[str, LiveRun] = {}
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._last_records: dict[str, str] = {}
        """Session -> its last record, as far as this process knows it."""

    def subscribe(self, chat_id: str) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]:
        """Listen to the chat's run."""
        return self._answering.subscribe(chat_id)

    async def send(self, request: RunRequest) -> None:
        """Start the agent, after stopping one that waits. Raises ConflictError if one still answers this chat."""
        await self._answering.send(request)

    async def resume(self, request: RunRequest) -> None:
        """Give the waiting agent the page's approvals.

        Raises:
            ConflictError: It still answers this chat, or no agent waits any more.
        """
        live = self._waiting.get(request.chat_id)
        if live is None or request.continued is None:
            raise ConflictError(f"no agent waits for an answer of chat {request.chat_id}")
        await self._answering.send(request)

    async def abort(self, chat_id: str) -> None:
        """Stop the agent that answers the chat, but not one that waits for the page's permission."""
        await self._answering.abort(chat_id)

    async def release(self, chat_id: str) -> None:
        """Stop the agent that waits for the page's permission, if there is one."""
        live = self._waiting.pop(chat_id, None)
        if live is not None:
            await self._stop(live)

    async def close(self) -> None:
        """Stop every waiting agent, and wait until all runs are recorded. First abort the ones that still answer."""
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
                self._end_in_background(chat_id, live)
            elif live is not self._waiting.get(chat_id):
                await self._stop(live)

    async def _begin(self, request: RunRequest) -> LiveRun:
        live = self._waiting.pop(request.chat_id, None)
        if live is not None and request.continued is not None:
            live.cancel_timeout()
            live.stream.answer(request.continued)
            return live
        if live is not None:
            await self._stop(live)
        ending = self._ending.get(request.chat_id)
        if ending is not None:
            # Two processes of one session would write its log at once.
            await asyncio.wait([ending])
        return await self._start(request)

    async def _start(self, request: RunRequest) -> LiveRun:
        command = self._command
        point = self._point_of(request)
        arguments = command.arguments(point)
        record = RunRecord(self._store_path, command, arguments, request.prompt, point.session if point else None)
        await record.begin()
        stream = command.open_stream({RUN_KEY: record.run.id} if record.is_kept else {}, request, point)
        try:
            process = await AgentProcess.start(arguments, cwd=command.cwd, environment=command.environment)
        except OSError as error:
            await record.end(None, error=f"{arguments[0]}: {error.strerror}")
            raise TurnlogError(f"{arguments[0]} cannot be started: {error.strerror}") from error
        await record.start()
        live = LiveRun(process, stream, record)
        await live.write()
        if not command.keeps_input:
            process.close_input()
        return live

    def _point_of(self, request: RunRequest) -> SessionPoint | None:
        """Where the chat continues: after its last answer, which is not the session's last if the user went back."""
        point = point_of(request, self._command.agent)
        if point is None:
            return None
        end = self._last_records.pop(point.session, None)
        return point._replace(record=None) if end == point.record else point

    def _note_end(self, live: LiveRun, finish: RunFinish) -> None:
        record = finish.metadata.get(RECORD_KEY)
        if live.session is not None and isinstance(record, str):
            self._last_records[live.session] = record

    def _keep_waiting(self, chat_id: str, live: LiveRun) -> None:
        self._waiting[chat_id] = live

        def give_up() -> None:
            if self._waiting.get(chat_id) is live:
                del self._waiting[chat_id]
                self._end_with(chat_id, self._stop(live))

        live.timeout = asyncio.get_running_loop().call_later(self._wait_seconds, give_up)

    # -- the end of a run

    def _end_in_background(self, chat_id: str, live: LiveRun) -> None:
        """Let the process end by itself: the page's stream has ended already."""
        self._end_with(chat_id, self._finish(live))

    def _end_with(self, chat_id: str, ending: Coroutine[Any, Any, None]) -> None:
        task = self._ending[chat_id] = asyncio.create_task(ending)
        task.add_done_callback(lambda task: self._forget(chat_id, task))

    def _forget(self, chat_id: str, task: asyncio.Task[None]) -> None:
        if self._ending.get(chat_id) is task:
            del self._ending[chat_id]
        if not task.cancelled() and task.exception() is not None:
            logger.error("the end of a run could not be recorded", exc_info=task.exception())

    async def _finish(self, live: LiveRun) -> None:
        live.process.close_input()
        await live.process.wait(self._grace)
        await live.close(self._grace)
        await live.record.end(live.process.exit_code, error=live.error)

    async def _stop(self, live: LiveRun) -> None:
        """Stop a process in the middle of a run: by its protocol, then by signals."""
        live.cancel_timeout()
        interrupt = live.stream.interrupt()
        if interrupt is not None and live.process.exit_code is None:
            await live.process.write(interrupt)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._grace):
                    await live.drain()
            live.process.close_input()
            await live.process.wait(self._grace)
        await live.close(self._grace)
        await live.record.end(live.process.exit_code, stopped=True)
