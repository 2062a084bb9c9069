"""Where Mistral Vibe's sessions are, and whether a file belongs to one.

Since 2.26 a session is a folder below `unified`; its file `CURRENT` stands for it as a source of rows. Before, it was a
folder with a log and its metadata. A root is the folder `.vibe`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.decoding import object_of, text_of
from turnlog.agents.files import entries, folders, holds_log, is_file, read_regular_file
from turnlog.agents.jsonl import UNREADABLE, whole_lines
from turnlog.agents.mistral_vibe import CURRENT, LOGS, NAME
from turnlog.agents.mistral_vibe.old_records import LINES
from turnlog.agents.mistral_vibe.store import version_of

UNIFIED = "unified"

_FORMAT = "mistral.vibe.unified-session-store/v"

LOG, METADATA = "messages.jsonl", "meta.json"

_OLD = re.compile(r"[\w-]+_\d{8}_\d{6}_(?P<id>[0-9A-Za-z-]+)")
"""The folder of a session before 2.26, or of a subagent below `agents`."""


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def find_sources(root: Path) -> Iterator[Source]:
    """Every session below a home, in the order of their names."""
    logs = root / LOGS
    below = list(folders(os.fspath(logs)))
    for folder in (each for unified in below if unified.name == UNIFIED for each in folders(unified.path)):
        source = _unified(Path(folder.path), root)
        if source is not None:
            yield source
    for folder in below:
        if not _OLD.fullmatch(folder.name):
            continue
        yield from _old(Path(folder.path), root)
        for child in folders(f"{folder.path}/agents"):
            yield from _old(Path(child.path), root)


def sources_at(path: Path, root: Path) -> Iterator[Source]:
    """The session to whose folder a changed file belongs."""
    above = root / LOGS / UNIFIED
    if path.is_relative_to(above) and path != above:
        source = _unified(above / path.relative_to(above).parts[0], root)
        if source is not None:
            yield source


def _unified(folder: Path, root: Path) -> Source | None:
    if not holds_log(folder, CURRENT):
        return None
    try:
        version = version_of(folder)
    except OSError:
        return None
    is_child = folder.name.startswith("child-")
    return Source(
        agent=NAME,
        path=os.fspath(folder / CURRENT),
        root=os.fspath(root),
        kind=SourceKind.SUBAGENT if is_child else SourceKind.SESSION,
        session_id=session_id(folder.name),
        version=version,
    )


def _old(folder: Path, root: Path) -> Iterator[Source]:
    for entry in filter(is_file, entries(os.fspath(folder))):
        source = _old_file(Path(entry.path), root)
        if source is not None:
            yield source


def _old_file(path: Path, root: Path) -> Source | None:
    found = _OLD.fullmatch(path.parent.name)
    if found is None or path.name not in (LOG, METADATA):
        return None
    is_child = path.parent.parent.name == "agents"
    kind = SourceKind.SUBAGENT if is_child else SourceKind.SESSION
    return Source(
        agent=NAME,
        path=os.fspath(path),
        root=os.fspath(root),
        kind=SourceKind.SIDECAR if path.name == METADATA else kind,
        session_id=session_id(found["id"]),
        appendable=path.name == LOG,
    )


# -- whether a file is one of them


def detect_file(path: Path, head: bytes) -> Detection:
    """Judge a file by its path and its beginning `head`."""
    try:
        document = object_of(msgspec.json.decode(head))
    except UNREADABLE:
        document = {}
    store = text_of(document.get("store_format")) or ""
    if store.startswith(_FORMAT):
        return _detect_unified(path, document, store.removeprefix(_FORMAT))
    return _detect_old(path, head, document)


def _detect_unified(path: Path, document: dict[str, object], version: str) -> Detection:
    external = text_of(document.get("session_id")) or path.parent.name
    absolute = path.absolute()
    source = Source(
        agent=NAME,
        path=os.fspath(absolute),
        root=os.fspath(absolute.parents[4] if len(absolute.parents) > 4 else absolute.parent),
        kind=SourceKind.SUBAGENT if external.startswith("child-") else SourceKind.SESSION,
        session_id=session_id(external),
    )
    minor = document.get("store_format_minor")
    # No record names the version of the program, only that of the format.
    return Detection(agent=NAME, version=f"{version}.{minor}", source=source, sources=(source,))


def _detect_old(path: Path, head: bytes, document: dict[str, object]) -> Detection:
    absolute = path.absolute()
    parents = absolute.parents
    inner = 5 if len(parents) > 1 and parents[1].name == "agents" else 3
    source = _old_file(absolute, parents[inner] if len(parents) > inner else parents[0])
    if source is not None and source.kind is SourceKind.SIDECAR:
        return Detection(agent=NAME, source=source)
    records = [record for record, *_ in LINES.read(whole_lines(head), 0, 1, Changes())]
    is_own = any(record.role and record.message_id for record in records)
    if not is_own or source is None:
        return Detection(reason="no store of sessions, and no log next to its metadata")
    return Detection(agent=NAME, version="2", source=source)


_SCHEDULED = "scheduled-loops.json"


class _Scheduled(msgspec.Struct):
    loops: list[msgspec.Raw]


def has_schedule(path: Path) -> bool:
    """Whether the file at a path has prompts that Mistral Vibe sends by itself, or cannot be read (3.0.3)."""
    if path.name != _SCHEDULED:
        return False
    try:
        return bool(msgspec.json.decode(read_regular_file(path), type=_Scheduled).loops)
    except UNREADABLE:
        return True
