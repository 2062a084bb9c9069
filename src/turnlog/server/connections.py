"""What a connection may take of the server: time for a request, bytes of its head, and a place among all connections.

uvicorn leaves these open: it limits only how long a connection rests between two requests, and its bound on
connections refuses the new ones, however long the old ones have said nothing. Here a request that is not sent in time
is given up, and where there are too many connections the one goes that has been silent longest without a whole
request. What is being answered stays as long as it takes: a stream of changes, a client that reads slowly.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from functools import cache
from http import HTTPStatus
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from turnlog.platforms.connections import is_local
from turnlog.platforms.processes import most_descriptors
from turnlog.server.network import PEER
from turnlog.server.peers import Peer

HEAD_SECONDS = 10.0
"""How long a connection may be without a whole head of a request."""

BODY_SECONDS = 60.0
"""How long a body may take from the head on."""

MOST_CONNECTIONS = 512

_SHARE_OF_DESCRIPTORS = 4
"""One in so many of the descriptors that the process may have is a connection's; databases and files need others."""

MOST_HEAD_BYTES = 64 << 10
"""Bytes that may come without the end of a head, or a piece of a body."""

MOST_PIPELINED = 16
"""Requests that a connection may send before the first of them is answered."""


class BoundedConnection(HttpToolsProtocol):
    """A connection whose requests have heads of a bounded size, and of which not many wait."""

    _unread = 0
    """Bytes since the parser last got to the end of something."""

    def data_received(self, data: bytes) -> None:
        """Read on; uvicorn calls it."""
        self._unread += len(data)
        super().data_received(data)
        if self._unread > MOST_HEAD_BYTES and not self.transport.is_closing():
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def on_message_begin(self) -> None:
        """A request begins."""
        if len(self.pipeline) >= MOST_PIPELINED:
            raise ValueError("too many requests at once")  # the parser stops, and uvicorn answers 400
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._unread = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._unread = 0
        super().on_message_complete()

    @property
    def _has_head(self) -> bool:
        """Whether there is a request that is not answered."""
        cycle = cast(RequestResponseCycle | None, self.cycle)
        return cycle is not None and not cycle.response_complete

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer without the application, as far as an answer is due, and close."""
        is_due = not self._has_head or not self.cycle.response_started
        if is_due and (self._unread or self._has_head or status is HTTPStatus.SERVICE_UNAVAILABLE):
            more = "Retry-After: 1\r\n" if status is HTTPStatus.SERVICE_UNAVAILABLE else ""
            line = f"HTTP/1.1 {status.value} {status.phrase}\r\n"
            self.transport.write(f"{line}Content-Length: 0\r\n{more}Connection: close\r\n\r\n".encode())
        self.transport.close()


class Connection(BoundedConnection):
    """One connection of a client of `serve`: also bounded in time, and one of a bounded number."""

    _peer: Peer
    _last_received: float
    """When it last sent anything."""
    _waits_since: float
    """Since when the rest of a request is awaited: its head, then its body."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; uvicorn calls it."""
        super().connection_made(cast(asyncio.Transport, transport))
        found: socket.socket | None = transport.get_extra_info("socket")
        is_own = found is not None and is_local(found)
        server = None if self.server is None or self.server[1] is None else (self.server[0], self.server[1])
        self._peer = Peer(self.client, server, is_own=is_own)
        self._last_received = self._waits_since = self.loop.time()
        if len(self.connections) > most_connections():
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Read on."""
        self._last_received = self.loop.time()
        super().data_received(data)

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        cast(dict[str, Any], self.scope)[PEER] = self._peer

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._waits_since = self.loop.time()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """The next request may come."""
        self._waits_since = self.loop.time()
        if not self.pipeline:
            self.cycle.body.clear()  # what came of a body that nobody reads any more
        super().on_response_complete()

    def close_if_late(self) -> None:
        """Give up a request that is not whole in time."""
        if self._is_answering or self.transport.is_closing():
            return
        seconds = BODY_SECONDS if self._has_head else HEAD_SECONDS
        if self.loop.time() - self._waits_since > seconds:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)

    @property
    def _is_answering(self) -> bool:
        """Whether a whole request is under way, or its answer is still being read."""
        # Whatever is behind the first request of the pipeline, that one is whole.
        is_whole = bool(self.pipeline) or (self._has_head and not self.cycle.more_body)
        return is_whole or self.transport.get_write_buffer_size() > 0

    def _place(self) -> tuple[int, float]:
        """The smaller, the sooner it goes when there are too many."""
        if not self._is_answering:
            return 0, self._last_received
        return (2 if self._peer.is_allowed else 1), self._last_received

    def _make_room(self) -> None:
        others = (each for each in cast(set[Connection], self.connections) if each is not self)
        last = min(others, key=Connection._place, default=None)
        if last is None or last._place()[0] == 2:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)
            return
        # Not only when the transport is gone, later: who comes meanwhile must not find it here.
        self.connections.discard(last)
        last.transport.abort()


def close_late(connections: Iterable[object]) -> None:
    """Close what has not sent a whole request in time. To be called every second or so."""
    for connection in list(connections):
        if isinstance(connection, Connection):
            connection.close_if_late()


@cache
def most_connections() -> int:
    """How many connections there may be: far fewer than the process may have descriptors."""
    descriptors = most_descriptors()
    if descriptors is None:
        return MOST_CONNECTIONS
    return max(1, min(MOST_CONNECTIONS, descriptors // _SHARE_OF_DESCRIPTORS))


def accepted_at_once() -> int:
    """How many connections may be accepted before one is counted: they have their descriptors by then."""
    return max(1, most_connections() // 8)
