"""Which rules can match a text, by their literals. Most texts contain none, so this is most of the cost of redaction.

One pass looks for the beginnings of tokens, one for other literals, one for words in any case (`literals`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from turnlog.redact.literals import Contents, Places, shortest_beginnings
from turnlog.redact.names import NAME_ENDS
from turnlog.redact.rule import Rule
from turnlog.redact.rules import RULES
from turnlog.redact.tokens import TOKENS

SHORTEST_TOKEN = 15
"""No secret with its own shape has fewer characters."""


BOUNDARY = r"(?:(?<![A-Za-z0-9]..)|(?<=\\[nrtbf]..)|(?<=%[0-9A-Fa-f]{2}..)|(?<=[\[;0-9]m..)|(?<=\[K..))"
"""The boundary before a token, checked after its second character, because most characters fail before that."""

_BEGINNINGS = shortest_beginnings(literal for rule in RULES if rule.begins for literal in rule.literals)
_TOKENS = Places(_BEGINNINGS, BOUNDARY)


def _of_beginnings() -> list[list[Rule]]:
    """The rules of each beginning, in order."""
    found: dict[str, dict[int, Rule]] = {beginning: {} for beginning in _BEGINNINGS}
    for number, rule in enumerate(RULES):
        for literal in rule.literals if rule.begins else ():
            # Of beginnings of which none begins another, a literal has one.
            beginning = next(literal[:end] for end in range(1, len(literal) + 1) if literal[:end] in found)
            found[beginning][number] = rule
    return [list(rules.values()) for rules in found.values()]


_OF_BEGINNING = _of_beginnings()


def _of_literals(any_case: bool) -> dict[str, list[int]]:
    """Literal -> numbers of the rules that have it, of those that do not begin with it."""
    found: dict[str, list[int]] = {}
    for number, rule in enumerate(RULES):
        for literal in rule.literals if not rule.begins and rule.any_case is any_case else ():
            found.setdefault(literal, []).append(number)
    return found


_EXACT = _of_literals(any_case=False)
_EXACT_RULES = list(_EXACT.values())
_EXACT_LITERALS = Contents(list(_EXACT))

_ANY_CASE = _of_literals(any_case=True)
_WORDS = shortest_beginnings([*_ANY_CASE, *NAME_ENDS])
_WORD_PLACES = Places(_WORDS)


_BEGUN_SO: dict[str, list[str]] = {}
"""Each beginning of a literal for any case, up to all of it -> the literals that begin so."""
for _literal in _ANY_CASE:
    for _end in range(1, len(_literal) + 1):
        _BEGUN_SO.setdefault(_literal[:_end], []).append(_literal)


def _overlapping(word: str) -> list[tuple[int, str, list[int]]]:
    """Offset, literal and rules of everything that may begin where this word is found: at its start or inside it."""
    found: list[tuple[int, str, list[int]]] = []
    for offset in range(len(word)):
        rest = word[offset:]
        within = [rest[:end] for end in range(1, len(rest)) if rest[:end] in _ANY_CASE]
        found += [(offset, each, _ANY_CASE[each]) for each in [*within, *_BEGUN_SO.get(rest, ())]]
    return found


_AT_WORD = [_overlapping(word) for word in _WORDS]


def words_in(lowered: str) -> set[int] | None:
    """The rules for any case whose literals a text in lower case contains; None if it has no end of a name either."""
    places = _WORD_PLACES.in_text(lowered)
    if not places:
        return None
    found: set[int] = set()
    for start, word in places:
        for offset, literal, numbers in _AT_WORD[word]:
            if lowered.startswith(literal, start + offset):
                found.update(numbers)
    return found


Beginning: TypeAlias = tuple[int, list[Rule]]
"""A position at which a token may begin, and the rules to try there, in order."""


def tokens_in(text: str) -> list[Beginning]:
    """Where tokens may begin, in order. This looks at every character, so callers keep the answer."""
    if len(text) < SHORTEST_TOKEN:
        return []
    return [(start, _OF_BEGINNING[number]) for start, number in _TOKENS.in_text(text)]


def beginnings_in(text: str, start: int) -> list[tuple[int, int]]:
    """Where tokens may begin from a place on, in order, and the length of their beginnings, however little follows."""
    return [(place, len(_BEGINNINGS[number])) for place, number in _TOKENS.in_text(text, start)]


def exact_in(text: str) -> set[int]:
    """The rules, besides those that begin with theirs, whose literals a text contains in their own case."""
    if len(text) < SHORTEST_TOKEN:
        return set()
    return {rule for number in _EXACT_LITERALS.in_text(text) for rule in _EXACT_RULES[number]}


def rules_for(text: str, words: Iterable[int]) -> list[Rule]:
    """The other rules that may match, in order. `words` are those for any case, by `words_in`."""
    return [RULES[number] for number in sorted(exact_in(text).union(words))]


def inside_rules(text: str) -> list[Rule]:
    """The rules of tokens that are recognised by a literal inside them, which this text has."""
    return [RULES[number] for number in sorted(exact_in(text) & _INSIDE)]


_INSIDE = {number for number, rule in enumerate(RULES) if rule in TOKENS and not rule.begins}
