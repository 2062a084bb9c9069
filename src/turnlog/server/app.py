"""The ASGI application: the API's routes, the web app's files, and HEAD for every address that answers GET.

The files of the web app come from the package, are held in memory and packed once. Paths are looked up in a table made
when the application starts, so that no address can lead out of the folder. Files under `assets/` carry a hash in their
name and never change; every address without a file is `index.html`, where the app finds its own way.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI, HTTPException, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from turnlog import __version__
from turnlog.server import Settings, openapi
from turnlog.server.background import PassProgress
from turnlog.server.bodies import Bodies
from turnlog.server.context import SMALLEST_PACKED, LocalContext, gzip, not_modified, takes
from turnlog.server.errors import handle_errors
from turnlog.server.mcp import ADDRESS, McpEndpoint
from turnlog.server.network import Guard, require_token
from turnlog.server.routes import ROUTERS
from turnlog.server.routes.router import API, add_routes
from turnlog.store import open_store
from turnlog.store.search.base import search_path
from turnlog.store.search.searcher import Searcher

if TYPE_CHECKING:
    from fastapi.telemetry import TelemetryConfig


DESCRIPTION = "Every turn of every coding agent, as one typed history. Docs: docs/reference/http-api.md."

_NO_TELEMETRY: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}
"""Without this an environment variable is enough for FastAPI to send what is asked here to another host."""


def create_app(store_path: Path, settings: Settings | None = None, progress: PassProgress | None = None) -> FastAPI:
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
    store = open_store(store_path, create=True)
    context = LocalContext(store, searcher, settings, progress or PassProgress(), store_path)

    mcp = McpEndpoint(store, store_path)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        yield
        mcp.close()
        context.close()

    app = new_app(lifespan)
    app.state.context = context
    add_routes(app, ROUTERS)
    app.router.routes.append(Route(ADDRESS, endpoint=mcp, include_in_schema=False))
    handle_errors(app)
    add_web_app(app, settings.static_folder, ROUTERS)
    openapi.describe_responses(app)
    app.add_middleware(Heads)
    app.add_middleware(Bodies)
    app.add_middleware(Guard, settings=settings)
    return app


def new_app(lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]], title: str = "turnlog") -> FastAPI:
    """An application without addresses."""
    return FastAPI(
        title=title,
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        # FastAPI's own documentation pages load scripts from another host.
        docs_url=None,
        redoc_url=None,
        telemetry=_NO_TELEMETRY,
    )


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


class _AnsweredError(Exception):
    """The headers are sent: nothing that the application does from here on would reach the client."""


def add_web_app(app: FastAPI, folder: Path, api: Sequence[APIRouter]) -> None:
    """Answer every address that no route before knows: with a file, with the app, or with why there is none.

    `api` has the routers below `/api`.
    """
    files = _files(folder)

    async def get_page(request: Request) -> Response:
        path: str = request.path_params["path"]
        if path in files:
            return files[path].response(request)
        if path == "assets" or path.startswith("assets/"):
            raise HTTPException(404, "there is no such file")
        if "index.html" not in files:
            return HTMLResponse(_NOT_BUILT, 503)
        return files["index.html"].response(request)

    for path in (API, f"{API}/{{path:path}}"):
        app.router.routes.append(Route(path, endpoint=_Unanswered(api), include_in_schema=False))
    app.add_route("/{path:path}", get_page, methods=["GET"], include_in_schema=False)


class _Unanswered:
    """Says why no route of the API answers: the address takes other methods only, or there is none.

    It takes every method, because the framework would name only those of the first route that has the address.
    """

    def __init__(self, api: Sequence[APIRouter]) -> None:
        self._routes = [route for router in api for route in router.routes if isinstance(route, Route)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse one request."""
        path = f"{API}/{scope['path_params'].get('path', '')}"
        found = [route for route in self._routes if route.path_regex.match(path)]
        methods = {method for route in found for method in route.methods or ()}
        if not methods:
            raise HTTPException(404, "there is no such address in the API")
        heads = {"HEAD"} if "GET" in methods else set[str]()
        raise HTTPException(405, headers={"Allow": ", ".join(sorted(methods | heads))})


class _File:
    """One file of the web app."""

    def __init__(self, path: Path, *, immutable: bool) -> None:
        # Now: a newer version that is installed meanwhile has other files, and pages of this one are still open.
        self._body = path.read_bytes()
        self._type = _TYPES.get(path.suffix, "application/octet-stream")
        self._immutable = immutable

    @cached_property
    def _packed(self) -> bytes:
        return gzip(self._body, level=9)

    @cached_property
    def _etag(self) -> str:
        return f'W/"{hashlib.sha256(self._body).hexdigest()[:32]}"'

    def response(self, request: Request) -> Response:
        """The file, packed where the client takes it."""
        response = not_modified(request.headers, self._etag)
        if response is None:
            response = self._whole(request)
        response.headers["ETag"] = self._etag
        response.headers["Cache-Control"] = _FOR_EVER if self._immutable else "no-cache"
        response.headers["Vary"] = "Accept-Encoding"
        return response

    def _whole(self, request: Request) -> Response:
        if len(self._body) >= SMALLEST_PACKED and takes(request.headers, "gzip"):
            return Response(self._packed, headers={"Content-Encoding": "gzip"}, media_type=self._type)
        return Response(self._body, media_type=self._type)


def _files(folder: Path) -> dict[str, _File]:
    """Address below `/` -> file."""
    inside = folder.resolve()
    found = [path for path in folder.rglob("*") if path.is_file() and path.resolve().is_relative_to(inside)]
    addresses = {path.relative_to(folder).as_posix(): path for path in found}
    return {address: _File(path, immutable=address.startswith("assets/")) for address, path in addresses.items()}


_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}

_FOR_EVER = "public, max-age=31536000, immutable"

_NOT_BUILT = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>turnlog</title></head>
<body>
<h1>The web app has not been built</h1>
<p>turnlog runs from a checkout without its page. <code>make web</code> builds it; then start the server again.</p>
<p>The API works without it: <a href="/api/status">/api/status</a>, <a href="/openapi.json">/openapi.json</a>.</p>
</body>
</html>
"""
