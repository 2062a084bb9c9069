"""The text chunks of a PNG: descriptions, parameters of the program that made it, metadata as XML.

All other bytes stay. What the picture shows is not looked at.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

SIGNATURE = b"\x89PNG\r\n\x1a\n"

_LARGEST = 4_000_000
"""Bytes of the longest compressed text that is checked; a longer one is removed."""


class _Chunk(NamedTuple):
    kind: bytes
    data: bytes
    whole: bytes


def mask_png(data: bytes, mask: Callable[[str], str]) -> bytes:
    """The file with its texts masked; the same object if nothing changes. A truncated file is accepted."""
    made = [_masked(chunk, mask) for chunk in _chunks(data)]
    joined = SIGNATURE + b"".join(made)
    # Bytes after the last complete chunk stay as they are.
    joined += data[len(SIGNATURE) + sum(len(chunk.whole) for chunk in _chunks(data)) :]
    return data if joined == data else joined


def _chunks(data: bytes) -> Iterator[_Chunk]:
    position = len(SIGNATURE)
    while position + 12 <= len(data):
        (size,) = struct.unpack_from(">I", data, position)
        end = position + 12 + size
        if end > len(data):
            return
        yield _Chunk(data[position + 4 : position + 8], data[position + 8 : end - 4], data[position:end])
        position = end


def _masked(chunk: _Chunk, mask: Callable[[str], str]) -> bytes:
    change = _TEXTS.get(chunk.kind)
    data = chunk.data if change is None else change(chunk.data, mask)
    if data == chunk.data:
        return chunk.whole
    return struct.pack(">I", len(data)) + chunk.kind + data + struct.pack(">I", zlib.crc32(chunk.kind + data))


def _plain(data: bytes, mask: Callable[[str], str]) -> bytes:
    """`tEXt`: a keyword and Latin-1."""
    text = data.decode("latin-1")
    keyword, zero, value = text.partition("\0")
    return (keyword + zero + mask(value)).encode("latin-1", "replace")


def _compressed(data: bytes, mask: Callable[[str], str]) -> bytes:
    """`zTXt`: a keyword, a method, and compressed Latin-1."""
    keyword, zero, rest = data.partition(b"\0")
    text = _inflated(rest[1:])
    masked = _UNREADABLE if text is None else mask(text.decode("latin-1")).encode("latin-1", "replace")
    return data if masked == text else keyword + zero + rest[:1] + zlib.compress(masked)


def _international(data: bytes, mask: Callable[[str], str]) -> bytes:
    """`iTXt`: a keyword, whether it is compressed, a language, the translated keyword, and UTF-8."""
    keyword, zero, rest = data.partition(b"\0")
    flags, (language, _, more) = rest[:2], rest[2:].partition(b"\0")
    translated, _, content = more.partition(b"\0")
    is_deflated = flags[:1] == b"\1"
    text = _inflated(content) if is_deflated else content
    made = _UNREADABLE if text is None else mask(text.decode(errors="surrogateescape")).encode(errors="surrogateescape")
    if made == text:
        return data
    head = keyword + zero + flags + language + b"\0" + translated + b"\0"
    return head + (zlib.compress(made) if is_deflated else made)


def _inflated(data: bytes) -> bytes | None:
    """The decompressed data; None if it is damaged or too long to check."""
    try:
        made = zlib.decompressobj().decompress(data, _LARGEST + 1)
    except zlib.error:
        return None
    return made if len(made) <= _LARGEST else None


_UNREADABLE = b"[REDACTED:unreadable]"
"""Replaces a text that could not be checked, because it might contain a secret."""


_TEXTS = {b"tEXt": _plain, b"zTXt": _compressed, b"iTXt": _international}
