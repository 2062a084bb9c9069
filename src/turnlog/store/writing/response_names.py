"""Names of messages whose id another response has: a provider may give one id to the responses of several sessions.

Once another response with the id of a stored one is read, both get a name that their records give
(`reconcile.responses`), so that the order in which files are read does not matter. A fold knows nothing of other
sessions, so the store keeps the names, for what later feeds say of the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec

from turnlog.agents.changes import Changes, MessageChange, Placement
from turnlog.model import Message
from turnlog.store.packed_columns import unpack_ids
from turnlog.store.reconcile.responses import (
    Names,
    changes_with_names,
    is_named_by_provider,
    is_same_in_session,
    is_same_response,
    placement_with_names,
    response_name,
    shared_id,
    with_names,
)
from turnlog.store.rows import message_facts, milliseconds
from turnlog.store.writing.message_updates import MessageUpdates
from turnlog.store.writing.prepared import FoldedMessage, PreparedMessage, Reading
from turnlog.store.writing.transaction import Transaction


class Named(NamedTuple):
    """What a feed says, with messages under their names."""

    readings: Sequence[Reading]
    changes: Changes


class ResponseNames:
    """Finds the names within one transaction."""

    def __init__(
        self,
        transaction: Transaction,
        updates: MessageUpdates,
        stored_keys: Callable[[Sequence[str]], Mapping[str, int]],
    ) -> None:
        """`stored_keys` finds stored messages by their ids."""
        self._transaction = transaction
        self._connection = transaction.connection
        self._stored_keys = stored_keys
        self._updates = updates

    def apply(self, readings: Sequence[Reading], changes: Changes) -> Named:
        """The readings and changes of a feed with messages under their names."""
        names = self._known(readings, changes) if self._is_any else {}
        stored = self._stored_keys([reading.id for reading in readings]) if readings else dict[str, int]()
        for reading in readings:
            place = (reading.placement.session_id, reading.id)
            if place not in names and (self._is_any or reading.id in stored or "~" in reading.id):
                name = self._name_of(reading, stored.get(reading.id))
                if name != reading.id:
                    names[place] = name
                    self._save(*place, name)
        if not names:
            return Named(readings, changes)
        return Named([self._renamed(reading, names) for reading in readings], changes_with_names(changes, names))

    @cached_property
    def _is_any(self) -> bool:
        return self._connection.execute("SELECT 1 FROM response_names LIMIT 1").fetchone() is not None

    def _known(self, readings: Iterable[Reading], changes: Changes) -> dict[tuple[str, str], str]:
        sessions = {reading.placement.session_id for reading in readings} | {*changes.sessions}
        sessions |= {change.session_id for change in (*changes.results, *changes.events)}
        query = "SELECT external_id, name FROM response_names WHERE session_id = ?"
        return {
            (session_id, external_id): name
            for session_id in sorted(sessions)
            for external_id, name in self._connection.execute(query, (session_id,))
        }

    def _save(self, session_id: str, external_id: str, name: str) -> None:
        self._is_any = True
        self._connection.execute(
            "INSERT OR REPLACE INTO response_names (session_id, external_id, name) VALUES (?, ?, ?)",
            (session_id, external_id, name),
        )

    def _name_of(self, reading: Reading, key: int | None) -> str:
        """The name of a message that is stored with this key; None: no message has its id."""
        if key is not None and self._is_at_its_place(key, reading):
            return reading.id
        if key is None and "~" not in reading.id and not self._is_shared(reading.id):
            return reading.id
        change = reading.change()
        message, placement = change.message, change.placement
        if not is_named_by_provider(message):
            return reading.id
        if key is not None and self._is_same(key, message, placement):
            return reading.id
        response, name = shared_id(message), response_name(message, placement)
        for candidate_id, candidate in self._others(response, message, reading.id):
            if self._is_same(candidate, message, placement):
                return self._first_name(candidate_id, candidate, response, name)
        if key is not None:
            self._set_apart(key, reading.id)
        # What the fold named is a response that it has told from the others in the file.
        return reading.id if key is None and "~" in reading.id else name

    def _is_shared(self, response: str) -> bool:
        """Whether several responses have an id: then no message has it."""
        query = "SELECT 1 FROM response_names WHERE external_id = ? LIMIT 1"
        return self._connection.execute(query, (response,)).fetchone() is not None

    def _others(self, response: str, message: Message, besides: str) -> list[tuple[str, int]]:
        """The other messages of a response's id that may be this one: of the same time, or with the same text."""
        source = self._transaction.source
        return self._connection.execute(
            "SELECT external_id, key FROM messages"
            " WHERE agent = ?1 AND external_id >= ?2 AND external_id < ?2 || char(127)"
            " AND (external_id = ?2 OR external_id > ?2 || '~') AND external_id <> ?3"
            " AND (created_at IS ?4 OR text_preview = ?5 AND ?5 <> '')"
            # Those of this file were told apart by the fold.
            " AND NOT EXISTS (SELECT 1 FROM memberships s WHERE s.message_key = messages.key AND s.source_key IS ?6)"
            " ORDER BY external_id",
            (
                source.agent,
                response,
                besides,
                milliseconds(message.created_at),
                message_facts(message).preview,
                source.key,
            ),
        ).fetchall()

    def _first_name(self, candidate_id: str, key: int, response: str, name: str) -> str:
        """The name of a message that another session has: that of the first of all its copies in the order of ids."""
        if candidate_id == response or candidate_id <= name:
            return candidate_id
        self._rename(key, response, name)
        return name

    def _set_apart(self, key: int, response: str) -> None:
        """Give the message that has the id of several responses a name, as each of the others has."""
        rows = self._connection.execute(
            "SELECT session_key, position, record_ids FROM memberships WHERE message_key = ?", (key,)
        ).fetchall()
        records = [
            next(
                (each for each in unpack_ids(packed, response) if each != response),
                f"{self._updates.session_id(holder)}@{position}",
            )
            for holder, position, packed in rows
        ]
        if records:
            self._rename(key, response, f"{response}~{min(records)}")

    def _rename(self, key: int, response: str, name: str) -> None:
        for session_id in self._updates.rename(key, name):
            self._save(session_id, response, name)

    def _is_at_its_place(self, key: int, reading: Reading) -> bool:
        """Whether a stored message is where a reading has it: the fold has told it from others in the file."""
        session_key = self._transaction.sessions.key(reading.placement.session_id)
        row = self._connection.execute(
            "SELECT source_key, generation, position, turn, step FROM memberships"
            " WHERE message_key = ? AND session_key = ?",
            (key, session_key),
        ).fetchone()
        if row is None:
            return False
        source, placement = self._transaction.source, reading.placement
        written, generation, position, *step = row
        if written != source.key:
            return False
        # A file that was written anew has messages at other places. Further parts of one step come at later places.
        is_in_step = placement.step is not None and step == [placement.turn, placement.step]
        return position == placement.position or generation != source.generation or is_in_step

    def _is_same(self, key: int, message: Message, placement: Placement) -> bool:
        known = self._updates.load(key)
        if not is_named_by_provider(known):
            return True
        if self._is_in(key, placement.session_id):
            return is_same_in_session(known, message)
        packed = self._connection.execute("SELECT record_ids FROM memberships WHERE message_key = ?", (key,))
        known_records = {record for (ids,) in packed.fetchall() for record in unpack_ids(ids, known.id)}
        return is_same_response(known, known_records, message, placement.record_ids)

    def _is_in(self, key: int, session_id: str) -> bool:
        """Whether another file of the session has the message, or a stream of it."""
        found = self._connection.execute(
            "SELECT 1 FROM memberships WHERE message_key = ? AND session_key = ? AND source_key IS NOT ?",
            (key, self._transaction.sessions.key(session_id), self._transaction.source.key),
        )
        return found.fetchone() is not None

    def _renamed(self, reading: Reading, names: Names) -> Reading:
        if (reading.placement.session_id, reading.id) in names:
            change = with_names(reading.change(), names)
            return FoldedMessage(change, self._transaction.feed, self._transaction.price)
        placement = placement_with_names(reading.placement, names)
        if placement is reading.placement:
            return reading
        if isinstance(reading, PreparedMessage):
            return msgspec.structs.replace(reading, placement=placement)
        change = MessageChange(message=reading.change().message, placement=placement)
        return FoldedMessage(change, self._transaction.feed, self._transaction.price)
