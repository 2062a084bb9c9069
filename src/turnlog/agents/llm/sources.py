"""Where llm's conversations are, and whether a file holds some.

The rows of a conversation are a source of their own, named `<database>#<id>`, and so is its name.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from turnlog.agents.base import Detection, Source
from turnlog.agents.databases import DatabaseReader, SessionDatabases, database_of, is_database, tables_of
from turnlog.agents.files import holds_file
from turnlog.agents.llm import DATABASE, NAME
from turnlog.agents.llm.database import (
    BELONGINGS,
    KEYS,
    NEEDED,
    TURNS,
    is_own,
    list_sessions,
    new_facts,
    new_lines,
    open_database,
)
from turnlog.agents.row_files import restore_database, rows_in

DATABASES: Final = SessionDatabases(open_database, list_sessions, new_lines, new_facts, BELONGINGS)


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def find_sources(root: Path) -> Iterator[Source]:
    """Every conversation below a home."""
    if holds_file(root, DATABASE):
        yield from DATABASES.find_sources(root / DATABASE, root, NAME, session_id)


def sources_at(path: Path, root: Path) -> Iterator[Source]:
    """See `RowAgent.sources_at`."""
    database = database_of(path)
    if database.name == DATABASE and database.parent == root:
        yield from find_sources(root)


def detect_database(path: Path, head: bytes) -> Detection:
    """Judge a file by its beginning `head` and, if it is a database, by its tables."""
    if not is_database(head):
        return Detection(reason="not an SQLite database")
    return DATABASES.detect(path, NAME, session_id, version_of=_version_of, sessions="conversations")


def _version_of(connection: sqlite3.Connection) -> str | None:
    if not is_own(connection):
        return None
    # No row names the version of the program, only the form of its tables.
    return "2" if TURNS in tables_of(connection) else "1"


def _restore_rows(source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
    return restore_database(source, rows_in(log), to, KEYS, NEEDED)


READER: Final = DatabaseReader(DATABASES, find_sources, sources_at, detect_database, _restore_rows)
