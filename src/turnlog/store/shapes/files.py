"""Which files were touched, by whom, and how."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from turnlog.store.shapes.paging import Page
from turnlog.store.shapes.tools import ToolCall


class FileFilter(NamedTuple):
    """Which files; what is None does not matter."""

    text: str | None = None
    """What the path contains, in any case."""
    session: str | None = None
    project: str | None = None
    agent: str | None = None
    changed: bool | None = None
    """True: only files that some call changed."""


class TouchedFile(NamedTuple):
    """A file, and how much was done to it."""

    path: str
    sessions: int
    calls: int
    edits: int
    last_at: datetime | None


class FileUse(NamedTuple):
    """What one session did to a file."""

    session_id: str
    calls: int
    edits: int
    """Calls of these that changed it: edits, deletions, moves."""
    kinds: tuple[str, ...]
    first_at: datetime | None
    last_at: datetime | None


class FileTouch(NamedTuple):
    """A call that read or changed a file, and the part of its message that it is."""

    path: str
    """The file, from anywhere."""
    call: ToolCall
    part: int
    """Index in the message's parts."""


class FileHistory(NamedTuple):
    """Everything that was done to a file."""

    uses: tuple[FileUse, ...]
    """By session, the last first."""
    touches: Page[FileTouch]
    """Call by call, the newest first."""


EVERY_FILE = FileFilter()
