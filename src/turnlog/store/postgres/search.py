"""Search in a store in PostgreSQL: a copy of what is searched, in SQLite files, that follows the change feed.

The copy is searched as every SQLite store is, so the language and the hits are the same. It may be deleted at any time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import msgspec

from turnlog.store.connection import connect, write_transaction
from turnlog.store.feed.reading import archived_sizes, read_archived, read_batch
from turnlog.store.feed.taking import position_of, take, take_archived, withdraw
from turnlog.store.feed.values import TABLES, FeedBatch, Row
from turnlog.store.keys import find_key
from turnlog.store.search.base import (
    EVERYTHING,
    Hit,
    SearchFilter,
    SearchPage,
    SearchSort,
    SessionSearchPage,
    search_path,
)
from turnlog.store.search.indexer import Indexer
from turnlog.store.search.searcher import Searcher
from turnlog.store.sqlite.forget import forget

if TYPE_CHECKING:
    from turnlog.store.postgres.store import PostgresStore

_FEED: Final = "postgres"

_OWNER: Final = "\x1f"
"""Between the id of a message and its owner, in the copy."""


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
                    batch = read_batch(source, position_of(connection, _FEED), skip_damaged=True)
                if batch is None:
                    break
                self._take(connection, batch)
                taken += 1
                if batch.remaining is not None:
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                if not batch.has_more:
                    break
        with Indexer(self._path, search_path(self._path)) as indexer:
            indexer.catch_up()
            indexer.go_on_overwriting()
        return taken

    def _take(self, connection: sqlite3.Connection, batch: FeedBatch) -> None:
        def insert(table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
            marks = ", ".join("?" * (len(columns)))
            connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

        withdrawn = self._withdrawn(connection, batch)
        self._delete(batch.forgotten, forget)
        self._delete(withdrawn, withdraw)
        batch = msgspec.structs.replace(batch, withdrawn=withdrawn)
        batch = self._with_owners(batch)
        with write_transaction(connection):
            take(connection, _FEED, batch, insert)
        # Outputs that were spilled into files are searched too.
        spilled = {row[2] for row in batch.rows.get("spills", ())}
        for path in sorted(batch.names["sources"][key][0] for key in spilled):
            with self._store.reading() as source:
                archived = read_archived(source, archived_sizes(connection, [path]), path)
            if archived is not None:
                with write_transaction(connection):
                    take_archived(connection, [archived], insert)

    def _withdrawn(self, connection: sqlite3.Connection, batch: FeedBatch) -> list[str]:
        """The sessions of the copy that the store has no more."""
        if batch.remaining is None:
            return []
        rows = connection.execute("SELECT agent || ':' || external_id FROM sessions")
        return sorted({session_id for (session_id,) in rows} - {*batch.remaining} - {*batch.forgotten})

    def _with_owners(self, batch: FeedBatch) -> FeedBatch:
        """The batch with ids of messages that name their owners: several people may have messages of one id."""
        keys = sorted(batch.names["messages"])
        owners: dict[int, str] = {}
        with self._store.reading() as source:
            for start in range(0, len(keys), 1000):
                chunk = json.dumps(keys[start : start + 1000])
                query = "SELECT key, owner FROM messages WHERE owner <> '' AND key IN (SELECT value FROM json_each(?))"
                owners |= dict(source.execute(query, (chunk,)).fetchall())
        if not owners:
            return batch
        at = TABLES["messages"].index("external_id")
        rows = [(*row[:at], _with_owner(row[at], owners.get(row[0])), *row[at + 1 :]) for row in batch.rows["messages"]]
        names = {key: (name[0], _with_owner(name[1], owners.get(key))) for key, name in batch.names["messages"].items()}
        return msgspec.structs.replace(
            batch, rows={**batch.rows, "messages": rows}, names={**batch.names, "messages": names}
        )

    def _delete(self, session_ids: Sequence[str], delete: Callable[[sqlite3.Connection, str], object]) -> None:
        """Remove the words of sessions from the index, and then their rows.

        What hangs on these rows goes by foreign keys, which the connection that takes batches does not check.
        """
        if not session_ids:
            return
        with closing(connect(self._path)) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            for session_id in session_ids:
                key = find_key(connection, session_id)
                if key is None:
                    continue
                with Indexer(self._path, search_path(self._path)) as indexer, suppress(FileNotFoundError):
                    indexer.forget(key)
                with write_transaction(connection):
                    delete(connection, session_id)

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
        page = self._searcher.search(query, filter, sort=sort, limit=limit, cursor=cursor)
        return page._replace(hits=tuple([_without_owner(hit) for hit in page.hits]))

    def sessions(
        self,
        query: str,
        filter: SearchFilter = EVERYTHING,
        *,
        limit: int = 20,
        cursor: str | None = None,
        masked: Callable[[str], str] | None = None,
    ) -> SessionSearchPage:
        """Sessions that fit the query; see `Searcher.sessions`."""
        page = self._searcher.sessions(query, filter, limit=limit, cursor=cursor, masked=masked)
        sessions = [
            found if found.hit is None else found._replace(hit=_without_owner(found.hit)) for found in page.sessions
        ]
        return page._replace(sessions=tuple(sessions))

    def unindexed(self) -> int:
        """Number of messages of the copy that are not searched yet. `follow` makes it 0."""
        return self._searcher.unindexed()


def _with_owner(message_id: str, owner: str | None) -> str:
    return f"{message_id}{_OWNER}{owner}" if owner else message_id


def _without_owner(hit: Hit) -> Hit:
    return hit._replace(message_id=hit.message_id.partition(_OWNER)[0])
