"""The row of a runtime's run, written beside the event loop. Trouble with the store never holds the run up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from turnlog.errors import TurnlogError
from turnlog.runs.lifecycle import OutputKeeper, ended, new_run, output_path, save, started
from turnlog.runs.sessions import link_run
from turnlog.store.runs import Run

if TYPE_CHECKING:
    from turnlog.chat.runtimes.command import AgentCommand

logger = logging.getLogger(__name__)


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
