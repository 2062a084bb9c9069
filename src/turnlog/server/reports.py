"""What the process that syncs says to the server, a line of JSON each, and what the server makes of it.

Nothing else is imported here: the process is started before the rest of the server is.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, TypeAlias

import msgspec

from turnlog.store.values import StoreValue

SAMPLE: Final = "sample"
"""Said to the process instead of the seconds between passes: it reads the bundled sample once."""


class SyncProblem(StoreValue, frozen=True, kw_only=True):
    """A file that the last pass could not read."""

    path: str
    reason: str


class SyncProgress(StoreValue, frozen=True, kw_only=True):
    """How far the background has read the logs."""

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

    @property
    def is_first(self) -> bool:
        """Whether logs are being read and no pass has ended yet."""
        return self.state == "running" and self.passes == 0


class _Report(msgspec.Struct, frozen=True, kw_only=True, tag_field="report"):
    """A line."""


class PassBegan(_Report, frozen=True, kw_only=True, tag="began"):
    """A sync begins."""


class PassMoved(_Report, frozen=True, kw_only=True, tag="moved"):
    """The sync has reached this point of a phase."""

    phase: str
    done: int
    total: int


class StoreSaved(_Report, frozen=True, kw_only=True, tag="saved"):
    """The store has changed, up to this number of the change sequence."""

    sequence: int


class SessionSought(_Report, frozen=True, kw_only=True, tag="sought"):
    """A session that the server waited for was read, or no source of it was found."""

    session_id: str
    found: bool


class PassEnded(_Report, frozen=True, kw_only=True, tag="ended"):
    """The sync is complete."""

    problems: list[SyncProblem]


class PassFailed(_Report, frozen=True, kw_only=True, tag="failed"):
    """The sync failed."""

    reason: str


Report: TypeAlias = PassBegan | PassMoved | StoreSaved | SessionSought | PassEnded | PassFailed
"""One line of standard output."""
