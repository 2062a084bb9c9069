"""Where Crush's sessions are, and whether a file holds some.

A root is the folder with the data of a project, mostly `.crush` in it, or the project itself. The messages of a session
are a source of their own, named `<database>#<id>`, and so is what is known about it, `<database>#<id>#about`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.crush import DATABASE, NAME
from turnlog.agents.crush.database import is_own, list_sessions, new_facts, new_lines, open_database, session_id
from turnlog.agents.databases import SessionDatabases, database_of, is_database
from turnlog.agents.files import holds_file
from turnlog.errors import SourceError

DATABASES: Final = SessionDatabases(open_database, list_sessions, new_lines, new_facts)

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
    """See `Agent.detect`. A database is opened, because its first page need not have the names of its tables."""
    if not is_database(head):
        return Detection(reason="not an SQLite database")
    absolute = path.absolute()
    try:
        with open_database(absolute) as connection:
            if not is_own(connection):
                return Detection(reason="a database of another schema")
        found = DATABASES.find_sessions(absolute, absolute.parent, NAME, session_id)
        sources = tuple(source for source in found if source.kind is SourceKind.SESSION)
    except (OSError, SourceError) as error:
        return Detection(reason=str(error))
    return Detection(
        agent=NAME,
        # No row names the version of the program.
        version="1",
        source=sources[0] if len(sources) == 1 else None,
        sources=sources,
        reason=None if sources else "a database without sessions",
    )
