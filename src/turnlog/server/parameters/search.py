"""What to find, and where."""

from __future__ import annotations

from pydantic import Field

from turnlog.model import Role
from turnlog.server.parameters.base import Moment, QueryParameters, SmallPage
from turnlog.store.search.base import SearchField, SearchFilter, SearchSort


class SearchQuery(QueryParameters):
    """What to find, and where."""

    q: str = Field("", max_length=1000, description='Words, "phrases" and prefix*; all of them must be found.')
    agent: str | None = None
    project: str | None = Field(None, description="Path of the project, or its name.")
    session: str | None = None
    role: Role | None = None
    field: SearchField | None = None
    tool: str | None = None
    failed: bool | None = Field(None, description="Whether the tool call ended in an error.")
    has_image: bool | None = None
    since: Moment | None = None
    until: Moment | None = None
    sort: SearchSort = "newest"
    limit: SmallPage = 20
    cursor: str | None = None

    def to_filter(self) -> SearchFilter:
        """The same for the index."""
        return SearchFilter(**self.model_dump(include=set(SearchFilter._fields)))
