"""Contents outside of message bodies: texts in the archived log, blobs, and spilled outputs.

Signatures and encrypted reasoning are base64, which does not compress, and up to a fifth of a log. A stored body refers
to their place in the archive instead: `{"$archived":[source,generation,offset,length]}`. `WholeBodies` puts the text
back; only a window, which passes on stored bytes, contains the places. The table `archived_texts` says which messages
refer to which sources: before a source is deleted, their bodies are made whole.
"""

from __future__ import annotations

import hashlib
import logging
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from turnlog.agents.changes import RecordRef
from turnlog.errors import DamagedError, NotFoundError
from turnlog.model import BlobRef, Message
from turnlog.store import bodies, zstd
from turnlog.store.archive import Archive, RecordReader
from turnlog.store.frames import BODY_COLUMNS, PLACE_COLUMNS, BodyReader, save_alone
from turnlog.store.values import BlobContent

_log = logging.getLogger(__name__)

SHORTEST = 256
"""Texts with fewer characters stay in the body: a place takes about ten bytes, and reading it a millisecond."""

_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_="
"""Characters that JSON never escapes and that occur in no other token of JSON."""

_BEGINNING = 64
"""Characters of a text that are searched for."""

_MARK = b'"$archived":['
_PLACE = re.compile(rb'\{( *)"\$archived":\[(\d+),(\d+),(\d+),(\d+)\]\}')
"""A place in stored JSON. If a log contains this form itself, it is stored with one more space."""


class WholeBodies:
    """Reads bodies with all their texts. Reading neighbours one after the other is cheap."""

    def __init__(self, connection: sqlite3.Connection, archive: Archive | None = None) -> None:
        """`archive` is that of the current transaction when called by a writer."""
        self._read = BodyReader(connection)
        self._archive = RecordReader(archive or Archive(connection))

    def __call__(self, frame_key: int, frame_start: int, frame_size: int, body_start: int, body_size: int) -> bytes:
        """The JSON of a body, by its `BodyPlace`. Raises StoreError if it does not exist."""
        return self.whole(self._read(frame_key, frame_start, frame_size, body_start, body_size))

    def whole(self, body: bytes) -> bytes:
        """Replace all places in a stored body by their texts: the inverse of `leave_out`."""
        return _PLACE.sub(self._text, body) if _MARK in body else body

    def places(self, body: bytes) -> dict[bytes, bytes]:
        """Text -> place, for the texts that a stored body leaves out."""
        return {self._text(place)[1:-1]: place[0] for place in _named_in(body)}

    def _text(self, place: re.Match[bytes]) -> bytes:
        if place[1]:
            return b"{" + place[0][2:]
        source_key, generation, offset, length = map(int, place.groups()[1:])
        text = self._archive.read(source_key, generation, offset, length)
        if len(text) != length:
            raise DamagedError(f"the store is damaged: {length} bytes at {offset} of source {source_key} are not there")
        return b'"%b"' % text


class Feed(NamedTuple):
    """Bytes of a log that are being read, and their place in the archive."""

    source_key: int
    generation: int
    offset: int
    data: bytes

    def places(self, message: Message, records: Collection[RecordRef]) -> dict[bytes, bytes]:
        """Text -> place, for the long provider texts of a message that its records in this feed contain."""
        found: dict[bytes, bytes] = {}
        for part in message.parts:
            if part.provider is not None:
                for text in _long_texts(part.provider.opaque):
                    at = self._find(text, records)
                    if at >= 0:
                        found[text] = _place(self.source_key, self.generation, at, len(text))
        return found

    def _find(self, text: bytes, records: Iterable[RecordRef]) -> int:
        """The offset of a text within these records; -1 if they do not contain it."""
        for offset, length, _ in records:
            start = offset - self.offset
            if start >= 0 and (at := self.data.find(text, start, start + length)) >= 0:
                return self.offset + at
        return -1


def leave_out(body: bytes, places: Mapping[bytes, bytes]) -> bytes:
    """The JSON of a body with places instead of the texts that have one."""
    # Look for one character first: this runs for every body.
    if b"$" in body and _MARK in body:
        body = _PLACE.sub(lambda found: b"{ " + found[0][1:], body)
    for text, place in places.items():
        # The match must be the value of an object; a place as a key would be invalid JSON.
        value = b':"%b"' % text
        # Finding a short text takes half the time of a long one.
        begin = value[:_BEGINNING]
        at = body.find(begin)
        while at >= 0:
            if body.startswith(value, at):
                body = b"%b:%b%b" % (body[:at], place, body[at + len(value) :])
            at = body.find(begin, at + 1)
    return body


def note_uses(connection: sqlite3.Connection, message_key: int, body: bytes) -> None:
    """Note which places the stored body of a message contains now."""
    connection.execute("DELETE FROM archived_texts WHERE message_key = ?", (message_key,))
    sources = {int(place[2]) for place in _named_in(body)}
    save_uses(connection, [(message_key, source_key) for source_key in sorted(sources)])


def save_uses(connection: sqlite3.Connection, uses: Iterable[tuple[int, int]]) -> None:
    """Write which messages refer to places in which sources, given their keys."""
    connection.executemany("INSERT INTO archived_texts (message_key, source_key) VALUES (?, ?)", uses)


def make_whole(connection: sqlite3.Connection, source_keys: Collection[int], gone: Collection[int]) -> None:
    """Rewrite the bodies that refer to these sources, except those of messages that are deleted with them."""
    named = connection.execute(
        f"SELECT DISTINCT u.message_key, {BODY_COLUMNS} FROM archived_texts u JOIN messages m ON m.key = u.message_key"
        f" WHERE u.source_key IN ({','.join(map(str, source_keys))})"
    ).fetchall()
    bodies = WholeBodies(connection)
    going = set(gone)
    for key, *place in named:
        if key not in going:
            body = leave_out(bodies(*place), {})
            alone = save_alone(connection, key, body, place[0])
            connection.execute(f"UPDATE messages SET {' = ?, '.join(PLACE_COLUMNS)} = ? WHERE key = ?", (*alone, key))
            note_uses(connection, key, body)


def _named_in(body: bytes) -> list[re.Match[bytes]]:
    """The places in a stored body."""
    return [found for found in _PLACE.finditer(body) if not found[1]] if _MARK in body else []


def _place(source_key: int, generation: int, offset: int, length: int) -> bytes:
    return b'{"$archived":[%d,%d,%d,%d]}' % (source_key, generation, offset, length)


def _long_texts(fields: dict[str, Any]) -> Iterator[bytes]:
    """The texts in a JSON object, nested ones included, that are long enough and contain only safe characters."""
    for value in fields.values():
        if isinstance(value, str):
            if len(value) >= SHORTEST and value.isascii() and not (text := value.encode()).translate(None, _BASE64):
                yield text
            continue
        for inner in cast("list[Any]", value) if isinstance(value, list) else (value,):
            if isinstance(inner, dict):
                yield from _long_texts(cast("dict[str, Any]", inner))


def load_blob(connection: sqlite3.Connection, sha256: str) -> BlobContent:
    """A blob, given the hexadecimal SHA-256 of its bytes. Raises NotFoundError if it is not stored."""
    try:
        digest = bytes.fromhex(sha256)
    except ValueError as error:
        raise NotFoundError(f"{sha256!r} is no SHA-256") from error
    row = connection.execute(
        "SELECT compressed, data, media_type, size FROM blobs WHERE sha256 = ?", (digest,)
    ).fetchone()
    if row is None:
        raise NotFoundError(f"the store holds no blob {sha256}")
    compressed, data, media_type, size = row
    if size and not data:
        data = load_outside(connection, sha256)
    return BlobContent(zstd.decompress(data) if compressed else data, media_type)


def load_outside(connection: sqlite3.Connection, sha256: str) -> bytes:
    """The bytes of a blob that is kept beside the database, which only PostgreSQL's connections may have.

    Raises NotFoundError if they are not there, or others are: somebody has changed the files or the bucket.
    """
    load: Callable[[str], bytes] | None = getattr(connection, "load_outside", None)
    if load is None:
        raise NotFoundError(f"the store holds no bytes of blob {sha256}")
    data = load(sha256)
    if hashlib.sha256(data).hexdigest() != sha256:
        _log.error("the bytes that are kept as blob %s are others: it is to be restored from a backup", sha256)
        raise NotFoundError(f"the bytes of blob {sha256} are damaged")
    return data


class BlobLoader:
    """Loads the blobs of messages for `bodies.resolve`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __call__(self, reference: BlobRef) -> bytes:
        """The bytes of a reference."""
        return load_blob(self._connection, reference.sha256).data


def load_spill(connection: sqlite3.Connection, session_id: str, name: str) -> bytes:
    """The whole of a spilled output, from the archive. Raises NotFoundError if it is not there."""
    row = connection.execute(
        "SELECT f.key, f.generation FROM spills p JOIN sources f ON f.key = p.source_key"
        " WHERE p.session_id = ? AND p.name = ?",
        (session_id, name),
    ).fetchone()
    if row is None:
        raise NotFoundError(f"session {session_id} has no output file {name}")
    return b"".join(Archive(connection).iter_bytes(*row))


def save_blobs(connection: sqlite3.Connection, found: Sequence[tuple[bodies.ExternalContent, int]]) -> None:
    """Write contents, each with the key of a message that refers to it."""
    for blob, message_key in found:
        known = connection.execute("SELECT 1 FROM blobs WHERE sha256 = ?", (blob.sha256,)).fetchone()
        if known is None:
            if blob.is_large:
                _save_large(connection, blob)
            else:
                data = b"".join(blob.pieces())
                row = (blob.sha256, blob.size, blob.media_type, *smallest(data))
                connection.execute(_BLOB_INSERT.format("?"), row)
        connection.execute(
            "INSERT OR IGNORE INTO blob_uses (sha256, message_key) VALUES (?, ?)", (blob.sha256, message_key)
        )


def replace_blobs(connection: sqlite3.Connection, message_key: int, found: Sequence[bodies.ExternalContent]) -> None:
    """Set the large contents of a message, and delete those that no message refers to any more."""
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


_BLOB_INSERT = "INSERT INTO blobs (sha256, size, media_type, compressed, data) VALUES (?, ?, ?, ?, {})"


def _save_large(connection: sqlite3.Connection, blob: bodies.ExternalContent) -> None:
    """Write a large content in pieces: a statement would make two more copies of it."""
    packed = zstd.compress_in_pieces(blob.pieces(), blob.size)
    packed_size = sum(map(len, packed))
    is_compressed = _helps(packed_size, blob.size)
    row = (blob.sha256, blob.size, blob.media_type, is_compressed, packed_size if is_compressed else blob.size)
    key = connection.execute(_BLOB_INSERT.format("zeroblob(?)"), row).lastrowid
    assert key is not None
    with connection.blobopen("blobs", "data", key) as written:
        for piece in packed if is_compressed else blob.pieces():
            written.write(piece)


def smallest(data: bytes) -> tuple[bool, bytes]:
    """Compressed if that makes it smaller (text), otherwise unchanged (most images)."""
    packed = zstd.compress(data)
    return (True, packed) if _helps(len(packed), len(data)) else (False, data)


def _helps(packed_size: int, size: int) -> bool:
    return packed_size < size * 0.9
