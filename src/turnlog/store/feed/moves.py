"""What a batch changes of messages and events that the store has: their places, their bills, and what is gone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from turnlog.store.feed.keys import Keys
from turnlog.store.feed.tables import FeedTables, in_chunks
from turnlog.store.feed.values import TABLES, FeedBatch, Row

if TYPE_CHECKING:
    from turnlog.store.connection import Connection


class Moves(msgspec.Struct):
    """What changes of messages that are here already."""

    moved: list[Row] = []
    """Places that are new or other than before."""
    removed: list[tuple[int, int]] = []
    """Session and message of places that are gone."""
    gone_events: list[Row] = []
    """Session, position and id."""
    billed: dict[int, int | None] = {}
    """Message -> the session that is billed for it from now on."""
    events: list[Row] = []
    """Events that are new or other than before."""


class PlaceComparison:
    """Compares the places and events of a batch with those that are here."""

    def __init__(
        self,
        connection: Connection,
        batch: FeedBatch,
        keys: Keys,
        new: Mapping[str, Collection[int]],
        places: Sequence[Row],
        complete: Sequence[int],
        origins: Mapping[int, int],
    ) -> None:
        """All keys are those of the store that takes the batch.

        Args:
            connection: The store; the transaction is the caller's.
            batch: What is taken.
            keys: The keys of its rows here.
            new: `sessions` and `messages` that were not here before.
            places: All places of the batch.
            complete: The sessions of which the batch has everything.
            origins: Fork -> the session that it is a fork of.
        """
        self._connection = connection
        self._tables = FeedTables(connection)
        self._batch = batch
        self._keys = keys
        self._new = new
        self._places = places
        self._complete = complete
        self._origins = origins
        self.shared: dict[int, dict[int, int]] = {}
        """Fork -> message that is billed to its origin -> the origin, after `find`."""

    def find(self) -> Moves:
        """What changes among the places that are here, and the events that whole sessions have no more."""
        sent = {(row[0], row[2]): row for row in self._places if row[2] not in self._new["messages"]}
        every = {(row[0], row[2]) for row in self._places}
        messages, sessions = self._keys.of("messages"), self._keys.of("sessions")
        billed = {
            messages[key]: sessions.get(theirs or 0) for key, theirs in self._batch.billed.items() if key in messages
        }
        stored = {
            row[0]: row[1] for row in self._tables.where("messages", "key", sorted(billed), ("key", "billed_key"))
        }
        self._share(billed, stored)
        billed = {key: ours for key, ours in billed.items() if key in stored and stored[key] != ours}
        complete = {key for key in self._complete if key not in self._new["sessions"]}
        columns = TABLES["memberships"]
        there = self._tables.where("memberships", "session_key", sorted(complete), columns)
        # That a place of a session is not sent says nothing if the session is not complete.
        parted = sorted({message for session, message in sent if session not in complete})
        there += [
            row for row in self._tables.where("memberships", "message_key", parted, columns) if row[0] not in complete
        ]
        moves = Moves(billed=billed)
        for row in there:
            place = (row[0], row[2])
            if place not in every:
                if row[0] in complete:
                    moves.removed.append(place)
            elif sent.get(place) == row and row[2] not in billed:
                del sent[place]
        moves.moved = list(sent.values())
        self._find_gone_events(moves)
        self._find_changed_events(moves)
        return moves

    def _share(self, billed: dict[int, int | None], stored: dict[int, int | None]) -> None:
        """What a fork shares with its origin stays billed to the origin."""
        origins = self._origins
        for key, session in list(billed.items()):
            origin = origins.get(session or 0)
            if origin is not None and stored.get(key) == origin:
                billed[key] = origin
                self.shared.setdefault(session or 0, {})[key] = origin

    def _find_gone_events(self, moves: Moves) -> None:
        sessions = self._keys.of("sessions")
        whole = [sessions[key] for key in self._batch.whole if key in sessions]
        kept = {(row[0], row[1], row[2]) for row in self._keys.rows("events", self._batch.rows.get("events", ()))}
        stored = self._tables.where("events", "session_key", whole, ("session_key", "position", "external_id"))
        moves.gone_events = [row for row in stored if tuple(row) not in kept]

    def _find_changed_events(self, moves: Moves) -> None:
        """The events that are not here yet as they are sent."""
        events = {tuple(row[:3]): row for row in self._keys.rows("events", self._batch.rows.get("events", ()))}
        positions: dict[int, list[int]] = {}
        for session, position, _ in events:
            if session not in self._new["sessions"]:
                positions.setdefault(session, []).append(position)
        columns = TABLES["events"]
        for session, wanted in sorted(positions.items()):
            for chunk in in_chunks(sorted(set(wanted))):
                for row in self._connection.execute(
                    f"SELECT {', '.join(columns)} FROM events WHERE session_key = ?"
                    " AND position IN (SELECT value FROM json_each(?))",
                    (session, chunk),
                ):
                    if events.get(tuple(row[:3])) == tuple(row):
                        del events[tuple(row[:3])]
        moves.events = list(events.values())
