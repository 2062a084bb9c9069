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
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from turnlog.store.search import index_file
from turnlog.store.search.base import ROLES, SearchFilter
from turnlog.store.search.blocks import session_marker
from turnlog.store.search.plan import Planner, Scope, sql_list, words_of
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

_MATCHES = (
    "SELECT id, d.home, d.role FROM (SELECT id FROM ("
    + " UNION ALL ".join(
        [
            f"SELECT rowid AS id FROM {table} WHERE {table} MATCH ?1 AND rowid <= ?2 AND rowid >= ?3"
            for table in ("words", "fresh")
        ]
    )
    + ") ORDER BY 1 DESC LIMIT ?4) CROSS JOIN documents d INDEXED BY documents_by_block"
    f" ON d.block = id >> {index_file.SLOT_BITS}"
)

_USER = ROLES.index("user")


class RankedSession(NamedTuple):
    """A session that fits."""

    key: int
    score: float


class RankedSessions(NamedTuple):
    """The sessions that fit, best first."""

    sessions: list[RankedSession]
    is_complete: bool
    """False: not every match was counted, so others may fit too."""


class Evidence(NamedTuple):
    """What was found in the parts of each session, by key."""

    ids: dict[int, list[int]]
    """Documents that match, newest first."""
    prompts: dict[int, int]
    """How many of them are prompts."""
    is_complete: bool

    def strengths(self) -> dict[int, float]:
        """How much the matches in parts say for each session."""
        strengths = {key: _OTHER_WEIGHT * _share(len(ids)) for key, ids in self.ids.items()}
        for key, count in self.prompts.items():
            strengths[key] += _PROMPT_WEIGHT * _share(count)
        return strengths


class FoundGroup(NamedTuple):
    """What was found of one group of the query."""

    evidence: Evidence
    columns: dict[int, set[str]]
    """Session -> columns of `session_words` in which it is."""
    rarity: float

    def has(self, key: int) -> bool:
        """Whether it is known to be in a session."""
        return key in self.columns or key in self.evidence.ids

    def scores(self) -> dict[int, float]:
        """The scores of all sessions that have it."""
        scores = self.evidence.strengths()
        for key, columns in self.columns.items():
            scores[key] = scores.get(key, 0.0) + sum([_COLUMNS[column] for column in columns])
        return scores


_MOST_SHARED = 200
_SHARES = (0.0, *(0.5 + 0.5 * count / (count + 4) for count in range(1, _MOST_SHARED)))


def _share(count: int) -> float:
    """Between 0 and 1: the first match says most."""
    return _SHARES[min(count, _MOST_SHARED - 1)]


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
        self.together = Evidence({}, {}, True)
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
            fitting = {key for key in fitting if key in allowed or key in self.together.ids}
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
        found = len(evidence.ids.keys() | columns.keys())
        return FoundGroup(evidence, columns, math.log(1 + self._total / max(1, found)))

    def _evidence(self, groups: Sequence[Sequence[Term]], last_id: int, most: int) -> Evidence:
        """The newest matches of all these groups in one part, at most so many, and half as many older prompts."""
        rows, is_complete = self._matches(self.expression(groups), last_id, most)
        ids: defaultdict[int, list[int]] = defaultdict(list)
        if self._only is not None:
            # The homes of shared messages may be other sessions.
            rows = [(number, self._only, role) for number, _, role in rows]
        for number, home, _ in rows:
            ids[home].append(number)
        prompts = [home for _, home, role in rows if role == _USER]
        # A prompt counts most, and an old one would be missed among the newest matches of a common word.
        if not is_complete and most != _MOST_APART and self._planner.prompts():
            older, _ = self._matches(self.expression(groups, self._planner.prompts()), last_id, most // 2)
            for number, home, _ in older:
                # Newer prompts are among the matches already.
                if number < rows[-1][0]:
                    home = home if self._only is None else self._only
                    ids[home].append(number)
                    prompts.append(home)
        return Evidence(dict(ids), Counter(prompts), is_complete)

    def _matches(self, expression: str | None, last_id: int, most: int) -> tuple[list[tuple[int, int, int]], bool]:
        """The newest matches (document, session, role), and whether these are all."""
        if expression is None:
            return [], True
        first, last = self._planner.ids()
        query = _MATCHES
        if self._scope.conditions:
            query += f" CROSS JOIN messages m ON m.key = d.message_key WHERE TRUE {self._scope.conditions}"
        rows = self._connection.execute(query, (expression, min(last, last_id), first, most))
        # SQLite would sort them into its own table, and they nearly always come in this order.
        found = sorted(rows, key=itemgetter(0), reverse=True)
        # With conditions it is not known how many matches they left out.
        return found, len(found) < most and not self._scope.conditions

    # -- which sessions fit

    def _fitting(self) -> set[int]:
        if self._is_about_parts():
            return {*self.together.ids}
        # Sessions with a very common word are not all known, so it leaves out none if there is a rarer one.
        certain = [found for found in self.found if found.evidence.is_complete] or self.found
        fitting = {*certain[0].evidence.ids, *certain[0].columns}
        for found in certain[1:]:
            fitting &= found.evidence.ids.keys() | found.columns.keys()
        return fitting | self.together.ids.keys()

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
            f" WHERE s.key IN ({sql_list(keys)}) AND (?1 IS NULL OR s.agent = ?1)"
            " AND (?2 IS NULL OR p.path = ?2 OR p.name = ?2)",
            (filter.agent, filter.project),
        )
        return {key for (key,) in rows}

    # -- their order

    def _aged(self, scores: dict[int, float], now: int) -> list[RankedSession]:
        """In their order: a session of today counts a third more than an old one of the same score."""
        ranked = sorted(scores.items(), key=itemgetter(1, 0), reverse=True)
        best = ranked[:_MOST_DATED]
        times = dict(
            self._connection.execute(
                "SELECT key, coalesce(updated_at, created_at, 0) FROM sessions"
                f" WHERE key IN ({sql_list(key for key, _ in best)})"
            ).fetchall()
        )
        dated = [(key, score * (1 + _freshness(times.get(key, 0), now) / 3)) for key, score in best]
        dated.sort(key=itemgetter(1, 0), reverse=True)
        return [*map(RankedSession._make, dated), *map(RankedSession._make, ranked[_MOST_DATED:])]

    def _newest(self, last_id: int) -> RankedSessions:
        """Without words: the sessions whose newest match is newest, or that were changed last."""
        sessions = self._scope.sessions
        if sessions is not None and not self._is_about_parts():
            query = "SELECT key FROM sessions ORDER BY coalesce(updated_at, created_at, 0) DESC, key DESC"
            allowed = self._named_by_filter(sessions)
            wanted = sessions if allowed is None else allowed
            keys = [key for (key,) in self._connection.execute(query) if key in wanted]
            return RankedSessions([RankedSession(key, 0.0) for key in keys], True)
        self.together = self._evidence((), last_id, _MOST_COUNTED)
        keys = sorted(self.together.ids, key=lambda key: self.together.ids[key][0], reverse=True)
        fitting = [key for key in keys if sessions is None or key in sessions]
        return RankedSessions([RankedSession(key, 0.0) for key in fitting], self.together.is_complete)


def _add(scores: dict[int, float], more: dict[int, float], weight: float) -> None:
    """Add weighted scores of sessions that fit."""
    for key, score in more.items():
        if key in scores:
            scores[key] += weight * score


def _says_what_part(group: Sequence[Term]) -> bool:
    """Whether a group only says what kind of part it is."""
    return all(term.field in ("role", "tool") for term in group)


def _freshness(time: int, now: int) -> float:
    return 0.5 ** (max(0, now - time) / _HALF_LIFE_MS)
