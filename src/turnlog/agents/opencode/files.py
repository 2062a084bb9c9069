"""File parts: inline as `data:` addresses, or named by where they lie. Nothing that they name is opened."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any
from urllib.parse import unquote_to_bytes

from turnlog.agents.opencode.ids import NAME
from turnlog.agents.opencode.rows import Row
from turnlog.model import FilePart

_INLINE = re.compile(r"data:([^;,]*)((?:;[^,;]*)*),", re.IGNORECASE)
_ANY = "application/octet-stream"


def file_part(part: Row, part_id: str) -> FilePart:
    """The file that a `file` part or an attachment holds or names."""
    url, mime = part.get("url"), part.get("mime")
    name = part.get("filename")
    found: dict[str, Any] = {
        "id": part_id,
        "media_type": mime if isinstance(mime, str) and mime else _ANY,
        "filename": name if isinstance(name, str) else None,
        "metadata": {NAME: {"source": part["source"]}} if part.get("source") else {},
    }
    address = url if isinstance(url, str) else ""
    data = _inline(address)
    return FilePart(**found, url=address) if data is None else FilePart(**found, data=data)


def _inline(url: str) -> bytes | None:
    match = _INLINE.match(url)
    if match is None:
        return None
    content = url[match.end() :]
    if not match[2].lower().endswith(";base64"):
        return unquote_to_bytes(content)
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        return None
