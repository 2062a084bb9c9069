"""Where Crush's sessions are, and whether a file holds some.

A root is the folder with the data of a project, mostly `.crush` in it, or the project itself. The messages of a session
are a source of their own, named `<database>#<id>`, and so is what is known about it, `<database>#<id>#about`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from turnlog.agents.base import Detection, Source
from turnlog.agents.crush import DATABASE, NAME
from turnlog.agents.crush.database import (
    BELONGINGS,
    KEYS,
    READ_COLUMNS,
    is_own,
    list_sessions,
    new_facts,
    new_lines,
    open_database,
    session_id,
)
from turnlog.agents.databases import DatabaseReader, SessionDatabases, database_of, is_database
from turnlog.agents.files import holds_file
from turnlog.agents.row_files import restore_database, rows_in

DATABASES: Final = SessionDatabases(open_database, list_sessions, new_lines, new_facts, BELONGINGS)

_FOLDER: Final = ".crush"


def find_sources(root: Path) -> Iterator[Source]:
    """Every session below a root."""
    for folder in (root, root / _FOLDER):
        if holds_file(folder, DATABASE):
            yield from DATABASES.find_sources(folder / DATABASE, root, NAME, session_id)


def sources_at(path: Path, root: Path) -> Iterator[Source]:
    """See `RowAgent.sources_at`. A database may be named by its write-ahead log."""
    database = database_of(path)
    is_in_place = database.name == DATABASE and database.parent in (root, root / _FOLDER)
    if is_in_place and holds_file(database.parent, DATABASE):
        yield from DATABASES.find_sources(database, root, NAME, session_id)


def project_of(source: Source) -> str | None:
    """The project of a database in its usual place; None for one elsewhere."""
    folder = Path(source.path.partition("#")[0]).parent
    return str(folder.parent) if folder.name == _FOLDER else None


def detect_database(path: Path, head: bytes) -> Detection:
    """See `Agent.detect`."""
    if not is_database(head):
        return Detection(reason="not an SQLite database")
    return DATABASES.detect(path, NAME, session_id, version_of=_version_of)


def _version_of(connection: sqlite3.Connection) -> str | None:
    # No row names the version of the program.
    return "1" if is_own(connection) else None


def _restore_rows(source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
    return restore_database(source, rows_in(log), to, KEYS, READ_COLUMNS)


READER: Final = DatabaseReader(DATABASES, find_sources, sources_at, detect_database, _restore_rows)
