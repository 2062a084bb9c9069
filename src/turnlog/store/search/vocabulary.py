"""Which words the index holds: what a beginning may become, and how common a word is.

FTS5's own prefix search reads every document of every word that fits, newest or not. Here a beginning becomes at most
`MOST_WORDS` words: all of them where there are no more, else the most common ones. How common a word is, is counted
in the sample (one document in 64) as soon as the index is too large to be counted whole.
"""

from __future__ import annotations

import math
import sqlite3
import unicodedata

from turnlog.store.search.tokens import fold

MOST_WORDS = 64

SMALL = 50_000
"""Documents up to which words are counted in the whole index."""

_SAMPLED = 64

# "\x01" follows a word before any of its extensions do.
_NEXT_WORD = "SELECT term FROM word_list WHERE term >= ? LIMIT 1"
_COMMONEST = "SELECT term FROM {rows} WHERE term >= ? AND term < ? ORDER BY doc DESC LIMIT ?"
_LAST = "\U0010ffff"


class Vocabulary:
    """The words of one open index."""

    def __init__(self, connection: sqlite3.Connection, documents: int) -> None:
        """Ask through a connection of `schema.open_for_reading`; `documents` is how large the index is."""
        self._connection = connection
        self._documents = max(1, documents)
        self._is_small = documents <= SMALL

    def expand(self, beginning: str) -> list[str]:
        """Words that begin so, the word itself included, the most common ones if there are too many."""
        prefix = _index_form(beginning)
        rows = "word_rows" if self._is_small else "sample_rows"
        found = self._connection.execute(_COMMONEST.format(rows=rows), (prefix, prefix + _LAST, MOST_WORDS))
        words = [term for (term,) in found]
        if not self._is_small and len(words) < MOST_WORDS:
            words = self._complete(prefix, words)
        return list(dict.fromkeys([prefix, *words]))

    def rarity(self, word: str) -> float:
        """How much finding a word says: the logarithm of documents per document that has it."""
        rows, factor = ("word_rows", 1) if self._is_small else ("sample_rows", _SAMPLED)
        found = self._connection.execute(f"SELECT doc FROM {rows} WHERE term = ?", (_index_form(word),)).fetchone()
        with_word = found[0] * factor if found else 1
        return math.log(1 + self._documents / with_word)

    def _complete(self, prefix: str, words: list[str]) -> list[str]:
        """Add words that are too rare for the sample, in the order of the alphabet."""
        known = set(words)
        position = prefix
        for _ in range(MOST_WORDS):
            row = self._connection.execute(_NEXT_WORD, (position,)).fetchone()
            if row is None or not row[0].startswith(prefix):
                break
            position = row[0] + "\x01"
            if row[0] not in known:
                words.append(row[0])
        return words[:MOST_WORDS]


def _index_form(word: str) -> str:
    """A word as the index has it: in lower case, without accents."""
    return fold(unicodedata.normalize("NFC", word))
