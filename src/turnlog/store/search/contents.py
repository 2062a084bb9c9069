"""Reads the texts that a message's body only previews: blobs, and outputs in files of their own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator

from turnlog.errors import StoreError
from turnlog.store.archive import Archive
from turnlog.store.search.documents import Outside, is_searchable_type
from turnlog.store.zstd import decompress

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


class Contents:
    """The store's large texts, over a connection to which its tables are known by their bare names."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def loader(self, message_key: int) -> Callable[[Outside], Iterable[bytes]]:
        """A function from a text outside a message's body to its bytes in pieces; none when it is not there."""

        def load(outside: Outside) -> Iterable[bytes]:
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
