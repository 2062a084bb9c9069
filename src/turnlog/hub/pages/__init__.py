"""The hub's pages before others are of use: joining, signing in, connecting a machine, links. They need no build."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

_FOLDER: Final = Path(__file__).parent

_FILES: Final = {"page.js": "text/javascript; charset=utf-8", "page.css": "text/css; charset=utf-8"}

ADDRESSES: Final = ("/join", "/sign-in", "/connect", "/shared")

_HEADERS: Final = {"Cache-Control": "no-cache"}

router = APIRouter()


async def _page(request: Request) -> Response:
    return Response(_read("page.html"), headers=_HEADERS, media_type="text/html; charset=utf-8")


async def _file(request: Request) -> Response:
    name: str = request.path_params["name"]
    if name not in _FILES:
        raise HTTPException(404, "there is no such file")
    return Response(_read(name), headers=_HEADERS, media_type=_FILES[name])


def _read(name: str) -> bytes:
    return (_FOLDER / name).read_bytes()


for address in ADDRESSES:
    router.add_api_route(address, _page, methods=["GET"], include_in_schema=False)
router.add_api_route("/hub/pages/{name}", _file, methods=["GET"], include_in_schema=False)
