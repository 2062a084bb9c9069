"""Sessions that a machine has taken back from a store of many, while other machines of its person have them, too.

They stay away until they go on on another machine, which then sends them whole: it goes on where it was, so of a
session that was deleted meanwhile it would send only what is new. Before the first batch with one of them that goes on
is taken from it, it is told to begin its feed again. What does not go on is left out of all that it sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from turnlog.errors import ConflictError
from turnlog.store.feed.tables import in_chunks

if TYPE_CHECKING:
    from turnlog.store.connection import Connection

FEED: Final = "feed of "
"""What the name of the setting begins with that says how far a feed was taken; behind it is the feed's name."""


class BeginAgainError(ConflictError):
    """A batch has sessions of which only a part would be here: the feed has to begin again."""

    def __init__(self, session_ids: set[str]) -> None:
        """Keep the ids."""
        super().__init__("another machine has taken back a session of this batch: send all again")
        self.session_ids = session_ids


class SentCopy(NamedTuple):
    """A session of a batch."""

    session_id: str
    """Under which it may have been taken back."""
    messages: int
    parent_id: str | None
    """Of a subagent."""


class _Absence(msgspec.Struct):
    """A session that was taken back."""

    messages: int
    """As many as it had here."""
    feeds: dict[str, bool]
    """Those that have begun since, or are to begin. False until it is known whether the session goes on there."""


class TakenBack:
    """The sessions that one person's machines have taken back."""

    def __init__(self, connection: Connection, user: str, feed: str) -> None:
        """Feeds of this person are called `user/…`, and `feed` is the one whose batch is taken."""
        self._connection = connection
        self._user = user
        self._setting = f"taken back from {user}"
        self._prefix = f"{FEED}{user}/"
        self._feed = feed

    def note(self, messages: Mapping[str, int]) -> None:
        """Note that the feed's machine has taken these sessions back, which had so many messages."""
        if messages and len(self._feeds()) > 1:
            new = {session_id: _Absence(number, {self._feed: True}) for session_id, number in messages.items()}
            self._save({**self._absences(), **new})

    def begin(self) -> None:
        """Note that the feed begins: all that its machine has of these sessions comes."""
        absences = self._absences()
        for each in absences.values():
            each.feeds.setdefault(self._feed, False)
        if absences:
            self._save(absences)

    def left_out(self, copies: Mapping[str, SentCopy]) -> set[str]:
        """The sessions that have not gone on where the feed comes from, as far as `copies`, which it brings, say.

        Raises BeginAgainError if one goes on and the feed has not begun since.
        """
        absences = self._absences()
        known = {each: absences[copy.session_id] for each, copy in copies.items() if copy.session_id in absences}
        out = {
            session_id
            for session_id, each in known.items()
            if not each.feeds.get(self._feed) and copies[session_id].messages <= each.messages
        }
        # A session comes with its subagents, and each of them with it.
        family = [(session_id, copy.parent_id) for session_id, copy in copies.items() if copy.parent_id in copies]
        while joined := {each for pair in family if not out.issuperset(pair) for each in pair if each in out}:
            out -= joined
        going_on = {copies[each].session_id for each in known.keys() - out}
        if behind := {each for each in going_on if self._feed not in absences[each].feeds}:
            raise BeginAgainError(behind)
        # Its beginning is left out: when it goes on, it has to come again.
        skipped = [known[each] for each in out if self._feed in known[each].feeds]
        for each in skipped:
            del each.feeds[self._feed]
        if skipped:
            self._save(absences)
        return out | {each for each, absence in absences.items() if not absence.feeds.get(self._feed)} - going_on

    def end(self) -> None:
        """Note that the feed's machine has sent all that it has: what did not come, it does not have."""
        absences = self._absences()
        passed = [each for each in absences.values() if each.feeds.get(self._feed) is False]
        for each in passed:
            each.feeds[self._feed] = True
        if passed:
            self._save(absences)

    def drop_forgotten(self) -> None:
        """Keep nothing of sessions that are forgotten: they stay out of every batch anyway."""
        if absences := self._absences():
            self._save(absences)

    def go_on(self, session_ids: set[str]) -> None:
        """Note that these sessions go on on the feed's machine, which is told to begin again."""
        absences = self._absences()
        for session_id in session_ids & absences.keys():
            absences[session_id].feeds[self._feed] = True
        self._save(absences)

    def _feeds(self) -> set[str]:
        found = self._connection.execute(
            "SELECT name FROM settings WHERE substr(name, 1, ?) = ?", (len(self._prefix), self._prefix)
        )
        return {name[len(FEED) :] for (name,) in found.fetchall()}

    def _forgotten(self, session_ids: Iterable[str]) -> set[str]:
        names = {name: session_id for session_id in session_ids for name in (session_id, f"{self._user}/{session_id}")}
        found: set[str] = set()
        for chunk in in_chunks(sorted(names)):
            rows = self._connection.execute(
                "SELECT session_id FROM tombstones WHERE session_id IN (SELECT value FROM json_each(?))", (chunk,)
            )
            found |= {names[name] for (name,) in rows.fetchall()}
        return found

    def _absences(self) -> dict[str, _Absence]:
        row = self._connection.execute("SELECT value FROM settings WHERE name = ?", (self._setting,)).fetchone()
        return {} if row is None else msgspec.json.decode(row[0], type=dict[str, _Absence])

    def _save(self, absences: dict[str, _Absence]) -> None:
        """Save those that another feed may still bring, and that are not forgotten."""
        feeds, forgotten = self._feeds(), self._forgotten(absences)
        kept = {
            session_id: msgspec.structs.replace(
                each, feeds={name: each.feeds[name] for name in feeds & each.feeds.keys()}
            )
            for session_id, each in absences.items()
            if session_id not in forgotten and not all(each.feeds.get(feed) for feed in feeds)
        }
        self._connection.execute("DELETE FROM settings WHERE name = ?", (self._setting,))
        if kept:
            self._connection.execute(
                "INSERT INTO settings (name, value) VALUES (?, ?)",
                (self._setting, msgspec.json.encode(kept).decode()),
            )
