"""Where klaude-code's files are: a folder per session with its log, facts about it, images, and the outputs of tasks.

Folders are listed, nothing is opened, and no symbolic link is followed. A root is the folder `.klaude`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.files import entries, folder_below, folders, is_file, is_folder
from turnlog.agents.klaude import NAME

META = "meta.json"
_KINDS = {"events.jsonl": SourceKind.SESSION, META: SourceKind.SIDECAR}
_FOLDERS = frozenset({"images", "shell_tasks", "background_tasks"})
"""Folders of a session. A JSON file in them describes a task; any other file is an output or an image."""
_GROWING = ("events.jsonl", ".log", ".stdout", ".stderr")
"""Endings of files that grow: the log, and what a shell has printed so far."""


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def find_sources(root: Path) -> Iterator[Source]:
    """Every file of klaude-code below `root`, in the order of their names."""
    for project in folders(os.fspath(root / "projects")):
        for session in folders(f"{project.path}{os.sep}sessions"):
            for entry in entries(session.path):
                if is_file(entry) and entry.name in _KINDS:
                    yield _source(entry.path, root, _KINDS[entry.name], session.name)
                elif is_folder(entry) and entry.name in _FOLDERS:
                    for file in filter(is_file, entries(entry.path)):
                        yield _source(file.path, root, _kind_in_folder(file.name), session.name)


def source_of(path: Path) -> Source | None:
    """The source at `path`, judged by its folder and name; None if it cannot be klaude-code's. Nothing is opened."""
    place = path.absolute()
    parents = [folder.name for folder in place.parents]
    is_nested = parents[0] in _FOLDERS
    folders = parents[1:] if is_nested else parents
    if len(folders) < 4 or folders[1] != "sessions" or folders[3] != "projects":
        return None
    kind = _kind_in_folder(path.name) if is_nested else _KINDS.get(path.name)
    root = next(folder.parent for folder in place.parents if folder.name == "projects")
    return None if kind is None else _source(os.fspath(place), root, kind, folders[0])


def _kind_in_folder(name: str) -> SourceKind:
    return SourceKind.SIDECAR if name.endswith(".json") else SourceKind.SPILL


def _source(path: str, root: Path, kind: SourceKind, external: str) -> Source:
    return Source(
        agent=NAME,
        path=path,
        root=os.fspath(root),
        kind=kind,
        session_id=session_id(external),
        project=folder_below(path, root, "projects"),
        appendable=path.endswith(_GROWING),
    )
