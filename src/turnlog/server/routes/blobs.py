"""`/api/blobs` and spilled outputs: bytes out of logs, sent so that no browser ever runs them.

Whoever wrote the log chose the bytes and their media type. A picture is shown when its first bytes say that it is one;
everything else is a download. SVG and HTML are never shown, whatever they call themselves.
"""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from turnlog.errors import NotFoundError
from turnlog.server.context import ContextOf, not_modified
from turnlog.server.openapi import BYTES
from turnlog.server.routes.messages import BytesQuery
from turnlog.server.routes.router import api_router

router = api_router(tags=["blobs"])

_PICTURES: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
)

_EXTENSIONS = {"application/pdf": "pdf", "application/json": "json", "text/plain": "txt"}
"""What a download is called; a name that a desktop would open as a page is not among them."""

_SHA256 = re.compile("[0-9a-f]{64}")

# A picture opened in a tab of its own is a document of this origin: it may do nothing at all.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


@router.get("/blobs/{sha256}", responses=BYTES)
def get_blob(request: Request, context: ContextOf, sha256: str, query: Annotated[BytesQuery, Query()]) -> Response:
    """A large or binary content by the hash in its reference."""
    if not _SHA256.fullmatch(sha256):
        raise NotFoundError(f"{sha256!r} is no SHA-256 in hexadecimal")
    blob = context.store.blob(sha256)
    etag = f'"{sha256}"'
    return not_modified(request.headers, etag) or _bytes_response(
        blob.data, blob.media_type, name=sha256[:16], as_text=query.as_ == "text", etag=etag
    )


@router.get("/sessions/{session_id}/spills/{name:path}", responses=BYTES)
def get_spill(context: ContextOf, session_id: str, name: str, query: Annotated[BytesQuery, Query()]) -> Response:
    """The whole of an output that its result only previews, by the name in the result."""
    data = context.store.spill(session_id, name)
    return _bytes_response(data, "text/plain", name="output", as_text=query.as_ == "text", etag=None)


def _bytes_response(data: bytes, media_type: str | None, *, name: str, as_text: bool, etag: str | None) -> Response:
    headers = {"Cache-Control": "private, no-cache", "Content-Security-Policy": _POLICY}
    if etag is not None:
        headers["ETag"] = etag
    picture = picture_type(data)
    if as_text:
        return Response(data, headers=headers, media_type="text/plain; charset=utf-8")
    if picture is not None:
        return Response(data, headers=headers, media_type=picture)
    extension = _EXTENSIONS.get((media_type or "").partition(";")[0], "bin")
    headers["Content-Disposition"] = f'attachment; filename="{name}.{extension}"'
    return Response(data, headers=headers, media_type="application/octet-stream")


def picture_type(data: bytes) -> str | None:
    """The media type of a picture that browsers show safely, by its first bytes; None for anything else."""
    return next((media_type for start, media_type in _PICTURES if start.match(data)), None)
