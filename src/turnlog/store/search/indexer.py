"""Keeps the search database up to date with the store's change sequence, and removes forgotten sessions from it.

Progress is written in the same transaction as the documents, so after a crash at any point the index continues
correctly. Several indexers may run. Each holds the write lock of the search database from before it reads the store
until it has committed. So no change is indexed twice, and a late commit cannot bring back what was forgotten.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from turnlog.errors import StoreError
from turnlog.store.damaged import DAMAGE, report
from turnlog.store.search import index_file, overwriting
from turnlog.store.search.documents import MessageToIndex, StoreReader
from turnlog.store.search.index_file import IndexFile, IndexLockedError
from turnlog.store.search.session_words import SessionWords, is_behind
from turnlog.store.zstd import ZstdError

if TYPE_CHECKING:
    from turnlog.store.search.batch import IndexBatch

_POLL_SECONDS = 0.02
_LINGER_SECONDS = 0.5
"""Seconds that a batch waits for more messages before it is written."""

_COMPACTION_PAGES = 256
_MERGE_SHARE = 1024
"""One page is merged per so many bytes of text: over time each page is merged three or four times."""


class Indexer:
    """Writes the search database of a store. Use it in one thread at a time."""

    def __init__(self, store_path: Path, search_path: Path, *, own_checkpoints: bool = True) -> None:
        """Open both databases; the search database is created if it does not exist.

        Raises StoreError if the store cannot be read or the search database cannot be created.

        Args:
            store_path: The store to index.
            search_path: The search database.
            own_checkpoints: As in `connection.connect`, for the search database.
        """
        self._store_path = store_path
        self._store = index_file.open_store(store_path)
        self._store_reader = StoreReader(self._store)
        self._file = IndexFile(search_path, own_checkpoints=own_checkpoints)

    def __enter__(self) -> Self:
        """The indexer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close both databases."""
        self._file.close()
        self._store.close()

    def unindexed(self) -> int:
        """Number of messages that changed and are not indexed yet."""
        self._file.reopen_if_gone()
        progress = index_file.read_progress(self._file.connection)
        return self._store_reader.unindexed(progress.sequence, progress.message_key)

    def step(self, *, wait: bool = True) -> int:
        """Index one batch of changes; return about how many messages, 0 if nothing was left.

        With `wait=False` also 0 if another process is indexing: it will see the same changes.
        """
        return self._step(wait=wait)

    def catch_up(self) -> int:
        """Index all changes; return the number of messages."""
        total = 0
        while added := self._step(wait=True):
            total += added
        return total

    def follow(self, finished: Callable[[float], bool]) -> None:
        """Index the commits of a writer in large batches, until `finished` returns True and nothing is left.

        `finished(seconds)` waits up to so many seconds and returns whether the writer has made its last commit.
        """
        while True:
            is_finished = finished(0)
            added = self._step(wait=True, finished=finished)
            if is_finished and not added:
                return
            if not added:
                finished(_POLL_SECONDS)

    def forget(self, *session_keys: int) -> bool:
        """Delete the words of sessions. Call it before their rows are deleted.

        A small file is overwritten at once, a large one by a process that this one starts.

        If their tombstones are written first, no other process indexes them meanwhile. Messages that other sessions
        also contain stay and are found there. False means that some words came from texts that no longer exist: the
        index was emptied, and `catch_up` rebuilds it once the rows are deleted. Raises StoreBusyError if another
        process keeps the database busy.
        """
        with self._transaction() as batch:
            # A message must not move to a home that another process is just forgetting.
            gone = {*session_keys} | self._forgotten_sessions()
            is_complete = all([self._forget(batch, session_key, gone) for session_key in session_keys])
            if is_complete:
                batch.write()
            else:
                index_file.clear(self._file.connection)
            overwriting.mark(self._file.connection)
        self.overwrite()
        return is_complete

    def remove(self, message_keys: Iterable[int], *, overwrite: bool = False) -> None:
        """Delete the words of messages that are about to change or go, while their texts are there.

        Afterwards, the words of texts that do not begin like the old ones could not be deleted, and would lead to their
        sessions. With `overwrite`, the next call of `overwrite` leaves no bytes of them in the file. Raises
        StoreBusyError if another process keeps the database busy.
        """
        with self._transaction() as batch:
            rows = filter(None, map(self._store_reader.message, message_keys))
            if all([batch.remove(row) for row in rows]):
                batch.write()
            else:
                index_file.clear(self._file.connection)
            if overwrite:
                overwriting.mark(self._file.connection)

    def overwrite(self) -> None:
        """Overwrite forgotten words where the file still has bytes of them: they stay readable in free pages.

        A large file is overwritten by a process that this one starts.
        """
        forgotten_at = overwriting.marked_at(self._file.connection)
        if forgotten_at is None:
            return
        if self._file.size <= overwriting.LARGEST_AT_ONCE:
            self._file.scrub()
            overwriting.unmark(self._file.connection, forgotten_at)
        else:
            overwriting.start(self._store_path, self._file.path)

    def reset(self, *, overwrite: bool = False) -> None:
        """Empty the index; `catch_up` then rebuilds it. With `overwrite`, no bytes of its words stay in the file."""
        with self._transaction():
            index_file.clear(self._file.connection)
            if overwrite:
                overwriting.mark(self._file.connection)
        if overwrite:
            self.overwrite()

    def compact(self, seconds: float) -> bool:
        """Merge segments while idle, in small transactions; return whether more can be merged.

        Searches become a little faster. Nothing depends on it.
        """
        self._file.reopen_if_gone()
        end = time.monotonic() + seconds
        has_more = True
        while has_more and time.monotonic() < end:
            has_more = index_file.merge(self._file.connection, _COMPACTION_PAGES)
        return has_more

    # -- indexing

    def _step(self, *, wait: bool, finished: Callable[[float], bool] | None = None) -> int:
        try:
            self._file.reopen_if_gone()
            if not self._has_news():
                return 0
            # The process that rewrites the file, which takes seconds, then indexes what is new.
            is_overwritten = wait and overwriting.marked_at(self._file.connection) is not None
            patience = overwriting.LONGEST_STEP if is_overwritten else 0.0
            with self._transaction(wait=wait and not is_overwritten, patience=patience) as batch:
                added = self._fill(batch, finished)
                batch.write()
                has_more = self._session_words().follow(self._newest_change()[0], self._forgotten_sessions())
                # Merge as much as keeps up with what is written; nothing if it went into the small table.
                index_file.merge(self._file.connection, batch.merge_due // _MERGE_SHARE)
            # Not 0 while sessions are left, so that `catch_up` continues with them.
            return added or int(has_more)
        except IndexLockedError:
            return 0
        except sqlite3.OperationalError as error:
            raise StoreError(f"cannot index into {self._file.path}: {error}") from error
        except sqlite3.DatabaseError as error:
            if type(error) is not sqlite3.DatabaseError:
                raise
            # "Malformed": the file is damaged. All of its content can be rebuilt.
            self._file.replace()
            # Not 0, so that `catch_up` continues with the empty file.
            return 1

    def _has_news(self) -> bool:
        progress = index_file.read_progress(self._file.connection)
        newest, origin = self._newest_change()
        if (newest, origin) != (progress.sessions_sequence, progress.origin):
            return True
        if is_behind(self._file.connection, newest):
            return True
        return self._store_reader.has_newer(progress.sequence, progress.message_key)

    def _fill(self, batch: IndexBatch, finished: Callable[[float], bool] | None) -> int:
        """Read changed messages until the batch is full or none are left; with `finished`, until the writer is done."""
        self._follow_sessions(batch)
        gone = self._forgotten_sessions()
        added, idle_since = 0, time.monotonic()
        while not batch.is_full:
            is_finished = finished is None or finished(0)
            found = self._read(batch, gone)
            added += found
            if found:
                idle_since = time.monotonic()
            # A full batch makes one large segment; many small ones would have to be merged.
            elif is_finished or time.monotonic() - idle_since > _LINGER_SECONDS:
                break
            else:
                assert finished is not None
                finished(_POLL_SECONDS)
        return added

    def _read(self, batch: IndexBatch, gone: set[int]) -> int:
        found = 0
        with closing(self._store_reader.newer(*batch.watermark)) as rows:
            for row in rows:
                message = self._without_forgotten(row, gone) if gone else row
                found += 1
                if message is not None:
                    _add(batch, message)
                batch.watermark = row.changed_seq, row.key
                if batch.is_full:
                    break
        return found

    def _follow_sessions(self, batch: IndexBatch) -> None:
        """Process changed sessions: their documents carry the marker of the session's project."""
        newest, origin = self._newest_change()
        rows = self._store.execute(
            "SELECT DISTINCT s.key, s.project_key FROM changes c JOIN sessions s ON s.key = c.session_key"
            " WHERE c.seq > ?",
            (batch.sessions_sequence,),
        )
        for session_key, project_key in rows.fetchall():
            batch.set_project(session_key, project_key)
        batch.sessions_sequence, batch.origin = newest, origin

    # -- forgetting

    def _forgotten_sessions(self) -> set[int]:
        """Sessions that are just being forgotten: they have a tombstone and still a row."""
        rows = self._store.execute(
            "SELECT s.key FROM tombstones t JOIN sessions s"
            " ON s.agent = substr(t.session_id, 1, instr(t.session_id, ':') - 1)"
            " AND s.external_id = substr(t.session_id, instr(t.session_id, ':') + 1)"
        )
        return {key for (key,) in rows}

    def _without_forgotten(self, row: MessageToIndex, gone: set[int]) -> MessageToIndex | None:
        """The row with a home that stays; None if no such session contains the message."""
        # Most messages belong to sessions that stay: their row needs no query.
        if row.home not in gone:
            return row
        for home, project in self._other_homes(row.key, gone):
            return msgspec.structs.replace(row, home=home, project=project)
        return None

    def _other_homes(self, message_key: int, gone: set[int]) -> list[tuple[int, int | None]]:
        rows = self._store.execute(
            "SELECT m.session_key, s.project_key FROM memberships m JOIN sessions s ON s.key = m.session_key"
            " WHERE m.message_key = ? ORDER BY m.session_key",
            (message_key,),
        )
        return [(home, project) for home, project in rows if home not in gone]

    def _forget(self, batch: IndexBatch, session_key: int, gone: set[int]) -> bool:
        is_complete = True
        for message in self._store_reader.messages_of(session_key):
            others = self._other_homes(message.key, gone)
            if not others:
                is_complete = batch.remove(message) and is_complete
            # Another session contains the message, so it stays searchable under that one.
            elif batch.home_of(message.key) in gone:
                batch.move_home(message.key, *others[0])
        batch.drop_home(session_key)
        self._session_words().drop(session_key)
        return is_complete

    # -- the store and the file

    def _session_words(self) -> SessionWords:
        return SessionWords(self._file.connection, self._store)

    @contextmanager
    def _transaction(self, *, wait: bool = True, patience: float = 0.0) -> Generator[IndexBatch]:
        """Hold the write lock for a batch. If the index belongs to another store, it is emptied first."""
        # Imported only if there is something to index: every sync checks that.
        from turnlog.store.search.batch import IndexBatch

        with self._file.locked(wait=wait, patience=patience):
            # A store that was recreated, or restored from a backup, has another change sequence.
            if self._is_of_another_store():
                index_file.clear(self._file.connection)
            yield IndexBatch(self._file.connection, self._store_reader)

    def _is_of_another_store(self) -> bool:
        progress = index_file.read_progress(self._file.connection)
        newest, origin = self._newest_change()
        return progress.origin is not None and (origin != progress.origin or newest < progress.sessions_sequence)

    def _newest_change(self) -> tuple[int, int | None]:
        """The last number of the store's change sequence, and the time of its first entry."""
        return self._store.execute(
            "SELECT coalesce(max(seq), 0), (SELECT at FROM changes ORDER BY seq LIMIT 1) FROM changes"
        ).fetchone()


def _add(batch: IndexBatch, message: MessageToIndex) -> None:
    """Index a message. One that cannot be read is left out: those behind it must be found all the same."""
    try:
        batch.add(message)
    except (*DAMAGE, ZstdError) as error:
        report(f"message {message.key}", error)
