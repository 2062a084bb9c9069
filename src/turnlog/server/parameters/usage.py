"""Whose usage, by what."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from turnlog.server.parameters.base import Moment, QueryParameters
from turnlog.store.base import UsageBy, UsageFilter


class UsageQuery(QueryParameters):
    """Whose usage, by what."""

    by: UsageBy = "day"
    since: Moment | None = None
    until: Moment | None = None
    agent: str | None = None
    project: str | None = None
    model: str | None = None
    session: str | None = None
    format: Literal["json", "csv"] | None = Field(None, description="Without it, what `Accept` asks for.")

    def to_filter(self) -> UsageFilter:
        """The same for the store."""
        return UsageFilter(**self.model_dump(exclude={"by", "format"}))
