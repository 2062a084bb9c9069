"""Files, and what tools did to them."""

from __future__ import annotations

from datetime import datetime

from turnlog.model import ToolCallPart
from turnlog.server.answers.base import Answer
from turnlog.server.answers.calls import ToolCall
from turnlog.server.answers.sessions import FoundSession


class FileUse(Answer, frozen=True, kw_only=True):
    """What one session did to a file."""

    session: FoundSession
    calls: int
    edits: int
    kinds: list[str]
    first_at: datetime | None
    last_at: datetime | None


class FileTouch(Answer, frozen=True, kw_only=True):
    """A call that read or changed a file."""

    path: str
    """The file, from anywhere."""
    call: ToolCall
    part: ToolCallPart | None
    """The call itself, where it changed the file: its input says how. Large contents are previews."""


class FileAnswer(Answer, frozen=True, kw_only=True):
    """Everything that was done to a file."""

    path: str
    sessions: list[FileUse]
    """The last first."""
    items: list[FileTouch]
    """Call by call, the newest first."""
    next_cursor: str | None


class TouchedFile(Answer, frozen=True, kw_only=True):
    """A file, and how much was done to it."""

    path: str
    sessions: int
    calls: int
    edits: int
    last_at: datetime | None


class TouchedFiles(Answer, frozen=True, kw_only=True):
    """Files, the last touched first."""

    items: list[TouchedFile]
