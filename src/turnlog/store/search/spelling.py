"""What a misspelt query may mean: words of the index that differ from its words by a slip of the hand or two."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from itertools import islice, product

from turnlog.store.search.query import Query, parse_query
from turnlog.store.search.vocabulary import Vocabulary
from turnlog.store.search.words import index_form, is_cjk

_SHORTEST = 4
"""Letters of a word that is looked at: shorter ones are like too many others."""

_SECONDS = 0.03
"""Seconds of this thread's processor time for which words are looked up, for one word of the query."""

_SAME_BEGINNING = 2
"""Letters that a word with two slips has in common with the one that was meant."""

_MOST_ALIKE = 20_000

_ALTERNATIVES = 4
"""Words that one word of a query may be replaced by."""

_TRIED = 8
"""Queries that are tried out: one is only suggested if it finds something."""

_KNOWN = frozenset({"role", "tool", "is", "agent", "project", "model"})
"""Fields whose values are not misspelt: one that does not exist is an error (`Planner.check_names`), or of tools a note
(`Planner.note`)."""

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"

_TABLES = ("word_list", "fresh_rows", "session_words_rows")
_BEGINNING = " UNION ".join(
    [
        f"SELECT * FROM (SELECT term FROM {table} WHERE term >= ?1 AND term < ?2 LIMIT {_MOST_ALIKE})"
        for table in ("sample_rows", "fresh_rows", "session_words_rows")
    ]
)


def suggestion(
    connection: sqlite3.Connection, vocabulary: Vocabulary, query: Query, text: str, finds: Callable[[Query], bool]
) -> str | None:
    """The likeliest of `suggestions` that finds something; None if there is none. `finds` tries one out."""
    likeliest = islice(suggestions(connection, vocabulary, query, text), _TRIED)
    return next((each for each in likeliest if finds(parse_query(each))), None)


def suggestions(connection: sqlite3.Connection, vocabulary: Vocabulary, query: Query, text: str) -> Iterator[str]:
    """Texts of queries that may be meant by one that finds nothing, the most likely first.

    Words that the index does not have are replaced, all of them. If it has all words, one of them is: a slip can make
    another word. Whether a suggestion finds anything is not known.

    `connection` is from `index_file.open_for_reading`.
    """
    typed = dict.fromkeys(
        piece
        for term in (term for group in query.groups for term in group)
        if not term.is_prefix and term.field not in _KNOWN
        for piece in term.pieces
        if _can_be_misspelt(index_form(piece))
    )
    unknown = [piece for piece in typed if not _is_known(connection, index_form(piece))]
    if not unknown:
        for piece in typed:
            for word in _one_slip_away(connection, vocabulary, index_form(piece)):
                yield _replaced(text, {piece: word})
        return
    # A word that is like no other stays: beside an OR it need not be found.
    meant = [_nearest(connection, vocabulary, index_form(piece)) or [piece] for piece in unknown]
    # The sum of the ranks: first the best of each word, last the worst.
    ranks = sorted(product(*(range(len(words)) for words in meant)), key=sum)
    for rank in ranks:
        words = [words[at] for words, at in zip(meant, rank, strict=True)]
        yield _replaced(text, dict(zip(unknown, words, strict=True)))


def _can_be_misspelt(word: str) -> bool:
    return len(word) >= _SHORTEST and not is_cjk(word) and not word.isdigit()


def _replaced(text: str, words: dict[str, str]) -> str:
    """The text with whole words replaced."""
    for piece, word in words.items():
        text = re.sub(rf"(?<![^\W_]){re.escape(piece)}(?![^\W_])", word, text)
    return text


def _nearest(connection: sqlite3.Connection, vocabulary: Vocabulary, word: str) -> list[str]:
    """Words of the index that may be meant by one that it does not have, at most `_ALTERNATIVES`, the best first."""
    near = _one_slip_away(connection, vocabulary, word)
    if near:
        return near
    start = word[:_SAME_BEGINNING]
    rows = connection.execute(_BEGINNING, (start, f"{start}\U0010ffff"))
    near = [other for (other,) in rows if abs(len(other) - len(word)) <= 2 and is_near(word, other)]
    return _commonest(vocabulary, word, near)


def _one_slip_away(connection: sqlite3.Connection, vocabulary: Vocabulary, word: str) -> list[str]:
    # Processor time of this thread: other work on the machine takes nothing away from it.
    deadline = time.thread_time() + _SECONDS
    near: list[str] = []
    for other in dict.fromkeys(_one_slip(word)):
        if time.thread_time() > deadline:
            break
        if len(other) >= _SHORTEST and other != word and _is_known(connection, other):
            near.append(other)
    return _commonest(vocabulary, word, near)


def _commonest(vocabulary: Vocabulary, word: str, near: list[str]) -> list[str]:
    """The commonest is meant most likely; of two the one with the same beginning."""
    near.sort(key=lambda other: (vocabulary.rarity(other), other[0] != word[0], other))
    return near[:_ALTERNATIVES]


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
