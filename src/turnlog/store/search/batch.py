"""One transaction of the index: new, changed and deleted documents.

`words` is the index. `fresh` takes small commits. Each commit leaves a segment in its table. Merging segments is cheap
in a small table, while in `words` they would wait for the merge of its large ones. When `fresh` is full, it is emptied
and its documents are written into `words` at once. `sample` has the words of one in 64 documents of `words`,
`sparse_sample` those of one in 1024, so that the frequency of a word can be estimated quickly.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import TypeAlias
from zlib import crc32

import msgspec

from turnlog.store.search.base import ROLES
from turnlog.store.search.blocks import (
    STALE,
    Blocks,
    DocumentBlock,
    DocumentEntry,
    HomeSessions,
    Kinds,
    Slot,
    flag_markers,
    kind_marker,
    shown_block,
    slots_of,
    tool_marker,
)
from turnlog.store.search.documents import Document, MessageToIndex, StoreReader, documents_of, texts_of
from turnlog.store.search.index_file import (
    SAMPLES,
    SLOT_BITS,
    SLOTS,
    IndexProgress,
    Table,
    block_of,
    read_progress,
    write_progress,
)
from turnlog.store.search.words import to_index_text

_Change: TypeAlias = tuple[int, str | None, bytes]
"""Document id, command for FTS5 (None: insert), words."""


class Postings:
    """Collects insertions and deletions; `write` sorts and writes them."""

    def __init__(self, search: sqlite3.Connection) -> None:
        self._search = search
        self.new: list[tuple[int, int, bytes, bytes]] = []
        """New documents, for which no table is chosen yet: id, checksum, markers, words."""
        self._changes: dict[Table, list[_Change]] = {"words": [], "fresh": [], "sample": [], "sparse_sample": []}

    def insert_new(self, *, is_fresh: bool) -> None:
        """Insert new documents into one of the tables."""
        words = self._changes["fresh" if is_fresh else "words"]
        words += [(number, None, prefix + text) for number, _, prefix, text in self.new]
        for table, share in () if is_fresh else SAMPLES.items():
            self._changes[table] += [(new[0], None, new[3]) for new in self.new if not new[1] % share]
        self.new.clear()

    def delete(self, number: int, checksum: int, prefix: bytes, text: bytes, *, is_fresh: bool) -> None:
        """Delete a document with all its words."""
        # The tables are contentless: FTS5 finds the postings of a document only through the text that made them.
        self._changes["fresh" if is_fresh else "words"].append((number, "delete", prefix + text))
        for table, share in () if is_fresh else SAMPLES.items():
            if not checksum % share:
                self._changes[table].append((number, "delete", text))

    def replace_markers(self, number: int, old: list[str], new: list[str], *, is_fresh: bool) -> None:
        """Replace markers of a document; its other words stay."""
        changes = self._changes["fresh" if is_fresh else "words"]
        if old:
            changes.append((number, "delete", " ".join(old).encode()))
        if old or new:
            # Also without words: FTS5 counts documents, and the deletion above subtracted one.
            changes.append((number, None, " ".join(new).encode()))

    def write(self) -> None:
        """Write what was collected for each table."""
        for table, changes in self._changes.items():
            # FTS5 writes a segment whenever an id is smaller than the one before, so ids are sorted. Within a document
            # the order of calls is kept: deletions come before insertions.
            changes.sort(key=itemgetter(0))
            self._search.executemany(f"INSERT INTO {table} (rowid, {table}, text) VALUES (?, ?, ?)", changes)
            changes.clear()

    def empty_fresh(self) -> None:
        """Delete everything in `fresh`."""
        self._search.execute("INSERT INTO fresh (fresh) VALUES ('delete-all')")


BATCH_SIZE = 16 << 20
"""Bytes of text that are collected and sorted before FTS5 gets them, so that few segments are written."""

MOST_DOCUMENTS = 32 << 10
"""Documents that are collected, however small they are: each takes half a kilobyte besides its text."""

FRESH_SIZE = 1 << 20
"""Bytes of text in `fresh` at which it is emptied."""

_Text: TypeAlias = tuple[Document, bytes, DocumentEntry]
"""A current document of a message, its text, and its entry in a layout."""


class IndexBatch:
    """Collects documents with `add` and the other methods; `write` writes them. The caller owns the transaction."""

    def __init__(self, search: sqlite3.Connection, store_reader: StoreReader) -> None:
        self._search = search
        self._store_reader = store_reader
        before = read_progress(search)
        self.watermark = before.sequence, before.message_key
        """Change sequence and key of the last message that was added or left out."""
        self.sessions_sequence = before.sessions_sequence
        self.origin = before.origin
        self.size = 0
        """Bytes of text that were added and are no longer in memory."""
        self.merge_due = 0
        """Bytes of text that were written into `words`."""
        self._documents = before.documents
        self._fresh_size = before.fresh_size
        self._kinds = Kinds(search)
        self._postings = Postings(search)
        self._blocks = Blocks(search, before.displacement)
        self._newest_key = self._blocks.newest_key()
        self._seen: set[int] = set()
        self._home_sessions = HomeSessions(search)
        self._prefixes: dict[tuple[int, str, str], dict[tuple[int, int, str], bytes]] = defaultdict(dict)
        self._new_blocks: list[DocumentBlock] = []
        self._changed_blocks: list[DocumentBlock] = []
        self._pending = 0

    @property
    def is_full(self) -> bool:
        """Whether to call `write` now."""
        return self.size + self._pending >= BATCH_SIZE or len(self._seen) >= MOST_DOCUMENTS

    def add(self, row: MessageToIndex) -> None:
        """Update the documents of a message to its current body."""
        if row.key in self._seen:
            # The message changed while the batch was open: write what the batch has of it, to compare with that.
            self._flush()
        # Message keys are never reused, so one above the newest key in the index has no documents yet. In an import
        # this saves a lookup for every message.
        known = self._blocks.of_message(row.key) if row.key <= self._newest_key or row.key in self._seen else []
        self._seen.add(row.key)
        if known:
            self._update(row, known)
        else:
            self._home_sessions.settle(row.home, row.project)
            self._insert(row, self._texts(row))

    def set_project(self, session_key: int, project_key: int | None) -> None:
        """Replace the project marker of a session's indexed documents."""
        old_and_new = self._home_sessions.set_project(session_key, project_key)
        # A marker is a word of each document: FTS5 changes it only document by document.
        if old_and_new is not None:
            for slot in slots_of(self._blocks.of_home(session_key)):
                self._postings.replace_markers(slot.id, *old_and_new, is_fresh=slot.block.is_fresh)

    def remove(self, row: MessageToIndex) -> bool:
        """Delete a message's documents; False if some of its words could not be recovered and stay in the index."""
        known = self._blocks.of_message(row.key)
        if not known:
            return True
        slots = slots_of(known)
        deleted = self._delete_documents(self._as_marked(row, shown_block(known)), slots)
        self._blocks.delete(row.key)
        return len(deleted) == len(slots)

    def home_of(self, message_key: int) -> int | None:
        """The session with which a message's documents are marked; None if it has no documents."""
        known = self._blocks.of_message(message_key)
        return known[0].home if known else None

    def move_home(self, message_key: int, home: int, project_key: int | None) -> None:
        """Mark a message's documents with another of its sessions, which becomes their home."""
        known = self._blocks.of_message(message_key)
        self._home_sessions.settle(home, project_key)
        self._home_sessions.settle(known[0].home, None)
        old, new = self._home_sessions.markers(known[0].home), self._home_sessions.markers(home)
        for slot in slots_of(known):
            self._postings.replace_markers(slot.id, old, new, is_fresh=slot.block.is_fresh)
        self._changed_blocks += [block._replace(home=home) for block in known]

    def drop_home(self, session_key: int) -> None:
        """Forget a home, because no document is marked with it any more."""
        self._home_sessions.drop(session_key)

    def write(self) -> None:
        """Write everything collected, and the progress of the index."""
        self._flush()
        write_progress(
            self._search,
            IndexProgress(
                *self.watermark,
                self.sessions_sequence,
                self.origin,
                self._blocks.displacement,
                self._documents,
                self._fresh_size,
            ),
        )

    # -- new documents

    def _texts(self, row: MessageToIndex) -> Iterator[_Text]:
        load = self._store_reader.loader(row.key)
        for document in documents_of(row.body):
            for data in texts_of(document, load):
                entry = DocumentEntry(document.part, document.field, document.flags, len(data), crc32(data))
                yield document, data, entry

    def _insert(self, row: MessageToIndex, texts: Iterable[_Text]) -> None:
        """Insert new documents. This runs for every document: it makes few calls and computes nothing twice."""
        block, role = None, ROLES.index(row.role)
        prefixes = self._prefixes[row.home, row.agent, row.role]
        new = self._postings.new
        for document, data, entry in texts:
            if block is None or len(block.entries) == SLOTS:
                block = DocumentBlock(
                    self._blocks.reserve(block_of(row.created_at)), row.key, row.home, role, False, []
                )
                self._new_blocks.append(block)
            prefix = prefixes.get((entry.field, entry.flags, document.tool)) or self._prefix(row, document, entry.flags)
            words = to_index_text(data)
            number = block.number << SLOT_BITS | len(block.entries)
            new.append((number, entry.checksum, prefix, words))
            block.entries.append(entry)
            self._pending += len(words)
            if self._pending > BATCH_SIZE or len(new) >= MOST_DOCUMENTS:
                # A single message may have many megabytes, or many parts: write early to limit memory.
                self._flush()
                block = None

    def _prefix(self, row: MessageToIndex, document: Document, flags: int) -> bytes:
        """The markers for filters, which precede a document's words."""
        kind = kind_marker(self._kinds.ensure(row.agent, row.role, document.field))
        tool = [tool_marker(document.tool)] if document.tool else []
        found = [kind, *self._home_sessions.markers(row.home), *tool, *flag_markers(flags), ""]
        prefix = " ".join(found).encode()
        self._prefixes[row.home, row.agent, row.role][document.field, flags, document.tool] = prefix
        return prefix

    # -- documents that are already there

    def _as_marked(self, row: MessageToIndex, block: DocumentBlock) -> MessageToIndex:
        """The row with the home and role with which its documents are marked."""
        self._home_sessions.settle(block.home, row.project)
        return msgspec.structs.replace(row, home=block.home, role=ROLES[block.role])

    def _update(self, row: MessageToIndex, known: list[DocumentBlock]) -> None:
        marked = self._as_marked(row, shown_block(known))
        wanted = block_of(row.created_at)
        # The time or role of the message has changed, and document ids depend on the time: index the message again.
        moves = wanted > known[0].number or row.role != marked.role
        stayed, gone = (set[int](), slots_of(known)) if moves else self._compare(row, known)
        deleted = {slot.id for slot in self._delete_documents(marked, gone)}
        for slot in gone:
            # Words whose text is unknown cannot be deleted from FTS5: the entry remembers that they are outdated.
            if slot.id in deleted:
                slot.block.entries[slot.slot] = None
            else:
                slot.entry.flags |= STALE
        self._changed_blocks += known
        self._blocks.note_displacement(known[-1].number, wanted)
        # The texts are read a second time, because they may be too large to keep.
        fresh = (text for number, text in enumerate(self._texts(row)) if number not in stayed)
        self._insert(msgspec.structs.replace(row, home=marked.home), fresh)

    def _compare(self, row: MessageToIndex, known: list[DocumentBlock]) -> tuple[set[int], list[Slot]]:
        """The texts that stayed, by number, with their new place and flags, and the entries whose text is gone."""
        waiting: dict[tuple[int, int, int], list[Slot]] = defaultdict(list)
        for slot in slots_of(known):
            if not slot.entry.flags & STALE:
                waiting[slot.entry.text_identity].append(slot)
        stayed: set[int] = set()
        for number, (_, _, entry) in enumerate(self._texts(row)):
            # Equal text stays indexed even if its part has moved: only the entry is updated.
            same = waiting.get(entry.text_identity)
            if not same:
                continue
            stayed.add(number)
            slot = same.pop(0)
            old, new = flag_markers(slot.entry.flags), flag_markers(entry.flags)
            lost, won = [each for each in old if each not in new], [each for each in new if each not in old]
            self._postings.replace_markers(slot.id, lost, won, is_fresh=slot.block.is_fresh)
            slot.block.entries[slot.slot] = entry
        return stayed, [slot for slots in waiting.values() for slot in slots]

    def _delete_documents(self, row: MessageToIndex, slots: Iterable[Slot]) -> list[Slot]:
        """Delete documents; return those whose text could be recovered."""
        deleted: list[Slot] = []
        for slot, document, data in self._recover_texts(row, slots):
            prefix, words = self._prefix(row, document, slot.entry.flags), to_index_text(data)
            self._postings.delete(slot.id, slot.entry.checksum, prefix, words, is_fresh=slot.block.is_fresh)
            deleted.append(slot)
        return deleted

    def _recover_texts(self, row: MessageToIndex, slots: Iterable[Slot]) -> Iterator[tuple[Slot, Document, bytes]]:
        """Find the texts from which documents were made among the message's current texts and their beginnings."""
        waiting = [slot for slot in slots if not slot.entry.flags & STALE]
        for document, data, now in self._texts(row) if waiting else ():
            for slot in waiting[:]:
                if _begins_with(slot.entry, data, now):
                    waiting.remove(slot)
                    yield slot, document, data[: slot.entry.length]

    # -- writing

    def _flush(self) -> None:
        # Every write leaves a segment in its table. A few lines go where merging segments costs nothing; what has come
        # together there, and every batch of an import, goes into `words` as one large segment.
        is_fresh = self._fresh_size + self._pending <= FRESH_SIZE
        # `words` gets one segment for both, instead of one for each.
        if not is_fresh and self._fresh_size:
            self._empty_fresh()
        self._postings.insert_new(is_fresh=is_fresh)
        self._postings.write()
        self._blocks.insert(self._new_blocks, is_fresh=is_fresh)
        self._blocks.update(self._changed_blocks)
        self._documents += sum([len(block.entries) for block in self._new_blocks])
        self._new_blocks.clear()
        self._changed_blocks.clear()
        self.size += self._pending
        if is_fresh:
            self._fresh_size += self._pending
        else:
            self.merge_due += self._pending
        self._pending = 0

    def _empty_fresh(self) -> None:
        """Move the documents of `fresh` into `words`. Their texts are still in the store, or they are outdated."""
        self._postings.write()
        self._blocks.update(self._changed_blocks)
        self._changed_blocks.clear()
        for key in self._blocks.fresh_keys():
            row = self._store_reader.message(key)
            # The message was deleted. Its words go with the whole table, which is emptied below.
            if row is None:
                self._blocks.delete(key)
            else:
                self._move_to_words(row, [block for block in self._blocks.of_message(key) if block.is_fresh])
        self._postings.empty_fresh()
        self.merge_due += self._fresh_size
        self._fresh_size = 0

    def _move_to_words(self, row: MessageToIndex, blocks: list[DocumentBlock]) -> None:
        row = self._as_marked(row, shown_block(blocks))
        slots = slots_of(blocks)
        # Contentless tables return no words, so the words are made again from the store. An entry whose text is gone
        # stays empty: its words go with the table.
        for slot in slots:
            slot.block.entries[slot.slot] = None
        for slot, document, data in self._recover_texts(row, slots):
            slot.block.entries[slot.slot] = slot.entry
            prefix, words = self._prefix(row, document, slot.entry.flags), to_index_text(data)
            self._postings.new.append((slot.id, slot.entry.checksum, prefix, words))
        self._changed_blocks += [block._replace(is_fresh=False) for block in blocks]


def _begins_with(entry: DocumentEntry, data: bytes, now: DocumentEntry) -> bool:
    """Whether a document was made from a text, or from its beginning."""
    if entry.field != now.field or entry.length > now.length:
        return False
    if entry.length == now.length:
        return entry.checksum == now.checksum
    return crc32(data[: entry.length]) == entry.checksum
