"""Documents that match a plan, and which of them are the latest."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappush, heappushpop
from typing import NamedTuple, TypeAlias

from turnlog.store.search import blocks, index_file
from turnlog.store.search.blocks import SUPERSEDED, Entry
from turnlog.store.search.plan import Plan
from turnlog.store.search.query import Term
from turnlog.store.search.snippets import TermFinder
from turnlog.store.search.vocabulary import Vocabulary

MAX_COUNTED = 1000
_COUNTING_SECONDS = 0.0001
"""Counting stops at either."""

_COUNTED_AT_ONCE = 4

_IDS = (
    " UNION ALL ".join(
        [
            f"SELECT rowid FROM {table} WHERE {table} MATCH ?1 AND rowid <= ?2 AND rowid >= ?3"
            for table in ("words", "fresh")
        ]
    )
    + " ORDER BY 1 DESC"
)

_BLOCK = (
    "SELECT d.layout, m.key, m.created_at, m.external_id FROM documents d JOIN messages m ON m.key = d.message_key"
    " WHERE d.block = ? AND"
    " (m.pays_key IS NOT NULL OR EXISTS (SELECT 1 FROM memberships x WHERE x.message_key = m.key))"
)

Position: TypeAlias = tuple[int, str, int, int]
"""Where a hit stands in a list: time, message, part, field."""


class Match(NamedTuple):
    """A document that matches. Compares by what comes later: time, message, part, field."""

    created_at: int
    """Unix milliseconds; -1 when unknown, so that it sorts before every time."""
    message_id: str
    sequence: int
    field: int
    id: int
    message_key: int
    entry: Entry

    @property
    def position(self) -> Position:
        """What tells it apart in the list of hits."""
        return self[:4]

    @property
    def time(self) -> int | None:
        """Unix milliseconds, if they are known."""
        return None if self.created_at < 0 else self.created_at


class Matches:
    """Documents that match, by falling id. What is not looked at costs nothing."""

    def __init__(self, connection: sqlite3.Connection, plan: Plan, last_id: int) -> None:
        self._connection = connection
        self._plan = plan
        self._ids = connection.execute(_IDS, (plan.expression, last_id, plan.first_id))
        self._shown = 0

    def __iter__(self) -> Iterator[Match]:
        """Each document that is still what it was when it was indexed, or may be."""
        query = _BLOCK + self._plan.conditions
        block, row = -1, None
        for (number,) in self._ids:
            if number >> index_file.SLOT_BITS != block:
                block = number >> index_file.SLOT_BITS
                row = self._connection.execute(query, (block,)).fetchone()
            if row is None:
                continue
            packed, message_key, created_at, message_id = row
            entry = blocks.entry_at(packed, number & index_file.SLOTS - 1)
            if entry is None or entry.flags & SUPERSEDED:
                continue
            self._shown += 1
            moment = -1 if created_at is None else created_at
            yield Match(moment, message_id, entry.sequence, entry.field, number, message_key, entry)

    def count(self) -> tuple[int, bool]:
        """How many matches were counted within a few milliseconds, and whether these are all."""
        deadline = time.perf_counter() + _COUNTING_SECONDS
        total = self._shown
        while total < MAX_COUNTED and time.perf_counter() < deadline:
            some = len(self._ids.fetchmany(_COUNTED_AT_ONCE))
            total += some
            if some < _COUNTED_AT_ONCE:
                # What is superseded, or in another session, was not looked at.
                return total, not self._plan.conditions
        return total, False


def newest_matches(matches: Iterable[Match], wanted: int, after: Position | None) -> tuple[list[Match], bool]:
    """The latest matches before `after`, and whether these are all.

    A document's block is never smaller than that of its message's time. So when enough are found, what is still to come
    can only be later than the earliest of them while blocks do not fall below that time's.
    """
    best: list[Match] = []
    """A heap, the earliest in front: of a million of one time only these few are kept in order."""
    seen: set[Position] = set()
    floor = -1
    for match in matches:
        if match.id >> index_file.SLOT_BITS < floor:
            return sorted(best, reverse=True), False
        position = match.position
        if position in seen or (after is not None and position >= after):
            continue
        seen.add(position)
        if len(best) < wanted:
            heappush(best, match)
        else:
            heappushpop(best, match)
        if len(best) == wanted:
            floor = index_file.block_of(best[0].time)
    return sorted(best, reverse=True), len(seen) <= wanted


_FIELD_WEIGHTS = (1.3, 1.0, 1.0, 0.8, 1.2)
"""Text, reasoning, input, output, file: what was said counts more than what a tool printed."""

_SATURATION = 1.2
_LENGTH_WEIGHT = 0.75
_USUAL_LENGTH = 1200
"""Bytes of a document of middle length."""

_READ = 4000
"""Characters in which terms are counted."""


class Ranking:
    """Scores documents for one query."""

    def __init__(self, terms: Sequence[Term], vocabulary: Vocabulary) -> None:
        self._finder = TermFinder(terms)
        self._rarities = [sum([vocabulary.rarity(piece) for piece in term.pieces]) for term in terms]

    def score(self, text: str, length: int, field: int) -> float:
        """The score of a document of `length` bytes that begins with `text`; 0 for a query without terms."""
        damping = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * min(length, 20 * _USUAL_LENGTH) / _USUAL_LENGTH)
        score = 0.0
        # A term that the index found but that is not counted stands behind the beginning, or in another spelling.
        for rarity, count in zip(self._rarities, self._finder.count(text[:_READ]), strict=True):
            times = max(count, 1)
            score += rarity * times * (_SATURATION + 1) / (times + damping)
        return score * _FIELD_WEIGHTS[field]
