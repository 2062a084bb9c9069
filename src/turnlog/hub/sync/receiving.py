"""Bodies of requests in bounded memory: how much one may have, and what all together may take."""

from __future__ import annotations

import base64
import binascii
import hashlib
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request

MOST_PACKED: Final = 32 << 20
"""Bytes of a body as it is sent."""

MOST_IN_FLIGHT: Final = 512 << 20
"""Bytes of memory that all bodies take which are being received, decoded and written."""


class Load:
    """How much is under way. Any number of threads may use it."""

    def __init__(self, most: int = MOST_IN_FLIGHT) -> None:
        """Begin with nothing."""
        self._most = most
        self._bytes = 0
        self._busy = set[str]()
        self._lock = threading.Lock()

    @contextmanager
    def of(self, machine: str) -> Generator[Share]:
        """What one request of a machine takes. Raises a 429 if another one of it is under way."""
        with self._lock:
            if machine in self._busy:
                raise HTTPException(429, "another batch of this machine is being written", {"Retry-After": "1"})
            self._busy.add(machine)
        share = Share(self)
        try:
            yield share
        finally:
            with self._lock:
                self._busy.discard(machine)
                self._bytes -= share.size

    def add(self, size: int) -> None:
        """Take so many bytes more. Raises a 503 if that is too much."""
        with self._lock:
            if self._bytes + size > self._most:
                raise HTTPException(503, "the hub has too much to write just now", {"Retry-After": "2"})
            self._bytes += size


class Share:
    """Bytes that one request takes."""

    def __init__(self, load: Load) -> None:
        """Begin with none."""
        self._load = load
        self.size = 0

    def add(self, size: int) -> None:
        """Take so many more."""
        self._load.add(size)
        self.size += size


async def receive(request: Request, share: Share, most: int = MOST_PACKED) -> bytes:
    """The body as it is sent.

    Raises a 413 as soon as it is known to be too large, a 422 if its `Content-Digest` (RFC 9530) is of other bytes.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > most:
        raise _too_large(most)
    body = bytearray()
    async for piece in request.stream():
        if len(body) + len(piece) > most:
            raise _too_large(most)
        share.add(len(piece))
        body += piece
    data = bytes(body)
    digest = request.headers.get("content-digest")
    if digest is not None and not _is_of(digest, data):
        raise HTTPException(422, "the body is not that of its Content-Digest")
    return data


def _is_of(digest: str, data: bytes) -> bool:
    name, _, value = digest.strip().partition("=")
    try:
        return name == "sha-256" and base64.b64decode(value.strip(":"), validate=True) == hashlib.sha256(data).digest()
    except binascii.Error:
        return False


def _too_large(most: int) -> HTTPException:
    # The rest is not read: the client gets the error before it has sent everything.
    return HTTPException(413, f"a body has at most {most} bytes", {"Connection": "close"})
