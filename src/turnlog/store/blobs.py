"""What lies outside message bodies: blobs by hash, and outputs that the agent wrote to files of their own."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from turnlog.errors import NotFoundError
from turnlog.model import BlobRef
from turnlog.store import bodies, zstd
from turnlog.store.archive import Archive
from turnlog.store.values import BlobContent


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
    return BlobContent(zstd.decompress(data) if compressed else data, media_type)


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


def save_blobs(connection: sqlite3.Connection, found: Sequence[tuple[bodies.Blob, int]]) -> None:
    """Write contents, each with the key of a message that holds it."""
    for blob, message_key in found:
        known = connection.execute("SELECT 1 FROM blobs WHERE sha256 = ?", (blob.sha256,)).fetchone()
        if known is None:
            connection.execute(
                "INSERT INTO blobs (sha256, size, media_type, compressed, data) VALUES (?, ?, ?, ?, ?)",
                (blob.sha256, len(blob.data), blob.media_type, *_smallest(blob.data)),
            )
        connection.execute(
            "INSERT OR IGNORE INTO blob_uses (sha256, message_key) VALUES (?, ?)", (blob.sha256, message_key)
        )


def replace_blobs(connection: sqlite3.Connection, message_key: int, found: Sequence[bodies.Blob]) -> None:
    """The message's large contents are these now; one that nobody uses any more goes."""
    uses = connection.execute("SELECT sha256 FROM blob_uses WHERE message_key = ?", (message_key,))
    gone = {row[0] for row in uses} - {blob.sha256 for blob in found}
    connection.executemany(
        "DELETE FROM blob_uses WHERE message_key = ? AND sha256 = ?", [(message_key, sha256) for sha256 in gone]
    )
    connection.executemany(
        "DELETE FROM blobs WHERE sha256 = ?1 AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE sha256 = ?1)",
        [(sha256,) for sha256 in gone],
    )
    save_blobs(connection, [(blob, message_key) for blob in found])


def _smallest(data: bytes) -> tuple[bool, bytes]:
    """Compressed when that helps (text), as it is when not (most images)."""
    packed = zstd.compress(data)
    return (True, packed) if len(packed) < len(data) * 0.9 else (False, data)
