"""Where gptme's conversations are, and whether a file is one of them.

A conversation is a folder with its log and its settings. A root is the folder that holds `logs`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.files import folders, holds_log
from turnlog.agents.gptme import LOG, LOGS, NAME, SETTINGS
from turnlog.agents.gptme.records import LINES
from turnlog.agents.jsonl import whole_lines


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def find_sources(root: Path) -> Iterator[Source]:
    """Every conversation below a home, in the order of their names."""
    for folder in folders(os.fspath(root / LOGS)):
        for name in (SETTINGS, LOG):
            if holds_log(Path(folder.path), name):
                yield _source(Path(folder.path, name), root)


def _source(path: Path, root: Path) -> Source:
    is_log = path.name == LOG
    return Source(
        agent=NAME,
        path=os.fspath(path),
        root=os.fspath(root),
        kind=SourceKind.SESSION if is_log else SourceKind.SIDECAR,
        session_id=session_id(path.parent.name),
        appendable=is_log,
    )


def detect_file(path: Path, head: bytes) -> Detection:
    """Judge a file by its path and its beginning `head`."""
    absolute = path.absolute()
    is_placed = absolute.parent.parent.name == LOGS
    if is_placed and absolute.name == SETTINGS and b"[chat]" in head:
        return Detection(agent=NAME, source=_source(absolute, absolute.parents[2]))
    if not head.lstrip().startswith((b'{"role": ', b'{"role":"')):
        return Detection(reason="no message with a role, a content and a time")
    records = [record for record, *_ in LINES.read(whole_lines(head), 0, 1, Changes())]
    if not records or not all(record.role and record.timestamp and record.content is not None for record in records):
        return Detection(reason="no message with a role, a content and a time")
    # Nothing in these records is gptme's alone, if no answer has its metadata.
    is_certain = any(record.metadata is not None or record.hide for record in records)
    source = _source(absolute, absolute.parents[2]) if is_placed else _loose(absolute)
    return Detection(agent=NAME, version="1", is_certain=is_certain, source=source)


def _loose(path: Path) -> Source:
    """A log in any other folder: no record names its session, so its folder or its name does."""
    named = path.parent.name if path.name == LOG else path.stem
    return Source(agent=NAME, path=os.fspath(path), root=os.fspath(path.parent), session_id=session_id(named))
