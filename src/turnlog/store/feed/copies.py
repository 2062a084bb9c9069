"""Copies of one session on several machines: the same session where one has all that the other has, else a fork.

Copies are compared by the ids of their messages. Whoever has all that is stored, and perhaps more, becomes the one
whose rows count; whoever has less changes nothing. Where both have the same, the one of the higher upload level counts,
unless the same machine sends it at a lower one. Where each has what the other lacks, the copy that came later is
stored beside the first, as a fork of it, and stays that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import msgspec

from turnlog.errors import ConflictError
from turnlog.store.feed.owners import renamed
from turnlog.store.feed.reading import message_ids
from turnlog.store.feed.values import FeedBatch

if TYPE_CHECKING:
    from turnlog.store.connection import Connection

_SIZE: Final = 8

_RANKS: Final = {"metrics": 0, "redacted": 1, "full": 2}
"""How much of a session an upload level has."""


class _Copy(NamedTuple):
    """What another store has sent of a session."""

    level: str
    machine: str


class MoreNeededError(ConflictError):
    """A batch is not taken as it is: something is to be done for these sessions, by the ids that the machine sends."""

    needed: ClassVar[str]
    """What is asked for."""
    reason: ClassVar[str]

    def __init__(self, session_ids: Sequence[str]) -> None:
        """Keep the ids."""
        super().__init__(self.reason)
        self.session_ids = tuple(session_ids)


class CopiesNeededError(MoreNeededError):
    """Another store has these sessions, too: the batch has to say which messages they have here."""

    needed = "copies"
    reason = "another machine has pushed a session of this batch, too"


class MessagesNeededError(MoreNeededError):
    """Messages of these sessions went from here with others that had them, too: they have to come before the batch."""

    needed = "messages"
    reason = "the hub no longer has all messages of a session of this batch"


class AbsenceNeededError(MoreNeededError):
    """These sessions were forgotten here: the batch has to come as if its machine did not have them, either.

    Messages that they share with others came at their level, which is higher.
    """

    needed = "absence"
    reason = "the hub has forgotten a session of this batch that shares messages with another one"


def pack_ids(ids: Iterable[str]) -> bytes:
    """The ids of messages, as a batch says them."""
    return b"".join(sorted({blake2b(each.encode(errors="replace"), digest_size=_SIZE).digest() for each in ids}))


class Forks(msgspec.Struct):
    """The sessions of a batch that are stored as forks, and those of which nothing is stored."""

    origins: dict[int, str] = {}
    """Key of a session of the batch -> id of the session that it is a fork of."""
    outdated: set[str] = set()
    """Ids of sessions of which the store has all, and more of them or at a higher level."""


def settle(connection: Connection, batch: FeedBatch, store: str, user: str, machine: str) -> tuple[FeedBatch, Forks]:
    """The batch with forks under their own ids. Raises CopiesNeededError."""
    forks = Forks()
    sent = {row[0] for row in batch.rows.get("sessions", ())}
    ids = {":".join(batch.names["sessions"][key]): key for key in sent}
    held = _of_other_stores(connection, list(ids), store, user)
    # Also where what it is a fork of was forgotten meanwhile: the fork goes on.
    stored = dict(
        connection.execute(
            "SELECT session_id, stored_as FROM session_copies WHERE store = ?"
            " AND session_id IN (SELECT value FROM json_each(?))",
            # A level may have changed of which this batch has no row.
            (store, json.dumps(sorted({*ids, *batch.withdrawn}))),
        ).fetchall()
    )
    # Whatever the hub has of a session whose level changed goes with this batch: nothing is left to compare it with.
    compared = sorted(held.keys() - stored.keys() - {*batch.withdrawn})
    missing = [session_id for session_id in compared if ids[session_id] not in batch.copies]
    if missing:
        raise CopiesNeededError(missing)
    for session_id in compared:
        here, there = _unpacked(batch.copies[ids[session_id]]), _stored_ids(connection, session_id)
        level = batch.levels.get(ids[session_id], "full")
        if here == there and held[session_id].machine != machine and _RANKS[level] < _RANKS[held[session_id].level]:
            forks.outdated.add(session_id)
            continue
        if there <= here or (level == "metrics" and len(here) > len(there)):
            continue
        if here <= there or level == "metrics":
            forks.outdated.add(session_id)
            continue
        stored[session_id] = f"{session_id}~{machine}"
        connection.execute(
            "INSERT INTO session_copies (store, session_id, stored_as) VALUES (?, ?, ?)",
            (store, session_id, stored[session_id]),
        )
    forks.origins = {ids[session_id]: session_id for session_id in stored if session_id in ids}
    return (renamed(batch, stored) if stored else batch), forks


def _of_other_stores(connection: Connection, ids: Sequence[str], store: str, user: str) -> dict[str, _Copy]:
    rows = connection.execute(
        "SELECT session_id, level, machine FROM session_owners WHERE session_id IN (SELECT value FROM json_each(?))"
        " AND owner_user = ? AND store <> '' AND store <> ? AND session_key IS NOT NULL",
        (json.dumps(ids), user, store),
    )
    return {session_id: _Copy(level, machine) for session_id, level, machine in rows}


def _stored_ids(connection: Connection, session_id: str) -> set[bytes]:
    return _unpacked(pack_ids(message_ids(connection, session_id)))


def _unpacked(packed: bytes) -> set[bytes]:
    return {packed[at : at + _SIZE] for at in range(0, len(packed), _SIZE)}


def bill_once(connection: Connection, shared: dict[int, dict[int, int]]) -> None:
    """Take what forks share with their origins out of the forks' usage: fork -> message -> origin, all by key."""
    from turnlog.store.keys import Names
    from turnlog.store.writing.sessions import SessionRows, UsageRows

    names = Names(connection)
    sessions = SessionRows(connection, names)
    usage = UsageRows(connection, names, sessions)
    for fork, messages in sorted(shared.items()):
        for message_key in sorted(messages):
            usage.bill(message_key, fork, None)
    usage.flush()
    sessions.flush()
    connection.executemany(
        "UPDATE messages SET billed_key = ? WHERE key = ?",
        [(origin, message_key) for messages in shared.values() for message_key, origin in sorted(messages.items())],
    )
