"""Messages that nobody has stored: most of what an import writes, so little is called here and nothing is made twice.

Parts and memberships are written before their messages, whose bodies are compressed meanwhile where there is a worker:
`land` writes the messages, and must have been called before anybody looks for them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from functools import partial
from typing import Any

from turnlog.agents.changes import MessageChange, Placement
from turnlog.model import Message
from turnlog.store import bodies, zstd
from turnlog.store.archived_texts import leave_out, save_uses
from turnlog.store.blobs import save_blobs
from turnlog.store.frames import PLACE_COLUMNS, FramePacker, PackedFrames
from turnlog.store.places import pack_ids, pack_parent, pack_records
from turnlog.store.rows import CALL_COLUMNS, MESSAGE_COLUMNS, PLAIN_COLUMNS, MessageFacts, message_facts
from turnlog.store.writing.branches import Branches
from turnlog.store.writing.transaction import SourceRow, Transaction

_COLUMNS = (*MESSAGE_COLUMNS, *PLACE_COLUMNS)
_MESSAGE_INSERT = f"INSERT INTO messages ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
_PLAIN_INSERT = f"INSERT INTO parts ({', '.join(PLAIN_COLUMNS)}) VALUES ({', '.join('?' * len(PLAIN_COLUMNS))})"
_CALL_INSERT = f"INSERT INTO parts ({', '.join(CALL_COLUMNS)}) VALUES ({', '.join('?' * len(CALL_COLUMNS))})"
_PATH_INSERT = "INSERT OR IGNORE INTO more_paths (path, message_key, sequence) VALUES (?, ?, ?)"

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
    "copied",
    "records",
    "record_ids",
)
MEMBER_INSERT = (
    f"INSERT INTO memberships ({', '.join(_MEMBER_COLUMNS)}) VALUES ({', '.join('?' * len(_MEMBER_COLUMNS))})"
)


class NewMessages:
    """Collects the new messages of a feed; `send` and `land` write them."""

    def __init__(self, transaction: Transaction, branches: Branches, worker: Executor | None) -> None:
        self._transaction = transaction
        self._branches = branches
        self._worker = worker
        row = transaction.connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'messages'").fetchone()
        self._next_key = (row[0] if row else 0) + 1
        self._before: str | None = None
        """Id of the message with the key before the next."""
        self._messages: list[tuple[Any, ...]] = []
        self._packer = FramePacker()
        self._plain: list[tuple[Any, ...]] = []
        self._calls: list[tuple[Any, ...]] = []
        self._paths: list[tuple[str, int, int]] = []
        self._members: list[tuple[Any, ...]] = []
        self._blobs: list[tuple[bodies.Blob, int]] = []
        self._uses: list[tuple[int, int]] = []
        self._sent: tuple[list[tuple[Any, ...]], PackedFrames, Callable[[], zstd.Frames]] | None = None

    def add(self, session_key: int, change: MessageChange) -> int:
        """Take a message and its place; return its key."""
        transaction, message, placement = self._transaction, change.message, change.placement
        key = self._next_key
        self._next_key += 1
        facts = message_facts(message, key)
        body = self._body(message, facts, key)
        places = transaction.archived_places(change)
        if places:
            self._uses.append((key, transaction.source.key))
        cost = transaction.cost(message)
        transaction.sessions.counts.add(session_key, facts.counts, 1)
        transaction.totals.pay(session_key, message, cost, 1)
        sequence = transaction.sessions.sequence(session_key)
        columns = transaction.message_columns(message, facts, cost, 1, sequence)
        self._messages.append((key, transaction.source.agent, message.id, *columns, session_key))
        self._packer.add(session_key, key, leave_out(body, places))
        self._plain += facts.plain
        self._calls += facts.calls
        self._paths += facts.more_paths
        self._members.append(member_row(session_key, key, message.id, transaction.source, placement, self._before))
        self._before = message.id
        self._branches.note_place(session_key, placement)
        self._branches.lengthen(session_key, message.id, placement)
        return key

    def send(self) -> None:
        """Write everything of what was added but the messages themselves, and begin to compress those."""
        if not self._messages:
            return
        self.land()
        packed = self._packer.take()
        self._sent = self._messages, packed, self._compress(packed.texts)
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

    def land(self) -> None:
        """Write the messages that were sent."""
        if self._sent is None:
            return
        messages, packed, compressed = self._sent
        self._sent = None
        places = packed.save(self._transaction.connection, compressed())
        self._transaction.connection.executemany(
            _MESSAGE_INSERT, [(*row, *place) for row, place in zip(messages, places, strict=True)]
        )

    def _body(self, message: Message, facts: MessageFacts, key: int) -> bytes:
        """The JSON that is stored; large contents go to the blobs."""
        body = bodies.pack_fresh(message)
        if len(body) <= bodies.TEXT_LIMIT and not facts.has_files and not facts.has_structured:
            return body
        found: list[bodies.Blob] = []
        external = bodies.externalize(message, found)
        self._blobs += [(blob, key) for blob in found]
        return body if external is message else bodies.pack_fresh(external)

    def _compress(self, texts: list[bytes]) -> Callable[[], zstd.Frames]:
        """Compress bodies, beside the caller's own work when there is a worker; call the result for the frames."""
        if self._worker is None:
            return partial(zstd.compress_all, texts)
        return self._worker.submit(zstd.compress_all, texts).result


def insert_parts(connection: sqlite3.Connection, facts: MessageFacts) -> None:
    """Write the rows of a message's parts."""
    _insert_parts(connection, facts.plain, facts.calls, facts.more_paths)


def _insert_parts(
    connection: sqlite3.Connection,
    plain: Iterable[tuple[Any, ...]],
    calls: Iterable[tuple[Any, ...]],
    paths: Iterable[tuple[str, int, int]],
) -> None:
    connection.executemany(_PLAIN_INSERT, plain)
    connection.executemany(_CALL_INSERT, calls)
    connection.executemany(_PATH_INSERT, paths)


def drop_parts(connection: sqlite3.Connection, message_key: int) -> None:
    """Take the rows of a message's parts away: it has others now, or counts for nobody any more."""
    connection.execute("DELETE FROM parts WHERE message_key = ?", (message_key,))
    connection.execute("DELETE FROM more_paths WHERE message_key = ?", (message_key,))


def member_row(
    session_key: int,
    message_key: int,
    message_id: str,
    source: SourceRow,
    placement: Placement,
    before: str | None = None,
) -> tuple[Any, ...]:
    """A message's place in a session, in the order of `MEMBER_INSERT`; `before` is the message with the key before."""
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
        placement.copied,
        pack_records(placement.records),
        pack_ids(placement.record_ids, message_id),
    )
