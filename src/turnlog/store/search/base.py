"""The values of search: what is asked, and what a hit is. Imports nothing of the model and no database."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

SearchField: TypeAlias = Literal["text", "reasoning", "input", "output", "file"]
"""Where a word stands: what was said, what was thought, what a tool was given, what it gave back, a file's name."""

SearchSort: TypeAlias = Literal["newest", "relevance"]

FIELDS: tuple[SearchField, ...] = ("text", "reasoning", "input", "output", "file")
"""In the order of their numbers in the index."""


ROLES = ("system", "developer", "user", "assistant")
"""In the order of their numbers in the index."""


class SearchFilter(NamedTuple):
    """Which parts; what is None does not matter."""

    agent: str | None = None
    project: str | None = None
    """Path of the project, or its name."""
    session: str | None = None
    """Id of a session that holds the message; a copy in a fork is found in both."""
    role: str | None = None
    field: SearchField | None = None
    tool: str | None = None
    """Name of the tool, in any case."""
    failed: bool | None = None
    """True: tool calls that ended in an error (`output-error`). False: tool calls that did not."""
    has_image: bool | None = None
    """Whether an image stands in the tool call, or among the parts beside a text."""
    since: datetime | None = None
    until: datetime | None = None
    """Times of messages, aware; `since` is in, `until` is out. Messages without a time are outside both."""


class HitPlace(NamedTuple):
    """A session that holds the message of a hit, and where."""

    session_id: str
    position: int
    title: str | None
    project: str | None
    """Path of the session's project."""


class Hit(NamedTuple):
    """A part of a message in which the query was found."""

    message_id: str
    agent: str
    role: str
    part: int
    """Index of the part in the message."""
    field: SearchField
    tool_name: str | None
    created_at: datetime | None
    snippet: str
    """About 160 characters on one line, control characters left out."""
    marks: tuple[tuple[int, int], ...]
    """Start and end of what was found, in characters of the snippet."""
    places: tuple[HitPlace, ...]
    """The sessions that hold the message, the one that pays for it first."""


class SearchPage(NamedTuple):
    """Some hits, and how many there are."""

    hits: tuple[Hit, ...]
    next_cursor: str | None = None
    """Opaque; None on the last page."""
    total: int | None = None
    """How many hits were counted; only the first page counts."""
    total_is_exact: bool = False
    """False: there may be more than `total`."""
    unindexed: int = 0
    """Messages that changed and are not searchable yet."""


EVERYTHING = SearchFilter()


def search_path(store_path: Path) -> Path:
    """Where the search database of a store lies: `search.db` beside `turnlog.db`."""
    name = "search.db" if store_path.name == "turnlog.db" else f"{store_path.stem}.search.db"
    return store_path.with_name(name)
