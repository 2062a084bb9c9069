"""Whose program is at the other end of a connection."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool

from turnlog.platforms.connections import Address, user_of
from turnlog.platforms.files import current_user


class Peer:
    """The other end of a connection. The server creates it, so nothing in a request can change it."""

    def __init__(self, client: Address | None, server: Address | None, *, is_own: bool = False) -> None:
        """Ask nothing yet.

        Args:
            client: The client's address and port.
            server: The server's own.
            is_own: Whether it came through the socket that only the user can open.
        """
        self.is_own = is_own
        self.is_allowed = False
        """Whether a request on it was let through to data."""
        self.client = client
        self._server = server
        self._foreign: bool | None = None

    async def is_foreign(self) -> bool:
        """Whether it is known to be a program of another user of this machine other than root."""
        if self._foreign is None:
            user = None
            if not self.is_own and self.client is not None and self._server is not None:
                user = await run_in_threadpool(user_of, self.client, self._server)
            self._foreign = user not in (None, current_user(), 0)
        return self._foreign
