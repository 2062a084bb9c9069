"""Which sessions, as what document, and what the user says of one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from turnlog.server.parameters.base import ListPage, Moment, QueryParameters
from turnlog.store.base import SessionFilter, SessionSort
from turnlog.store.values import AnnotationsChange

ExportFormat = Literal[
    "markdown",
    "html",
    "json",
    "jsonl",
    "uimessages",
    "cassette",
    "anthropic",
    "openai-chat",
    "openrouter",
    "responses",
    "gemini",
]
"""As in `turnlog.exports.FORMATS`."""


class SessionQuery(QueryParameters):
    """Which sessions, in which order."""

    agent: str | None = None
    project: str | None = Field(None, description="Path of the project, or its name.")
    model: str | None = None
    branch: str | None = None
    title: str | None = Field(None, description="Text that the title contains, in any case.")
    since: Moment | None = None
    until: Moment | None = None
    relationship: Literal["subagent", "fork", "continuation"] | None = None
    parent: str | None = Field(None, description="Id of the session they came out of.")
    starred: bool | None = None
    archived: bool | None = None
    tag: str | None = None
    subagents: bool = Field(False, description="Whether subagents are listed too.")
    sort: SessionSort = "updated"
    limit: ListPage = 50
    cursor: str | None = None

    def to_filter(self) -> SessionFilter:
        """The same for the store."""
        return SessionFilter(**self.model_dump(exclude={"sort", "limit", "cursor"}))


class ExportQuery(QueryParameters):
    """Which document is made of a session."""

    as_: ExportFormat = Field(alias="as", description="The format, as in `turnlog export --as`.")
    redact: bool = Field(False, description="Whether secrets are taken out.")
    model: str | None = Field(None, description="The model that a request asks; by default the last that answered.")


Tag = Annotated[str, Field(min_length=1, max_length=100)]


class PromptBody(BaseModel):
    """What the agent is asked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str = Field(min_length=1, max_length=1_000_000)


class PromptAnswerBody(BaseModel):
    """Whether the agent may do what it asks leave for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(description="Of the question.")
    allow: bool
    reason: str | None = Field(None, max_length=10_000, description="What the agent is told where it may not.")


class AnnotationsBody(BaseModel):
    """What is said about a session from now on: what is left out stays as it is, null and nothing empty it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str | None = Field(None, max_length=1000)
    starred: StrictBool = False
    archived: StrictBool = False
    tags: Annotated[tuple[Tag, ...], Field(max_length=100)] = ()
    note: str | None = Field(None, max_length=100_000)

    def to_change(self) -> AnnotationsChange:
        """The same for the store."""
        return AnnotationsChange(**self.model_dump(exclude_unset=True))
