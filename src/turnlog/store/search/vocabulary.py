"""Which words the index contains, and how rare they are.

FTS5's own prefix search reads every document of every word that fits, newest or not. Here a prefix becomes at most
`MAX_WORDS` words: all of them if there are no more, otherwise the most common ones. Once the index is too large to
count words in all of it, they are counted in a sample.
"""

from __future__ import annotations

import math
import sqlite3

from turnlog.store.search.index_file import SAMPLES, Table
from turnlog.store.search.words import index_form

MAX_WORDS = 48

SMALL = 50_000
"""Up to so many documents, words are counted in the whole index."""

LARGE = 1_000_000
"""From so many documents on, words are counted in the sparser sample."""

# A word followed by "\x01" sorts after the word and before all its extensions.
_NEXT_WORD = "SELECT term FROM word_list WHERE term >= ? LIMIT 1"
_COMMONEST = (
    "SELECT term FROM (SELECT term, doc * {weight} AS number FROM {rows} WHERE term >= ?1 AND term < ?2"
    " UNION ALL SELECT term, doc FROM fresh_rows WHERE term >= ?1 AND term < ?2)"
    " GROUP BY term ORDER BY sum(number) DESC, term LIMIT ?3"
)
_NUMBER = (
    "SELECT coalesce((SELECT doc * {weight} FROM {rows} WHERE term = ?1), 0)"
    " + coalesce((SELECT doc FROM fresh_rows WHERE term = ?1), 0)"
)
_LAST = "\U0010ffff"


class Vocabulary:
    """The words of an open index."""

    def __init__(self, connection: sqlite3.Connection, documents: int) -> None:
        """`connection` is from `index_file.open_for_reading`, `documents` the size of the index."""
        self._connection = connection
        self._documents = max(1, documents)
        self._is_small = documents <= SMALL
        self._sample: Table = "sample" if documents <= LARGE else "sparse_sample"

    def expand(self, beginning: str) -> list[str]:
        """Words with this prefix, the prefix itself included; the most common ones if there are too many."""
        prefix = index_form(beginning)
        query = self._counted(_COMMONEST)
        words = [term for (term,) in self._connection.execute(query, (prefix, prefix + _LAST, MAX_WORDS))]
        # The sample has few of the words with a rare prefix, perhaps none.
        if not self._is_small and len(words) < MAX_WORDS:
            words = self._add_rare_words(prefix, words)
        # The prefix itself comes first even if no sampled document has it: it is the best match.
        return list(dict.fromkeys([prefix, *words]))

    def rarity(self, word: str) -> float:
        """How selective a word is: the logarithm of all documents per document that has it."""
        (number,) = self._connection.execute(self._counted(_NUMBER), (index_form(word),)).fetchone()
        return math.log(1 + self._documents / max(1, number))

    def _counted(self, query: str) -> str:
        """The query over the table in which words are counted."""
        if self._is_small:
            return query.format(rows="words_rows", weight=1)
        return query.format(rows=f"{self._sample}_rows", weight=SAMPLES[self._sample])

    def _add_rare_words(self, prefix: str, words: list[str]) -> list[str]:
        """Add words that are too rare for the sample, in alphabetical order.

        That takes fewer than twice `MAX_WORDS` looks into the index. With a limit of time, a busy machine would find
        less.
        """
        known = set(words)
        position = prefix
        while len(words) < MAX_WORDS:
            row = self._connection.execute(_NEXT_WORD, (position,)).fetchone()
            if row is None or not row[0].startswith(prefix):
                break
            position = row[0] + "\x01"
            if row[0] not in known:
                words.append(row[0])
        return words
