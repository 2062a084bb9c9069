"""Message bodies in zstd frames, several neighbours in one frame.

Neighbours compress a sixth better together, and message rows without bodies stay small, so queries over many messages
read little. A frame contains bodies joined by commas. A row contains several frames, because rows of the size of one
frame would leave a quarter of their pages empty. The bodies in a row belong to one session and to messages with
consecutive keys; the row has the key of the first and never changes. A body that is written again gets a row of its
own, under the negative key of its message. So everything that a message ever contained is in at most two rows and can
be deleted (`drop_bodies`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from turnlog.errors import DamagedError
from turnlog.store import zstd

FRAME_SIZE = 16 << 10
"""Bytes of JSON at which a frame is full: larger frames compress better, but take longer to read one body from."""

ROW_SIZE = 256 << 10
"""Maximum bytes of JSON in a row: smaller rows waste more of their last page."""

MOST_TOGETHER = 256
"""Maximum number of bodies in a row."""

PLACE_COLUMNS = ("frame_key", "frame_start", "frame_size", "body_start", "body_size")
"""The columns of `messages` that make a `BodyPlace`."""

BODY_COLUMNS = ", ".join([f"m.{name}" for name in PLACE_COLUMNS])
"""`PLACE_COLUMNS` of the table alias `m`."""

PLACE = slice(-len(PLACE_COLUMNS), None)
"""The position of `BODY_COLUMNS` in rows of queries that select them last."""


_Place: TypeAlias = tuple[int, int, int, int, int]
"""A `BodyPlace` as a row contains it."""


class BodyPlace(NamedTuple):
    """The place of a body: a frame, and a range of its content."""

    frame_key: int
    """Key of the row."""
    frame_start: int
    frame_size: int
    """Start and size are bytes in the row's data."""
    body_start: int
    body_size: int
    """Start and size are bytes in the decompressed frame."""


class FramePacker:
    """Packs bodies of new messages into frames, in the order of their keys."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int]] = []
        self._frames: list[list[bytes]] = []
        self._bodies: list[tuple[int, int, int, int]] = []
        self._session_key = 0
        self._next_key: int = 0
        self._frame_size = self._row_size = 0

    def add(self, session_key: int, key: int, body: bytes) -> None:
        """Add the body of a message of a session."""
        size = len(body)
        # `drop_bodies` finds all rows of a message by its key alone. So a row belongs to one session, its keys have no
        # gaps, and it contains at most `MOST_TOGETHER` bodies.
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
        # One more for the comma: the bodies of a frame are part of a JSON array.
        self._frame_size += size + 1
        self._row_size += size + 1
        self._session_key, self._next_key = session_key, key + 1

    def take(self) -> PackedFrames:
        """Return the frames packed so far and start new ones."""
        taken = PackedFrames(self._rows, [b",".join(bodies) for bodies in self._frames], self._bodies)
        self._rows, self._frames, self._bodies = [], [], []
        # The next body must begin a row: these rows are written and never change.
        self._next_key = 0
        return taken


class PackedFrames(NamedTuple):
    """Frames that are ready to be compressed."""

    rows: list[tuple[int, int]]
    """For each row its key, and the index of its first frame."""
    texts: list[bytes]
    """The JSON of each frame."""
    bodies: list[tuple[int, int, int, int]]
    """For each body the key of its row, the index of its frame, its offset in the frame's JSON, and its size."""

    def save(self, connection: sqlite3.Connection, frames: zstd.Frames) -> list[BodyPlace]:
        """Write rows with the compressed frames; return the places of the bodies, in the order of `add`."""
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
    """Reads stored bodies (see `external_content`) within one snapshot or transaction.

    A body in the same frame as the last one needs no decompression, so read neighbours one after the other.
    """

    def __init__(self, connection: sqlite3.Connection, database: str = "main") -> None:
        """`database` is the name under which the connection knows the store."""
        self._connection = connection
        self._database = database
        self._frame = (0, 0)
        self._bodies = b""

    def __call__(self, frame_key: int, frame_start: int, frame_size: int, body_start: int, body_size: int) -> bytes:
        """The JSON of a body, by its `BodyPlace`. Raises StoreError if it does not exist."""
        if (frame_key, frame_start) != self._frame:
            self._bodies = zstd.decompress(self._load(frame_key, frame_start, frame_size))
            # A single body may be rewritten in the same transaction, so its frame is not kept.
            self._frame = max(frame_key, 0), frame_start
        return self._bodies[body_start : body_start + body_size]

    def of(self, message_key: int) -> bytes:
        """The JSON of the body of the message with this key."""
        row = self._connection.execute(
            f"SELECT {BODY_COLUMNS} FROM messages m WHERE m.key = ?", (message_key,)
        ).fetchone()
        return self(*row)

    def _load(self, key: int, start: int, size: int) -> bytes:
        """Read one frame of a row."""
        # A row contains up to 256 KB of JSON. Incremental blob I/O reads only the pages of the frame.
        try:
            with self._connection.blobopen("frames", "data", key, readonly=True, name=self._database) as row:
                row.seek(start)
                return row.read(size)
        except sqlite3.OperationalError:
            # SQLite raises the same error class for a missing row and for an unreadable file.
            if self._connection.execute("SELECT 1 FROM frames WHERE key = ?", (key,)).fetchone() is None:
                raise _lost(key) from None
            raise


def load_frames(connection: sqlite3.Connection, places: Sequence[_Place]) -> list[bytes]:
    """Bodies in order, by their `BodyPlace`s, in as few zstd frames as possible; each contains bodies joined by commas.

    A frame of which all bodies are wanted in order is used as it is stored. Raises StoreError if one does not exist.
    """
    # Read together: neighbours of a window are nearly always in one or two rows.
    keys = {place[0] for place in places}
    # One statement for any keys: PostgreSQL's is translated and planned once (3 ms).
    wanted = f"[{','.join(map(str, keys))}]"
    stored: dict[int, bytes] = dict(
        connection.execute("SELECT key, data FROM frames WHERE key IN (SELECT value FROM json_each(?))", (wanted,))
    )
    if missing := keys - stored.keys():
        raise _lost(min(missing))
    found: list[bytes] = []
    for key, start, size, first, end in _stretches(places):
        frame = stored[key][start : start + size]
        # Only a frame at either end of a window can be needed in part: it is decompressed, cut and compressed again.
        whole = first == 0 and end == zstd.content_size(frame)
        found.append(frame if whole else zstd.compress(zstd.decompress(frame)[first:end]))
    return found


def _stretches(places: Sequence[_Place]) -> list[tuple[int, int, int, int, int]]:
    """Ranges of bodies that are adjacent in one frame: the frame (key, start, size), and both ends of the range."""
    found: list[tuple[int, int, int, int, int]] = []
    key = start = size = first = end = -1
    for body in places:
        # One byte lies between two bodies of a frame: the comma.
        if body[0] == key and body[1] == start and body[3] == end + 1:
            end += 1 + body[4]
            continue
        if end >= 0:
            found.append((key, start, size, first, end))
        key, start, size, first, length = body
        end = first + length
    return [*found, (key, start, size, first, end)] if places else []


def _lost(frame_key: int) -> DamagedError:
    return DamagedError(f"the store is damaged: there is no frame {frame_key}")


def save_alone(connection: sqlite3.Connection, message_key: int, body: bytes, known_in: int) -> BodyPlace:
    """Store the new body of a stored message; return its place, for the row in `messages`.

    The old row is deleted if it contains no body of another message.
    """
    frame = zstd.compress(body)
    # Rows of several bodies have positive keys, so a negative one is free for this message alone.
    connection.execute("INSERT OR REPLACE INTO frames (key, data) VALUES (?, ?)", (-message_key, frame))
    if known_in > 0 and not _others_in(connection, known_in, (message_key,)):
        connection.execute("DELETE FROM frames WHERE key = ?", (known_in,))
    return BodyPlace(-message_key, 0, len(frame), 0, len(body))


def drop_bodies(connection: sqlite3.Connection, message_keys: Collection[int]) -> None:
    """Delete everything that these messages ever contained. The caller deletes their rows."""
    gone = set(message_keys)
    keys = sorted(gone)
    connection.execute(
        "DELETE FROM frames WHERE key IN (SELECT value FROM json_each(?))", (json.dumps([-key for key in keys]),)
    )
    read = BodyReader(connection)
    for frame_key in _rows_around(connection, keys):
        # Bodies of other messages in the same row get rows of their own before the row is deleted.
        for key, *place in _others_in(connection, frame_key, gone):
            alone = save_alone(connection, key, read(*place), 0)
            connection.execute(f"UPDATE messages SET {' = ?, '.join(PLACE_COLUMNS)} = ? WHERE key = ?", (*alone, key))
        connection.execute("DELETE FROM frames WHERE key = ?", (frame_key,))


def _rows_around(connection: sqlite3.Connection, message_keys: Sequence[int]) -> set[int]:
    """The rows with several bodies that may contain a body of one of these messages, whose keys are in order."""
    if not message_keys:
        return set()
    # On a hub there is hardly any such row.
    among = (max(0, message_keys[0] - MOST_TOGETHER), message_keys[-1])
    if connection.execute("SELECT 1 FROM frames WHERE key > ? AND key <= ? LIMIT 1", among).fetchone() is None:
        return set()
    found: set[int] = set()
    for key in message_keys:
        # A row has the key of its first message and at most `MOST_TOGETHER` consecutive ones. So no column of
        # `messages` needs an index for it.
        row = connection.execute(
            "SELECT key FROM frames WHERE key > max(0, ?1 - ?2) AND key <= ?1 ORDER BY key DESC LIMIT 1",
            (key, MOST_TOGETHER),
        ).fetchone()
        found |= {*row} if row else set()
    return found


def _others_in(connection: sqlite3.Connection, frame_key: int, message_keys: Collection[int]) -> list[tuple[int, ...]]:
    """Key and place of the bodies in a row that belong to other messages."""
    rows = connection.execute(
        f"SELECT m.key, {BODY_COLUMNS} FROM messages m WHERE m.key >= ?1 AND m.key < ?1 + ?2 AND m.frame_key = ?1",
        (frame_key, MOST_TOGETHER),
    )
    return [row for row in rows.fetchall() if row[0] not in message_keys]
