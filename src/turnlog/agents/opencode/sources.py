"""Where OpenCode's histories lie: databases and JSON storages below its data folder; exports anywhere.

A session in a database is a source of its own, named `<database>#<session>`, and a session of the JSON storage is
named by its file. Each database is also a source by itself, which holds nothing: it tells when it cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from turnlog.agents.base import Source, SourceKind, Version
from turnlog.agents.folders import entries, holds_file, holds_folder
from turnlog.agents.opencode.ids import NAME, session_id
from turnlog.agents.opencode.outputs import OUTPUTS, find_outputs
from turnlog.agents.opencode.storage import Place, find_places, place_of, session_at, version_of
from turnlog.agents.opencode.tables import list_sessions
from turnlog.errors import SourceError

_IN_DATABASE = re.compile(r"(?P<database>.+)#(?P<session>[^#/.]+)")
_DATABASE = re.compile(r"opencode(?:-[^/]+)?\.db")
_BESIDE = re.compile(r"-(?:wal|shm|journal)$")

_READABLE: Version = (0, 0, 0, 0)
_UNREADABLE: Version = (0, 0, 0, 1)


def find_sources(root: Path, databases: list[Path]) -> Iterator[Source]:
    """Every session below a data folder, and those in databases that are named by the user; what they spilled."""
    databases = list(dict.fromkeys((*databases_in(root), *databases)))
    for database in databases:
        yield from _in_database(database, root)
    yield from find_outputs(root, databases)
    for path, place in find_places(root):
        yield _source(str(path), root, place.session, version_of(place), place.project)


def sources_at(path: Path, root: Path) -> Iterator[Source]:
    """See `RowAgent.sources_at`: of a database or its log all sessions, of a file of the storage its own."""
    database = path.with_name(_BESIDE.sub("", path.name))
    if holds_file(database.parent, database.name) and not path.name.endswith(".json"):
        if path.parent.name == OUTPUTS:
            found = find_outputs(root, databases_in(root))
            yield from (source for source in found if source.path == str(path))
        else:
            yield from _in_database(database, root)
        return
    session = session_at(path, root)
    for place_path, place in find_places(root) if session is not None else ():
        if place.session == session:
            yield _source(str(place_path), root, place.session, version_of(place), place.project)


def databases_in(root: Path) -> list[Path]:
    """The databases of a data folder: one for each release channel."""
    names = [entry.name for entry in entries(str(root))]
    return [root / name for name in names if _DATABASE.fullmatch(name) and holds_file(root, name)]


def is_home(root: Path) -> bool:
    """Whether a folder holds histories of OpenCode."""
    return bool(databases_in(root)) or holds_folder(root, "storage", "project")


def in_database(path: str) -> tuple[Path, str] | None:
    """The database and the session that a source's path names; None when it names neither."""
    match = _IN_DATABASE.fullmatch(path)
    return (Path(match["database"]), match["session"]) if match else None


def in_storage(source: Source) -> Place | None:
    """The files that a source's path names; None when it is no session of a JSON storage."""
    return place_of(Path(source.path), Path(source.root))


def sessions_in(database: Path, root: Path) -> Iterator[Source]:
    """The sessions of one database. Raises OSError or SourceError when it cannot be read."""
    for found in list_sessions(database):
        yield _source(f"{database}#{found.external_id}", root, found.external_id, found.version, found.project)


def _in_database(database: Path, root: Path) -> Iterator[Source]:
    version = _READABLE
    try:
        yield from sessions_in(database, root)
    except (OSError, SourceError):
        version = _UNREADABLE
    yield Source(
        agent=NAME, path=str(database), root=str(root), kind=SourceKind.SIDECAR, appendable=False, version=version
    )


def _source(path: str, root: Path, external: str, version: Version, project: str | None) -> Source:
    return Source(
        agent=NAME, path=path, root=str(root), session_id=session_id(external), project=project, version=version
    )
