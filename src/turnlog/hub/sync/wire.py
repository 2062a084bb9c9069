"""What both ends of a push share."""

from __future__ import annotations

import base64
import hashlib


def content_digest(data: bytes) -> str:
    """The value of `Content-Digest` (RFC 9530) for a body."""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"
