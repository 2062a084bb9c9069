"""What parts of any kind contain: files, and what a provider needs to accept a part again.

A file is inline, as a `data:` address, or named by its address, which is not opened.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any
from urllib.parse import unquote_to_bytes

from turnlog.agents.opencode.rows import NAME, Row, object_of
from turnlog.model import FilePart, ProviderData

_INLINE = re.compile(r"data:([^;,]*)((?:;[^,;]*)*),", re.IGNORECASE)
_ANY_TYPE = "application/octet-stream"


def file_part(part: Row, part_id: str) -> FilePart:
    """The file in a `file` part or in an attachment of a result."""
    url, mime = part.get("url"), part.get("mime")
    name = part.get("filename")
    found: dict[str, Any] = {
        "id": part_id,
        "media_type": mime if isinstance(mime, str) and mime else _ANY_TYPE,
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


PROVIDER_NAMES = frozenset(
    {
        "amazon-bedrock",
        "anthropic",
        "azure",
        "bedrock",
        "copilot",
        "deepseek",
        "gateway",
        "google",
        "googleVertex",
        "groq",
        "mistral",
        "openai",
        "openaiCompatible",
        "openrouter",
        "vertex",
        "xai",
    }
)
"""Keys in a part's `metadata` that providers of the AI SDK use. Any other key with an object is a provider's too."""

_OWN_KEYS = frozenset({"compaction_continue", "providerExecuted", "interrupted", "title", "source"})
"""Keys that OpenCode itself uses."""


def provider_data(metadata: object, model: str | None) -> ProviderData | None:
    """The object of the first provider in a part's metadata that is not empty; None when there is none."""
    found = object_of(metadata)
    for name in sorted(found, key=lambda name: (name not in PROVIDER_NAMES, name)):
        opaque = object_of(found[name])
        if name not in _OWN_KEYS and any(opaque.values()):
            return ProviderData(name=name, model=model, opaque=opaque)
    return None
