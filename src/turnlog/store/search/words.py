"""How texts and queries are split into words, and which words the index contains (`Vocabulary`).

The index splits texts with FTS5's `unicode61` (letters and digits form words, accents and case do not matter). Chinese,
Japanese and Korean are written without spaces, so runs of them are split first: each character and each pair of
neighbours becomes a word, interleaved in the order of the text (`c1 c1c2 c2 c2c3 c3`). A part of a run is then a phrase
that begins with its first pair, and is found anywhere in the run.

Characters of the private-use areas are words to `unicode61`. Only the index's own markers may use them, so they are
removed from texts and queries. `unicode61` knows Unicode 6.1 and takes newer characters for letters: newer emoji,
symbols and direction marks are blanked in texts, because queries are split there.

FTS5's own prefix search reads every document of every word that fits, newest or not. Here a prefix becomes at most
`MAX_WORDS` words: all of them if there are no more, otherwise the most common ones. Once the index is too large to
count words in all of it, they are counted in a sample.
"""

from __future__ import annotations

import math
import re
import sqlite3
import time
import unicodedata
from itertools import pairwise

from turnlog.store.search.index_file import SAMPLES, Table

CJK = (
    "\u1100-\u11ff\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Ranges of characters that are written without spaces, for use inside a regular expression's brackets."""

_PRIVATE = "\ue000-\uf8ff\U000f0000-\U0010ffff"

_CJK_RUN = re.compile(f"[{CJK}]+")
_FOREIGN = re.compile(f"[{CJK}]+|[{_PRIVATE}]+|[^\\w\0-\uffff]+")
"""Characters that are changed: CJK, private use, and symbols of the upper planes (most emoji)."""
_PIECE = re.compile(f"[{CJK}]+|[^\\W_{CJK}{_PRIVATE}]+")

_PLAIN_BYTES = bytes(set(range(256)) - {0xE1, *range(0xE3, 0xF5)})
"""UTF-8 lead bytes that begin no character of `_FOREIGN` (arrows, dashes and box drawing begin with E2)."""


def to_index_text(data: bytes) -> bytes:
    """UTF-8 text as it goes into the index.

    Runs of CJK are cut into words; private-use characters, and symbols that FTS5 would take for letters, are blanked.
    The line numbers of a listing are left out: they are a seventh of an index, nobody looks for them, and without them
    a phrase may go on over lines. So are the sequences by which terminals colour a word, since their last letter would
    be the word's first.
    """
    if b"\x1b" in data:
        data = _TERMINAL_SEQUENCE.sub(b" ", data)
    listing = _LISTING.match(data)
    if listing is not None and int(listing[3]) == int(listing[1]) + 1:
        data = _LINE_NUMBER[listing[2]].sub(b"\n", b"\n" + data)
    if data.isascii():
        return data
    data = _NEWER_SYMBOL.sub(b" ", data)
    if not data.translate(None, _PLAIN_BYTES):
        return data
    text = data.decode("utf-8", "replace")
    if not unicodedata.is_normalized("NFC", text):
        text = unicodedata.normalize("NFC", text)
    return _FOREIGN.sub(_cut_foreign, text).encode("utf-8", "replace")


_TERMINAL_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
"""Control sequences (colours, cursor) and operating system commands (titles, links) of ECMA-48."""

_NEWER_SYMBOL = re.compile(
    rb"\xe2(?:\x81[\xa6-\xa9]|\x82[\xba-\xbf]|\x83[\x80-\x8f]|\x86[\x8a\x8b]|\x8f[\xb4-\xbf]|\x9c\x80"
    rb"|\xad[\x8d-\x8f\x9a-\xbf]|[\xae\xaf\xb9][\x80-\xbf]|\xb8[\xbc-\xbf])"
)
"""UTF-8 of signs from U+2000 to U+2FFF that are newer than Unicode 6.1: isolates of direction (U+2066), currencies
(U+20BA), media keys (U+23F4, the dot before an answer among them), arrows (U+2B5A), punctuation (U+2E3C)."""

_LISTING = re.compile(rb" *(\d{1,9})(\t|\xe2\x86\x92)[^\n]*\n *(\d{1,9})\2")
"""The beginning of a file as tools print it: two lines of a number, a tab or an arrow, and text."""

_LINE_NUMBER = {mark: re.compile(rb"\n *\d+" + mark) for mark in (b"\t", "→".encode())}


def pieces(text: str) -> list[str]:
    """The words of a query's term, in order; a run of CJK is one piece."""
    return _PIECE.findall(unicodedata.normalize("NFC", text))


def is_cjk(piece: str) -> bool:
    """Whether a piece is a run of CJK."""
    return _CJK_RUN.match(piece) is not None


def split_cjk(run: str) -> list[str]:
    """The words of a run of CJK, as the index has them."""
    words = [run[0]]
    for left, right in pairwise(run):
        words += (left + right, right)
    return words


def fold(text: str) -> str:
    """The text in lower case without accents, character by character, so that positions do not change."""
    return text.lower() if text.isascii() else text.translate(_folding)


def without_terminal_sequences(text: str) -> str:
    """The text without the sequences that are left out of the index."""
    if "\x1b" not in text:
        return text
    return _TERMINAL_SEQUENCE.sub(b" ", text.encode("utf-8", "replace")).decode()


class _Folding(dict[int, str]):
    """Code point -> base letter in lower case, computed on first use."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        folded = unicodedata.normalize("NFD", character)[0].lower()
        if is_cjk(character) or len(folded) != 1:
            folded = character
        self[code] = folded
        return folded


_folding = _Folding()


def _cut_foreign(match: re.Match[str]) -> str:
    run = match.group()
    return f" {' '.join(split_cjk(run))} " if is_cjk(run) else " "


MAX_WORDS = 48

SMALL = 50_000
"""Up to so many documents, words are counted in the whole index."""

LARGE = 1_000_000
"""From so many documents on, words are counted in the sparser sample."""

_SCAN_SECONDS = 0.003
"""Seconds for which rare words with a prefix are looked up one by one."""

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
        prefix = _index_form(beginning)
        query = self._counted(_COMMONEST)
        words = [term for (term,) in self._connection.execute(query, (prefix, prefix + _LAST, MAX_WORDS))]
        # The sample has few of the words with a rare prefix, perhaps none.
        if not self._is_small and len(words) < MAX_WORDS:
            words = self._add_rare_words(prefix, words)
        # The prefix itself comes first even if no sampled document has it: it is the best match.
        return list(dict.fromkeys([prefix, *words]))

    def rarity(self, word: str) -> float:
        """How selective a word is: the logarithm of all documents per document that has it."""
        (number,) = self._connection.execute(self._counted(_NUMBER), (_index_form(word),)).fetchone()
        return math.log(1 + self._documents / max(1, number))

    def _counted(self, query: str) -> str:
        """The query over the table in which words are counted."""
        if self._is_small:
            return query.format(rows="words_rows", weight=1)
        return query.format(rows=f"{self._sample}_rows", weight=SAMPLES[self._sample])

    def _add_rare_words(self, prefix: str, words: list[str]) -> list[str]:
        """Add words that are too rare for the sample, in alphabetical order."""
        known = set(words)
        position = prefix
        deadline = time.perf_counter() + _SCAN_SECONDS
        while len(words) < MAX_WORDS and time.perf_counter() < deadline:
            row = self._connection.execute(_NEXT_WORD, (position,)).fetchone()
            if row is None or not row[0].startswith(prefix):
                break
            position = row[0] + "\x01"
            if row[0] not in known:
                words.append(row[0])
        return words


def _index_form(word: str) -> str:
    """A word as the index has it: in lower case, without accents."""
    return fold(unicodedata.normalize("NFC", word))
