"""zstd for any number of threads: each has contexts of its own, since two in one would corrupt its memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TypeAlias

import zstandard

LEVEL = 1
"""For what is read and sent often: the fastest that is worth having."""

ARCHIVE_LEVEL = 3
"""For what is kept and seldom read: a sixteenth smaller; a large import compresses it beside its other work."""


_batch_compressor = zstandard.ZstdCompressor(level=ARCHIVE_LEVEL)
"""Of the thread that compresses many at once; a compressor is not to be used by two threads."""

Frames: TypeAlias = zstandard.BufferWithSegmentsCollection
"""Frames of many pieces, in order: each item is a buffer."""


class _Contexts(threading.local):
    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=LEVEL)
        self.archiver = zstandard.ZstdCompressor(level=ARCHIVE_LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


_own = _Contexts()


def compress(data: bytes | memoryview) -> bytes:
    """One frame of the data."""
    return _own.compressor.compress(data)


def compress_all(pieces: Sequence[bytes]) -> Frames:
    """`compress` for many pieces in one call, which leaves the interpreter to others while it runs."""
    return _batch_compressor.multi_compress_to_buffer([*pieces])


def compress_for_archive(data: bytes | memoryview) -> bytes:
    """One frame of the data, smaller and slower."""
    return _own.archiver.compress(data)


def is_frame(data: bytes) -> bool:
    """Whether it begins as a frame does, and as no JSON."""
    return data.startswith(zstandard.FRAME_HEADER)


def content_size(frame: bytes) -> int:
    """Bytes of the data of one frame."""
    return zstandard.frame_content_size(frame)


def decompress(frame: bytes) -> bytes:
    """The data of one frame."""
    return _own.decompressor.decompress(frame)
