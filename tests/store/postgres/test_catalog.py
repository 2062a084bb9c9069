"""Every key begins with the team, so that no row of one team can name a row of another."""

from __future__ import annotations

import psycopg
import pytest

from support.postgres_stores import PostgresDatabases

WITHOUT_TEAM = {"schema_version", "users", "identities", "secrets"}
"""Tables that are of no team: a person may be in several, and is known by a secret before a team is."""

FAULTS = """
SELECT conrelid::regclass::text, conname::text FROM pg_constraint c
WHERE connamespace = 'turnlog'::regnamespace AND contype IN ('p', 'u', 'f', 'x') AND (
    (SELECT attname FROM pg_attribute WHERE attrelid = conrelid AND attnum = conkey[1]) IS DISTINCT FROM 'team_key'
    OR contype = 'f' AND (SELECT attname FROM pg_attribute WHERE attrelid = confrelid AND attnum = confkey[1])
        IS DISTINCT FROM 'team_key')
UNION ALL SELECT indrelid::regclass::text, indexrelid::regclass::text FROM pg_index i
    JOIN pg_class c ON c.oid = i.indrelid
WHERE c.relnamespace = 'turnlog'::regnamespace
    AND (SELECT attname FROM pg_attribute WHERE attrelid = indrelid AND attnum = indkey[0]) IS DISTINCT FROM 'team_key'
UNION ALL SELECT t.oid::regclass::text, 'no team' FROM pg_class t
WHERE relnamespace = 'turnlog'::regnamespace AND relkind IN ('r', 'p') AND NOT EXISTS (
    SELECT 1 FROM pg_attribute WHERE attrelid = t.oid AND attname = 'team_key' AND attnotnull)
"""


def faults(url: str) -> set[tuple[str, str]]:
    """Table and key that does not begin with the team."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(FAULTS.encode()).fetchall()
    return {(table.removeprefix("turnlog."), name) for table, name in rows}


def test_every_key_and_index_begins_with_the_team(databases: PostgresDatabases) -> None:
    assert {table for table, _ in faults(databases.url())} == WITHOUT_TEAM


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("CREATE TABLE turnlog.x (name text PRIMARY KEY, team_key int NOT NULL)", ("x", "x_pkey")),
        ("CREATE TABLE turnlog.x (team_key int)", ("x", "no team")),
        ("ALTER TABLE turnlog.runs ADD UNIQUE (id)", ("runs", "runs_id_key")),
        ("CREATE UNIQUE INDEX y ON turnlog.runs (id, team_key)", ("runs", "turnlog.y")),
        ("CREATE INDEX y ON turnlog.runs (prompt)", ("runs", "turnlog.y")),
    ],
)
def test_the_check_sees_a_key_without_the_team(
    statement: str, fault: tuple[str, str], databases: PostgresDatabases
) -> None:
    url = databases.url()
    with psycopg.connect(url) as connection:
        connection.execute(statement.encode())
    assert fault in faults(url)
