"""Words on their way into the index's tables.

`words` is the index. `fresh` takes what comes in small pieces: every commit leaves a segment in its table, and
merging those of a small one costs nothing, while in a large one they would wait behind its own large segments. When
there is too much in it, it is emptied and its documents are written into `words` at once. `sample` has the words of
one document of `words` in 64 and `sparse_sample` of one in 1024, so that how common a word is can be told quickly.
"""

from __future__ import annotations

import sqlite3
from operator import itemgetter
from typing import Literal, TypeAlias

Table: TypeAlias = Literal["words", "fresh", "sample", "sparse_sample"]

SAMPLES: dict[Table, int] = {"sample": 64, "sparse_sample": 1024}
"""One document in so many is in these tables: those whose checksum is a multiple of it."""

_Change: TypeAlias = tuple[int, str | None, bytes]
"""Document id, FTS5's command (None writes), words."""


class Postings:
    """Collects what is to be written; `write` sorts and writes it."""

    def __init__(self, search: sqlite3.Connection) -> None:
        self._search = search
        self.new: list[tuple[int, int, bytes, bytes]] = []
        """New documents, for which no table is chosen yet: id, checksum, markers, words."""
        self._changes: dict[Table, list[_Change]] = {"words": [], "fresh": [], "sample": [], "sparse_sample": []}

    def insert_new(self, *, is_fresh: bool) -> None:
        """Write the new documents into one of the tables."""
        words = self._changes["fresh" if is_fresh else "words"]
        words += [(number, None, prefix + text) for number, _, prefix, text in self.new]
        for table, share in () if is_fresh else SAMPLES.items():
            self._changes[table] += [(new[0], None, new[3]) for new in self.new if not new[1] % share]
        self.new.clear()

    def delete(self, number: int, checksum: int, prefix: bytes, text: bytes, *, is_fresh: bool) -> None:
        """Take a document out, by all its words."""
        self._changes["fresh" if is_fresh else "words"].append((number, "delete", prefix + text))
        for table, share in () if is_fresh else SAMPLES.items():
            if not checksum % share:
                self._changes[table].append((number, "delete", text))

    def remark(self, number: int, old: list[str], new: list[str], *, is_fresh: bool) -> None:
        """Take markers from a document and give it others; its other words are not touched."""
        changes = self._changes["fresh" if is_fresh else "words"]
        if old:
            changes.append((number, "delete", " ".join(old).encode()))
        if old or new:
            # Also without words: FTS5 counts documents, and the deletion above took one off.
            changes.append((number, None, " ".join(new).encode()))

    def write(self) -> None:
        """Write all that has its table."""
        for table, changes in self._changes.items():
            # FTS5 writes a segment whenever an id is smaller than the one before. What is deleted from a document
            # comes before what is written to it, as it was said.
            changes.sort(key=itemgetter(0))
            self._search.executemany(f"INSERT INTO {table} (rowid, {table}, text) VALUES (?, ?, ?)", changes)
            changes.clear()

    def empty_fresh(self) -> None:
        """Take everything out of `fresh`."""
        self._search.execute("INSERT INTO fresh (fresh) VALUES ('delete-all')")
