"""A process that is spoken to in lines. It has a process group of its own, so that ending it ends what it started."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

logger = logging.getLogger(__name__)

_PIECE: Final = 65_536

MOST_LINE: Final = 64 << 20
"""Bytes of a line; the rest of a longer one is left out."""

_MOST_ERRORS: Final = 4096
"""Bytes of standard error that are kept: its end tells why a process died."""

_SILENCE_SECONDS: Final = 0.5
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
                await asyncio.wait([reading], timeout=_SILENCE_SECONDS)
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
        await asyncio.wait([self._reading_errors], timeout=_SILENCE_SECONDS)
        self._reading_errors.cancel()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _read_errors(self) -> None:
        while piece := await self._errors.read(_PIECE):
            self._last_errors = (self._last_errors + piece)[-_MOST_ERRORS:]
