"""What a block of documents holds, as it is packed into `documents.layout`: an entry for each slot in use."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

SUPERSEDED = 4
"""Flag of an entry whose words are still in the index though its text is no longer known. It is never shown."""


class Entry(msgspec.Struct, array_like=True, gc=False):
    """One document. `length` and `checksum` are those of its UTF-8 text, to know it again."""

    sequence: int
    field: int
    flags: int
    length: int
    checksum: int

    @property
    def text_identity(self) -> tuple[int, int, int]:
        """What is equal for two documents of equal text."""
        return (self.field, self.length, self.checksum)


Entries: TypeAlias = list[Entry | None]
"""By slot; None stands for a document whose words were taken out of the index."""

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Entries] = msgspec.msgpack.Decoder(Entries)


def pack(entries: Entries) -> bytes:
    """The bytes of a layout."""
    return _encoder.encode(entries)


def unpack(layout: bytes) -> Entries:
    """The entries of a layout."""
    return _decoder.decode(layout)


def entry_at(layout: bytes, slot: int) -> Entry | None:
    """The document in one slot; None when there is none, or none any more."""
    entries = unpack(layout)
    return entries[slot] if slot < len(entries) else None
