"""The server of `serve`: it says when it answers, and ends with what runs beside it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from starlette.types import ASGIApp

from turnlog.server.background import Background
from turnlog.server.bounded_server import BoundedServer
from turnlog.server.live import LiveTopics

SHUTDOWN_SECONDS = 3
"""How long answers under way may take once the server has to stop."""


class WebServer(BoundedServer):
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
        super().__init__(app, SHUTDOWN_SECONDS)
        self.gave_way = False
        self._gives_way = gives_way
        self._begin = begin
        self._end = end
        self._background = background
        self._topics = topics

    def begin(self) -> None:
        """Say that it answers."""
        self._begin()

    async def look(self) -> None:
        """End where another server shall be in its place."""
        if self._gives_way is not None and not self.should_exit and await asyncio.to_thread(self._gives_way):
            self.gave_way = self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what is under way, and end the background."""
        # Here and not behind `run`, which a signal ends: nobody shall look for a server that is about to go.
        self._end()
        # Streams of changes have no end of their own, and answers under way are waited for.
        await asyncio.to_thread(self._topics.close)
        await super().shutdown(sockets)
        if self._background is not None:
            await asyncio.to_thread(self._background.stop)
