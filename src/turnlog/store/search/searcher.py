"""Answers queries from the search database, joined with the store.

Newest first is the order of messages' own times, exact to the millisecond and the same on every machine: document ids
only decide in which order to look. Relevance ranks the newest `RANKED` matches. An index that is missing, lagging or
damaged still answers with what it has and reports how far it is behind. A document whose text has changed since is not
shown.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self, get_args

from turnlog.errors import StoreError
from turnlog.store.search import index_file
from turnlog.store.search.base import EVERYTHING, SearchFilter, SearchPage, SearchSort, SessionSearchPage
from turnlog.store.search.documents import StoreReader
from turnlog.store.search.hits import HitReader
from turnlog.store.search.matches import Match, Matches, Position, newest_matches
from turnlog.store.search.plan import Planner, SearchPlan, last_id_of
from turnlog.store.search.query import Query, parse_query
from turnlog.store.search.ranking import Ranking
from turnlog.store.search.session_search import SessionSearch
from turnlog.store.search.spelling import suggestion
from turnlog.store.search.vocabulary import Vocabulary
from turnlog.store.sqlite.reading import decode_cursor, encode_cursor

RANKED = 1000
"""Number of the newest matches that are ranked by relevance."""


class Searcher:
    """Searches the database of a store. Any number of threads may use it."""

    def __init__(self, store_path: Path, search_path: Path) -> None:
        """Opens nothing yet: the search database may be created or deleted later."""
        self._store_path = store_path
        self._search_path = search_path
        self._idle: list[tuple[object, sqlite3.Connection]] = []
        self._lock = Lock()

    def __enter__(self) -> Self:
        """The searcher itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            for _, connection in self._idle:
                connection.close()
            self._idle.clear()

    def search(
        self,
        query: str,
        filter: SearchFilter = EVERYTHING,
        *,
        sort: SearchSort = "newest",
        limit: int = 20,
        cursor: str | None = None,
    ) -> SearchPage:
        """Parts in which the query is found, a page at a time. A query of nothing but a filter lists what fits it.

        One that says something, but holds no letter or digit that an index could have, is found nowhere.

        Raises ValueError for a foreign cursor, a limit below 1, a time without a zone, and a query with too many words
        or with a value that its field cannot have: an agent, project or model that no session has, say.
        """
        asked = _asked(query, limit)
        if asked is None:
            return SearchPage((), total=0, total_is_exact=True, unindexed=self.unindexed())
        with self._snapshot() as connection:
            if connection is not None:
                return _Search(connection, asked, asked.narrowed(filter)).page(sort, limit, cursor, query)
        return SearchPage((), unindexed=self._all_messages())

    def sessions(
        self,
        query: str,
        filter: SearchFilter = EVERYTHING,
        *,
        limit: int = 20,
        cursor: str | None = None,
        masked: Callable[[str], str] | None = None,
    ) -> SessionSearchPage:
        """Sessions that fit the query, the best match first, each with its best hit; a page at a time.

        `masked` takes secrets out of a hit's whole text, before a snippet is cut from it.

        A session fits if every word of the query is in its texts or in what it is called (title, project, tags, branch,
        files), wherever in it. Titles and tags count most, then prompts, then everything else; rare words more than
        common ones, words in one part more than words apart, and recent sessions a little more than old ones. All of
        the index is looked at, except that of very common words only the newest matches are counted. Without words,
        sessions come in the order of their newest match.

        Raises ValueError as `search` does.
        """
        asked = _asked(query, limit)
        if asked is None:
            return SessionSearchPage((), total=0, total_is_exact=True, unindexed=self.unindexed())
        with self._snapshot() as connection:
            if connection is not None:
                return _Search(connection, asked, asked.narrowed(filter)).sessions(limit, cursor, query, masked)
        return SessionSearchPage((), unindexed=self._all_messages())

    def unindexed(self) -> int:
        """Number of messages that changed and are not indexed yet. Raises StoreError if the index cannot be read."""
        try:
            with self._connection() as connection:
                if connection is None:
                    return self._all_messages()
                progress = index_file.read_progress(connection)
                return StoreReader(connection, index_file.STORE).unindexed(progress.sequence, progress.message_key)
        except sqlite3.Error as error:
            raise StoreError(f"cannot read {self._search_path}: {error}") from error

    def _all_messages(self) -> int:
        store = index_file.open_store(self._store_path)
        try:
            return StoreReader(store).unindexed(0, 0)
        finally:
            store.close()

    @contextmanager
    def _snapshot(self) -> Generator[sqlite3.Connection | None]:
        """As `_connection`. The `with` ends early if the index is damaged; other errors become StoreError."""
        try:
            with self._connection() as connection:
                yield connection
        except sqlite3.DatabaseError as error:
            # "Malformed": the indexer will recreate the file.
            if type(error) is not sqlite3.DatabaseError:
                raise StoreError(f"cannot search in {self._search_path}: {error}") from error

    @contextmanager
    def _connection(self) -> Generator[sqlite3.Connection | None]:
        """A snapshot on a connection that no other thread uses; None if there is no index."""
        file = _identity(self._search_path)
        with self._lock:
            identity, connection = self._idle.pop() if self._idle else (None, None)
        # The index may be deleted and recreated at any time; an open connection would still read the old file.
        if connection is not None and identity != file:
            connection.close()
            connection = None
        if connection is None:
            connection = index_file.open_for_reading(self._search_path, self._store_path)
        if connection is None:
            yield None
            return
        try:
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")
        # A transaction is open in it, so no other search may get it.
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._idle.append((file, connection))


class _Search:
    """One query on one connection."""

    def __init__(self, connection: sqlite3.Connection, query: Query, filter: SearchFilter) -> None:
        self._connection = connection
        self._query = query
        self._filter = filter
        self._progress = index_file.read_progress(connection)
        self._vocabulary = Vocabulary(connection, self._progress.documents)
        self._store_reader = StoreReader(connection, index_file.STORE)
        self._hits = HitReader(connection, query.terms)
        self._planner = Planner(connection, filter, self._vocabulary.expand, self._progress.displacement)
        self._planner.check_names(query)

    def sessions(
        self, limit: int, cursor: str | None, text: str, masked: Callable[[str], str] | None
    ) -> SessionSearchPage:
        search = SessionSearch(self._connection, self._query, self._filter, self._planner, self._vocabulary, masked)
        return search.page(limit, cursor, text)._replace(unindexed=self._unindexed(), note=self._note())

    def _note(self) -> str | None:
        return " ".join(filter(None, (self._query.note, self._planner.note(self._query)))) or None

    def _unindexed(self) -> int:
        return self._store_reader.unindexed(self._progress.sequence, self._progress.message_key)

    def page(self, sort: SearchSort, limit: int, cursor: str | None, text: str) -> SearchPage:
        """The hits of one page; `text` is the query as it was typed."""
        plan = self._planner.plan(self._query)
        if plan is None:
            page = SearchPage((), total=0, total_is_exact=True)
        else:
            page = self._newest(plan, limit, cursor) if sort == "newest" else self._relevant(plan, limit, cursor)
        if not page.hits and cursor is None:
            meant = suggestion(self._connection, self._vocabulary, self._query, text, self._finds)
            page = page._replace(suggestion=meant)
        return page._replace(unindexed=self._unindexed(), note=self._note())

    def _finds(self, query: Query) -> bool:
        """Whether another query finds a part with the same filter."""
        plan = self._planner.plan(query)
        return plan is not None and any(Matches(self._connection, plan, plan.last_id))

    def _newest(self, plan: SearchPlan, limit: int, cursor: str | None) -> SearchPage:
        known = decode_cursor("newest", get_args(Position), cursor)
        after: Position | None = None if known is None else (known[0], known[1], known[2], known[3])
        last_id = plan.last_id
        if after is not None:
            last_id = min(last_id, last_id_of(after[0], self._progress.displacement))
        matches = Matches(self._connection, plan, last_id)
        # One more than a page shows whether there is a next page.
        found, is_complete, seen = newest_matches(matches, limit + 1, after)
        page = found[:limit]
        total, is_exact = (None, False)
        if after is None:
            total, is_exact = (len(found), True) if is_complete else matches.count(seen)
            # A page may list more than are counted.
            total = max(total, len(page))
        return SearchPage(
            tuple(self._hits.hits(page)),
            next_cursor=encode_cursor("newest", *page[-1].position) if len(found) > limit else None,
            total=total,
            total_is_exact=is_exact,
        )

    def _relevant(self, plan: SearchPlan, limit: int, cursor: str | None) -> SearchPage:
        """Rank the matches that were newest when the first page was requested."""
        at = decode_cursor("relevance", (int, int), cursor)
        newest_id, offset = (plan.last_id, 0) if at is None else (min(plan.last_id, at[0]), at[1])
        # FTS5's bm25 reads every match: 0.4 s for a common word in a million parts, 5 s in five million.
        candidates = list(islice(Matches(self._connection, plan, newest_id), RANKED))
        ranked = self._rank(candidates)
        page = ranked[offset : offset + limit]
        has_more = len(ranked) > offset + limit
        # Later pages rank the same documents: what is indexed meanwhile would move hits between pages.
        newest_id = candidates[0].id if candidates and at is None else newest_id
        return SearchPage(
            tuple(self._hits.hits(page)),
            next_cursor=encode_cursor("relevance", newest_id, offset + limit) if has_more else None,
            total=len(ranked) if at is None else None,
            total_is_exact=len(candidates) < RANKED,
        )

    def _rank(self, candidates: list[Match]) -> list[Match]:
        ranking = Ranking(self._query.terms, self._vocabulary)
        texts = self._hits.texts(candidates)
        scored: dict[Position, tuple[float, Match]] = {}
        for match in candidates:
            text = texts.get(match.id)
            if text is None:
                continue
            score = ranking.score(text, match.entry.length, match.field)
            # A long text has several documents: its first match represents the part.
            scored.setdefault(match.position, (score, match))
        best = sorted(scored.values(), key=lambda each: (each[0], each[1].position), reverse=True)
        return [match for _, match in best]


def _asked(query: str, limit: int) -> Query | None:
    """The parsed query; None if it says something that no index could have. Raises ValueError as `search` does."""
    if limit < 1:
        raise ValueError(f"a page of {limit} hits is none")
    asked = parse_query(query)
    # Without terms the plan would list everything, which is not what this query asks for.
    return None if asked == Query() and query.strip() else asked


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
