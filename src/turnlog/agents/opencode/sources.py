"""Where OpenCode's histories are, and whether a file is one of them.

Histories are databases and JSON storages below its data folder, and spilled outputs.

A session in a database is a separate source, named `<database>#<session>`; a session of the JSON storage is named by
its file. Each database is also a source by itself.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from turnlog.agents.base import Detection, RowUpdate, Source, SourceKind, StatelessFold, Version
from turnlog.agents.changes import Changes, Spill
from turnlog.agents.databases import SessionDatabases, database_of, database_source, is_database
from turnlog.agents.files import entries, holds_file, holds_folder
from turnlog.agents.opencode import NAME, PROGRAMS, Program
from turnlog.agents.opencode.database import (
    BELONGINGS,
    TableRows,
    database_session_of,
    list_sessions,
    open_database,
    select,
    session_tables,
    tables_of,
)
from turnlog.agents.opencode.printed import detect_stream, is_export
from turnlog.agents.opencode.row_log import new_lines
from turnlog.agents.opencode.rows import session_id
from turnlog.agents.opencode.storage import (
    FileRows,
    SessionFiles,
    files_version,
    find_sessions,
    session_files_at,
    session_of_file,
)
from turnlog.agents.opencode.tools import OUTPUT_NAME, OUTPUTS
from turnlog.errors import SourceError


def _new_lines(connection: sqlite3.Connection, session: str, log: Iterable[bytes]) -> RowUpdate:
    return new_lines(TableRows(connection, session), log)


_DATABASES = SessionDatabases(open_database, list_sessions, _new_lines, belongings=BELONGINGS)


def find_sources(root: Path, databases: list[Path], program: Program) -> Iterator[Source]:
    """Every session below a data folder and in databases that the user names, and their spilled outputs."""
    databases = list(dict.fromkeys((*databases_in(root, program), *databases)))
    for database in databases:
        yield from _database_sources(database, root, program)
    yield from find_outputs(root, databases, program)
    for path, files in find_sessions(root):
        yield _source(str(path), root, files.session, files_version(files), files.project, program)


def sources_at(path: Path, root: Path, named: Sequence[Path], program: Program) -> Iterator[Source]:
    """See `RowAgent.sources_at`: all sessions of a database, or the session of a file of the JSON storage.

    A database may be named by its write-ahead log, or another file of SQLite next to it.
    """
    database = database_of(path)
    if holds_file(database.parent, database.name) and not path.name.endswith(".json"):
        if path.parent.name == OUTPUTS:
            found = find_outputs(root, databases_in(root, program), program)
            yield from (source for source in found if source.path == str(path))
        elif database in (*databases_in(root, program), *named):
            yield from _database_sources(database, root, program)
        return
    session = session_of_file(path, root)
    for session_path, files in find_sessions(root) if session is not None else ():
        if files.session == session:
            yield _source(str(session_path), root, files.session, files_version(files), files.project, program)


def databases_in(root: Path, program: Program) -> list[Path]:
    """The databases of a data folder: one for each release channel."""
    wanted = re.compile(rf"{re.escape(program.database)}(?:-[^/]+)?\.db")
    names = [entry.name for entry in entries(str(root))]
    return [root / name for name in names if wanted.fullmatch(name) and holds_file(root, name)]


def is_home(root: Path, program: Program) -> bool:
    """Whether a folder holds histories of a program."""
    return bool(databases_in(root, program)) or holds_folder(root, "storage", "project")


def session_files_of(source: Source) -> SessionFiles | None:
    """The files that a source's path names; None if it is no session of a JSON storage."""
    return session_files_at(Path(source.path), Path(source.root))


def sessions_in(database: Path, root: Path, program: Program) -> Iterator[Source]:
    """The sessions of one database. Raises OSError or SourceError when it cannot be read."""
    return _DATABASES.find_sessions(database, root, program.agent, partial(session_id, agent=program.agent))


def _database_sources(database: Path, root: Path, program: Program) -> Iterator[Source]:
    return _DATABASES.find_sources(database, root, program.agent, partial(session_id, agent=program.agent))


def _source(path: str, root: Path, external: str, version: Version, project: str | None, program: Program) -> Source:
    return Source(
        agent=program.agent,
        path=path,
        root=str(root),
        session_id=session_id(external, program.agent),
        project=project,
        version=version,
    )


# -- the rows of a source


def holds_rows(source: Source) -> bool:
    """Whether a source is a session in a database or a JSON storage, or the database itself."""
    is_session = database_session_of(source.path) is not None or session_files_of(source) is not None
    return is_session or source.kind is SourceKind.SIDECAR


def row_version(source: Source) -> Version:
    """See `RowAgent.row_version`."""
    files = _files_of(source)
    return _DATABASES.row_version(source) if files is None else files_version(files)


def _files_of(source: Source) -> SessionFiles | None:
    """The files of a session of a JSON storage; None if a source is in a database, or is one."""
    return None if database_session_of(source.path) is not None else session_files_of(source)


def read_rows(source: Source, log: Iterable[bytes]) -> RowUpdate:
    """See `RowAgent.read_rows`."""
    files = _files_of(source)
    return _DATABASES.read_rows(source, log) if files is None else new_lines(FileRows(files), log)


# -- what a file is


_MESSAGES = re.compile(rb'"messages"\s*:\s*\[')

_CREATED = re.compile(rb'"time"\s*:\s*\{\s*"created"\s*:\s*(\d+)')

_SANITIZED = re.compile(rb'"(?:title|directory)"\s*:\s*"\[redacted:session-')

_VERSION = re.compile(rb'"version"\s*:\s*"([^"]+)"')

_STORAGE_FILE = re.compile(rb'\A\s*\{\s*"id"\s*:\s*"(ses|msg|prt)_?[0-9a-zA-Z]+"')
"""The beginning of a file of the JSON storage. `_STORAGE_FIELDS` are fields that only such files have."""

_STORAGE_FIELDS = {
    b"ses": (b'"directory"', b'"title"'),
    b"msg": (b'"sessionID"', b'"role"'),
    b"prt": (b'"messageID"', b'"type"'),
}

_MOST_LEVELS = 6
"""How many folders a file of the JSON storage is below the data folder, at most."""


def detect_file(path: Path, head: bytes, program: Program) -> Detection:
    """See `Agent.detect`. A database is opened, because its first page need not have the names of its tables."""
    absolute = path.absolute()
    if is_database(head):
        return _detect_database(absolute, program)
    version = _VERSION.search(head)
    named = version[1].decode(errors="replace") if version else None
    if is_export(head):
        kind = SourceKind.STREAM if _is_sanitized(head) or _is_fork(head) else SourceKind.SESSION
        source = Source(agent=NAME, path=str(absolute), root=str(absolute.parent), kind=kind, appendable=False)
        return Detection(agent=NAME, version=named, source=source)
    # From above: below its own folder, the oldest storage looks like the newer one.
    for root in reversed(list(absolute.parents)[:_MOST_LEVELS]):
        files = session_files_at(absolute, root)
        if files is not None and files.file is not None:
            found = next((source for source in find_sources(root, [], program) if source.path == str(absolute)), None)
            return Detection(agent=NAME, version=named, source=found)
    stream = detect_stream(path, head)
    if stream is not None:
        return stream
    if _is_storage_file(head):
        reason = "a file out of the JSON storage: only where it lay, its session's file leads to the messages"
        return Detection(agent=NAME, version=named, reason=reason)
    return Detection(reason="neither a database, nor a session's file, nor an export")


def _is_sanitized(export: bytes) -> bool:
    """Whether an export comes from `opencode export --sanitize`, without texts, titles and folders."""
    return _SANITIZED.search(export) is not None


def _is_fork(export: bytes) -> bool:
    """Whether an export is that of a fork: its first message is older than the session.

    Such a message is a copy, and the export does not say of which. It is known by the fork's own id, where the rows
    of the session have the original's. So the rows of the session take precedence over the export.
    """
    messages = _MESSAGES.search(export)
    if messages is None:
        return False
    began = _CREATED.findall(export, 0, messages.start())
    first = _CREATED.search(export, messages.end())
    return bool(began) and first is not None and int(first[1]) < int(began[-1])


def _is_storage_file(head: bytes) -> bool:
    piece = _STORAGE_FILE.match(head)
    return piece is not None and all(sign in head for sign in _STORAGE_FIELDS[piece[1]])


_OWN_TABLES = {"kilo_board": "kilo", "external_import": "mimo-code", "claude_import": "mimo-code"}
"""Tables that only one program of the family has -> its agent."""


def writer_of(connection: sqlite3.Connection, path: Path) -> str:
    """The agent that wrote a database: by a table that no other has, else by the name of the file."""
    names = {row["name"] for row in select(connection, "SELECT name FROM sqlite_master WHERE type = 'table'")}
    found = next((agent for table, agent in _OWN_TABLES.items() if table in names), None)
    stem = path.name.partition(".")[0].partition("-")[0]
    named = next((program.agent for program in PROGRAMS if program.database == stem), NAME)
    return found or named


def _detect_database(path: Path, program: Program) -> Detection:
    try:
        with open_database(path) as connection:
            tables = session_tables(tables_of(connection))
            if not tables:
                return Detection(reason="a database without its tables")
            if writer_of(connection, path) != program.agent:
                return Detection(reason="a database of another program")
            newest = (f"SELECT version FROM {table} ORDER BY time_updated DESC LIMIT 1" for table in tables)
            row = next((row for statement in newest for row in select(connection, statement)), None)
        sources = tuple(sessions_in(path, path.parent, program))
    except (OSError, SourceError) as error:
        return Detection(reason=str(error))
    return Detection(
        agent=program.agent,
        version=str(row["version"]) if row else None,
        source=sources[0] if len(sources) == 1 else None,
        sources=sources,
        beside=(database_source(path, path.parent, program.agent),),
        reason=None if sources else "a database without sessions",
    )


# -- spilled outputs
#
# Outputs that are too large for the history are files in `tool-output/`, and their results have the names. No file says
# which session it belongs to. But its name begins with the time at which it was written, as the ids of parts begin with
# theirs, so the part that names it is one of the last before it.


_OUTPUT_TABLES = {"part": "prt", "session_message": "msg"}
"""Tables whose rows name outputs -> the beginning of their ids."""

_LONGEST_CALL = 6 * 60 * 60 * 1000 << 12
"""How long before its output the part of a call may have been made: six hours, in the units of ids."""


class OutputFold(StatelessFold):
    """Reads one output."""

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


def find_outputs(root: Path, databases: list[Path], program: Program) -> Iterator[Source]:
    """The outputs below a data folder that a session in one of the databases names. Others are left out."""
    names = _output_names(root / OUTPUTS)
    for database in databases if names else ():
        try:
            owners = _owners(database, names)
        except (OSError, SourceError):
            continue  # The database is a source by itself, whose version says so.
        for name, owner in owners.items():
            yield Source(
                agent=program.agent,
                path=str(root / OUTPUTS / name),
                root=str(root),
                kind=SourceKind.SPILL,
                session_id=session_id(owner, program.agent),
                appendable=False,
            )


def _output_names(folder: Path) -> list[str]:
    try:
        found = [entry.name for entry in folder.iterdir() if entry.is_file() and not entry.is_symlink()]
    except OSError:
        return []
    return sorted(name for name in found if OUTPUT_NAME.fullmatch(name)) if not folder.is_symlink() else []


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
    match = OUTPUT_NAME.fullmatch(name)
    end = int(match["time"], 16) if match else 0
    first, last = (f"{_OUTPUT_TABLES[table]}_{max(0, number):012x}" for number in (end - _LONGEST_CALL, end + 1))
    statement = f"SELECT session_id FROM {table} WHERE id BETWEEN ? AND ? AND instr(data, ?) ORDER BY id DESC LIMIT 1"
    found = next(select(connection, statement, first, last, name), None)
    return None if found is None else found["session_id"]
