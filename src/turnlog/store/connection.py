"""The SQLite file of the store: opening it, pragmas, migrations, the write transaction, and checkpoints.

This module does not know what the tables mean. Writers wait for each other (`BEGIN IMMEDIATE` and a busy timeout);
readers never wait (WAL).

If the write-ahead log is long, SQLite checkpoints it in the middle of a commit and syncs three files. On a busy disk
this takes tenths of a second, which the viewer of a live session sees as a delay. So a `Checkpointer` does it on a
thread of its own while the writer continues (`connect(own_checkpoints=False)`).
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self, TypeAlias

from turnlog.errors import SchemaTooNewError, StoreBusyError, StoreError
from turnlog.paths import database_path
from turnlog.store.write_lock import begin, is_busy, is_database_error, use_write_ahead_log

Connection: TypeAlias = sqlite3.Connection
"""What `connect` returns. Code outside of the store only passes it on: all SQL is in the store."""

DatabaseError = sqlite3.Error
"""Errors of SQLite that were not converted to StoreError."""

REFUSED_VALUE_ERRORS: Final = (sqlite3.IntegrityError, sqlite3.DataError)
"""Those of a value that does not fit its column; the store itself can be read and written."""

SQLITE_VERSION = sqlite3.sqlite_version

BUSY_TIMEOUT_SECONDS = 60.0

# For a value that is neither a number nor a text, the sqlite3 module of Python 3.11 looks for an adapter, and creates
# and drops an exception if there is none: binding NULL takes three times as long as a number. These adapters return the
# value itself.
sqlite3.register_adapter(type(None), dict[None, None]().get)
sqlite3.register_adapter(bytes, bytes)
sqlite3.register_adapter(bool, int)

PAGE_SIZE = 8192
"""The last page of an overflowing row is only partly filled: larger pages waste more space, smaller ones are slower to
write and read."""

_LARGE_IMPORT_PAGES = 32000
"""Pages in the write-ahead log from which on a commit of a large import runs a checkpoint itself, so that it stops
growing."""

REST_SECONDS = 30.0
"""Seconds between two checkpoints. The first commit after each one waits for the disk once, so they should be rare.
Agents write a few megabytes in that time."""


def connect(
    path: Path, *, read_only: bool = False, checked: bool = True, own_checkpoints: bool = True
) -> sqlite3.Connection:
    """Open the store at `path` with the newest schema; create it if it does not exist.

    Args:
        path: The file.
        read_only: Never write, not even to create or migrate the schema.
        checked: Let SQLite check and cascade foreign keys. An import turns this off: it writes children before their
            parents, and SQLite would look up each parent in tables without an index for it.
        own_checkpoints: Let commits checkpoint a long write-ahead log. Otherwise somebody else must (`Checkpointer`).

    Raises SchemaTooNewError for a store of a newer turnlog, StoreError for a file that is not a store.
    """
    connection = _open(path, read_only=read_only)
    try:
        _check(connection, path, read_only=read_only)
        _prepare(connection, read_only=read_only, checked=checked)
        if not own_checkpoints:
            leave_checkpoints(connection)
        if not read_only:
            _migrate(connection)
            if not _goes_without_indexes(path):
                _make_indexes(connection)
    except sqlite3.Error as error:
        connection.close()
        raise StoreError(f"cannot use the store {path}: {error}") from error
    except BaseException:
        connection.close()
        raise
    return connection


def leave_checkpoints(connection: sqlite3.Connection) -> None:
    """Let no commit of this connection run a checkpoint, because another thread or process does."""
    connection.execute("PRAGMA wal_autocheckpoint = 0")


@contextmanager
def savepoint(connection: sqlite3.Connection) -> Generator[None]:
    """A part of a write transaction that is rolled back alone on any error."""
    connection.execute("SAVEPOINT part")
    try:
        yield
    except BaseException:
        # SQLite has rolled back all of it already if the disk is full.
        if connection.in_transaction:
            connection.execute("ROLLBACK TO part")
            connection.execute("RELEASE part")
        raise
    connection.execute("RELEASE part")


@contextmanager
def write_transaction(connection: sqlite3.Connection) -> Generator[None]:
    """A write transaction: commit at the end, roll back on any error.

    Raises StoreBusyError if another writer takes too long, StoreError if the disk is full or read-only or the file is
    damaged.
    """
    try:
        begin(connection, BUSY_TIMEOUT_SECONDS)
    except sqlite3.OperationalError as error:
        if not is_busy(error):
            raise StoreError(_not_written(connection, error)) from error
        raise StoreBusyError(f"another process has been writing to the store for too long: {error}") from error
    try:
        yield
        connection.execute("COMMIT")
    except BaseException as error:
        # SQLite has rolled back already if the disk is full.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if isinstance(error, Exception) and is_database_error(error):
            raise StoreError(_not_written(connection, error)) from error
        raise


def _not_written(connection: sqlite3.Connection, error: Exception) -> str:
    """The error with the path of the file, which SQLite does not name."""
    path = connection.execute("PRAGMA database_list").fetchone()[2]
    return f"cannot write to the store{f' {path}' if path else ''}: {error}"


class Checkpointer:
    """Checkpoints databases some time after a commit. Any thread may call `note`.

    It only keeps write-ahead logs short: if a checkpoint fails or comes too early, the next one makes up for it.
    """

    def __init__(self, databases: Sequence[Path], rest: float = REST_SECONDS) -> None:
        """Start the thread, which sleeps until `note` is called."""
        self._databases = databases
        self._rest = rest
        self._committed = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="turnlog-checkpoints", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        """The checkpointer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the thread, after the checkpoint that may be running."""
        self._stopped.set()
        self._committed.set()
        self._thread.join()

    def note(self) -> None:
        """Note that something was committed."""
        self._committed.set()

    def _run(self) -> None:
        while self._committed.wait() and not self._stopped.wait(self._rest):
            self._committed.clear()
            if self._stopped.is_set():  # set between the wait and the clear
                return
            for database in self._databases:
                _checkpoint(database)


def _checkpoint(database: Path) -> None:
    """Checkpoint as far as readers allow, on a new connection: the index may have been deleted and recreated."""
    try:
        with closing(open_file(database, "rw")) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error as error:
        # Imported here because every command opens a store and hardly any logs.
        import logging

        logging.getLogger(__name__).debug("no checkpoint of %s: %s", database, error)


@contextmanager
def large_import(connection: sqlite3.Connection) -> Generator[None]:
    """Within the `with`, leave checkpoints to somebody else (`Checkpointer`), up to a write-ahead log of 256 MB.

    A first import, into a store without messages, also runs without the indexes for queries.
    """
    is_first = connection.execute("SELECT 1 FROM messages LIMIT 1").fetchone() is None
    (usual,) = connection.execute("PRAGMA wal_autocheckpoint").fetchone()
    connection.execute(f"PRAGMA wal_autocheckpoint = {_LARGE_IMPORT_PAGES}")
    try:
        with without_indexes(connection) if is_first else nullcontext():
            yield
    finally:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute(f"PRAGMA wal_autocheckpoint = {usual}")


@contextmanager
def without_indexes(connection: sqlite3.Connection) -> Generator[None]:
    """Drop the indexes for queries during a first large import, and create them at its end.

    A lock on an empty file next to the store keeps other processes from creating them meanwhile. It is released when
    this process ends, however that happens.
    """
    mark = _import_mark(Path(connection.execute("PRAGMA database_list").fetchone()[2]))
    with closing(_lock(mark)) as lock:
        if lock.in_transaction:
            for name in _index_names():
                connection.execute(f"DROP INDEX IF EXISTS {name}")
        try:
            yield
        finally:
            if lock.in_transaction:
                _make_indexes(connection)
                with suppress(OSError):  # Windows deletes no file that is open; an unlocked one does no harm
                    mark.unlink()


def _goes_without_indexes(path: Path) -> bool:
    """Whether another connection is running its first large import."""
    mark = _import_mark(path)
    if not mark.exists():
        return False
    with closing(_lock(mark)) as lock:
        return not lock.in_transaction


def _lock(mark: Path) -> sqlite3.Connection:
    """A connection in a transaction if it got the lock, which SQLite implements on every platform."""
    connection = sqlite3.connect(mark, timeout=0, isolation_level=None)
    with suppress(sqlite3.OperationalError):
        connection.execute("BEGIN EXCLUSIVE")
    return connection


def _import_mark(path: Path) -> Path:
    return path.with_name(f"{path.name}-import")


def _make_indexes(connection: sqlite3.Connection) -> None:
    for statement in _index_statements():
        connection.execute(statement)


def _index_names() -> list[str]:
    return [statement.split("IF NOT EXISTS", 1)[1].split()[0] for statement in _index_statements()]


def _index_statements() -> list[str]:
    script = Path(__file__).with_name("indexes.sql").read_text(encoding="utf-8")
    return [statement for statement in _statements(script) if "CREATE INDEX" in statement]


def schema_version() -> int:
    """The schema version that this turnlog writes."""
    return max(_migrations())


def open_file(path: Path, mode: Literal["ro", "rw", "rwc"]) -> sqlite3.Connection:
    """Open the SQLite file at `path`. Only the user may read a new file and the logs that SQLite keeps for it.

    The mode is changed by name, because closing a file descriptor would drop the locks that SQLite has on the file.
    """
    is_new = mode == "rwc" and not path.exists()
    connection = sqlite3.connect(
        file_uri(path, mode),
        uri=True,
        timeout=BUSY_TIMEOUT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    if is_new:
        path.chmod(0o600)
    return connection


def file_uri(path: Path, mode: Literal["ro", "rw", "rwc"]) -> str:
    """The URI under which SQLite opens the file, immutable if nothing can be written to its folder.

    SQLite creates a write-ahead log even to read, so a copy on a read-only disk could not be opened otherwise.
    """
    has_log = path.with_name(f"{path.name}-wal").exists()
    lies_still = mode == "ro" and not has_log and not os.access(path.absolute().parent, os.W_OK)
    return f"{path.absolute().as_uri()}?mode={mode}{'&immutable=1' if lies_still else ''}"


def can_be_written(path: Path) -> bool:
    """Whether a store can be written, or made: its file, and the files that SQLite makes beside it."""
    return not path.exists() or (os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK))


def _elsewhere(path: Path) -> str:
    """How to have the user's own store in another place; nothing for a path that was named."""
    return "; the variable TURNLOG_DATA_DIR names another folder" if path == database_path() else ""


def _open(path: Path, *, read_only: bool) -> sqlite3.Connection:
    if not path.name:
        raise StoreError(f"cannot open the store {str(path)!r}: it names no file")
    try:
        if read_only:
            return open_file(path, "ro")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists() and not os.access(path.absolute().parent, os.W_OK):
            raise StoreError(
                f"cannot open the store {path}: there is none, and its folder cannot be written{_elsewhere(path)}"
            )
        return open_file(path, "rwc")
    except OSError as error:
        raise StoreError(f"cannot open the store {path}: {error.strerror}{_elsewhere(path)}") from error
    except sqlite3.Error as error:
        raise StoreError(f"cannot open the store {path}: {error}") from error


def _prepare(connection: sqlite3.Connection, *, read_only: bool, checked: bool) -> None:
    if not read_only:
        connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        use_write_ahead_log(connection, BUSY_TIMEOUT_SECONDS)
        connection.execute("PRAGMA synchronous = NORMAL")
        # A first import writes tens of megabytes in one transaction; a larger cache keeps them out of the WAL until the
        # commit.
        connection.execute("PRAGMA cache_size = -32768")
    connection.execute(f"PRAGMA foreign_keys = {'ON' if checked else 'OFF'}")
    connection.execute("PRAGMA temp_store = MEMORY")


def _check(connection: sqlite3.Connection, path: Path, *, read_only: bool) -> None:
    """Raise if the file is not a store that this version can use; the file is not changed."""
    found = _version(connection)
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if tables and "memberships" not in tables:
        raise StoreError(f"{path} is a database of something else, not a turnlog store")
    known = schema_version()
    if found > known:
        raise SchemaTooNewError(
            f"{path} was written by a newer turnlog (schema {found}, this version knows up to {known})",
            found=found,
            supported=known,
        )
    if read_only and found < known:
        raise StoreError(f"{path} has the older schema {found}: it is brought up when it is opened for writing")


def _migrate(connection: sqlite3.Connection) -> None:
    """Run the numbered scripts that are newer than the store, each in a transaction that also sets its number."""
    for number, script in sorted(_migrations().items()):
        if _version(connection) >= number:
            continue
        with write_transaction(connection):
            # Another process may have migrated the store while this one waited for the lock.
            if _version(connection) >= number:
                continue
            for statement in _statements(script.read_text(encoding="utf-8")):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")


def _version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def _migrations() -> dict[int, Path]:
    # Every opening asks for the newest. Without `glob`, which compiles its pattern first.
    return {int(file.name.split("_", 1)[0]): file for file in _MIGRATIONS.iterdir() if file.suffix == ".sql"}


_MIGRATIONS: Final = Path(__file__).with_name("migrations")


def _statements(script: str) -> Iterator[str]:
    """Split a script into statements (`executescript` would commit the current transaction)."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
