"""Messages of a copy whose words in the index are outdated with the next batch.

The index can delete words only with the text that they were made from, so it has to do so while the copy has that.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from turnlog.store.feed.keys import stored_keys
from turnlog.store.feed.tables import FeedTables
from turnlog.store.feed.values import FeedBatch

_PLACES = ("memberships", "superseded")


def outdated_messages(connection: sqlite3.Connection, batch: FeedBatch) -> list[int]:
    """Keys of the copy's messages that come with another body, or that no session has after the batch."""
    names = batch.names.get("messages", {})
    stored = stored_keys(connection, "messages", names.values())
    keys = {theirs: stored[name] for theirs, name in names.items() if name in stored}
    return sorted({*_changed(connection, batch, keys), *_lost(connection, batch, keys)})


def _changed(connection: sqlite3.Connection, batch: FeedBatch, keys: dict[int, int]) -> list[int]:
    frames = {-keys[theirs]: body for theirs, body in batch.bodies.items() if theirs in keys}
    known = dict(FeedTables(connection).where("frames", "key", sorted(frames), ("key", "data")))
    return [-key for key, body in frames.items() if known.get(key) != body]


def _lost(connection: sqlite3.Connection, batch: FeedBatch, keys: dict[int, int]) -> set[int]:
    """The messages of complete sessions that lose all their places."""
    names = batch.names.get("sessions", {})
    stored = stored_keys(connection, "sessions", [names[key] for key in batch.complete])
    before = _places(connection, "session_key", stored.values())
    stays = {keys[row[2]] for table in _PLACES for row in batch.rows.get(table, ()) if row[2] in keys}
    messages = {message for _, message in before} - stays
    # What another session has there stays, unless that is complete, too, and has it no more.
    return messages - {message for _, message in _places(connection, "message_key", messages) - before}


def _places(connection: sqlite3.Connection, column: str, values: Collection[int]) -> set[tuple[int, int]]:
    """Session and message of every place with one of these values in a column."""
    tables = FeedTables(connection)
    return {
        (row[0], row[1])
        for table in _PLACES
        for row in tables.where(table, column, sorted(values), ("session_key", "message_key"))
    }
