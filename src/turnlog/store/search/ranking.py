"""How well a text fits the words of a query."""

from __future__ import annotations

from collections.abc import Sequence

from turnlog.store.search.query import Term
from turnlog.store.search.snippets import TermFinder
from turnlog.store.search.vocabulary import Vocabulary

_FIELD_WEIGHTS = (1.3, 1.0, 1.0, 0.8, 1.2)
"""Text, reasoning, input, output, file: what was said counts more than what a tool printed."""

_SATURATION = 1.2
_LENGTH_WEIGHT = 0.75
_USUAL_LENGTH = 1200
"""Bytes of a document of average length."""

_READ = 4000
"""Characters in which terms are counted."""


class Ranking:
    """Scores documents for one query."""

    def __init__(self, terms: Sequence[Term], vocabulary: Vocabulary) -> None:
        self._finder = TermFinder(terms)
        self._rarities = [sum([vocabulary.rarity(piece) for piece in term.pieces]) for term in terms]

    def score(self, text: str, length: int, field: int) -> float:
        """The score of a document of `length` bytes that begins with `text`; 0 for a query without terms."""
        damping = _damping(length)
        score = 0.0
        # A term that the index found but that is not counted comes after the beginning, or has another spelling.
        for rarity, count in zip(self._rarities, self._finder.count(text[:_READ]), strict=True):
            times = max(count, 1)
            score += rarity * times * (_SATURATION + 1) / (times + damping)
        return score * _FIELD_WEIGHTS[field]

    def fit(self, text: str, length: int, field: int) -> float:
        """The score as a share of the highest one there is."""
        highest = sum(self._rarities) * (_SATURATION + 1) * max(_FIELD_WEIGHTS)
        return self.score(text, length, field) / highest if highest else 0.0


def weight_of(length: int, field: int) -> float:
    """How much more than in others a word says in a document of `length` bytes, however often it is there."""
    return _FIELD_WEIGHTS[field] / (1 + _damping(length))


def _damping(length: int) -> float:
    return _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * min(length, 20 * _USUAL_LENGTH) / _USUAL_LENGTH)
