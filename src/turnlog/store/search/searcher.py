"""Answers queries from the search database, joined with the store.

Newest first is the order of messages' own times, exact to the millisecond and the same on every machine: document ids
only decide in which order to look. Relevance ranks the newest `RANKED` matches. An index that is missing, lagging or
damaged still answers with what it has and reports how far it is behind. A document whose text has changed since is not
shown.
"""

from __future__ import annotations

import sqlite3
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from heapq import heappush, heappushpop
from itertools import islice
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import NamedTuple, Self, TypeAlias, get_args
from zlib import crc32

from turnlog.errors import StoreError
from turnlog.store.frames import BODY_COLUMNS, BodyReader
from turnlog.store.rows import moment
from turnlog.store.search import index_file
from turnlog.store.search.base import EVERYTHING, FIELDS, Hit, HitPlace, SearchFilter, SearchPage, SearchSort
from turnlog.store.search.blocks import SUPERSEDED, DocumentEntry, entry_at
from turnlog.store.search.documents import Document, StoreReader, documents_of, texts_of
from turnlog.store.search.plan import Planner, SearchPlan, last_id_of, sql_list
from turnlog.store.search.query import Query, Term, parse_query
from turnlog.store.search.snippets import TermFinder
from turnlog.store.search.vocabulary import Vocabulary
from turnlog.store.sqlite.reading import decode_cursor, encode_cursor

RANKED = 1000
"""Number of the newest matches that are ranked by relevance."""

MAX_COUNTED = 1000
_COUNTING_SECONDS = 0.0001
"""Counting stops at either limit."""

_COUNTED_AT_ONCE = 4

_GONE = ("", "", list[Document]())
"""A message that was deleted between two reads of the store."""

_PLACES = (
    "SELECT x.message_key, s.agent || ':' || s.external_id, x.position, coalesce(a.title, s.title), p.path"
    " FROM memberships x JOIN messages m ON m.key = x.message_key JOIN sessions s ON s.key = x.session_key"
    " LEFT JOIN projects p ON p.key = s.project_key"
    " LEFT JOIN annotations a ON a.session_id = s.agent || ':' || s.external_id"
    " WHERE x.message_key IN ({keys}) ORDER BY x.session_key IS NOT m.billed_key, x.session_key"
)

# Both tables return documents by descending id, so SQLite merges them without sorting: the first of a million matches
# come at once.
_IDS = (
    " UNION ALL ".join(
        [
            f"SELECT rowid FROM {table} WHERE {table} MATCH ?1 AND rowid <= ?2 AND rowid >= ?3"
            for table in ("words", "fresh")
        ]
    )
    + " ORDER BY 1 DESC"
)

_BLOCK = (
    "SELECT d.layout, m.key, m.created_at, m.external_id FROM documents d JOIN messages m ON m.key = d.message_key"
    " WHERE d.block = ? AND"
    " (m.billed_key IS NOT NULL OR EXISTS (SELECT 1 FROM memberships x WHERE x.message_key = m.key))"
)

Position: TypeAlias = tuple[int, str, int, int]
"""The place of a hit in a list: time, message, part, field."""


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

        Raises ValueError for a foreign cursor, a limit below 1 or a time without a zone; never for what the query says.
        """
        if limit < 1:
            raise ValueError(f"a page of {limit} hits is none")
        asked = parse_query(query)
        # Without terms the plan would list everything, which is not what this query asks for.
        if asked == Query() and query.strip():
            return SearchPage((), total=0, total_is_exact=True, unindexed=self.unindexed())
        try:
            with self._connection() as connection:
                if connection is not None:
                    return _Search(connection, asked, asked.narrowed(filter)).page(sort, limit, cursor)
        except sqlite3.DatabaseError as error:
            # "Malformed": the indexer will recreate the file.
            if type(error) is not sqlite3.DatabaseError:
                raise StoreError(f"cannot search in {self._search_path}: {error}") from error
        return SearchPage((), unindexed=self._all_messages())

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

    def page(self, sort: SearchSort, limit: int, cursor: str | None) -> SearchPage:
        unindexed = self._store_reader.unindexed(self._progress.sequence, self._progress.message_key)
        planner = Planner(self._connection, self._filter, self._vocabulary.expand, self._progress.displacement)
        plan = planner.plan(self._query)
        if plan is None:
            return SearchPage((), total=0, total_is_exact=True, unindexed=unindexed)
        page = self._newest(plan, limit, cursor) if sort == "newest" else self._relevant(plan, limit, cursor)
        return page._replace(unindexed=unindexed)

    def _newest(self, plan: SearchPlan, limit: int, cursor: str | None) -> SearchPage:
        known = decode_cursor("newest", get_args(Position), cursor)
        after: Position | None = None if known is None else (known[0], known[1], known[2], known[3])
        last_id = plan.last_id
        if after is not None:
            last_id = min(last_id, last_id_of(after[0], self._progress.displacement))
        matches = Matches(self._connection, plan, last_id)
        # One more than a page shows whether there is a next page.
        found, is_complete = newest_matches(matches, limit + 1, after)
        page = found[:limit]
        total, is_exact = (None, False)
        if after is None:
            total, is_exact = (len(found), True) if is_complete else matches.count()
        return SearchPage(
            tuple(self._hits(page)),
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
            tuple(self._hits(page)),
            next_cursor=encode_cursor("relevance", newest_id, offset + limit) if has_more else None,
            total=len(ranked) if at is None else None,
            total_is_exact=len(candidates) < RANKED,
        )

    def _rank(self, candidates: list[Match]) -> list[Match]:
        ranking = Ranking(self._query.terms, self._vocabulary)
        bodies = self._bodies(candidates)
        scored: dict[Position, tuple[float, Match]] = {}
        for match in candidates:
            document = _find(bodies.get(match.message_key, _GONE)[2], match)
            if document is None:
                continue
            score = ranking.score(document.inline_text, match.entry.length, match.field)
            # A long text has several documents: its first match stands for the part.
            scored.setdefault(match.position, (score, match))
        best = sorted(scored.values(), key=lambda each: (each[0], each[1].position), reverse=True)
        return [match for _, match in best]

    def _bodies(self, matches: Iterable[Match]) -> dict[int, tuple[str, str, list[Document]]]:
        """Message key -> agent, role and documents of the parts that match."""
        parts: dict[int, set[int]] = defaultdict(set)
        for match in matches:
            parts[match.message_key].add(match.part)
        rows = self._connection.execute(
            f"SELECT m.key, m.agent, m.role, {BODY_COLUMNS} FROM messages m WHERE m.key IN ({sql_list(parts)})"
        )
        read = BodyReader(self._connection, index_file.STORE)
        return {key: (agent, role, documents_of(read(*place), parts[key])) for key, agent, role, *place in rows}

    def _hits(self, matches: Sequence[Match]) -> Iterator[Hit]:
        bodies = self._bodies(matches)
        places = self._places(bodies)
        finder = TermFinder(self._query.terms)
        for match in matches:
            agent, role, documents = bodies.get(match.message_key, _GONE)
            document = _find(documents, match)
            text = None if document is None else self._text(match, document)
            if document is None or text is None:
                continue
            snippet = finder.snippet(text)
            yield Hit(
                match.message_id,
                agent,
                role,
                match.part,
                FIELDS[match.field],
                document.tool or None,
                moment(match.time),
                snippet.text,
                snippet.marks,
                tuple(places.get(match.message_key, ())),
            )

    def _text(self, match: Match, document: Document) -> str | None:
        """The indexed text; None if it has changed since."""
        entry = match.entry
        for data in texts_of(document, self._store_reader.loader(match.message_key)):
            # Length and checksum identify the indexed piece: the body may have changed since.
            if len(data) == entry.length and crc32(data) == entry.checksum:
                return data.decode("utf-8", "replace")
        return None

    def _places(self, keys: Iterable[int]) -> dict[int, list[HitPlace]]:
        places: dict[int, list[HitPlace]] = {}
        for key, *place in self._connection.execute(_PLACES.format(keys=sql_list(keys))):
            places.setdefault(key, []).append(HitPlace(*place))
        return places


def _find(documents: Iterable[Document], match: Match) -> Document | None:
    for document in documents:
        if document.part == match.part and document.field == match.field:
            return document
    return None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


class Match(NamedTuple):
    """A document that matches, ordered by time, message, part, field."""

    created_at: int
    """Unix milliseconds; -1 if unknown, which sorts before all times."""
    message_id: str
    part: int
    field: int
    id: int
    message_key: int
    entry: DocumentEntry

    @property
    def position(self) -> Position:
        """The sort key that identifies it in the list of hits."""
        return self[:4]

    @property
    def time(self) -> int | None:
        """Unix milliseconds; None if unknown."""
        return None if self.created_at < 0 else self.created_at


class Matches:
    """Documents that match, by descending id. They are read lazily."""

    def __init__(self, connection: sqlite3.Connection, plan: SearchPlan, last_id: int) -> None:
        self._connection = connection
        self._plan = plan
        self._ids = connection.execute(_IDS, (plan.expression, last_id, plan.first_id))
        self._shown = 0

    def __iter__(self) -> Iterator[Match]:
        """Yield the documents that are unchanged since they were indexed, as far as that is known."""
        query = _BLOCK + self._plan.conditions
        block, row = -1, None
        for (number,) in self._ids:
            if number >> index_file.SLOT_BITS != block:
                block = number >> index_file.SLOT_BITS
                row = self._connection.execute(query, (block,)).fetchone()
            # Its message was deleted or lies outside of the filter.
            if row is None:
                continue
            packed, message_key, created_at, message_id = row
            entry = entry_at(packed, number & index_file.SLOTS - 1)
            if entry is None or entry.flags & SUPERSEDED:
                continue
            self._shown += 1
            moment = -1 if created_at is None else created_at
            yield Match(moment, message_id, entry.part, entry.field, number, message_key, entry)

    def count(self) -> tuple[int, bool]:
        """The number of matches counted within a few milliseconds, and whether that is all."""
        deadline = time.perf_counter() + _COUNTING_SECONDS
        total = self._shown
        while total < MAX_COUNTED and time.perf_counter() < deadline:
            some = len(self._ids.fetchmany(_COUNTED_AT_ONCE))
            total += some
            if some < _COUNTED_AT_ONCE:
                # Superseded messages and those of other sessions were not filtered out.
                return total, not self._plan.conditions
        return total, False


def newest_matches(matches: Iterable[Match], wanted: int, after: Position | None) -> tuple[list[Match], bool]:
    """The latest matches before `after`, and whether these are all.

    A document's block is never smaller than the block of its time. So once enough are found, a document
    still to come can be newer than the oldest of them only while its block is not below that one's.
    """
    best: list[Match] = []
    """A heap, the earliest in front: of a million of one time only these few are kept in order."""
    seen: set[Position] = set()
    floor = -1
    for match in matches:
        if match.id >> index_file.SLOT_BITS < floor:
            return sorted(best, reverse=True), False
        position = match.position
        # A long text has several documents, and a part is one hit.
        if position in seen or (after is not None and position >= after):
            continue
        seen.add(position)
        if len(best) < wanted:
            heappush(best, match)
        else:
            heappushpop(best, match)
        if len(best) == wanted:
            floor = index_file.block_of(best[0].time)
    return sorted(best, reverse=True), len(seen) <= wanted


_FIELD_WEIGHTS = (1.3, 1.0, 1.0, 0.8, 1.2)
"""Text, reasoning, input, output, file: what was said counts more than what a tool printed."""

_SATURATION = 1.2
_LENGTH_WEIGHT = 0.75
_USUAL_LENGTH = 1200
"""Bytes of a document of average length."""

_READ = 4000
"""Characters in which terms are counted."""


class Ranking:
    """Scores documents for one query."""

    def __init__(self, terms: Sequence[Term], vocabulary: Vocabulary) -> None:
        self._finder = TermFinder(terms)
        self._rarities = [sum([vocabulary.rarity(piece) for piece in term.pieces]) for term in terms]

    def score(self, text: str, length: int, field: int) -> float:
        """The score of a document of `length` bytes that begins with `text`; 0 for a query without terms."""
        damping = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * min(length, 20 * _USUAL_LENGTH) / _USUAL_LENGTH)
        score = 0.0
        # A term that the index found but that is not counted comes after the beginning, or has another spelling.
        for rarity, count in zip(self._rarities, self._finder.count(text[:_READ]), strict=True):
            times = max(count, 1)
            score += rarity * times * (_SATURATION + 1) / (times + damping)
        return score * _FIELD_WEIGHTS[field]
