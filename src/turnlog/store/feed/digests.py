"""Digests of what was taken: rows that come again with the same digest are not written again.

A digest is made of rows with the keys of the store that takes them, so that it is the same whichever store sent them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from turnlog.store.feed.keys import Keys
from turnlog.store.feed.values import TABLES, FeedBatch, Row

if TYPE_CHECKING:
    from turnlog.store.connection import Connection

Insert: TypeAlias = Callable[[str, Sequence[str], Sequence[Row]], None]
"""Writes new rows of a table: name, columns, rows."""

_OF_MESSAGE: Final = ("parts", "more_paths", "blob_uses")
_OF_SESSION: Final = ("superseded", "usage", "call_totals", "edit_totals", "streams")
_BY_ID: Final = {"links": "child_id", "annotations": "session_id", "answers": "session_id"}

_BILLED: Final = TABLES["messages"].index("billed_key")
"""Which session is billed for a message changes without the message: it is compared by itself."""

_encode = msgspec.msgpack.Encoder().encode


class _Digests:
    """Digests of one table, in another one."""

    table: str
    column: str

    def __init__(self, connection: Connection, insert: Insert, *, is_kept: bool) -> None:
        """Without `is_kept`, the store has no digests: everything is taken for changed."""
        self._connection = connection
        self._insert = insert
        self._is_kept = is_kept
        self._made: dict[int, int] = {}

    def _known(self, keys: Sequence[int]) -> dict[int, int]:
        found: dict[int, int] = {}
        for start in range(0, len(keys), 1000):
            rows = self._connection.execute(
                f"SELECT {self.column}, digest FROM {self.table} WHERE {self.column} IN"
                " (SELECT value FROM json_each(?))",
                (json.dumps(keys[start : start + 1000]),),
            )
            found |= dict(rows.fetchall())
        return found

    def _write(self, digests: dict[int, int], stored: Collection[int]) -> None:
        if not self._is_kept:
            return
        self._connection.executemany(
            f"DELETE FROM {self.table} WHERE {self.column} = ?", [(key,) for key in sorted(stored)]
        )
        self._insert(self.table, (self.column, "digest"), sorted(digests.items()))


class MessageDigests(_Digests):
    """Digests of messages: row, parts, body."""

    table = "message_digests"
    column = "message_key"

    def without_unchanged(self, batch: FeedBatch, keys: Keys, new: Collection[int]) -> FeedBatch:
        """The batch without the messages that are stored as they are. `new` are keys of messages that are not."""
        if not self._is_kept:
            return batch
        messages = keys.of("messages")
        details: dict[int, list[Row]] = defaultdict(list)
        for number, table in enumerate(_OF_MESSAGE):
            at = TABLES[table].index("message_key")
            for row in batch.rows.get(table, ()):
                details[row[at]].append((number, *row[:at], *row[at + 1 :]))
        rows = batch.rows.get("messages", ())
        mapped = keys.rows("messages", rows)
        for row, own in zip(rows, mapped, strict=True):
            if row[0] in messages:
                parts = sorted(details[row[0]], key=_place) if len(details[row[0]]) > 1 else details[row[0]]
                content = (own[1:_BILLED], own[_BILLED + 1 : -1], parts)
                self._made[messages[row[0]]] = _digest(_encode(content), batch.bodies.get(row[0], b""))
        known = self._known(sorted(self._made.keys() - set(new)))
        same = {key for key, digest in known.items() if self._made[key] == digest}
        if not same:
            return batch
        for key in same:
            del self._made[key]
        left = {theirs for theirs, ours in messages.items() if ours in same}
        kept = dict(batch.rows)
        for table, at in (("messages", 0), ("parts", 0), ("more_paths", 1), ("blob_uses", 1)):
            kept[table] = [row for row in kept.get(table, ()) if row[at] not in left]
        uses = {row[0] for row in kept["blob_uses"]}
        kept["blobs"] = [row for row in kept.get("blobs", ()) if row[0] in uses]
        bodies = {key: body for key, body in batch.bodies.items() if key not in left}
        return msgspec.structs.replace(batch, rows=kept, bodies=bodies)

    def save(self, new: Collection[int]) -> None:
        """Keep the digests of the messages that were written."""
        self._write(self._made, self._made.keys() - set(new))


class SessionDigests(_Digests):
    """Digests of complete sessions: row and everything that is of a session as a whole, without places and events."""

    table = "session_digests"
    column = "session_key"

    def changed(self, batch: FeedBatch, keys: Keys) -> list[int]:
        """The keys of the complete sessions of which something is other than before."""
        sessions = keys.of("sessions")
        complete = {key: sessions[key] for key in batch.complete if key in sessions}
        if not self._is_kept:
            return sorted(complete.values())
        details: dict[int, list[Row]] = defaultdict(list)
        for table in _OF_SESSION:
            at = TABLES[table].index("session_key")
            for row in keys.rows(table, batch.rows.get(table, ())):
                details[row[at]].append((table, *row))
        ids = {":".join(batch.names["sessions"][theirs]): ours for theirs, ours in complete.items()}
        for table, column in _BY_ID.items():
            at = TABLES[table].index(column)
            for row in batch.rows.get(table, ()):
                if row[at] in ids:
                    details[ids[row[at]]].append((table, *row))
        rows = batch.rows.get("sessions", ())
        own = {
            sessions[row[0]]: mapped[1:]
            for row, mapped in zip(rows, keys.rows("sessions", rows), strict=True)
            if row[0] in sessions
        }
        levels = {sessions[key]: level for key, level in batch.levels.items() if key in sessions}
        for key in complete.values():
            facts = (own.get(key), levels.get(key), sorted(details[key], key=repr))
            self._made[key] = _digest(_encode(facts), b"")
        known = self._known(sorted(self._made))
        return sorted(key for key, digest in self._made.items() if known.get(key) != digest)

    def save(self, changed: Collection[int]) -> None:
        """Keep the digests of the sessions that were written."""
        self._write({key: self._made[key] for key in changed} if self._is_kept else {}, changed)


def _place(row: Row) -> Row:
    """The order of what a message has: the columns that tell its rows of one table apart."""
    return row[:3]


def _digest(content: bytes, body: bytes) -> int:
    """64 bits of a hash, as a signed integer."""
    found = blake2b(content, digest_size=8)
    found.update(body)
    return int.from_bytes(found.digest(), "big", signed=True)
