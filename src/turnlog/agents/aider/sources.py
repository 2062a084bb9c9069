"""Where Aider's histories are, and whether a file is one.

Each folder in which Aider ran has a history of its own. There is no list of these folders.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from turnlog.agents.aider import HISTORY, NAME
from turnlog.agents.base import Detection, Source
from turnlog.agents.files import folders, holds_file

_BEGINNING = re.compile(rb"\s*# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s")

_VERSION = re.compile(rb"^> Aider v(?P<version>\S+)", re.MULTILINE)


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def find_sources(root: Path) -> Iterator[Source]:
    """The history in a folder, and those in the folders directly below it."""
    for folder in (root, *(Path(entry.path) for entry in folders(os.fspath(root)))):
        if holds_file(folder, HISTORY):
            yield _source(folder / HISTORY, root)


def _source(path: Path, root: Path) -> Source:
    return Source(agent=NAME, path=os.fspath(path), root=os.fspath(root), project=path.parent.name)


def name_of(source: Source) -> str:
    """What names the sessions of a history beside their times: its folder, or the file if it has another name."""
    path = Path(source.path)
    return path.parent.name if path.name == HISTORY else path.stem


def detect_file(path: Path, head: bytes) -> Detection:
    """Judge a file by its beginning `head`."""
    if not _BEGINNING.match(head):
        return Detection(reason="no line that begins a run")
    version = _VERSION.search(head)
    absolute = path.absolute()
    return Detection(
        agent=NAME,
        version=version["version"].decode(errors="replace") if version is not None else "1",
        source=_source(absolute, absolute.parent),
    )
