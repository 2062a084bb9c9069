"""A UI message stream as an ASGI response of no framework: any ASGI server runs it, any framework can mount it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

from turnlog.aisdk.sse import HEADERS

Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]


class StreamResponse:
    """Sends the bytes of a stream, and closes it as soon as the client has gone.

    `await StreamResponse(stream_sse(chunks))(scope, receive, send)` answers a request; the class is also a whole
    application for one request.
    """

    def __init__(
        self, body: AsyncIterable[bytes], *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Answer with `body`, as `stream_sse` or a subscription of `turnlog.chat.streams` gives it."""
        self._body = body
        self._status = status
        self._headers = {**HEADERS, **{name.lower(): value for name, value in (headers or {}).items()}}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await send_stream(
            self._body,
            receive,
            send,
            status=self._status,
            headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in self._headers.items()],
        )


async def send_stream(
    body: AsyncIterable[bytes], receive: Receive, send: Send, *, status: int, headers: list[tuple[bytes, bytes]]
) -> None:
    """Send a response whose body is a stream, until it ends or the client goes."""
    sending = asyncio.ensure_future(_send_all(body, send, status, headers))
    leaving = asyncio.ensure_future(_wait_for_leaving(receive))
    try:
        await asyncio.wait([sending, leaving], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, leaving):
            task.cancel()
        await asyncio.wait([sending, leaving])
        close = getattr(body, "aclose", None)
        if close is not None:
            await close()
    if not sending.cancelled():
        _raise_unless_gone(sending.exception())


async def _send_all(body: AsyncIterable[bytes], send: Send, status: int, headers: list[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    async for piece in body:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _wait_for_leaving(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _raise_unless_gone(error: BaseException | None) -> None:
    # Servers say with an OSError that nobody listens any more.
    if error is not None and not isinstance(error, OSError):
        raise error
