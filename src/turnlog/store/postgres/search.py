"""Search in a store in PostgreSQL: a copy of what is searched, in SQLite files, that follows the change feed.

The copy is searched as every SQLite store is, so the language and the hits are the same. It may be deleted at any time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from turnlog.store.connection import connect, write_transaction
from turnlog.store.feed.reading import archived_sizes, read_archived, read_batch
from turnlog.store.feed.taking import find_names, position_of, take, take_archived
from turnlog.store.feed.values import FeedBatch, Row
from turnlog.store.search.base import EVERYTHING, SearchFilter, SearchPage, SearchSort, SessionSearchPage, search_path
from turnlog.store.search.indexer import Indexer
from turnlog.store.search.searcher import Searcher

if TYPE_CHECKING:
    from turnlog.store.postgres.store import PostgresStore

_FEED: Final = "postgres"


class SearchReplica:
    """Searches a store. One thread at a time calls `follow`; any number may search."""

    def __init__(self, store: PostgresStore, folder: Path) -> None:
        """Open the copy below a folder for caches; it is made if there is none."""
        self._store = store
        self._path = folder / f"{store.id}-{store.team}" / "turnlog.db"
        with closing(connect(self._path, checked=False)):
            pass
        self._searcher = Searcher(self._path, search_path(self._path))

    def __enter__(self) -> Self:
        """The replica itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the files."""
        self._searcher.close()

    def follow(self) -> int:
        """Bring the copy up to the store's last change; return the number of batches."""
        taken = 0
        with closing(connect(self._path, checked=False)) as connection:
            # What was forgotten must be in no file.
            connection.execute("PRAGMA secure_delete = ON")
            while True:
                with self._store.reading() as source:
                    batch = read_batch(source, position_of(connection, _FEED))
                if batch is None:
                    break
                self._take(connection, batch)
                taken += 1
                if batch.forgotten:
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                if not batch.has_more:
                    break
        with Indexer(self._path, search_path(self._path)) as indexer:
            indexer.catch_up()
        return taken

    def _take(self, connection: sqlite3.Connection, batch: FeedBatch) -> None:
        def insert(table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
            marks = ", ".join("?" * (len(columns)))
            connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

        for session_id in batch.forgotten:
            self._forget(connection, session_id)
        keys = find_names(connection, batch)
        with write_transaction(connection):
            take(connection, _FEED, batch, keys, insert)
        # Outputs that were spilled into files are searched too.
        spilled = {row[2] for row in batch.rows.get("spills", ())}
        for path in sorted(batch.names["sources"][key][0] for key in spilled):
            with self._store.reading() as source:
                archived = read_archived(source, archived_sizes(connection, [path]), path)
            if archived is not None:
                with write_transaction(connection):
                    take_archived(connection, archived, insert)

    def _forget(self, connection: sqlite3.Connection, session_id: str) -> None:
        """Remove the words of a session from the index, before its rows go."""
        from turnlog.store.keys import find_key

        key = find_key(connection, session_id)
        if key is not None:
            with Indexer(self._path, search_path(self._path)) as indexer, suppress(FileNotFoundError):
                indexer.forget(key)

    def search(
        self,
        query: str,
        filter: SearchFilter = EVERYTHING,
        *,
        sort: SearchSort = "newest",
        limit: int = 20,
        cursor: str | None = None,
    ) -> SearchPage:
        """Parts in which the query is found; see `Searcher.search`."""
        return self._searcher.search(query, filter, sort=sort, limit=limit, cursor=cursor)

    def sessions(
        self, query: str, filter: SearchFilter = EVERYTHING, *, limit: int = 20, cursor: str | None = None
    ) -> SessionSearchPage:
        """Sessions that fit the query; see `Searcher.sessions`."""
        return self._searcher.sessions(query, filter, limit=limit, cursor=cursor)

    def unindexed(self) -> int:
        """Number of messages of the copy that are not searched yet. `follow` makes it 0."""
        return self._searcher.unindexed()
