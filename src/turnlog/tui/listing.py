"""What the list shows: sessions of a filter, the last used first, or those that fit a query, the best first.

Imports neither Textual nor Rich: the first picture is painted before they are there.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

from turnlog.plain_text import columns_of, one_line
from turnlog.store.base import SessionFilter, Store
from turnlog.store.search.base import Hit, SearchFilter, SessionHits, search_path

if TYPE_CHECKING:
    from turnlog.model import Session
    from turnlog.store.search.searcher import Searcher

PAGE: Final = 100
"""Rows that are read at once."""

DAYS: Final = (None, 1, 7, 30)
"""The times between which a key changes; None: any time."""


class Filters(NamedTuple):
    """What the list is narrowed to."""

    agent: str | None = None
    project: str | None = None
    days: int | None = None
    """Only what was used in so many days."""
    starred: bool = False

    def words(self) -> list[str]:
        """The filters in words, those that leave everything too."""
        time = "any time" if self.days is None else "last day" if self.days == 1 else f"last {self.days} days"
        return [
            self.agent or "all agents",
            "all projects" if self.project is None else PurePath(self.project).name,
            time,
            *(["starred"] if self.starred else []),
        ]


class Row(NamedTuple):
    """A session in the list."""

    session_id: str
    title: str
    agent: str
    project: str
    """Its name; empty if unknown."""
    updated_at: datetime | None
    starred: bool = False
    hit: Hit | None = None
    matches: int = 0

    @property
    def position(self) -> int | None:
        """Where the hit is in the session."""
        places = () if self.hit is None else self.hit.places
        return next((place.position for place in places if place.session_id == self.session_id), None)


class ListPage(NamedTuple):
    """Some rows, and how the list goes on."""

    rows: tuple[Row, ...]
    next_cursor: str | None = None
    total: int | None = None
    """Rows of all pages; only on the first one."""
    is_exact: bool = True
    suggestion: str | None = None
    """If nothing was found: the query as it may have been meant."""


class Listing:
    """Reads pages of the list. Any number of threads may read."""

    def __init__(self, store: Store, store_path: Path) -> None:
        """Read from this open store, whose file is at `store_path`, and its search index."""
        self._store = store
        self._store_path = store_path

    @cached_property
    def _searcher(self) -> Searcher:
        # Imported with the first query: the first picture needs none of it.
        from turnlog.store.search.searcher import Searcher

        return Searcher(self._store_path, search_path(self._store_path))

    def close(self) -> None:
        """Close the search index, if it was opened. The store stays open."""
        if "_searcher" in self.__dict__:
            self._searcher.close()

    def page(self, query: str, filters: Filters, cursor: str | None = None, limit: int = PAGE) -> ListPage:
        """The page after a cursor of the same query and filters."""
        since = None if filters.days is None else datetime.now(UTC) - timedelta(days=filters.days)
        if query.strip():
            return self._found(as_typed(query), filters, since, cursor, limit)
        wanted = SessionFilter(
            agent=filters.agent,
            project=filters.project,
            since=since,
            starred=True if filters.starred else None,
            archived=False,
        )
        page = self._store.sessions(wanted, limit=limit, cursor=cursor, count=cursor is None)
        stars = self._stars([session.id for session in page.items])
        rows = tuple(_row(session, session.id in stars) for session in page.items)
        return ListPage(rows, page.next_cursor, page.total)

    def _found(self, query: str, filters: Filters, since: datetime | None, cursor: str | None, limit: int) -> ListPage:
        wanted = SearchFilter(agent=filters.agent, project=filters.project, since=since)
        page = self._searcher.sessions(query, wanted, limit=limit, cursor=cursor)
        stars = self._stars([found.session_id for found in page.sessions])
        rows = tuple(
            _found_row(found, found.session_id in stars)
            for found in page.sessions
            if not filters.starred or found.session_id in stars
        )
        total = None if filters.starred else page.total
        return ListPage(rows, page.next_cursor, total, page.total_is_exact, page.suggestion)

    def _stars(self, session_ids: list[str]) -> frozenset[str]:
        found = self._store.annotations(session_ids)
        return frozenset(session_id for session_id, each in found.items() if each.starred)


def as_typed(query: str) -> str:
    """The query while it is being typed: its last word may be only a beginning."""
    return f"{query}*" if _OPEN_WORD.search(query) is not None and query.count('"') % 2 == 0 else query


_OPEN_WORD = re.compile(r"(?:^|[\s:\"(-])\w{2,}$")


def _row(session: Session, starred: bool) -> Row:
    project = "" if session.project is None else session.project.name
    return Row(session.id, _title(session.title), session.agent, one_line(project), session.updated_at, starred)


def _found_row(found: SessionHits, starred: bool) -> Row:
    project = one_line(found.project_name or "")
    title = _title(found.title)
    return Row(found.session_id, title, found.agent, project, found.updated_at, starred, found.hit, found.matches)


def _title(title: str | None) -> str:
    return one_line(title or "") or "untitled"


class Cell(NamedTuple):
    """A piece of a row, as wide as its text."""

    text: str
    role: str
    """`star`, `title`, `project`, `agent` or `age`."""


_PROJECT, _AGENT, _AGE = 16, 12, 5
"""The most columns of each; project and agent never have more than a sixth of a row."""

_NARROWEST = 48
"""Below so many columns only the title and the age are shown."""


def cells(row: Row, width: int, now: datetime) -> list[Cell]:
    """A row in exactly so many columns."""
    fixed = [Cell(_fitted(age(row.updated_at, now), _AGE, right=True), "age")]
    if width >= _NARROWEST:
        agent, project = min(_AGENT, width // 6), min(_PROJECT, width // 6)
        fixed.insert(0, Cell(f"{_fitted(one_line(row.agent), agent)} ", "agent"))
        fixed.insert(0, Cell(f"{_fitted(row.project, project)} ", "project"))
    room = width - sum(columns_of(cell.text) for cell in fixed) - 3
    return [Cell("★ " if row.starred else "  ", "star"), Cell(f"{_fitted(row.title, max(1, room))} ", "title"), *fixed]


def age(at: datetime | None, now: datetime) -> str:
    """How long ago in at most five characters: `now`, `5m`, `3h`, `2d`, `7w`, `2y`; empty if unknown."""
    if at is None:
        return ""
    seconds = (now - at).total_seconds()
    for unit, size in (("y", 365 * 86400), ("w", 7 * 86400), ("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size * (2 if unit in "wy" else 1):
            return f"{int(seconds // size)}{unit}"
    return "now"


def _fitted(text: str, width: int, *, right: bool = False) -> str:
    """A text in exactly so many columns of a terminal."""
    taken = columns_of(text)
    if taken > width:
        while text and columns_of(text) > width - 1:
            text = text[:-1]
        text = f"{text}…"
        taken = columns_of(text)
    space = " " * (width - taken)
    return space + text if right else text + space
