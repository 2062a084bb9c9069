"""Reading what lies outside message bodies: blobs by hash, and outputs that the agent wrote to files of their own."""

from __future__ import annotations

import sqlite3

from turnlog.errors import NotFoundError
from turnlog.model import BlobRef
from turnlog.store import bodies
from turnlog.store.archive import Archive
from turnlog.store.base import BlobContent


def load_blob(connection: sqlite3.Connection, sha256: str) -> BlobContent:
    """A blob by the hexadecimal SHA-256 of its bytes; raise NotFoundError when the store does not hold it."""
    try:
        digest = bytes.fromhex(sha256)
    except ValueError as error:
        raise NotFoundError(f"{sha256!r} is no SHA-256") from error
    row = connection.execute("SELECT compressed, data, media_type FROM blobs WHERE sha256 = ?", (digest,)).fetchone()
    if row is None:
        raise NotFoundError(f"the store holds no blob {sha256}")
    compressed, data, media_type = row
    return BlobContent(bodies.decompress(data) if compressed else data, media_type)


class BlobLoader:
    """Loads the blobs of messages: what `bodies.resolve` asks for."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __call__(self, reference: BlobRef) -> bytes:
        """The bytes that a reference stands for."""
        return load_blob(self._connection, reference.sha256).data


def load_spill(connection: sqlite3.Connection, session_id: str, name: str) -> bytes:
    """The whole of an output that its result only previews, from the archive; raise NotFoundError without one."""
    row = connection.execute(
        "SELECT f.key, f.generation FROM spills p JOIN sources f ON f.key = p.source_key"
        " WHERE p.session_id = ? AND p.name = ?",
        (session_id, name),
    ).fetchone()
    if row is None:
        raise NotFoundError(f"session {session_id} has no output file {name}")
    return b"".join(Archive(connection).iter_bytes(*row))
