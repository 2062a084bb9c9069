"""What requests may ask: one pydantic model a question, which is also what OpenAPI says about it.

Unknown parameters are errors, since a misspelt filter that is ignored would show too much. Page sizes are the
exception: a size that makes no sense is the default, and one that is too large the most there is (C-b).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from turnlog.model import Role
from turnlog.store.base import (
    AnnotationsChange,
    DiagnosticFilter,
    FileFilter,
    RunFilter,
    SessionFilter,
    SessionSort,
    ToolCallFilter,
    UsageBy,
    UsageFilter,
)
from turnlog.store.runs import RunStatus
from turnlog.store.search.base import SearchField, SearchFilter, SearchSort

LARGEST_POSITION = 2**62
"""Positions are 63-bit integers in the store; one more than the last must still be one."""


_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def _moment(value: Any) -> Any:
    """A day or a time with its zone; days begin in UTC."""
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise PydanticCustomError("moment", "is neither a day (2026-11-20) nor a time in ISO 8601") from None
    if _DAY.fullmatch(value):
        return found.replace(tzinfo=UTC)
    if found.tzinfo is None:
        raise PydanticCustomError("moment", "needs a time zone, as in 2026-11-20T10:00:00Z")
    return found


Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    WithJsonSchema({"type": "string", "description": "A day (2026-11-20, UTC) or a time with its zone."}),
]

Position = Annotated[int, Field(ge=0, le=LARGEST_POSITION)]

SessionPosition = Annotated[int, Field(ge=-LARGEST_POSITION, le=LARGEST_POSITION)]
"""Of a message or event in its session. What a fork shares and has no copy of stands before its own, below zero."""


def _page_size(default: int, largest: int) -> BeforeValidator:
    def read(value: Any) -> int:
        try:
            size = int(value)
        except ValueError:
            return default
        return min(size, largest) if size > 0 else default

    return BeforeValidator(read)


def _page_schema(default: int, largest: int) -> WithJsonSchema:
    return WithJsonSchema({"type": "integer", "minimum": 1, "maximum": largest, "default": default})


SmallPage = Annotated[int, _page_size(20, 100), _page_schema(20, 100)]
WindowSize = Annotated[int, _page_size(40, 200), _page_schema(40, 200)]
ListPage = Annotated[int, _page_size(50, 200), _page_schema(50, 200)]
LongPage = Annotated[int, _page_size(100, 500), _page_schema(100, 500)]


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


class _Query(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty(cls, values: Any) -> Any:
        """`?agent=` is a form's field that nobody filled in."""
        # What a query string was parsed into, before anybody has checked it.
        return {name: value for name, value in values.items() if value != ""} if isinstance(values, dict) else values  # pyright: ignore[reportUnknownVariableType]


class SessionQuery(_Query):
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


class EventsQuery(_Query):
    """From where on changes are told."""

    after: Position | None = Field(
        None, description="A `change_sequence`: what changed after it comes first. `Last-Event-ID` counts more."
    )


class WindowQuery(_Query):
    """Which piece of a session. Positions are those of its rows."""

    after: SessionPosition | None = None
    before: SessionPosition | None = None
    around: SessionPosition | None = None
    limit: WindowSize = 40

    @field_validator("around")
    @classmethod
    def _stand_alone(cls, around: int | None, info: ValidationInfo) -> int | None:
        if info.data.get("after") is not None or info.data.get("before") is not None:
            raise PydanticCustomError("window", "cannot be combined with after or before")
        return around


class ExportQuery(_Query):
    """Which document is made of a session."""

    as_: ExportFormat = Field(alias="as", description="The format, as in `turnlog export --as`.")
    redact: bool = Field(False, description="Whether secrets are taken out.")
    model: str | None = Field(None, description="The model that a request asks; by default the last that answered.")


class ReplayQuery(_Query):
    """Which piece of a replay, and how fast."""

    start: Position = Field(0, description="`next_start` of the page before.")
    limit: LongPage = 100
    speed: float = Field(1.0, gt=0, le=1e6, description="How many times as fast as it was.")
    max_pause: float = Field(3.0, ge=0, le=3600, description="Seconds that are waited at most.")
    view: Literal["full", "model"] = Field("full", description="Everything, or what the model sees at the end.")


class UIMessagesQuery(_Query):
    """Which piece of a session, and how it is shown."""

    offset: Position = 0
    limit: ListPage = 50
    cursor: str | None = Field(None, description="`next_cursor` of the page before, instead of an offset.")
    version: int = Field(7, ge=5, le=7, description="The AI SDK that reads it.")
    include_reasoning: bool = True
    merge_tool_results: bool = True
    merge_steps: bool = True
    whole: bool = Field(False, description="Whether large contents are whole instead of previews.")

    @field_validator("cursor")
    @classmethod
    def _stand_alone(cls, cursor: str | None, info: ValidationInfo) -> str | None:
        if cursor is not None and info.data.get("offset"):
            raise PydanticCustomError("page", "cannot be combined with an offset")
        return cursor


class ChatStreamQuery(_Query):
    """Who follows a session."""

    version: int = Field(7, ge=5, le=7, description="The AI SDK that reads it.")


class PlacedQuery(_Query):
    """Whose placement of a message."""

    session: str | None = Field(None, description="Id of the session; else the one that pays for the message.")


class _ToolCallFilters(_Query):
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


class FileQuery(_Query):
    """Whose history."""

    path: str = Field(min_length=1, description="The file: its path, or the end of one (`src/shop.py`).")
    changed: bool = Field(False, description="Whether calls that only read are left out.")
    limit: ListPage = 50
    cursor: str | None = None


class TouchedFilesQuery(_Query):
    """Which files."""

    text: str | None = Field(None, description="What the path contains, in any case.")
    project: str | None = Field(None, description="Path of the project, or its name.")
    agent: str | None = None
    changed: bool | None = Field(None, description="`true`: only files that some call changed.")
    limit: LongPage = 100

    def to_filter(self) -> FileFilter:
        """The same for the store."""
        return FileFilter(**self.model_dump(exclude={"limit"}))


class SearchQuery(_Query):
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


class UsageQuery(_Query):
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


class RunQuery(_Query):
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


class DiagnosticQuery(_Query):
    """Which diagnostics."""

    agent: str | None = None
    session: str | None = None
    path: str | None = None
    severity: Literal["error", "note"] | None = None
    limit: LongPage = 100
    cursor: str | None = None

    def to_filter(self) -> DiagnosticFilter:
        """The same for the store."""
        return DiagnosticFilter(**self.model_dump(exclude={"limit", "cursor"}))


class BytesQuery(_Query):
    """How bytes are wanted."""

    as_: Literal["text"] | None = Field(None, alias="as", description="`text`: as plain text in UTF-8.")


Tag = Annotated[str, Field(min_length=1, max_length=100)]


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
