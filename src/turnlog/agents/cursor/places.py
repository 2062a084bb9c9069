"""What the path of a transcript says: its session, its project, and the session that it is a subagent of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import msgspec

from turnlog.agents.cursor import NAME
from turnlog.agents.files import read_regular_file
from turnlog.agents.jsonl import UNREADABLE

TRANSCRIPTS = "agent-transcripts"
SUBAGENTS = "subagents"
TRUSTED = ".workspace-trusted"
"""A file in the folder of a project that names the project's own folder."""

_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]*")


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def is_id(name: str) -> bool:
    """Whether a name may be the id of a conversation."""
    return _ID.fullmatch(name) is not None


class Place(NamedTuple):
    """Where a transcript is."""

    project: str | None = None
    """The folder of its project below `projects`."""
    folder: str | None = None
    """The folder that Cursor worked in, if a file of the project names it."""
    parent: str | None = None
    """External id of the session whose subagent it is."""


def place_of(path: Path) -> Place:
    """The place of a transcript; nothing is known of one outside of Cursor's folders."""
    parents = list(path.parents)
    at = next((number for number, each in enumerate(parents[:4]) if each.name == TRANSCRIPTS), None)
    if at is None:
        return Place()
    project = parents[at].parent
    parent = path.parent.parent.name if path.parent.name == SUBAGENTS else None
    return Place(project.name, workspace_of(project), parent)


class _Trust(msgspec.Struct, rename="camel"):
    workspace_path: str | None = None


def workspace_of(project: Path) -> str | None:
    """The folder that a project's folder is named after, which the name does not say: `-` replaces any sign in it."""
    try:
        return msgspec.json.decode(read_regular_file(project / TRUSTED), type=_Trust).workspace_path
    except UNREADABLE:
        return None
