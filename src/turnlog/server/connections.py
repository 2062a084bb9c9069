"""What a connection is allowed: uvicorn's protocol, which tells the application through which socket a request came."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from turnlog.server.network import PEER
from turnlog.server.peers import Peer


class Connection(HttpToolsProtocol):
    """One connection of a client."""

    _peer: Peer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; uvicorn calls it."""
        super().connection_made(cast(asyncio.Transport, transport))
        found: socket.socket | None = transport.get_extra_info("socket")
        is_own = found is not None and found.family == getattr(socket, "AF_UNIX", None)
        server = None if self.server is None or self.server[1] is None else (self.server[0], self.server[1])
        self._peer = Peer(self.client, server, is_own=is_own)

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        cast(dict[str, Any], self.scope)[PEER] = self._peer
