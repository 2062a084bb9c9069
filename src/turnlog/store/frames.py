"""Where message bodies lie: in zstd frames beside the messages, those of neighbours together.

Neighbours compress a sixth better together, and rows without bodies are small: what looks at many messages reads
little. A frame holds bodies joined by commas; a row holds frames, one behind the other, since rows of the size of a
frame would leave a quarter of their pages empty. What is in a row is of one session, of messages with consecutive keys,
lies under the key of the first, and is never changed. A body that is written again stands alone, in a row under the
negative key of its message. So all that a message ever said lies in two rows, and can be taken away (`drop_bodies`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from turnlog.errors import StoreError
from turnlog.store import zstd

FRAME_SIZE = 16 << 10
"""Bytes of JSON after which a frame is full: larger ones are smaller in sum, and take longer to read one body from."""

ROW_SIZE = 256 << 10
"""Bytes of JSON in a row, at most: a row of fewer leaves more of its last page empty."""

MOST_TOGETHER = 256
"""Bodies in a row, at most."""

PLACE_COLUMNS = ("frame_key", "frame_start", "frame_size", "body_start", "body_size")
"""Of `messages`: a `BodyPlace`."""

BODY_COLUMNS = ", ".join([f"m.{name}" for name in PLACE_COLUMNS])
"""`PLACE_COLUMNS` of a message `m`."""

PLACE = slice(-len(PLACE_COLUMNS), None)
"""Where `BODY_COLUMNS` stand in a row of a query that asks for them last."""


_Place: TypeAlias = tuple[int, int, int, int, int]
"""A `BodyPlace` as a row has it."""


class BodyPlace(NamedTuple):
    """A frame and what of it a body is."""

    frame_key: int
    """Key of the row."""
    frame_start: int
    frame_size: int
    """Bytes of the row's data."""
    body_start: int
    body_size: int
    """Bytes of what the frame unpacks to."""


class FramePacker:
    """Puts bodies of new messages together, in the order of their keys."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int]] = []
        self._frames: list[list[bytes]] = []
        self._bodies: list[tuple[int, int, int, int]] = []
        self._session_key = 0
        self._next_key: int = 0
        self._frame_size = self._row_size = 0

    def add(self, session_key: int, key: int, body: bytes) -> None:
        """Take the body of a message of a session."""
        size = len(body)
        # `drop_bodies` finds all that a message ever said by its key alone: a row holds one session's messages, without
        # a gap between their keys, and no more than `MOST_TOGETHER`.
        follows = session_key == self._session_key and key == self._next_key
        if not follows or self._row_size + size > ROW_SIZE or key - self._rows[-1][0] >= MOST_TOGETHER:
            self._rows.append((key, len(self._frames)))
            self._frames.append([])
            self._frame_size = self._row_size = 0
        elif self._frame_size + size > FRAME_SIZE:
            self._frames.append([])
            self._frame_size = 0
        self._bodies.append((self._rows[-1][0], len(self._frames) - 1, self._frame_size, size))
        self._frames[-1].append(body)
        # One more for the comma: bodies of a frame are a piece of a JSON list.
        self._frame_size += size + 1
        self._row_size += size + 1
        self._session_key, self._next_key = session_key, key + 1

    def take(self) -> PackedFrames:
        """What was added, complete now: nothing is added to it any more."""
        taken = PackedFrames(self._rows, [b",".join(bodies) for bodies in self._frames], self._bodies)
        self._rows, self._frames, self._bodies = [], [], []
        self._next_key = 0
        return taken


class PackedFrames(NamedTuple):
    """Bodies that were put together, to be compressed."""

    rows: list[tuple[int, int]]
    """Key of each row, and the number of its first frame."""
    texts: list[bytes]
    """The JSON of each frame."""
    bodies: list[tuple[int, int, int, int]]
    """Of each body: key of its row, number of its frame, where it begins in its JSON, its size."""

    def save(self, connection: sqlite3.Connection, frames: zstd.Frames) -> list[BodyPlace]:
        """Write the rows, of the compressed texts; return where each body lies, in the order in which they came."""
        ends = [first for _, first in self.rows[1:]] + [len(frames)]
        rows: list[tuple[int, bytes]] = []
        places: list[tuple[int, int]] = []
        for (key, first), end in zip(self.rows, ends, strict=True):
            pieces = [frames[number].tobytes() for number in range(first, end)]
            sizes = [len(piece) for piece in pieces]
            places += zip(accumulate(sizes, initial=0), sizes, strict=False)
            rows.append((key, b"".join(pieces)))
        connection.executemany("INSERT INTO frames (key, data) VALUES (?, ?)", rows)
        return [BodyPlace(key, *places[number], start, size) for key, number, start, size in self.bodies]


class BodyReader:
    """Reads bodies as they are stored (see `external_content`), from one snapshot or inside one transaction.

    A body in the frame that the last one came from costs no unpacking: read neighbours one after the other.
    """

    def __init__(self, connection: sqlite3.Connection, database: str = "main") -> None:
        """`database` is the name that the connection has for the store."""
        self._connection = connection
        self._database = database
        self._frame = (0, 0)
        self._bodies = b""

    def __call__(self, frame_key: int, frame_start: int, frame_size: int, body_start: int, body_size: int) -> bytes:
        """The JSON of a body, by its `BodyPlace`; raise StoreError when it is not there."""
        if (frame_key, frame_start) != self._frame:
            self._bodies = zstd.decompress(self._load(frame_key, frame_start, frame_size))
            # What stands alone may be written again in the same transaction.
            self._frame = max(frame_key, 0), frame_start
        return self._bodies[body_start : body_start + body_size]

    def of(self, message_key: int) -> bytes:
        """The JSON of the body of the message with this key."""
        row = self._connection.execute(
            f"SELECT {BODY_COLUMNS} FROM messages m WHERE m.key = ?", (message_key,)
        ).fetchone()
        return self(*row)

    def _load(self, key: int, start: int, size: int) -> bytes:
        """A frame, without the rest of its row."""
        # A row has up to 256 KB of JSON in it; SQLite reads of a blob only the pages that are asked for.
        try:
            with self._connection.blobopen("frames", "data", key, readonly=True, name=self._database) as row:
                row.seek(start)
                return row.read(size)
        except sqlite3.OperationalError:
            # A row that is not there and a file that cannot be read are the same class of error.
            if self._connection.execute("SELECT 1 FROM frames WHERE key = ?", (key,)).fetchone() is None:
                raise _lost(key) from None
            raise


def load_frames(connection: sqlite3.Connection, places: Sequence[_Place]) -> list[bytes]:
    """Bodies in their order, by their `BodyPlace`s, as few zstd frames: one holds one body or more, joined by commas.

    A frame whose bodies are all wanted, one after the other, is taken as it is. Raises StoreError when one is missing.
    """
    keys = {place[0] for place in places}
    stored: dict[int, bytes] = dict(
        connection.execute(f"SELECT key, data FROM frames WHERE key IN ({','.join(map(str, keys))})").fetchall()
    )
    if missing := keys - stored.keys():
        raise _lost(min(missing))
    found: list[bytes] = []
    for key, start, size, first, end in _stretches(places):
        frame = stored[key][start : start + size]
        # Only where a window begins or ends inside of a frame is it unpacked, and the rest packed again.
        whole = first == 0 and end == zstd.content_size(frame)
        found.append(frame if whole else zstd.compress(zstd.decompress(frame)[first:end]))
    return found


def _stretches(places: Sequence[_Place]) -> list[tuple[int, int, int, int, int]]:
    """What lies together in one frame, a comma apart: its frame (key, start, size), and from where to where in it."""
    found: list[tuple[int, int, int, int, int]] = []
    key = start = size = first = end = -1
    for body in places:
        if body[0] == key and body[1] == start and body[3] == end + 1:
            end += 1 + body[4]
            continue
        if end >= 0:
            found.append((key, start, size, first, end))
        key, start, size, first, length = body
        end = first + length
    return [*found, (key, start, size, first, end)] if places else []


def _lost(frame_key: int) -> StoreError:
    return StoreError(f"the store is damaged: there is no frame {frame_key}")


def save_alone(connection: sqlite3.Connection, message_key: int, body: bytes, known_in: int) -> BodyPlace:
    """Store the body that a stored message has now; return where, for its row in `messages`.

    The row that it was in goes when nobody else's body is in it.
    """
    frame = zstd.compress(body)
    connection.execute("INSERT OR REPLACE INTO frames (key, data) VALUES (?, ?)", (-message_key, frame))
    if known_in > 0 and not _others_in(connection, known_in, (message_key,)):
        connection.execute("DELETE FROM frames WHERE key = ?", (known_in,))
    return BodyPlace(-message_key, 0, len(frame), 0, len(body))


def drop_bodies(connection: sqlite3.Connection, message_keys: Collection[int]) -> None:
    """Take away all that these messages ever said; the rows of the messages are going or gone."""
    gone = set(message_keys)
    connection.executemany("DELETE FROM frames WHERE key = ?", [(-key,) for key in gone])
    shared = {_row_around(connection, key) for key in gone} - {None}
    read = BodyReader(connection)
    for frame_key in shared:
        assert frame_key is not None
        for key, *place in _others_in(connection, frame_key, gone):
            alone = save_alone(connection, key, read(*place), 0)
            connection.execute(f"UPDATE messages SET {' = ?, '.join(PLACE_COLUMNS)} = ? WHERE key = ?", (*alone, key))
        connection.execute("DELETE FROM frames WHERE key = ?", (frame_key,))


def _row_around(connection: sqlite3.Connection, message_key: int) -> int | None:
    """The only row of several bodies that can ever have held this message's."""
    row = connection.execute(
        "SELECT key FROM frames WHERE key > max(0, ?1 - ?2) AND key <= ?1 ORDER BY key DESC LIMIT 1",
        (message_key, MOST_TOGETHER),
    ).fetchone()
    return row[0] if row else None


def _others_in(connection: sqlite3.Connection, frame_key: int, message_keys: Collection[int]) -> list[tuple[int, ...]]:
    """Key and place of the bodies in a row that are of other messages than these."""
    rows = connection.execute(
        f"SELECT m.key, {BODY_COLUMNS} FROM messages m WHERE m.key >= ?1 AND m.key < ?1 + ?2 AND m.frame_key = ?1",
        (frame_key, MOST_TOGETHER),
    )
    return [row for row in rows.fetchall() if row[0] not in message_keys]
