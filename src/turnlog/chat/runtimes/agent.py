"""A runtime whose runs are processes of a coding agent: one start of its command answers one message.

The agent keeps the conversation in its own session, which the next run continues; the session's id goes to the
page in the metadata of the answer, and comes back with the next request. When the agent asks for permission, the run
pauses and its process waits. Every run is a row, linked to the agent's log when it has ended (`turnlog.runs`).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec
from msgspec.structs import replace

from turnlog.chat.conversion import RECORD_KEY, RUN_KEY, SESSION_KEY
from turnlog.chat.numbers import check_numbers
from turnlog.chat.runtime import FunctionRuntime, RunRequest
from turnlog.chat.runtimes.command import AgentCommand, AgentStream, SessionPoint, point_of
from turnlog.errors import ConflictError, TurnlogError
from turnlog.model import Usage, sum_usage
from turnlog.model.stream import Pause, RunFinish, RunStart, StepFinish, StreamError, StreamEvent
from turnlog.paths import find_program
from turnlog.platforms.processes import How, in_own_group, stop_group
from turnlog.runs.lifecycle import OutputKeeper, ended, new_run, output_path, save, started
from turnlog.runs.sessions import link_run
from turnlog.store.values import Run

if TYPE_CHECKING:
    from turnlog.chat.runtimes.command import AgentCommand


logger = logging.getLogger(__name__)

_READ_BYTES: Final = 65_536

MAX_LINE_BYTES: Final = 64 << 20
"""The longest line; the rest of a longer one is dropped."""

_MAX_ERROR_BYTES: Final = 4096
"""How much of the end of standard error is kept: it says why a process died."""

_LAST_OUTPUT_SECONDS: Final = 0.5
"""How long to wait for more output of a process that has ended: its children may keep the output open."""

_SILENCE_SECONDS: Final = 2.0
"""An agent that has requested permission and printed nothing for so long will not complete its response first."""


_STEPS: Final[tuple[How, ...]] = ("interrupt", "terminate", "kill")


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

        Raises ValueError for seconds that are below 0 or without end.
        """
        check_numbers("AgentRuntime", grace_seconds=grace_seconds, wait_seconds=wait_seconds)
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
        # A paused run is neither over nor to be stopped: its process waits for the page's next request.
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
        # An agent that is killed leaves a log without the end of its turn, so its own protocol comes first.
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


class LiveRun:
    """A running process, its stream and its row."""

    def __init__(self, process: AgentProcess, stream: AgentStream, record: RunRecord) -> None:
        """Read the process by this stream, and record it in this row."""
        self.process = process
        self.stream = stream
        self.record = record
        self.error: str | None = None
        self.session: str | None = None
        """The agent's own id of the session, once it has named it."""
        self.timeout: asyncio.TimerHandle | None = None
        self._usages: list[Usage | None] = []

    def cancel_timeout(self) -> None:
        """Stop waiting for the end of the time in which the page must answer."""
        if self.timeout is not None:
            self.timeout.cancel()

    async def events(self) -> AsyncGenerator[StreamEvent, None]:
        """The events until the run ends or pauses. Call it again after a pause."""
        await self.write()
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
            self._keep(line)
            for event in self.stream.feed(line):
                self._note(event)
                yield self._with_usage(event)
                if isinstance(event, RunFinish | StreamError):
                    return
            await self.write()
        for event in self.stream.pause():
            yield self._with_usage(event)
        yield Pause(reason="approval")

    async def write(self) -> None:
        """Write what the stream has for the agent."""
        data = self.stream.to_write()
        if data:
            await self.process.write(data)

    def _keep(self, line: bytes) -> None:
        if self.stream.prints_log:
            self.record.keep(line)

    def _note(self, event: StreamEvent) -> None:
        if isinstance(event, StreamError):
            self.error = event.error_text
        elif isinstance(event, RunStart):
            session_id = str(event.metadata.get(SESSION_KEY, ""))
            self.session = session_id.partition(":")[2] or None
            self.record.session_id = session_id

    def _with_usage(self, event: StreamEvent) -> StreamEvent:
        """The event; in a recorded run, without the usage of steps, and with the whole usage at the end.

        The agent's log has the usage of each model call. A chat in the same store must not count it again.
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
        """Read on to the end of the run, and drop its events."""
        while (line := await self.process.line()) is not None:
            self._keep(line)
            if any(isinstance(event, RunFinish | StreamError) for event in self.stream.feed(line)):
                return

    async def close(self, grace: float) -> None:
        """Stop the process."""
        await self.process.stop(grace)


class RunRecord:
    """The row of a run, from before its process to its session; a failing store never stops the run."""

    def __init__(
        self, store_path: Path | None, command: AgentCommand, arguments: Sequence[str], prompt: str, session: str | None
    ) -> None:
        """Describe the run; without a store nothing is written."""
        self.run: Run = new_run(
            "runtime",
            agent=command.agent,
            command=arguments,
            cwd=str(command.cwd or Path.cwd()),
            prompt=prompt or None,
            model=command.model,
            system_prompt=command.system_prompt,
            session_id=f"{command.agent}:{session}" if session else None,
        )
        self.session_id: str | None = None
        """The id of the session, once the agent has named it."""
        self._store_path = store_path
        self._keeper = OutputKeeper(output_path(store_path, self.run.id)) if store_path is not None else None

    @property
    def is_kept(self) -> bool:
        """Whether the run is recorded."""
        return self._store_path is not None

    async def begin(self) -> None:
        """Write the row before the process is started."""
        await self._write(self.run)

    async def start(self) -> None:
        """Record the start of the process."""
        await self._write(started(self.run))

    def keep(self, line: bytes) -> None:
        """Keep a line that the process printed."""
        if self._keeper is not None:
            self._keeper.add(line + b"\n")

    async def end(self, exit_code: int | None, *, stopped: bool = False, error: str | None = None) -> None:
        """Record the end of the process, and link the run to its log."""
        if self._keeper is not None:
            self._keeper.close()
        run = ended(self.run, exit_code, stopped=stopped, error=error)
        # An agent may exit with 0 when it is stopped: its answer is incomplete all the same.
        await self._write(msgspec.structs.replace(run, status="cancelled") if stopped else run)
        store_path = self._store_path
        if store_path is not None and self.run.started_at is not None:
            await self._try(lambda: link_run(store_path, self.run, self.session_id))

    async def _write(self, run: Run) -> None:
        self.run = run
        store_path = self._store_path
        if store_path is not None:
            await self._try(lambda: save(store_path, run))

    async def _try(self, write: Callable[[], Run]) -> None:
        try:
            self.run = await asyncio.to_thread(write)
        except TurnlogError:
            logger.exception("run %s could not be recorded", self.run.id)


class AgentProcess:
    """A running command, read and written in lines, by one reader at a time.

    It has a process group of its own, so that stopping it stops its children too.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """Use a process that was started with pipes; see `start`."""
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._input, self._output, self._errors = process.stdin, process.stdout, process.stderr
        self._pending = bytearray()
        self._searched = 0
        """How many bytes of `_pending` were searched for the end of a line."""
        self._last_errors = b""
        self._reading_errors = asyncio.create_task(self._read_errors())

    @classmethod
    async def start(cls, command: Sequence[str], *, cwd: Path | None, environment: Mapping[str, str] | None) -> Self:
        """Start a command. Raises OSError if that fails."""
        program = find_program(command[0], environment)
        if program is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        process = await asyncio.create_subprocess_exec(
            program,
            *command[1:],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=cwd,
            env=environment,
            **in_own_group(),
        )
        return cls(process)

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.returncode

    @property
    def last_error(self) -> str:
        """The last line that it wrote to standard error."""
        lines = self._last_errors.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    async def write(self, data: bytes) -> None:
        """Write to its input; ignored if it does not read any more."""
        with suppress(ConnectionError, RuntimeError):
            self._input.write(data)
            await self._input.drain()

    def close_input(self) -> None:
        """Close its input."""
        with suppress(ConnectionError, RuntimeError):
            self._input.close()

    async def line(self) -> bytes | None:
        """The next line of its output, without the newline; None after the last one.

        May be cancelled and called again: nothing is lost.
        """
        while (end := self._pending.find(b"\n", self._searched)) < 0:
            self._searched = len(self._pending)
            piece = await self._read()
            if not piece:
                return self._take(len(self._pending)) if self._pending else None
            if self._searched > MAX_LINE_BYTES:
                piece = piece[piece.find(b"\n") :] if b"\n" in piece else b""
            self._pending += piece
        return self._take(end)

    def _take(self, end: int) -> bytes:
        if end > MAX_LINE_BYTES:
            logger.warning("a line of more than %d bytes was cut", MAX_LINE_BYTES)
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        self._searched = 0
        return line

    async def _read(self) -> bytes:
        reading = asyncio.ensure_future(self._output.read(_READ_BYTES))
        ended = asyncio.ensure_future(self._process.wait())
        try:
            await asyncio.wait([reading, ended], return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                await asyncio.wait([reading], timeout=_LAST_OUTPUT_SECONDS)
            return reading.result() if reading.done() else b""
        finally:
            reading.cancel()
            ended.cancel()

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for its end, at most so many seconds; whether it has ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()
        return self._process.returncode is not None

    async def stop(self, grace: float) -> None:
        """Interrupt, terminate and kill its group, `grace` seconds apart, until it has ended."""
        for how in _STEPS:
            if self._process.returncode is None:
                stop_group(self._process, how)
                await self.wait(grace if how != "kill" else None)
        # Also if the process itself has ended: its children are of no use to anybody.
        stop_group(self._process, "kill")
        self.close_input()
        await asyncio.wait([self._reading_errors], timeout=_LAST_OUTPUT_SECONDS)
        self._reading_errors.cancel()

    async def _read_errors(self) -> None:
        while piece := await self._errors.read(_READ_BYTES):
            self._last_errors = (self._last_errors + piece)[-_MAX_ERROR_BYTES:]
