"""A query as people type it -> an expression of the index. Any text is a query; none is an error.

`word` and every other word · `snake_case a.b.c foo::bar` as phrases · `"in quotes"` · `begin*` · `one OR other` (binds
closer than the spaces around it) · `-without`. Everything else is a separator. At most `MAX_TERMS` terms count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from turnlog.store.search.tokens import is_cjk, pieces, split_cjk

MAX_TERMS = 32
MAX_QUERY_LENGTH = 4000
"""Characters of a query that are read."""

_ITEM = re.compile(r'(?P<minus>-(?=[^\s-]))?(?:"(?P<quoted>[^"]*)(?:"(?P<star>\*)?|$)|(?P<plain>[^\s"]+))')

Expand = Callable[[str], Sequence[str]]
"""The beginning of a word -> words of the index that begin so."""


class Term(NamedTuple):
    """A word, or several that must follow each other."""

    pieces: tuple[str, ...]
    """Words and runs of CJK, in order."""
    is_prefix: bool
    """Whether the last piece may go on."""
    typed: str
    """As it was written, without quotes and star."""


class Query(NamedTuple):
    """One term of every group must be there, and none of the excluded."""

    groups: tuple[tuple[Term, ...], ...] = ()
    excluded: tuple[Term, ...] = ()

    @property
    def terms(self) -> list[Term]:
        """The terms that are looked for."""
        return [term for group in self.groups for term in group]


def parse_query(text: str) -> Query:
    """What a text asks for; words without a letter or digit are left out."""
    groups: list[list[Term]] = []
    excluded: list[Term] = []
    joins = False
    for match in _ITEM.finditer(text[:MAX_QUERY_LENGTH]):
        plain = match["plain"]
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


def to_expression(query: Query, required: Sequence[str], forbidden: Sequence[str], expand: Expand) -> str | None:
    """The query in FTS5's language, with conditions that are words of the index already.

    Args:
        query: What is looked for.
        required: Conditions that must hold, each an expression.
        forbidden: Conditions that must not hold.
        expand: Finds the words for a beginning.

    Returns:
        None when there is nothing that must hold, or when something must that nothing fulfils.
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
    """The condition that one of these words of the index is there."""
    return _any([_quote([word]) for word in words])


def _term(plain: str | None, quoted: str | None, star: str | None) -> Term | None:
    typed = plain if plain is not None else quoted or ""
    found = pieces(typed)
    if not found:
        return None
    if plain is not None and plain.endswith("*"):
        # `foo.*` ends in no word that could go on.
        star = "*" if plain[:-1].endswith(found[-1]) else None
        typed = plain.rstrip("*")
    return Term(tuple(found), bool(star) and not is_cjk(found[-1]), typed)


def _term_expression(term: Term, expand: Expand) -> str:
    """The term as a phrase; one phrase for each word that its beginning may become; "" when there is none."""
    if not term.is_prefix:
        return _quote(_index_words(term.pieces))
    *before, last = term.pieces
    words = _index_words((*before, "x"))[:-1] if before else []
    return _any([_quote([*words, ending]) for ending in expand(last)])


def _index_words(found: Sequence[str]) -> list[str]:
    """The words of the index that stand, one after the other, where these pieces do."""
    words = [word for piece in found for word in (split_cjk(piece) if is_cjk(piece) else [piece])]
    # At its ends, a run's pairs say more than its single characters, which only neighbours would need.
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
