"""The wire format of protocol buffers, as far as the root of a chat needs it: fields of bytes by their number."""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5

_SIZES = {_FIXED_64: 8, _FIXED_32: 4}

_LONGEST = 10
"""Bytes of the longest number."""


def wire_fields(data: bytes, wanted: int) -> Iterator[bytes]:
    """The contents of the fields of bytes with a number, in their order; of damaged data those before the damage."""
    position = 0
    while position < len(data):
        key, position = _number(data, position)
        if key is None:
            return
        kind = key & 7
        if kind == _BYTES:
            size, position = _number(data, position)
            if size is None or position + size > len(data):
                return
            if key >> 3 == wanted:
                yield data[position : position + size]
            position += size
        elif kind == _VARINT:
            _, position = _number(data, position)
        elif kind in _SIZES:
            position += _SIZES[kind]
        else:
            return


def texts_at(data: bytes, wanted: int) -> Iterator[str]:
    """The same as texts, as far as they are texts."""
    for found in wire_fields(data, wanted):
        try:
            yield found.decode()
        except UnicodeDecodeError:
            continue


def _number(data: bytes, position: int) -> tuple[int | None, int]:
    value = 0
    for count, byte in enumerate(data[position : position + _LONGEST]):
        value |= (byte & 0x7F) << 7 * count
        if not byte & 0x80:
            return value, position + count + 1
    return None, len(data)
