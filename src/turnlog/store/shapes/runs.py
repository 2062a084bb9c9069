"""Which runs. A run itself is `store.runs.Run`."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class RunFilter(NamedTuple):
    """Which runs; times bound when they were made."""

    agent: str | None = None
    status: str | None = None
    """One of `turnlog.store.runs.RunStatus`."""
    session: str | None = None
    since: datetime | None = None
    until: datetime | None = None


EVERY_RUN = RunFilter()
