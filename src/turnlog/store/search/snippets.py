"""Snippets: a short piece of a text around the matches, with marks.

It finds what the index finds: whole words in any case, with or without accents and hidden characters, phrases over any
separators, prefixes, parts of CJK runs.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from turnlog.plain_text import UNSEEN
from turnlog.store.search.query import Term
from turnlog.store.search.words import (
    HIDDEN,
    characters_of,
    composed,
    is_cjk,
    without_case_or_accents,
    without_terminal_sequences,
)

LENGTH = 160
"""Characters of a snippet."""

_LEAD = 40
"""Characters before the first mark, about."""

_RAW_LENGTH = 3 * LENGTH
_MAX_OCCURRENCES = 5
_MAX_ATTEMPTS = 48

_GAP = r"[\W_]*(?:\d+[→\t][\W_]*)*"
"""What may separate the words of a phrase: separators, and line numbers of a listing."""

_LINE_NUMBER = re.compile(r"(?:^|\n) *\d{1,9}[→\t]")

_BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")

_MARKS = "\u0300-\u036f\u0653-\u0655\u3099\u309a"

_RESPELLED = re.compile(f"{HIDDEN}|(?P<marks>[{_MARKS}]+)|[\u1100-\u1112][\u1161-\u1175][\u11a8-\u11c2]?")
"""What the index has in another spelling: hidden characters, marks that belong to a letter before them, and the jamo of
a Korean syllable."""

_RESPELLED_CHARACTERS = characters_of(f"\xad{UNSEEN}{_MARKS}\u1100-\u1112")


class Snippet(NamedTuple):
    """A piece of text on one line."""

    text: str
    marks: tuple[tuple[int, int], ...]
    """Start and end of what was found, in characters of `text`."""


class _Words:
    """A text as the terms are looked for in it: composed and without hidden characters."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts, self._places = [0], [0]
        """Where pieces begin in `self.text`, and where they begin in the text that was given."""
        if not text.isascii() and not _RESPELLED_CHARACTERS.isdisjoint(text):
            self.text = self._respelled(text)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """A place in `self.text` as one in the text that was given."""
        return self.place(start), self.place(end)

    def place(self, position: int) -> int:
        """A position in `self.text` as one in the text that was given."""
        piece = bisect_right(self._starts, position) - 1
        return self._places[piece] + position - self._starts[piece]

    def _respelled(self, text: str) -> str:
        pieces: list[str] = []
        length = done = 0
        for match in _RESPELLED.finditer(text):
            start, end = match.span()
            if match["marks"] and start > done:
                start -= 1
            pieces += (text[done:start], composed(text[start:end]))
            for piece, place in zip(pieces[-2:], (start, end), strict=True):
                length += len(piece)
                self._starts.append(length)
                self._places.append(place)
            done = end
        return "".join((*pieces, text[done:]))


class TermFinder:
    """Finds the terms of one query in texts."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self._searches = [_Search(term) for term in terms]

    def snippet(self, text: str) -> Snippet:
        """The first place where most terms are close together; the beginning of the text if no term is found."""
        # The index leaves these sequences out: a word goes on across one (`grep --color` colours a part of it).
        text = without_terminal_sequences(text)
        words = _Words(text)
        return self._cut(text, words.place(self._best_start(words.text)))

    def marks(self, text: str) -> tuple[tuple[int, int], ...]:
        """Start and end of every occurrence of a term."""
        words = _Words(text)
        return _merged([words.span(*found) for search in self._searches for found in search.find_all(words.text)])

    def is_in(self, text: str) -> bool:
        """Whether a term occurs in the text."""
        words = _Words(text)
        return any(next(search.find_all(words.text), None) for search in self._searches)

    def count(self, text: str) -> list[int]:
        """How often each term occurs in the text, roughly: parts of longer words count too."""
        return [search.count(text) for search in self._searches]

    def _best_start(self, text: str) -> int:
        if len(self._searches) == 1:
            return self._searches[0].first(text)
        found = sorted(
            [(start, index) for index, search in enumerate(self._searches) for start, _ in search.find(text)]
        )
        best, best_count = 0, 0
        for position, (start, _) in enumerate(found):
            count = len({index for other, index in found[position:] if other - start < LENGTH - _LEAD})
            if count > best_count:
                best, best_count = start, count
        return best

    def _cut(self, text: str, start: int) -> Snippet:
        begin = _word_start(text, max(0, start - _LEAD), start)
        # More than is shown, because runs of blanks and line numbers go before it is cut.
        raw = text[begin : begin + _RAW_LENGTH]
        line, lead, rest = _one_line(raw), "…" if begin else "", ""
        if len(line) > LENGTH:
            end = line.rfind(" ", LENGTH - _LEAD, LENGTH)
            line, rest = line[: end if end > 0 else LENGTH], "…"
        elif begin + len(raw) < len(text):
            rest = "…"
        shift = len(lead)
        marks = tuple([(start + shift, end + shift) for start, end in self.marks(line)])
        return Snippet(f"{lead}{line}{rest}", marks)


class _Search:
    """Finds one term: first as it was typed, then by its first piece, then in any spelling."""

    def __init__(self, term: Term) -> None:
        first, last = term.pieces[0], term.pieces[-1]
        self._spellings = [_spellings(first)]
        self._pattern: re.Pattern[str] | None = None
        if len(term.pieces) > 1:
            self._spellings.insert(0, _spellings(term.typed))
            self._pattern = _pattern(term.pieces)
        self._any_spelling = _pattern([without_case_or_accents(piece) for piece in term.pieces])
        self._may_go_on = term.is_prefix
        self._begins_in_cjk = is_cjk(first)
        self._ends_in_cjk = is_cjk(last)

    def find(self, text: str) -> list[tuple[int, int]]:
        """Start and end of occurrences: the first few in each spelling."""
        for spellings in self._spellings:
            found = [span for spelling in spellings for span in self._find_spelling(text, spelling)]
            if found:
                return found
        return list(islice(self.find_all(text), _MAX_OCCURRENCES))

    def first(self, text: str) -> int:
        """Where the first occurrence begins that `find` would return; 0 if there is none."""
        for spellings in self._spellings:
            first = len(text)
            for spelling in spellings:
                # Only earlier occurrences in other spellings matter.
                found = self._find_spelling(text, spelling, 1, first + len(spelling) - 1)
                first = min((start for start, _ in found), default=first)
            if first < len(text):
                return first
        return next((start for start, _ in self.find_all(text)), 0)

    def find_all(self, text: str) -> Iterator[tuple[int, int]]:
        """Start and end of all occurrences, in order."""
        for match in self._any_spelling.finditer(without_case_or_accents(text)):
            span = self._whole(text, *match.span())
            if span:
                yield span

    def count(self, text: str) -> int:
        """How often the term occurs as it was typed, or in lower case."""
        return sum([text.count(spelling) for spelling in self._spellings[0][:2]])

    def _find_spelling(
        self, text: str, spelling: str, most: int = _MAX_OCCURRENCES, before: int | None = None
    ) -> Iterator[tuple[int, int]]:
        position = text.find(spelling, 0, before)
        # A short word may occur in thousands of longer ones; then the pattern looks for it.
        for _ in range(_MAX_ATTEMPTS):
            if position < 0 or not most:
                return
            end = self._end_at(text, position, spelling)
            span = end and self._whole(text, position, end)
            if span:
                most -= 1
                yield span
            position = text.find(spelling, position + 1, before)

    def _end_at(self, text: str, start: int, spelling: str) -> int:
        """The end of the term that begins here in this spelling; 0 if it continues differently."""
        if self._pattern is None:
            return start + len(spelling)
        match = self._pattern.match(text, start)
        return 0 if match is None else match.end()

    def _whole(self, text: str, start: int, end: int) -> tuple[int, int] | None:
        """The place if it consists of whole words (a prefix is extended to its word), otherwise None."""
        # Chinese and Japanese have no borders between words, so a part of a run is whole.
        if start and not self._begins_in_cjk and _is_letter(text[start - 1]):
            return None
        if self._ends_in_cjk or end == len(text) or not _is_letter(text[end]):
            return start, end
        if not self._may_go_on:
            return None
        while end < len(text) and _is_letter(text[end]):
            end += 1
        return start, end


def _spellings(word: str) -> list[str]:
    return list(dict.fromkeys([word, word.lower(), word.capitalize(), word.upper()]))


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    """The consecutive words in any case. They may touch only at an edge of a CJK run."""
    pattern = re.escape(words[0])
    for before, word in pairwise(words):
        gap = _GAP if is_cjk(before) != is_cjk(word) else f"[\\W_]{_GAP}"
        pattern += f"{gap}{re.escape(word)}"
    return re.compile(pattern, re.IGNORECASE)


def _is_letter(character: str) -> bool:
    """Whether a word continues with this character."""
    return character.isalnum() and not is_cjk(character)


def _one_line(raw: str) -> str:
    """The text without line breaks, control characters and the line numbers of a listing."""
    if "→" in raw or "\t" in raw:
        raw = _LINE_NUMBER.sub("\n", raw)
    line = " ".join(raw.split())
    return line if line.isprintable() else _BLANK.sub(" ", raw).strip()


def _word_start(text: str, begin: int, start: int) -> int:
    """The first beginning of a word from `begin` on, if it is before `start`."""
    if begin == 0:
        return 0
    space = text.find(" ", begin, start)
    return space + 1 if space >= 0 else begin


def _merged(marks: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(marks):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return tuple(merged)
