"""Which sessions fit a query best.

All of the index is looked at, in three steps. What sessions are called is matched in `session_words`, of every session.
Prompts are counted by session, then everything else that matches; of very common words only the newest matches are
counted (`_MOST_COUNTED` and what follows it), since each costs about a microsecond. A session fits if every word of the
query is somewhere in it; words in one part count for more. The best hit of a session is found later, for the
sessions of one page.
"""

from __future__ import annotations

import math
import sqlite3
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, islice
from operator import lt, neg
from typing import NamedTuple, TypeAlias

import msgspec

from turnlog.store.search import index_file
from turnlog.store.search.base import ROLES, SearchFilter
from turnlog.store.search.blocks import session_marker
from turnlog.store.search.plan import Planner, Scope, json_list, words_of
from turnlog.store.search.query import Query, Term, any_of

_MOST_COUNTED = 10_000
"""Matches of one word that are counted; of its prompts half as many."""

_MOST_TOGETHER = 6_000
"""Parts with all of several words that are counted; of prompts half as many."""

_MOST_APART = 2_000
"""Matches of each word that are counted where more parts than these have all words; no older prompts."""

_MOST_DATED = 100
"""Sessions whose age counts: the best ones without it."""

_HALF_LIFE_MS = 30 * 86_400_000

_COLUMNS: Mapping[str, float] = {"title": 6.0, "tag": 5.0, "project": 2.0, "branch": 2.0, "file": 4.0}
"""Columns of `session_words` that words without a field are looked for in, and how much a match in them counts."""

_PROMPT_WEIGHT, _OTHER_WEIGHT = 3.0, 1.5

_SHARES = {count: 0.5 + 0.5 * count / (count + 4) for count in range(1, 200)}
"""What so many matches say, between 0 and 1: the first one says most. More say as much as the most here."""

_HIGHEST_SHARE = max(_SHARES.values())

_ROLE_BITS = 2
_ROLE_MASK = (1 << _ROLE_BITS) - 1

_NEWEST = (
    "SELECT id FROM ("
    + " UNION ALL ".join(
        [
            f"SELECT rowid AS id FROM {table} WHERE {table} MATCH ?1 AND rowid <= ?2 AND rowid >= ?3"
            for table in ("words", "fresh")
        ]
    )
    + ") ORDER BY 1 DESC LIMIT ?4"
)

# One row of two JSON arrays: the module `sqlite3` takes as long for each row as SQLite takes to find it.
_ARRAYS = f"json_group_array(id), json_group_array(d.home << {_ROLE_BITS} | d.role)"

_DOCUMENTS = f"CROSS JOIN documents d INDEXED BY documents_by_block ON d.block = id >> {index_file.SLOT_BITS}"

_MATCHES = f"SELECT {_ARRAYS}, NULL FROM ({_NEWEST}) {_DOCUMENTS}"

# How many matches there were before conditions left some out says whether these are all.
_MATCHES_THAT_FIT = (
    f"WITH newest AS MATERIALIZED ({_NEWEST}) SELECT {_ARRAYS}, (SELECT count(*) FROM newest) FROM newest {_DOCUMENTS}"
    " CROSS JOIN messages m ON m.key = d.message_key WHERE TRUE "
)

_numbers: msgspec.json.Decoder[list[int]] = msgspec.json.Decoder(list[int])

_USER = ROLES.index("user")

RankedSession: TypeAlias = tuple[float, int]
"""Score and key of a session that fits."""


class RankedSessions(NamedTuple):
    """The sessions that fit, best first."""

    sessions: list[RankedSession]
    is_complete: bool
    """False: not every match was counted, so others may fit too."""


class FoundParts(NamedTuple):
    """Documents that match, newest first."""

    ids: Sequence[int]
    owners: Sequence[int]
    """For each its session, shifted by `_ROLE_BITS`, and its role."""

    def of(self, keys: Iterable[int]) -> dict[int, list[int]]:
        """Session -> its documents, newest first, for these sessions."""
        wanted = {key << _ROLE_BITS | role for key in keys for role in range(len(ROLES))}
        found: defaultdict[int, list[int]] = defaultdict(list)
        for owner, number in compress(zip(self.owners, self.ids, strict=True), map(wanted.__contains__, self.owners)):
            found[owner >> _ROLE_BITS].append(number)
        return found


_NO_PARTS = FoundParts((), ())


class Evidence:
    """What was found in the parts of each session, by key."""

    def __init__(self, parts: FoundParts, *, is_complete: bool) -> None:
        """`is_complete` says whether these are all that match."""
        self.parts = parts
        self.is_complete = is_complete
        self.counts: dict[int, int] = {}
        """How many documents match, of the sessions that have any, in the order of their newest ones."""
        self.prompts: dict[int, int] = {}
        """How many of them are prompts."""
        for owner, count in Counter(parts.owners).items():
            key = owner >> _ROLE_BITS
            self.counts[key] = self.counts.get(key, 0) + count
            if owner & _ROLE_MASK == _USER:
                self.prompts[key] = count

    def strengths(self) -> dict[int, float]:
        """How much the matches in parts say for each session."""
        share = _SHARES.get
        strengths = {key: _OTHER_WEIGHT * share(count, _HIGHEST_SHARE) for key, count in self.counts.items()}
        for key, count in self.prompts.items():
            strengths[key] += _PROMPT_WEIGHT * share(count, _HIGHEST_SHARE)
        return strengths


class FoundGroup(NamedTuple):
    """What was found of one group of the query."""

    evidence: Evidence
    columns: dict[int, set[str]]
    """Session -> columns of `session_words` in which it is."""
    rarity: float

    def has(self, key: int) -> bool:
        """Whether it is known to be in a session."""
        return key in self.columns or key in self.evidence.counts

    def scores(self) -> dict[int, float]:
        """The scores of all sessions that have it."""
        scores = self.evidence.strengths()
        for key, columns in self.columns.items():
            scores[key] = scores.get(key, 0.0) + sum([_COLUMNS[column] for column in columns])
        return scores


class SessionRanking:
    """Ranks the sessions for one query and one filter."""

    def __init__(
        self, connection: sqlite3.Connection, planner: Planner, query: Query, filter: SearchFilter, scope: Scope
    ) -> None:
        self._connection = connection
        self._planner = planner
        self._filter = filter
        self._scope = scope
        words = words_of(query)
        self._kinds_of_parts = tuple(group for group in words.groups if _says_what_part(group))
        self.groups = tuple(group for group in words.groups if not _says_what_part(group))
        """The groups of words."""
        self._excluded = words.excluded
        self.found: list[FoundGroup] = []
        """What was found of each group, after `rank`."""
        self.together = Evidence(_NO_PARTS, is_complete=True)
        """What was found of all groups in one part, after `rank`."""
        self._only = self._only_session()
        self._total: int = connection.execute("SELECT count(*) FROM sessions").fetchone()[0]

    def expression(self, groups: Sequence[Sequence[Term]], *more: str) -> str | None:
        """The FTS5 expression for parts that have these groups and fulfil all else; None if there can be none."""
        query = Query((*self._kinds_of_parts, *(tuple(group) for group in groups)), self._excluded)
        required = [*self._scope.required, *more]
        if not query.groups and not required:
            required = [self._planner.any_kind()]
        return self._planner.expression(query, [each for each in required if each], self._scope.forbidden)

    def rank(self, last_id: int, now: int) -> RankedSessions:
        """The sessions that fit, best first, without documents after `last_id`. `now` is in Unix milliseconds."""
        if not self.groups:
            return self._newest(last_id)
        if len(self.groups) > 1:
            self.together = self._evidence(self.groups, last_id, _MOST_TOGETHER)
        # Where very many parts have all words, those with one of them say little more.
        most = _MOST_COUNTED if self.together.is_complete else _MOST_APART
        self.found = [self._group(group, last_id, most) for group in self.groups]
        if len(self.groups) == 1:
            self.together = self.found[0].evidence
        fitting = self._fitting()
        if self._scope.sessions is not None:
            fitting = fitting & self._scope.sessions
        allowed = self._named_by_filter(fitting)
        if allowed is not None:
            fitting = {key for key in fitting if key in allowed or key in self.together.counts}
        scores = dict.fromkeys(fitting, 0.0)
        for found in self.found:
            _add(scores, found.scores(), found.rarity)
        if len(self.found) > 1:
            _add(scores, self.together.strengths(), sum([found.rarity for found in self.found]))
        is_complete = self.together.is_complete and all([found.evidence.is_complete for found in self.found])
        return RankedSessions(self._aged(scores, now), is_complete)

    def columns(self, key: int) -> list[str]:
        """The columns of `session_words` in which words of the query are, after `rank`."""
        return [column for column in _COLUMNS if any(column in found.columns.get(key, ()) for found in self.found)]

    def is_titled(self, key: int) -> bool:
        """Whether the title of a session has all words of the query, after `rank`."""
        return bool(self.found) and all("title" in found.columns.get(key, ()) for found in self.found)

    def unsure(self, key: int) -> list[Sequence[Term]]:
        """The groups of which it is not known that a session has them, after `rank`: those of very common words."""
        return [group for group, found in zip(self.groups, self.found, strict=True) if not found.has(key)]

    def marker(self, key: int) -> list[str]:
        """Expressions that leave the parts of one session; the filter does if it names one."""
        return [any_of([session_marker(key)])] if self._only is None else []

    def _only_session(self) -> int | None:
        """The session that the filter names."""
        agent, _, external_id = (self._filter.session or "").partition(":")
        query = "SELECT key FROM sessions WHERE agent = ? AND external_id = ?"
        row = self._connection.execute(query, (agent, external_id)).fetchone()
        return None if row is None else row[0]

    # -- what is found

    def _group(self, group: Sequence[Term], last_id: int, most: int) -> FoundGroup:
        evidence = self._evidence([group], last_id, most)
        columns: dict[int, set[str]] = {}
        for column in _COLUMNS:
            for term in group:
                for key in self._planner.sessions_with(term, [column]) if term.field is None else ():
                    columns.setdefault(key, set()).add(column)
        for term in self._excluded:
            for key in self._planner.sessions_with(term, list(_COLUMNS)) if term.field is None else ():
                columns.pop(key, None)
        found = len(evidence.counts.keys() | columns.keys())
        return FoundGroup(evidence, columns, math.log(1 + self._total / max(1, found)))

    def _evidence(self, groups: Sequence[Sequence[Term]], last_id: int, most: int) -> Evidence:
        """The newest matches of all these groups in one part, at most so many, and half as many older prompts."""
        parts, is_complete = self._matches(self.expression(groups), last_id, most)
        # A prompt counts most, and an old one would be missed among the newest matches of a common word.
        if not is_complete and most != _MOST_APART and self._planner.prompts():
            prompts, _ = self._matches(self.expression(groups, self._planner.prompts()), last_id, most // 2)
            # Newer prompts are among the matches already.
            first = bisect_right(prompts.ids, -parts.ids[-1], key=neg) if parts.ids else 0
            parts = FoundParts([*parts.ids, *prompts.ids[first:]], [*parts.owners, *prompts.owners[first:]])
        return Evidence(parts, is_complete=is_complete)

    def _matches(self, expression: str | None, last_id: int, most: int) -> tuple[FoundParts, bool]:
        """The newest matches, and whether these are all."""
        if expression is None:
            return _NO_PARTS, True
        first, last = self._planner.ids()
        conditions = self._scope.conditions
        query = _MATCHES_THAT_FIT + conditions if conditions else _MATCHES
        packed_ids, packed_owners, seen = self._connection.execute(
            query, (expression, min(last, last_id), first, most)
        ).fetchone()
        ids, owners = _numbers.decode(packed_ids), _numbers.decode(packed_owners)
        # SQLite would sort them into its own table, and they nearly always come in this order.
        if any(map(lt, ids, islice(ids, 1, None))):
            ids, owners = map(list, zip(*sorted(zip(ids, owners, strict=True), reverse=True), strict=True))
        if self._only is not None:
            # The homes of shared messages may be other sessions.
            owners = [self._only << _ROLE_BITS | owner & _ROLE_MASK for owner in owners]
        return FoundParts(ids, owners), (len(ids) if seen is None else seen) < most

    # -- which sessions fit

    def _fitting(self) -> set[int]:
        if self._is_about_parts():
            return {*self.together.counts}
        # Sessions with a very common word are not all known, so it leaves out none if there is a rarer one.
        certain = [found for found in self.found if found.evidence.is_complete] or self.found
        fitting = {*certain[0].evidence.counts, *certain[0].columns}
        for found in certain[1:]:
            fitting &= found.evidence.counts.keys() | found.columns.keys()
        return fitting | self.together.counts.keys()

    def _is_about_parts(self) -> bool:
        """Whether only parts can fit, as the query or the filter says something that only parts have."""
        filter = self._filter
        wanted = (filter.role, filter.field, filter.tool, filter.failed, filter.has_image, filter.since, filter.until)
        return bool(self._kinds_of_parts) or any(each is not None for each in wanted)

    def _named_by_filter(self, keys: Iterable[int]) -> set[int] | None:
        """Those of these sessions that fit the filter as a whole; None if it says nothing of sessions."""
        filter = self._filter
        if self._only is not None:
            keys = {self._only} & {*keys}
        elif filter.agent is None and filter.project is None:
            return None
        rows = self._connection.execute(
            "SELECT s.key FROM sessions s LEFT JOIN projects p ON p.key = s.project_key"
            " WHERE s.key IN (SELECT value FROM json_each(?3)) AND (?1 IS NULL OR s.agent = ?1)"
            " AND (?2 IS NULL OR p.path = ?2 OR p.name = ?2)",
            (filter.agent, filter.project, json_list(keys)),
        )
        return {key for (key,) in rows}

    # -- their order

    def _aged(self, scores: dict[int, float], now: int) -> list[RankedSession]:
        """In their order: a session of today counts a third more than an old one of the same score."""
        # By score and then key; two sorts of numbers take half as long as one of pairs.
        keys = sorted(sorted(scores, reverse=True), key=scores.__getitem__, reverse=True)
        ranked = [(scores[key], key) for key in keys]
        best = ranked[:_MOST_DATED]
        times = dict(
            self._connection.execute(
                "SELECT key, coalesce(updated_at, created_at, 0) FROM sessions"
                " WHERE key IN (SELECT value FROM json_each(?))",
                (json_list(key for _, key in best),),
            ).fetchall()
        )
        dated = [(score * (1 + _freshness(times.get(key, 0), now) / 3), key) for score, key in best]
        dated.sort(reverse=True)
        return dated + ranked[_MOST_DATED:]

    def _newest(self, last_id: int) -> RankedSessions:
        """Without words: the sessions whose newest match is newest, or that were changed last."""
        sessions = self._scope.sessions
        if sessions is not None and not self._is_about_parts():
            query = "SELECT key FROM sessions ORDER BY coalesce(updated_at, created_at, 0) DESC, key DESC"
            allowed = self._named_by_filter(sessions)
            wanted = sessions if allowed is None else allowed
            keys = [key for (key,) in self._connection.execute(query) if key in wanted]
            return RankedSessions([(0.0, key) for key in keys], True)
        self.together = self._evidence((), last_id, _MOST_COUNTED)
        fitting = [(0.0, key) for key in self.together.counts if sessions is None or key in sessions]
        return RankedSessions(fitting, self.together.is_complete)


def _add(scores: dict[int, float], more: dict[int, float], weight: float) -> None:
    """Add weighted scores of sessions that fit."""
    for key, score in more.items():
        if key in scores:
            scores[key] += weight * score


def _says_what_part(group: Sequence[Term]) -> bool:
    """Whether a group only says what kind of part it is."""
    return all(term.field in ("role", "tool", "is") for term in group)


def _freshness(time: int, now: int) -> float:
    return 0.5 ** (max(0, now - time) / _HALF_LIFE_MS)
