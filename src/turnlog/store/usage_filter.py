"""The filter of usage, which a status line needs without those of all other queries."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from turnlog.arguments import checked_fields


@checked_fields
class UsageFilter(NamedTuple):
    """A filter of usage. `since` is inclusive, `until` exclusive; a quarter hour that they cut is counted whole."""

    since: datetime | None = None
    until: datetime | None = None
    agent: str | None = None
    project: str | None = None
    model: str | None = None
    session: str | None = None
    user: str | None = None
    team: str | None = None
    task: str | None = None
    machine: str | None = None


ALL_USAGE = UsageFilter()
