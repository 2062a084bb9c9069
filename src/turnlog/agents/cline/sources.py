"""Where Cline's sessions are, and whether a file is one of them.

A session is a folder with its messages, those of each of its subagents, and a manifest. Every file is rewritten whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.cline import NAME
from turnlog.agents.files import entries, is_file, is_folder

_SESSIONS = "sessions"

_MESSAGES = ".messages.json"

_FACTS = (".compaction.json", ".json")
"""How the names of other files of a session end: what a compaction left, and the manifest."""

_SESSION = re.compile(r"\d+_[0-9A-Za-z]+")

_HEADER = re.compile(rb'\A(?:[\s\x00]|\xef\xbb\xbf)*\{\s*"version"\s*:\s*\d+\s*,\s*"updated_at"\s*:')

_SESSION_ID = re.compile(rb'"sessionId"\s*:\s*"(?P<id>[^"]+)"')

_VERSION = re.compile(rb'"origin"\s*:\s*\{[^{}]*"version"\s*:\s*"(?P<version>[^"]+)"')


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def find_sources(root: Path) -> Iterator[Source]:
    """Every file of a session below `root`, in the order of their names."""
    for session in filter(is_folder, entries(os.fspath(root / _SESSIONS))):
        for file in filter(is_file, entries(session.path)):
            source = _source_at(file.path, root, session.name)
            if source is not None:
                yield source


def source_of(path: Path) -> Source | None:
    """The source at `path`, judged by its folders and name; None if it cannot be Cline's. Nothing is opened."""
    place = path.absolute()
    if place.parent.parent.name != _SESSIONS or not _SESSION.fullmatch(place.parent.name):
        return None
    return _source_at(os.fspath(place), place.parents[2], place.parent.name)


def _source_at(path: str, root: Path, session: str) -> Source | None:
    name = Path(path).name
    if name.endswith(_MESSAGES):
        stem = name.removesuffix(_MESSAGES)
        # A session's own file has the name of its folder; those of subagents are `agent_<…>` beside it.
        is_main = stem == session
        kind = SourceKind.SESSION if is_main else SourceKind.SUBAGENT
        return _source(path, root, kind, session if is_main else f"{session}__{stem}")
    if name in tuple(session + end for end in _FACTS):
        return _source(path, root, SourceKind.SIDECAR, session)
    return None


def _source(path: str, root: Path, kind: SourceKind, external: str) -> Source:
    return Source(
        agent=NAME, path=path, root=os.fspath(root), kind=kind, session_id=session_id(external), appendable=False
    )


def detect_file(path: Path, head: bytes) -> Detection:
    """Judge a file by its path and its beginning `head`."""
    source = source_of(path)
    if source is not None and source.kind is SourceKind.SIDECAR:
        return Detection(agent=NAME, source=source)
    named = _SESSION_ID.search(head)
    if not _HEADER.match(head) or named is None:
        return Detection(reason="no file of messages with a version and a session")
    version = _VERSION.search(head)
    absolute = path.absolute()
    external = named["id"].decode(errors="replace")
    # `sessionId` of a subagent's file is the id of the parent, two underscores, and its own name.
    kind = SourceKind.SUBAGENT if "__" in external else SourceKind.SESSION
    return Detection(
        agent=NAME,
        version=version["version"].decode(errors="replace") if version is not None else "3",
        source=source or _source(os.fspath(absolute), absolute.parent, kind, external),
    )
