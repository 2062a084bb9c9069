"""One running process of an agent: lines in, events out, and its row kept up to date."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Final

from msgspec.structs import replace

from turnlog.chat.answer_metadata import SESSION_KEY
from turnlog.chat.runtimes.command import AgentStream
from turnlog.chat.runtimes.process import AgentProcess
from turnlog.chat.runtimes.record import RunRecord
from turnlog.model import Usage, sum_usage
from turnlog.model.stream import Pause, RunFinish, RunStart, StepFinish, StreamError, StreamEvent

logger = logging.getLogger(__name__)

_SILENCE_SECONDS: Final = 2.0
"""An agent that has asked and is silent for so long will not end its answer first."""


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
