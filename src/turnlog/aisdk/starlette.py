"""The response with a UI message stream for Starlette and FastAPI, which only this module imports."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping

from starlette.background import BackgroundTask
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from turnlog.aisdk.sse import HEADERS
from turnlog.aisdk.streaming import send_stream


class UIMessageStreamResponse(StreamingResponse):
    """A response with a stream, made from `stream_sse` or a subscription of `turnlog.chat.streams`.

    Unlike Starlette's own it closes the stream as soon as the client disconnects, not when it is garbage collected.
    """

    def __init__(
        self,
        body: AsyncIterable[bytes],
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
        background: BackgroundTask | None = None,
    ) -> None:
        """Answer with `body`; `headers` are added to those of a UI message stream."""
        super().__init__(body, status_code, {**HEADERS, **(headers or {})}, background=background)
        self._body = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await send_stream(self._body, receive, send, status=self.status_code, headers=self.raw_headers)
        if self.background is not None:
            await self.background()
