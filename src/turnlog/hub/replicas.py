"""Search replicas: one for each team that somebody searches in, kept up to date by a thread."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from turnlog.errors import StoreError
from turnlog.platforms.files import BINARY, lock
from turnlog.store.postgres.database import Database
from turnlog.store.postgres.search import SearchReplica
from turnlog.store.postgres.store import PostgresStore
from turnlog.store.search.base import (
    EVERYTHING,
    HitPlace,
    SearchFilter,
    SearchPage,
    SearchSort,
    SessionHits,
    SessionSearchPage,
)
from turnlog.store.search.searcher import Searcher

FIRST_SECONDS: Final = 5.0
"""How long the first search of a team waits for its replica; after that it answers with what there is."""

_log = logging.getLogger(__name__)


class Replicas:
    """The replicas of one process."""

    def __init__(self, database: Database, folder: Path) -> None:
        """Keep them below a folder for caches, of which each process takes a part of its own."""
        self._database = database
        self._folder, self._lock_file = _own_part(folder)
        self._lock = threading.Lock()
        self._known: dict[int, _Followed] = {}

    def of(self, team: int) -> SearchReplica:
        """A team's replica, which is up to date, or will be soon."""
        with self._lock:
            followed = self._known.get(team)
            if followed is None:
                followed = self._known[team] = _Followed(self._database, team, self._folder)
        followed.is_ready.wait(FIRST_SECONDS)
        return followed.replica

    def wake(self, team: int) -> None:
        """Bring a replica up to date, if there is one."""
        with self._lock:
            followed = self._known.get(team)
        if followed is not None:
            followed.wake()

    def close(self) -> None:
        """End the threads, and close the files."""
        with self._lock:
            for followed in self._known.values():
                followed.close()
            self._known.clear()
        os.close(self._lock_file)


class _Followed:
    """A replica and the thread that follows the store."""

    def __init__(self, database: Database, team: int, folder: Path) -> None:
        self.replica = SearchReplica(PostgresStore(database, team=team), folder)
        self.is_ready = threading.Event()
        self._bell = threading.Event()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="turnlog-search", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        self._bell.set()

    def close(self) -> None:
        self._is_closed = True
        self._bell.set()
        self._thread.join()
        self.replica.close()

    def _run(self) -> None:
        while not self._is_closed:
            self._bell.clear()
            try:
                self.replica.follow()
                self.is_ready.set()
            except StoreError as error:
                _log.warning("search is behind: %s", error)
            except Exception:  # whatever a row was: the next change is tried again
                _log.exception("search is behind")
            # A notification may be lost.
            self._bell.wait(_POLL_SECONDS)


_POLL_SECONDS: Final = 5.0


class CallerSearcher(Searcher):
    """Searches in the sessions that one caller may read."""

    def __init__(
        self,
        replicas: Replicas,
        team: int,
        visible: Callable[[], frozenset[str]],
        on_found: Callable[[Iterable[str]], None],
    ) -> None:
        """`visible` says which sessions these are now; `on_found` gets those of which a page has words."""
        self._on_found = on_found
        self._replicas = replicas
        self._team = team
        self._visible = visible

    def close(self) -> None:
        """Nothing: the replica is that of all callers."""

    def search(
        self,
        query: str,
        filter: SearchFilter = EVERYTHING,
        *,
        sort: SearchSort = "newest",
        limit: int = 20,
        cursor: str | None = None,
    ) -> SearchPage:
        """As `Searcher.search`, in the caller's sessions. Words of others' sessions are not suggested."""
        only = self._visible()
        page = self._replicas.of(self._team).search(
            query, filter._replace(only=only), sort=sort, limit=limit, cursor=cursor
        )
        hits = [hit._replace(places=_allowed(hit.places, only)) for hit in page.hits]
        self._on_found(place.session_id for hit in hits for place in hit.places[:1])
        return page._replace(hits=tuple(hits), suggestion=None, unindexed=0)

    def sessions(
        self,
        query: str,
        filter: SearchFilter = EVERYTHING,
        *,
        limit: int = 20,
        cursor: str | None = None,
        masked: Callable[[str], str] | None = None,
    ) -> SessionSearchPage:
        """As `Searcher.sessions`, in the caller's sessions. Words of others' sessions are not suggested."""
        only = self._visible()
        narrowed = filter._replace(only=only)
        page = self._replicas.of(self._team).sessions(query, narrowed, limit=limit, cursor=cursor, masked=masked)
        found = [_without_others(each, only) for each in page.sessions]
        self._on_found(each.session_id for each in found)
        return page._replace(sessions=tuple(found), suggestion=None, unindexed=0)

    def unindexed(self) -> int:
        """What is not searched yet is not counted by caller."""
        return 0


def _without_others(found: SessionHits, only: frozenset[str]) -> SessionHits:
    hit = found.hit
    return found if hit is None else found._replace(hit=hit._replace(places=_allowed(hit.places, only)))


def _allowed(places: tuple[HitPlace, ...], only: frozenset[str]) -> tuple[HitPlace, ...]:
    return tuple(place for place in places if place.session_id in only)


def _own_part(folder: Path) -> tuple[Path, int]:
    """A folder that no other process uses, and the file whose lock says so."""
    number = 0
    while True:
        part = folder / f"search-{number}"
        part.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(part / "lock", os.O_RDWR | BINARY | os.O_CREAT, 0o600)
        if lock(descriptor):
            return part, descriptor
        os.close(descriptor)
        number += 1
