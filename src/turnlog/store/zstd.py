"""zstd for any number of threads. Each has its own contexts, because two threads in one would corrupt its memory."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, Protocol, TypeAlias, cast

import zstandard

ZstdError = zstandard.ZstdError
"""Data that is no frame."""

LEVEL = 1
"""For data that is read and sent often: the fastest level that is worth having."""

ARCHIVE_LEVEL = 3
"""For data that is kept and rarely read: a sixteenth smaller. A large import compresses it in parallel to its other
work."""


PIECE_SIZE = 1 << 20
"""Bytes of a piece of what is too large to be compressed or unpacked at once."""

_batch_compressor = zstandard.ZstdCompressor(level=ARCHIVE_LEVEL)
"""Per thread, for many pieces at once, because two threads must not use one compressor."""

Frames: TypeAlias = zstandard.BufferWithSegmentsCollection
"""Frames of many pieces, in order: each item is a buffer."""


class _Contexts(threading.local):
    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=LEVEL)
        self.archiver = zstandard.ZstdCompressor(level=ARCHIVE_LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


_own = _Contexts()


def compress(data: bytes | memoryview) -> bytes:
    """Compress data into one frame."""
    return _own.compressor.compress(data)


def compress_all(pieces: Sequence[bytes]) -> Frames:
    """Like `compress` for many pieces in one call, which releases the GIL meanwhile."""
    return _batch_compressor.multi_compress_to_buffer([*pieces])


def compress_for_archive(data: bytes | memoryview) -> bytes:
    """Compress data into one frame, smaller and slower."""
    return _own.archiver.compress(data)


def is_frame(data: bytes) -> bool:
    """Whether data begins like a frame, which no JSON does."""
    return data.startswith(zstandard.FRAME_HEADER)


def content_size(frame: bytes) -> int:
    """Size in bytes of a frame's decompressed data."""
    return zstandard.frame_content_size(frame)


def decompress(frame: bytes) -> bytes:
    """Decompress one frame."""
    return _own.decompressor.decompress(frame)


class Readable(Protocol):
    """What can be read in pieces: an open file, a stored blob."""

    def read(self, length: int = ..., /) -> bytes:
        """The next bytes, at most so many; none at the end."""
        ...


def decompress_in_pieces(frame: Readable) -> Iterator[bytes]:
    """The data of a stored frame in pieces of at most `PIECE_SIZE` bytes: it may be too large to be held at once."""
    # The type asks for a whole file; the function only reads.
    return zstandard.ZstdDecompressor().read_to_iter(cast("BinaryIO", frame), PIECE_SIZE, PIECE_SIZE)


class _Chunker(Protocol):
    # zstandard's own declaration does not say what comes out.
    def compress(self, data: bytes | memoryview, /) -> Iterable[bytes]: ...

    def finish(self) -> Iterable[bytes]: ...


def compress_in_pieces(data: Iterable[bytes | memoryview], size: int) -> list[bytes]:
    """One frame of data that comes in pieces and has so many bytes, in pieces itself."""
    chunker = cast("_Chunker", zstandard.ZstdCompressor(level=LEVEL).chunker(size=size, chunk_size=PIECE_SIZE))
    packed: list[bytes] = []
    for piece in data:
        packed += chunker.compress(piece)
    return [*packed, *chunker.finish()]
