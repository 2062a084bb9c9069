"""What search reads from the store: messages that changed, and texts that their bodies only preview.

Does not use `store.blobs`, which imports the model: an indexing process starts beside every large import, and the
model would double its start-up time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

import msgspec

from turnlog.errors import StoreError
from turnlog.store.archive import Archive
from turnlog.store.frames import BODY_COLUMNS, PLACE, BodyReader
from turnlog.store.search.documents import ExternalText, is_searchable_type
from turnlog.store.zstd import decompress

_MESSAGE = (
    "SELECT m.key, m.changed_seq, m.agent, m.role, m.created_at, coalesce(m.pays_key,"
    " (SELECT min(session_key) FROM memberships WHERE message_key = m.key), 0),"
    " (SELECT project_key FROM sessions WHERE key = coalesce(m.pays_key,"
    f" (SELECT min(session_key) FROM memberships WHERE message_key = m.key))), {BODY_COLUMNS} FROM messages m"
)
_NEWER = "WHERE m.changed_seq >= ?1 AND (m.changed_seq > ?1 OR m.key > ?2)"

# An output is spilled into the folder of its session; that of a subagent (`<session>.<agent id>`) into its parent's.
_FIND_SPILL = """
SELECT sp.source_key, so.generation, sp.media_type
FROM memberships m JOIN sessions s ON s.key = m.session_key
JOIN spills sp ON sp.name = ?1 AND sp.session_id IN (
    s.agent || ':' || s.external_id,
    s.agent || ':' || substr(s.external_id, 1, instr(s.external_id, '.') - 1))
JOIN sources so ON so.key = sp.source_key
WHERE m.message_key = ?2 ORDER BY sp.session_id DESC LIMIT 1
"""


class MessageRow(msgspec.Struct, frozen=True, gc=False):
    """What the indexer reads of a message. `home` is a session that holds it, `project` that session's."""

    key: int
    changed_seq: int
    agent: str
    role: str
    created_at: int | None
    home: int
    project: int | None
    body: bytes


class StoreReader:
    """Messages and texts, over a connection to which the store's tables are known by their bare names."""

    def __init__(self, connection: sqlite3.Connection, database: str = "main") -> None:
        """`database` is the name that the connection has for the store."""
        self._connection = connection
        self._database = database

    def behind(self, sequence: int, message_key: int) -> int:
        """How many messages changed after a watermark (the change sequence and key of the last one seen)."""
        return self._connection.execute(
            f"SELECT count(*) FROM messages m {_NEWER}", (sequence, message_key)
        ).fetchone()[0]

    def has_newer(self, sequence: int, message_key: int) -> bool:
        """Whether any message changed after a watermark."""
        query = f"SELECT 1 FROM messages m {_NEWER} LIMIT 1"
        return self._connection.execute(query, (sequence, message_key)).fetchone() is not None

    def newer(self, sequence: int, message_key: int) -> Generator[MessageRow]:
        """Some of the messages that changed after a watermark, in the order of their changes."""
        yield from self._rows(f"{_MESSAGE} {_NEWER} ORDER BY m.changed_seq, m.key LIMIT 1000", sequence, message_key)

    def message(self, key: int) -> MessageRow | None:
        """One message; None when it is gone."""
        return next(self._rows(f"{_MESSAGE} WHERE m.key = ?", key), None)

    def messages_of(self, session_key: int) -> Iterator[MessageRow]:
        """All messages that a session holds, and those that gave way to its log."""
        query = (
            f"{_MESSAGE} WHERE m.key IN (SELECT message_key FROM memberships WHERE session_key = ?1"
            " UNION SELECT message_key FROM superseded WHERE session_key = ?1)"
        )
        return self._rows(query, session_key)

    def _rows(self, query: str, *parameters: int) -> Generator[MessageRow]:
        """Messages with their bodies. A body that is just being replaced is empty: the message changes again then."""
        read = BodyReader(self._connection, self._database)
        for row in self._connection.execute(query, parameters):
            try:
                body = read(*row[PLACE])
            except StoreError:
                body = b""
            facts: list[Any] = [*row[: PLACE.start], body]
            yield MessageRow(*facts)

    def loader(self, message_key: int) -> Callable[[ExternalText], Iterable[bytes]]:
        """A function from a text outside a message's body to its bytes in pieces; none when it is not there."""

        def load(outside: ExternalText) -> Iterable[bytes]:
            if outside.sha256 is not None:
                return self._blob(outside.sha256)
            return self._spill(message_key, outside.spill or "")

        return load

    def _blob(self, sha256: str) -> Iterator[bytes]:
        row = self._connection.execute(
            "SELECT compressed, data FROM blobs WHERE sha256 = ?", (bytes.fromhex(sha256),)
        ).fetchone()
        if row is not None:
            yield decompress(row[1]) if row[0] else row[1]

    def _spill(self, message_key: int, name: str) -> Iterator[bytes]:
        row = self._connection.execute(_FIND_SPILL, (name, message_key)).fetchone()
        if row is None or not is_searchable_type(row[2]):
            return
        try:
            yield from Archive(self._connection).iter_bytes(row[0], row[1])
        except StoreError:
            # Its bytes are not all there yet; the message changes again when they are.
            return
