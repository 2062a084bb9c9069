"""Words that a store of many must not show any more, though a session that stays has the message.

A message leaves a machine once, at the highest level of its sessions there, so one of a `redacted` session has its
secrets where another session has it at `full`. When that one goes, the message stays as at `metrics`, without words,
until it comes again at the level that holds now: from the machine that sends the batch in the same push (it has a
higher number of its last change there), from others when they begin their feeds again, as they are told to.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from turnlog.model import Message
from turnlog.store import bodies, zstd
from turnlog.store.feed.progress import begin_again, feeds_of
from turnlog.store.feed.tables import FeedTables, in_chunks

if TYPE_CHECKING:
    from turnlog.store.connection import Connection

_PLACES: Final = (
    "SELECT message_key, session_key FROM memberships UNION ALL SELECT message_key, session_key FROM superseded"
)

_OF_SESSIONS: Final = (
    f"SELECT DISTINCT p.message_key FROM ({_PLACES}) p JOIN session_owners o ON o.session_key = p.session_key"
    " WHERE o.level = 'full' AND p.session_key IN (SELECT value FROM json_each(?))"
)

_ELSEWHERE: Final = (
    f"SELECT p.message_key, o.level, o.store FROM ({_PLACES}) p JOIN session_owners o ON o.session_key = p.session_key"
    " WHERE p.message_key IN (SELECT value FROM json_each(?)) AND p.session_key NOT IN (SELECT value FROM json_each(?))"
)


def withhold(connection: Connection, session_keys: Collection[int], user: str, store: str) -> None:
    """Take the words out of messages that came at `full` because of sessions of this person that are about to go.

    Where other stores have sent them, too, the person's feeds are to begin again, but not that of `store`, which sends
    the batch. The caller owns the transaction.
    """
    going = json.dumps(sorted(session_keys))
    shared = sorted({key for (key,) in connection.execute(_OF_SESSIONS, (going,)).fetchall()})
    levels: dict[int, set[str]] = defaultdict(set)
    stores: dict[int, set[str]] = defaultdict(set)
    """Message -> the stores that have sent the other sessions last."""
    for chunk in in_chunks(shared):
        for key, level, sent_by in connection.execute(_ELSEWHERE, (chunk, going)).fetchall():
            levels[key].add(level)
            stores[key].add(sent_by)
    keys = sorted(key for key, found in levels.items() if "full" not in found)
    if not keys:
        return
    _empty(connection, keys)
    if any(stores[key] - {store} for key in keys):
        for other in sorted(feeds_of(connection, user) - {store}):
            begin_again(connection, other)


def _empty(connection: Connection, keys: Sequence[int]) -> None:
    """Leave of these messages what leaves a machine at `metrics`."""
    tables = FeedTables(connection)
    for key, external_id, role in tables.where("messages", "key", keys, ("key", "external_id", "role")):
        body = bodies.pack_fresh(Message(id=external_id, role=role))
        packed = zstd.compress(body)
        connection.execute("UPDATE frames SET data = ? WHERE key = ?", (packed, -key))
        connection.execute(
            "UPDATE messages SET text_preview = '', frame_size = ?, body_size = ? WHERE key = ?",
            (len(packed), len(body), key),
        )
    connection.execute(
        "UPDATE parts SET path = NULL, media_type = NULL, spill = NULL, command = NULL"
        " WHERE message_key IN (SELECT value FROM json_each(?))",
        (json.dumps(keys),),
    )
    # Without its digest, what comes again is written.
    for table in ("more_paths", "blob_uses", "blob_claims", "message_digests"):
        tables.delete(table, "message_key", keys)
