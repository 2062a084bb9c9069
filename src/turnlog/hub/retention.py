"""Forgets sessions that are older than the rule of their team allows, and what has been in the trash for long enough.

Also deletes the large contents beside the database that were of messages which are gone. In the background of every hub
process.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from turnlog.errors import NotFoundError, StoreError
from turnlog.hub.people.audit import HUB
from turnlog.hub.people.registry import People
from turnlog.hub.people.trash import TRASH_DAYS
from turnlog.store.postgres.store import PostgresStore

EVERY_SECONDS: Final = 600.0

GARBAGE_SECONDS: Final = 10.0
"""Seconds between two looks for contents that nobody uses any more. They wait while the store of contents is away."""

_AT_ONCE: Final = 100

_log = logging.getLogger(__name__)


class RetentionKeeper:
    """A thread that enforces the rules about age of all teams."""

    def __init__(
        self, people: People, open_team: Callable[[int], PostgresStore], drop: Callable[[PostgresStore], None]
    ):
        """`open_team` opens a team's store to write to; `drop` removes contents beside it that nobody uses any more."""
        self._people = people
        self._open_team = open_team
        self._drop = drop
        self._bell = threading.Event()
        self._is_closed = False
        self._due = 0.0
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, and go on every few minutes."""
        self._thread = threading.Thread(target=self._run, name="turnlog-retention", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look now: a rule has changed."""
        self._due = 0.0
        self._bell.set()

    def close(self) -> None:
        """End the thread, after the session at which it is."""
        self._is_closed = True
        self._bell.set()
        if self._thread is not None:
            self._thread.join()

    def forget_outdated(self) -> int:
        """Forget what is too old in all teams; return how many sessions."""
        rulebook = self._people.rulebook
        return sum(
            self._forget(team, "old", days, partial(rulebook.outdated_ids, team, days))
            for team, days in rulebook.with_retention()
        )

    def empty_trash(self) -> int:
        """Forget what has been in the trash for too long in all teams; return how many sessions."""
        trash = self._people.trash
        return sum(self._forget(team, "deleted", TRASH_DAYS, partial(trash.outdated, team)) for team in trash.teams())

    def delete_garbage(self) -> None:
        """Delete the contents beside the database that no message of any team uses any more."""
        for team in self._people.trash.teams_with_garbage():
            self._drop(self._open_team(team))

    def _run(self) -> None:
        while not self._is_closed:
            self._bell.clear()
            try:
                if time.monotonic() >= self._due:
                    self._due = time.monotonic() + EVERY_SECONDS
                    self.forget_outdated()
                    self.empty_trash()
                self.delete_garbage()
            except StoreError as error:
                _log.warning("cannot forget old sessions: %s", error)
            self._bell.wait(GARBAGE_SECONDS)

    def _forget(self, team: int, what: str, days: int, find: Callable[[int], list[tuple[str, str]]]) -> int:
        store = self._open_team(team)
        done = 0
        while not self._is_closed:
            found = find(_AT_ONCE)
            for session_id, owner in found:
                if self._is_closed:
                    break
                try:
                    store.forget(session_id)
                except NotFoundError:  # another process of this hub was first
                    continue
                self._people.audit.note(
                    team, HUB, f"forget {what} session", session_id, owner=owner, detail=f"older than {days} days"
                )
                done += 1
            if len(found) < _AT_ONCE:
                break
        if done:
            self._people.audit.note(
                team, HUB, f"forget {what} sessions", str(team), detail=f"{done} of over {days} days"
            )
        return done
