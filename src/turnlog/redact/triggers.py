"""Which rules can match a text, by their literals. Most texts contain none, so this is most of the cost of redaction.

One pass looks for the beginnings of tokens, one for other literals, one for words in any case. Each pass is one
pattern, a tree of its literals, so that a character that begins no literal is skipped at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

from turnlog.redact.names import NAME_ENDS
from turnlog.redact.rule import Rule
from turnlog.redact.rules import RULES

SHORTEST_TOKEN = 15
"""No secret with its own shape has fewer characters."""


def _shortest_beginnings(literals: Iterable[str]) -> list[str]:
    """The literals that do not begin with another one."""
    kept: list[str] = []
    for literal in sorted(set(literals)):
        if not (kept and literal.startswith(kept[-1])):
            kept.append(literal)
    return kept


def literal_tree(literals: Iterable[str], between: Sequence[str] = ()) -> str:
    """A pattern for any of these literals, none of which begins with another.

    Args:
        literals: What to look for.
        between: Patterns that are inserted after the first character, the second, and so on.
    """
    check, later = (between[0], between[1:]) if between else ("", ())
    branches: list[str] = []
    for first, same in groupby(sorted(literals), key=itemgetter(0)):
        rest = [literal[1:] for literal in same]
        branches.append(re.escape(first) + check + (literal_tree(rest, later) if any(rest) else ""))
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


BOUNDARY = r"(?:(?<![A-Za-z0-9]..)|(?<=\\[nrtbf]..)|(?<=%[0-9A-Fa-f]{2}..)|(?<=[\[;0-9]m..)|(?<=\[K..))"
"""The boundary before a token, checked after its second character, because most characters fail before that."""

_BEGINNINGS = _shortest_beginnings(literal for rule in RULES if rule.begins for literal in rule.literals)
_BEGINNING = re.compile(literal_tree(_BEGINNINGS, ["", BOUNDARY]))

_OF_BEGINNING = {
    beginning: [rule for rule in RULES if rule.begins and any(each.startswith(beginning) for each in rule.literals)]
    for beginning in _BEGINNINGS
}


def _literals(any_case: bool) -> list[tuple[str, int]]:
    rules = [(number, rule) for number, rule in enumerate(RULES) if not rule.begins and rule.any_case is any_case]
    return [(literal, number) for number, rule in rules for literal in rule.literals]


_EXACT = _literals(any_case=False)
_ANY_CASE = _literals(any_case=True)

_HAS_EXACT = re.compile(literal_tree(_shortest_beginnings(literal for literal, _ in _EXACT)))
_WORDS = _shortest_beginnings([*(literal for literal, _ in _ANY_CASE), *NAME_ENDS])
_WORD = re.compile(literal_tree(_WORDS))


def _overlapping(word: str) -> list[tuple[int, str, int]]:
    """Offset, literal and rule of everything that may begin where this word is found: at its start or inside it."""
    return [
        (offset, literal, number)
        for offset in range(len(word))
        for literal, number in _ANY_CASE
        if literal.startswith(word[offset:]) or word.startswith(literal, offset)
    ]


_AT_WORD = {word: _overlapping(word) for word in _WORDS}


def words_in(lowered: str) -> set[int] | None:
    """The rules for any case whose literals a text in lower case contains; None if it has no end of a name either."""
    found: set[int] | None = None
    for match in _WORD.finditer(lowered):
        found = set() if found is None else found
        start = match.start()
        for offset, literal, number in _AT_WORD[match[0]]:
            if number not in found and lowered.startswith(literal, start + offset):
                found.add(number)
    return found


Beginning: TypeAlias = tuple[int, list[Rule]]
"""A position at which a token may begin, and the rules to try there, in order."""


def tokens_in(text: str) -> list[Beginning]:
    """Where tokens may begin, in order. This looks at every character, so callers keep the answer."""
    if len(text) < SHORTEST_TOKEN:
        return []
    return [(match.start(), _OF_BEGINNING[match[0]]) for match in _BEGINNING.finditer(text)]


def beginnings_in(text: str, start: int) -> list[tuple[int, int]]:
    """Where tokens may begin from a place on, in order, and the length of their beginnings, however little follows."""
    return [(match.start(), len(match[0])) for match in _BEGINNING.finditer(text, start)]


def rules_for(text: str, words: Iterable[int]) -> list[Rule]:
    """The other rules that may match, in order. `words` are those for any case, by `words_in`."""
    found = set(words)
    if len(text) >= SHORTEST_TOKEN and _HAS_EXACT.search(text) is not None:
        found.update([number for literal, number in _EXACT if literal in text])
    return [RULES[number] for number in sorted(found)] if found else []
