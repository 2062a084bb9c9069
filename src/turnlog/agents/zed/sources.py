"""Where Zed's threads are, and whether a file holds some.

A thread is a source of its own, named `<database>#<id>`. A root is the folder of Zed's data.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from turnlog.agents.base import Detection, Source
from turnlog.agents.databases import FACTS, SessionDatabases, database_of, is_database, session_place
from turnlog.agents.files import holds_file
from turnlog.agents.zed import DATABASE, NAME, THREADS_FOLDER
from turnlog.agents.zed.database import is_own, list_sessions, new_facts, new_lines, open_database, session_id
from turnlog.errors import SourceError

DATABASES: Final = SessionDatabases(open_database, list_sessions, new_lines, new_facts)


def find_sources(root: Path) -> Iterator[Source]:
    """Every thread below a home."""
    folder = root / THREADS_FOLDER
    if holds_file(folder, DATABASE):
        found = DATABASES.find_sources(folder / DATABASE, root, NAME, session_id)
        yield from (source for source in found if not source.path.endswith(FACTS))


def sources_at(path: Path, root: Path) -> Iterator[Source]:
    """See `RowAgent.sources_at`. A database may be named by its write-ahead log."""
    database = database_of(path)
    if database.name == DATABASE and database.parent == root / THREADS_FOLDER:
        yield from find_sources(root)


def detect_database(path: Path, head: bytes) -> Detection:
    """See `Agent.detect`. A database is opened, because its first page need not have the names of its tables."""
    if not is_database(head):
        return Detection(reason="not an SQLite database")
    absolute = path.absolute()
    try:
        with open_database(absolute) as connection:
            if not is_own(connection):
                return Detection(reason="a database of another schema")
        found = DATABASES.find_sessions(absolute, absolute.parent, NAME, session_id)
        sources = tuple(one for one in found if session_place(one.path) and not one.path.endswith(FACTS))
    except (OSError, SourceError) as error:
        return Detection(reason=str(error))
    return Detection(
        agent=NAME,
        # No column names the version of the program.
        version="1",
        source=sources[0] if len(sources) == 1 else None,
        sources=sources,
        reason=None if sources else "a database without threads",
    )
