"""What a misspelt query may mean: words of the index that differ from its words by a slip of the hand or two."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator

from turnlog.store.search.query import Query
from turnlog.store.search.vocabulary import Vocabulary
from turnlog.store.search.words import index_form, is_cjk

_SHORTEST = 4
"""Letters of a word that is looked at: shorter ones are like too many others."""

_SECONDS = 0.03
"""Seconds of this thread's processor time for which words are looked up, for one word of the query."""

_SAME_BEGINNING = 2
"""Letters that a word with two slips has in common with the one that was meant."""

_MOST_ALIKE = 20_000

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"

_TABLES = ("word_list", "fresh_rows", "session_words_rows")
_BEGINNING = " UNION ".join(
    [
        f"SELECT * FROM (SELECT term FROM {table} WHERE term >= ?1 AND term < ?2 LIMIT {_MOST_ALIKE})"
        for table in ("sample_rows", "fresh_rows", "session_words_rows")
    ]
)


def suggestion(connection: sqlite3.Connection, vocabulary: Vocabulary, query: Query, text: str) -> str | None:
    """The text of a query with its unknown words replaced by known ones that are like them; None without any.

    `connection` is from `index_file.open_for_reading`.
    """
    suggested = text
    for term in [term for group in query.groups for term in group]:
        for piece in () if term.is_prefix else term.pieces:
            nearest = _nearest(connection, vocabulary, piece)
            if nearest is not None:
                suggested = suggested.replace(piece, nearest, 1)
    return suggested if suggested != text else None


def _nearest(connection: sqlite3.Connection, vocabulary: Vocabulary, piece: str) -> str | None:
    word = index_form(piece)
    if len(word) < _SHORTEST or is_cjk(word) or word.isdigit() or _is_known(connection, word):
        return None
    # Processor time of this thread: other work on the machine takes nothing away from it.
    deadline = time.thread_time() + _SECONDS
    near: list[str] = []
    for other in dict.fromkeys(_one_slip(word)):
        if time.thread_time() > deadline:
            break
        if len(other) >= _SHORTEST and _is_known(connection, other):
            near.append(other)
    if not near:
        start = word[:_SAME_BEGINNING]
        rows = connection.execute(_BEGINNING, (start, f"{start}\U0010ffff"))
        near = [other for (other,) in rows if abs(len(other) - len(word)) <= 2 and is_near(word, other)]
    # The commonest is meant most likely; of two the one with the same beginning.
    return min(near, key=lambda other: (vocabulary.rarity(other), other[0] != word[0], other), default=None)


def _is_known(connection: sqlite3.Connection, word: str) -> bool:
    return any(
        connection.execute(f"SELECT 1 FROM {table} WHERE term = ? LIMIT 1", (word,)).fetchone() for table in _TABLES
    )


def _one_slip(word: str) -> Iterator[str]:
    """All words that differ by one letter that is missing, doubled, wrong, or changed places with the next."""
    for at in range(len(word) - 1):
        yield word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    for at in range(len(word)):
        yield word[:at] + word[at + 1 :]
    for at in range(len(word) + 1):
        for letter in _ALPHABET:
            yield word[:at] + letter + word[at:]
    for at in range(len(word)):
        for letter in _ALPHABET:
            yield word[:at] + letter + word[at + 1 :]


def is_near(one: str, other: str, most: int = 2) -> bool:
    """Whether at most so many letters must be inserted, deleted, replaced or swapped with the next (OSA distance)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        before, above, row = row, before, [number]
        for at, its in enumerate(other, 1):
            cost = min(before[at] + 1, row[-1] + 1, before[at - 1] + (letter != its))
            if number > 1 and at > 1 and letter == other[at - 2] and one[number - 2] == its:
                cost = min(cost, above[at - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return False
    return row[-1] <= most
