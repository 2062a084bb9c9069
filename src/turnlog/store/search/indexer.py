"""Keeps the search database up to date with the store's change sequence, and removes forgotten sessions from it.

How far it got is written in the transaction of the documents, so a crash at any point leaves an index that goes on
correctly. Several indexers may run: each holds the search database's write lock from before it reads the store until
it has committed, so no change is indexed twice, and nothing that was forgotten comes back with a late commit.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from turnlog.errors import StoreError
from turnlog.store.search import index_file
from turnlog.store.search.documents import MessageToIndex, StoreReader
from turnlog.store.search.index_file import IndexFile, IndexLockedError

if TYPE_CHECKING:
    from turnlog.store.search.batch import IndexBatch

_POLL_SECONDS = 0.02
_LINGER_SECONDS = 0.5
"""How long a batch that is not full waits for more, when more is to be expected."""

_COMPACTION_PAGES = 256
_MERGE_SHARE = 1024
"""Bytes of text for which a page is merged: in the long run each page is merged three or four times."""


class Indexer:
    """Writes the search database of a store. Not for two threads at once."""

    def __init__(self, store_path: Path, search_path: Path, *, own_checkpoints: bool = True) -> None:
        """Open both; the search database is made when it is not there.

        Raises StoreError when the store cannot be read or the search database cannot be made.

        Args:
            store_path: What is indexed.
            search_path: The search database.
            own_checkpoints: As in `connection.connect`, for the search database.
        """
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
        """Messages that changed and are not indexed yet."""
        self._file.reopen_if_gone()
        progress = index_file.read_progress(self._file.connection)
        return self._store_reader.unindexed(progress.sequence, progress.message_key)

    def step(self, *, wait: bool = True) -> int:
        """Index one batch of what changed; 0 when nothing is left, else about how many messages.

        With `wait=False` also 0 when another process is indexing just now: it will see the same changes.
        """
        return self._step(wait=wait)

    def catch_up(self) -> int:
        """Index everything that changed; return how many messages."""
        total = 0
        while added := self._step(wait=True):
            total += added
        return total

    def follow(self, finished: Callable[[float], bool]) -> None:
        """Index what a writer commits meanwhile, in large batches, until `finished` and nothing is left.

        `finished(seconds)` waits up to so long and says whether the writer has committed its last.
        """
        while True:
            is_finished = finished(0)
            added = self._step(wait=True, finished=finished)
            if is_finished and not added:
                return
            if not added:
                finished(_POLL_SECONDS)

    def forget(self, *session_keys: int) -> bool:
        """Take the words of sessions out of the file for good. Call it before their rows are deleted.

        With tombstones written before, no other process indexes them meanwhile. Messages that other sessions hold too
        stay and are found there. When it returns False, some words were of texts that no longer exist: the index was
        emptied, and `catch_up` makes it anew once the rows are gone. Raises StoreBusyError when another process keeps
        the database busy.
        """
        with self._transaction() as batch:
            gone = {*session_keys} | self._forgotten_sessions()
            is_complete = all([self._forget(batch, session_key, gone) for session_key in session_keys])
            if is_complete:
                batch.write()
            else:
                index_file.clear(self._file.connection)
        self._file.scrub()
        return is_complete

    def reset(self) -> None:
        """Empty the index; `catch_up` then makes it anew."""
        with self._transaction():
            index_file.clear(self._file.connection)

    def compact(self, seconds: float) -> bool:
        """Merge segments while nothing else is to be done, in small transactions; whether there is more to be merged.

        Searches are a little faster afterwards. Nothing needs it.
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
            with self._transaction(wait=wait) as batch:
                added = self._fill(batch, finished)
                batch.write()
                # As much as keeps up with what is written; nothing when it went into the small table.
                index_file.merge(self._file.connection, batch.merge_due // _MERGE_SHARE)
            return added
        except IndexLockedError:
            return 0
        except sqlite3.OperationalError as error:
            raise StoreError(f"cannot index into {self._file.path}: {error}") from error
        except sqlite3.DatabaseError as error:
            if type(error) is not sqlite3.DatabaseError:
                raise
            # "Malformed": the file is damaged. Everything in it can be made again.
            self._file.replace()
            return 1

    def _has_news(self) -> bool:
        progress = index_file.read_progress(self._file.connection)
        if self._newest_change() != (progress.sessions_sequence, progress.origin):
            return True
        return self._store_reader.has_newer(progress.sequence, progress.message_key)

    def _fill(self, batch: IndexBatch, finished: Callable[[float], bool] | None) -> int:
        """Read changed messages until the batch is full or none are left; with `finished`, until none will come."""
        self._follow_sessions(batch)
        gone = self._forgotten_sessions()
        added, idle_since = 0, time.monotonic()
        while not batch.is_full:
            is_finished = finished is None or finished(0)
            found = self._read(batch, gone)
            added += found
            if found:
                idle_since = time.monotonic()
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
                    batch.add(message)
                batch.watermark = row.changed_seq, row.key
                if batch.is_full:
                    break
        return found

    def _follow_sessions(self, batch: IndexBatch) -> None:
        """Apply changed sessions: a document carries the marker of its session's project."""
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
        """Sessions that are being forgotten just now: there is a tombstone, and still a row."""
        rows = self._store.execute(
            "SELECT s.key FROM tombstones t JOIN sessions s"
            " ON s.agent = substr(t.session_id, 1, instr(t.session_id, ':') - 1)"
            " AND s.external_id = substr(t.session_id, instr(t.session_id, ':') + 1)"
        )
        return {key for (key,) in rows}

    def _without_forgotten(self, row: MessageToIndex, gone: set[int]) -> MessageToIndex | None:
        """The row under a home that stays; None when no session that stays holds the message."""
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
            elif batch.home_of(message.key) in gone:
                batch.move_home(message.key, *others[0])
        batch.drop_home(session_key)
        return is_complete

    # -- the store and the file

    @contextmanager
    def _transaction(self, *, wait: bool = True) -> Generator[IndexBatch]:
        """Hold the write lock around a batch; the index is emptied first if it is of another store."""
        # Imported when something is to be indexed: every pass looks whether there is.
        from turnlog.store.search.batch import IndexBatch

        with self._file.locked(wait=wait):
            # A store that was deleted and made anew, or copied back from a backup, counts its changes from elsewhere.
            if self._is_of_another_store():
                index_file.clear(self._file.connection)
            yield IndexBatch(self._file.connection, self._store_reader)

    def _is_of_another_store(self) -> bool:
        progress = index_file.read_progress(self._file.connection)
        newest, origin = self._newest_change()
        return progress.origin is not None and (origin != progress.origin or newest < progress.sessions_sequence)

    def _newest_change(self) -> tuple[int, int | None]:
        """Where the store's change sequence ends, and the time of its first entry."""
        return self._store.execute(
            "SELECT coalesce(max(seq), 0), (SELECT at FROM changes ORDER BY seq LIMIT 1) FROM changes"
        ).fetchone()
