"""Safe names from ids that somebody else chose: the end of a session's id and source, and files that are restored.

A name is bounded, and different ids have different names. An id that is one already stays as it is; another one gets
the digest of the id behind what can be kept of it.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

_MOST_BYTES: Final = 160
"""Of a name: with the hash that an import is named by and an ending, it is still the name of a file."""

_KEPT: Final = 60
"""Characters of an id that are kept in front of its digest."""

_UNSAFE: Final = re.compile(r"[/\\#\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""What separates the parts of a path or of a source, and what no command line or terminal takes."""

_UNSAFE_IN_IDS: Final = re.compile(r"[^A-Za-z0-9_@%+=:,.~-]")
"""What a shell may read as more than a character, and what is not seen: ids are copied from what turnlog prints."""

_UNSAFE_IN_FILES: Final = re.compile(r'[<>:"|?*]')
"""What Windows has in no file name."""

_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
"""Names that Windows does not give to files."""

_MADE: Final = re.compile(r"~[0-9a-f]{16}")
"""The end of a name that was made."""

_TAKEN: Final = "about"
"""`turnlog.agents.databases.FACTS` stands for another source."""


def session_name(identity: str) -> str:
    """The name of a session with this id, in its own id and in the path of its source.

    An id that looks like a made name is not kept: another id might have been made to it.
    """
    is_kept = _is_name(identity) and not _UNSAFE_IN_IDS.search(identity) and not _MADE.fullmatch(identity[-17:])
    return identity if is_kept else _made(identity, _UNSAFE_IN_IDS)


def file_name(name: str) -> str:
    """The name of a file or folder. What `session_name` returns stays as it is if every system can have such a file."""
    is_kept = (
        _is_name(name)
        and not _UNSAFE_IN_FILES.search(name)
        and not name.endswith((".", " "))
        and not _DEVICE.fullmatch(name)
    )
    return name if is_kept else _made(name, _UNSAFE)


def _is_name(text: str) -> bool:
    return (
        0 < len(text) <= _MOST_BYTES
        and text != _TAKEN
        and not _UNSAFE.search(text)
        and len(text.encode()) <= _MOST_BYTES
    )


def _made(text: str, unsafe: re.Pattern[str]) -> str:
    kept = _UNSAFE_IN_FILES.sub("_", unsafe.sub("_", text[:_KEPT])).encode()[: 2 * _KEPT].decode(errors="ignore")
    return f"{kept}~{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:16]}"
