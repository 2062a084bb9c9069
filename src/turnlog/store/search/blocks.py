"""What a block of documents holds, as it is packed into `documents.layout`: an entry for each slot in use."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from turnlog.store.search.index_file import SLOT_BITS

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


_END = 1 << 60
"""Behind every block."""


class Block(NamedTuple):
    """Documents of one message with neighbouring ids."""

    number: int
    message_key: int
    home: int
    role: int
    """Index in `ROLES`."""
    is_fresh: bool
    """Whether their words are in `fresh`, not in `words`."""
    entries: Entries


class Slot(NamedTuple):
    """Where one document stands."""

    block: Block
    slot: int
    entry: Entry

    @property
    def id(self) -> int:
        """The document's id."""
        return self.block.number << SLOT_BITS | self.slot


class Blocks:
    """Reads and writes blocks, and hands out free ones. Lives for one transaction."""

    def __init__(self, search: sqlite3.Connection, displacement: int) -> None:
        self._search = search
        self.displacement = displacement
        """The farthest that any block lies behind the one of its message's time."""
        self._taken: dict[int, int] = {}
        self._gap = (0, 0)

    def of_message(self, message_key: int) -> list[Block]:
        """A message's blocks, oldest first."""
        return self._load("message_key = ?", message_key)

    def of_home(self, session_key: int) -> list[Block]:
        """All blocks with this home."""
        return self._load("home = ?", session_key)

    def fresh_keys(self) -> list[int]:
        """Messages that have fresh blocks."""
        return [key for (key,) in self._search.execute("SELECT DISTINCT message_key FROM documents WHERE is_fresh")]

    def newest_key(self) -> int:
        """The largest message key that has a block: what is larger has none."""
        return self._search.execute("SELECT coalesce(max(message_key), 0) FROM documents").fetchone()[0]

    def insert(self, blocks: Iterable[Block], *, is_fresh: bool) -> None:
        """Write new blocks."""
        self._search.executemany(
            "INSERT INTO documents (block, message_key, home, role, is_fresh, layout) VALUES (?, ?, ?, ?, ?, ?)",
            [(*block[:4], is_fresh, pack(block.entries)) for block in sorted(blocks)],
        )

    def update(self, blocks: Iterable[Block]) -> None:
        """Write what stands in these blocks now."""
        self._search.executemany(
            "UPDATE documents SET home = ?, is_fresh = ?, layout = ? WHERE block = ?",
            [(block.home, block.is_fresh, pack(block.entries), block.number) for block in blocks],
        )

    def delete(self, message_key: int) -> None:
        """Drop a message's blocks."""
        self._search.execute("DELETE FROM documents WHERE message_key = ?", (message_key,))

    def reserve(self, wanted: int) -> int:
        """The first free block from `wanted` on. Passed blocks are remembered, so that a crowd costs each only once."""
        passed: list[int] = []
        block = wanted
        while True:
            following = self._taken.get(block)
            if following is None:
                if self._is_free(block):
                    break
                following = block + 1
            passed.append(block)
            block = following
        self._taken[block] = block + 1
        for each in passed:
            self._taken[each] = block + 1
        self.note_displacement(block, wanted)
        return block

    def note_displacement(self, block: int, wanted: int) -> None:
        """Remember how far a block lies behind where it belongs."""
        self.displacement = max(self.displacement, block - wanted)

    def _is_free(self, block: int) -> bool:
        """Whether the index has no such block. One look finds the whole gap, and a session's messages share gaps."""
        start, end = self._gap
        if not start <= block < end:
            found = self._search.execute("SELECT min(block) FROM documents WHERE block >= ?", (block,)).fetchone()[0]
            start, end = self._gap = block, _END if found is None else found
        return block < end

    def _load(self, condition: str, value: int) -> list[Block]:
        rows = self._search.execute(
            f"SELECT block, message_key, home, role, is_fresh, layout FROM documents WHERE {condition} ORDER BY block",
            (value,),
        )
        return [
            Block(block, message_key, home, role, bool(is_fresh), unpack(packed))
            for block, message_key, home, role, is_fresh, packed in rows
        ]


def shown_block(blocks: Sequence[Block]) -> Block:
    """One of a message's blocks that has documents which are shown, as long as there is any.

    All of those have one role. A message whose role became another left blocks with the old one, and nothing in them.
    """
    shown = (block for block in blocks if any(entry and not entry.flags & SUPERSEDED for entry in block.entries))
    return next(shown, blocks[-1])


def slots_of(blocks: Iterable[Block]) -> list[Slot]:
    """The documents that stand in blocks."""
    return [
        Slot(block, slot, entry) for block in blocks for slot, entry in enumerate(block.entries) if entry is not None
    ]
