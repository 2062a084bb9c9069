"""Stores in PostgreSQL for tests: made from a database that has the schema, and filled by the change feed."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg

from support.postgres_servers import PostgresServer
from turnlog.store.connection import connect
from turnlog.store.feed.reading import MOST_MESSAGES, read_archived, read_batch
from turnlog.store.feed.values import FeedBatch
from turnlog.store.postgres.store import PostgresStore


class PostgresDatabases:
    """Databases with an empty store, on one server."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self._template = server.new_database()
        PostgresStore(server.url(self._template), create=True).close()

    def url(self) -> str:
        """The URL of a new database."""
        return self.server.url(self.server.new_database(like=self._template))

    @contextmanager
    def store(self) -> Generator[PostgresStore]:
        """A store in a new database."""
        with PostgresStore(self.url()) as store:
            yield store


def push(path: Path, store: PostgresStore, *, name: str = "laptop", most: int = MOST_MESSAGES) -> list[FeedBatch]:
    """Bring everything that has changed in an SQLite store into another one; return the batches."""
    batches: list[FeedBatch] = []
    with closing(connect(path, read_only=True)) as connection:
        while True:
            connection.execute("BEGIN")
            batch = read_batch(connection, store.feed_position(name), most_messages=most)
            connection.execute("COMMIT")
            if batch is not None:
                store.take(name, batch)
                batches.append(batch)
            if batch is None or not batch.has_more:
                break
        _push_archive(path, store, sorted({row[2] for batch in batches for row in batch.rows["sources"]}))
    # What the server does by itself some time after so many new rows.
    with psycopg.connect(store.url, autocommit=True) as other:
        other.execute("ANALYZE")
    return batches


def _push_archive(path: Path, store: PostgresStore, paths: Sequence[str]) -> None:
    have = store.archived_sizes(paths)
    with closing(connect(path, read_only=True)) as connection:
        for each in paths:
            archived = read_archived(connection, have, each)
            if archived is not None:
                store.take_archived([archived])
