"""What requests send along: read up to a limit, of one request and of all that are under way."""

from __future__ import annotations

from mmap import mmap

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 32 << 20
"""Of a body."""

MOST_BYTES_UNDER_WAY = 32 << 20
"""Of all bodies that are being sent, or have been and are not answered. A hook that is refused keeps its event in a
spool, so that none is lost."""


async def read_body(request: Request, limit: int) -> bytes:
    """The body. Raises a 413 as soon as it has more bytes than the limit."""
    # Memory of its own goes back to the system when the client leaves; of many pieces the process would keep most.
    with mmap(-1, limit) as held:
        async for piece in request.stream():
            if held.tell() + len(piece) > limit:
                raise _too_large(limit)
            held.write(piece)
        return held[: held.tell()]


class Bodies:
    """ASGI middleware that counts the bytes of bodies, and refuses what is too much."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        size = 0

        def settle() -> None:
            nonlocal size
            self._under_way -= size
            size = 0

        async def receive_counted() -> Message:
            nonlocal size
            message = await receive()
            more = len(message.get("body", b""))
            if size + more > MOST_BYTES:
                raise _too_large(MOST_BYTES)
            if self._under_way + more > MOST_BYTES_UNDER_WAY:
                raise HTTPException(503, "too much is being sent at once", {"Retry-After": "1"})
            size += more
            self._under_way += more
            return message

        async def send_counted(message: Message) -> None:
            # An answer may go on for hours. What it is made of is no longer the body.
            if message["type"] == "http.response.start":
                settle()
            await send(message)

        try:
            await self._app(scope, receive_counted, send_counted)
        finally:
            settle()


def _too_large(limit: int) -> HTTPException:
    return HTTPException(413, f"the body may have at most {limit} bytes")
