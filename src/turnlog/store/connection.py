"""The store's SQLite file: opening it, pragmas, migrations, the write transaction, and checkpoints.

Knows nothing of what the tables mean. Writers wait for each other (`BEGIN IMMEDIATE` and a busy timeout); readers
never wait (WAL).

SQLite moves what its write-ahead log holds into the database in the middle of a commit, once the log is long, and syncs
three files for it: on a busy disk that is tenths of a second, in which whoever watches a session waits. A
`Checkpointer` does it on a thread of its own; who writes goes on meanwhile (`connect(own_checkpoints=False)`).
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeAlias

from turnlog.errors import SchemaTooNewError, StoreBusyError, StoreError
from turnlog.store.write_lock import begin, is_busy, is_database_error, use_write_ahead_log

Connection: TypeAlias = sqlite3.Connection
"""What `connect` returns. Outside of the store it is only handed on: all SQL is here (`store.sqlite`)."""

DatabaseError = sqlite3.Error
"""What SQLite raises where nothing has made a StoreError of it."""

SQLITE_VERSION = sqlite3.sqlite_version

BUSY_TIMEOUT_SECONDS = 60.0

# For a value that is neither a number nor a text, the sqlite3 module of Python 3.11 looks for an adapter, and makes an
# error of not finding one only to drop it: a NULL takes three times as long as a number. These hand the value on.
sqlite3.register_adapter(type(None), dict[None, None]().get)
sqlite3.register_adapter(bytes, bytes)
sqlite3.register_adapter(bool, int)

PAGE_SIZE = 8192
"""The end of a row that is larger than a page fills a part of one: the larger pages are, the more stays empty. Smaller
ones take longer to write and to read."""

_LARGE_IMPORT_PAGES = 32000
"""Pages in the write-ahead log at which a commit of a large import moves what is left: it must not grow on."""

REST_SECONDS = 30.0
"""Time between two checkpoints. The first commit after each waits for the disk once, so that they had better be few;
what agents write in so long is some megabytes."""


def connect(
    path: Path, *, read_only: bool = False, checked: bool = True, own_checkpoints: bool = True
) -> sqlite3.Connection:
    """Open the store at `path`, brought up to the newest schema; create it when it is not there.

    Args:
        path: The file.
        read_only: Never write, not even a missing schema.
        checked: Let SQLite check and cascade foreign keys. An import does without: it writes children before their
            parents, and each parent would then be looked for in tables that have no index on it.
        own_checkpoints: Let commits move what the write-ahead log holds into the database when it has become long;
            without, somebody else must (`Checkpointer`).

    Raises SchemaTooNewError for a store of a newer turnlog, StoreError for a file that is no store.
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
    """Let no commit of this connection wait for a checkpoint: somebody else makes them."""
    connection.execute("PRAGMA wal_autocheckpoint = 0")


@contextmanager
def write_transaction(connection: sqlite3.Connection) -> Generator[None]:
    """Hold the one writer's place; commit at the end, roll back on any error.

    Raises StoreBusyError when the place is taken for too long, StoreError when the disk is full or may not be written,
    or when the file is damaged.
    """
    try:
        begin(connection, BUSY_TIMEOUT_SECONDS)
    except sqlite3.OperationalError as error:
        if not is_busy(error):
            raise StoreError(f"cannot write to the store: {error}") from error
        raise StoreBusyError(f"another process has been writing to the store for too long: {error}") from error
    try:
        yield
        connection.execute("COMMIT")
    except BaseException as error:
        # A full disk has ended the transaction already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if isinstance(error, Exception) and is_database_error(error):
            raise StoreError(f"cannot write to the store: {error}") from error
        raise


class Checkpointer:
    """Checkpoints databases a while after something was committed. `note` may be called on any thread.

    It keeps logs short and promises nothing: a checkpoint that fails or comes too early is made up for by the next.
    """

    def __init__(self, databases: Sequence[Path], rest: float = REST_SECONDS) -> None:
        """Start the thread; it sleeps until something is committed."""
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
        """End the thread, after the checkpoint it may be in."""
        self._stopped.set()
        self._committed.set()
        self._thread.join()

    def note(self) -> None:
        """Something was committed."""
        self._committed.set()

    def _run(self) -> None:
        while self._committed.wait() and not self._stopped.wait(self._rest):
            self._committed.clear()
            if self._stopped.is_set():  # just now: what would have told of it is cleared
                return
            for database in self._databases:
                _checkpoint(database)


def _checkpoint(database: Path) -> None:
    """Move what no reader holds back. On a connection made for it: an index may be deleted and made anew meanwhile."""
    try:
        with closing(open_file(database, "rw")) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error as error:
        # Imported here, since every command opens a store and hardly one logs.
        import logging

        logging.getLogger(__name__).debug("no checkpoint of %s: %s", database, error)


@contextmanager
def large_import(connection: sqlite3.Connection) -> Generator[None]:
    """During the `with`, let commits leave checkpoints to somebody else (`Checkpointer`), up to 256 MB of them.

    A first import, into a store without messages, goes without the indexes for questions too.
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
    """Drop the indexes for questions during a first large import, and make them at its end.

    Meanwhile no other process makes them either: an empty file beside the store is locked, until this one ends in
    whatever way.
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
                with suppress(OSError):  # some platforms keep a file that is open; nobody minds it unlocked
                    mark.unlink()


def _goes_without_indexes(path: Path) -> bool:
    """Whether another connection is in the middle of its first large import."""
    mark = _import_mark(path)
    if not mark.exists():
        return False
    with closing(_lock(mark)) as lock:
        return not lock.in_transaction


def _lock(mark: Path) -> sqlite3.Connection:
    """A connection that is in a transaction if it got the lock: SQLite's are there on every platform."""
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
    script = (resources.files("turnlog.store") / "indexes.sql").read_text(encoding="utf-8")
    return [statement for statement in _statements(script) if "CREATE INDEX" in statement]


def schema_version() -> int:
    """The schema this version of turnlog writes."""
    return max(_migrations())


def open_file(path: Path, mode: Literal["ro", "rw", "rwc"]) -> sqlite3.Connection:
    """The SQLite file at `path`. Nobody but its user may read one that is made here, nor the logs SQLite keeps for it.

    The mode is changed by name: closing a descriptor of our own would take away the locks that SQLite has on the file.
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
    """What SQLite is asked to open. A file in a folder where nothing can be written is read as it lies.

    Even to read, SQLite would make a log beside it: a copy on a disk that is only read would be out of reach.
    """
    has_log = path.with_name(f"{path.name}-wal").exists()
    lies_still = mode == "ro" and not has_log and not os.access(path.absolute().parent, os.W_OK)
    return f"{path.absolute().as_uri()}?mode={mode}{'&immutable=1' if lies_still else ''}"


def can_be_written(path: Path) -> bool:
    """Whether a store can be written, or made: its file, and the files that SQLite makes beside it."""
    return not path.exists() or (os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK))


def _open(path: Path, *, read_only: bool) -> sqlite3.Connection:
    if not path.name:
        raise StoreError(f"cannot open the store {str(path)!r}: it names no file")
    try:
        if read_only:
            return open_file(path, "ro")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return open_file(path, "rwc")
    except OSError as error:
        raise StoreError(f"cannot open the store {path}: {error.strerror}") from error
    except sqlite3.Error as error:
        raise StoreError(f"cannot open the store {path}: {error}") from error


def _prepare(connection: sqlite3.Connection, *, read_only: bool, checked: bool) -> None:
    if not read_only:
        connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        use_write_ahead_log(connection, BUSY_TIMEOUT_SECONDS)
        connection.execute("PRAGMA synchronous = NORMAL")
        # A cold import writes some tens of MB in one transaction; a larger cache keeps it out of the WAL.
        connection.execute("PRAGMA cache_size = -32768")
    connection.execute(f"PRAGMA foreign_keys = {'ON' if checked else 'OFF'}")
    connection.execute("PRAGMA temp_store = MEMORY")


def _check(connection: sqlite3.Connection, path: Path, *, read_only: bool) -> None:
    """Raise when the file is no store, or not one that this version can use; it is left as it is."""
    found = _version(connection)
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if tables and "memberships" not in tables:
        raise StoreError(f"{path} is a database of something else, not a turnlog store")
    if found > schema_version():
        raise SchemaTooNewError(
            f"{path} was written by a newer turnlog (schema {found}, this version knows up to {schema_version()})",
            found=found,
            supported=schema_version(),
        )
    if read_only and found < schema_version():
        raise StoreError(f"{path} has the older schema {found}: it is brought up when it is opened for writing")


def _migrate(connection: sqlite3.Connection) -> None:
    """Run the numbered scripts that the store has not seen, each in a transaction with its number."""
    for number, script in sorted(_migrations().items()):
        if _version(connection) >= number:
            continue
        with write_transaction(connection):
            # Another process may have migrated while this one waited for its turn.
            if _version(connection) >= number:
                continue
            for statement in _statements(script):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")


def _version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def _migrations() -> dict[int, str]:
    folder = resources.files("turnlog.store") / "migrations"
    return {
        int(entry.name.split("_", 1)[0]): entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    }


def _statements(script: str) -> Iterator[str]:
    """The statements of a script one by one (`executescript` would commit the transaction it runs in)."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
