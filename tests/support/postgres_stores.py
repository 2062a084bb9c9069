"""Stores in PostgreSQL for tests: made from a database that has the schema, and filled by the change feed.

To copy a database costs the server 0.4 s of its processor, to empty one 0.02. So a test borrows one that others have
used; `url` is for tests that change the schema, or look at what a new database has.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg

from support.postgres_servers import PostgresServer
from turnlog.store.connection import connect
from turnlog.store.feed.reading import MOST_MESSAGES, read_archived, read_batch
from turnlog.store.feed.values import FeedBatch
from turnlog.store.postgres import visibility
from turnlog.store.postgres.dialect import SCHEMA
from turnlog.store.postgres.store import PostgresStore

_NOTE_CHANGES = """
CREATE TABLE tests.changed ();
CREATE FUNCTION tests.note_change() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF TG_EVENT = 'sql_drop' THEN
        IF EXISTS (SELECT FROM pg_event_trigger_dropped_objects() WHERE NOT is_temporary) THEN
            INSERT INTO tests.changed DEFAULT VALUES;
        END IF;
    ELSIF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE schema_name IS DISTINCT FROM 'pg_temp') THEN
        INSERT INTO tests.changed DEFAULT VALUES;
    END IF;
END $$;
CREATE EVENT TRIGGER note_change ON ddl_command_end EXECUTE FUNCTION tests.note_change();
CREATE EVENT TRIGGER note_drop ON sql_drop EXECUTE FUNCTION tests.note_change();
"""
"""Notes in a database that its schema was changed: nobody borrows it again."""

_TABLES = f"SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = '{SCHEMA}'::regnamespace ORDER BY 1"

_SEQUENCES = f"SELECT relname FROM pg_class WHERE relkind = 'S' AND relnamespace = '{SCHEMA}'::regnamespace ORDER BY 1"

_FEW_BYTES = 1 << 18
"""Up to this size the rows of a table are deleted, which is quicker than a new file for it and each of its indexes."""


_CHANGED = """
SELECT FROM tests.changed
UNION ALL
SELECT FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase WHERE d.datname = current_database()
LIMIT 1
"""
"""A row if a test has changed the schema or the settings of its database."""


class PostgresDatabases:
    """Databases with an empty store, on one server."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self._template = server.new_database()
        PostgresStore(server.url(self._template), create=True).close()
        self._templates: dict[bool, str] = {}
        """Templates of what is lent, by whether viewers are held apart in it."""
        self._idle: dict[bool, list[str]] = {False: [], True: []}
        self._cleaners: dict[str, psycopg.Connection] = {}
        """A connection for each that was lent, which remembers how to empty it: a new one would plan that anew."""

    def url(self) -> str:
        """The URL of a new database."""
        return self.server.url(self.server.new_database(like=self._template))

    @contextmanager
    def lent(self, *, protected: bool = False) -> Generator[str]:
        """The URL of an empty database, until the `with` ends; if `protected`, with the policies for viewers."""
        idle = self._idle[protected]
        url = idle.pop() if idle else self.server.url(self.server.new_database(like=self._lendable(protected)))
        yield url
        # Not after an error: what is left there belongs to the failure.
        if self._is_emptied(url):
            idle.append(url)

    @contextmanager
    def store(self) -> Generator[PostgresStore]:
        """An empty store."""
        with self.lent() as url, PostgresStore(url) as store:
            yield store

    def _is_emptied(self, url: str) -> bool:
        """Make a database as it was when it was new; False if a test changed its schema or settings."""
        connection = self._cleaners.get(url)
        if connection is None:
            connection = self._cleaners[url] = psycopg.connect(url, autocommit=True)
        try:
            # Who was killed, or has not closed a connection, still holds locks.
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            if connection.execute(_CHANGED).fetchone() is None:
                connection.execute("SELECT tests.clear()")
                return True
        except psycopg.errors.AdminShutdown:
            pass  # a test ended all connections, this one too
        self._cleaners.pop(url).close()
        return False

    def close(self) -> None:
        """Close what has emptied databases."""
        for connection in self._cleaners.values():
            connection.close()

    def _lendable(self, protected: bool) -> str:
        if protected not in self._templates:
            name = self.server.new_database(like=self._template)
            with psycopg.connect(self.server.url(name), autocommit=True) as connection:
                if protected:
                    visibility.protect(connection, name)
                _prepare(connection)
            self._templates[protected] = name
        return self._templates[protected]


def _prepare(connection: psycopg.Connection) -> None:
    """Give a template what empties its copies, and what notes that their schema was changed."""
    tables = [name for (name,) in connection.execute(_TABLES.encode())]
    sequences = [name for (name,) in connection.execute(_SEQUENCES.encode())]
    kept: list[str] = []
    restored: list[str] = []
    for name in tables:
        if connection.execute(f'SELECT 1 FROM {SCHEMA}."{name}" LIMIT 1'.encode()).fetchone():
            kept.append(f'CREATE TABLE tests."{name}" AS TABLE {SCHEMA}."{name}"')
            restored.append(f'INSERT INTO {SCHEMA}."{name}" SELECT * FROM tests."{name}"')
    for name in sequences:
        kept.append(f'CREATE TABLE tests."{name}" AS SELECT last_value, is_called FROM {SCHEMA}."{name}"')
        restored.append(f'PERFORM setval(\'{SCHEMA}."{name}"\', last_value, is_called) FROM tests."{name}"')
    deleted = [
        f'IF pg_relation_size(\'{SCHEMA}."{name}"\') > {_FEW_BYTES} THEN TRUNCATE {SCHEMA}."{name}";'
        f' ELSE DELETE FROM {SCHEMA}."{name}"; END IF'
        for name in tables
    ]
    # As a replica: no trigger has anything to say to this.
    script = f"""
    CREATE SCHEMA tests;
    {"; ".join(kept)};
    CREATE FUNCTION tests.clear() RETURNS void LANGUAGE plpgsql SET session_replication_role = replica AS $$
    BEGIN {"; ".join([*deleted, *restored])}; END $$;
    {_NOTE_CHANGES}
    """
    connection.execute(script.encode())


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
