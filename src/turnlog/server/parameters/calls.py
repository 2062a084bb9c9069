"""Which tool calls, and which files."""

from __future__ import annotations

from pydantic import Field

from turnlog.server.parameters.base import ListPage, LongPage, Moment, QueryParameters
from turnlog.store.base import FileFilter, ToolCallFilter


class _ToolCallFilters(QueryParameters):
    tool: str | None = None
    kind: str | None = None
    state: str | None = None
    failed: bool | None = None
    since: Moment | None = None
    until: Moment | None = None
    project: str | None = None
    session: str | None = None
    path: str | None = Field(None, description="The file that the call read or wrote.")
    agent: str | None = None

    def to_filter(self) -> ToolCallFilter:
        """The same for the store."""
        return ToolCallFilter(**self.model_dump(include=set(ToolCallFilter._fields)))


class ToolCallQuery(_ToolCallFilters):
    """Which tool calls."""

    limit: ListPage = 50
    cursor: str | None = None


class ToolQuery(_ToolCallFilters):
    """Which calls to count."""


class FileQuery(QueryParameters):
    """Whose history."""

    path: str = Field(min_length=1, description="The file: its path, or the end of one (`src/shop.py`).")
    changed: bool = Field(False, description="Whether calls that only read are left out.")
    limit: ListPage = 50
    cursor: str | None = None


class TouchedFilesQuery(QueryParameters):
    """Which files."""

    text: str | None = Field(None, description="What the path contains, in any case.")
    project: str | None = Field(None, description="Path of the project, or its name.")
    agent: str | None = None
    changed: bool | None = Field(None, description="`true`: only files that some call changed.")
    limit: LongPage = 100

    def to_filter(self) -> FileFilter:
        """The same for the store."""
        return FileFilter(**self.model_dump(exclude={"limit"}))
