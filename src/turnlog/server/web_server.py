"""uvicorn as `serve` needs it: it says when it answers, and ends with what runs beside it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from turnlog.server.background import Background
from turnlog.server.connections import Connection, accepted_at_once, close_late
from turnlog.server.live import LiveTopics

SHUTDOWN_SECONDS = 3
"""How long answers under way may take once the server has to stop."""

WAITING_CONNECTIONS = 1024
"""How many connections the system keeps until they are accepted; who comes then is late by a second."""

TICK_SECONDS = 1.0
"""Time between two looks at what the server must do by itself."""


class WebServer(uvicorn.Server):
    """Does something once it answers, and ends the background before it is gone."""

    def __init__(
        self,
        app: ASGIApp,
        begin: Callable[[], None],
        end: Callable[[], None],
        background: Background | None,
        topics: LiveTopics,
        gives_way: Callable[[], bool] | None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
                backlog=accepted_at_once(),
            )
        )
        self.gave_way = False
        self._gives_way = gives_way
        self._begin = begin
        self._end = end
        self._background = background
        self._topics = topics
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()

    async def main_loop(self) -> None:
        """Run until the server has to stop or gives way."""
        # uvicorn's own looks ten times a second whether it shall end: most of what a server at rest does. A tick whose
        # number ten divides also sets the time that answers bear.
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), TICK_SECONDS)
            close_late(self.server_state.connections)
            if self._gives_way is not None and not self.should_exit and await asyncio.to_thread(self._gives_way):
                self.gave_way = self.should_exit = True

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
            self._begin()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what is under way, and end the background."""
        # Here and not behind `run`, which a signal ends: nobody shall look for a server that is about to go.
        self._end()
        # Streams of changes have no end of their own, and answers under way are waited for.
        await asyncio.to_thread(self._topics.close)
        await super().shutdown(sockets)
        if self._background is not None:
            await asyncio.to_thread(self._background.stop)
