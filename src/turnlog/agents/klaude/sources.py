"""Where klaude-code's files lie: a folder a session, with its log, facts about it, and its images.

Folders are listed, nothing is opened, and no symbolic link is followed. A root is the folder `.klaude`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.folders import entries, folder_below, folders, is_file, is_folder

NAME = "klaude"

_KINDS = {"events.jsonl": SourceKind.SESSION, "meta.json": SourceKind.SIDECAR}


def session_id(external: str) -> str:
    """The id of a session. `/` separates nothing in it."""
    return f"{NAME}:{external.replace('/', '_')}"


def find_sources(root: Path) -> Iterator[Source]:
    """Every file of klaude-code below `root`, in the order of their names."""
    for project in folders(os.fspath(root / "projects")):
        for session in folders(f"{project.path}{os.sep}sessions"):
            for entry in entries(session.path):
                if is_file(entry) and entry.name in _KINDS:
                    yield _source(entry.path, root, _KINDS[entry.name], session.name)
                elif is_folder(entry) and entry.name == "images":
                    for image in filter(is_file, entries(entry.path)):
                        yield _source(image.path, root, SourceKind.SPILL, session.name)


def source_of(path: Path) -> Source | None:
    """What the file at `path` is by its place; None when it can be none of ours. Nothing is opened."""
    place = path.absolute()
    parents = [folder.name for folder in place.parents]
    image = parents[:1] == ["images"]
    folders = parents[1:] if image else parents
    if len(folders) < 4 or folders[1] != "sessions" or folders[3] != "projects":
        return None
    kind = SourceKind.SPILL if image else _KINDS.get(path.name)
    root = next(folder.parent for folder in place.parents if folder.name == "projects")
    return None if kind is None else _source(os.fspath(place), root, kind, folders[0])


def _source(path: str, root: Path, kind: SourceKind, external: str) -> Source:
    return Source(
        agent=NAME,
        path=path,
        root=os.fspath(root),
        kind=kind,
        session_id=session_id(external),
        project=folder_below(path, root, "projects"),
        appendable=kind is SourceKind.SESSION,
    )
