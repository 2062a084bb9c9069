"""What a connection may take of the server: time for a request, bytes of its head, and a place among all connections.

uvicorn leaves these open: it limits only how long a connection rests between two requests, and its bound on
connections refuses the new ones, however long the old ones have said nothing. Here a request that is not sent in time
is given up, and where there are too many connections the one goes that has been silent longest without a whole
request. What is being answered stays as long as it takes: a stream of changes, a client that reads slowly. Who
stops reading is left.
"""

from __future__ import annotations

import asyncio
import heapq
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
"""How long a body may take from the head on, besides the time that its bytes need at `BODY_BYTES_A_SECOND`."""

BODY_BYTES_A_SECOND = 16 << 10
"""The slowest connection that may send a body of any size."""

READ_SECONDS = 300.0
"""How long a client may take nothing of an answer that is ready for it."""

MOST_CONNECTIONS = 512

_SHARE_OF_DESCRIPTORS = 4
"""One in so many of the descriptors that the process may have is a connection's; databases and files need others."""

_GOING_AT_ONCE = 16
"""One in so many connections goes where there are too many: to look through all for each new one takes long."""

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
    """A connection that is also bounded in time, and one of a bounded number."""

    most = MOST_CONNECTIONS
    """How many there may be, if the process may have that many descriptors."""

    _peer: Peer
    _last_received: float
    """When it last sent anything."""
    _waits_since: float
    """Since when the rest of a request is awaited: its head, then its body."""
    _body_bytes = 0
    """Bytes that have come of the body of the newest request."""
    _to_read = 0
    """Bytes of answers that the client had not taken when that was last looked at."""
    _took_at = 0.0
    """When it last took some."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; uvicorn calls it."""
        super().connection_made(cast(asyncio.Transport, transport))
        found: socket.socket | None = transport.get_extra_info("socket")
        is_own = found is not None and is_local(found)
        server = None if self.server is None or self.server[1] is None else (self.server[0], self.server[1])
        self._peer = Peer(self.client, server, is_own=is_own)
        self._last_received = self._waits_since = self.loop.time()
        most = most_connections(self.most)
        if len(self.connections) > most:
            self._make_room(most)

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
        self._body_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_response_complete(self) -> None:
        """The next request may come."""
        self._waits_since = self.loop.time()
        if not self.pipeline:
            self.cycle.body.clear()  # what came of a body that nobody reads any more
        super().on_response_complete()

    def close_if_late(self) -> None:
        """Give up a request that is not whole in time, and a client that does not read its answer."""
        now = self.loop.time()
        to_read = self.transport.get_write_buffer_size()
        if to_read != self._to_read or not to_read:
            self._to_read, self._took_at = to_read, now
        if now - self._took_at > READ_SECONDS:
            # `close` would wait until all is taken.
            self.transport.abort()
            return
        if self._is_answering or self.transport.is_closing():
            return
        if self._has_head and self.flow.read_paused:
            # What has come is not used yet: the client waits, not the server.
            self._waits_since = now
        seconds = BODY_SECONDS + self._body_bytes / BODY_BYTES_A_SECOND if self._has_head else HEAD_SECONDS
        if now - self._waits_since > seconds:
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

    def _make_room(self, most: int) -> None:
        others = (each for each in cast(set[Connection], self.connections) if each is not self)
        last = heapq.nsmallest(max(1, most // _GOING_AT_ONCE), others, key=Connection._place)
        if not last or last[0]._place()[0] == 2:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)
            return
        for each in (last[0], *(each for each in last[1:] if each._place()[0] == 0)):
            # Not only when the transport is gone, later: who comes meanwhile must not find it here.
            self.connections.discard(each)
            each.transport.abort()


def close_late(connections: Iterable[object]) -> None:
    """Close what has not sent a whole request in time. To be called every second or so."""
    for connection in list(connections):
        if isinstance(connection, Connection):
            connection.close_if_late()


@cache
def most_connections(wanted: int = MOST_CONNECTIONS) -> int:
    """How many connections there may be: far fewer than the process may have descriptors."""
    descriptors = most_descriptors()
    return wanted if descriptors is None else max(1, min(wanted, descriptors // _SHARE_OF_DESCRIPTORS))


def accepted_at_once(wanted: int = MOST_CONNECTIONS) -> int:
    """How many connections may be accepted before one is counted: they have their descriptors by then."""
    return max(1, most_connections(wanted) // 8)
