"""Secrets that are cut: a text of which only the beginning exists has no whole token at its end, and no rule finds it.

A title is the first 200 characters of a prompt, a preview the first characters of an output. What is at the cut is
masked if it could go on as a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from turnlog.redact.masking import SecretSpan, find_secrets, joined, mask_spans
from turnlog.redact.placeholders import is_path, is_random
from turnlog.redact.triggers import beginnings_in

RULE: Final = "cut"
"""The rule in the place of a secret of which only a piece is there: nobody knows whose it is."""

_LAST = re.compile(r"([A-Za-z0-9_+/=.~:$!%@&?#-]+)[\"'`]?(?:\s*(?:…|\.\.\.))?\s*\Z")

_PIECE = re.compile(r"[A-Za-z0-9_+/~.-]+={0,2}\Z")
"""What a token is made of: signs around it separate it from names, hosts and other values."""

_WORD = re.compile(r"(?<=\s)[a-z]+")
"""What goes on after `the password is` in a sentence. Behind a sign of equality it may begin a secret."""

_SHORTEST_BEGUN: Final = 8
_TELLING: Final = 4
"""Characters of a token's beginning that hardly any word has."""

_SHORTEST_UNNAMED: Final = 16
"""Characters of a piece that is masked without a known beginning or a name."""

_CONTEXT: Final = 1_000
"""Characters before the cut in which a name, an option or a header may announce a secret."""

_ENDINGS: Final = ("k7QZ09rR2xLM4mWV8tB3", "k7QZ09rR2@host.example/", "host.example/")
"""How a cut value may have gone on: as a key or a password, or up to the host of an address."""

_HEX = re.compile(r"[0-9a-fA-F-]+")


def mask_cut_text(text: str) -> str:
    """The text without secrets, and without what could be a piece of one at its end; see `find_cut_secrets`."""
    return mask_spans(text, find_cut_secrets(text))


def find_cut_secrets(text: str) -> list[SecretSpan]:
    """The secrets in a text that was cut at its end, in order, and what could be a piece of one there.

    An ellipsis may replace what was cut off.
    """
    return joined([*find_secrets(text), *_at_end(text)])


def _at_end(text: str) -> Iterator[SecretSpan]:
    run = _LAST.search(text, max(0, len(text) - _CONTEXT))
    if run is None:
        return
    start, end = run.span(1)
    places = [place for place, length in beginnings_in(text, start) if _is_begun(text[place:end], length)]
    announced = _announced(text, start, end)
    if announced is not None:
        places.append(announced)
    piece = _PIECE.search(text[start:end])
    # What has no known beginning and no name would stay if it were whole, but base64 may hold anything.
    if (
        piece is not None
        and len(piece[0]) >= _SHORTEST_UNNAMED
        and is_random(piece[0])
        and not _HEX.fullmatch(piece[0])
    ):
        places.append(start + piece.start())
    if places:
        yield SecretSpan(min(places), end, RULE)


def _announced(text: str, start: int, end: int) -> int | None:
    """Where a value begins that would be a secret, by what is before it, if it went on."""
    context = max(0, start - _CONTEXT)
    head = text[context:end]
    for ending in _ENDINGS:
        for span in find_secrets(head + ending):
            begin = context + span.start
            # One that ends before the cut is known already.
            if span.start < len(head) < span.end and not _WORD.fullmatch(text, begin, end):
                return begin
    return None


def _is_begun(token: str, length: int) -> bool:
    """Whether a text that has the beginning of a known token, of this length, goes on as one, not as a word."""
    if len(token) < _SHORTEST_BEGUN or is_path(token):
        return False
    rest = token[length:]
    return is_random(token) if length < _TELLING else not re.fullmatch(r"[a-z_.-]*", rest)
