"""How an answer travels: which coding a client takes, and stored zstd frames as they are.

A window is made of frames that were compressed when they were stored. A client that takes zstd gets them one behind
the other; for everybody else they are unpacked, and packed again with gzip where that is taken.
"""

from __future__ import annotations

import re
import zlib

from starlette.datastructures import Headers
from starlette.responses import Response

from turnlog.store.window import Window

SMALLEST_PACKED = 1024
"""Bytes below which packing an answer is not worth the work."""

_QUALITY = re.compile(r"\s*q\s*=\s*([01](?:\.[0-9]{0,3})?)\s*", re.IGNORECASE)

_GZIP = zlib.MAX_WBITS | 16
"""zlib's word for its largest window inside a gzip envelope."""


def takes(headers: Headers, coding: str) -> bool:
    """Whether the request's `Accept-Encoding` allows a coding (RFC 9110, 12.5.3)."""
    qualities: dict[str, float] = {}
    for item in headers.get("accept-encoding", "").lower().split(","):
        name, _, parameter = item.partition(";")
        quality = _QUALITY.fullmatch(parameter)
        qualities[name.strip()] = float(quality[1]) if quality else 1.0
    return qualities.get(coding, qualities.get("*", 0.0)) > 0


def window_response(window: Window, headers: Headers, etag: str) -> Response:
    """A window in the coding that the client takes best."""
    if takes(headers, "zstd"):
        return _response(window.to_zstd(), "zstd", etag)
    return json_response(window.to_json(), headers, etag)


def json_response(body: bytes, headers: Headers, etag: str | None = None) -> Response:
    """JSON, with gzip where it is large and the client takes it."""
    if len(body) >= SMALLEST_PACKED and takes(headers, "gzip"):
        return _response(gzip(body), "gzip", etag)
    return _response(body, None, etag)


def not_modified(headers: Headers, etag: str) -> Response | None:
    """304 for a client that has this state already (`If-None-Match`), None for any other."""
    known = headers.get("if-none-match", "")
    if known == "*" or etag in (item.strip() for item in known.split(",")):
        return Response(status_code=304, headers=_caching(etag))
    return None


def gzip(body: bytes, level: int = 1) -> bytes:
    """The body as one gzip member, the same for the same bytes."""
    packer = zlib.compressobj(level, wbits=_GZIP)
    return packer.compress(body) + packer.flush()


def _response(body: bytes, coding: str | None, etag: str | None) -> Response:
    response = Response(body, headers=_caching(etag), media_type="application/json")
    if coding is not None:
        response.headers["Content-Encoding"] = coding
    return response


def _caching(etag: str | None) -> dict[str, str]:
    """Kept by this browser only, and asked about every time."""
    headers = {"Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
    return headers if etag is None else {**headers, "ETag": etag}
