"""What links are found in: the sessions of a store, or those that somebody sees on a hub."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from turnlog.model import Message, Session
from turnlog.store.base import ToolCallFilter
from turnlog.store.search.base import SearchFilter, SearchPage
from turnlog.store.usage_report import AgentSummary
from turnlog.store.values import FileHistory, OutlineEntry, Page, PlacedMessage, ToolCall


class History(Protocol):
    """The questions of `turnlog.store.Store` that links need; every store answers them."""

    def agents(self) -> Iterable[AgentSummary]:
        """Agents of which there is anything."""
        ...

    def session(self, session_id: str) -> Session:
        """A session. Raises NotFoundError."""
        ...

    def find_session(self, agent: str, external_id: str) -> Session | None:
        """A session by the id that its agent gave it."""
        ...

    def messages(self, session_id: str, *, limit: int | None, resolve_blobs: bool) -> Sequence[PlacedMessage]:
        """The first messages of a session."""
        ...

    def message(self, message_id: str, *, session_id: str | None = None, structured: bool = False) -> Message:
        """A message. Raises NotFoundError."""
        ...

    def outline(self, session_id: str) -> Sequence[OutlineEntry]:
        """The landmarks of a session."""
        ...

    def tool_calls(self, filter: ToolCallFilter, *, limit: int, cursor: str | None) -> Page[ToolCall]:
        """A page of calls, the newest first."""
        ...

    def file_history(self, path: str, *, changed: bool, limit: int) -> FileHistory:
        """What was done to a file whose path ends so."""
        ...


class HistorySearch(Protocol):
    """The question of `turnlog.store.search.searcher.Searcher` that links need."""

    def search(self, query: str, filter: SearchFilter, *, limit: int, cursor: str | None) -> SearchPage:
        """A page of hits."""
        ...
