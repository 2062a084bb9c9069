"""Words on their way into the index's three tables.

`words` is the index. `fresh` takes what comes in small pieces: every commit leaves a segment in its table, and
merging those of a small one costs nothing, while in a large one they would wait behind its own large segments. When
there is too much in it, it is emptied and its documents are written into `words` at once. `sample` has the words of
one document of `words` in 64, so that how common a word is can be told quickly.
"""

from __future__ import annotations

import sqlite3
from typing import Literal, TypeAlias

Table: TypeAlias = Literal["words", "fresh", "sample"]

_SAMPLE_MASK = 63
"""A document is in the sample when these bits of its checksum are zero."""

_DELETE, _INSERT = 0, 1
_COMMANDS = ("delete", None)


class Postings:
    """Collects what is to be written; `write` sorts and writes it."""

    def __init__(self, search: sqlite3.Connection) -> None:
        self._search = search
        self.new: list[tuple[int, int, bytes, bytes]] = []
        """New documents, for which no table is chosen yet: id, checksum, markers, words."""
        self._changes: dict[Table, list[tuple[int, int, bytes]]] = {"words": [], "fresh": [], "sample": []}

    def insert(self, number: int, checksum: int, prefix: bytes, words: bytes, *, is_fresh: bool) -> None:
        """Write a document into the table that is said."""
        if is_fresh:
            self._changes["fresh"].append((number, _INSERT, prefix + words))
            return
        self._changes["words"].append((number, _INSERT, prefix + words))
        if not checksum & _SAMPLE_MASK:
            self._changes["sample"].append((number, _INSERT, words))

    def delete(self, number: int, checksum: int, prefix: bytes, words: bytes, *, is_fresh: bool) -> None:
        """Take a document out, by all its words."""
        self._changes["fresh" if is_fresh else "words"].append((number, _DELETE, prefix + words))
        if not is_fresh and not checksum & _SAMPLE_MASK:
            self._changes["sample"].append((number, _DELETE, words))

    def remark(self, number: int, old: list[str], new: list[str], *, is_fresh: bool) -> None:
        """Take markers from a document and give it others; its other words are not touched."""
        changes = self._changes["fresh" if is_fresh else "words"]
        if old:
            changes.append((number, _DELETE, " ".join(old).encode()))
        if old or new:
            # Also without words: FTS5 counts documents, and the deletion above took one off.
            changes.append((number, _INSERT, " ".join(new).encode()))

    def place_new(self, *, is_fresh: bool) -> None:
        """Choose the table of the new documents."""
        for number, checksum, prefix, words in self.new:
            self.insert(number, checksum, prefix, words, is_fresh=is_fresh)
        self.new.clear()

    def write(self) -> None:
        """Write all that has its table."""
        # FTS5 writes a segment whenever a row id is smaller than the one before: hence sorted.
        for table, changes in self._changes.items():
            if changes:
                changes.sort(key=_order)
                rows = [(_COMMANDS[what], number, words) for number, what, words in changes]
                changes.clear()
                self._search.executemany(f"INSERT INTO {table} ({table}, rowid, text) VALUES (?, ?, ?)", rows)

    def empty_fresh(self) -> None:
        """Take everything out of `fresh`."""
        self._search.execute("INSERT INTO fresh (fresh) VALUES ('delete-all')")


def _order(change: tuple[int, int, bytes]) -> tuple[int, int]:
    return change[:2]
