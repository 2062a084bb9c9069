"""The archive: the exact bytes of every source, in zstd frames of up to 1 MB, addressed by source, generation, offset.

A log grows within one generation. A file that was rewritten begins a new generation, which stores only the bytes after
the prefix that it shares with the previous one. The archive does not interpret the bytes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import NamedTuple

from turnlog.errors import DamagedError, NotFoundError, StoreError
from turnlog.store import zstd

SEGMENT_SIZE = 1 << 20
"""Uncompressed bytes in one frame: large enough to compress well, small enough to read one record in about a
millisecond."""

_REFILL_BELOW = 1 << 16
"""If the last frame is smaller than this, appending rewrites it, so that a live log does not become many tiny
frames."""

_END = 1 << 62
"""An offset after the end of any file."""

_MAX_PENDING = 16
"""Frames that may wait for a worker at a time; limits their memory."""


class Generation(NamedTuple):
    """One version of a file, until it was rewritten."""

    number: int
    size: int
    shared_prefix: int
    mode: int | None
    mtime_ns: int | None


class ArchiveFrame(NamedTuple):
    """Compressed bytes of a file."""

    start: int
    """Offset of the first byte in the file."""
    length: int
    """Bytes before they were compressed."""
    data: bytes


class FrameCollector:
    """Compresses the bytes of a file of which nothing is archived, as an `Archive` would, for `Archive.store`."""

    def __init__(self) -> None:
        self._frames: list[ArchiveFrame] = []
        self._start: int = 0
        self._rest: bytes = b""
        """The last bytes, if they are too few for a frame that stays, and their offset."""
        self._is_rest_taken = False

    def append(self, source_key: int, generation: int, start: int, data: bytes) -> None:
        """Add `data`, which begins at byte `start` of the file."""
        if self._rest:
            start, data = self._start, self._rest + data
        self._rest, self._is_rest_taken = b"", False
        for begin in range(0, len(data), SEGMENT_SIZE):
            piece = memoryview(data)[begin : begin + SEGMENT_SIZE]
            if len(piece) < _REFILL_BELOW:
                self._start, self._rest = start + begin, bytes(piece)
            else:
                self._frames.append(_frame(start + begin, piece))

    def begin(self, source_key: int, generation: int, shared_prefix: int, now: int) -> None:
        """Not for a file of which nothing is archived."""
        raise StoreError(f"source {source_key} has no generation before {generation}")

    def iter_bytes(self, source_key: int, generation: int) -> Iterator[bytes]:
        """What is archived: nothing."""
        return iter(())

    def take(self) -> list[ArchiveFrame]:
        """The frames of all bytes that were added since the last call.

        A small last frame is among them, because messages may refer to its bytes already. Once more is appended to it,
        it comes again from the same offset, longer.
        """
        frames, self._frames = self._frames, []
        if self._rest and not self._is_rest_taken:
            frames.append(_frame(self._start, self._rest))
            self._is_rest_taken = True
        return frames


def _frame(start: int, data: bytes | memoryview) -> ArchiveFrame:
    return ArchiveFrame(start, len(data), zstd.compress_for_archive(data))


def _content(source_key: int, generation: int, frame: ArchiveFrame) -> bytes:
    try:
        found = zstd.decompress(frame.data)
    except zstd.ZstdError as error:
        raise _damaged(source_key, generation, frame.start) from error
    if len(found) != frame.length:
        raise _damaged(source_key, generation, frame.start)
    return found


def _damaged(source_key: int, generation: int, start: int) -> DamagedError:
    return DamagedError(f"the archive of source {source_key}.{generation} is damaged at byte {start}")


class Archive:
    """Reads and writes the archive tables over one connection; the caller owns the transaction.

    With a `worker`, frames are compressed in parallel with the caller's work. `flush` stores them and must be called
    before the transaction ends.
    """

    def __init__(self, connection: sqlite3.Connection, worker: Executor | None = None) -> None:
        self._connection = connection
        self._worker = worker
        self._pending: list[tuple[int, int, int, int, Future[bytes]]] = []

    def append(self, source_key: int, generation: int, start: int, data: bytes) -> None:
        """Append `data`, which begins at byte `start` of the file, to the generation."""
        if not data:
            return
        start, data = self._refill(source_key, generation, start, data)
        view = memoryview(data)
        for begin in range(0, len(data), SEGMENT_SIZE):
            piece = view[begin : begin + SEGMENT_SIZE]
            # `_refill` looks for a small last frame in the table, so a frame that it may need cannot wait for the
            # worker.
            if self._worker is not None and len(piece) > _REFILL_BELOW:
                frame = self._worker.submit(zstd.compress_for_archive, piece)
                self._pending.append((source_key, generation, start + begin, len(piece), frame))
            else:
                self._insert([(source_key, generation, start + begin, len(piece), zstd.compress_for_archive(piece))])
        if len(self._pending) >= _MAX_PENDING:
            self.flush()

    def store(self, source_key: int, generation: int, frames: Iterable[ArchiveFrame]) -> None:
        """Store frames that were compressed elsewhere; one that begins where a stored one does replaces it."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO archive (source_key, generation, start, length, data) VALUES (?, ?, ?, ?, ?)",
            [(source_key, generation, *frame) for frame in frames],
        )

    def flush(self) -> None:
        """Store the frames that the worker has compressed."""
        self._insert([(*place, frame.result()) for *place, frame in self._pending])
        self._pending.clear()

    def discard(self) -> None:
        """Drop frames that are not stored yet, because their source could not be read to its end."""
        self._pending.clear()

    def drop(self, source_key: int) -> None:
        """Delete the bytes of a file, also from the bytes of the store."""
        self._pending = [frame for frame in self._pending if frame[0] != source_key]
        self._connection.execute("PRAGMA secure_delete = ON")
        for table in ("archive", "generations"):
            self._connection.execute(f"DELETE FROM {table} WHERE source_key = ?", (source_key,))

    def _insert(self, rows: Iterable[tuple[object, ...]]) -> None:
        self._connection.executemany(
            "INSERT INTO archive (source_key, generation, start, length, data) VALUES (?, ?, ?, ?, ?)", rows
        )

    def begin(self, source_key: int, generation: int, shared_prefix: int, now: int) -> None:
        """Start a generation that shares its first `shared_prefix` bytes with the previous one."""
        self._connection.execute(
            "INSERT INTO generations (source_key, generation, size, shared_prefix, started_at) VALUES (?, ?, ?, ?, ?)",
            (source_key, generation, shared_prefix, shared_prefix, now),
        )

    def settle(self, source_key: int, generation: int, size: int, mode: int, mtime_ns: int, now: int) -> None:
        """Record the current length of the generation, and the mode and time of the file."""
        self._connection.execute(
            "INSERT INTO generations (source_key, generation, size, mode, mtime_ns, started_at)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
            " SET size = excluded.size, mode = excluded.mode, mtime_ns = excluded.mtime_ns",
            (source_key, generation, size, mode, mtime_ns, now),
        )

    def generations(self, source_key: int) -> list[Generation]:
        """All generations of the file, oldest first."""
        rows = self._connection.execute(
            "SELECT generation, size, shared_prefix, mode, mtime_ns FROM generations"
            " WHERE source_key = ? ORDER BY generation",
            (source_key,),
        )
        return [Generation(*row) for row in rows]

    def read(self, source_key: int, generation: int, start: int, length: int) -> bytes:
        """Read `length` bytes from `start`. Offsets in a compressed file count its decompressed content.

        Raises NotFoundError if the archive does not have all of them.
        """
        found = self.read_up_to(source_key, generation, start, length)
        if len(found) != length:
            raise NotFoundError(
                f"the archive holds {len(found)} of {length} bytes at {start} of source {source_key}.{generation}"
            )
        return found

    def read_up_to(self, source_key: int, generation: int, start: int, length: int) -> bytes:
        """Like `read`, but returns fewer bytes if the archive has fewer."""
        if (packed := self._packed_path(source_key)) is not None:
            return self._unpacked(packed, source_key, generation)[start : start + length]
        return b"".join(self._pieces(source_key, generation, start, start + length))

    def read_around(self, source_key: int, generation: int, offset: int) -> tuple[int, bytes]:
        """The decompressed frame that contains a byte: its offset and its bytes, empty if it is not archived."""
        if (packed := self._packed_path(source_key)) is not None:
            return 0, self._unpacked(packed, source_key, generation)
        for number, _, end in self._ranges(source_key, generation, offset, _END)[:1]:
            for start, piece in self._frames(source_key, number, offset, offset + 1):
                return start, piece[: end - start]
        return offset, b""

    def iter_bytes(self, source_key: int, generation: int) -> Iterator[bytes]:
        """Yield the whole file of a generation in chunks of at most `SEGMENT_SIZE` bytes."""
        size = self._generation(source_key, generation).size
        return self._pieces(source_key, generation, 0, size)

    def iter_whole(self, source_key: int, generation: int) -> Iterator[bytes]:
        """Like `iter_bytes`, but raises DamagedError where bytes are missing: those before them are yielded."""
        size = self._generation(source_key, generation).size
        for number, first, last in self._ranges(source_key, generation, 0, size):
            for frame_start, piece in self._frames(source_key, number, first, last):
                if frame_start > first:
                    break
                found = piece[first - frame_start : last - frame_start]
                first += len(found)
                yield found
            if first < last:
                raise _damaged(source_key, number, first)

    def is_whole(self, source_key: int) -> bool:
        """Whether every byte of the newest generation of a file is stored. Another store may have sent only its row."""
        generations = self.generations(source_key)
        if not generations:
            return False
        last = generations[-1]
        for number, first, end in self._ranges(source_key, last.number, 0, last.size):
            rows = self._connection.execute(
                "SELECT start, length FROM archive WHERE source_key = ? AND generation = ? AND start < ?"
                " AND start + length > ? ORDER BY start",
                (source_key, number, end, first),
            )
            for start, length in rows:
                if start > first:
                    return False
                first = max(first, start + length)
            if first < end:
                return False
        return True

    def iter_all(self, source_key: int) -> Iterator[bytes]:
        """Yield all bytes stored of a file, one generation after the other."""
        for found in self.generations(source_key):
            yield from self._own_pieces(source_key, found.number, 0, found.size)

    def _packed_path(self, source_key: int) -> str | None:
        """Path of a compressed file; None for any other file."""
        # Imported here and below because code that only writes needs no agents.
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
        """The generations that store a range of bytes: (generation, from, to), in the order of the bytes."""
        rows = self._connection.execute(
            "SELECT generation, shared_prefix FROM generations WHERE source_key = ? AND generation <= ?"
            " ORDER BY generation DESC",
            (source_key, generation),
        ).fetchall()
        ranges: list[tuple[int, int, int]] = []
        # The first generation has no row until `settle`, which runs after it was read.
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
        """Yield the offset and content of each frame in a range."""
        if self._pending:
            self.flush()
        rows = self._connection.execute(
            "SELECT start, length, data FROM archive WHERE source_key = ? AND generation = ? AND start < ?"
            " AND start + length > ? ORDER BY start",
            (source_key, generation, end, start),
        )
        for frame_start, length, data in rows.fetchall():
            yield frame_start, _content(source_key, generation, ArchiveFrame(frame_start, length, data))

    def _refill(self, source_key: int, generation: int, start: int, data: bytes) -> tuple[int, bytes]:
        """Remove a small last frame and return its bytes, to compress them together with `data`."""
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
        return row[0], _content(source_key, generation, ArchiveFrame(*row)) + data


class RecordReader:
    """Reads records one by one, keeping the frame of the last one decompressed."""

    def __init__(self, archive: Archive) -> None:
        """Begin with nothing at hand."""
        self._archive = archive
        self._source: tuple[int, int] | None = None
        self._start = 0
        self._bytes = b""

    def read(self, source_key: int, generation: int, start: int, length: int) -> bytes:
        """Like `Archive.read`, but returns fewer bytes if the archive has fewer."""
        pieces: list[bytes] = []
        end = start + length
        while start < end and self._turn_to(source_key, generation, start):
            at = start - self._start
            pieces.append(self._bytes[at : at + end - start])
            start += len(pieces[-1])
        return b"".join(pieces)

    def _turn_to(self, source_key: int, generation: int, offset: int) -> bool:
        """Load the frame that contains a byte; False if none does."""
        if self._source != (source_key, generation) or not 0 <= offset - self._start < len(self._bytes):
            self._source = source_key, generation
            self._start, self._bytes = self._archive.read_around(source_key, generation, offset)
        return offset < self._start + len(self._bytes)
