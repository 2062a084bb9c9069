"""What an image's first bytes tell: its real media type and its size in pixels. Decodes nothing."""

from __future__ import annotations

import struct
from collections.abc import Callable

_SIGNATURES: tuple[tuple[bytes, int, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", 0, "image/png"),
    (b"\xff\xd8\xff", 0, "image/jpeg"),
    (b"GIF87a", 0, "image/gif"),
    (b"GIF89a", 0, "image/gif"),
    (b"WEBP", 8, "image/webp"),
    (b"ftypheic", 4, "image/heic"),
    (b"ftypmif1", 4, "image/heif"),
)
"""Bytes, where they stand, and what begins so."""


def image_type(data: bytes) -> str | None:
    """The media type that the bytes tell; None when they are no image that a model takes."""
    return next((kind for magic, at, kind in _SIGNATURES if data.startswith(magic, at)), None)


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels; None where they are not told in a way that is read here."""
    measure = _MEASURES.get(image_type(data) or "")
    if measure is None:
        return None
    try:
        return measure(data)
    except (struct.error, IndexError):
        return None


def _png(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _jpeg(data: bytes) -> tuple[int, int] | None:
    """The frame header; C4, C8 and CC are other segments of the same range."""
    at = 2
    while at < len(data):
        marker, length = struct.unpack_from(">xBH", data, at)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + length
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    """Lossy, lossless and extended files tell it in three ways."""
    chunk = data[12:16]
    if chunk == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    if chunk == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if chunk == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    return None


_MEASURES: dict[str, Callable[[bytes], tuple[int, int] | None]] = {
    "image/png": _png,
    "image/gif": _gif,
    "image/jpeg": _jpeg,
    "image/webp": _webp,
}
