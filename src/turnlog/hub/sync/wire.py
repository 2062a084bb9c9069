"""What both ends of a push share."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

SHAPE_HEADER: Final = "Turnlog-Feed"
"""Names the shape of batches (`store.feed.values.SHAPE`) that a machine sends."""

LARGEST_CONTENT: Final = 128 << 20
"""Bytes of a large content that a hub takes."""

MISSING_LOGS: Final = "TURNLOG.missing"
"""A header of the tar of a session's log files: which of them are not in it, and why."""


def content_digest(data: bytes) -> str:
    """The value of `Content-Digest` (RFC 9530) for a body."""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"
