"""Where Grok Build's sessions are, and whether a file is one of them.

A session is a folder, below one for the folder in which it ran. Subagents are sessions like others; the folder of the
session that started one names it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.files import folders, holds_log
from turnlog.agents.grok_build import NAME, SESSIONS
from turnlog.agents.grok_build.records import UPDATES
from turnlog.agents.jsonl import whole_lines

_LOG: Final = "updates.jsonl"
_FACTS: Final = "summary.json"
_SUBAGENTS: Final = "subagents"


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def find_sources(root: Path) -> Iterator[Source]:
    """Every session below a home."""
    groups = [list(folders(group.path)) for group in folders(os.fspath(root / SESSIONS))]
    sessions = [Path(session.path) for group in groups for session in group]
    children = {child.name for session in sessions for child in folders(os.fspath(session / _SUBAGENTS))}
    for session in sessions:
        if holds_log(session, _LOG):
            yield _log(session / _LOG, root, is_subagent=session.name in children)
        if holds_log(session, _FACTS):
            yield _facts(session / _FACTS, root)


def _log(path: Path, root: Path, *, is_subagent: bool, session: str | None = None) -> Source:
    return Source(
        agent=NAME,
        path=os.fspath(path),
        root=os.fspath(root),
        kind=SourceKind.SUBAGENT if is_subagent else SourceKind.SESSION,
        session_id=session_id(session or path.parent.name),
        project=path.parents[1].name,
    )


def _facts(path: Path, root: Path) -> Source:
    return Source(
        agent=NAME,
        path=os.fspath(path),
        root=os.fspath(root),
        kind=SourceKind.SIDECAR,
        session_id=session_id(path.parent.name),
        project=path.parents[1].name,
        appendable=False,
    )


def detect_file(path: Path, head: bytes) -> Detection:
    """Judge a file by its beginning `head`."""
    for line, *_ in UPDATES.read(whole_lines(head), 0, 1, Changes()):
        if line.params is None or line.params.meta.event_id is None or line.params.session_id is None:
            return Detection(reason="a line without the id of an event")
        absolute = path.absolute()
        source = _log(absolute, absolute.parent, is_subagent=False, session=line.params.session_id)
        # No line names the version of the program.
        return Detection(agent=NAME, version="1", source=source)
    return Detection(reason="no updates of a session")
