"""Agents' databases: opening one read-only, at one consistent snapshot, and its sessions as sources of rows.

An authorizer refuses every table that a reader does not name, so those that hold tokens and secrets cannot be read even
by mistake. Nothing is written next to the database either, as far as SQLite lets us: see `_open_modes`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import quote

import msgspec

from turnlog.agents.base import Detection, RowUpdate, Source, SourceKind, Version, is_database_itself
from turnlog.agents.files import are_rows_unchanged, read_regular_file
from turnlog.agents.strays import Belonging, stray_rows
from turnlog.errors import SourceError

Row: TypeAlias = dict[str, Any]
"""The columns of a row by their names."""

ROW_SIZE: Final = 1024
"""Bytes that a row is estimated to have, because counting them would mean to read it."""

FACTS: Final = "#about"
"""After the path of a session: what other tables say about it."""

READABLE: Version = (0, 0, 0, 0)
"""The version of a database that can be read, if nobody knows with which files."""

_UNREADABLE: Version = (0, 0, 0, 1)
"""The version of a database that cannot be read."""

_SESSION = re.compile(r"(?P<database>.+)#(?P<session>[^#]+)")
_DATABASE_SUFFIX = re.compile(r"-(?:wal|shm|journal)$")

_BOOKKEEPING = re.compile(r"sqlite_\w+|\w*_migrations?|goose_db_version")
"""Tables that a program makes before those that it needs: they say which of those were made."""

_LISTING = frozenset({"sqlite_master", "sqlite_schema"})

HEADER_SIZE: Final = 100

_MAGIC = b"SQLite format 3\0"

_WRITE_VERSION = 18
"""The byte of the header that names the journal of the database; 2 is a write-ahead log."""

_LOOKED_FOR = "rows that belong to no session"
"""What a pass looks for in a database beside its sessions. With something new, databases are looked through again."""

_FILES_BESIDE = {"": HEADER_SIZE, "-wal": 32, "-shm": 48, "-journal": 28}
"""The files of a database -> the bytes at their beginnings that count its transactions: the header of the database,
that of its write-ahead log, that of the log's index, and that of its rollback journal."""

_BUSY_TIMEOUT = 5.0
"""Seconds to wait for a writer."""

_COPY_ATTEMPTS = 3

_PRIMARY_CODE: Final = 0xFF
"""The part of an error code of SQLite that names its kind."""

_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_TRANSACTION})


@contextmanager
def open_snapshot(
    path: Path, tables: Set[str], text_factory: Callable[[bytes], object]
) -> Generator[sqlite3.Connection]:
    """A connection to one consistent snapshot of a database.

    Args:
        path: The database.
        tables: The tables that may be read.
        text_factory: What the bytes of a text become.

    Raises:
        OSError: There is no such file.
        SourceError: It is no database that can be read.
    """
    with ExitStack() as stack:
        connection = _open_connection(path)
        connection.text_factory = text_factory
        connection.set_authorizer(_authorizer(tables))
        stack.callback(connection.close)
        try:
            yield connection
        except sqlite3.Error as error:
            raise SourceError(f"the database cannot be read: {error}", path=path) from error


def is_database(head: bytes) -> bool:
    """Whether a file with this beginning is a database of SQLite."""
    return head.startswith(_MAGIC)


def _open_connection(path: Path) -> sqlite3.Connection:
    with path.open("rb") as file:
        head = file.read(HEADER_SIZE)
    # What SQLite makes of a file without a byte, whatever is beside it.
    if not head:
        return sqlite3.connect(":memory:", isolation_level=None)
    # SQLite keeps the other files beside what a link leads to.
    place = Path(os.path.realpath(path))
    if not is_database(head) and not _has_bytes(place, "-journal"):
        raise SourceError("not an SQLite database", path=path)
    problem: sqlite3.Error | None = None
    for connect in _open_modes(place, has_log=head[_WRITE_VERSION : _WRITE_VERSION + 1] == b"\2"):
        connection: sqlite3.Connection | None = None
        try:
            connection = connect()
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            problem = error
            if connection is not None:
                connection.close()
            # Another process is writing: a copy would be of the middle of it.
            if getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE == sqlite3.SQLITE_BUSY:
                break
        else:
            return connection
    raise SourceError(f"the database cannot be opened: {problem}", path=path)


def _open_modes(path: Path, *, has_log: bool) -> list[Callable[[], sqlite3.Connection]]:
    """The ways to open the database, the one that leaves the fewest traces first.

    - Without a write-ahead log next to it, no process writes, and the file alone is the database.
    - With a log that has an index, the index is opened read-only (`readonly_shm`).
    - A log without an index was left behind by a crash or a copy. SQLite would have to create an index next to it, so a
      copy of both files is read.
    - A rollback journal of a killed process has what the file held before its last transaction. SQLite would have to
      write that back, and refuses to open the file only for reading: it does so in a copy.
    """
    read = partial(_connect, path, "mode=ro")
    read_copy = partial(_connect_to_copy, path)
    if not has_log:
        return [read, read_copy] if _has_bytes(path, "-journal") else [read]
    if path.with_name(f"{path.name}-shm").exists():
        return [partial(_connect, path, "mode=ro&readonly_shm=1"), read]
    if _has_bytes(path, "-wal") or _has_bytes(path, "-journal"):
        return [read_copy, read]
    return [partial(_connect, path, "mode=ro&immutable=1"), read]


def _has_bytes(path: Path, ending: str) -> bool:
    """Whether there is another file of the database, which is not empty."""
    with suppress(OSError):
        return path.with_name(path.name + ending).stat().st_size > 0
    return False


class _Copy:
    """A folder for a copy of a database, in which SQLite ends what a killed process began; deleted with the object."""

    def __init__(self, files: list[_FileState]) -> None:
        self.files = files
        """The files that are copied, to know whether they are still the same."""
        self.folder = Path(tempfile.mkdtemp(prefix="turnlog-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)


_FileState: TypeAlias = tuple[str, int, int, int]
"""The ending of a file's name, and its size, time and inode."""

_copies: dict[Path, _Copy] = {}
"""The copy that was read last: each session of a database opens it by itself."""


def _connect_to_copy(path: Path) -> sqlite3.Connection:
    """A connection to a copy of a database; the files themselves stay as they are."""
    copy = _copies.get(path)
    if copy is None or copy.files != _states(path):
        _copies.clear()
        _copies[path] = copy = _copied(path)
    return _connect(copy.folder / path.name, "mode=rw")


def _copied(path: Path) -> _Copy:
    """A copy of the files of a database as they were at one moment."""
    for _ in range(_COPY_ATTEMPTS):
        copy = _Copy(_states(path))
        with suppress(FileNotFoundError):
            for ending, *_ in copy.files:
                shutil.copyfile(f"{path}{ending}", copy.folder / f"{path.name}{ending}")
            if copy.files == _states(path):
                return copy
    raise sqlite3.OperationalError("it changes while it is being copied")


def _states(path: Path) -> list[_FileState]:
    found: list[_FileState] = []
    for ending in ("", "-wal", "-journal"):
        with suppress(FileNotFoundError):
            status = os.stat(f"{path}{ending}")  # noqa: PTH116  # a path object costs more than the call
            found.append((ending, status.st_size, status.st_mtime_ns, status.st_ino))
    return found


def _connect(path: Path, options: str) -> sqlite3.Connection:
    uri = f"file:{quote(str(path.absolute()))}?{options}"
    return sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT, isolation_level=None)


def _authorizer(tables: Set[str]) -> Callable[[int, str | None, str | None, str | None, str | None], int]:
    readable = tables | _LISTING

    def authorize(action: int, table: str | None, column: str | None, schema: str | None, trigger: str | None) -> int:
        if action in _ALLOWED or (action == sqlite3.SQLITE_READ and table in readable):
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    return authorize


# -- reading rows


def replacing_text(data: bytes) -> str:
    """The text of bytes that should be UTF-8: a damaged one must not make the whole session unreadable."""
    return data.decode(errors="replace")


def select_rows(connection: sqlite3.Connection, statement: str, *parameters: object) -> Iterator[Row]:
    """The rows that a statement selects, whichever columns this version of a table has."""
    cursor = connection.execute(statement, parameters)
    names = [column[0] for column in cursor.description]
    for values in cursor:
        yield dict(zip(names, values, strict=True))


def tables_of(connection: sqlite3.Connection) -> set[str]:
    """The names of the tables of a database."""
    return {row["name"] for row in select_rows(connection, "SELECT name FROM sqlite_master WHERE type = 'table'")}


def has_columns(connection: sqlite3.Connection, columns: Mapping[str, Set[str]]) -> bool:
    """Whether a database has these tables (-> columns), which tells them from another program's of the same names."""
    return not _missing_from(connection, columns)


def is_filled(connection: sqlite3.Connection, columns: Mapping[str, Set[str]], path: Path) -> bool:
    """Whether the database at an agent's own place has these tables (-> columns); False: it is new and has none yet.

    Raises SourceError, naming what is missing, for a database of another schema.
    """
    missing = _missing_from(connection, columns)
    if missing and all(_BOOKKEEPING.fullmatch(table) for table in tables_of(connection)):
        return False
    if missing:
        raise SourceError(f"a database of another schema: {', '.join(missing)}", path=path)
    return True


def _missing_from(connection: sqlite3.Connection, columns: Mapping[str, Set[str]]) -> list[str]:
    known = tables_of(connection)
    missing = [f"no table {table}" for table in columns if table not in known]
    for table, wanted in columns.items():
        if wanted and table in known:
            missing += [f"no column {name} in {table}" for name in sorted(wanted - set(columns_of(connection, table)))]
    return missing


def columns_of(connection: sqlite3.Connection, table: str) -> list[str]:
    """The names of the columns of a table, in its order."""
    return [column[0] for column in connection.execute(f'SELECT * FROM "{table}" LIMIT 0').description]


# -- sessions as sources


class SessionListing(NamedTuple):
    """A session in a database."""

    session: str
    version: Version
    is_empty: bool = False
    """Nothing is said in it. If something was, its log is written anew; otherwise it is no session."""
    is_subagent: bool = False
    """It is known to be a subagent's before its rows are read."""
    project: str | None = None
    """See `Source.project`."""


class SessionDatabases(NamedTuple):
    """The databases of an agent. A session is a source `<database>#<session>`, what other tables say about it another.

    Each database is also a source by itself. Its log says which rows belong to no session. Its version says when it
    cannot be read, and else with which files it was read and what was found: while both are as they were, nothing is
    looked for in it.
    """

    open_database: Callable[[Path], AbstractContextManager[sqlite3.Connection]]
    list_sessions: Callable[[Path, str | None], list[SessionListing]]
    """All sessions, or the one with this id. Raises OSError or SourceError for a database that cannot be read."""
    new_lines: Callable[[sqlite3.Connection, str, Iterable[bytes]], RowUpdate]
    """The lines of a session that its log does not have yet."""
    new_facts: Callable[[sqlite3.Connection, str, Iterable[bytes]], RowUpdate] | None = None
    """What other tables say about a session, if its log does not say it yet; None if they say nothing."""
    belongings: Sequence[Belonging] = ()
    """What rows must have to be read with a session."""
    lists_files: bool = False
    """To list the sessions, no database is opened."""

    def find_sources(self, database: Path, root: Path, agent: str, to_id: Callable[[str], str]) -> Iterator[Source]:
        """The sources of a database: those of its sessions, as far as it can be read, and itself."""
        # Before the rows: what is written meanwhile is found in the next pass.
        stamp = None if self.lists_files else _stamp_of(database)
        if stamp is not None and are_rows_unchanged(str(database), lambda versions: _version_of(stamp, versions)):
            return
        versions: dict[str, Version] = {}
        try:
            for listed in self.list_sessions(database, None):
                for source in self._sources_of(listed, database, root, agent, to_id):
                    versions[source.path] = listed.version
                    yield source
            version = _version_of(stamp, versions)
        except Exception:  # Whatever is wrong with it, reading it reports; the agent's other databases are read.
            version = _UNREADABLE
        yield database_source(database, root, agent, version)

    def find_sessions(self, database: Path, root: Path, agent: str, to_id: Callable[[str], str]) -> Iterator[Source]:
        """Two sources for each session in which something is said. `to_id` makes the session's id in the model.

        Raises:
            OSError: There is no such file.
            SourceError: It cannot be read, or has another schema.
        """
        for found in self.list_sessions(database, None):
            if not found.is_empty:
                yield from self._sources_of(found, database, root, agent, to_id)

    def _sources_of(
        self, found: SessionListing, database: Path, root: Path, agent: str, to_id: Callable[[str], str]
    ) -> Iterator[Source]:
        rows = Source(
            agent=agent,
            path=f"{database}#{found.session}",
            root=str(root),
            kind=SourceKind.SUBAGENT if found.is_subagent else SourceKind.SESSION,
            session_id=to_id(found.session),
            project=found.project,
            version=found.version,
        )
        yield rows
        # What is known about an empty session would make a session of it.
        if self.new_facts is not None and not found.is_empty:
            # In the same log, its lines would move the rows behind them.
            yield msgspec.structs.replace(rows, path=f"{rows.path}{FACTS}", kind=SourceKind.SIDECAR, appendable=False)

    def detect(
        self,
        database: Path,
        agent: str,
        to_id: Callable[[str], str],
        *,
        version_of: Callable[[sqlite3.Connection], str | None],
        sessions: str = "sessions",
    ) -> Detection:
        """Judge a database by its tables.

        Args:
            database: Its path.
            agent: The agent's name.
            to_id: Makes a session's id in the model.
            version_of: The version of which its tables are, or None if they are another program's.
            sessions: What the agent calls its sessions.
        """
        path = database.absolute()
        try:
            with self.open_database(path) as connection:
                version = version_of(connection)
            if version is None:
                return Detection(reason="a database of another schema")
            sources = tuple(self.find_sessions(path, path.parent, agent, to_id))
        except (OSError, SourceError) as error:
            return Detection(reason=str(error))
        found = tuple(source for source in sources if source.kind is not SourceKind.SIDECAR)
        beside = tuple(source for source in sources if source.kind is SourceKind.SIDECAR)
        return Detection(
            agent=agent,
            version=version,
            source=found[0] if len(found) == 1 else None,
            sources=found,
            beside=(*beside, database_source(path, path.parent, agent)),
            reason=None if found else f"a database without {sessions}",
        )

    def row_version(self, source: Source) -> Version:
        """See `RowAgent.row_version`."""
        place = None if is_database_itself(source) else session_place(source.path)
        if place is None:
            return READABLE
        found = self.list_sessions(*place)
        if not found:
            raise FileNotFoundError(source.path)
        return found[0].version

    def read_rows(self, source: Source, log: Iterable[bytes]) -> RowUpdate:
        """See `RowAgent.read_rows`."""
        place = None if is_database_itself(source) else session_place(source.path)
        if place is None:
            return self._read_database(source, log)
        with self.open_database(place[0]) as connection:
            update = self.new_facts if self.new_facts is not None and source.path.endswith(FACTS) else self.new_lines
            return update(connection, place[1], log)

    def _read_database(self, source: Source, log: Iterable[bytes]) -> RowUpdate:
        """What no session has of a database. Raises OSError if it cannot be read."""
        try:
            if source.version in (None, _UNREADABLE):
                self.list_sessions(Path(source.path), None)
            if not self.belongings:
                return RowUpdate()
            with self.open_database(Path(source.path)) as connection:
                return stray_rows(connection, self.belongings, log)
        except SourceError as error:
            raise OSError(error.reason) from error


class DatabaseReader(NamedTuple):
    """What reads an agent's databases (`turnlog.agents.database_agent`)."""

    databases: SessionDatabases
    find_sources: Callable[[Path], Iterator[Source]]
    """The sources below a root."""
    sources_at: Callable[[Path, Path], Iterator[Source]]
    """The sources to which a changed file below a root belongs."""
    detect: Callable[[Path, bytes], Detection]
    """See `Agent.detect`."""
    restore_rows: Callable[[Source, Iterable[bytes], Path], list[Path]]
    """See `RowAgent.restore_rows`."""


def _stamp_of(database: Path) -> int:
    """A number that changes with every transaction, from the beginnings of the database's files and from `stat`."""
    # SQLite keeps the other files beside what a link leads to.
    place = os.path.realpath(database)
    seen: list[object] = [_LOOKED_FOR]
    for ending, size in _FILES_BESIDE.items():
        try:
            status = os.stat(place + ending)  # noqa: PTH116  # a path object costs more than the call
        except OSError:
            continue
        # Whoever reads may touch the index of the log; only its content tells of a transaction.
        known = () if ending == "-shm" else (status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino)
        seen.append((ending, known, read_regular_file(place + ending, size)))
    return _digest(seen)


def database_source(database: Path, root: Path, agent: str, version: Version = READABLE) -> Source:
    """A database by itself as a source."""
    return Source(
        agent=agent, path=str(database), root=str(root), kind=SourceKind.SIDECAR, appendable=False, version=version
    )


def _version_of(stamp: int | None, versions: Mapping[str, Version]) -> Version:
    """The version of a database that was read with this stamp, if the sources in it have these versions."""
    if stamp is None:
        return READABLE
    # It has no rows, and no time that would make it the newest.
    return 0, 0, stamp, _digest(sorted(versions.items()))


def _digest(value: object) -> int:
    return int.from_bytes(hashlib.blake2b(repr(value).encode(errors="replace"), digest_size=7).digest())


def session_place(path: str) -> tuple[Path, str] | None:
    """The database and the session in the path of a source of rows; None for any other path."""
    match = _SESSION.fullmatch(path.removesuffix(FACTS))
    return (Path(match["database"]), match["session"]) if match else None


def database_of(path: Path) -> Path:
    """The database that a file belongs to: itself, or the one that it is the log or index of."""
    return path.with_name(_DATABASE_SUFFIX.sub("", path.name))
