"""Opening OpenCode's database so that nothing of it can change, and nothing of it is read but histories.

The connection is read-only and looks at one consistent snapshot. An authorizer refuses every table that is not in
`TABLES`: those that hold tokens and secrets (`account`, `control_account`, `credential`, `session_share`, …) cannot be
read even by mistake. Nothing is written beside the database either, as far as SQLite lets us: see `_ways`.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

from turnlog.agents.opencode.rows import Row, as_blob, as_text
from turnlog.errors import SourceError

TABLES = frozenset(
    {
        "event",
        "event_sequence",
        "message",
        "part",
        "project",
        "session",
        "session_context_epoch",
        "session_input",
        "session_message",
        "todo",
    }
)
"""All that is ever read."""

_LISTING = frozenset({"sqlite_master", "sqlite_schema"})
_HEADER_SIZE = 100
_MAGIC = b"SQLite format 3\0"
_WRITE_VERSION = 18
"""The byte of the header that says which journal the database has; 2 is a write-ahead log."""
_PATIENCE = 5.0
"""Seconds to wait for a writer."""
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_TRANSACTION})


@contextmanager
def open_database(path: Path) -> Generator[sqlite3.Connection]:
    """A snapshot of the database. Raises OSError when there is none, SourceError when it cannot be read."""
    with ExitStack() as stack:
        connection = _first_that_works(path, stack)
        stack.callback(connection.close)
        try:
            yield connection
        except sqlite3.Error as error:
            raise SourceError(f"the database cannot be read: {error}", path=path) from error


def tables_of(connection: sqlite3.Connection) -> set[str]:
    """Which of `TABLES` this version of the database has."""
    return {row["name"] for row in select(connection, "SELECT name FROM sqlite_master WHERE type = 'table'")} & TABLES


def select(connection: sqlite3.Connection, statement: str, *parameters: object) -> Iterator[Row]:
    """Rows with all their columns, as the database holds them."""
    cursor = connection.execute(statement, parameters)
    names = [column[0] for column in cursor.description]
    for values in cursor:
        yield dict(zip(names, [as_blob(value) if isinstance(value, bytes) else value for value in values], strict=True))


def is_database(head: bytes) -> bool:
    """Whether a file that begins so is one of SQLite's."""
    return head.startswith(_MAGIC)


def _first_that_works(path: Path, stack: ExitStack) -> sqlite3.Connection:
    with path.open("rb") as file:
        head = file.read(_HEADER_SIZE)
    if not is_database(head):
        raise SourceError("not an SQLite database", path=path)
    problem: sqlite3.Error | None = None
    for way in _ways(path, has_log=head[_WRITE_VERSION] == 2):
        connection: sqlite3.Connection | None = None
        try:
            connection = way(stack)
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            problem = error
            if connection is not None:
                connection.close()
        else:
            return connection
    raise SourceError(f"the database cannot be opened: {problem}", path=path)


def _ways(path: Path, *, has_log: bool) -> list[Callable[[ExitStack], sqlite3.Connection]]:
    """How to open the database, the way that leaves the least traces first.

    Without a write-ahead log beside it nobody writes, and the file alone is the database. With one, its index is
    only read (`readonly_shm`) when it can be. A log without an index was left behind by a crash or a copy: SQLite
    would have to make an index beside it, so a copy of both is read.
    """
    log, index = (path.with_name(f"{path.name}-{ending}") for ending in ("wal", "shm"))
    ways: list[Callable[[ExitStack], sqlite3.Connection]] = []
    if has_log and index.exists():
        ways = [lambda stack: _connect(path, "mode=ro&readonly_shm=1")]
    elif has_log and log.exists() and log.stat().st_size:
        ways = [lambda stack: _connect(_copied(path, log, stack), "mode=rw")]
    elif has_log:
        ways = [lambda stack: _connect(path, "mode=ro&immutable=1")]
    return [*ways, lambda stack: _connect(path, "mode=ro")]


def _copied(path: Path, log: Path, stack: ExitStack) -> Path:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnlog-")))
    shutil.copyfile(path, folder / path.name)
    shutil.copyfile(log, folder / log.name)
    return folder / path.name


def _connect(path: Path, options: str) -> sqlite3.Connection:
    uri = f"file:{quote(str(path.absolute()))}?{options}"
    connection = sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None)
    connection.text_factory = as_text
    connection.set_authorizer(_authorize)
    return connection


def _authorize(action: int, table: str | None, column: str | None, schema: str | None, trigger: str | None) -> int:
    if action in _ALLOWED or (action == sqlite3.SQLITE_READ and table in TABLES | _LISTING):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY
