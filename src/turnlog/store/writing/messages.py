"""Messages, their parts and their places in sessions: inserting new ones, and superseding them by a better source's.

`MessageInserts` writes messages that are not stored, which is most of an import, with as few calls per message as
possible.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from functools import partial
from typing import Any, NamedTuple

from turnlog.agents.changes import Placement
from turnlog.model import Fate
from turnlog.store import bodies, zstd
from turnlog.store.external_content import (
    save_blobs,
    save_uses,
)
from turnlog.store.frames import PLACE_COLUMNS, FramePacker, PackedFrames
from turnlog.store.packed_columns import pack_ids, pack_parent, pack_records
from turnlog.store.reconcile.fates import BranchTracker
from turnlog.store.rows import (
    CALL_COLUMNS,
    MESSAGE_COLUMNS,
    PLAIN_COLUMNS,
    MessageFacts,
)
from turnlog.store.writing.prepared import PreparedMessage
from turnlog.store.writing.sessions import message_counts
from turnlog.store.writing.transaction import SourceRow, Transaction

_COLUMNS = (*MESSAGE_COLUMNS, *PLACE_COLUMNS)
_MESSAGE_INSERT = f"INSERT INTO messages ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
_PLAIN_INSERT, _CALL_INSERT = (
    f"INSERT INTO parts (message_key, {', '.join(columns)}) VALUES (?, {', '.join('?' * len(columns))})"
    for columns in (PLAIN_COLUMNS, CALL_COLUMNS)
)
_PATH_INSERT = "INSERT OR IGNORE INTO more_paths (message_key, path, sequence) VALUES (?, ?, ?)"

_MEMBER_COLUMNS = (
    "session_key",
    "position",
    "message_key",
    "source_key",
    "generation",
    "parent_id",
    "parent_record",
    "turn",
    "step",
    "fate",
    "fate_cause",
    "copied",
    "records",
    "record_ids",
)
MEMBER_INSERT = (
    f"INSERT INTO memberships ({', '.join(_MEMBER_COLUMNS)}) VALUES ({', '.join('?' * len(_MEMBER_COLUMNS))})"
)


class MessageInserts:
    """Collects the new messages of a feed; `start_write` and `finish_write` write them.

    Parts and memberships are written before their messages, while a worker (if there is one) compresses the bodies.
    `finish_write` writes the messages, and must be called before anything looks for them.
    """

    def __init__(self, transaction: Transaction, branches: BranchTracker, worker: Executor | None) -> None:
        self._transaction = transaction
        self._branches = branches
        self._worker = worker
        # Keys are assigned here and not by SQLite: parts and memberships are written before their message. A key is
        # never reused, so that an index or a reader cannot mistake a message for another.
        row = transaction.connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'messages'").fetchone()
        self._next_key = (row[0] if row else 0) + 1
        self._before: str | None = None
        """Id of the message with the key before the next."""
        self._messages: list[tuple[Any, ...]] = []
        self._packer = FramePacker()
        self._plain: list[tuple[Any, ...]] = []
        self._calls: list[tuple[Any, ...]] = []
        self._paths: list[tuple[Any, ...]] = []
        self._members: list[tuple[Any, ...]] = []
        self._blobs: list[tuple[bodies.ExternalContent, int]] = []
        self._uses: list[tuple[int, int]] = []
        self._writing: tuple[list[tuple[Any, ...]], PackedFrames, Callable[[], zstd.Frames]] | None = None

    def add(self, session_key: int, message: PreparedMessage, *, billed: bool = True) -> int:
        """Collect a message and its place in a session; return the message's key. It may be billed to no session."""
        transaction, placement, facts = self._transaction, message.placement, message.facts
        key = self._next_key
        self._next_key += 1
        # The body leaves out texts that only the archive of this source has: it must not be forgotten under them.
        if message.archived:
            self._uses.append((key, transaction.source.key))
        draft = transaction.sessions.draft(session_key)
        if placement.fate is not Fate.SUPERSEDED:
            draft.add_message(facts.counts)
        # A copied record keeps the time at which the session before it wrote it.
        if not placement.copied:
            draft.note_time(message.columns.created_at)
        if billed:
            model_key = transaction.usage.model_key(message.model)
            transaction.usage.add_prepared(session_key, model_key, message.usage)
            transaction.usage.calls.add(session_key, model_key, facts)
        sequence = transaction.sessions.sequence(session_key)
        columns = transaction.message_columns(message.columns, message.model, 1, sequence)
        self._messages.append((key, transaction.source.agent, message.id, *columns, session_key if billed else None))
        self._packer.add(session_key, key, message.body)
        # Most messages have only one of these: what runs for every message is not run for nothing.
        if facts.plain:
            self._plain += [(key, *row) for row in facts.plain]
        if facts.calls:
            self._calls += [(key, *row) for row in facts.calls]
        if facts.more_paths:
            self._paths += [(key, *row) for row in facts.more_paths]
        if message.blobs:
            self._blobs += [(blob, key) for blob in message.blobs]
        packed = message.records, message.record_ids
        self._members.append(member_row(session_key, key, transaction.source, placement, packed, self._before))
        self._before = message.id
        self._branches.note_place(session_key, placement)
        self._branches.note_new(session_key, message.id, placement)
        return key

    def start_write(self) -> None:
        """Write everything but the messages themselves, and start to compress their bodies."""
        if not self._messages:
            return
        # At most one write is under way, which bounds its memory.
        self.finish_write()
        # zstd and SQLite both release the GIL: the statements below run while a worker compresses.
        packed = self._packer.take()
        self._writing = self._messages, packed, self._compress(packed.texts)
        connection = self._transaction.connection
        _insert_parts(connection, self._plain, self._calls, self._paths)
        connection.executemany(MEMBER_INSERT, self._members)
        save_blobs(connection, self._blobs)
        save_uses(connection, self._uses)
        self._transaction.saved.messages += len(self._messages)
        self._messages = []
        self._plain.clear()
        self._calls.clear()
        self._paths.clear()
        self._members.clear()
        self._blobs.clear()
        self._uses.clear()

    def finish_write(self) -> None:
        """Write the messages for which `start_write` was called."""
        if self._writing is None:
            return
        messages, packed, compressed = self._writing
        self._writing = None
        places = packed.save(self._transaction.connection, compressed())
        self._transaction.connection.executemany(
            _MESSAGE_INSERT, [(*row, *place) for row, place in zip(messages, places, strict=True)]
        )

    def _compress(self, texts: list[bytes]) -> Callable[[], zstd.Frames]:
        """Compress bodies, in parallel if there is a worker. The returned function waits for the frames."""
        if self._worker is None:
            return partial(zstd.compress_all, texts)
        return self._worker.submit(zstd.compress_all, texts).result


def insert_parts(connection: sqlite3.Connection, key: int, facts: MessageFacts) -> None:
    """Write the rows of the parts of the message with this key."""
    rows = ([(key, *row) for row in found] for found in (facts.plain, facts.calls, facts.more_paths))
    _insert_parts(connection, *rows)


def _insert_parts(
    connection: sqlite3.Connection,
    plain: Iterable[tuple[Any, ...]],
    calls: Iterable[tuple[Any, ...]],
    paths: Iterable[tuple[Any, ...]],
) -> None:
    connection.executemany(_PLAIN_INSERT, plain)
    connection.executemany(_CALL_INSERT, calls)
    connection.executemany(_PATH_INSERT, paths)


def drop_parts(connection: sqlite3.Connection, message_key: int) -> None:
    """Delete the rows of a message's parts, because they change or no session contains the message any more."""
    connection.execute("DELETE FROM parts WHERE message_key = ?", (message_key,))
    connection.execute("DELETE FROM more_paths WHERE message_key = ?", (message_key,))


class PackedPlace(NamedTuple):
    """The packed columns of a membership."""

    records: bytes
    record_ids: bytes | None

    @classmethod
    def of(cls, placement: Placement, message_id: str) -> PackedPlace:
        """The columns for this place of a message."""
        return cls(pack_records(placement.records), pack_ids(placement.record_ids, message_id))


def member_row(
    session_key: int,
    message_key: int,
    source: SourceRow,
    placement: Placement,
    packed: tuple[bytes, bytes | None],
    before: str | None = None,
) -> tuple[Any, ...]:
    """A message's place in a session, as `MEMBER_INSERT` orders it.

    `packed` is a `PackedPlace`, and `before` the message with the previous key.
    """
    return (
        session_key,
        placement.position,
        message_key,
        source.key,
        source.generation,
        pack_parent(placement.parent_id, before),
        placement.parent_record,
        placement.turn,
        placement.step,
        placement.fate,
        placement.fate_cause,
        placement.copied,
        *packed,
    )


_SUPERSEDED = "session_key, position, message_key, source_key, generation, parent_id, turn, step, records"


def supersede(
    transaction: Transaction, session_key: int, message_key: int, log: str, *, keeps_fate: bool = False
) -> None:
    """Move a message from `memberships` to `superseded`, because the log at this path contains it.

    It is then neither counted, billed nor found, unless another session also contains it. With `keeps_fate`, its own
    session still shows it.
    """
    connection, sessions = transaction.connection, transaction.sessions
    place = (session_key, message_key)
    connection.execute(
        f"INSERT OR REPLACE INTO superseded ({_SUPERSEDED}, fate_cause, fate)"
        f" SELECT {_SUPERSEDED}, ?3, iif(?4, fate, NULL) FROM memberships WHERE session_key = ?1 AND message_key = ?2",
        (*place, log, keeps_fate),
    )
    [(fate,)] = connection.execute(
        "DELETE FROM memberships WHERE session_key = ? AND message_key = ? RETURNING fate", place
    ).fetchall()
    id, billed_key, other = connection.execute(
        "SELECT external_id, billed_key, (SELECT min(session_key) FROM memberships WHERE message_key = ?1)"
        " FROM messages WHERE key = ?1",
        (message_key,),
    ).fetchone()
    sessions.note_gone(session_key, [(0, id)])
    draft = sessions.draft(session_key)
    if fate != Fate.SUPERSEDED:
        draft.remove_message(message_counts(connection, message_key))
    draft.is_retimed = True
    if billed_key == session_key:
        transaction.usage.bill(message_key, billed_key, other)
    if other is None:
        drop_parts(connection, message_key)
    connection.execute(
        "UPDATE messages SET changed_seq = ? WHERE key = ?", (sessions.sequence(session_key), message_key)
    )
