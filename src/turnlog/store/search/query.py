"""Parses queries as people type them. Few texts are errors.

`word` and every other word · `snake_case a.b.c foo::bar` as phrases · `"in quotes"` · `begin*` · `one OR other` (binds
closer than the spaces around it) · `-without` or `NOT without` · `field:value`, for the fields in `FIELD_NAMES`.
Everything else is a separator. A query has at most `MAX_TERMS` terms. A value that a field cannot have is an error,
too: to look for its letters would nearly always find nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from turnlog.store.choices import SESSION_STATUSES
from turnlog.store.names import unknown_name
from turnlog.store.search.base import ROLES, SearchFilter
from turnlog.store.search.words import is_cjk, pieces, split_cjk
from turnlog.store.times import TIMES, check_period, moment_of

MAX_TERMS = 32
MAX_QUERY_LENGTH = 4000
"""Characters of a query. To leave out what is beyond these limits would find what was not asked for."""

FIELD_NAMES: Final = {
    **{name: name for name in ("title", "project", "file", "tag", "branch", "model", "agent")},
    **{name: name for name in ("role", "tool", "is", "before", "after", "until")},
    "author": "role",
    "path": "file",
    "since": "after",
}
"""What may precede a colon -> the field that it means."""

SESSION_FIELDS: Final = ("title", "project", "file", "tag", "branch", "model", "agent")
"""Fields that say something of the whole session."""

_ROLE_NAMES: Final = {
    **{role: role for role in ROLES},
    **dict.fromkeys(("me", "human", "prompt", "prompts"), "user"),
    **dict.fromkeys(("model", "ai", "answer", "answers"), "assistant"),
}

KINDS: Final = ("failed", "image")
"""What `is:` names: tool calls that failed, and parts with an image."""

# No field comes before `//` or a second colon: `https://…` is an address and `std::vector` a name.
_ITEM = re.compile(
    r"(?P<minus>-(?=[^\s-]))?(?:(?P<field>[A-Za-z]+):(?!//|:)(?=[^\s:]))?"
    r'(?:"(?P<quoted>[^"]*)(?:"(?P<star>\*)?|$)|(?P<plain>[^\s"]+))'
)


class QueryError(ValueError):
    """A query that asks for what there cannot be."""


Expand = Callable[[str], Sequence[str]]
"""Prefix -> words of the index that begin with it."""


class Term(NamedTuple):
    """A word, or several consecutive words."""

    pieces: tuple[str, ...]
    """Words and runs of CJK, in order."""
    is_prefix: bool
    """Whether the last piece is a prefix."""
    typed: str
    """The term as typed, without field, quotes and star."""
    field: str | None = None
    """The field that was named: one of `SESSION_FIELDS`, `role`, `tool` or `is`; None: anywhere."""


class Query(NamedTuple):
    """One term of each group must match, and no excluded term."""

    groups: tuple[tuple[Term, ...], ...] = ()
    excluded: tuple[Term, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    """From `after:` and `before:`, with a time zone."""
    beside_or: tuple[str, ...] = ()
    """Excluded terms, as typed, that stand beside an OR."""
    is_open: bool = False
    """Whether its last quotation mark opens a phrase that nothing closes."""

    @property
    def note(self) -> str | None:
        """What the query means that people may not expect of it."""
        notes: list[str] = []
        if self.beside_or:
            words = ", ".join([f"-{word}" for word in self.beside_or])
            notes.append(f"Left out of everything: {words}. Beside OR, an excluded word is no alternative.")
        if self.is_open:
            notes.append("The last quotation mark is not closed: all behind it is one phrase.")
        return " ".join(notes) or None

    @property
    def terms(self) -> list[Term]:
        """The terms of the groups that are looked for in texts."""
        return [term for group in self.groups for term in group if term.field is None]

    def narrowed(self, filter: SearchFilter) -> SearchFilter:
        """The filter with the times of the query; of two limits the narrower one."""
        since = [limit for limit in (filter.since, self.since) if limit is not None]
        until = [limit for limit in (filter.until, self.until) if limit is not None]
        return filter._replace(since=max(since, default=None), until=min(until, default=None))


def parse_query(text: str) -> Query:
    """Parse a query; words without a letter or digit are left out.

    Raises QueryError for more than `MAX_TERMS` terms or `MAX_QUERY_LENGTH` characters, and for a role, a time, a kind
    or a status that there is not.
    """
    if len(text) > MAX_QUERY_LENGTH:
        raise QueryError(f"a query has at most {MAX_QUERY_LENGTH} characters; this one has {len(text)}")
    groups: list[list[Term]] = []
    excluded: list[Term] = []
    limits: dict[str, datetime] = {}
    beside_or: dict[str, None] = {}
    joins = negates = after_or = is_open = False
    last: str | None = None
    """The last term, if it is an excluded one."""
    for match in _ITEM.finditer(text):
        plain = match["plain"]
        is_open = plain is None and match[0].count('"') == 1
        # Terms must all occur anyway, so AND changes nothing; it is only kept from being searched for.
        if plain in ("OR", "AND", "NOT") and not match["minus"] and not match["field"]:
            if plain == "OR" and last is not None:
                beside_or[last] = None
            after_or = plain == "OR" or (plain == "NOT" and after_or)
            joins = plain == "OR" and bool(groups)
            negates = plain == "NOT"
            continue
        field, plain = _field(match["field"], plain)
        if field in ("before", "after", "until"):
            named = plain if plain is not None else match["quoted"]
            limits["after" if field == "after" else "before"] = _moment(field, named)
            joins = negates = after_or = False
            last = None
            continue
        term = _term(plain, match["quoted"], match["star"], field)
        if term is None:
            continue
        last = None
        if match["minus"] or negates:
            excluded.append(term)
            last = term.typed if term.field is None else f"{term.field}:{term.typed}"
            if after_or and groups:
                beside_or[last] = None
        elif joins:
            groups[-1].append(term)
        else:
            groups.append([term])
        joins = negates = after_or = False
    _check_limits(limits)
    terms = len(excluded) + sum(map(len, groups))
    if terms > MAX_TERMS:
        raise QueryError(f"a query has at most {MAX_TERMS} words and phrases; this one has {terms}")
    found = tuple(tuple(group) for group in groups)
    beside = tuple(beside_or) if groups else ()
    is_open = is_open and bool(groups or excluded)  # a mark alone asks for nothing
    return Query(found, tuple(excluded), limits.get("after"), limits.get("before"), beside, is_open)


def _field(name: str | None, plain: str | None) -> tuple[str | None, str | None]:
    """The field that is meant, and the word; what is no field's name belongs to the word (`std:vector`)."""
    if name is None:
        return None, plain
    if name.lower() == "status" and plain is not None and plain.lower() in SESSION_STATUSES:
        raise QueryError(f"status:{plain} is no field of a search: the list of sessions has a filter by status")
    field = FIELD_NAMES.get(name.lower())
    if field is None:
        return None, plain if plain is None else f"{name}:{plain}"
    return field, plain


def phrase_of(query: Query) -> Term | None:
    """The words of a query in a row; None if they are one word, alternatives, beginnings or of a field."""
    terms = [term for group in query.groups for term in group]
    if not len(query.groups) == len(terms) > 1 or any([term.is_prefix or term.field for term in terms]):
        return None
    pieces = tuple([piece for term in terms for piece in term.pieces])
    return Term(pieces, is_prefix=False, typed=" ".join([term.typed for term in terms]))


def to_expression(
    query: Query,
    required: Sequence[str],
    forbidden: Sequence[str],
    expand: Expand,
    express_field: Callable[[Term], str] = lambda _: "",
) -> str | None:
    """The query as an FTS5 expression, with conditions that are words of the index already.

    Args:
        query: The query.
        required: Expressions that must match.
        forbidden: Expressions that must not match.
        expand: Finds the words with a prefix.
        express_field: The expression of a term with a field; "" if nothing fits it.

    Returns:
        None if there is no required condition, or if one cannot match.
    """

    def express(terms: Sequence[Term]) -> list[str]:
        found = [express_field(term) if term.field else term_expression(term, expand) for term in terms]
        return [expression for expression in found if expression]

    positive = [*required]
    for group in query.groups:
        alternatives = express(group)
        if not alternatives:
            return None
        positive.append(_any(alternatives))
    if not positive:
        return None
    negative = [*forbidden, *express(query.excluded)]
    everything = " AND ".join(positive)
    return f"({everything}) NOT {_any(negative)}" if negative else everything


def any_of(words: Sequence[str]) -> str:
    """An expression for any of these words of the index."""
    return _any([_quote([word]) for word in words])


def _moment(field: str, text: str) -> datetime:
    """The time that a field names, in this machine's zone: its beginning, for `until:` its end. Raises QueryError."""
    try:
        return moment_of(text, end=field == "until")
    except ValueError:
        raise QueryError(f"{field}:{text} names no time: {TIMES}") from None


def _check_limits(limits: dict[str, datetime]) -> None:
    try:
        check_period(limits.get("after"), limits.get("before"))
    except ValueError:
        raise QueryError("the period ends before it begins: before: or until: is before after:") from None


def _term(plain: str | None, quoted: str | None, star: str | None, field: str | None) -> Term | None:
    typed = plain if plain is not None else quoted or ""
    if field == "role":
        role = _named(field, typed, _ROLE_NAMES)
        return Term((role,), False, role, field)
    if field == "is":
        kind = _named(field, typed, {kind: kind for kind in KINDS})
        return Term((kind,), False, kind, field)
    # The index has the last two folders of a project's path: those above are in every project's.
    found = pieces("/".join(re.split(r"[/\\]", typed.rstrip("/\\"))[-2:]) if field == "project" else typed)
    if not found:
        return None
    if field == "tool":
        return Term(tuple(found), False, typed, field)
    if plain is not None and plain.endswith("*"):
        # The last piece of `foo.*` is a separator, so there is no prefix.
        star = "*" if pieces(f"{plain[:-1]}x")[-1] == f"{found[-1]}x" else None
        typed = plain.rstrip("*")
    return Term(tuple(found), bool(star) and not is_cjk(found[-1]), typed, field)


def _named(field: str, typed: str, values: Mapping[str, str]) -> str:
    """The value that is meant of those of a field. Raises QueryError."""
    found = values.get(typed.lower())
    if found is None:
        raise QueryError(unknown_name("role" if field == "role" else "kind", typed, values))
    return found


def term_expression(term: Term, expand: Expand) -> str:
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
