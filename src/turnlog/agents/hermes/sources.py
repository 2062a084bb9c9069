"""Where Hermes Agent's sessions are, and whether a file holds some.

The home has a database, and so has each profile below `profiles`. The messages of a session are a source of their own,
named `<database>#<session>`, and so is what other tables say about it, `<database>#<session>#about`. Each database is
also a source by itself: it holds nothing, but its version says when it cannot be read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.base import Detection, RowUpdate, Source, SourceKind, Version
from turnlog.agents.databases import is_database
from turnlog.agents.files import folders, holds_file
from turnlog.agents.hermes import DATABASE, NAME, PROFILES
from turnlog.agents.hermes.database import is_own, list_sessions, open_database
from turnlog.agents.hermes.row_log import new_facts, new_lines
from turnlog.errors import SourceError

_SESSION = re.compile(r"(?P<database>.+)#(?P<session>[^#]+)")
_DATABASE_SUFFIX = re.compile(r"-(?:wal|shm|journal)$")
_ABOUT: Final = "#about"

_READABLE: Version = (0, 0, 0, 0)
_UNREADABLE: Version = (0, 0, 0, 1)


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def find_sources(root: Path) -> Iterator[Source]:
    """Every session below a home."""
    homes = [root, *(Path(profile.path) for profile in folders(os.fspath(root / PROFILES)))]
    for home in homes:
        if holds_file(home, DATABASE):
            yield from _database_sources(home / DATABASE, root)


def sources_at(path: Path, root: Path) -> Iterator[Source]:
    """See `RowAgent.sources_at`. A database may be named by its write-ahead log."""
    database = path.with_name(_DATABASE_SUFFIX.sub("", path.name))
    if database.name == DATABASE and holds_file(database.parent, DATABASE):
        yield from _database_sources(database, root)


def _database_sources(database: Path, root: Path) -> Iterator[Source]:
    version = _READABLE
    try:
        yield from _sessions_in(database, root)
    except (OSError, SourceError):
        version = _UNREADABLE
    yield Source(
        agent=NAME, path=str(database), root=str(root), kind=SourceKind.SIDECAR, appendable=False, version=version
    )


def _sessions_in(database: Path, root: Path) -> Iterator[Source]:
    for found in list_sessions(database):
        rows = Source(
            agent=NAME,
            path=f"{database}#{found.session}",
            root=str(root),
            session_id=session_id(found.session),
            version=found.version,
        )
        yield rows
        # In the same log, its lines would move the messages behind them.
        yield msgspec.structs.replace(rows, path=f"{rows.path}{_ABOUT}", kind=SourceKind.SIDECAR, appendable=False)


# -- the rows of a source


def is_about(source: Source) -> bool:
    """Whether a source is what is known about a session, or a database by itself."""
    return source.kind is SourceKind.SIDECAR


def _place_of(path: str) -> tuple[Path, str] | None:
    match = _SESSION.fullmatch(path.removesuffix(_ABOUT))
    return (Path(match["database"]), match["session"]) if match else None


def row_version(source: Source) -> Version:
    """See `RowAgent.row_version`."""
    place = _place_of(source.path)
    if place is None:
        return _READABLE
    found = list_sessions(*place)
    if not found:
        raise FileNotFoundError(source.path)
    return found[0].version


def read_rows(source: Source, log: Iterable[bytes]) -> RowUpdate:
    """See `RowAgent.read_rows`."""
    place = _place_of(source.path)
    if place is not None:
        with open_database(place[0]) as connection:
            update = new_facts if is_about(source) else new_lines
            return update(connection, place[1], log)
    try:
        list_sessions(Path(source.path))
    except SourceError as error:
        raise OSError(error.reason) from error
    return RowUpdate()


# -- what a file is


def detect_database(path: Path, head: bytes) -> Detection:
    """See `Agent.detect`. A database is opened, because its first page need not have the names of its tables."""
    if not is_database(head):
        return Detection(reason="not an SQLite database")
    absolute = path.absolute()
    try:
        with open_database(absolute) as connection:
            if not is_own(connection):
                return Detection(reason="a database without its tables")
        found = [source for source in _sessions_in(absolute, absolute.parent) if not is_about(source)]
    except (OSError, SourceError) as error:
        return Detection(reason=str(error))
    return Detection(
        agent=NAME,
        version="1",
        source=found[0] if len(found) == 1 else None,
        sources=tuple(found),
        reason=None if found else "a database without sessions",
    )
