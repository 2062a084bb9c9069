"""What the index stores about documents besides their words: blocks, and the markers that precede a document's words.

A block is packed into `documents.layout`, with one entry for each used slot. Markers are words that no text contains,
so that a filter is just another word of the query. Each begins with a private-use character, which `words` removes from
texts and queries. A document has the marker of its home, one of the sessions that contain its message, and of that
session's project.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from turnlog.store.search.documents import FAILED, HAS_IMAGE
from turnlog.store.search.index_file import SLOT_BITS

STALE = 4
"""Flag of an entry whose words are still indexed although its text is no longer known. It is never shown."""


class DocumentEntry(msgspec.Struct, array_like=True, gc=False):
    """One document. `length` and `checksum` of its UTF-8 text identify the text."""

    part: int
    field: int
    flags: int
    length: int
    checksum: int

    @property
    def text_identity(self) -> tuple[int, int, int]:
        """A value that is equal for equal texts."""
        return (self.field, self.length, self.checksum)


Entries: TypeAlias = list[DocumentEntry | None]
"""Entries by slot; None for a document whose words were deleted from the index."""

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Entries] = msgspec.msgpack.Decoder(Entries)


def pack(entries: Entries) -> bytes:
    """Encode a layout."""
    return _encoder.encode(entries)


def unpack(layout: bytes) -> Entries:
    """Decode a layout."""
    return _decoder.decode(layout)


_END = 1 << 60
"""A block number after all blocks."""


class DocumentBlock(NamedTuple):
    """Documents of one message with consecutive ids."""

    number: int
    message_key: int
    home: int
    role: int
    """Index in `ROLES`."""
    is_fresh: bool
    """Whether their words are in `fresh` instead of `words`."""
    entries: Entries


class Slot(NamedTuple):
    """The place of one document."""

    block: DocumentBlock
    slot: int
    entry: DocumentEntry

    @property
    def id(self) -> int:
        """The document's id."""
        return self.block.number << SLOT_BITS | self.slot


class Blocks:
    """Reads, writes and allocates blocks. Used for one transaction."""

    def __init__(self, search: sqlite3.Connection, displacement: int) -> None:
        self._search = search
        self.displacement = displacement
        """The farthest that any block lies behind the one of its message's time."""
        self._taken: dict[int, int] = {}
        self._gap = (0, 0)

    def of_message(self, message_key: int) -> list[DocumentBlock]:
        """A message's blocks, oldest first."""
        return self._load("message_key = ?", message_key)

    def of_home(self, session_key: int) -> list[DocumentBlock]:
        """All blocks with this home."""
        return self._load("home = ?", session_key)

    def fresh_keys(self) -> list[int]:
        """Keys of messages with blocks in `fresh`."""
        return [key for (key,) in self._search.execute("SELECT DISTINCT message_key FROM documents WHERE is_fresh")]

    def newest_key(self) -> int:
        """The largest message key that has a block."""
        return self._search.execute("SELECT coalesce(max(message_key), 0) FROM documents").fetchone()[0]

    def insert(self, blocks: Iterable[DocumentBlock], *, is_fresh: bool) -> None:
        """Insert new blocks."""
        self._search.executemany(
            "INSERT INTO documents (block, message_key, home, role, is_fresh, layout) VALUES (?, ?, ?, ?, ?, ?)",
            [(*block[:4], is_fresh, pack(block.entries)) for block in sorted(blocks)],
        )

    def update(self, blocks: Iterable[DocumentBlock]) -> None:
        """Update these blocks."""
        self._search.executemany(
            "UPDATE documents SET home = ?, is_fresh = ?, layout = ? WHERE block = ?",
            [(block.home, block.is_fresh, pack(block.entries), block.number) for block in blocks],
        )

    def delete(self, message_key: int) -> None:
        """Delete a message's blocks."""
        self._search.execute("DELETE FROM documents WHERE message_key = ?", (message_key,))

    def reserve(self, wanted: int) -> int:
        """Allocate the first free block from `wanted` on. Occupied blocks are remembered, so each is passed once."""
        # Messages of a log that all have one time, or none, want the same block.
        passed: list[int] = []
        block = wanted
        while True:
            following = self._taken.get(block)
            if following is None:
                if self._is_free(block):
                    break
                following = self._end_of_crowd(block)
            passed.append(block)
            block = following
        self._taken[block] = block + 1
        # Path compression: the next message that wants one of these blocks jumps over all of them.
        for each in passed:
            self._taken[each] = block + 1
        self.note_displacement(block, wanted)
        return block

    def note_displacement(self, block: int, wanted: int) -> None:
        """Remember how far a block is from the one that its time wants."""
        self.displacement = max(self.displacement, block - wanted)

    def _is_free(self, block: int) -> bool:
        """Whether a block is free. One query finds the whole gap, and a session's messages share gaps."""
        start, end = self._gap
        if not start <= block < end:
            found = self._search.execute("SELECT min(block) FROM documents WHERE block >= ?", (block,)).fetchone()[0]
            start, end = self._gap = block, _END if found is None else found
        return block < end

    def _end_of_crowd(self, block: int) -> int:
        """The first block behind this one that the index does not have, found in steps that double and halve."""
        block += 1
        step = 1
        while self._is_crowded(block, block + step):
            block += step
            step *= 2
        while step > 1:
            step //= 2
            if self._is_crowded(block, block + step):
                block += step
        return block

    def _is_crowded(self, start: int, end: int) -> bool:
        count = "SELECT count(*) FROM documents WHERE block >= ? AND block < ?"
        return self._search.execute(count, (start, end)).fetchone()[0] == end - start

    def _load(self, condition: str, value: int) -> list[DocumentBlock]:
        rows = self._search.execute(
            f"SELECT block, message_key, home, role, is_fresh, layout FROM documents WHERE {condition} ORDER BY block",
            (value,),
        )
        return [
            DocumentBlock(block, message_key, home, role, bool(is_fresh), unpack(packed))
            for block, message_key, home, role, is_fresh, packed in rows
        ]


def shown_block(blocks: Sequence[DocumentBlock]) -> DocumentBlock:
    """A block of a message with visible documents, if there is one.

    Visible documents of a message have one role. If the role changed, empty blocks with the old one remain.
    """
    shown = (block for block in blocks if any(entry and not entry.flags & STALE for entry in block.entries))
    return next(shown, blocks[-1])


def slots_of(blocks: Iterable[DocumentBlock]) -> list[Slot]:
    """The documents in these blocks."""
    return [
        Slot(block, slot, entry) for block in blocks for slot, entry in enumerate(block.entries) if entry is not None
    ]


_KIND, _SESSION, _PROJECT, _TOOL, _FLAG, _FILLER = (chr(0xE000 + number) for number in range(6))

_FLAG_MARKERS = {FAILED: f"{_FLAG}f", HAS_IMAGE: f"{_FLAG}i"}


def kind_marker(key: int) -> str:
    """The marker of agent, role and field together (`Kinds`)."""
    return f"{_KIND}{key}"


def session_marker(key: int) -> str:
    """The marker of a document's home."""
    return f"{_SESSION}{key}"


def project_marker(key: int) -> str:
    """The marker of the project of a document's home."""
    return f"{_PROJECT}{key}"


def tool_marker(name: str) -> str:
    """The marker of a tool, in lower case; characters that are neither letters nor digits become a filler."""
    # FTS5's tokenizer would end the marker at any other character, as in `mcp__files__read`.
    return _TOOL + "".join([character if character.isalnum() else _FILLER for character in name])


def flag_markers(value: int) -> list[str]:
    """The markers of the flags that are set."""
    return [marker for flag, marker in _FLAG_MARKERS.items() if value & flag]


class Kinds:
    """The numbers of combinations of agent, role and field."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        rows = connection.execute("SELECT agent, role, field, key FROM kinds")
        self._keys = {(agent, role, field): key for agent, role, field, key in rows}

    def ensure(self, agent: str, role: str, field: int) -> int:
        """The number of a combination, allocated on first use."""
        key = self._keys.get((agent, role, field))
        if key is None:
            cursor = self._connection.execute(
                "INSERT INTO kinds (agent, role, field) VALUES (?, ?, ?)", (agent, role, field)
            )
            key = self._keys[agent, role, field] = cursor.lastrowid or 0
        return key

    def matching(self, agent: str | None, role: str | None, fields: tuple[int, ...] | None) -> list[int]:
        """The numbers of all combinations that match; None matches everything."""
        return [
            key
            for (its_agent, its_role, its_field), key in self._keys.items()
            if agent in (None, its_agent) and role in (None, its_role) and (fields is None or its_field in fields)
        ]


class HomeSessions:
    """The project with which each home's documents are marked."""

    def __init__(self, search: sqlite3.Connection) -> None:
        self._search = search
        self._projects: dict[int, int | None] = {}

    def settle(self, home: int, project: int | None) -> None:
        """Load the project of a home. The first one is kept until `set_project`."""
        if home in self._projects:
            return
        # FTS5 deletes a document by exactly the words that it was given. So its markers name the project of that time,
        # whatever the session's project is now.
        known = self._search.execute("SELECT project_key FROM home_sessions WHERE session_key = ?", (home,)).fetchone()
        if known is None:
            self._search.execute("INSERT INTO home_sessions (session_key, project_key) VALUES (?, ?)", (home, project))
            known = (project,)
        self._projects[home] = known[0]

    def markers(self, home: int) -> list[str]:
        """The markers for documents of a home that was settled."""
        return [session_marker(home), *_project_marker(self._projects[home])]

    def set_project(self, home: int, project: int | None) -> tuple[list[str], list[str]] | None:
        """Set the project of a home; return the old and the new marker, None if nothing must be marked again."""
        known = self._search.execute("SELECT project_key FROM home_sessions WHERE session_key = ?", (home,)).fetchone()
        if known is None or known[0] == project:
            return None
        self._search.execute("UPDATE home_sessions SET project_key = ? WHERE session_key = ?", (project, home))
        self._projects[home] = project
        return _project_marker(known[0]), _project_marker(project)

    def drop(self, home: int) -> None:
        """Forget a home, because no document is marked with it any more."""
        self._search.execute("DELETE FROM home_sessions WHERE session_key = ?", (home,))


def _project_marker(project_key: int | None) -> list[str]:
    return [] if project_key is None else [project_marker(project_key)]
