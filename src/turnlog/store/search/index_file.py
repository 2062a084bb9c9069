"""The search database as a file: its tables, opening it, the write lock, replacing it when it is damaged.

A document's id is `block * 8 + slot`. A block is a quarter of a second since 2020 in which its message was made (or
the next free one), so ids grow with the messages' own time. `documents` says which message a block belongs to.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias
from zlib import crc32

from turnlog.errors import StoreBusyError, StoreError
from turnlog.store.connection import file_uri, leave_checkpoints, open_file
from turnlog.store.search import overwriting, session_words
from turnlog.store.write_lock import begin, use_write_ahead_log

Table: TypeAlias = Literal["words", "fresh", "sample", "sparse_sample"]

SAMPLES: dict[Table, int] = {"sample": 64, "sparse_sample": 1024}
"""The sample tables contain one in so many documents: those whose checksum is a multiple of it."""

_CONTENT_VERSION = 8
"""Raise it when the content of the tables changes: see `VERSION`."""

SLOT_BITS = 3
SLOTS = 1 << SLOT_BITS
"""Documents in one block. 95 % of messages have no more."""

INDEX_TABLES = ("words", "fresh", "sample", "sparse_sample")

STORE = "store"
"""The name of the store's database in a connection that reads the index."""

_MERGE_STEP = 256

_CACHE_KB = 16384

_STORE_CACHE_KB = 8192

_EPOCH_MS = 1_577_836_800_000
_BLOCK_MS = 250

_TOKENIZER = 'tokenize = "unicode61 remove_diacritics 2"'

# Texts and their lengths are not stored; ranking uses the lengths in `documents.layout`.
TABLES = (
    f"CREATE VIRTUAL TABLE words USING fts5 (text, content = '', columnsize = 0, {_TOKENIZER})",
    f"CREATE VIRTUAL TABLE fresh USING fts5 (text, content = '', columnsize = 0, {_TOKENIZER})",
    # Samples only say how many documents have a word: `detail = none` leaves out the positions.
    f"CREATE VIRTUAL TABLE sample USING fts5 (text, content = '', columnsize = 0, detail = none, {_TOKENIZER})",
    f"CREATE VIRTUAL TABLE sparse_sample USING fts5 (text, content = '', columnsize = 0, detail = none, {_TOKENIZER})",
    "CREATE TABLE documents (block INTEGER PRIMARY KEY, message_key INTEGER NOT NULL, home INTEGER NOT NULL,"
    " role INTEGER NOT NULL, is_fresh INTEGER NOT NULL, layout BLOB NOT NULL) STRICT",
    "CREATE INDEX fresh_documents ON documents (message_key) WHERE is_fresh",
    "CREATE INDEX documents_by_message ON documents (message_key, home)",
    # Covers what ranking wants to know of every match: a third of the pages of the table.
    "CREATE INDEX documents_by_block ON documents (block, message_key, home, role)",
    "CREATE TABLE home_sessions (session_key INTEGER PRIMARY KEY, project_key INTEGER) STRICT",
    "CREATE TABLE kinds (key INTEGER PRIMARY KEY, agent TEXT NOT NULL, role TEXT NOT NULL, field INTEGER NOT NULL,"
    " UNIQUE (agent, role, field)) STRICT",
    # How far the store's changes are indexed, which store it was, and the largest distance of a block from its time.
    "CREATE TABLE progress (key INTEGER PRIMARY KEY CHECK (key = 1), sequence INTEGER NOT NULL DEFAULT 0,"
    " message_key INTEGER NOT NULL DEFAULT 0, sessions_sequence INTEGER NOT NULL DEFAULT 0,"
    " origin INTEGER, displacement INTEGER NOT NULL DEFAULT 0, documents INTEGER NOT NULL DEFAULT 0,"
    " fresh_size INTEGER NOT NULL DEFAULT 0) STRICT",
    "INSERT INTO progress (key) VALUES (1)",
    # Words of a whole batch are collected in memory (a hash of 1 MB would make a hundred small segments of it).
    "INSERT INTO words (words, rank) VALUES ('hashsize', 33554432)",
    # By default FTS5 merges segments in the middle of some commit, however long that takes: see `merge`.
    "INSERT INTO words (words, rank) VALUES ('automerge', 0)",
    "INSERT INTO words (words, rank) VALUES ('usermerge', 8)",
    "INSERT INTO words (words, rank) VALUES ('crisismerge', 1000)",
    "INSERT INTO sample (sample, rank) VALUES ('automerge', 8)",
)


def version_of(tables: Sequence[str]) -> int:
    """A number that identifies the schema of these tables."""
    # `user_version` is a signed number of 32 bits.
    return crc32(repr((_CONTENT_VERSION, tables)).encode()) >> 1


VERSION = version_of(TABLES)
"""An index with another schema or content is rebuilt."""


class IndexProgress(NamedTuple):
    """The one row of `progress`."""

    sequence: int = 0
    """Change sequence of the last message that was indexed; with `message_key`, the watermark."""
    message_key: int = 0
    sessions_sequence: int = 0
    """Change sequence of the last session change that was processed."""
    origin: int | None = None
    """Time of the store's first change, which identifies the store."""
    displacement: int = 0
    """The largest distance, in blocks, of a document from its message's time."""
    documents: int = 0
    """Documents ever written; a measure of the size of the index."""
    fresh_size: int = 0
    """Bytes of text in `fresh`."""


def block_of(created_at: int | None) -> int:
    """The block of a time in Unix milliseconds; an unknown time counts as the oldest."""
    return 0 if created_at is None else min(max(0, (created_at - _EPOCH_MS) // _BLOCK_MS), 1 << 48)


def open_store(store_path: Path) -> sqlite3.Connection:
    """Open the store for reading. Raises StoreError if that fails."""
    try:
        connection = open_file(store_path, "ro")
        connection.execute("SELECT 1 FROM changes LIMIT 1")
    except sqlite3.Error as error:
        raise StoreError(f"cannot read the store {store_path}: {error}") from error
    return connection


def open_for_writing(search_path: Path) -> sqlite3.Connection:
    """Open the search database and create its tables if necessary. A damaged or foreign file is replaced.

    Raises StoreError if it cannot be opened or created.
    """
    try:
        return _open_for_writing(search_path)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise StoreError(f"cannot open the search database {search_path}: {error}") from error
    remove(search_path)
    return _open_for_writing(search_path)


def open_for_reading(search_path: Path, store_path: Path) -> sqlite3.Connection | None:
    """Open an index of this version, with the store attached as `STORE`; None if either cannot be used."""
    if not search_path.exists():
        return None
    connection = None
    try:
        connection = open_file(search_path, "ro")
        # Another version is left alone: the indexer makes the file anew, and a reader cannot. So is one that lacks
        # the words of sessions.
        if _version(connection) == VERSION and session_words.is_created(connection):
            connection.execute(f"ATTACH ? AS {STORE}", (file_uri(store_path, "ro"),))
            # The matches of a common word are all over the index, which SQLite's two megabytes do not hold.
            connection.execute(f"PRAGMA main.cache_size = -{_CACHE_KB}")
            # A row of frames has up to 30 pages, and all before a body are read with it.
            connection.execute(f"PRAGMA {STORE}.cache_size = -{_STORE_CACHE_KB}")
            for table in (*INDEX_TABLES, "session_words"):
                connection.execute(f"CREATE VIRTUAL TABLE temp.{table}_rows USING fts5vocab ('main', '{table}', 'row')")
            connection.execute("CREATE VIRTUAL TABLE temp.word_list USING fts5vocab ('main', 'words', 'instance')")
            return connection
    except sqlite3.DatabaseError:
        pass
    if connection is not None:
        connection.close()
    return None


def remove(search_path: Path) -> None:
    """Delete the files of a search database."""
    for suffix in ("", "-wal", "-shm"):
        Path(f"{search_path}{suffix}").unlink(missing_ok=True)


def clear(connection: sqlite3.Connection) -> None:
    """Recreate all tables, within the caller's transaction."""
    # FTS5's own tables (words_data, ...) are dropped with theirs and cannot be dropped alone.
    is_marked = overwriting.marked_at(connection) is not None
    tables = connection.execute(
        "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        " ORDER BY sql NOT LIKE 'CREATE VIRTUAL%'"
    ).fetchall()
    for (name,) in tables:
        connection.execute(f'DROP TABLE IF EXISTS main."{name}"')
    for statement in TABLES:
        connection.execute(statement)
    session_words.create(connection)
    if is_marked:
        overwriting.mark(connection)
    connection.execute(f"PRAGMA main.user_version = {VERSION}")


def merge(connection: sqlite3.Connection, pages: int) -> bool:
    """Merge segments of the index, about `pages` of 4 KB; return whether more can be merged.

    Each large batch leaves a segment, and a search looks into all of them. Eight segments become one.
    """
    while pages > 0:
        before = connection.total_changes
        connection.execute("INSERT INTO words (words, rank) VALUES ('merge', ?)", (min(pages, _MERGE_STEP),))
        # FTS5 changes fewer than two rows if there was nothing to merge; it has no other sign of that.
        if connection.total_changes - before < 2:
            return False
        pages -= _MERGE_STEP
    return True


def read_progress(connection: sqlite3.Connection) -> IndexProgress:
    """Read the progress of the index."""
    return IndexProgress(
        *connection.execute(
            "SELECT sequence, message_key, sessions_sequence, origin, displacement, documents, fresh_size FROM progress"
        ).fetchone()
    )


def write_progress(connection: sqlite3.Connection, progress: IndexProgress) -> None:
    """Write the progress of the index, in the same transaction as the documents."""
    connection.execute(
        "UPDATE progress SET sequence = ?, message_key = ?, sessions_sequence = ?, origin = ?, displacement = ?,"
        " documents = ?, fresh_size = ?",
        progress,
    )


def _open_for_writing(search_path: Path) -> sqlite3.Connection:
    connection = open_file(search_path, "rwc")
    try:
        connection.execute("PRAGMA page_size = 4096")
        use_write_ahead_log(connection, BUSY_TIMEOUT_SECONDS)
        connection.execute("PRAGMA synchronous = NORMAL")
        # Freed pages are overwritten when a session is forgotten, not at every merge.
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("PRAGMA journal_size_limit = 4194304")
        if _version(connection) != VERSION:
            connection.execute("BEGIN IMMEDIATE")
            if _version(connection) != VERSION:
                clear(connection)
            connection.execute("COMMIT")
        elif not session_words.is_current(connection):
            connection.execute("BEGIN IMMEDIATE")
            session_words.create(connection)
            connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA main.user_version").fetchone()[0]


BUSY_TIMEOUT_SECONDS = 60.0

_POLL_SECONDS = 0.02


class IndexLockedError(Exception):
    """Another process holds the write lock."""


class IndexFile:
    """A search database opened for writing."""

    def __init__(self, path: Path, *, own_checkpoints: bool) -> None:
        """Open or create the file. `own_checkpoints` is as in `connection.connect`.

        Raises StoreError if it cannot be opened or created.
        """
        self.path = path
        self._own_checkpoints = own_checkpoints
        self._open()

    def close(self) -> None:
        """Close it."""
        self.connection.close()

    def reopen_if_gone(self) -> None:
        """Create a new file if the open one was deleted."""
        if _identity(self.path) != self._identity:
            self.close()
            self._open()

    def replace(self) -> None:
        """Replace a damaged file with an empty one."""
        self.close()
        remove(self.path)
        self._open()

    @contextmanager
    def locked(self, *, wait: bool, patience: float = 0.0) -> Generator[None]:
        """Hold the write lock during the `with`, and commit at its end; an error rolls back.

        If another process has the lock, raises IndexLockedError after `patience` seconds with `wait=False`, otherwise
        StoreBusyError after a minute.
        """
        try:
            begin(self.connection, BUSY_TIMEOUT_SECONDS if wait else patience)
        except sqlite3.OperationalError as error:
            if not wait:
                raise IndexLockedError from error
            raise StoreBusyError(f"another process is using {self.path} for too long: {error}") from error
        try:
            yield
        except BaseException:
            self.connection.rollback()
            raise
        self.connection.execute("COMMIT")

    @property
    def size(self) -> int:
        """Bytes of the database, without its log."""
        return self.path.stat().st_size

    def scrub(self) -> None:
        """Overwrite deleted data at once. Raises StoreBusyError."""
        try:
            for table in (*INDEX_TABLES, "session_words"):
                self.connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
        except sqlite3.OperationalError as error:
            raise self._not_overwritten(error) from error
        self.rewrite()

    def begin_merge(self) -> None:
        """Begin to merge the index into one segment, in the caller's transaction."""
        for table in (*(name for name in INDEX_TABLES if name != "words"), "session_words"):
            self.connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
        # A negative number of pages: of all segments, not only of those that it is time to merge.
        self.connection.execute("INSERT INTO words (words, rank) VALUES ('merge', -1)")

    def merge(self, pages: int) -> bool:
        """Go on with it; return whether there is more."""
        return merge(self.connection, pages)

    def rewrite(self) -> None:
        """Rewrite the file without free pages, and truncate its write-ahead log. Raises StoreBusyError."""
        try:
            self.connection.execute("VACUUM main")
            deadline = time.monotonic() + BUSY_TIMEOUT_SECONDS
            while self.connection.execute("PRAGMA main.wal_checkpoint(TRUNCATE)").fetchone()[0]:
                if time.monotonic() > deadline:
                    raise StoreBusyError(f"{self.path} is being read; its log still holds forgotten words")
                time.sleep(_POLL_SECONDS)
        except sqlite3.OperationalError as error:
            raise self._not_overwritten(error) from error

    def _not_overwritten(self, error: sqlite3.OperationalError) -> StoreBusyError:
        return StoreBusyError(f"cannot take forgotten words out of {self.path}: {error}")

    def _open(self) -> None:
        self.connection = open_for_writing(self.path)
        if not self._own_checkpoints:
            leave_checkpoints(self.connection)
        self._identity = _identity(self.path)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
