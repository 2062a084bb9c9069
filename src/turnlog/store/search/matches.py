"""The documents that match a plan, newest first."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from heapq import heappush, heappushpop
from itertools import islice
from typing import NamedTuple, TypeAlias

from turnlog.store.search import index_file
from turnlog.store.search.blocks import STALE, DocumentEntry, Entries, unpack
from turnlog.store.search.plan import SearchPlan, json_list

MAX_COUNTED = 200
"""So many messages that match are counted; of more it is only said that there are. A limit in time would say something
else at each call."""

_COUNTED_AT_ONCE = 60

_MOST_FILTERED = 1_200
"""So many more documents are looked at for the number of hits where a filter leaves some out."""

# Both tables return documents by descending id, so SQLite merges them without sorting: the first of a million matches
# come at once.
_IDS = (
    " UNION ALL ".join(
        [
            f"SELECT rowid FROM {table} WHERE {table} MATCH ?1 AND rowid <= ?2 AND rowid >= ?3"
            for table in ("words", "fresh")
        ]
    )
    + " ORDER BY 1 DESC"
)

_IS_SHOWN = "(m.billed_key IS NOT NULL OR EXISTS (SELECT 1 FROM memberships x WHERE x.message_key = m.key))"

_BLOCK = (
    "SELECT d.layout, d.role, m.key, m.created_at, m.external_id"
    f" FROM documents d JOIN messages m ON m.key = d.message_key WHERE d.block = ? AND {_IS_SHOWN}"
)

_BLOCKS = (
    "SELECT d.block, d.layout, d.role, m.key, m.created_at, m.external_id FROM json_each(?) asked"
    " CROSS JOIN documents d ON d.block = asked.value CROSS JOIN messages m ON m.key = d.message_key"
    f" WHERE {_IS_SHOWN}"
)

Position: TypeAlias = tuple[int, str, int, int]
"""The place of a hit in a list: time, message, part, field."""


class Match(NamedTuple):
    """A document that matches, ordered by time, message, part, field."""

    created_at: int
    """Unix milliseconds; -1 if unknown, which sorts before all times."""
    message_id: str
    part: int
    field: int
    id: int
    message_key: int
    entry: DocumentEntry
    role: int
    """Index in `ROLES`."""

    @property
    def position(self) -> Position:
        """The sort key that identifies it in the list of hits."""
        return self[:4]

    @property
    def time(self) -> int | None:
        """Unix milliseconds; None if unknown."""
        return None if self.created_at < 0 else self.created_at


def first_matches(
    ids: Mapping[int, Sequence[int]], most: int, connection: sqlite3.Connection, conditions: str
) -> dict[int, list[Match]]:
    """The first `most` matches of each session among its documents in `ids`, as `matches_of`; read together."""
    numbers = {number >> index_file.SLOT_BITS for each in ids.values() for number in each[:most]}
    rows = connection.execute(_BLOCKS + conditions, (json_list(numbers),))
    blocks = {number: _Block(unpack(packed), *facts) for number, packed, *facts in rows}
    found: dict[int, list[Match]] = {}
    for key, each in ids.items():
        matches = [match for number in each[:most] if (match := _match(number, blocks))]
        found[key] = [*matches, *islice(matches_of(each[most:], connection, conditions), most - len(matches))]
    return found


def matches_of(ids: Iterable[int], connection: sqlite3.Connection, conditions: str) -> Iterator[Match]:
    """Those of these documents that are unchanged since they were indexed, as far as that is known."""
    query = _BLOCK + conditions
    last, blocks = -1, dict[int, _Block]()
    for id in ids:
        number = id >> index_file.SLOT_BITS
        if number != last:
            last, row = number, connection.execute(query, (number,)).fetchone()
            blocks = {} if row is None else {number: _Block(unpack(row[0]), *row[1:])}
        match = _match(id, blocks)
        if match is not None:
            yield match


class _Block(NamedTuple):
    """What is known of the documents of one block."""

    entries: Entries
    role: int
    message_key: int
    created_at: int | None
    message_id: str


def _match(id: int, blocks: Mapping[int, _Block]) -> Match | None:
    block = blocks.get(id >> index_file.SLOT_BITS)
    # Its message was deleted or is outside of the filter.
    if block is None:
        return None
    entries, role, message_key, created_at, message_id = block
    slot = id & index_file.SLOTS - 1
    entry = entries[slot] if slot < len(entries) else None
    if entry is None or entry.flags & STALE:
        return None
    moment = -1 if created_at is None else created_at
    return Match(moment, message_id, entry.part, entry.field, id, message_key, entry, role)


class Matches:
    """Documents that match, by descending id. They are read lazily."""

    def __init__(self, connection: sqlite3.Connection, plan: SearchPlan, last_id: int) -> None:
        self._connection = connection
        self._conditions = plan.conditions
        self._ids = connection.execute(_IDS, (plan.expression, last_id, plan.first_id))

    def __iter__(self) -> Iterator[Match]:
        """Yield the documents that are unchanged since they were indexed, as far as that is known."""
        return matches_of((number for (number,) in self._ids), self._connection, self._conditions)

    def count(self, seen: Set[Position]) -> tuple[int, bool]:
        """The number of hits, and whether that is all; `seen` are the places of those that were yielded.

        Up to `MAX_COUNTED` the number is exact, unless a filter leaves out some of very many documents.
        """
        if self._conditions:
            return self._count_filtered(seen)
        messages = {(created_at, message_id) for created_at, message_id, _, _ in seen}
        blocks: set[int] = set()
        rest: list[int] = []
        is_all = False
        while not is_all and len(messages) + len(blocks) < MAX_COUNTED:
            some = self._some()
            is_all = len(some) < _COUNTED_AT_ONCE
            rest += some
            blocks.update([number >> index_file.SLOT_BITS for number in some])
        # Each block is of another message, so there are at least as many hits as blocks. Only the number of a few needs
        # them to be read.
        if not is_all:
            return MAX_COUNTED, False
        return _counted(seen | self._positions(rest), is_all=True)

    def _count_filtered(self, seen: Set[Position]) -> tuple[int, bool]:
        found = {*seen}
        is_all = False
        for _ in range(0, _MOST_FILTERED, _COUNTED_AT_ONCE):
            some = self._some()
            is_all = len(some) < _COUNTED_AT_ONCE
            found |= self._positions(some)
            if is_all or len(found) > MAX_COUNTED:
                break
        return _counted(found, is_all=is_all)

    def _some(self) -> list[int]:
        return [number for (number,) in self._ids.fetchmany(_COUNTED_AT_ONCE)]

    def _positions(self, ids: Sequence[int]) -> set[Position]:
        if not ids:
            return set()
        return {match.position for match in first_matches({0: ids}, len(ids), self._connection, self._conditions)[0]}


def _counted(found: Set[Position], *, is_all: bool) -> tuple[int, bool]:
    return min(len(found), MAX_COUNTED), is_all and len(found) <= MAX_COUNTED


class NewestMatches(NamedTuple):
    """The latest matches before a position, and what was seen on the way."""

    matches: list[Match]
    is_complete: bool
    """Whether these are all."""
    seen: set[Position]


def newest_matches(matches: Iterable[Match], wanted: int, after: Position | None) -> NewestMatches:
    """The latest matches before `after`.

    A document's block is never smaller than the block of its time. So once enough are found, a document
    still to come can be newer than the oldest of them only while its block is not below that one's.
    """
    best: list[Match] = []
    """A heap, the earliest in front: of a million of one time only these few are kept in order."""
    seen: set[Position] = set()
    floor = -1
    for match in matches:
        if match.id >> index_file.SLOT_BITS < floor:
            return NewestMatches(sorted(best, reverse=True), False, {*seen, match.position})
        position = match.position
        # A long text has several documents, and a part is one hit.
        if position in seen or (after is not None and position >= after):
            continue
        seen.add(position)
        if len(best) < wanted:
            heappush(best, match)
        else:
            heappushpop(best, match)
        if len(best) == wanted:
            floor = index_file.block_of(best[0].time)
    return NewestMatches(sorted(best, reverse=True), len(seen) <= wanted, seen)
