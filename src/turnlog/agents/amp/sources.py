"""Where Amp's threads are, and whether a file is one of them.

A thread is a file of JSON that is rewritten whole. A root is the folder `amp` of the user's data.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from turnlog.agents.amp import NAME, THREADS
from turnlog.agents.base import Detection, Source
from turnlog.agents.files import entries, is_file

_NAME = re.compile(r"T-[\w-]+\.json")
_ID = re.compile(rb'"id"\s*:\s*"(?P<id>T-[\w-]+)"')


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def find_sources(root: Path) -> Iterator[Source]:
    """Every thread below a home, in the order of their names."""
    for entry in filter(is_file, entries(os.fspath(root / THREADS))):
        if _NAME.fullmatch(entry.name):
            yield _thread(Path(entry.path), root, Path(entry.name).stem)


def _thread(path: Path, root: Path, external: str) -> Source:
    return Source(
        agent=NAME,
        path=os.fspath(path),
        root=os.fspath(root),
        session_id=session_id(external),
        appendable=False,
    )


def detect_file(path: Path, head: bytes) -> Detection:
    """Judge a file by its beginning `head`."""
    found = _ID.search(head)
    fields = (b'"created"', b'"messages"')
    if found is None or not head.lstrip().startswith(b"{") or not all(field in head for field in fields):
        return Detection(reason="no object with the id, the time and the messages of a thread")
    absolute = path.absolute()
    # The number `v` counts the changes of the thread, it is no version.
    return Detection(agent=NAME, version="1", source=_thread(absolute, absolute.parent, found["id"].decode()))
