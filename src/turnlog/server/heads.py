"""HEAD for every address that answers GET: the same status and headers, and no body.

The answer ends where its body would begin, so that a stream is not even started, and a document is not sent.
"""

from __future__ import annotations

from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class _AnsweredError(Exception):
    """The headers are sent: nothing that the application does from here on would be heard."""


class Heads:
    """Asks the application behind it by GET what a client asks by HEAD."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            await send(message)
            await send({"type": "http.response.body", "body": b""})
            raise _AnsweredError

        with suppress(_AnsweredError):
            await self._app({**scope, "method": "GET"}, receive, send_head)
