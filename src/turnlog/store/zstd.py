"""zstd for any number of threads: each has contexts of its own, since two in one would corrupt its memory."""

from __future__ import annotations

import threading

import zstandard

LEVEL = 1
"""For what is read and sent often: the fastest that is worth having."""

ARCHIVE_LEVEL = 3
"""For what is kept and seldom read: a sixteenth smaller; a large import compresses it beside its other work."""


class _Contexts(threading.local):
    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=LEVEL)
        self.archiver = zstandard.ZstdCompressor(level=ARCHIVE_LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


_own = _Contexts()


def compress(data: bytes | memoryview) -> bytes:
    """One frame of the data."""
    return _own.compressor.compress(data)


def compress_for_archive(data: bytes | memoryview) -> bytes:
    """One frame of the data, smaller and slower."""
    return _own.archiver.compress(data)


def decompress(frame: bytes) -> bytes:
    """The data of one frame."""
    return _own.decompressor.decompress(frame)
