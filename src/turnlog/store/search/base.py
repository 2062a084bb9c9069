"""The values of search: filters, hits and pages. Imports no model and no database."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from turnlog.arguments import checked_fields

SearchField: TypeAlias = Literal["text", "reasoning", "input", "output", "file"]
"""The field of a part: what was said, reasoning, a tool's input, a tool's output, or the name of a file."""

SearchSort: TypeAlias = Literal["relevance", "newest"]

FIELDS: tuple[SearchField, ...] = ("text", "reasoning", "input", "output", "file")
"""In the order of their numbers in the index."""


ROLES = ("system", "developer", "user", "assistant")
"""In the order of their numbers in the index."""


@checked_fields
class SearchFilter(NamedTuple):
    """A filter of parts; None matches everything."""

    agent: str | None = None
    project: str | None = None
    """Path or name of the project."""
    session: str | None = None
    """Id of a session that contains the message; a message copied into a fork is found in both."""
    role: str | None = None
    field: SearchField | None = None
    tool: str | None = None
    """Name of the tool; case is ignored."""
    failed: bool | None = None
    """True: only tool calls that ended with an error (`output-error`). False: only tool calls that did not."""
    has_image: bool | None = None
    """Whether an image is in the tool call, or among the other parts of the message of a text."""
    since: datetime | None = None
    until: datetime | None = None
    """Time of the message, with a time zone; `since` is inclusive, `until` exclusive. Messages without a time never
    match."""
    user: str | None = None
    machine: str | None = None
    """Of whose sessions (`Session.ownership`)."""
    only: frozenset[str] | None = None
    """Ids of the sessions that may be found, for a reader who may not see the others."""


class HitPlace(NamedTuple):
    """A session that contains the message of a hit, and its place there."""

    session_id: str
    position: int
    title: str | None
    project: str | None
    """Path of the session's project."""
    project_name: str | None = None
    """Its name: the user's, or that of its folder."""


class Hit(NamedTuple):
    """A part of a message that matches the query."""

    message_id: str
    agent: str
    role: str
    part: int
    """Index of the part in the message."""
    field: SearchField
    tool_name: str | None
    created_at: datetime | None
    snippet: str
    """About 160 characters on one line, without control characters."""
    marks: tuple[tuple[int, int], ...]
    """Start and end of each match, in characters of the snippet."""
    places: tuple[HitPlace, ...]
    """The sessions that contain the message, the billed one first."""


class SearchPage(NamedTuple):
    """Some hits, and how many there are."""

    hits: tuple[Hit, ...]
    next_cursor: str | None = None
    """Opaque; None on the last page."""
    total: int | None = None
    """The number of hits counted; None except on the first page."""
    total_is_exact: bool = False
    """False: there may be more than `total`."""
    unindexed: int = 0
    """Messages that changed and are not yet indexed."""
    suggestion: str | None = None
    """If nothing was found: the query with misspelt words replaced by words of the index, where there are some."""
    note: str | None = None
    """What the query means that people may not expect of it."""


class NameMatch(NamedTuple):
    """Something that a session is called by, in which words of the query are."""

    field: str
    """`title`, `tag`, `project`, `branch` or `file`."""
    text: str
    marks: tuple[tuple[int, int], ...]
    """Start and end of each match, in characters of the text."""


class SessionHits(NamedTuple):
    """A session that fits the query, with its best hit."""

    session_id: str
    agent: str
    title: str | None
    project: str | None
    """Path of its project."""
    project_name: str | None
    """Its name: the user's, or that of its folder."""
    updated_at: datetime | None
    names: tuple[NameMatch, ...]
    hit: Hit | None
    """None: the query is in the names only."""
    matches: int
    """Parts of the session in which all of the query is."""
    matches_is_exact: bool
    """False: there may be more than `matches`."""


class SessionSearchPage(NamedTuple):
    """Some sessions that fit the query, the best first, and how many there are."""

    sessions: tuple[SessionHits, ...]
    next_cursor: str | None = None
    """Opaque; None on the last page."""
    total: int | None = None
    """The number of sessions; None except on the first page."""
    total_is_exact: bool = False
    """False: there may be more than `total`."""
    unindexed: int = 0
    """Messages that changed and are not yet indexed."""
    suggestion: str | None = None
    """If nothing was found: the query with misspelt words replaced by words of the index, where there are some."""
    note: str | None = None
    """What the query means that people may not expect of it."""


EVERYTHING = SearchFilter()


def search_path(store_path: Path) -> Path:
    """The path of a store's search database: `search.db` next to `turnlog.db`."""
    name = "search.db" if store_path.name == "turnlog.db" else f"{store_path.stem}.search.db"
    return store_path.with_name(name)
