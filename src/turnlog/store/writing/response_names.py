"""Names of messages whose id another response has: a provider may give one id to the responses of several sessions.

The first one that is read keeps the id. What another session says under it is a message with a name that its records
give (`reconcile.responses`); a copy of that session finds it by the same name. A fold knows nothing of other sessions,
so the store keeps the name, for what later feeds say of the message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec

from turnlog.agents.changes import Changes, MessageChange
from turnlog.model import Message
from turnlog.store.packed_columns import unpack_ids
from turnlog.store.reconcile.responses import (
    Names,
    changes_with_names,
    is_named_by_provider,
    is_same_response,
    placement_with_names,
    response_name,
    with_names,
)
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
        stored_keys: Callable[[list[str]], Mapping[str, int]],
        load: Callable[[int], Message],
    ) -> None:
        """`stored_keys` finds stored messages by their ids, `load` reads one by its key."""
        self._transaction = transaction
        self._connection = transaction.connection
        self._stored_keys = stored_keys
        self._load = load

    def apply(self, readings: Sequence[Reading], changes: Changes) -> Named:
        """The readings and changes of a feed with messages under their names."""
        names = self._known(readings, changes) if self._is_any else {}
        stored = self._stored_keys([reading.id for reading in readings]) if readings else {}
        for reading in readings:
            place = (reading.placement.session_id, reading.id)
            if place not in names and (reading.id in stored or "~" in reading.id):
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
        """The name of a message that is stored with this key; None: another one may be, under the id without a name."""
        if key is not None and self._is_at_its_place(key, reading):
            return reading.id
        change = reading.change()
        message, records = change.message, set(change.placement.record_ids)
        if not is_named_by_provider(message):
            return reading.id
        if key is not None and self._is_same(key, message, records):
            return reading.id
        name = response_name(message, change.placement)
        candidates = [id for id in dict.fromkeys((message.response_id or "", name)) if id != reading.id]
        stored = self._stored_keys(candidates)
        for candidate in candidates:
            if candidate in stored and self._is_same(stored[candidate], message, records):
                return candidate
        # What the fold named is a response that it has told from the others.
        return reading.id if key is None else name

    def _is_at_its_place(self, key: int, reading: Reading) -> bool:
        """Whether a stored message is where a reading has it: the fold has told it from others in the file."""
        session_key = self._transaction.sessions.key(reading.placement.session_id)
        row = self._connection.execute(
            "SELECT position, source_key, generation FROM memberships WHERE message_key = ? AND session_key = ?",
            (key, session_key),
        ).fetchone()
        if row is None:
            return False
        source = self._transaction.source
        position, *written = row
        # A file that was written anew has messages at other places.
        return written[0] == source.key and (position == reading.placement.position or written[1] != source.generation)

    def _is_same(self, key: int, message: Message, records: set[str]) -> bool:
        known = self._load(key)
        if not is_named_by_provider(known):
            return True
        packed = self._connection.execute("SELECT record_ids FROM memberships WHERE message_key = ?", (key,))
        known_records = {record for (ids,) in packed.fetchall() for record in unpack_ids(ids, known.id)}
        return is_same_response(known, known_records, message, records)

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
