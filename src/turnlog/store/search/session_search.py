"""A page of the sessions that fit a query, each with its best hit."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from turnlog.store.rows import moment
from turnlog.store.search import index_file, session_words
from turnlog.store.search.base import FIELDS, ROLES, NameMatch, SearchFilter, SessionHits, SessionSearchPage
from turnlog.store.search.documents import FAILED, REASONING, TEXT
from turnlog.store.search.hits import HitReader
from turnlog.store.search.matches import Match, Matches, first_matches, matches_of
from turnlog.store.search.plan import LAST_ID, Planner, Scope, SearchPlan, json_list
from turnlog.store.search.query import Query, phrase_of
from turnlog.store.search.ranking import Ranking, weight_of
from turnlog.store.search.session_ranking import RankedSession, SessionRanking
from turnlog.store.search.snippets import TermFinder
from turnlog.store.search.spelling import suggestion
from turnlog.store.search.vocabulary import Vocabulary
from turnlog.store.sqlite.reading import decode_cursor, encode_cursor

COUNTED = 200
"""Matches of one session that are counted; of more it is only said that there are."""

_MOST_READ = 2
"""Matches of a session whose texts are compared."""

_BLOCK = 20
"""So many sessions are put in order by their best hits together, so that the order does not depend on the page."""

_FAILURE_WEIGHT = 2.0
"""How much more a match in a failed call counts."""

_TITLE_FIT = 1.5
"""How well a session fits whose title has all words: better than nearly any of its parts could."""

_PHRASE_FIT = 1.0
"""How much better a prompt fits in which the words of the query stand in a row. Other texts do not: a listing that a
tool prints has names and words beside each other by chance."""

_USER = ROLES.index("user")

_FACTS = (
    "SELECT s.key, s.agent || ':' || s.external_id, s.agent, coalesce(a.title, s.title), p.path, p.name, s.updated_at"
    " FROM sessions s LEFT JOIN projects p ON p.key = s.project_key"
    " LEFT JOIN annotations a ON a.session_id = s.agent || ':' || s.external_id"
    " WHERE s.key IN (SELECT value FROM json_each(?))"
)


class SessionSearch:
    """One query on one connection."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        query: Query,
        filter: SearchFilter,
        planner: Planner,
        vocabulary: Vocabulary,
        masked: Callable[[str], str] | None = None,
    ) -> None:
        self._connection = connection
        self._query = query
        self._filter = filter
        self._planner = planner
        self._vocabulary = vocabulary
        self._finder = TermFinder(query.terms)
        self._hits = HitReader(connection, query.terms, masked)
        self._text_ranking = Ranking(query.terms, vocabulary)
        phrase = phrase_of(query)
        self._phrase = None if phrase is None else TermFinder([phrase])
        # Reading texts takes most of the time of a rare word. One word says no more of them than their lengths do;
        # which of several words they have most of is only in them.
        self._read, self._order = (1, _kind_and_length) if len(query.terms) == 1 else (_MOST_READ, _kind)

    def page(self, limit: int, cursor: str | None, text: str) -> SessionSearchPage:
        """The sessions of one page; `text` is the query as it was typed."""
        at = decode_cursor("sessions", (int, int, int), cursor)
        # The cursor has the time of the first page: the age of sessions counts, and must not change their order
        # meanwhile.
        last_id, now, offset = (LAST_ID, int(time.time() * 1000), 0) if at is None else at
        scope = self._planner.scope(self._query)
        if scope is None:
            return self._nothing(text)
        ranking = SessionRanking(self._connection, self._planner, self._query, self._filter, scope)
        ranked, is_complete = ranking.rank(last_id, now)
        if at is None and not ranked:
            return self._nothing(text)
        found: list[SessionHits] = []
        # The best hits order whole blocks, so a page in the middle of one needs the block from its beginning.
        first, left_out = offset - offset % _BLOCK, 0
        while first < min(len(ranked), offset + limit):
            together = ranked[first : first + _BLOCK]
            block = self._block(ranking, scope, together, last_id)
            left_out += len(together) - len(block)
            found += block[max(0, offset - first) : offset + limit - first]
            first += _BLOCK
        following = offset + limit
        if at is None:
            # Later pages rank what the first one ranked. What is indexed meanwhile would move sessions between pages.
            last_id = self._newest_id()
        return SessionSearchPage(
            tuple(found),
            next_cursor=encode_cursor("sessions", last_id, now, following) if following < len(ranked) else None,
            total=len(ranked) - left_out if at is None else None,
            # Sessions of blocks that are not read yet may have to be left out, too.
            total_is_exact=is_complete and (not left_out or first >= len(ranked)),
        )

    def _nothing(self, text: str) -> SessionSearchPage:
        instead = suggestion(self._connection, self._vocabulary, self._query, text, self._finds)
        return SessionSearchPage((), total=0, total_is_exact=True, suggestion=instead)

    def _finds(self, query: Query) -> bool:
        """Whether another query finds a session with the same filter."""
        scope = self._planner.scope(query)
        if scope is None:
            return False
        search = SessionSearch(self._connection, query, self._filter, self._planner, self._vocabulary)
        ranking = SessionRanking(self._connection, self._planner, query, self._filter, scope)
        ranked, _ = ranking.rank(LAST_ID, int(time.time() * 1000))
        return bool(search._block(ranking, scope, ranked[:_BLOCK], LAST_ID))

    def _newest_id(self) -> int:
        """The last document there is: later pages rank no later ones."""
        (block,) = self._connection.execute("SELECT coalesce(max(block), 0) FROM documents").fetchone()
        return (block + 1 << index_file.SLOT_BITS) - 1

    def _block(
        self, ranking: SessionRanking, scope: Scope, ranked: Sequence[RankedSession], last_id: int
    ) -> list[SessionHits]:
        """Sessions of neighbouring ranks, in the order of their ranks and best hits together."""
        found: list[_Found] = []
        keys = [key for _, key in ranked]
        together = self._together(ranking, scope, keys)
        for score, key in ranked:
            matches = together.get(key, []) if together is not None else self._matches(ranking, scope, key, last_id)
            counted = matches[:COUNTED]
            # Of very common words only the newest matches were counted, so it is not known whether this session has
            # them.
            if not matches and ranking.unsure(key) and not self._has_all(ranking, scope, key):
                continue
            if not matches:
                counted = self._some(ranking, scope, key)
            # Unless it was just looked for, the words were in texts that are no longer there.
            if ranking.found and not counted and not ranking.columns(key) and not ranking.unsure(key):
                continue
            read = sorted(counted, key=self._order)[: self._read]
            found.append(
                _Found(key, score, read, len({match.position for match in matches[:COUNTED]}), len(matches) <= COUNTED)
            )
        return self._shown(ranking, found)

    def _shown(self, ranking: SessionRanking, found: Sequence[_Found]) -> list[SessionHits]:
        texts = self._hits.texts([match for each in found for match in each.read])
        best: list[tuple[float, _Found, Match | None]] = []
        for each in found:
            scores = [self._fit(match, texts.get(match.id, "")) for match in each.read]
            fit = max(scores, default=0.0)
            match = each.read[scores.index(fit)] if scores else None
            if ranking.is_titled(each.key):
                fit = max(fit, _TITLE_FIT)
            best.append((each.score * (1 + fit), each, match))
        best.sort(key=lambda each: each[0], reverse=True)
        hits = {
            (hit.message_id, hit.part, FIELDS.index(hit.field)): hit
            for hit in self._hits.hits([match for _, _, match in best if match is not None])
        }
        rows = self._connection.execute(_FACTS, (json_list(each.key for each in found),))
        facts = {row[0]: row[1:] for row in rows}
        shown: list[SessionHits] = []
        for _, each, match in best:
            # Its words are in the index until that has caught up with the deletion.
            if each.key not in facts:
                continue
            session_id, agent, title, project, name, updated_at = facts[each.key]
            names = tuple(self._names(ranking.columns(each.key), each.key, title))
            hit = None if match is None else hits.get((match.message_id, match.part, match.field))
            shown.append(
                SessionHits(
                    session_id,
                    agent,
                    title,
                    project,
                    name,
                    moment(updated_at),
                    names,
                    hit,
                    each.matches,
                    each.is_exact,
                )
            )
        return shown

    def _fit(self, match: Match, text: str) -> float:
        """How well a match fits; an error is looked for where it occurred, not where it is retold."""
        fit = self._text_ranking.fit(text, match.entry.length, match.field)
        if self._phrase is not None and match.role == _USER and match.field == TEXT and self._phrase.is_in(text):
            fit += _PHRASE_FIT
        return _FAILURE_WEIGHT * fit if match.entry.flags & FAILED else fit

    def _together(self, ranking: SessionRanking, scope: Scope, keys: Iterable[int]) -> dict[int, list[Match]] | None:
        """As `_matches` of each of these sessions; None if `ranking` has not found all."""
        if not ranking.together.is_complete:
            return None
        return first_matches(ranking.together.parts.of(keys), COUNTED + 1, self._connection, scope.conditions)

    def _matches(self, ranking: SessionRanking, scope: Scope, key: int, last_id: int) -> list[Match]:
        """The parts of a session that have everything, one more than are counted if there are."""
        return self._of_expression(
            ranking.expression(ranking.groups, *ranking.marker(key)), scope, last_id, COUNTED + 1
        )

    def _some(self, ranking: SessionRanking, scope: Scope, key: int) -> list[Match]:
        """Parts of a session with the rarest word of the query that is in any."""
        for found in sorted(ranking.found, key=lambda found: -found.rarity):
            ids = found.evidence.parts.of([key]).get(key, ())
            shown = list(islice(matches_of(ids, self._connection, scope.conditions), _MOST_READ))
            if shown:
                return shown
        return []

    def _of_expression(self, expression: str | None, scope: Scope, last_id: int, most: int) -> list[Match]:
        if expression is None:
            return []
        first, last = self._planner.ids()
        plan = SearchPlan(expression, scope.conditions, first, last)
        return list(islice(Matches(self._connection, plan, min(last, last_id)), most))

    def _has_all(self, ranking: SessionRanking, scope: Scope, key: int) -> bool:
        """Whether a session has the very common words too."""
        return all(
            self._of_expression(ranking.expression([group], *ranking.marker(key)), scope, LAST_ID, 1)
            for group in ranking.unsure(key)
        )

    def _names(self, columns: Sequence[str], key: int, title: str | None) -> Iterator[NameMatch]:
        if not columns:
            return
        row = self._connection.execute(
            f"SELECT {', '.join(columns)} FROM session_words WHERE rowid = ?", (key,)
        ).fetchone()
        for column, joined in zip(columns, row or (), strict=False):
            texts = [title or ""] if column == "title" else session_words.split(joined)
            named = next(((text, marks) for text in texts if (marks := self._finder.marks(text))), None)
            if named is not None:
                yield NameMatch(column, *named)


class _Found(NamedTuple):
    """A session, and what was found in it."""

    key: int
    score: float
    read: list[Match]
    """Matches whose texts are compared."""
    matches: int
    is_exact: bool


def _kind(match: Match) -> int:
    """Prompts and failed calls first, then answers, then reasoning, then all that tools were given and printed."""
    if match.entry.flags & FAILED:
        return 0
    if match.field == TEXT:
        return 0 if match.role == _USER else 1
    return 2 if match.field == REASONING else 3


def _kind_and_length(match: Match) -> tuple[int, float]:
    """The same, and the shorter ones of a kind first: more of their text is the word."""
    weight = _FAILURE_WEIGHT if match.entry.flags & FAILED else 1.0
    return _kind(match), -weight * weight_of(match.entry.length, match.field)
