"""uvicorn with connections that are bounded in time and number (`connections`)."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from types import FrameType

import uvicorn
from starlette.types import ASGIApp
from uvicorn.config import LOGGING_CONFIG

from turnlog.server.connections import Connection, accepted_at_once, close_late

WAITING_CONNECTIONS = 1024
"""How many connections the system keeps until they are accepted; who comes then is late by a second."""

TICK_SECONDS = 1.0
"""Time between two looks at what the server must do by itself."""


class BoundedServer(uvicorn.Server):
    """A server whose connections end when they keep it waiting, and that stops at once when it has to."""

    def __init__(
        self,
        app: ASGIApp,
        shutdown_seconds: int,
        connection: type[Connection] = Connection,
        *,
        has_log: bool = True,
    ) -> None:
        """`shutdown_seconds`: how long answers under way may take once it has to stop; `has_log`: uvicorn's own."""
        super().__init__(
            uvicorn.Config(
                app,
                http=connection,
                log_config=LOGGING_CONFIG if has_log else None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                timeout_graceful_shutdown=shutdown_seconds,
                backlog=accepted_at_once(connection.most),
            )
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()

    def begin(self) -> None:
        """Called once the server answers."""

    async def look(self) -> None:
        """Called every second or so."""

    async def main_loop(self) -> None:
        """Run until the server has to stop."""
        # uvicorn's own looks ten times a second whether it shall end: most of what a server at rest does. A tick whose
        # number ten divides also sets the time that answers bear.
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), TICK_SECONDS)
            close_late(self.server_state.connections)
            await self.look()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop at once, not at the next tick."""
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._ended.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        await super().startup(sockets)
        if self.started:
            for listener in sockets or ():
                # asyncio accepts as many at once as wait at most: here few, there many.
                listener.listen(WAITING_CONNECTIONS)
            self.begin()
