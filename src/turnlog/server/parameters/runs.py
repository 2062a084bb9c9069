"""Which runs."""

from __future__ import annotations

from pydantic import Field

from turnlog.server.parameters.base import ListPage, Moment, QueryParameters
from turnlog.store.base import RunFilter, RunStatus


class RunQuery(QueryParameters):
    """Which runs."""

    agent: str | None = None
    status: RunStatus | None = None
    session: str | None = Field(None, description="Id of the session that the run made or went on with.")
    since: Moment | None = None
    until: Moment | None = None
    limit: ListPage = 50
    cursor: str | None = None

    def to_filter(self) -> RunFilter:
        """The same for the store."""
        return RunFilter(**self.model_dump(exclude={"limit", "cursor"}))
