"""Where a query was found."""

from __future__ import annotations

from datetime import datetime

from turnlog.model import Role
from turnlog.server.answers.base import Answer
from turnlog.server.answers.sessions import FoundSession, SessionPosition
from turnlog.store.search.base import SearchField


class SnippetPiece(Answer, frozen=True, kw_only=True):
    """A piece of a snippet; the marked ones are what was found."""

    text: str
    marked: bool


class SearchHit(Answer, frozen=True, kw_only=True):
    """A part of a message in which the query was found."""

    message_id: str
    position: int
    part: int
    """Index in the message's parts."""
    field: SearchField
    role: Role
    tool_name: str | None
    created_at: datetime | None
    snippet: list[SnippetPiece]
    also_in: list[SessionPosition]
    """Other sessions that hold the same message."""


class SearchGroup(Answer, frozen=True, kw_only=True):
    """The hits of one session on one page."""

    session: FoundSession
    hits: list[SearchHit]


class SearchAnswer(Answer, frozen=True, kw_only=True):
    """A page of hits, by session in the order of their first hit."""

    items: list[SearchGroup]
    next_cursor: str | None
    total: int | None
    """Counted for the first page only."""
    total_is_exact: bool
    pending: int
    """Messages that are not searchable yet."""
