"""Which block of a message a record has: a new one, or one that was read before.

Records of one message have one block each (up to 0.2.x all of them), and most blocks are written once. A block is the
one of an earlier record only where the log shows it:

- **Its record is repeated**: it has the same `uuid`. A restart of the editor and compactions in the desktop app write
  records again. What the record says may have grown.
- **The message is repeated from its beginning** in records with other ids: the first of them follows a repetition of
  what the message follows, and the blocks come again word for word.
- **The record is another snapshot of the message**: it has all blocks of the message from the first one on, or the
  block that was read last, as they were or with more text. A text grows only as long as its stream goes on: a stop
  reason ends that, and so does the signature of a thought.
- **A call has its id.**

Any other block is a new one, also one that says what an earlier one says or begins with, as texts around calls may.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import msgspec


class WrittenBlock(msgspec.Struct, array_like=True):
    """A content block as a record has it."""

    kind: str
    text: str
    call_id: str | None = None
    proof: str | None = None
    """Signature of a thought, or citations of a text: blocks that differ in it are different ones."""
    is_open: bool = False
    """The record may be a snapshot of a stream that goes on with this block."""


class BlockReading(msgspec.Struct, array_like=True):
    """What one record said in a block: enough to recognise a later one that repeats or continues it."""

    record: int
    """Checksum of the record's id; 0 if it has none."""
    key: int
    """Checksum of the text."""
    length: int
    proof: int = 0
    """Checksum of its proof; 0 if it has none."""
    is_open: bool = False


class SeenBlock(msgspec.Struct, array_like=True):
    """A block that was read. Its number is its place in the list of them."""

    kind: str
    call_id: str | None = None
    readings: list[BlockReading] = []
    """One for each record that had it, in the order of the log."""


class SeenBlocks(msgspec.Struct, array_like=True):
    """The blocks of a message that were read."""

    blocks: list[SeenBlock] = []
    newest: int = -1
    """Number of the block that was read last."""
    repeated: int | None = None
    """While the message is repeated in records with other ids: the number of the block that is to come."""


class BlockNumbers:
    """Finds the numbers of blocks, record by record. `seen` outlives it."""

    __slots__ = ("_calls", "_records", "_seen")

    def __init__(self, seen: SeenBlocks) -> None:
        self._seen = seen
        self._calls: dict[str, int] = {}
        self._records: dict[int, list[tuple[int, BlockReading]]] = {}
        for number, block in enumerate(seen.blocks):
            if block.call_id is not None:
                self._calls[block.call_id] = number
            for reading in block.readings:
                self._note(number, reading)

    def numbers_of(self, record_id: str | None, written: Sequence[WrittenBlock], *, begins_again: bool) -> list[int]:
        """The numbers of a record's blocks.

        Args:
            record_id: The record's `uuid`; None if it has none.
            written: Its blocks, in their order.
            begins_again: The record follows what its message follows, which was written again.
        """
        seen = self._seen
        record = crc32(record_id.encode(errors="replace")) if record_id else 0
        if record in self._records:
            numbers = self._repeat_record(record, self._records[record].copy(), written)
        elif begins_again or seen.repeated is not None:
            if seen.repeated is None or self._begins_message(written, begins_again=begins_again):
                seen.repeated = 0
            numbers = self._repeat_message(written)
            if len(numbers) < len(written):
                seen.repeated = None
                numbers += self._read_snapshot(record, written[len(numbers) :])
        else:
            numbers = self._read_snapshot(record, written)
        if numbers:
            seen.newest = numbers[-1]
        return numbers

    def _repeat_record(
        self, record: int, known: list[tuple[int, BlockReading]], written: Sequence[WrittenBlock]
    ) -> list[int]:
        """The numbers of the blocks of a record that was read before, with the blocks `known`."""
        blocks, numbers, place = self._seen.blocks, list[int](), 0
        for block in written:
            places = range(place, len(known))
            same = next((at for at in places if _says(blocks[known[at][0]], known[at][1], block)), None)
            if same is not None:
                number, place = known[same][0], same + 1
            elif places and _begins(blocks[known[place][0]], known[place][1], block):
                number, place = known[place][0], place + 1
                self._add(number, record, block)
            else:
                number = self._add_block(record, block)
            numbers.append(number)
        return numbers

    def _begins_message(self, written: Sequence[WrittenBlock], *, begins_again: bool) -> bool:
        """Whether a record of a message that is being repeated has its first block, in a snapshot or once more."""
        # What the message follows may also come again between its records, as a reminder does.
        compared = written[:1] if begins_again else written
        return (begins_again or len(written) > 1) and all(map(_ever_said, self._seen.blocks, compared))

    def _repeat_message(self, written: Sequence[WrittenBlock]) -> list[int]:
        """The numbers of the blocks that repeat the message word for word, up to the first that does not."""
        seen, numbers = self._seen, list[int]()
        for block in written:
            expected = seen.repeated
            assert expected is not None
            # An earlier snapshot of a block may be repeated besides its last one.
            number = self._repeated_at((expected, expected - 1), block)
            if number is None:
                break
            seen.repeated = number + 1
            numbers.append(number)
        return numbers

    def _repeated_at(self, places: tuple[int, ...], block: WrittenBlock) -> int | None:
        """The number of the block that is repeated, if it is a call that is known or the one at one of these places."""
        if block.call_id is not None:
            return self._calls.get(block.call_id)
        blocks = self._seen.blocks
        return next((at for at in places if 0 <= at < len(blocks) and _ever_said(blocks[at], block)), None)

    def _read_snapshot(self, record: int, written: Sequence[WrittenBlock]) -> list[int]:
        """The numbers of the blocks of a new record, which may be a snapshot of blocks that are known."""
        blocks, numbers = self._seen.blocks, list[int]()
        # A snapshot of one block is that of the end of the stream.
        expected = self._seen.newest if self._seen.newest == len(blocks) - 1 else len(blocks)
        if 1 < len(written) >= len(blocks) and all(map(_is_snapshot_of, blocks, written)):
            expected = 0
        for block in written:
            if 0 <= expected < len(blocks) and _is_snapshot_of(blocks[expected], block):
                number = expected
                self._add(number, record, block)
            else:
                number = self._add_block(record, block)
            numbers.append(number)
            expected = number + 1
        return numbers

    def _add_block(self, record: int, block: WrittenBlock) -> int:
        """The number of a block that is a new one, unless it is a call that is known."""
        number = self._calls.get(block.call_id) if block.call_id is not None else None
        if number is None:
            number = len(self._seen.blocks)
            self._seen.blocks.append(SeenBlock(block.kind, block.call_id))
            if block.call_id is not None:
                self._calls[block.call_id] = number
        self._add(number, record, block)
        return number

    def _add(self, number: int, record: int, block: WrittenBlock) -> None:
        proof = _checksum(block.proof) if block.proof else 0
        reading = BlockReading(record, _checksum(block.text), len(block.text), proof, block.is_open)
        self._seen.blocks[number].readings.append(reading)
        self._note(number, reading)

    def _note(self, number: int, reading: BlockReading) -> None:
        if reading.record:
            self._records.setdefault(reading.record, []).append((number, reading))


def _is_snapshot_of(known: SeenBlock, block: WrittenBlock) -> bool:
    """Whether a block of another record is a known one again, as it was or with more text."""
    if known.kind != block.kind:
        return False
    newest = known.readings[-1]
    return _says(known, newest, block) or (newest.is_open and _begins(known, newest, block))


def _ever_said(known: SeenBlock, block: WrittenBlock) -> bool:
    return any(_says(known, reading, block) for reading in known.readings)


def _says(known: SeenBlock, reading: BlockReading, block: WrittenBlock) -> bool:
    """Whether a block says what a reading of a known one said. A call that is written again may have more input."""
    if known.call_id is not None or block.call_id is not None:
        return known.call_id == block.call_id
    if known.kind != block.kind or reading.length != len(block.text) or reading.key != _checksum(block.text):
        return False
    # A snapshot may not have the proof yet.
    return not block.proof or not reading.proof or reading.proof == _checksum(block.proof)


def _begins(known: SeenBlock, reading: BlockReading, block: WrittenBlock) -> bool:
    """Whether a block continues what a reading of a known one said."""
    is_longer = known.kind == block.kind and reading.length < len(block.text)
    return is_longer and reading.key == _checksum(block.text[: reading.length])


def _checksum(text: str) -> int:
    return crc32(text.encode(errors="replace"))
