"""The web app: its built files from the package, held in memory and packed once.

Paths are looked up in a table made when the application starts, so that no address can lead out of the folder.
Files under `assets/` carry a hash in their name and never change; every address without a file is `index.html`, where
the app finds its own way.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path

from fastapi import FastAPI, HTTPException, Request
from starlette.responses import HTMLResponse, Response

from turnlog.server.encoding import SMALLEST_PACKED, gzip, not_modified, takes

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


def add_web_app(app: FastAPI, folder: Path) -> None:
    """Answer every address that no route before knows: with a file, with the app, or with why there is none."""
    files = _files(folder)

    async def get_page(request: Request) -> Response:
        path: str = request.path_params["path"]
        if path == "api" or path.startswith("api/"):
            raise HTTPException(404, "there is no such address in the API")
        if path in files:
            return files[path].response(request)
        if path == "assets" or path.startswith("assets/"):
            raise HTTPException(404, "there is no such file")
        if "index.html" not in files:
            return HTMLResponse(_NOT_BUILT, 503)
        return files["index.html"].response(request)

    app.add_route("/{path:path}", get_page, methods=["GET"], include_in_schema=False)


def _files(folder: Path) -> dict[str, _File]:
    """Address below `/` -> file."""
    inside = folder.resolve()
    found = [path for path in folder.rglob("*") if path.is_file() and path.resolve().is_relative_to(inside)]
    addresses = {path.relative_to(folder).as_posix(): path for path in found}
    return {address: _File(path, immutable=address.startswith("assets/")) for address, path in addresses.items()}
