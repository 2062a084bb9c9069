"""Images that a history names by their paths on this machine, for requests.

A path alone is not believed, since the log may be another machine's: a file is read only where the log has its SHA-256.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from turnlog.model import FilePart
from turnlog.providers.request_parts import agent_fact

_LARGEST = 50 * 1024 * 1024
_SCHEME = "file://"


def load_local_file(part: FilePart) -> bytes | None:
    """The bytes of the very file that was shown to the model; None where it is gone, another, or not known well."""
    wanted = agent_fact(part.metadata, "sha256")
    if not isinstance(wanted, str) or part.url is None or not part.url.startswith(_SCHEME):
        return None
    path = Path(part.url.removeprefix(_SCHEME))
    try:
        data = path.read_bytes() if path.is_file() and path.stat().st_size <= _LARGEST else b""
    except (OSError, ValueError):
        return None
    return data if hashlib.sha256(data).hexdigest() == wanted.lower() else None
