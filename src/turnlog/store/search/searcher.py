"""Answers queries from the search database, joined to the store.

Newest first is the order of messages' own times, exact to the millisecond, the same on every machine: ids only say in
which order to look. Relevance ranks the newest `RANKED` matches. An index that is missing, lagging or damaged answers
with what it has, and says how far it is behind; a document whose text has changed since is not shown.
"""

from __future__ import annotations

import sqlite3
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeAlias, TypeVar, get_args
from zlib import crc32

import msgspec

from turnlog.errors import StoreError
from turnlog.store.queries.paging import aware_milliseconds, decode_cursor, encode_cursor
from turnlog.store.rows import moment
from turnlog.store.search import layout, markers, schema
from turnlog.store.search.base import EVERYTHING, FIELDS, Hit, HitPlace, SearchFilter, SearchPage, SearchSort
from turnlog.store.search.contents import Contents
from turnlog.store.search.documents import FAILED, HAS_IMAGE, INPUT, OUTPUT, Document, documents_of, texts_of
from turnlog.store.search.layout import SUPERSEDED, Entry
from turnlog.store.search.query import Query, any_of, parse_query, to_expression
from turnlog.store.search.ranking import Ranking
from turnlog.store.search.snippets import Finder
from turnlog.store.search.vocabulary import Vocabulary

RANKED = 1000
"""Matches that are ranked by relevance: the newest ones."""

MOST_COUNTED = 1000
_COUNTING_SECONDS = 0.0003
"""Counting stops at either."""

_COUNTED_AT_ONCE = 10

_GONE = ("", "", list[Document]())
"""A message that was deleted between two looks into the store."""

_LAST_ID = (1 << 63) - 1

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
    " WHERE d.block = ?"
)

_PLACES = (
    "SELECT x.message_key, s.agent || ':' || s.external_id, x.position, coalesce(a.title, s.title), p.path"
    " FROM memberships x JOIN messages m ON m.key = x.message_key JOIN sessions s ON s.key = x.session_key"
    " LEFT JOIN projects p ON p.key = s.project_key"
    " LEFT JOIN annotations a ON a.session_id = s.agent || ':' || s.external_id"
    " WHERE x.message_key IN ({keys}) ORDER BY x.session_key IS NOT m.pays_key, x.session_key"
)


_Position: TypeAlias = tuple[int, str, int, int]
"""Where a hit stands in a list: time, message, part, field."""

_CursorT = TypeVar("_CursorT")


class _Match(NamedTuple):
    """A document that matches. Compares by what comes later: time, message, part, field."""

    created_at: int
    """Unix milliseconds; -1 when unknown, so that it sorts before every time."""
    message_id: str
    sequence: int
    field: int
    id: int
    message_key: int
    entry: Entry

    @property
    def position(self) -> _Position:
        """What tells it apart in the list of hits."""
        return self[:4]


class _Plan(NamedTuple):
    """A query and its filter, ready to be run."""

    expression: str
    conditions: str
    first_id: int
    last_id: int


class Searcher:
    """Reads the search database of a store. Many threads may use it at once."""

    def __init__(self, store_path: Path, search_path: Path) -> None:
        """Opens nothing yet: the search database may come and go."""
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
        """Close the connections that are not in use."""
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

        Raises ValueError for a foreign cursor, a limit below 1 or a time without a zone; never for what the query says.
        """
        if limit < 1:
            raise ValueError(f"a page of {limit} hits is none")
        try:
            with self._connection() as connection:
                if connection is not None:
                    return _Search(connection, parse_query(query), filter).page(sort, limit, cursor)
        except sqlite3.DatabaseError as error:
            # "Malformed": the indexer will make it anew.
            if type(error) is not sqlite3.DatabaseError:
                raise StoreError(f"cannot search in {self._search_path}: {error}") from error
        return SearchPage((), behind=self._all_messages())

    def behind(self) -> int:
        """Messages that changed and are not searchable yet."""
        with self._connection() as connection:
            if connection is None:
                return self._all_messages()
            progress = schema.read_progress(connection)
            return Contents(connection).behind(progress.sequence, progress.message_key)

    def _all_messages(self) -> int:
        store = schema.open_store(self._store_path)
        try:
            return Contents(store).behind(0, 0)
        finally:
            store.close()

    @contextmanager
    def _connection(self) -> Generator[sqlite3.Connection | None]:
        """A connection of this thread's own for the while; None when there is no index."""
        file = _identity(self._search_path)
        with self._lock:
            identity, connection = self._idle.pop() if self._idle else (None, None)
        if connection is not None and identity != file:
            connection.close()
            connection = None
        if connection is None:
            connection = schema.open_for_reading(self._search_path, self._store_path)
        if connection is None:
            yield None
            return
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._idle.append((file, connection))


class _Matches:
    """Documents that match, by falling id. What is not looked at costs nothing."""

    def __init__(self, connection: sqlite3.Connection, plan: _Plan, last_id: int) -> None:
        self._connection = connection
        self._plan = plan
        self._ids = connection.execute(_IDS, (plan.expression, last_id, plan.first_id))
        self._shown = 0

    def __iter__(self) -> Iterator[_Match]:
        """Each document that is still what it was when it was indexed, or may be."""
        query = _BLOCK + self._plan.conditions
        block, row = -1, None
        for (number,) in self._ids:
            if number >> schema.SLOT_BITS != block:
                block = number >> schema.SLOT_BITS
                row = self._connection.execute(query, (block,)).fetchone()
            if row is None:
                continue
            packed, message_key, created_at, message_id = row
            entry = layout.entry_at(packed, number & schema.SLOTS - 1)
            if entry is None or entry.flags & SUPERSEDED:
                continue
            self._shown += 1
            moment_ = -1 if created_at is None else created_at
            yield _Match(moment_, message_id, entry.sequence, entry.field, number, message_key, entry)

    def count(self) -> tuple[int, bool]:
        """How many there are, as far as they can be counted in no time, and whether these are all."""
        deadline = time.perf_counter() + _COUNTING_SECONDS
        total = self._shown
        while total < MOST_COUNTED and time.perf_counter() < deadline:
            some = len(self._ids.fetchmany(_COUNTED_AT_ONCE))
            total += some
            if some < _COUNTED_AT_ONCE:
                # What is superseded, or in another session, was not looked at.
                return total, not self._plan.conditions
        return total, False


def _latest(matches: Iterable[_Match], wanted: int, after: _Position | None) -> tuple[list[_Match], bool]:
    """The latest matches before `after`, and whether these are all.

    A document's block is never smaller than that of its message's time. So when enough are found, what is still to come
    can only be later than the earliest of them while blocks do not fall below that time's.
    """
    found: list[_Match] = []
    seen: set[_Position] = set()
    floor = -1
    for match in matches:
        if match.id >> schema.SLOT_BITS < floor:
            return found[:wanted], False
        position = match.position
        if position in seen or (after is not None and position >= after):
            continue
        seen.add(position)
        found.append(match)
        if len(found) >= wanted:
            found.sort(key=_position, reverse=True)
            floor = schema.block_of(_time(found[wanted - 1]))
    found.sort(key=_position, reverse=True)
    return found[:wanted], len(found) <= wanted


class _Search:
    """One query on one connection."""

    def __init__(self, connection: sqlite3.Connection, query: Query, filter: SearchFilter) -> None:
        self._connection = connection
        self._query = query
        self._filter = filter
        self._progress = schema.read_progress(connection)
        self._vocabulary = Vocabulary(connection, self._progress.documents)
        self._contents = Contents(connection)

    def page(self, sort: SearchSort, limit: int, cursor: str | None) -> SearchPage:
        behind = self._contents.behind(self._progress.sequence, self._progress.message_key)
        plan = self._plan()
        if plan is None:
            return SearchPage((), total=0, total_is_exact=True, behind=behind)
        page = self._newest(plan, limit, cursor) if sort == "newest" else self._relevant(plan, limit, cursor)
        return page._replace(behind=behind)

    # -- what is asked

    def _plan(self) -> _Plan | None:
        """None when nothing can be found."""
        filter = self._filter
        required, forbidden = self._kind_words(), list[str]()
        if required is None:
            return None
        if filter.tool is not None:
            required.append(any_of([markers.tool(filter.tool)]))
        for flag, wanted in ((FAILED, filter.failed), (HAS_IMAGE, filter.has_image)):
            if wanted is not None:
                (required if wanted else forbidden).append(any_of(markers.flags(flag)))
        conditions = self._times()
        for condition, words in (self._session_condition(), self._project_condition()):
            if words is None:
                return None
            conditions += condition
            required += words
        expression = to_expression(self._query, required, forbidden, self._vocabulary.expand)
        if expression is None:
            return None
        first, last = self._ids()
        return _Plan(expression, conditions, first, last)

    def _kind_words(self) -> list[str] | None:
        """Words for agent, role and field; all kinds when nothing else says what is to be found."""
        filter = self._filter
        fields = None if filter.field is None else (FIELDS.index(filter.field),)
        if filter.failed is False and fields is None:
            # What failed says so itself; what did not must be a tool call.
            fields = (INPUT, OUTPUT)
        is_asked = filter.agent is not None or filter.role is not None or fields is not None
        if not is_asked and (self._query.groups or filter.failed or filter.has_image or filter.tool):
            return []
        keys = markers.Kinds(self._connection).matching(filter.agent, filter.role, fields)
        return [any_of([markers.kind(key) for key in keys])] if keys else None

    def _session_condition(self) -> tuple[str, list[str] | None]:
        if self._filter.session is None:
            return "", []
        agent, _, external_id = self._filter.session.partition(":")
        keys = self._keys("SELECT key FROM sessions WHERE agent = ? AND external_id = ?", agent, external_id)
        homes = self._keys(
            "SELECT DISTINCT d.home FROM memberships x JOIN documents d ON d.message_key = x.message_key"
            f" WHERE x.session_key IN ({_list(keys)})"
        )
        condition = (
            f" AND EXISTS (SELECT 1 FROM memberships WHERE message_key = m.key AND session_key IN ({_list(keys)}))"
        )
        return condition, [any_of([markers.session(home) for home in homes])] if homes else None

    def _project_condition(self) -> tuple[str, list[str] | None]:
        if self._filter.project is None:
            return "", []
        projects = self._keys("SELECT key FROM projects WHERE path = ?1 OR name = ?1", self._filter.project)
        if not projects:
            return "", None
        # Messages that a session of the project shares may be marked with the home of another project.
        homes = self._keys(
            "SELECT DISTINCT d.home FROM sessions s JOIN memberships x ON x.session_key = s.key"
            " JOIN documents d ON d.message_key = x.message_key JOIN homes h ON h.session_key = d.home"
            f" WHERE s.shares = 1 AND s.project_key IN ({_list(projects)})"
            f" AND (h.project_key IS NULL OR h.project_key NOT IN ({_list(projects)}))"
        )
        condition = (
            " AND EXISTS (SELECT 1 FROM memberships x JOIN sessions s ON s.key = x.session_key"
            f" WHERE x.message_key = m.key AND s.project_key IN ({_list(projects)}))"
        )
        words = [markers.project(key) for key in projects] + [markers.session(home) for home in homes]
        return condition, [any_of(words)]

    def _keys(self, query: str, *parameters: Any) -> list[int]:
        return [key for (key,) in self._connection.execute(query, parameters)]

    def _times(self) -> str:
        limits = ((self._filter.since, ">="), (self._filter.until, "<"))
        wanted = [(operator, aware_milliseconds(limit)) for limit, operator in limits if limit is not None]
        return "".join([f" AND m.created_at {operator} {limit}" for operator, limit in wanted])

    def _ids(self) -> tuple[int, int]:
        """The range of ids in which documents of the wanted times lie."""
        since, until = self._filter.since, self._filter.until
        first = 0 if since is None else schema.block_of(aware_milliseconds(since)) << schema.SLOT_BITS
        last = _LAST_ID if until is None else self._last_id_of(aware_milliseconds(until))
        return first, last

    def _last_id_of(self, created_at: int) -> int:
        """No document of this time or an earlier one has a larger id."""
        return (schema.block_of(created_at) + self._progress.displacement + 1 << schema.SLOT_BITS) - 1

    # -- what is found

    def _newest(self, plan: _Plan, limit: int, cursor: str | None) -> SearchPage:
        after = _decode("newest", _Position, cursor)
        last_id = plan.last_id if after is None else min(plan.last_id, self._last_id_of(after[0]))
        matches = _Matches(self._connection, plan, last_id)
        found, is_complete = _latest(matches, limit + 1, after)
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

    def _relevant(self, plan: _Plan, limit: int, cursor: str | None) -> SearchPage:
        """Ranks the matches that were newest when the first page was asked for."""
        at = _decode("relevance", tuple[int, int], cursor)
        newest_id, offset = (plan.last_id, 0) if at is None else (min(plan.last_id, at[0]), at[1])
        candidates = list(islice(_Matches(self._connection, plan, newest_id), RANKED))
        ranked = self._rank(candidates)
        page = ranked[offset : offset + limit]
        has_more = len(ranked) > offset + limit
        newest_id = candidates[0].id if candidates and at is None else newest_id
        return SearchPage(
            tuple(self._hits(page)),
            next_cursor=encode_cursor("relevance", newest_id, offset + limit) if has_more else None,
            total=len(ranked) if at is None else None,
            total_is_exact=len(candidates) < RANKED,
        )

    def _rank(self, candidates: list[_Match]) -> list[_Match]:
        ranking = Ranking(self._query.terms, self._vocabulary)
        bodies = self._bodies(candidates)
        scored: dict[_Position, tuple[float, _Match]] = {}
        for match in candidates:
            document = _find(bodies.get(match.message_key, _GONE)[2], match)
            if document is None:
                continue
            score = ranking.score(document.inline_text, match.entry.length, match.field)
            scored.setdefault(match.position, (score, match))
        best = sorted(scored.values(), key=lambda each: (each[0], each[1].position), reverse=True)
        return [match for _, match in best]

    # -- what is shown

    def _bodies(self, matches: Iterable[_Match]) -> dict[int, tuple[str, str, list[Document]]]:
        """Message key -> agent, role and documents of the parts that match."""
        parts: dict[int, set[int]] = defaultdict(set)
        for match in matches:
            parts[match.message_key].add(match.sequence)
        rows = self._connection.execute(f"SELECT key, agent, role, body FROM messages WHERE key IN ({_list(parts)})")
        return {key: (agent, role, documents_of(body, parts[key])) for key, agent, role, body in rows}

    def _hits(self, matches: Sequence[_Match]) -> Iterator[Hit]:
        bodies = self._bodies(matches)
        places = self._places(bodies)
        finder = Finder(self._query.terms)
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
                match.sequence,
                FIELDS[match.field],
                document.tool or None,
                moment(_time(match)),
                snippet.text,
                snippet.marks,
                tuple(places.get(match.message_key, ())),
            )

    def _text(self, match: _Match, document: Document) -> str | None:
        """The text that was indexed; None when it is another one by now."""
        entry = match.entry
        for data in texts_of(document, self._contents.loader(match.message_key)):
            if len(data) == entry.length and crc32(data) == entry.checksum:
                return data.decode("utf-8", "replace")
        return None

    def _places(self, keys: Iterable[int]) -> dict[int, list[HitPlace]]:
        places: dict[int, list[HitPlace]] = {}
        for key, *place in self._connection.execute(_PLACES.format(keys=_list(keys))):
            places.setdefault(key, []).append(HitPlace(*place))
        return places


def _find(documents: Iterable[Document], match: _Match) -> Document | None:
    for document in documents:
        if document.sequence == match.sequence and document.field == match.field:
            return document
    return None


def _position(match: _Match) -> _Position:
    return match.position


def _decode(kind: str, shape: type[_CursorT], cursor: str | None) -> _CursorT | None:
    """The place where a page begins; raise ValueError for a cursor of another list."""
    values = decode_cursor(kind, len(get_args(shape)), cursor)
    try:
        return None if values is None else msgspec.convert(values, shape)
    except msgspec.ValidationError as error:
        raise ValueError(f"{cursor!r} is not a cursor of this list") from error


def _time(match: _Match) -> int | None:
    return None if match.created_at < 0 else match.created_at


def _list(keys: Iterable[int]) -> str:
    return ",".join(map(str, keys))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
