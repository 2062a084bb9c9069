"""Where Continue's sessions are, and whether a file is one of them.

A session is a file of JSON that is rewritten whole. A root is the folder `.continue`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.continue_cli import LIST, NAME, SESSIONS
from turnlog.agents.files import entries, is_file

_SESSION_ID = re.compile(rb'"sessionId"\s*:\s*"(?P<id>[^"]+)"')

_FIELDS = (b'"title"', b'"workspaceDirectory"', b'"history"')
"""Fields of a session beside its id; none of a list of sessions."""


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def find_sources(root: Path) -> Iterator[Source]:
    """Every session below a home and the list of all, in the order of their names."""
    for entry in filter(is_file, entries(os.fspath(root / SESSIONS))):
        source = _source_at(Path(entry.path), root)
        if source is not None:
            yield source


def _source_at(path: Path, root: Path) -> Source | None:
    if path.suffix != ".json":
        return None
    is_list = path.name == LIST
    return Source(
        agent=NAME,
        path=os.fspath(path),
        root=os.fspath(root),
        kind=SourceKind.SIDECAR if is_list else SourceKind.SESSION,
        session_id=None if is_list else session_id(path.stem),
        appendable=False,
    )


def detect_file(path: Path, head: bytes) -> Detection:
    """Judge a file by its path and its beginning `head`."""
    absolute = path.absolute()
    is_placed = absolute.parent.name == SESSIONS
    root = absolute.parents[1] if is_placed else absolute.parent
    if is_placed and absolute.name == LIST and head.lstrip()[:1] == b"[" and b'"dateCreated"' in head:
        return Detection(agent=NAME, source=_source_at(absolute, root))
    found = _SESSION_ID.search(head)
    if found is None or not head.lstrip().startswith(b"{") or not all(field in head for field in _FIELDS):
        return Detection(reason="no object with the id, the title, the folder and the history of a session")
    source = Source(
        agent=NAME,
        path=os.fspath(absolute),
        root=os.fspath(root),
        session_id=session_id(found["id"].decode(errors="replace")),
        appendable=False,
    )
    # No file names the version of the program.
    return Detection(agent=NAME, version="1", source=source)
