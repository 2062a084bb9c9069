"""Search replicas: one for each team that somebody searches in, kept up to date by a thread."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from turnlog.errors import StoreError
from turnlog.hub.cache_parts import CachePart
from turnlog.store.feed.values import FeedPosition
from turnlog.store.postgres.database import Database
from turnlog.store.postgres.search import BrokenCopyError, SearchReplica, delete_copy, path_of_copy
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

SECONDS_BETWEEN_COPIES: Final = 300.0
"""How long a copy that was made anew is kept at least, though it breaks again; each time twice as long, up to a day."""

CLEAN_SECONDS: Final = 10.0
"""Between two looks for copies that nobody follows."""

_log = logging.getLogger(__name__)


class Replicas:
    """The replicas of one process."""

    def __init__(self, database: Database, folder: Path) -> None:
        """Keep them below a folder for caches, of which each process takes a part of its own."""
        self._database = database
        self._part = CachePart(folder)
        self._lock = threading.Lock()
        self._known: dict[int, _Followed] = {}
        self._closing = threading.Event()
        self._cleaner = threading.Thread(target=self._clean, name="turnlog-search-copies", daemon=True)
        self._cleaner.start()

    def of(self, team: int) -> _Followed:
        """A team's replica, which is up to date, or will be soon."""
        followed = self._follow(team)
        followed.is_ready.wait(FIRST_SECONDS)
        return followed

    def _follow(self, team: int) -> _Followed:
        with self._lock:
            followed = self._known.get(team)
            if followed is None:
                followed = self._known[team] = _Followed(self._database, team, self._part.path)
            return followed

    def _clean(self) -> None:
        """Let no copy be on this disk that nobody follows: what is forgotten would stay in it."""
        is_begun = False
        while not self._closing.is_set():
            try:
                is_begun = is_begun or self._begin()
                self._part.remove_others()
            except (OSError, StoreError) as error:
                _log.warning("cannot look for copies that nobody follows: %s", error)
            self._closing.wait(CLEAN_SECONDS)

    def _begin(self) -> bool:
        """Follow on with the copies that the last process left here, and remove those of other databases."""
        store_id = PostgresStore(self._database, team=1).id
        for folder in sorted(each for each in self._part.path.iterdir() if each.is_dir()):
            name, _, team = folder.name.rpartition("-")
            if name == store_id and team.isdecimal():
                self._follow(int(team))
            else:
                shutil.rmtree(folder, ignore_errors=True)
        return True

    def lacking(self, team: int) -> tuple[FeedPosition | None, frozenset[int]]:
        """How far a team's replica has come, if it lacks what came after that, and what it lacks besides."""
        with self._lock:
            followed = self._known.get(team)
        return (followed.behind_from, followed.replica.left_out) if followed is not None else (None, frozenset())

    def wake(self, team: int) -> None:
        """Bring a replica up to date, if there is one."""
        with self._lock:
            followed = self._known.get(team)
        if followed is not None:
            followed.wake()

    def close(self) -> None:
        """End the threads, and close the files."""
        self._closing.set()
        self._cleaner.join()
        with self._lock:
            for followed in self._known.values():
                followed.close()
            self._known.clear()
        self._part.close()


class _Followed:
    """A replica and the thread that follows the store."""

    def __init__(self, database: Database, team: int, folder: Path) -> None:
        store = PostgresStore(database, team=team)
        try:
            self.replica = SearchReplica(store, folder)
        except BrokenCopyError as error:
            _log.warning("the copy that is searched for team %d is made anew: %s", team, error)
            delete_copy(path_of_copy(store, folder))
            self.replica = SearchReplica(store, folder)
        self.is_ready = threading.Event()
        self.is_behind = True
        """Whether something may be missing, besides what came in this moment."""
        self._team = team
        self._bell = threading.Event()
        self._closing = threading.Event()
        self._found_broken: BrokenCopyError | None = None
        self.is_readable = True
        """Whether there is a copy to search: not while it is made anew, nor after a search found it broken."""
        self.made = 1
        """How many copies there were."""
        self._anew_from = 0.0
        self._rest = SECONDS_BETWEEN_COPIES
        self._pause = _POLL_SECONDS
        self._thread = threading.Thread(target=self._run, name="turnlog-search", daemon=True)
        self._thread.start()

    @property
    def behind_from(self) -> FeedPosition | None:
        """How far the copy has come that is searched, from the beginning if none can be; None if it lacks nothing."""
        # Where a search fails, following may still succeed: it reads other pages.
        if self._found_broken is not None or not self.is_readable:
            return FeedPosition()
        return self.replica.searched if self.is_behind else None

    def wake(self) -> None:
        self._bell.set()

    @contextmanager
    def searching(self) -> Generator[None]:
        """End a search that finds the copy broken, or gone because it is made anew; then nothing is found."""
        made = self.made
        try:
            yield
        except BrokenCopyError as error:
            self.is_behind = True
            self._found_broken = error
            self._bell.set()
        except StoreError:
            if self.is_readable and made == self.made:
                raise
        else:  # also where making it anew failed, and following has filled it since
            self.is_readable = True

    def close(self) -> None:
        self._closing.set()
        self._bell.set()
        self._thread.join()
        self.replica.close()

    def _run(self) -> None:
        while not self._closing.is_set():
            self._bell.clear()
            pause = 0.0
            try:
                self._follow()
            except BrokenCopyError as error:
                pause = self._mend(error)
            except StoreError as error:
                self.is_behind = True
                _log.warning("search is behind: %s", error)
            except Exception:  # whatever a row was: the next change is tried again
                self.is_behind = True
                _log.exception("search is behind")
            if pause:
                self._closing.wait(pause)
            # A notification may be lost.
            self._bell.wait(_POLL_SECONDS)

    def _follow(self) -> None:
        found, self._found_broken = self._found_broken, None
        if found is not None:
            self.is_readable = False
            raise found
        self.replica.follow()
        self._pause = _POLL_SECONDS
        # Somebody may have found it broken meanwhile.
        self.is_behind = self._found_broken is not None
        self.is_ready.set()

    def _mend(self, error: BrokenCopyError) -> float:
        """Make the copy anew, unless that was done not long ago; return how many seconds nothing should be tried."""
        self.is_behind = True
        now = time.monotonic()
        if now >= self._anew_from:
            if now > self._anew_from + self._rest:
                self._rest = SECONDS_BETWEEN_COPIES
            # What breaks each copy would else have the whole of it made again and again.
            self._anew_from, self._rest = now + self._rest, min(self._rest * 2, _LONGEST_REST)
            _log.warning("the copy that is searched for team %d is made anew: %s", self._team, error)
            self.is_readable = False
            self.made += 1
            try:
                self.replica.make_anew()
                # A search may just have found the copy broken that was deleted.
                self.is_readable, self._found_broken = True, None
            except StoreError as reason:
                _log.warning("search is behind: %s", reason)
            self._bell.set()
            return 0.0
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        seconds = round(self._anew_from - now)
        _log.warning("search of team %d is behind; its copy is made anew in %d s: %s", self._team, seconds, error)
        return self._pause


_POLL_SECONDS: Final = 5.0
_LONGEST_PAUSE: Final = 300.0
_LONGEST_REST: Final = 86_400.0


class CallerSearcher(Searcher):
    """Searches in the sessions that one caller may read."""

    def __init__(
        self,
        replicas: Replicas,
        team: int,
        visible: Callable[[], frozenset[str]],
        on_found: Callable[[Iterable[str]], None],
        count_after: Callable[[FeedPosition | None, Collection[int]], int],
    ) -> None:
        """What is searched, and for whom.

        Args:
            replicas: Those of the process.
            team: In which team.
            visible: Says which sessions these are now.
            on_found: Gets the sessions of which a page has words.
            count_after: How many messages of these sessions have changed after a position, or have these keys.
        """
        self._count_after = count_after
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
        narrowed = filter._replace(only=only)
        followed = self._replicas.of(self._team)
        page = SearchPage(())
        with followed.searching():
            page = followed.replica.search(query, narrowed, sort=sort, limit=limit, cursor=cursor)
        hits = [hit._replace(places=_allowed(hit.places, only)) for hit in page.hits]
        self._on_found(place.session_id for hit in hits for place in hit.places[:1])
        return page._replace(hits=tuple(hits), suggestion=None, unindexed=self.unindexed())

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
        followed = self._replicas.of(self._team)
        page = SessionSearchPage(())
        with followed.searching():
            page = followed.replica.sessions(query, narrowed, limit=limit, cursor=cursor, masked=masked)
        found = [_without_others(each, only) for each in page.sessions]
        self._on_found(each.session_id for each in found)
        return page._replace(sessions=tuple(found), suggestion=None, unindexed=self.unindexed())

    def unindexed(self) -> int:
        """Number of the caller's messages that are not searched, while a replica is filled, or cannot be.

        What came in this moment is not counted.
        """
        return self._count_after(*self._replicas.lacking(self._team))


def _without_others(found: SessionHits, only: frozenset[str]) -> SessionHits:
    hit = found.hit
    return found if hit is None else found._replace(hit=hit._replace(places=_allowed(hit.places, only)))


def _allowed(places: tuple[HitPlace, ...], only: frozenset[str]) -> tuple[HitPlace, ...]:
    return tuple(place for place in places if place.session_id in only)
