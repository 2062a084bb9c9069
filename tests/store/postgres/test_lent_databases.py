"""A database that is lent to one test after the other is as empty for each as a new one."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import psycopg
import pytest

from support.postgres_stores import PostgresDatabases
from turnlog.store.postgres.store import PostgresStore


def rows(url: str) -> dict[str, Any]:
    """Table or sequence -> its rows."""
    with psycopg.connect(url) as connection:
        names = connection.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'S') AND relnamespace = 'turnlog'::regnamespace"
        ).fetchall()
        return {
            name: sorted(map(repr, connection.execute(f'SELECT * FROM turnlog."{name}"'.encode()).fetchall()))
            for (name,) in names
        }


def fill(url: str) -> None:
    """Write into every table that takes any value, and let every sequence count."""
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")
        for name, sequence in connection.execute(
            "SELECT relname, relkind = 'S' FROM pg_class"
            " WHERE relkind IN ('r', 'S') AND relnamespace = 'turnlog'::regnamespace"
        ).fetchall():
            if sequence:
                connection.execute(f"SELECT nextval('turnlog.\"{name}\"')".encode())
                continue
            columns = connection.execute(
                "SELECT quote_ident(attname), CASE WHEN atttypid = 'bytea'::regtype THEN '''x'''"
                " WHEN atttypid::regtype::text LIKE '%%[]' THEN '''{}''' WHEN atttypid = 'jsonb'::regtype THEN '''1'''"
                " WHEN atttypid::regtype::text LIKE 'time%%' THEN 'now()' ELSE '''7''' END FROM pg_attribute"
                " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''",
                (f'turnlog."{name}"',),
            ).fetchall()
            with suppress(psycopg.errors.CheckViolation), connection.transaction():
                connection.execute(
                    f'INSERT INTO turnlog."{name}" ({", ".join(column for column, _ in columns)})'
                    f" OVERRIDING SYSTEM VALUE SELECT {', '.join(value for _, value in columns)}".encode()
                )


@pytest.mark.parametrize("protected", [False, True])
def test_the_next_one_finds_no_row_of_the_last(protected: bool, databases: PostgresDatabases) -> None:
    new = rows(databases.url())
    with databases.lent(protected=protected) as first:
        assert rows(first) == new
        fill(first)
        filled = rows(first)
        assert len([name for name in new if filled[name] != new[name]]) > len(new) * 0.8
    with databases.lent(protected=protected) as second:
        assert (second, rows(second)) == (first, new)


def test_a_table_of_many_rows_is_emptied_too(databases: PostgresDatabases) -> None:
    with databases.lent() as first, psycopg.connect(first) as connection:
        connection.execute(
            "INSERT INTO turnlog.settings (team_key, name, value)"
            " SELECT 1, 'n' || n, repeat('x', 100) FROM generate_series(1, 10000) n"
        )
    with databases.lent() as second:
        assert (second, rows(second)) == (first, rows(databases.url()))


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE turnlog.more (id int)",
        "DROP TABLE turnlog.runs",
        "ALTER TABLE turnlog.runs ADD COLUMN more text",
        "CREATE INDEX ON turnlog.runs (session_id)",
        "CREATE POLICY mine ON turnlog.runs USING (true)",
        "GRANT SELECT ON turnlog.runs TO public",
        "COMMENT ON SCHEMA turnlog IS 'changed'",
    ],
)
def test_a_database_whose_schema_was_changed_is_not_lent_again(change: str, databases: PostgresDatabases) -> None:
    with databases.lent() as first, psycopg.connect(first) as connection:
        connection.execute(change.encode())
    with databases.lent() as second:
        assert second != first


def test_a_database_of_a_test_that_failed_is_not_lent_again(databases: PostgresDatabases) -> None:
    with pytest.raises(ZeroDivisionError), databases.lent() as first:
        raise ZeroDivisionError
    with databases.lent() as second:
        assert second != first


def test_who_is_still_connected_holds_nothing(databases: PostgresDatabases) -> None:
    with databases.lent() as first:
        left = psycopg.connect(first)
        left.execute("LOCK TABLE turnlog.sessions")
    with databases.lent() as second, PostgresStore(second) as store:
        assert (second, store.sessions().items) == (first, ())
    with pytest.raises(psycopg.OperationalError):
        left.execute("SELECT 1")
    left.close()
