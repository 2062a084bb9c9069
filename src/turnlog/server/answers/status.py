"""What the server is and does."""

from __future__ import annotations

from datetime import datetime

from turnlog.server.answers.base import Answer


class SyncProblem(Answer, frozen=True, kw_only=True):
    """A file that the last pass could not read."""

    path: str
    reason: str


class SyncProgress(Answer, frozen=True, kw_only=True):
    """Where the background's reading of logs stands."""

    state: str = "off"
    """`off`, `running`, `waiting` (between two passes) or `failed`."""
    phase: str | None = None
    """`find`, `read` or `index`, of the running pass."""
    done: int = 0
    total: int = 0
    passes: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: str | None = None
    problems: list[SyncProblem] = []


class SearchProgress(Answer, frozen=True, kw_only=True):
    """How far search is behind the store."""

    pending: int | None
    """Messages that are not searchable yet; None when the index cannot be read."""


class StoreCounts(Answer, frozen=True, kw_only=True):
    """How much the store holds, and how fresh it is."""

    path: str
    schema_version: int
    file_size: int
    sessions: int
    subagents: int
    messages: int
    sources: int
    source_bytes: int
    archive_bytes: int
    vanished: int
    unreadable: int
    diagnostics: int
    last_sync_at: datetime | None


class StatusAnswer(Answer, frozen=True, kw_only=True):
    """What the server is and does."""

    version: str
    sample: bool
    prompts: bool
    """Whether sessions may go on from the page."""
    change_sequence: int
    sync: SyncProgress
    search: SearchProgress
    store: StoreCounts
