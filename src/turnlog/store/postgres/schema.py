"""The schema of a store in PostgreSQL: numbered migrations, which one process at a time runs.

The tables are in a schema of their own, `turnlog`, so that a database may hold them beside tables of others.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from turnlog.errors import SchemaTooNewError, StoreError
from turnlog.store.postgres.dialect import SCHEMA

if TYPE_CHECKING:
    from psycopg import Connection

_MIGRATIONS: Final = Path(__file__).with_name("migrations")

_LOCK: Final = 0x7475726E6C6F67
"""The number of the advisory lock: "turnlog"."""


_END_OF_LETTERS: Final = 0x20000
"""No character from here on has another case."""


def schema_version() -> int:
    """The schema version that this turnlog writes."""
    return max(migrations())


def prepare(connection: Connection, name: str, *, create: bool) -> None:
    """Bring the schema up, or make it; each migration is one transaction. `name` is that of the store, for errors.

    Raises SchemaTooNewError for one of a newer turnlog, StoreError if there is none and `create` is False.
    """
    if _check(connection, name) == schema_version():
        return
    with connection.transaction():
        # Held until the end of this transaction: a session's lock would stay with pgbouncer's connection.
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        found = _check(connection, name)
        if found == 0:
            if not create:
                raise StoreError(f"there is no store at {name}: open_store(…, create=True) makes one")
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            connection.execute(f"CREATE TABLE {SCHEMA}.schema_version (version int NOT NULL)")
            connection.execute(f"INSERT INTO {SCHEMA}.schema_version VALUES (0)")
        for number, script in sorted(migrations().items()):
            if number > found:
                connection.execute(script.read_bytes())
        connection.execute(_casefold_function().encode())
        connection.execute(f"UPDATE {SCHEMA}.schema_version SET version = %s", (schema_version(),))


def _check(connection: Connection, name: str) -> int:
    """The version of the schema; 0 if there is none."""
    row = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.schema_version",)).fetchone()
    if row is None or row[0] is None:
        return 0
    row = connection.execute(f"SELECT version FROM {SCHEMA}.schema_version").fetchone()
    found: int = 0 if row is None else row[0]
    if found > schema_version():
        raise SchemaTooNewError(
            f"{name} was written by a newer turnlog (schema {found}, this version knows up to {schema_version()})",
            found=found,
            supported=schema_version(),
        )
    return found


@cache
def migrations() -> dict[int, Path]:
    """Number -> script."""
    return {int(script.name.split("_", 1)[0]): script for script in _MIGRATIONS.glob("*.sql")}


def _casefold_function() -> str:
    """`casefold` of Python in SQL: before version 18, PostgreSQL has none, and `lower` depends on the database."""
    folded = {letter: letter.casefold() for letter in map(chr, range(128, _END_OF_LETTERS))}
    changed = {letter: other for letter, other in folded.items() if other != letter}
    single = {letter: other for letter, other in changed.items() if len(other) == 1}
    body = f"translate(lower(word COLLATE \"C\"), '{''.join(single)}', '{''.join(single.values())}')"
    for letter, other in changed.items():
        if len(other) > 1:
            body = f"replace({body}, '{letter}', '{other}')"
    return (
        f"CREATE OR REPLACE FUNCTION {SCHEMA}.casefold(word text) RETURNS text LANGUAGE sql IMMUTABLE AS $$"
        f' SELECT CASE WHEN octet_length(word) = length(word) THEN lower(word COLLATE "C") ELSE {body} END $$'
    )
