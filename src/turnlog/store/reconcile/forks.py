"""Forks whose logs copy none of their parent's history: they share its messages and are not billed for them.

Since 0.14x the log of a Codex fork begins at the fork and names a record of its parent
(`agents.changes.SHARES_BEFORE`). Its own messages have offsets in its own file as positions. The shared ones get
negative positions (`history.order.SHARED_SPAN`) in the order of the parent, whenever the parent is read. This is a pure
function of the parent's places, repeated when either session was touched. A compaction of the parent before the fork
applies to the fork too.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from turnlog.agents.base import HOOKED_FROM
from turnlog.agents.changes import SHARES_BEFORE, EventChange
from turnlog.history.order import SHARED_SPAN
from turnlog.model import CompactionEvent, Fate
from turnlog.model.codec import decode_event
from turnlog.store import zstd
from turnlog.store.keys import find_key
from turnlog.store.packed_columns import PARENT_ID, unpack_ids
from turnlog.store.writing.sessions import message_counts
from turnlog.store.writing.transaction import Transaction

_COLUMNS = "message_key, position, source_key, generation, parent_id, parent_record, step, records, record_ids"


class _Fork(NamedTuple):
    """A fork, and how much of its parent it shares."""

    child_id: str
    parent_id: str
    before: int
    """Number of the parent's first record that is not shared."""


class _Place(NamedTuple):
    """A membership (`_COLUMNS`)."""

    message_key: int
    position: int
    source_key: int | None
    generation: int
    parent_id: str | None
    parent_record: str | None
    step: int | None
    records: bytes | None
    record_ids: bytes | None


def place_shared_messages(transaction: Transaction) -> set[int]:
    """Update the shared places of forks that were touched or whose parent was; return the keys of changed forks."""
    touched = transaction.sessions.ids
    changed: set[int] = set()
    # A compaction of the parent changes fates in the fork, although no shared place changes.
    compacted = transaction.sessions.without_fates
    for fork in _parents_first(_forks(transaction.connection)):
        if fork.child_id in touched or fork.parent_id in touched:
            key = _place_shared(transaction, fork, compacted | changed)
            if key is not None:
                touched.add(fork.child_id)
                changed.add(key)
    return changed


def _forks(connection: sqlite3.Connection) -> list[_Fork]:
    rows = connection.execute(
        "SELECT child_id, parent_id, metadata FROM links WHERE kind = 'fork' AND metadata LIKE ? ORDER BY child_id",
        (f'%"{SHARES_BEFORE}"%',),
    ).fetchall()
    return [_Fork(child, parent, msgspec.json.decode(metadata)[SHARES_BEFORE]) for child, parent, metadata in rows]


def _parents_first(forks: Iterable[_Fork]) -> Iterator[_Fork]:
    """Sort forks so that a fork of a fork comes after its parent."""
    waiting = {fork.child_id: fork for fork in forks}
    while waiting:
        ready = [fork for fork in waiting.values() if fork.parent_id not in waiting]
        # Forks of each other make no sense, but a damaged log may contain them.
        for fork in ready or list(waiting.values()):
            del waiting[fork.child_id]
            yield fork


def _place_shared(transaction: Transaction, fork: _Fork, parents_with_new_fates: set[int]) -> int | None:
    """Update a fork's shared places; return its key if anything changed, or if fates in its parent did."""
    connection, sessions = transaction.connection, transaction.sessions
    child, parent = find_key(connection, fork.child_id), find_key(connection, fork.parent_id)
    # The parent may not have been read yet: this pass runs again when it is.
    if child is None or parent is None or child == parent:
        return None
    wanted = {place.message_key: place for place in _shared(connection, parent, fork.before)}
    own, known = _held(connection, child)
    gone = [key for key, place in known.items() if wanted.get(key) != place]
    # A message that the fork's own log also contains keeps the place it has there.
    new = [place for key, place in wanted.items() if known.get(key) != place and key not in own]
    # Sources of this transaction may not mention the fork, but later passes must process it.
    sessions.key(fork.child_id)
    sequence = sessions.sequence(child) if gone or new else 0
    sessions.note_gone(child, [(known[key].position, _id(connection, key)) for key in gone])
    left = [
        connection.execute(
            "DELETE FROM memberships WHERE session_key = ? AND message_key = ? RETURNING message_key, fate",
            (child, key),
        ).fetchone()
        for key in gone
    ]
    connection.executemany(
        f"INSERT INTO memberships (session_key, copied, changed_seq, {_COLUMNS})"
        f" VALUES (?, 1, ?{', ?' * len(_Place._fields)})",
        [(child, sequence, *place) for place in new],
    )
    draft = sessions.draft(child)
    for key, fate in left:
        # Superseded messages are not in the counts of their session.
        if fate != Fate.SUPERSEDED:
            draft.remove_message(message_counts(connection, key))
    for place in new:
        draft.add_message(message_counts(connection, place.message_key))
    # `gone` too: the parent that the first own message has may just have left the shared ones.
    is_attached = _attach(connection, child, wanted, {*wanted, *gone})
    if not gone and not new and not is_attached and parent not in parents_with_new_fates:
        return None
    sessions.sequence(child)
    sessions.share((child, parent))
    return child


def shared_compactions(connection: sqlite3.Connection, session_key: int, session_id: str) -> list[EventChange]:
    """The parent's compactions that a fork shares, at its positions: those before the first message not shared."""
    return [
        EventChange(session_id=session_id, event=msgspec.structs.replace(event, position=event.position - SHARED_SPAN))
        for event in _compactions_shared(connection, session_key, session_id, frozenset())
    ]


def _compactions_shared(
    connection: sqlite3.Connection, session_key: int, session_id: str, passed: frozenset[int]
) -> Iterator[CompactionEvent]:
    """The same at the parent's positions. A session is visited once, so cycles end."""
    last, parent_id = connection.execute(
        "SELECT (SELECT max(position) FROM memberships WHERE session_key = ?1 AND position < 0),"
        " (SELECT parent_id FROM links WHERE child_id = ?2 AND kind = 'fork' AND metadata LIKE ?3)",
        (session_key, session_id, f'%"{SHARES_BEFORE}"%'),
    ).fetchone()
    if last is None or parent_id is None:
        return
    parent = find_key(connection, parent_id)
    if parent is None or parent in passed:
        return
    end = connection.execute(
        "SELECT coalesce(min(position), ?1) FROM memberships WHERE session_key = ?2 AND position > ?3",
        (HOOKED_FROM, parent, last + SHARED_SPAN),
    ).fetchone()[0]
    # What the parent shares with a session before it has negative positions there, too.
    for event in _compactions_shared(connection, parent, parent_id, passed | {session_key}):
        if event.position - SHARED_SPAN < end:
            yield msgspec.structs.replace(event, position=event.position - SHARED_SPAN)
    rows = connection.execute(
        "SELECT body FROM events WHERE session_key = ? AND type = 'compaction' AND position < ? ORDER BY position",
        (parent, end),
    )
    for (body,) in rows.fetchall():
        event = decode_event(zstd.decompress(body))
        if isinstance(event, CompactionEvent):
            yield event


def _shared(connection: sqlite3.Connection, parent: int, before: int) -> Iterator[_Place]:
    """The places of a parent's messages up to the fork, with the positions in the fork.

    A message known only from a stream or hooks has no record number, so it is not known whether it is shared.
    """
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM memberships WHERE session_key = ?1 AND position < ?2 AND (source_key IS NULL OR"
        " source_key NOT IN (SELECT source_key FROM streams WHERE session_key = ?1)) ORDER BY position",
        (parent, HOOKED_FROM),
    )
    for row in rows.fetchall():
        place = _Place(*row)
        # Codex numbers the records of a thread, and a fork names the first one that it does not share.
        number = _record_number(place.record_ids)
        if number is not None and number >= before:
            break
        yield place._replace(position=place.position - SHARED_SPAN)


def _record_number(record_ids: bytes | None) -> int | None:
    """The number of a message's first record."""
    # The fold of Codex keeps the ordinal of a record as `#<ordinal>` among the record ids.
    numbers = [int(word[1:]) for word in unpack_ids(record_ids, "") if word.startswith("#") and word[1:].isdecimal()]
    return min(numbers, default=None)


def _held(connection: sqlite3.Connection, child: int) -> tuple[set[int], dict[int, _Place]]:
    """The fork's own messages, and the places of the shared ones."""
    rows = [
        _Place(*row)
        for row in connection.execute(f"SELECT {_COLUMNS} FROM memberships WHERE session_key = ?", (child,))
    ]
    known = {place.message_key: place for place in rows if place.position < 0}
    return {place.message_key for place in rows if place.position >= 0}, known


def _attach(connection: sqlite3.Connection, child: int, wanted: dict[int, _Place], shared: set[int]) -> bool:
    """Make the last shared message the parent of the fork's first own one. It changes while the parent grows."""
    if not wanted:
        return False
    last = max(wanted.values(), key=lambda place: place.position).message_key
    # A first message that names its parent's record keeps it. Any other parent is replaced only if an earlier run of
    # this pass has set it, which shows in that it is one of the shared messages.
    found = connection.execute(
        "UPDATE memberships AS s SET parent_id = (SELECT external_id FROM messages WHERE key = ?1)"
        " WHERE session_key = ?2 AND parent_record IS NULL AND position ="
        f" (SELECT min(position) FROM memberships WHERE session_key = ?2 AND position >= 0) AND ({PARENT_ID} IS NULL"
        f" OR {PARENT_ID} <> (SELECT external_id FROM messages WHERE key = ?1) AND {PARENT_ID} IN"
        f" (SELECT external_id FROM messages WHERE key IN ({', '.join(str(key) for key in shared)})))",
        (last, child),
    )
    return found.rowcount > 0


def _id(connection: sqlite3.Connection, message_key: int) -> str:
    return connection.execute("SELECT external_id FROM messages WHERE key = ?", (message_key,)).fetchone()[0]
