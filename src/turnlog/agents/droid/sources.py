"""Where Droid's files are, and whether a file is one of them.

A log and the settings of each session. Folders are listed, nothing is opened, and no symbolic link is followed. A root
is the folder `.factory`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePath

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.droid import NAME
from turnlog.agents.droid.records import LINES
from turnlog.agents.files import entries, folder_below, folders, is_file
from turnlog.agents.jsonl import whole_lines

LOGS = "sessions"

_FILE = re.compile(r"(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?P<ending>\.jsonl|\.settings\.json)")


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def find_sources(root: Path) -> Iterator[Source]:
    """Every log of Droid below `root` and the settings next to it, in the order of their names."""
    for project in folders(os.fspath(root / LOGS)):
        for entry in filter(is_file, entries(project.path)):
            found = _source_in(entry.path, root)
            if found is not None:
                yield found


def source_of(path: Path) -> Source | None:
    """The source at `path`, judged by its folders and name; None if it cannot be Droid's. Nothing is opened."""
    place = path.absolute()
    return _source_in(os.fspath(place), place.parents[2]) if len(place.parents) > 2 else None


def _source_in(path: str, root: Path) -> Source | None:
    place = PurePath(path)
    found = _FILE.fullmatch(place.name)
    if found is None or place.parents[1].name != LOGS:
        return None
    is_log = found["ending"] == ".jsonl"
    return Source(
        agent=NAME,
        path=path,
        root=os.fspath(root),
        kind=SourceKind.SESSION if is_log else SourceKind.SIDECAR,
        session_id=session_id(found["id"]),
        project=folder_below(path, root, LOGS),
        appendable=is_log,
    )


# -- whether a file is Droid's


def detect_log(path: Path, head: bytes) -> Detection:
    """Judge a file by its beginning `head`; the file is not opened. Settings are recognised by their place alone."""
    source = source_of(path)
    if source is not None and source.kind is SourceKind.SIDECAR:
        return Detection(agent=NAME, source=source)
    records = [record for record, *_ in LINES.read(whole_lines(head), 0, 1, Changes())]
    for record in records:
        has_title = record.title is not None or record.session_title is not None
        if record.type == "session_start" and record.id is not None and has_title:
            # The program's version is in no record, only that of the format.
            version = "1" if record.version is None else str(record.version)
            return Detection(agent=NAME, version=version, source=source or _loose(path, record.id))
    return Detection(reason="no session_start with an id and a title" if records else "no line is JSON")


def _loose(path: Path, external: str) -> Source:
    """A log in any other folder: its first record names its session."""
    absolute = path.absolute()
    return Source(
        agent=NAME, path=os.fspath(absolute), root=os.fspath(absolute.parent), session_id=session_id(external)
    )
