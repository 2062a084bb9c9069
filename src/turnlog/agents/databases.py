"""Opening the database of an agent read-only, at one consistent snapshot.

An authorizer refuses every table that a reader does not name, so those that hold tokens and secrets cannot be read even
by mistake. Nothing is written next to the database either, as far as SQLite lets us: see `_open_modes`.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Generator, Set
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

from turnlog.errors import SourceError

_LISTING = frozenset({"sqlite_master", "sqlite_schema"})

_HEADER_SIZE = 100

_MAGIC = b"SQLite format 3\0"

_WRITE_VERSION = 18
"""The byte of the header that names the journal of the database; 2 is a write-ahead log."""

_BUSY_TIMEOUT = 5.0
"""Seconds to wait for a writer."""

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
        connection = _open_connection(path, stack)
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


def _open_connection(path: Path, stack: ExitStack) -> sqlite3.Connection:
    with path.open("rb") as file:
        head = file.read(_HEADER_SIZE)
    if not is_database(head):
        raise SourceError("not an SQLite database", path=path)
    problem: sqlite3.Error | None = None
    for connect in _open_modes(path, has_log=head[_WRITE_VERSION] == 2):
        connection: sqlite3.Connection | None = None
        try:
            connection = connect(stack)
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            problem = error
            if connection is not None:
                connection.close()
        else:
            return connection
    raise SourceError(f"the database cannot be opened: {problem}", path=path)


def _open_modes(path: Path, *, has_log: bool) -> list[Callable[[ExitStack], sqlite3.Connection]]:
    """The ways to open the database, the one that leaves the fewest traces first.

    - Without a write-ahead log next to it, no process writes, and the file alone is the database.
    - With a log that has an index, the index is opened read-only (`readonly_shm`).
    - A log without an index was left behind by a crash or a copy. SQLite would have to create an index next to it, so a
      copy of both files is read.
    """
    log, index = (path.with_name(f"{path.name}-{ending}") for ending in ("wal", "shm"))
    modes: list[Callable[[ExitStack], sqlite3.Connection]] = []
    if has_log and index.exists():
        modes = [lambda stack: _connect(path, "mode=ro&readonly_shm=1")]
    elif has_log and log.exists() and log.stat().st_size:
        modes = [lambda stack: _connect(_copied(path, log, stack), "mode=rw")]
    elif has_log:
        modes = [lambda stack: _connect(path, "mode=ro&immutable=1")]
    return [*modes, lambda stack: _connect(path, "mode=ro")]


def _copied(path: Path, log: Path, stack: ExitStack) -> Path:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnlog-")))
    shutil.copyfile(path, folder / path.name)
    shutil.copyfile(log, folder / log.name)
    return folder / path.name


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
