"""Where OpenCode's histories lie: databases and JSON storages below its data folder, and spilled outputs.

A session in a database is a source of its own, named `<database>#<session>`; a session of the JSON storage is named by
its file. Each database is also a source by itself. It holds nothing, but its version says when it cannot be read.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from turnlog.agents.base import Source, SourceKind, Version
from turnlog.agents.changes import Changes, Spill
from turnlog.agents.discovery import entries, holds_file, holds_folder
from turnlog.agents.opencode.database import list_sessions, open_database, select, tables_of
from turnlog.agents.opencode.rows import NAME, Row, session_id, text_of
from turnlog.agents.opencode.storage import (
    SessionFiles,
    files_version,
    find_sessions,
    session_files_at,
    session_of_file,
)
from turnlog.errors import SourceError

OUTPUTS = "tool-output"
"""The folder of spilled outputs."""

_DATABASE_SESSION = re.compile(r"(?P<database>.+)#(?P<session>[^#/.]+)")
_DATABASE = re.compile(r"opencode(?:-[^/]+)?\.db")
_DATABASE_SUFFIX = re.compile(r"-(?:wal|shm|journal)$")

_READABLE: Version = (0, 0, 0, 0)
_UNREADABLE: Version = (0, 0, 0, 1)


def find_sources(root: Path, databases: list[Path]) -> Iterator[Source]:
    """Every session below a data folder and in databases that the user names, and their spilled outputs."""
    databases = list(dict.fromkeys((*databases_in(root), *databases)))
    for database in databases:
        yield from _database_sources(database, root)
    yield from find_outputs(root, databases)
    for path, files in find_sessions(root):
        yield _source(str(path), root, files.session, files_version(files), files.project)


def sources_at(path: Path, root: Path) -> Iterator[Source]:
    """See `RowAgent.sources_at`: all sessions of a database, or the session of a file of the JSON storage.

    A database may be named by its write-ahead log, or another file of SQLite beside it.
    """
    database = path.with_name(_DATABASE_SUFFIX.sub("", path.name))
    if holds_file(database.parent, database.name) and not path.name.endswith(".json"):
        if path.parent.name == OUTPUTS:
            found = find_outputs(root, databases_in(root))
            yield from (source for source in found if source.path == str(path))
        else:
            yield from _database_sources(database, root)
        return
    session = session_of_file(path, root)
    for session_path, files in find_sessions(root) if session is not None else ():
        if files.session == session:
            yield _source(str(session_path), root, files.session, files_version(files), files.project)


def databases_in(root: Path) -> list[Path]:
    """The databases of a data folder: one for each release channel."""
    names = [entry.name for entry in entries(str(root))]
    return [root / name for name in names if _DATABASE.fullmatch(name) and holds_file(root, name)]


def is_home(root: Path) -> bool:
    """Whether a folder holds histories of OpenCode."""
    return bool(databases_in(root)) or holds_folder(root, "storage", "project")


def database_session_of(path: str) -> tuple[Path, str] | None:
    """The database and the session that a source's path names; None when it names neither."""
    match = _DATABASE_SESSION.fullmatch(path)
    return (Path(match["database"]), match["session"]) if match else None


def session_files_of(source: Source) -> SessionFiles | None:
    """The files that a source's path names; None when it is no session of a JSON storage."""
    return session_files_at(Path(source.path), Path(source.root))


def sessions_in(database: Path, root: Path) -> Iterator[Source]:
    """The sessions of one database. Raises OSError or SourceError when it cannot be read."""
    for found in list_sessions(database):
        yield _source(f"{database}#{found.external_id}", root, found.external_id, found.version, found.project)


def _database_sources(database: Path, root: Path) -> Iterator[Source]:
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


# -- spilled outputs
#
# Outputs that are too large for the history are files in `tool-output/`, and their results have the names. No file says
# which session it belongs to. But its name begins with the time at which it was written, as the ids of parts begin with
# theirs, so the part that names it is one of the last before it.


_OUTPUT_NAME = re.compile(r"tool_(?P<time>[0-9a-f]{12})[0-9A-Za-z]*")
_OUTPUT_NOTE = re.compile(r"Full output saved to: (.+)")
_OUTPUT_TABLES = {"part": "prt", "session_message": "msg"}
"""Tables whose rows name outputs -> the beginning of their ids."""
_LONGEST_CALL = 6 * 60 * 60 * 1000 << 12
"""How long before its output the part of a call may have been made: six hours, in the units of ids."""


class OutputFold:
    """Reads one output, whole. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source) -> None:
        """Nothing is remembered."""
        self._source = source

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        owner, name = self._source.session_id, Path(self._source.path).name
        if owner is not None:
            changes.spills.append(Spill(session_id=owner, name=name, media_type="text/plain", size=len(data)))
        return changes

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return b""


def spilled_to(text: str | None, facts: Row) -> str | None:
    """The name of the file that has the whole of a result's output; None when it was not spilled.

    Args:
        text: The output in the result.
        facts: OpenCode's own facts about the result.
    """
    saved = text_of(facts.get("outputPath"))
    if saved is None and text is not None and (match := _OUTPUT_NOTE.search(text)):
        saved = match[1]
    path = PurePosixPath((saved or "").strip().replace("\\", "/"))
    return path.name if path.parent.name == OUTPUTS and _OUTPUT_NAME.fullmatch(path.name) else None


def find_outputs(root: Path, databases: list[Path]) -> Iterator[Source]:
    """The outputs below a data folder that a session in one of the databases names. Others are left out."""
    names = _output_names(root / OUTPUTS)
    for database in databases if names else ():
        try:
            owners = _owners(database, names)
        except (OSError, SourceError):
            continue  # The database is a source by itself, whose version says so.
        for name, owner in owners.items():
            yield Source(
                agent=NAME,
                path=str(root / OUTPUTS / name),
                root=str(root),
                kind=SourceKind.SPILL,
                session_id=session_id(owner),
                appendable=False,
            )


def _output_names(folder: Path) -> list[str]:
    try:
        found = [entry.name for entry in folder.iterdir() if entry.is_file() and not entry.is_symlink()]
    except OSError:
        return []
    return sorted(name for name in found if _OUTPUT_NAME.fullmatch(name)) if not folder.is_symlink() else []


def _owners(database: Path, names: list[str]) -> dict[str, str]:
    """Name of an output -> the session whose call wrote it."""
    owners: dict[str, str] = {}
    with open_database(database) as connection:
        for table in _OUTPUT_TABLES.keys() & tables_of(connection):
            for name in names:
                owner = _owner_in(connection, table, name)
                if owner is not None:
                    owners[name] = owner
    return owners


def _owner_in(connection: sqlite3.Connection, table: str, name: str) -> str | None:
    match = _OUTPUT_NAME.fullmatch(name)
    end = int(match["time"], 16) if match else 0
    first, last = (f"{_OUTPUT_TABLES[table]}_{max(0, number):012x}" for number in (end - _LONGEST_CALL, end + 1))
    statement = f"SELECT session_id FROM {table} WHERE id BETWEEN ? AND ? AND instr(data, ?) ORDER BY id DESC LIMIT 1"
    found = next(select(connection, statement, first, last, name), None)
    return None if found is None else found["session_id"]
