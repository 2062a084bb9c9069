"""Blobs of stores that many people push to: bytes are shown to who has sent them, and to who may read his messages."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from turnlog.errors import NotFoundError
from turnlog.store.external_content import smallest

if TYPE_CHECKING:
    from turnlog.store.connection import Connection


def missing_blobs(connection: Connection, owner: str, most: int) -> list[tuple[str, int]]:
    """SHA-256 and size of blobs to which messages of this owner refer, and whose bytes he has not sent."""
    rows = connection.execute(
        "SELECT DISTINCT sha256, size FROM blob_claims WHERE owner = ? ORDER BY sha256 LIMIT ?", (owner, most)
    )
    return [(bytes(sha256).hex(), size) for sha256, size in rows]


def claimed_size(connection: Connection, owner: str, sha256: str) -> int:
    """The size that messages of this owner say of a blob. Raises NotFoundError if none refers to it."""
    row = connection.execute(
        "SELECT max(size) FROM (SELECT size FROM blob_claims WHERE owner = ? AND sha256 = ?"
        " UNION ALL SELECT b.size FROM blobs b JOIN blob_holders h ON h.sha256 = b.sha256"
        " WHERE h.owner = ? AND b.sha256 = ?)",
        (owner, bytes.fromhex(sha256), owner, bytes.fromhex(sha256)),
    ).fetchone()
    if row is None or row[0] is None:
        raise NotFoundError(f"no message refers to a blob {sha256}")
    return row[0]


def save_blob(
    connection: Connection, owner: str, sha256: str, data: bytes, keep: Callable[[bytes], None] | None
) -> None:
    """Keep the bytes of a blob for messages of this owner. `keep` writes them outside of the database.

    Raises NotFoundError if no message refers to it, ValueError if the bytes have another hash.
    """
    digest = hashlib.sha256(data)
    if digest.hexdigest() != sha256:
        raise ValueError(f"these bytes have the SHA-256 {digest.hexdigest()}, and not {sha256}")
    claims = connection.execute(
        "SELECT message_key, media_type FROM blob_claims WHERE owner = ? AND sha256 = ?", (owner, digest.digest())
    ).fetchall()
    if not claims:
        claimed_size(connection, owner, sha256)
        return
    if keep is not None:
        # Whoever deletes the bytes of one that was forgotten keeps its row: they are written after that, or stay.
        connection.execute("DELETE FROM blob_garbage WHERE sha256 = ?", (digest.digest(),))
        keep(data)
    compressed, kept = smallest(b"" if keep is not None else data)
    connection.execute(
        "INSERT OR IGNORE INTO blobs (sha256, size, media_type, compressed, data, outside) VALUES (?, ?, ?, ?, ?, ?)",
        (digest.digest(), len(data), claims[0][1], compressed, kept, keep is not None),
    )
    connection.execute("INSERT OR IGNORE INTO blob_holders (sha256, owner) VALUES (?, ?)", (digest.digest(), owner))
    connection.execute("DELETE FROM blob_claims WHERE owner = ? AND sha256 = ?", (owner, digest.digest()))
    connection.executemany(
        "INSERT OR IGNORE INTO blob_uses (sha256, message_key) VALUES (?, ?)",
        [(digest.digest(), message_key) for message_key, _ in claims],
    )
    _touch(connection, [message_key for message_key, _ in claims])


def _touch(connection: Connection, keys: Sequence[int]) -> None:
    """Let readers of changes see that the messages are whole now."""
    rows = connection.execute(
        "SELECT DISTINCT session_key FROM memberships WHERE message_key IN (SELECT value FROM json_each(?))",
        (json.dumps(keys),),
    ).fetchall()
    now = int(time.time() * 1000)
    for (session_key,) in sorted(rows):
        (number,) = connection.execute(
            "INSERT INTO changes (session_key, kind, at) VALUES (?, 'session', ?) RETURNING seq", (session_key, now)
        ).fetchone()
        connection.execute(
            "UPDATE messages SET changed_seq = ? WHERE key IN (SELECT value FROM json_each(?))",
            (number, json.dumps(keys)),
        )


def drop_garbage(connection: Connection, delete: Callable[[str], None]) -> bool:
    """Delete the bytes beside the database of one blob that no message names any more; whether there was one.

    The caller owns the transaction, which keeps others from writing the same blob meanwhile.
    """
    connection.execute(
        "DELETE FROM blob_garbage WHERE EXISTS (SELECT 1 FROM blobs b WHERE b.sha256 = blob_garbage.sha256)"
    )
    row = connection.execute(
        "UPDATE blob_garbage SET sha256 = sha256 WHERE sha256 IN (SELECT sha256 FROM blob_garbage LIMIT 1)"
        " RETURNING sha256"
    ).fetchone()
    if row is None:
        return False
    delete(bytes(row[0]).hex())
    connection.execute("DELETE FROM blob_garbage WHERE sha256 = ?", (bytes(row[0]),))
    return True
