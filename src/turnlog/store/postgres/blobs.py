"""Blobs of stores that many people push to: bytes are shown to who has sent them, and to who may read his messages."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from turnlog.errors import NotFoundError
from turnlog.store.external_content import smallest
from turnlog.store.postgres.dialect import SCHEMA, TEAM

if TYPE_CHECKING:
    from turnlog.store.connection import Connection
    from turnlog.store.postgres.connection import TeamConnection

_GARBAGE: Final = f"{SCHEMA}.blob_garbage WHERE {TEAM} = $1"


def missing_blobs(connection: Connection, owner: str, most: int, after: str) -> list[tuple[str, int]]:
    """SHA-256 and size of blobs to which messages of this owner refer, and whose bytes he has not sent, in order."""
    rows = connection.execute(
        "SELECT sha256, max(size) FROM blob_claims WHERE owner = ? AND sha256 > ? GROUP BY sha256"
        " ORDER BY sha256 LIMIT ?",
        (owner, bytes.fromhex(after), most),
    )
    return [(bytes(sha256).hex(), size) for sha256, size in rows]


def claimed_size(connection: Connection | TeamConnection, owner: str, sha256: str) -> int:
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


def check_hash(sha256: str, data: bytes) -> None:
    """Raises ValueError if these bytes have another SHA-256."""
    digest = hashlib.sha256(data).hexdigest()
    if digest != sha256:
        raise ValueError(f"these bytes have the SHA-256 {digest}, and not {sha256}")


def _has_claims(connection: TeamConnection, owner: str, sha256: str) -> bool:
    row = (owner, bytes.fromhex(sha256))
    return connection.execute("SELECT 1 FROM blob_claims WHERE owner = ? AND sha256 = ?", row).fetchone() is not None


def announce(connection: TeamConnection, owner: str, sha256: str) -> None:
    """Note that bytes are about to be written beside the database; nothing if no message of this owner asks for them.

    The caller commits it before `save_outside`: whatever happens then, what no row of a blob names is garbage.
    """
    if _has_claims(connection, owner, sha256):
        connection.run(
            f"INSERT INTO {SCHEMA}.blob_garbage ({TEAM}, sha256) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            (connection.team, bytes.fromhex(sha256)),
        )


def save_outside(
    connection: TeamConnection, owner: str, sha256: str, data: bytes, keep: Callable[[bytes], None]
) -> bool:
    """Keep bytes that were announced: `keep` writes them beside the database. False if they are to be announced again.

    Raises NotFoundError if no message of this owner refers to them.
    """
    if not _has_claims(connection, owner, sha256):
        # Also if it is named here now: who forgets it just then relies on the mark.
        claimed_size(connection, owner, sha256)
        return True
    # Whoever deletes these bytes has locked this row: they are written after that, and stay.
    row = (connection.team, bytes.fromhex(sha256))
    if not connection.read(f"SELECT 1 FROM {_GARBAGE} AND sha256 = $2 FOR UPDATE", row):
        return False
    keep(data)
    # Others delete blobs meanwhile. It may take seconds until here, for which nobody has to wait.
    connection.wait_for_writers()
    save_blob(connection, owner, sha256, data, is_outside=True)
    connection.execute(
        "DELETE FROM blob_garbage WHERE sha256 = ?1"
        " AND EXISTS (SELECT 1 FROM blobs b WHERE b.sha256 = ?1 AND b.outside = 1)",
        (bytes.fromhex(sha256),),
    )
    return True


def save_blob(connection: TeamConnection, owner: str, sha256: str, data: bytes, *, is_outside: bool = False) -> None:
    """Keep the bytes of a blob for messages of this owner, or only its row where its bytes are beside the database.

    The caller keeps other writers waiting. Raises NotFoundError if no message of this owner refers to it.
    """
    digest = bytes.fromhex(sha256)
    claims = connection.execute(
        "SELECT message_key, media_type FROM blob_claims WHERE owner = ? AND sha256 = ?", (owner, digest)
    ).fetchall()
    if not claims:
        claimed_size(connection, owner, sha256)
        return
    compressed, kept = smallest(b"" if is_outside else data)
    connection.execute(
        "INSERT OR IGNORE INTO blobs (sha256, size, media_type, compressed, data, outside) VALUES (?, ?, ?, ?, ?, ?)",
        (digest, len(data), claims[0][1], compressed, kept, is_outside),
    )
    connection.execute("INSERT OR IGNORE INTO blob_holders (sha256, owner) VALUES (?, ?)", (digest, owner))
    connection.execute("DELETE FROM blob_claims WHERE owner = ? AND sha256 = ?", (owner, digest))
    connection.executemany(
        "INSERT OR IGNORE INTO blob_uses (sha256, message_key) VALUES (?, ?)",
        [(digest, message_key) for message_key, _ in claims],
    )
    _touch(connection, [message_key for message_key, _ in claims])


def _touch(connection: TeamConnection, keys: Sequence[int]) -> None:
    """Let readers of changes see that the messages are whole now."""
    rows = connection.execute(
        "SELECT DISTINCT session_key FROM memberships WHERE message_key IN (SELECT value FROM json_each(?))",
        (json.dumps(keys),),
    ).fetchall()
    now = int(time.time() * 1000)
    for (session_key,) in sorted(rows):
        ((number,),) = connection.execute(
            "INSERT INTO changes (session_key, kind, at) VALUES (?, 'session', ?) RETURNING seq", (session_key, now)
        )
        connection.execute(
            "UPDATE messages SET changed_seq = ? WHERE key IN (SELECT value FROM json_each(?))",
            (number, json.dumps(keys)),
        )


def drop_garbage(connection: TeamConnection, delete: Callable[[str], None]) -> bool:
    """Delete the bytes beside the database of one blob that no message names any more; whether there was one.

    The caller owns the transaction, which keeps others from writing the same blob meanwhile. What somebody is writing
    just now is left to the next time.
    """
    rows = connection.read(f"SELECT sha256 FROM {_GARBAGE} LIMIT 1 FOR UPDATE SKIP LOCKED", (connection.team,))
    if not rows:
        return False
    row = (connection.team, bytes(rows[0][0]))
    # Locked, so that nobody deletes this one before its mark here is gone, which is then made anew.
    is_named = f"SELECT 1 FROM {SCHEMA}.blobs WHERE {TEAM} = $1 AND sha256 = $2 AND outside = 1 FOR UPDATE"
    if not connection.read(is_named, row):
        delete(row[1].hex())
    connection.run(f"DELETE FROM {_GARBAGE} AND sha256 = $2", row)
    return True
