"""What a log does not tell of its session: the folder it works in, and the id where the header is lost.

A log names its folder at most by a hash. `tmp/<name>/.project_root` has the path since folders have names, and
`projects.json` has the paths of all names; a hash is that of one of these paths. Both are small, lie in the root,
and are read when a log's fold begins; where they are gone the folder is unknown.

A log loses its header when another terminal in the same folder begins before anything was typed: it clears away logs
without a prompt, and what is said later goes to a new file of that name (0.61). The log of prompts has the id.
"""

from __future__ import annotations

import os
import re
from hashlib import sha256
from pathlib import Path

import msgspec

from turnlog.agents.base import Source

_LARGEST = 1 << 20
_NAMED = re.compile(r"session-.+-(?P<id>[0-9a-f]{8})\.jsonl")


class _Projects(msgspec.Struct):
    projects: dict[str, str] = {}


def project_of(source: Source) -> str | None:
    """The path of the project that a log belongs to; None when nothing tells it."""
    root, path = Path(source.root), Path(source.path)
    try:
        name = path.relative_to(root / "tmp").parts[0]
    except (ValueError, IndexError):
        return None
    told = read_plain(root / "tmp" / name / ".project_root").decode(errors="replace").strip()
    return told or _by_name(read_plain(root / "projects.json"), name)


def session_named(source: Source) -> str | None:
    """The external id of the session that a log without a header belongs to; None when nothing tells it."""
    path = Path(source.path)
    name = _NAMED.fullmatch(path.name)
    if name is None or path.parent.name != "chats":
        return None
    wanted = rb'"sessionId"\s*:\s*"(%b-[^"\\]*)"' % name["id"].encode()
    typed = re.search(wanted, read_plain(path.parent.parent / "logs.json"))
    return None if typed is None else typed[1].decode(errors="replace")


def _by_name(data: bytes, name: str) -> str | None:
    try:
        known = msgspec.json.decode(data, type=_Projects).projects
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return next((path for path, short in known.items() if name in (short, sha256(path.encode()).hexdigest())), None)


def read_plain(path: Path, most: int = _LARGEST) -> bytes:
    """So many bytes of a plain file (-1: all); none when it is missing, a link, or anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        try:
            return file.read(most)
        except OSError:
            return b""
