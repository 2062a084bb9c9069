"""Where Hermes Agent's sessions are, and whether a file holds some.

The home has a database, and so has each profile below `profiles`. The messages of a session are a source of their own,
named `<database>#<session>`, and so is what other tables say about it, `<database>#<session>#about`. Each database is
also a source by itself (`turnlog.agents.databases.SessionDatabases`).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.databases import DatabaseReader, SessionDatabases, database_of, is_database
from turnlog.agents.files import folders, holds_file
from turnlog.agents.hermes import DATABASE, NAME, PROFILES
from turnlog.agents.hermes.database import BELONGINGS, is_own, list_sessions, open_database
from turnlog.agents.hermes.row_log import new_facts, new_lines, restore_rows

DATABASES: Final = SessionDatabases(open_database, list_sessions, new_lines, new_facts, BELONGINGS)


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def find_sources(root: Path) -> Iterator[Source]:
    """Every session below a home."""
    homes = [root, *(Path(profile.path) for profile in folders(os.fspath(root / PROFILES)))]
    for home in homes:
        if holds_file(home, DATABASE):
            yield from DATABASES.find_sources(home / DATABASE, root, NAME, session_id)


def sources_at(path: Path, root: Path) -> Iterator[Source]:
    """See `RowAgent.sources_at`. A database may be named by its write-ahead log."""
    database = database_of(path)
    if database.name == DATABASE and holds_file(database.parent, DATABASE):
        yield from DATABASES.find_sources(database, root, NAME, session_id)


def is_about(source: Source) -> bool:
    """Whether a source is what is known about a session, or a database by itself."""
    return source.kind is SourceKind.SIDECAR


def detect_database(path: Path, head: bytes) -> Detection:
    """See `Agent.detect`."""
    if not is_database(head):
        return Detection(reason="not an SQLite database")
    return DATABASES.detect(path, NAME, session_id, version_of=_version_of)


def _version_of(connection: sqlite3.Connection) -> str | None:
    return "1" if is_own(connection) else None


READER: Final = DatabaseReader(DATABASES, find_sources, sources_at, detect_database, restore_rows)
