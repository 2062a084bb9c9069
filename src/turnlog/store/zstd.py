"""zstd for any number of threads. Each has contexts of its own, because two threads in one would corrupt its memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TypeAlias

import zstandard

LEVEL = 1
"""For data that is read and sent often: the fastest level that is worth having."""

ARCHIVE_LEVEL = 3
"""For data that is kept and rarely read: a sixteenth smaller. A large import compresses it in parallel to its other
work."""


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
