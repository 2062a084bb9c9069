"""Databases in a recorded home, and changes of their rows as a program would make them."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from turnlog.agents.databases import is_database


def databases_in(home: Path) -> Iterator[Path]:
    files = (path for path in sorted(home.rglob("*")) if path.is_file())
    return (path for path in files if is_database(path.read_bytes()[:16]))


@contextmanager
def opened(database: Path) -> Generator[tuple[sqlite3.Connection, list[str]]]:
    """A connection that commits, and the names of the tables. Without triggers, which other tables would need."""
    with closing(sqlite3.connect(database)) as connection, connection:
        listed = connection.execute("SELECT name, type FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        for name in (name for name, kind in listed if kind == "trigger"):
            connection.execute(f'DROP TRIGGER "{name}"')
        yield connection, [name for name, kind in listed if kind == "table" and not name.startswith("sqlite_")]


def delete_rows(database: Path, condition: str = "TRUE", tables: Sequence[str] | None = None) -> None:
    """Delete rows of all tables, or of some."""
    with opened(database) as (connection, known):
        for table in known if tables is None else [name for name in known if name in tables]:
            connection.execute(f'DELETE FROM "{table}" WHERE {condition}')


def replace_text(database: Path, before: str, after: str) -> None:
    """Put one text in the place of another wherever a row has it."""
    with opened(database) as (connection, tables):
        for table in tables:
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            for number, *values in connection.execute(f'SELECT rowid, * FROM "{table}"').fetchall():
                for column, value in zip(columns, values, strict=True):
                    changed = _replaced(value, before, after)
                    if changed != value:
                        connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (changed, number))


def _replaced(value: Any, before: str, after: str) -> Any:
    if isinstance(value, str):
        return value.replace(before, after)
    return value.replace(before.encode(), after.encode()) if isinstance(value, bytes) else value
