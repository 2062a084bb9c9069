"""What one transaction writes into the index: new documents, and what changed of old ones.

FTS5 keeps no texts here, so a document can be taken out only by telling it the text again. Texts that grew or stayed
can be told (the old one is a prefix of the new one, and its checksum says so); of others the words stay in the index
under an entry that is marked as superseded, until the index is made anew. Filter words are added to and taken from a
document without touching its text.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias
from zlib import crc32

import msgspec

from turnlog.store.search import layout, markers
from turnlog.store.search.contents import Contents
from turnlog.store.search.documents import Document, documents_of, texts_of
from turnlog.store.search.layout import SUPERSEDED, Entry
from turnlog.store.search.schema import SLOT_BITS, SLOTS, Progress, block_of, read_progress, write_progress
from turnlog.store.search.tokens import searchable

BATCH_SIZE = 16 << 20
"""Bytes of text that are collected and sorted before FTS5 gets them, so that few segments are written."""

_SAMPLE_MASK = 63
"""A document is in the sample when these bits of its checksum are zero."""

_END = 1 << 60
"""Behind every block."""

_DELETE, _INSERT = 0, 1
_COMMANDS = ("delete", None)

_WORDS_WRITE = "INSERT INTO words (words, rowid, text) VALUES (?, ?, ?)"
_SAMPLE_WRITE = "INSERT INTO sample (sample, rowid, text) VALUES (?, ?, ?)"

_Operation: TypeAlias = tuple[int, int, bytes]
"""Document id, `_DELETE` or `_INSERT`, words."""


class MessageRow(msgspec.Struct, frozen=True, gc=False):
    """What the indexer reads of a message. `home` is a session that holds it."""

    key: int
    changed_seq: int
    agent: str
    role: str
    created_at: int | None
    home: int
    project: int | None
    body: bytes


_Text: TypeAlias = tuple[Document, bytes, Entry]
"""A document of a message as it is now, its text, and its entry in a layout."""


class _Block(NamedTuple):
    """Documents of one message with neighbouring ids."""

    number: int
    message_key: int
    home: int
    entries: list[Entry | None]


class _Slot(NamedTuple):
    """Where a document that is already in the index stands."""

    block: _Block
    slot: int
    entry: Entry

    @property
    def id(self) -> int:
        return self.block.number << SLOT_BITS | self.slot


class Batch:
    """Collects what `add` and the others bring; `write` puts it all into the index. The caller owns the transaction."""

    def __init__(self, search: sqlite3.Connection, contents: Contents) -> None:
        self._search = search
        self._contents = contents
        self._before = read_progress(search)
        self.watermark = self._before.sequence, self._before.message_key
        """Change sequence and key of the last message that was added or left out."""
        self.sessions_sequence = self._before.sessions_sequence
        self.origin = self._before.origin
        self._kinds = markers.Kinds(search)
        self._newest_key = search.execute("SELECT coalesce(max(message_key), 0) FROM documents").fetchone()[0]
        self._seen: set[int] = set()
        self._homes: dict[int, int | None] = {}
        self._prefixes: dict[tuple[int, str, str], dict[tuple[int, int, str], bytes]] = defaultdict(dict)
        self._taken: dict[int, int] = {}
        self._gap = (0, 0)
        self._words: list[_Operation] = []
        self._sample: list[_Operation] = []
        self._new_blocks: list[_Block] = []
        self._changed_blocks: list[_Block] = []
        self._pending = self._written = 0
        self._documents = 0
        self._displacement = self._before.displacement

    @property
    def is_full(self) -> bool:
        """Whether it is time to write."""
        return self.size >= BATCH_SIZE

    @property
    def size(self) -> int:
        """Bytes of text that were added."""
        return self._written + self._pending

    def add(self, row: MessageRow) -> None:
        """Bring a message's documents up to its body."""
        if row.key in self._seen:
            # It changed while the batch was open: what the batch wrote of it must be there to be compared.
            self._flush()
        known = self._known(row.key) if row.key <= self._newest_key or row.key in self._seen else []
        self._seen.add(row.key)
        if known:
            self._update(row, known)
        else:
            self._settle_home(row.home, row.project)
            self._insert(row, self._texts(row))

    def set_project(self, session_key: int, project_key: int | None) -> None:
        """Mark what is already indexed of a session with the project that it turned out to belong to."""
        known = self._search.execute("SELECT project_key FROM homes WHERE session_key = ?", (session_key,)).fetchone()
        if known is None or known[0] == project_key:
            return
        for slot in _slots(self._load_blocks("home", session_key)):
            self._remark(slot.id, _project_marker(known[0]), _project_marker(project_key))
        self._search.execute("UPDATE homes SET project_key = ? WHERE session_key = ?", (project_key, session_key))
        self._homes[session_key] = project_key

    def remove(self, row: MessageRow) -> bool:
        """Take a message out; False when some of its words could not be told and stay in the index."""
        known = self._known(row.key)
        if not known:
            return True
        row = self._at_home(row, known)
        texts = list(self._texts(row))
        told = [self._take_out(row, slot, texts) for slot in _slots(known)]
        self._search.execute("DELETE FROM documents WHERE message_key = ?", (row.key,))
        return all(told)

    def home_of(self, message_key: int) -> int | None:
        """The session that a message's documents are marked with; None when there are none."""
        known = self._known(message_key)
        return known[0].home if known else None

    def drop_home(self, session_key: int) -> None:
        """Forget that documents were marked with this session."""
        self._search.execute("DELETE FROM homes WHERE session_key = ?", (session_key,))

    def move_home(self, message_key: int, home: int, project_key: int | None) -> None:
        """Mark a message's documents with another of its sessions, which becomes their home."""
        known = self._known(message_key)
        if not known:
            return
        self._settle_home(home, project_key)
        self._settle_home(known[0].home, None)
        old, new = self._home_markers(known[0].home), self._home_markers(home)
        for slot in _slots(known):
            self._remark(slot.id, old, new)
        self._search.execute("UPDATE documents SET home = ? WHERE message_key = ?", (home, message_key))

    def write(self) -> None:
        """Write everything collected, and how far the index is."""
        self._flush()
        documents = self._before.documents + self._documents
        progress = Progress(*self.watermark, self.sessions_sequence, self.origin, self._displacement, documents)
        write_progress(self._search, progress)

    # -- new documents

    def _texts(self, row: MessageRow) -> Iterator[_Text]:
        load = self._contents.loader(row.key)
        for document in documents_of(row.body):
            for data in texts_of(document, load):
                entry = Entry(document.sequence, document.field, document.flags, len(data), crc32(data))
                yield document, data, entry

    def _insert(self, row: MessageRow, texts: Iterable[_Text], block: _Block | None = None) -> None:
        """Write new documents, into free slots of `block` first.

        Runs for every document there is: little is called, and nothing is made twice.
        """
        prefixes = self._prefixes[row.home, row.agent, row.role]
        for document, data, entry in texts:
            if block is None or len(block.entries) == SLOTS:
                block = _Block(self._reserve(block_of(row.created_at)), row.key, row.home, [])
                self._new_blocks.append(block)
            prefix = prefixes.get((entry.field, entry.flags, document.tool)) or self._prefix(row, document, entry.flags)
            words = searchable(data)
            number = block.number << SLOT_BITS | len(block.entries)
            self._words.append((number, _INSERT, prefix + words))
            if not entry.checksum & _SAMPLE_MASK:
                self._sample.append((number, _INSERT, words))
            block.entries.append(entry)
            self._pending += len(words)
            if self._pending > 2 * BATCH_SIZE:
                # One message of many megabytes: memory must not grow with it.
                self._flush()
                block = None

    def _prefix(self, row: MessageRow, document: Document, flags: int) -> bytes:
        """The markers that filters look for, as they stand before a document's words."""
        kind = markers.kind(self._kinds.ensure(row.agent, row.role, document.field))
        tool = [markers.tool(document.tool)] if document.tool else []
        found = [kind, *self._home_markers(row.home), *tool, *markers.flags(flags), ""]
        prefix = " ".join(found).encode()
        self._prefixes[row.home, row.agent, row.role][document.field, flags, document.tool] = prefix
        return prefix

    def _home_markers(self, home: int) -> list[str]:
        return [markers.session(home), *_project_marker(self._homes[home])]

    def _settle_home(self, home: int, project: int | None) -> None:
        """Know the project that documents of this home are marked with; the first one stands until `set_project`."""
        if home in self._homes:
            return
        known = self._search.execute("SELECT project_key FROM homes WHERE session_key = ?", (home,)).fetchone()
        if known is None:
            self._search.execute("INSERT INTO homes (session_key, project_key) VALUES (?, ?)", (home, project))
            known = (project,)
        self._homes[home] = known[0]

    def _reserve(self, wanted: int) -> int:
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
        self._displacement = max(self._displacement, block - wanted)
        return block

    def _is_free(self, block: int) -> bool:
        """Whether the index has no such block. One look finds the whole gap, and a session's messages share gaps."""
        start, end = self._gap
        if not start <= block < end:
            found = self._search.execute("SELECT min(block) FROM documents WHERE block >= ?", (block,)).fetchone()[0]
            start, end = self._gap = block, _END if found is None else found
        return block < end

    # -- documents that are already there

    def _known(self, message_key: int) -> list[_Block]:
        """Blocks of a message, oldest first."""
        return self._load_blocks("message_key", message_key)

    def _load_blocks(self, column: str, value: int) -> list[_Block]:
        rows = self._search.execute(
            f"SELECT block, message_key, home, layout FROM documents WHERE {column} = ? ORDER BY block", (value,)
        )
        return [_Block(block, key, home, layout.unpack(packed)) for block, key, home, packed in rows]

    def _at_home(self, row: MessageRow, known: list[_Block]) -> MessageRow:
        """The row with the home that its documents are marked with."""
        home = known[0].home
        self._settle_home(home, row.project)
        return msgspec.structs.replace(row, home=home)

    def _update(self, row: MessageRow, known: list[_Block]) -> None:
        row = self._at_home(row, known)
        texts = list(self._texts(row))
        wanted = block_of(row.created_at)
        # Its time is known only now, or later than it was thought: everything gets new ids.
        moves = wanted > known[0].number
        fresh, gone = (texts, _slots(known)) if moves else self._compare(texts, known)
        for slot in gone:
            if self._take_out(row, slot, texts):
                slot.block.entries[slot.slot] = None
            else:
                slot.entry.flags |= SUPERSEDED
        self._changed_blocks += known
        self._displacement = max(self._displacement, known[-1].number - wanted)
        self._insert(row, fresh, None if moves else known[-1])

    def _compare(self, texts: list[_Text], known: list[_Block]) -> tuple[list[_Text], list[_Slot]]:
        """What is new and what is gone; what stayed gets its new place in the message and its new flags."""
        waiting: dict[tuple[int, int, int], list[_Slot]] = defaultdict(list)
        for slot in _slots(known):
            if not slot.entry.flags & SUPERSEDED:
                waiting[slot.entry.text_identity].append(slot)
        fresh: list[_Text] = []
        for text in texts:
            entry = text[2]
            same = waiting.get(entry.text_identity)
            if not same:
                fresh.append(text)
                continue
            slot = same.pop(0)
            old, new = markers.flags(slot.entry.flags), markers.flags(entry.flags)
            self._remark(slot.id, [each for each in old if each not in new], [each for each in new if each not in old])
            slot.block.entries[slot.slot] = entry
        return fresh, [slot for slots in waiting.values() for slot in slots]

    def _remark(self, number: int, old: list[str], new: list[str]) -> None:
        """Take markers from a document and give it others; its other words are not touched."""
        if old:
            self._words.append((number, _DELETE, " ".join(old).encode()))
        if old or new:
            # Also without words: FTS5 counts documents, and the deletion above took one off.
            self._words.append((number, _INSERT, " ".join(new).encode()))

    def _take_out(self, row: MessageRow, slot: _Slot, texts: Iterable[_Text]) -> bool:
        """Take a document's words out of the index if its text can still be told."""
        entry = slot.entry
        if entry.flags & SUPERSEDED:
            return False
        for document, whole, now in texts:
            data = whole[: entry.length]
            if now.field == entry.field and len(data) == entry.length and crc32(data) == entry.checksum:
                words = searchable(data)
                self._words.append((slot.id, _DELETE, self._prefix(row, document, entry.flags) + words))
                if not entry.checksum & _SAMPLE_MASK:
                    self._sample.append((slot.id, _DELETE, words))
                return True
        return False

    # -- writing

    def _flush(self) -> None:
        # FTS5 writes a segment whenever a row id is smaller than the one before: hence sorted.
        for statement, operations in ((_WORDS_WRITE, self._words), (_SAMPLE_WRITE, self._sample)):
            operations.sort(key=_order)
            self._search.executemany(
                statement, [(_COMMANDS[what], number, words) for number, what, words in operations]
            )
            operations.clear()
        self._search.executemany(
            "INSERT INTO documents (block, message_key, home, layout) VALUES (?, ?, ?, ?)",
            [(*block[:3], layout.pack(block.entries)) for block in sorted(self._new_blocks)],
        )
        self._search.executemany(
            "UPDATE documents SET layout = ? WHERE block = ?",
            [(layout.pack(block.entries), block.number) for block in self._changed_blocks],
        )
        self._documents += sum([len(block.entries) for block in self._new_blocks])
        self._new_blocks.clear()
        self._changed_blocks.clear()
        self._written += self._pending
        self._pending = 0


def _order(operation: _Operation) -> tuple[int, int]:
    return operation[:2]


def _slots(blocks: Iterable[_Block]) -> list[_Slot]:
    return [
        _Slot(block, slot, entry) for block in blocks for slot, entry in enumerate(block.entries) if entry is not None
    ]


def _project_marker(project_key: int | None) -> list[str]:
    return [] if project_key is None else [markers.project(project_key)]
