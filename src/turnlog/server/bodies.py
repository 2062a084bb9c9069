"""What requests send along: read up to a limit, and no further."""

from __future__ import annotations

from fastapi import Request
from starlette.exceptions import HTTPException


async def read_body(request: Request, limit: int) -> bytes:
    """The body. Raises a 413 as soon as it has more bytes than the limit."""
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit:
            raise HTTPException(413, f"the body may have at most {limit} bytes")
        pieces.append(piece)
    return b"".join(pieces)
