"""Contents outside of message bodies: texts that stand in the archived log, blobs, outputs in files of their own.

What only a provider can read (signatures, encrypted reasoning) is base64, which does not compress, and up to a fifth of
a log. In a stored body a place in the archive stands for it: `{"$archived":[source,generation,offset,length]}`. Who
reads a body gets the text back (`WholeBodies`); only what is handed on as it is stored, a window, has the place. The
table `archived_texts` knows which messages name which sources: bodies are made whole before a source goes.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from turnlog.agents.changes import RecordRef
from turnlog.errors import NotFoundError, StoreError
from turnlog.model import BlobRef, Message
from turnlog.store import bodies, zstd
from turnlog.store.archive import Archive, RecordReader
from turnlog.store.frames import BODY_COLUMNS, PLACE_COLUMNS, BodyReader, save_alone
from turnlog.store.values import BlobContent

SHORTEST = 256
"""Characters from which on a text is left out: a place takes about ten bytes, a frame of the archive a millisecond."""

_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_="
"""Letters that stand for themselves in JSON, and that no other token of JSON can be mistaken for."""

_BEGINNING = 64
"""Letters of a text that are looked for."""

_MARK = b'"$archived":['
_PLACE = re.compile(rb'\{( *)"\$archived":\[(\d+),(\d+),(\d+),(\d+)\]\}')
"""A place. What a log itself says in these words has a blank more than it had."""


class WholeBodies:
    """Reads bodies as messages say them. Neighbours cost little."""

    def __init__(self, connection: sqlite3.Connection, archive: Archive | None = None) -> None:
        """`archive` is that of the transaction, where one is being written."""
        self._read = BodyReader(connection)
        self._archive = RecordReader(archive or Archive(connection))

    def __call__(self, frame_key: int, frame_start: int, frame_size: int, body_start: int, body_size: int) -> bytes:
        """The JSON of a body, by its `BodyPlace`; raise StoreError when it is not there."""
        return self.whole(self._read(frame_key, frame_start, frame_size, body_start, body_size))

    def whole(self, body: bytes) -> bytes:
        """A stored body with every text where its place is: the inverse of `leave_out`."""
        return _PLACE.sub(self._text, body) if _MARK in body else body

    def places(self, body: bytes) -> dict[bytes, bytes]:
        """Text -> place of what a stored body leaves out."""
        return {self._text(place)[1:-1]: place[0] for place in _named_in(body)}

    def _text(self, place: re.Match[bytes]) -> bytes:
        if place[1]:
            return b"{" + place[0][2:]
        source_key, generation, offset, length = map(int, place.groups()[1:])
        text = self._archive.read(source_key, generation, offset, length)
        if len(text) != length:
            raise StoreError(f"the store is damaged: {length} bytes at {offset} of source {source_key} are not there")
        return b'"%b"' % text


class Feed(NamedTuple):
    """Bytes of a log that are being read, and where in the archive they are."""

    source_key: int
    generation: int
    offset: int
    data: bytes

    def places(self, message: Message, records: Collection[RecordRef]) -> dict[bytes, bytes]:
        """Text -> place of the long texts of a message's providers, as far as they stand in its records here."""
        found: dict[bytes, bytes] = {}
        for part in message.parts:
            if part.provider is not None:
                for text in _long_texts(part.provider.opaque):
                    at = self._find(text, records)
                    if at >= 0:
                        found[text] = _place(self.source_key, self.generation, at, len(text))
        return found

    def _find(self, text: bytes, records: Iterable[RecordRef]) -> int:
        """Where a text stands in the log; -1 where it does not stand in these records."""
        for offset, length, _ in records:
            start = offset - self.offset
            if start >= 0 and (at := self.data.find(text, start, start + length)) >= 0:
                return self.offset + at
        return -1


def leave_out(body: bytes, places: Mapping[bytes, bytes]) -> bytes:
    """The JSON of a body as it is stored: places instead of the texts for which there are any."""
    # One letter first: this is asked of every body.
    if b"$" in body and _MARK in body:
        body = _PLACE.sub(lambda found: b"{ " + found[0][1:], body)
    for text, place in places.items():
        # A value of an object, never a key: that would be no JSON.
        value = b':"%b"' % text
        # A short text is found in half the time of a long one.
        begin = value[:_BEGINNING]
        at = body.find(begin)
        while at >= 0:
            if body.startswith(value, at):
                body = b"%b:%b%b" % (body[:at], place, body[at + len(value) :])
            at = body.find(begin, at + 1)
    return body


def note_uses(connection: sqlite3.Connection, message_key: int, body: bytes) -> None:
    """The stored body of a message is this now."""
    connection.execute("DELETE FROM archived_texts WHERE message_key = ?", (message_key,))
    sources = {int(place[2]) for place in _named_in(body)}
    save_uses(connection, [(message_key, source_key) for source_key in sorted(sources)])


def save_uses(connection: sqlite3.Connection, uses: Iterable[tuple[int, int]]) -> None:
    """Write which messages name places in which sources, as keys."""
    connection.executemany("INSERT INTO archived_texts (message_key, source_key) VALUES (?, ?)", uses)


def make_whole(connection: sqlite3.Connection, source_keys: Collection[int], gone: Collection[int]) -> None:
    """Let no body need these sources, but for messages that go with them."""
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
    """The texts in a JSON object, and in those below it, that are long enough and of letters that are safe."""
    for value in fields.values():
        if isinstance(value, str):
            if len(value) >= SHORTEST and value.isascii() and not (text := value.encode()).translate(None, _BASE64):
                yield text
            continue
        for inner in cast("list[Any]", value) if isinstance(value, list) else (value,):
            if isinstance(inner, dict):
                yield from _long_texts(cast("dict[str, Any]", inner))


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


def save_blobs(connection: sqlite3.Connection, found: Sequence[tuple[bodies.ExternalContent, int]]) -> None:
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


def replace_blobs(connection: sqlite3.Connection, message_key: int, found: Sequence[bodies.ExternalContent]) -> None:
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
