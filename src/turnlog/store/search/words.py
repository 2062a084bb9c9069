"""How texts and queries are split into words.

The index splits texts with FTS5's `unicode61` (letters and digits form words, case and Latin accents do not matter).
Accents of Greek, Cyrillic and Arabic letters are removed first, in texts and in queries. Chinese,
Japanese and Korean are written without spaces, so runs of them are split first: each character and each pair of
neighbours becomes a word, interleaved in the order of the text (`c1 c1c2 c2 c2c3 c3`). A part of a run is then a phrase
that begins with its first pair, and is found anywhere in the run.

Characters of the private-use areas are words to `unicode61`. Only the index's own markers may use them, so they are
removed from texts and queries. `unicode61` knows Unicode 6.1 and takes newer characters for letters: newer emoji and
symbols are blanked in texts, because queries are split there.

Characters that nobody sees divide words for `unicode61`; they are left out of texts and queries, since a word looks the
same with and without them. Joiners behind a letter of a script that is spelled with them stay and divide: people see
where they are, and type the halves of a Persian compound with a joiner or with a space.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from itertools import pairwise

from turnlog.plain_text import JOINED_SCRIPTS, UNSEEN

CJK = (
    "\u1100-\u11ff\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Ranges of characters that are written without spaces, for use inside a regular expression's brackets."""

_PRIVATE = "\ue000-\uf8ff\U000f0000-\U0010ffff"

# To compile one of these takes 5 ms, for which the server's first answer need not wait.


@cache
def _cjk_run() -> re.Pattern[str]:
    return re.compile(f"[{CJK}]+")


@cache
def _foreign() -> re.Pattern[str]:
    """Characters that are changed: CJK, private use, and symbols of the upper planes (most emoji)."""
    return re.compile(f"[{CJK}]+|[{_PRIVATE}]+|[^\\w\0-\uffff]+")


@cache
def _piece() -> re.Pattern[str]:
    return re.compile(f"[{CJK}]+|[^\\W_{CJK}{_PRIVATE}]+")


HIDDEN = f"[\xad{UNSEEN}](?<![{JOINED_SCRIPTS}][\u200c\u200d])"
"""A regular expression for one character that nobody sees; a soft hyphen is seen only at the end of a line."""

_HIDDEN = re.compile(HIDDEN)
_HIDDEN_BYTES = re.compile(rb"\xe2(?:\x80[\x8b-\x8f\xaa-\xae]|\x81[\xa0-\xaf])")
"""UTF-8 of those that begin with the byte of many other signs. The soft hyphen, C2 AD, is looked for on its own; the
bytes of all others are not in `_UNCHANGED_BYTES`."""

_MARKS = "\u0300-\u0304\u0306-\u030c\u030f\u0311\u031b\u0323-\u0328\u032d\u032e\u0330\u0331"
"""Combining accents that `unicode61` leaves out of a word. It takes all others for separators."""

_MARK = re.compile(f"[{_MARKS}]")


def characters_of(ranges: str) -> frozenset[str]:
    """The characters of a set that is written for the brackets of a regular expression.

    Whether a text has one of them is seen five times as fast as with the expression.
    """
    pairs = re.findall("(.)(?:-(.))?", ranges, re.DOTALL)
    return frozenset(chr(code) for first, last in pairs for code in range(ord(first), ord(last or first) + 1))


_LEFT_OUT = characters_of(f"\xad{UNSEEN}{_MARKS}\u0340\u0341\u0344")
"""What `composed` leaves out, and what NFC makes such accents of."""


@cache
def _base_letters() -> Mapping[str, str]:
    """Letters with an accent that `unicode61` keeps: Greek, Cyrillic, Arabic. Made when a text may have one."""
    return {
        character: decomposed[0]
        for character in map(chr, (*range(0x370, 0x530), *range(0x622, 0x6D4), *range(0x1F00, 0x2000)))
        if len(decomposed := unicodedata.normalize("NFD", character)) > 1
        and all(unicodedata.category(mark) == "Mn" for mark in decomposed[1:])
    }


_FOREIGN_BYTES = {0xE1, *range(0xE3, 0xF5)}
_PLAIN_BYTES = bytes(set(range(256)) - _FOREIGN_BYTES)
"""UTF-8 lead bytes that begin no character of `_foreign` (arrows, dashes and box drawing begin with E2)."""
_UNCHANGED_BYTES = bytes(set(range(256)) - _FOREIGN_BYTES - {*range(0xCD, 0xD5), *range(0xD8, 0xDC)})
"""Those that begin none of `_base_letters` either."""


def to_index_text(data: bytes) -> bytes:
    """UTF-8 text as it goes into the index.

    Runs of CJK are cut into words; private-use characters, and symbols that FTS5 would take for letters, are blanked.
    The line numbers of a listing are left out: they are a seventh of an index, nobody looks for them, and without them
    a phrase may go on over lines. So are the sequences for terminals, as `_blank_sequence` says.
    """
    if b"\x1b" in data or b"\xc2\x9b" in data:
        data = _TERMINAL_SEQUENCE.sub(_blank_sequence, data)
    listing = _LISTING.match(data)
    if listing is not None and int(listing[3]) == int(listing[1]) + 1:
        data = _LINE_NUMBER[listing[2]].sub(b"\n", b"\n" + data)
    if data.isascii():
        return data
    data = _NEWER_SYMBOL.sub(b" ", data)
    if not data.translate(None, _UNCHANGED_BYTES) and not _may_have_hidden(data):
        return data
    is_foreign = bool(data.translate(None, _PLAIN_BYTES))
    text = _without_accents(composed(data.decode("utf-8", "replace")))
    if is_foreign:
        text = _foreign().sub(_cut_foreign, text)
    return text.encode("utf-8", "replace")


_TERMINAL_SEQUENCE = re.compile(
    # Group 1: colours, the end of a line that is erased, titles and links (OSC), other strings, character sets.
    rb"((?:\x1b\[|\xc2\x9b)[0-?]*[mK]"
    rb"|\x1b[\]PX^_](?:[^\x07\x1b\xc2\n]|\xc2[^\x9c])*(?:\x07|\x1b\\|\xc2\x9c)|\x1b[(-/][ -~])"
    # All others move the cursor or change how the terminal works.
    rb"|(?:\x1b\[|\xc2\x9b)[0-?]*[ -/]*[@-~]|\x1b[ -'0-~]"
)
"""Sequences of ECMA-48 in UTF-8."""


def _blank_sequence(match: re.Match[bytes]) -> bytes:
    """Nothing for a sequence within which a word goes on, as `grep --color` marks a part of one; else a space."""
    return b"" if match[1] is not None else b" "


_NEWER_SYMBOL = re.compile(
    rb"\xe2(?:\x82[\xba-\xbf]|\x83[\x80-\x8f]|\x86[\x8a\x8b]|\x8f[\xb4-\xbf]|\x9c\x80"
    rb"|\xad[\x8d-\x8f\x9a-\xbf]|[\xae\xaf\xb9][\x80-\xbf]|\xb8[\xbc-\xbf])"
)
"""UTF-8 of signs from U+2000 to U+2FFF that are newer than Unicode 6.1: currencies (U+20BA), media keys (U+23F4, the
dot before an answer among them), arrows (U+2B5A), punctuation (U+2E3C)."""

_LISTING = re.compile(rb" *(\d{1,9})(\t|\xe2\x86\x92)[^\n]*\n *(\d{1,9})\2")
"""The beginning of a file as tools print it: two lines of a number, a tab or an arrow, and text."""

_LINE_NUMBER = {mark: re.compile(rb"\n *\d+" + mark) for mark in (b"\t", "→".encode())}


def _may_have_hidden(data: bytes) -> bool:
    return b"\xc2\xad" in data or _HIDDEN_BYTES.search(data) is not None


def pieces(text: str) -> list[str]:
    """The words of a query's term, in order; a run of CJK is one piece."""
    return _piece().findall(_without_accents(composed(text)))


def composed(text: str) -> str:
    """The text in NFC, without what the index leaves out of words: hidden characters, and accents beside a letter."""
    if text.isascii():
        return text
    has_left_out = not _LEFT_OUT.isdisjoint(text)
    if has_left_out:
        text = _HIDDEN.sub("", text)
    if not unicodedata.is_normalized("NFC", text):
        text = unicodedata.normalize("NFC", text)
    return _MARK.sub("", text) if has_left_out else text


def _without_accents(text: str) -> str:
    """The text, composed, without the accents that `unicode61` keeps."""
    if text.isascii():
        return text
    # Few of them are in a text, and a regular expression takes longer where every letter is Cyrillic.
    letters = _base_letters()
    for letter in letters.keys() & set(text):
        text = text.replace(letter, letters[letter])
    return text


def is_cjk(piece: str) -> bool:
    """Whether a piece is a run of CJK."""
    return _cjk_run().match(piece) is not None


def split_cjk(run: str) -> list[str]:
    """The words of a run of CJK, as the index has them."""
    words = [run[0]]
    for left, right in pairwise(run):
        words += (left + right, right)
    return words


def without_case_or_accents(text: str) -> str:
    """The text in lower case without accents, character by character, so that positions do not change."""
    return text.lower() if text.isascii() else text.translate(_folding)


def without_terminal_sequences(text: str) -> str:
    """The text without the sequences that are left out of the index."""
    if "\x1b" not in text and "\x9b" not in text:
        return text
    return _TERMINAL_SEQUENCE.sub(_blank_sequence, text.encode("utf-8", "replace")).decode("utf-8", "replace")


def index_form(word: str) -> str:
    """A word as the index has it: in lower case, without accents."""
    return without_case_or_accents(composed(word))


_SIGMA, _FINAL_SIGMA = "\N{GREEK SMALL LETTER SIGMA}", "\N{GREEK SMALL LETTER FINAL SIGMA}"
"""`unicode61` takes both for one letter."""


class _Folding(dict[int, str]):
    """Code point -> base letter in lower case, computed on first use."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        folded = unicodedata.normalize("NFD", character)[0].lower()
        if character == _FINAL_SIGMA:
            folded = _SIGMA
        if is_cjk(character) or len(folded) != 1:
            folded = character
        self[code] = folded
        return folded


_folding = _Folding()


def _cut_foreign(match: re.Match[str]) -> str:
    run = match.group()
    return f" {' '.join(split_cjk(run))} " if is_cjk(run) else " "
