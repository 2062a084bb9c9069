"""Where Zed's threads are, and whether a file holds some.

A thread is a source of its own, named `<database>#<id>`. A root is the folder of Zed's data.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from turnlog.agents.base import Detection, Source
from turnlog.agents.databases import DatabaseReader, SessionDatabases, database_of, is_database
from turnlog.agents.files import holds_file
from turnlog.agents.zed import DATABASE, NAME, THREADS_FOLDER
from turnlog.agents.zed.database import (
    BELONGINGS,
    is_own,
    list_sessions,
    new_lines,
    open_database,
    restore_rows,
    session_id,
)

DATABASES: Final = SessionDatabases(open_database, list_sessions, new_lines, belongings=BELONGINGS)


def find_sources(root: Path) -> Iterator[Source]:
    """Every thread below a home."""
    folder = root / THREADS_FOLDER
    if holds_file(folder, DATABASE):
        yield from DATABASES.find_sources(folder / DATABASE, root, NAME, session_id)


def sources_at(path: Path, root: Path) -> Iterator[Source]:
    """See `RowAgent.sources_at`. A database may be named by its write-ahead log."""
    database = database_of(path)
    if database.name == DATABASE and database.parent == root / THREADS_FOLDER:
        yield from find_sources(root)


def detect_database(path: Path, head: bytes) -> Detection:
    """See `Agent.detect`."""
    if not is_database(head):
        return Detection(reason="not an SQLite database")
    return DATABASES.detect(path, NAME, session_id, version_of=_version_of, sessions="threads")


def _version_of(connection: sqlite3.Connection) -> str | None:
    # No column names the version of the program.
    return "1" if is_own(connection) else None


READER: Final = DatabaseReader(DATABASES, find_sources, sources_at, detect_database, restore_rows)
