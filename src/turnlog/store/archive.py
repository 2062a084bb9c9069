"""The bytes of every source, as they were: zstd frames of up to a megabyte, addressed by source, generation, offset.

A log grows within one generation. A file that was rewritten starts a new one, which stores only what follows the
bytes it shares with the one before. Nothing here knows what the bytes mean.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import NamedTuple

from turnlog.errors import NotFoundError, StoreError
from turnlog.store import zstd

SEGMENT_SIZE = 1 << 20
"""Raw bytes of one frame: large enough to compress well, small enough to reach one record in about a millisecond."""

_REFILL_BELOW = 1 << 16
"""A last frame smaller than this is written anew with what is appended, so that a live log is not a heap of crumbs."""

_END = 1 << 62
"""Behind all that a file holds."""

_MAX_PENDING = 16
"""Frames that may wait for a worker: bounds the memory they hold."""


class Generation(NamedTuple):
    """One life of a file."""

    number: int
    size: int
    shared_prefix: int
    mode: int | None
    mtime_ns: int | None


class Archive:
    """Reads and writes the archive tables of one store connection; the caller owns the transaction.

    With a `worker`, frames are compressed beside the caller's own work and stored by `flush`, which must be called
    before the transaction ends.
    """

    def __init__(self, connection: sqlite3.Connection, worker: Executor | None = None) -> None:
        self._connection = connection
        self._worker = worker
        self._pending: list[tuple[int, int, int, int, Future[bytes]]] = []

    def append(self, source_key: int, generation: int, start: int, data: bytes) -> None:
        """Add `data`, which stands at byte `start` of the file, behind what is stored of this generation."""
        if not data:
            return
        start, data = self._refill(source_key, generation, start, data)
        view = memoryview(data)
        for begin in range(0, len(data), SEGMENT_SIZE):
            piece = view[begin : begin + SEGMENT_SIZE]
            # `_refill` looks for small frames in the table: one that it may take back cannot wait for the worker.
            if self._worker is not None and len(piece) > _REFILL_BELOW:
                frame = self._worker.submit(zstd.compress_for_archive, piece)
                self._pending.append((source_key, generation, start + begin, len(piece), frame))
            else:
                self._insert([(source_key, generation, start + begin, len(piece), zstd.compress_for_archive(piece))])
        if len(self._pending) >= _MAX_PENDING:
            self.flush()

    def flush(self) -> None:
        """Store what the worker has compressed."""
        self._insert([(*place, frame.result()) for *place, frame in self._pending])
        self._pending.clear()

    def discard(self) -> None:
        """Drop what is not stored yet: the source it came from could not be read to its end."""
        self._pending.clear()

    def drop(self, source_key: int) -> None:
        """Keep nothing of a file, in the store's bytes neither."""
        self._pending = [frame for frame in self._pending if frame[0] != source_key]
        self._connection.execute("PRAGMA secure_delete = ON")
        for table in ("archive", "generations"):
            self._connection.execute(f"DELETE FROM {table} WHERE source_key = ?", (source_key,))

    def _insert(self, rows: Iterable[tuple[object, ...]]) -> None:
        self._connection.executemany(
            "INSERT INTO archive (source_key, generation, start, length, data) VALUES (?, ?, ?, ?, ?)", rows
        )

    def begin(self, source_key: int, generation: int, shared_prefix: int, now: int) -> None:
        """Open a generation that shares its first `shared_prefix` bytes with the one before."""
        self._connection.execute(
            "INSERT INTO generations (source_key, generation, size, shared_prefix, started_at) VALUES (?, ?, ?, ?, ?)",
            (source_key, generation, shared_prefix, shared_prefix, now),
        )

    def settle(self, source_key: int, generation: int, size: int, mode: int, mtime_ns: int, now: int) -> None:
        """Write down how long the generation is now, and the file's mode and time."""
        self._connection.execute(
            "INSERT INTO generations (source_key, generation, size, mode, mtime_ns, started_at)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
            " SET size = excluded.size, mode = excluded.mode, mtime_ns = excluded.mtime_ns",
            (source_key, generation, size, mode, mtime_ns, now),
        )

    def generations(self, source_key: int) -> list[Generation]:
        """All lives of the file, oldest first."""
        rows = self._connection.execute(
            "SELECT generation, size, shared_prefix, mode, mtime_ns FROM generations"
            " WHERE source_key = ? ORDER BY generation",
            (source_key,),
        )
        return [Generation(*row) for row in rows]

    def read(self, source_key: int, generation: int, start: int, length: int) -> bytes:
        """`length` bytes from `start` of what was read, which of a compressed file is what stands inside of it.

        Raises NotFoundError when they are not all there.
        """
        found = self.read_up_to(source_key, generation, start, length)
        if len(found) != length:
            raise NotFoundError(
                f"the archive holds {len(found)} of {length} bytes at {start} of source {source_key}.{generation}"
            )
        return found

    def read_up_to(self, source_key: int, generation: int, start: int, length: int) -> bytes:
        """`read`, but for what is not there."""
        if (packed := self._packed_path(source_key)) is not None:
            return self._unpacked(packed, source_key, generation)[start : start + length]
        return b"".join(self._pieces(source_key, generation, start, start + length))

    def read_around(self, source_key: int, generation: int, offset: int) -> tuple[int, bytes]:
        """What is unpacked to reach a byte: where it begins, and its bytes, none where the byte is not there."""
        if (packed := self._packed_path(source_key)) is not None:
            return 0, self._unpacked(packed, source_key, generation)
        for number, _, end in self._ranges(source_key, generation, offset, _END)[:1]:
            for start, piece in self._frames(source_key, number, offset, offset + 1):
                return start, piece[: end - start]
        return offset, b""

    def iter_bytes(self, source_key: int, generation: int) -> Iterator[bytes]:
        """The whole file of a generation in pieces of at most `SEGMENT_SIZE` bytes."""
        size = self._generation(source_key, generation).size
        return self._pieces(source_key, generation, 0, size)

    def iter_all(self, source_key: int) -> Iterator[bytes]:
        """All that is stored of a file, one life after the other."""
        for found in self.generations(source_key):
            yield from self._own_pieces(source_key, found.number, 0, found.size)

    def _packed_path(self, source_key: int) -> str | None:
        """Path of a compressed file; None of any other."""
        # Imported here, and below, because what only writes has no use for agents.
        from turnlog.agents.files import is_compressed

        row = self._connection.execute("SELECT path FROM sources WHERE key = ?", (source_key,)).fetchone()
        return row[0] if row is not None and is_compressed(row[0]) else None

    def _unpacked(self, path: str, source_key: int, generation: int) -> bytes:
        from turnlog.agents.files import decompress

        return decompress(path, b"".join(self.iter_bytes(source_key, generation))).data

    def _generation(self, source_key: int, generation: int) -> Generation:
        for found in self.generations(source_key):
            if found.number == generation:
                return found
        raise NotFoundError(f"the archive has no generation {generation} of source {source_key}")

    def _pieces(self, source_key: int, generation: int, start: int, end: int) -> Iterator[bytes]:
        for number, first, last in self._ranges(source_key, generation, start, end):
            yield from self._own_pieces(source_key, number, first, last)

    def _ranges(self, source_key: int, generation: int, start: int, end: int) -> list[tuple[int, int, int]]:
        """Which generation stores which bytes: (generation, from, to), in the order of the bytes."""
        rows = self._connection.execute(
            "SELECT generation, shared_prefix FROM generations WHERE source_key = ? AND generation <= ?"
            " ORDER BY generation DESC",
            (source_key, generation),
        ).fetchall()
        ranges: list[tuple[int, int, int]] = []
        # A first life that is being read has no row before it is settled.
        for number, shared in rows or [(generation, 0)]:
            if max(start, shared) < end:
                ranges.append((number, max(start, shared), end))
            end = min(end, shared)
            if end <= start:
                break
        return ranges[::-1]

    def _own_pieces(self, source_key: int, generation: int, start: int, end: int) -> Iterator[bytes]:
        for frame_start, piece in self._frames(source_key, generation, start, end):
            yield piece[max(0, start - frame_start) : end - frame_start]

    def _frames(self, source_key: int, generation: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Where each frame of these bytes begins, and what is in it."""
        if self._pending:
            self.flush()
        rows = self._connection.execute(
            "SELECT start, length, data FROM archive WHERE source_key = ? AND generation = ? AND start < ?"
            " AND start + length > ? ORDER BY start",
            (source_key, generation, end, start),
        )
        for frame_start, length, data in rows.fetchall():
            piece = zstd.decompress(data)
            if len(piece) != length:
                raise StoreError(f"a frame of source {source_key}.{generation} at {frame_start} is damaged")
            yield frame_start, piece

    def _refill(self, source_key: int, generation: int, start: int, data: bytes) -> tuple[int, bytes]:
        """Take back a small last frame to write it again with `data` behind it."""
        row = self._connection.execute(
            "SELECT start, length, data FROM archive WHERE source_key = ? AND generation = ? AND start < ?"
            " ORDER BY start DESC LIMIT 1",
            (source_key, generation, start),
        ).fetchone()
        if row is None or row[1] >= _REFILL_BELOW or row[0] + row[1] != start:
            return start, data
        self._connection.execute(
            "DELETE FROM archive WHERE source_key = ? AND generation = ? AND start = ?",
            (source_key, generation, row[0]),
        )
        return row[0], zstd.decompress(row[2]) + data


class RecordReader:
    """Reads one record after the other: the frame that the last one ended in is at hand."""

    def __init__(self, archive: Archive) -> None:
        """Begin with nothing at hand."""
        self._archive = archive
        self._source: tuple[int, int] | None = None
        self._start = 0
        self._bytes = b""

    def read(self, source_key: int, generation: int, start: int, length: int) -> bytes:
        """As `Archive.read`, but that what is not there is missing."""
        pieces: list[bytes] = []
        end = start + length
        while start < end and self._turn_to(source_key, generation, start):
            at = start - self._start
            pieces.append(self._bytes[at : at + end - start])
            start += len(pieces[-1])
        return b"".join(pieces)

    def _turn_to(self, source_key: int, generation: int, offset: int) -> bool:
        """Have the frame at hand that a byte stands in; False where there is none."""
        if self._source != (source_key, generation) or not 0 <= offset - self._start < len(self._bytes):
            self._source = source_key, generation
            self._start, self._bytes = self._archive.read_around(source_key, generation, offset)
        return offset < self._start + len(self._bytes)
