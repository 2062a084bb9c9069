"""Recovery phrases of wallets: 12 to 24 words of the English list of BIP-39 whose checksum is right.

`bip39.txt` is that list, in its order: without it, a phrase looks like a sentence. `bip39.LICENSE` says where it is
from, and its licence.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

LENGTHS = (24, 21, 18, 15, 12)

SHORTEST_PHRASE = 4 * LENGTHS[-1] - 1
"""Characters of the shortest phrase: words of three letters, and spaces between them."""

_HINTS = ("mnemonic", "phrase", "seed", "wallet", "recovery", "bip39", "bip-39")
"""A text with a phrase contains one of these words, unless the phrase is the whole text."""

_RUN = re.compile(r"(?:(?<![a-z\\])|(?<=\\n))[a-z]{3,8}(?:(?: {1,3}|\s{1,4}|\\{1,3}n)[a-z]{3,8}){11,63}(?![a-z])")
_WORD = re.compile(r"[a-z]{3,8}")


@cache
def words() -> dict[str, int]:
    """Each word and its number, in order."""
    text = (files("turnlog.redact") / "bip39.txt").read_text(encoding="ascii")
    return {word: number for number, word in enumerate(text.split())}


def find_mnemonics(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Start and end of every phrase."""
    spaces = text.count(" ")
    if spaces < LENGTHS[-1] - 1 or not (spaces + 1 in LENGTHS or any(hint in lowered for hint in _HINTS)):
        return
    for run in _RUN.finditer(text):
        places = [word.span() for word in _WORD.finditer(text, *run.span())]
        numbers = [words().get(text[start:end], -1) for start, end in places]
        first = 0
        while first + LENGTHS[-1] <= len(numbers):
            length = next((each for each in LENGTHS if _is_phrase(numbers[first : first + each], each)), 0)
            if length:
                yield places[first][0], places[first + length - 1][1]
            first += length or 1


def _is_phrase(numbers: list[int], length: int) -> bool:
    """Whether these words are a phrase: 11 bits each, of which the last are a checksum of the others."""
    if len(numbers) < length or min(numbers) < 0 or len(set(numbers)) <= 2:
        return False
    bits = 0
    for number in numbers:
        bits = bits << 11 | number
    check = length * 11 // 33
    entropy = (bits >> check).to_bytes(length * 11 * 32 // 33 // 8)
    return hashlib.sha256(entropy).digest()[0] >> (8 - check) == bits & (1 << check) - 1
