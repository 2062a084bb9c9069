"""Search in a store in PostgreSQL: a copy of what is searched, in SQLite files, that follows the change feed.

The copy is searched as every SQLite store is, so the language and the hits are the same. It may be deleted at any time.
"""

from __future__ import annotations

import json
import logging
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import msgspec

from turnlog.errors import SchemaTooNewError, StoreError
from turnlog.store.connection import connect, write_transaction
from turnlog.store.feed.progress import position_of
from turnlog.store.feed.reading import archived_sizes, read_archived, read_batch
from turnlog.store.feed.removal import withdraw
from turnlog.store.feed.taking import take, take_archived
from turnlog.store.feed.values import TABLES, FeedBatch, FeedPosition, Row
from turnlog.store.keys import find_key
from turnlog.store.postgres.outdated_words import outdated_messages
from turnlog.store.postgres.refused_rows import Taken, what_can_be_taken
from turnlog.store.search.base import (
    EVERYTHING,
    Hit,
    SearchFilter,
    SearchPage,
    SearchSort,
    SessionSearchPage,
    search_path,
)
from turnlog.store.search.indexer import Indexer
from turnlog.store.search.searcher import Searcher
from turnlog.store.sqlite.forget import forget

if TYPE_CHECKING:
    from turnlog.store.postgres.store import PostgresStore

_FEED: Final = "postgres"

_OWNER: Final = "\x1f"
"""Between the id of a message and its owner, in the copy."""

_DAMAGE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
"""Codes of SQLite for a file that nobody can read. No question leads to one."""

_NOT_TAKEN: Final = frozenset(
    {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_INTERNAL}
)
"""For tables that are not as they should be, or rows that should not be there. Else a disk or a lock is the reason."""


_log = logging.getLogger(__name__)


class BrokenCopyError(StoreError):
    """The copy cannot take what the store has, or cannot be read. It can be made anew; the message names no content."""


class SearchReplica:
    """Searches a store. One thread at a time calls `follow` and `make_anew`; any number may search."""

    def __init__(self, store: PostgresStore, folder: Path) -> None:
        """Open the copy below a folder for caches; it is made if there is none. Raises BrokenCopyError."""
        self._store = store
        self._path = path_of_copy(store, folder)
        self._searcher = Searcher(self._path, search_path(self._path))
        with _naming_faults(_DAMAGE | _NOT_TAKEN), closing(self._connect()) as connection:
            searched = position_of(connection, _FEED)
            self.left_out: frozenset[int] = _left_out(connection)
            """Keys of messages of the store that the copy cannot take."""
        self.searched = FeedPosition() if self._is_behind() else searched
        """How far the store was searched when somebody looked last."""

    def __enter__(self) -> Self:
        """The replica itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the files."""
        self._searcher.close()

    def _connect(self) -> sqlite3.Connection:
        try:
            return connect(self._path, checked=False)
        except StoreError as error:
            # The file of a newer version, or of something else.
            if isinstance(error, SchemaTooNewError) or error.__cause__ is None:
                raise BrokenCopyError(str(error)) from error
            raise

    def _is_behind(self) -> bool:
        """Whether the index lacks something of the copy, as far as that can be read."""
        try:
            return self._searcher.unindexed() > 0
        except (StoreError, sqlite3.Error):
            return True

    def follow(self) -> int:
        """Bring the copy up to the store's last change; return the number of batches. Raises BrokenCopyError."""
        with _naming_faults(_DAMAGE | _NOT_TAKEN):
            return self._follow()

    def _follow(self) -> int:
        taken = 0
        with closing(self._connect()) as connection:
            # What was forgotten must be in no file.
            connection.execute("PRAGMA secure_delete = ON")
            while True:
                with self._store.reading() as source:
                    batch = read_batch(source, position_of(connection, _FEED), skip_damaged=True)
                if batch is None:
                    break
                self._take(connection, batch)
                taken += 1
                if batch.remaining is not None:
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                if not batch.has_more:
                    break
            reached = position_of(connection, _FEED)
        with Indexer(self._path, search_path(self._path)) as indexer:
            indexer.catch_up()
            indexer.overwrite()
        self.searched = reached
        return taken

    def make_anew(self) -> None:
        """Delete the copy and make an empty one, which `follow` fills."""
        self._searcher.close()
        delete_copy(self._path)
        self.searched, self.left_out = FeedPosition(), frozenset[int]()
        with closing(self._connect()):
            pass

    def _take(self, connection: sqlite3.Connection, batch: FeedBatch) -> None:
        insert = partial(_insert, connection)
        batch = _without_zeros(batch)
        withdrawn = self._withdrawn(connection, batch)
        self._delete(batch.forgotten, forget)
        self._delete(withdrawn, withdraw)
        batch = msgspec.structs.replace(batch, withdrawn=withdrawn)
        batch = self._with_owners(batch)
        if words := outdated_messages(connection, batch):
            with Indexer(self._path, search_path(self._path)) as indexer:
                indexer.remove(words, overwrite=batch.remaining is not None)
        sent: set[int] = {row[0] for row in batch.rows.get("messages", ())}
        left_out = self.left_out - sent
        try:
            with write_transaction(connection):
                take(connection, _FEED, batch, insert)
        except Exception as error:
            if not _is_refusal(error):
                raise
            taken = self._what_can_be_taken(batch, error)
            batch, left_out = taken.batch, left_out | taken.left_out
            lacking = [f"{len(taken.left_out)} messages"] if taken.left_out else []
            lacking += [f"{number} row{'s'[: number - 1]} of {table}" for table, number in taken.rows.items()]
            _log.warning("search lacks %s that cannot be copied: %s", ", ".join(lacking) or "rows", _reason(error))
            with write_transaction(connection):
                take(connection, _FEED, batch, insert)
        if left_out != self.left_out:
            with write_transaction(connection):
                connection.execute(_SAVE_LEFT_OUT, (_LEFT_OUT, json.dumps(sorted(left_out))))
            self.left_out = left_out
        # Outputs that were spilled into files are searched too.
        spilled = {row[2] for row in batch.rows.get("spills", ())}
        for path in sorted(batch.names["sources"][key][0] for key in spilled):
            with self._store.reading() as source:
                archived = read_archived(source, archived_sizes(connection, [path]), path)
            if archived is not None:
                with write_transaction(connection):
                    take_archived(connection, [archived], insert)

    def _what_can_be_taken(self, batch: FeedBatch, error: Exception) -> Taken:
        """The batch without rows that no copy takes. Raises the error if an empty one takes them: this one is wrong."""
        with (
            TemporaryDirectory(dir=self._path.parent.parent, prefix="trial-") as folder,
            closing(connect(Path(folder) / "turnlog.db", checked=False)) as connection,
        ):

            def takes(tried: FeedBatch) -> bool:
                try:
                    with write_transaction(connection):
                        alone = msgspec.structs.replace(tried, after=FeedPosition())
                        take(connection, _FEED, alone, partial(_insert, connection))
                        raise _UndoneError
                except _UndoneError:
                    return True
                except Exception as reason:
                    if not _is_refusal(reason):
                        raise
                    return False

            taken = None if takes(batch) else what_can_be_taken(batch, takes)
        if taken is None:
            raise error
        return taken

    def _withdrawn(self, connection: sqlite3.Connection, batch: FeedBatch) -> list[str]:
        """The sessions of the copy that the store has no more."""
        if batch.remaining is None:
            return []
        rows = connection.execute("SELECT agent || ':' || external_id FROM sessions")
        return sorted({session_id for (session_id,) in rows} - {*batch.remaining} - {*batch.forgotten})

    def _with_owners(self, batch: FeedBatch) -> FeedBatch:
        """The batch with ids of messages that name their owners: several people may have messages of one id."""
        keys = sorted(batch.names["messages"])
        owners: dict[int, str] = {}
        with self._store.reading() as source:
            for start in range(0, len(keys), 1000):
                chunk = json.dumps(keys[start : start + 1000])
                query = "SELECT key, owner FROM messages WHERE owner <> '' AND key IN (SELECT value FROM json_each(?))"
                owners |= dict(source.execute(query, (chunk,)).fetchall())
        if not owners:
            return batch
        at = TABLES["messages"].index("external_id")
        rows = [(*row[:at], _with_owner(row[at], owners.get(row[0])), *row[at + 1 :]) for row in batch.rows["messages"]]
        names = {key: (name[0], _with_owner(name[1], owners.get(key))) for key, name in batch.names["messages"].items()}
        return msgspec.structs.replace(
            batch, rows={**batch.rows, "messages": rows}, names={**batch.names, "messages": names}
        )

    def _delete(self, session_ids: Sequence[str], delete: Callable[[sqlite3.Connection, str], object]) -> None:
        """Remove the words of sessions from the index, and then their rows.

        What hangs on these rows goes by foreign keys, which the connection that takes batches does not check.
        """
        if not session_ids:
            return
        with closing(connect(self._path)) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            for session_id in session_ids:
                key = find_key(connection, session_id)
                if key is None:
                    continue
                with Indexer(self._path, search_path(self._path)) as indexer, suppress(FileNotFoundError):
                    indexer.forget(key)
                with write_transaction(connection):
                    delete(connection, session_id)

    def search(
        self,
        query: str,
        filter: SearchFilter = EVERYTHING,
        *,
        sort: SearchSort = "newest",
        limit: int = 20,
        cursor: str | None = None,
    ) -> SearchPage:
        """Parts in which the query is found; see `Searcher.search`. Raises BrokenCopyError."""
        with _naming_faults(_DAMAGE):
            page = self._searcher.search(query, filter, sort=sort, limit=limit, cursor=cursor)
        return page._replace(hits=tuple([_without_owner(hit) for hit in page.hits]))

    def sessions(
        self,
        query: str,
        filter: SearchFilter = EVERYTHING,
        *,
        limit: int = 20,
        cursor: str | None = None,
        masked: Callable[[str], str] | None = None,
    ) -> SessionSearchPage:
        """Sessions that fit the query; see `Searcher.sessions`. Raises BrokenCopyError."""
        with _naming_faults(_DAMAGE):
            page = self._searcher.sessions(query, filter, limit=limit, cursor=cursor, masked=masked)
        sessions = [
            found if found.hit is None else found._replace(hit=_without_owner(found.hit)) for found in page.sessions
        ]
        return page._replace(sessions=tuple(sessions))

    def unindexed(self) -> int:
        """Number of messages of the copy that are not searched yet. `follow` makes it 0."""
        return self._searcher.unindexed()


def path_of_copy(store: PostgresStore, folder: Path) -> Path:
    """Where a replica below this folder has its copy."""
    return folder / f"{store.id}-{store.team}" / "turnlog.db"


def delete_copy(path: Path) -> None:
    """Delete a copy and its index. Raises StoreError if the files cannot be deleted."""
    gone = path.parent.with_name(f"{path.parent.name}.gone-{secrets.token_hex(4)}")
    try:
        # Who still reads one has it open, and reads on: SQLite leaves the log of a file that is not its own any more.
        # Who opens one just now makes no file in a folder that is being deleted.
        path.parent.rename(gone)
        shutil.rmtree(gone)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StoreError(f"cannot delete {path.parent}: {error.strerror}") from error


class _UndoneError(Exception):
    """Leaves a transaction without a trace."""


def _insert(connection: sqlite3.Connection, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
    marks = ", ".join("?" * (len(columns)))
    connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)


_LEFT_OUT: Final = "left out"
_SAVE_LEFT_OUT: Final = (
    "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)


def _left_out(connection: sqlite3.Connection) -> frozenset[int]:
    row = connection.execute("SELECT value FROM settings WHERE name = ?", (_LEFT_OUT,)).fetchone()
    return frozenset(json.loads(row[0])) if row is not None else frozenset[int]()


def _fault(error: BaseException) -> sqlite3.Error | None:
    """The error of SQLite that is the reason of this one."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, sqlite3.Error):
        found = found.__cause__
    return found


def _is_refusal(error: Exception) -> bool:
    """Whether rows are the reason, as far as an error tells: not a disk, a lock, or another database."""
    fault = _fault(error)
    if fault is None:
        return not isinstance(error, StoreError)
    return getattr(fault, "sqlite_errorcode", 0) & _PRIMARY_CODE in _NOT_TAKEN


def _reason(error: Exception) -> str:
    """What SQLite says, which names no content; of another error its kind."""
    fault = _fault(error)
    return type(error).__name__ if fault is None else str(fault)


@contextmanager
def _naming_faults(codes: frozenset[int]) -> Generator[None]:
    """Raise BrokenCopyError for errors of SQLite with these codes, which name tables, columns and constraints."""
    try:
        yield
    except (StoreError, sqlite3.Error) as error:
        found = _fault(error)
        # ProgrammingError, for one, has no code.
        code = getattr(found, "sqlite_errorcode", 0) & _PRIMARY_CODE
        if found is None or (code not in codes and not str(found).startswith("no such table")):
            raise
        raise BrokenCopyError(f"{found.sqlite_errorname}: {found}") from error


_PRIMARY_CODE: Final = 0xFF


def _without_zeros(batch: FeedBatch) -> FeedBatch:
    """The batch with another character where texts have U+0000: SQLite cuts texts there when it looks them up."""
    return msgspec.structs.replace(
        batch,
        rows={table: list(map(_row_without_zeros, rows)) for table, rows in batch.rows.items()},
        names={
            table: {key: _row_without_zeros(name) for key, name in known.items()}
            for table, known in batch.names.items()
        },
        forgotten=list(map(_without_zero, batch.forgotten)),
        remaining=None if batch.remaining is None else list(map(_without_zero, batch.remaining)),
    )


def _row_without_zeros(row: Row) -> Row:
    if any([isinstance(value, str) and "\0" in value for value in row]):
        return tuple([_without_zero(value) if isinstance(value, str) else value for value in row])
    return row


def _without_zero(text: str) -> str:
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _with_owner(message_id: str, owner: str | None) -> str:
    return f"{message_id}{_OWNER}{owner}" if owner else message_id


def _without_owner(hit: Hit) -> Hit:
    return hit._replace(message_id=hit.message_id.partition(_OWNER)[0])
