"""Logs that an agent has compressed: an archive keeps them as they are, and what stands inside of them is read.

Offsets of records are offsets in what stands inside. Such a file is never appended to, so it is fed whole.
"""

from __future__ import annotations

from typing import NamedTuple

SUFFIX = ".zst"

_PIECE = 1 << 16


class Decompressed(NamedTuple):
    """What stands inside of a file."""

    data: bytes
    problem: str | None = None
    """Why this is not all of it."""


def is_compressed(path: str) -> bool:
    """Whether a file is compressed, by its name."""
    return path.endswith(SUFFIX)


def decompress(path: str, data: bytes) -> Decompressed:
    """The content of a file: `data` itself, or what its frames of zstd hold as far as they are sound."""
    if not is_compressed(path):
        return Decompressed(data)
    # Imported here because few logs are compressed, and many are looked at.
    from zstandard import ZstdDecompressor, ZstdError

    pieces: list[bytes] = []
    rest = data
    try:
        while rest:
            frame = ZstdDecompressor().decompressobj()
            for start in range(0, len(rest), _PIECE):
                pieces.append(frame.decompress(rest[start : start + _PIECE]))
                if frame.eof:
                    rest = frame.unused_data + rest[start + _PIECE :]
                    break
            else:
                return Decompressed(b"".join(pieces), "cut off at the end of the file")
    except ZstdError as error:
        return Decompressed(b"".join(pieces), str(error))
    return Decompressed(b"".join(pieces))
