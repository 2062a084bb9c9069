"""HEAD for every address that answers GET: the same status and headers, and no body.

The answer ends where its body would begin, so that a stream is not even started, and a document is not sent.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from turnlog import __version__
from turnlog.server import openapi
from turnlog.server.background import Progress
from turnlog.server.context import Context
from turnlog.server.errors import handle_errors
from turnlog.server.network import Guard, require_token
from turnlog.server.routes import ROUTERS
from turnlog.server.settings import Settings
from turnlog.server.static import add_web_app
from turnlog.store import open_store
from turnlog.store.search.base import search_path
from turnlog.store.search.searcher import Searcher

if TYPE_CHECKING:
    from fastapi.telemetry import TelemetryConfig


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


DESCRIPTION = "Every turn of every coding agent, as one typed history. Docs: docs/reference/http-api.md."

_NO_TELEMETRY: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}
"""Without this an environment variable is enough for FastAPI to send what is asked here to another host."""


def create_app(store_path: Path, settings: Settings | None = None, progress: Progress | None = None) -> FastAPI:
    """An ASGI application over the store at `store_path`, which is made when it is not there.

    Args:
        store_path: The store; it is closed when the application shuts down.
        settings: How it behaves; the defaults are right for loopback.
        progress: Where a background pass says how far it is, shown by `/api/status`.

    Raises:
        StoreError: The store cannot be opened.
        ValueError: The settings name an address off loopback and no token.
    """
    settings = settings or Settings()
    require_token(settings)
    searcher = Searcher(store_path, search_path(store_path))
    context = Context(open_store(store_path), searcher, settings, progress or Progress(), store_path)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        yield
        context.close()

    app = FastAPI(
        title="turnlog",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        # FastAPI's own documentation pages load scripts from another host.
        docs_url=None,
        redoc_url=None,
        telemetry=_NO_TELEMETRY,
    )
    app.state.context = context
    for router in ROUTERS:
        app.include_router(router, prefix="/api")
    handle_errors(app)
    add_web_app(app, settings.static_folder)
    openapi.describe_responses(app)
    app.add_middleware(Heads)
    app.add_middleware(Guard, settings=settings)
    return app
