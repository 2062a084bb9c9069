"""A run of an agent: its process, the lines that it prints, and the row that records it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import msgspec
from msgspec.structs import replace

from turnlog.chat.conversion import SESSION_KEY
from turnlog.chat.runtimes.command import AgentCommand, AgentStream
from turnlog.errors import TurnlogError
from turnlog.model import Usage, sum_usage
from turnlog.model.stream import Pause, RunFinish, RunStart, StepFinish, StreamError, StreamEvent
from turnlog.runs.lifecycle import OutputKeeper, ended, new_run, output_path, save, started
from turnlog.runs.sessions import link_run
from turnlog.store.runs import Run

logger = logging.getLogger(__name__)

_PIECE: Final = 65_536

MOST_LINE: Final = 64 << 20
"""Bytes of a line; the rest of a longer one is left out."""

_MOST_ERRORS: Final = 4096
"""Bytes of standard error that are kept: its end tells why a process died."""

_LAST_OUTPUT_SECONDS: Final = 0.5
"""So long is waited for more output of a process that has ended: what it started may hold its output open."""


class AgentProcess:
    """A running command. One reader at a time asks for its lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """Speak with a process that was started with pipes; see `start`."""
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._input, self._output, self._errors = process.stdin, process.stdout, process.stderr
        self._pending = bytearray()
        self._searched = 0
        """Bytes of `pending` in which no line ends."""
        self._last_errors = b""
        self._reading_errors = asyncio.create_task(self._read_errors())

    @classmethod
    async def start(cls, command: Sequence[str], *, cwd: Path | None, environment: Mapping[str, str] | None) -> Self:
        """Start a command; raise OSError where that cannot be done."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )
        return cls(process)

    @property
    def exit_code(self) -> int | None:
        """How it ended, negative for a signal; None while it runs."""
        return self._process.returncode

    @property
    def last_error(self) -> str:
        """The last line that it wrote to standard error."""
        lines = self._last_errors.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    async def write(self, data: bytes) -> None:
        """Write to its input. A process that does not read any more is told nothing."""
        with suppress(ConnectionError, RuntimeError):
            self._input.write(data)
            await self._input.drain()

    def close_input(self) -> None:
        """Nothing more will be written."""
        with suppress(ConnectionError, RuntimeError):
            self._input.close()

    async def line(self) -> bytes | None:
        """The next line of its output, the last one also without a newline; None behind it.

        May be cancelled: nothing is lost, and it can be asked for again.
        """
        while (end := self._pending.find(b"\n", self._searched)) < 0:
            self._searched = len(self._pending)
            piece = await self._read()
            if not piece:
                return self._take(len(self._pending)) if self._pending else None
            if self._searched > MOST_LINE:
                piece = piece[piece.find(b"\n") :] if b"\n" in piece else b""
            self._pending += piece
        return self._take(end)

    def _take(self, end: int) -> bytes:
        if end > MOST_LINE:
            logger.warning("a line of more than %d bytes was cut", MOST_LINE)
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        self._searched = 0
        return line

    async def _read(self) -> bytes:
        reading = asyncio.ensure_future(self._output.read(_PIECE))
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
        """Wait for its end; whether it has ended within the time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()
        return self._process.returncode is not None

    async def stop(self, grace: float) -> None:
        """End it, politely first: SIGINT, SIGTERM and SIGKILL to its group, so many seconds apart."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if self._process.returncode is None:
                self._signal(number)
                await self.wait(grace if number != signal.SIGKILL else None)
        # Also where the process itself has ended: what it started is of no use to anybody.
        self._signal(signal.SIGKILL)
        self.close_input()
        await asyncio.wait([self._reading_errors], timeout=_LAST_OUTPUT_SECONDS)
        self._reading_errors.cancel()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _read_errors(self) -> None:
        while piece := await self._errors.read(_PIECE):
            self._last_errors = (self._last_errors + piece)[-_MOST_ERRORS:]


_SILENCE_SECONDS: Final = 2.0
"""An agent that has asked and is silent for so long will not end its answer first."""


class RunRecord:
    """One run, from before its process to the session that its log tells of."""

    def __init__(
        self, store_path: Path | None, command: AgentCommand, arguments: Sequence[str], prompt: str, session: str | None
    ) -> None:
        """Make the run; without a store nothing is written."""
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
        """The session that the agent has told of."""
        self._store_path = store_path
        self._keeper = OutputKeeper(output_path(store_path, self.run.id)) if store_path is not None else None

    @property
    def is_kept(self) -> bool:
        """Whether there is a store for it."""
        return self._store_path is not None

    async def begin(self) -> None:
        """Write the row, before the process is there."""
        await self._write(self.run)

    async def start(self) -> None:
        """The process is there."""
        await self._write(started(self.run))

    def keep(self, line: bytes) -> None:
        """Keep a line that the process has printed."""
        if self._keeper is not None:
            self._keeper.add(line + b"\n")

    async def end(self, exit_code: int | None, *, stopped: bool = False, error: str | None = None) -> None:
        """The process has ended: write how, and find its log."""
        if self._keeper is not None:
            self._keeper.close()
        run = ended(self.run, exit_code, stopped=stopped, error=error)
        # An agent may end well when it is stopped: its answer is cut off all the same.
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


class LiveRun:
    """A process, what is read of it, and its row."""

    def __init__(self, process: AgentProcess, stream: AgentStream, record: RunRecord) -> None:
        """Read what the process prints by this stream."""
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
        """Write what the agent is to read."""
        words = self.stream.to_write()
        if words:
            await self.process.write(words)

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
            self._keep(line)
            if any(isinstance(event, RunFinish | StreamError) for event in self.stream.feed(line)):
                return

    async def close(self, grace: float) -> None:
        """End the process, whatever it does."""
        await self.process.stop(grace)
