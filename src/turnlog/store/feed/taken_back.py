"""Sessions that a machine has taken back from a store of many, while other machines of its person have them, too.

Such a machine goes on where it was, so of a session that was deleted meanwhile it would send only what is new. Before
the first batch with one of these sessions is taken from it, it is told to begin its feed again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from turnlog.errors import ConflictError
from turnlog.store.feed.progress import feeds_of
from turnlog.store.feed.tables import in_chunks

if TYPE_CHECKING:
    from turnlog.store.connection import Connection


class BeginAgainError(ConflictError):
    """A batch has a session of which only a part would be here: the feed has to begin again."""


class TakenBack:
    """The sessions that one person's machines have taken back, and which of his feeds have begun since."""

    def __init__(self, connection: Connection, user: str, feed: str) -> None:
        """Feeds of this person are called `user/…`, and `feed` is the one whose batch is taken."""
        self._connection = connection
        self._user = user
        self._setting = f"taken back of {user}"
        self._feed = feed

    def note(self, session_ids: Collection[str]) -> None:
        """Note that the feed's machine has taken these sessions back."""
        if session_ids and len(self._feeds()) > 1:
            self._save({**self._begun(), **{session_id: {self._feed} for session_id in session_ids}})

    def begin(self) -> None:
        """Note that the feed begins: all that its machine has of these sessions comes."""
        if begun := self._begun():
            self._save({session_id: {*each, self._feed} for session_id, each in begun.items()})

    def check(self, session_ids: Collection[str]) -> None:
        """Raise BeginAgainError if the feed, which goes on, has one of these sessions and has not begun since."""
        if not self.gone().isdisjoint(session_ids):
            raise BeginAgainError("another machine has taken back a session of this batch: send all again")

    def gone(self) -> set[str]:
        """Ids of sessions that another machine has taken back, of which the feed would bring only what is new."""
        return {session_id for session_id, feeds in self._begun().items() if self._feed not in feeds}

    def drop_forgotten(self) -> None:
        """Keep nothing of sessions that are forgotten: they stay out of every batch anyway."""
        if begun := self._begun():
            self._save(begun)

    def _feeds(self) -> set[str]:
        return feeds_of(self._connection, self._user)

    def _forgotten(self, session_ids: Iterable[str]) -> set[str]:
        names = {name: session_id for session_id in session_ids for name in (session_id, f"{self._user}/{session_id}")}
        found: set[str] = set()
        for chunk in in_chunks(sorted(names)):
            rows = self._connection.execute(
                "SELECT session_id FROM tombstones WHERE session_id IN (SELECT value FROM json_each(?))", (chunk,)
            )
            found |= {names[name] for (name,) in rows.fetchall()}
        return found

    def _begun(self) -> dict[str, set[str]]:
        """Session -> the feeds that have begun since it was taken back."""
        row = self._connection.execute("SELECT value FROM settings WHERE name = ?", (self._setting,)).fetchone()
        return {} if row is None else {session_id: set(each) for session_id, each in json.loads(row[0]).items()}

    def _save(self, begun: dict[str, set[str]]) -> None:
        """Save those that another feed may still bring a part of, and that are not forgotten."""
        feeds, forgotten = self._feeds(), self._forgotten(begun)
        kept = {
            session_id: sorted(each & feeds)
            for session_id, each in begun.items()
            if session_id not in forgotten and feeds - each
        }
        self._connection.execute("DELETE FROM settings WHERE name = ?", (self._setting,))
        if kept:
            self._connection.execute(
                "INSERT INTO settings (name, value) VALUES (?, ?)", (self._setting, json.dumps(kept))
            )
