"""Parses queries as people type them, and makes FTS5 expressions of a query and its filter. No text is an error.

`word` and every other word · `snake_case a.b.c foo::bar` as phrases · `"in quotes"` · `begin*` · `one OR other` (binds
closer than the spaces around it) · `-without`. Everything else is a separator. At most `MAX_TERMS` terms count.

`Planner` adds the filter, as markers in the index where possible. A message that several sessions share has the marker
of only one of them, its home. So a session filter looks under all homes of its messages, and the store then decides
which messages belong to the session.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from turnlog.store.search import index_file
from turnlog.store.search.base import FIELDS, SearchFilter
from turnlog.store.search.blocks import Kinds, flag_markers, kind_marker, project_marker, session_marker, tool_marker
from turnlog.store.search.documents import FAILED, HAS_IMAGE, INPUT, OUTPUT
from turnlog.store.search.words import is_cjk, pieces, split_cjk
from turnlog.store.sqlite.reading import aware_milliseconds

MAX_TERMS = 32
MAX_QUERY_LENGTH = 4000
"""Characters of a query that are read."""

_ITEM = re.compile(r'(?P<minus>-(?=[^\s-]))?(?:"(?P<quoted>[^"]*)(?:"(?P<star>\*)?|$)|(?P<plain>[^\s"]+))')

Expand = Callable[[str], Sequence[str]]
"""Prefix -> words of the index that begin with it."""


class Term(NamedTuple):
    """A word, or several consecutive words."""

    pieces: tuple[str, ...]
    """Words and runs of CJK, in order."""
    is_prefix: bool
    """Whether the last piece is a prefix."""
    typed: str
    """The term as typed, without quotes and star."""


class Query(NamedTuple):
    """One term of each group must match, and no excluded term."""

    groups: tuple[tuple[Term, ...], ...] = ()
    excluded: tuple[Term, ...] = ()

    @property
    def terms(self) -> list[Term]:
        """All terms of the groups."""
        return [term for group in self.groups for term in group]


def parse_query(text: str) -> Query:
    """Parse a query; words without a letter or digit are left out."""
    groups: list[list[Term]] = []
    excluded: list[Term] = []
    joins = False
    for match in _ITEM.finditer(text[:MAX_QUERY_LENGTH]):
        plain = match["plain"]
        # Terms must all occur anyway, so AND changes nothing; it is only kept from being searched for.
        if plain in ("OR", "AND") and not match["minus"]:
            joins = plain == "OR" and bool(groups)
            continue
        term = _term(plain, match["quoted"], match["star"])
        if term is None:
            continue
        if match["minus"]:
            excluded.append(term)
        elif joins:
            groups[-1].append(term)
        else:
            groups.append([term])
        joins = False
        if len(excluded) + sum(map(len, groups)) == MAX_TERMS:
            break
    return Query(tuple(tuple(group) for group in groups), tuple(excluded))


LAST_ID = (1 << 63) - 1


class SearchPlan(NamedTuple):
    """What to run for a query."""

    expression: str
    """An FTS5 expression."""
    conditions: str
    """SQL conditions on `messages m` for the WHERE clause; empty if the expression is enough."""
    first_id: int
    last_id: int


class Planner:
    """Plans queries with one filter over one connection from `index_file.open_for_reading`."""

    def __init__(self, connection: sqlite3.Connection, filter: SearchFilter, expand: Expand, displacement: int) -> None:
        """`displacement` is that of the index, `expand` finds the words with a prefix."""
        self._connection = connection
        self._filter = filter
        self._expand = expand
        self._displacement = displacement

    def plan(self, query: Query) -> SearchPlan | None:
        """The plan for a query; None if nothing can match."""
        filter = self._filter
        required, forbidden = self._kind_words(query), list[str]()
        if required is None:
            return None
        if filter.tool is not None:
            required.append(any_of([tool_marker(filter.tool)]))
        for flag, wanted in ((FAILED, filter.failed), (HAS_IMAGE, filter.has_image)):
            if wanted is not None:
                (required if wanted else forbidden).append(any_of(flag_markers(flag)))
        conditions = self._times()
        for condition, words in (self._session_condition(), self._project_condition()):
            if words is None:
                return None
            conditions += condition
            required += words
        expression = to_expression(query, required, forbidden, self._expand)
        if expression is None:
            return None
        first, last = self._ids()
        return SearchPlan(expression, conditions, first, last)

    def _kind_words(self, query: Query) -> list[str] | None:
        """Markers of agent, role and field; those of all kinds if there is no other condition."""
        filter = self._filter
        fields = None if filter.field is None else (FIELDS.index(filter.field),)
        if filter.failed is False and fields is None:
            # Failed calls have a flag of their own. Other calls have none, so the kind must say that it is a tool call.
            fields = (INPUT, OUTPUT)
        is_filtered = filter.agent is not None or filter.role is not None or fields is not None
        # FTS5 needs at least one term that must match. Anything else is enough, so the kinds are named only without it.
        if not is_filtered and (query.groups or filter.failed or filter.has_image or filter.tool):
            return []
        keys = Kinds(self._connection).matching(filter.agent, filter.role, fields)
        return [any_of([kind_marker(key) for key in keys])] if keys else None

    def _session_condition(self) -> tuple[str, list[str] | None]:
        if self._filter.session is None:
            return "", []
        agent, _, external_id = self._filter.session.partition(":")
        keys = self._keys("SELECT key FROM sessions WHERE agent = ? AND external_id = ?", agent, external_id)
        homes = self._keys(
            "SELECT DISTINCT d.home FROM memberships x JOIN documents d ON d.message_key = x.message_key"
            f" WHERE x.session_key IN ({sql_list(keys)})"
        )
        condition = (
            f" AND EXISTS (SELECT 1 FROM memberships WHERE message_key = m.key AND session_key IN ({sql_list(keys)}))"
        )
        return condition, [any_of([session_marker(home) for home in homes])] if homes else None

    def _project_condition(self) -> tuple[str, list[str] | None]:
        if self._filter.project is None:
            return "", []
        projects = self._keys("SELECT key FROM projects WHERE path = ?1 OR name = ?1", self._filter.project)
        if not projects:
            return "", None
        # Messages shared with a session of the project may be marked with a home in another project.
        homes = self._keys(
            "SELECT DISTINCT d.home FROM sessions s JOIN memberships x ON x.session_key = s.key"
            " JOIN documents d ON d.message_key = x.message_key JOIN homes h ON h.session_key = d.home"
            f" WHERE s.shares = 1 AND s.project_key IN ({sql_list(projects)})"
            f" AND (h.project_key IS NULL OR h.project_key NOT IN ({sql_list(projects)}))"
        )
        condition = (
            " AND EXISTS (SELECT 1 FROM memberships x JOIN sessions s ON s.key = x.session_key"
            f" WHERE x.message_key = m.key AND s.project_key IN ({sql_list(projects)}))"
        )
        words = [project_marker(key) for key in projects] + [session_marker(home) for home in homes]
        return condition, [any_of(words)]

    def _keys(self, query: str, *parameters: Any) -> list[int]:
        return [key for (key,) in self._connection.execute(query, parameters)]

    def _times(self) -> str:
        limits = ((self._filter.since, ">="), (self._filter.until, "<"))
        wanted = [(operator, aware_milliseconds(limit)) for limit, operator in limits if limit is not None]
        return "".join([f" AND m.created_at {operator} {limit}" for operator, limit in wanted])

    def _ids(self) -> tuple[int, int]:
        """The range of document ids for the times of the filter."""
        since, until = self._filter.since, self._filter.until
        first = 0 if since is None else index_file.block_of(aware_milliseconds(since)) << index_file.SLOT_BITS
        last = LAST_ID if until is None else last_id_of(aware_milliseconds(until), self._displacement)
        return first, last


def last_id_of(created_at: int, displacement: int) -> int:
    """The largest id of a document with this time or an earlier one."""
    return (index_file.block_of(created_at) + displacement + 1 << index_file.SLOT_BITS) - 1


def sql_list(keys: Iterable[int]) -> str:
    """Keys as a list for `IN ()`."""
    return ",".join(map(str, keys))


def to_expression(query: Query, required: Sequence[str], forbidden: Sequence[str], expand: Expand) -> str | None:
    """The query as an FTS5 expression, with conditions that are words of the index already.

    Args:
        query: The query.
        required: Expressions that must match.
        forbidden: Expressions that must not match.
        expand: Finds the words with a prefix.

    Returns:
        None if there is no required condition, or if one cannot match.
    """
    positive = [*required]
    for group in query.groups:
        alternatives = [expression for term in group if (expression := _term_expression(term, expand))]
        if not alternatives:
            return None
        positive.append(_any(alternatives))
    if not positive:
        return None
    negative = [*forbidden]
    negative += [expression for term in query.excluded if (expression := _term_expression(term, expand))]
    everything = " AND ".join(positive)
    return f"({everything}) NOT {_any(negative)}" if negative else everything


def any_of(words: Sequence[str]) -> str:
    """An expression for any of these words of the index."""
    return _any([_quote([word]) for word in words])


def _term(plain: str | None, quoted: str | None, star: str | None) -> Term | None:
    typed = plain if plain is not None else quoted or ""
    found = pieces(typed)
    if not found:
        return None
    if plain is not None and plain.endswith("*"):
        # The last piece of `foo.*` is a separator, so there is no prefix.
        star = "*" if plain[:-1].endswith(found[-1]) else None
        typed = plain.rstrip("*")
    return Term(tuple(found), bool(star) and not is_cjk(found[-1]), typed)


def _term_expression(term: Term, expand: Expand) -> str:
    """The term as a phrase, or one phrase for each word with its prefix; "" if no word has it."""
    if not term.is_prefix:
        return _quote(_index_words(term.pieces))
    *before, last = term.pieces
    words = _index_words((*before, "x"))[:-1] if before else []
    return _any([_quote([*words, ending]) for ending in expand(last)])


def _index_words(found: Sequence[str]) -> list[str]:
    """The words of the index for these consecutive pieces."""
    words = [word for piece in found for word in (split_cjk(piece) if is_cjk(piece) else [piece])]
    # The pairs at both ends of a run select better than single characters, which are needed only next to a neighbour.
    if is_cjk(found[0]) and len(found[0]) > 1:
        words = words[1:]
    if is_cjk(found[-1]) and len(found[-1]) > 1:
        words = words[:-1]
    return words


def _quote(words: Sequence[str]) -> str:
    return f'"{" ".join(words)}"'


def _any(expressions: Sequence[str]) -> str:
    if len(expressions) == 1:
        return expressions[0]
    return f"({' OR '.join(expressions)})" if expressions else ""
