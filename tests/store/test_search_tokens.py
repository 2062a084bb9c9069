from __future__ import annotations

import sqlite3
import unicodedata
from typing import Literal
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.plain_text import without_unseen
from turnlog.store.search.index_file import _CONTENT_VERSION  # pyright: ignore[reportPrivateUsage]  # guarded here
from turnlog.store.search.words import (
    index_form,
    is_cjk,
    pieces,
    split_cjk,
    to_index_text,
    without_case_or_accents,
)


def words_of(text: str) -> list[str]:
    """What FTS5 makes of a text, in order, after `to_index_text`."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5 (x, tokenize = 'unicode61 remove_diacritics 2')")
    connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab ('t', 'instance')")
    connection.execute("INSERT INTO t VALUES (?)", (to_index_text(text.encode()),))
    rows = connection.execute("SELECT term FROM v ORDER BY offset").fetchall()
    connection.close()
    return [term for (term,) in rows]


def test_runs_of_cjk_become_characters_and_pairs_in_the_order_of_the_text() -> None:
    assert words_of("使用React框架x") == ["使", "使用", "用", "react", "框", "框架", "架", "x"]
    assert words_of("日本語。カタカナ") == [
        *("日", "日本", "本", "本語", "語"),
        *("カ", "カタ", "タ", "タカ", "カ", "カナ", "ナ"),
    ]
    assert words_of("한국어로 말") == ["한", "한국", "국", "국어", "어", "어로", "로", "말"]
    assert words_of("a𠮷b") == ["a", "𠮷", "b"]


def test_decomposed_kana_and_hangul_are_the_composed_ones() -> None:
    assert words_of(unicodedata.normalize("NFD", "がん")) == words_of("がん")
    assert words_of(unicodedata.normalize("NFD", "한국")) == words_of("한국")


@pytest.mark.parametrize("text", ["plain", "naïve Ünïcode", "a → b • c — d", "│ box ✅ ½", ""])
def test_texts_without_cjk_stay_as_they_are(text: str) -> None:
    assert to_index_text(text.encode()) == text.encode()


def test_no_text_holds_a_private_use_character() -> None:
    # Terminals draw icons with them, right beside words.
    assert words_of("\ue0b0home\uf015 \U000f0001disk\U0010fffd") == ["home", "disk"]


@pytest.mark.parametrize("sign", "🙂🧪🤖🟢🫠⏺⏸₽₿⭘⸺")
def test_a_sign_that_is_newer_than_the_tokenizer_separates_words(sign: str) -> None:
    assert words_of(f"red{sign}blue {sign} {sign}green") == ["red", "blue", "green"]
    assert pieces(f"red{sign}blue") == ["red", "blue"]


def test_letters_that_are_newer_than_the_tokenizer_stay() -> None:
    assert words_of("ꟺ 𞤢𞤣 𠮷") == ["ꟺ", "𞤢𞤣", "𠮷"]


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[31mred\x1b[0m \x1b[38;5;12mblue\x1b[K \x1b]0;title\x07done \x1b",
        "r\x1b[01;31m\x1b[Ked\x1b[m\x1b[K b\x9b31mlu\x9b0me do\x1b[1mne",  # as `grep --color` does
        "\x1b(Bred\x1b[m\x1b(B \x1b)0blue \x1b7\x1b=done\x1b8",
        "\x1b]8;;file:///x\x1b\\red\x1b]8;;\x1b\\ \x1b]0;a title\x9cblue \x1bPq#0;2\x1b\\done",
        "red\x1b[2;5Hblue\x1b[3C\x1bMdone\x1b[2J",
    ],
)
def test_words_are_those_that_a_terminal_shows(text: str) -> None:
    assert words_of(text) == ["red", "blue", "done"]


WORDS_OF_VERSION = {8: 2766222683}
"""Version of the index's content -> the checksum of the words of `VARIED`."""

VARIED = (
    "A naïve fooBar snake_case 3.14 user@host a/b.py",
    "使用React框架 한국어 カタカナ",
    "red🙂blue \ue0b0home a\0b",
    "\x1b[31mred\x1b[0mdish \x1b]0;title\x07 \x1b[2;5Hend",
    "   98\tfirst\n   99\tsecond",
    "Σίσυφος Йогурт",
    "wi\u200bd\xadget e\u0301te\u0301 می\u200cروم",
)


def test_other_words_have_another_version() -> None:
    """Stores are indexed anew only if the version of the index's content is raised."""
    words = "\n".join(" ".join(words_of(text)) for text in VARIED)
    assert {_CONTENT_VERSION: crc32(words.encode())} == WORDS_OF_VERSION


@pytest.mark.parametrize(
    ("word", "plain"),
    [
        *(("Σίσυφος", "σισυφοσ"), ("ΣΊΣΥΦΟΣ", "σισυφοσ"), ("ἄνθρωπος", "ανθρωποσ"), ("Αΐδιος", "αιδιοσ")),
        *(("Йогурт", "иогурт"), ("ёлка", "елка"), ("Їжак", "іжак"), ("آب", "اب"), ("Résumé", "resume")),
    ],
)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_word_is_one_with_and_without_accents(word: str, plain: str, form: Literal["NFC", "NFD"]) -> None:
    written = unicodedata.normalize(form, word)
    assert words_of(written) == words_of(plain) == [plain]
    assert words_of(" ".join(pieces(written))) == [plain]
    assert index_form(written) == plain


def test_a_character_that_nobody_sees_divides_no_word() -> None:
    unseen = [chr(code) for code in range(0x80, 0xE0200) if not 0xD800 <= code < 0xE000]
    hidden = [character for character in unseen if without_unseen(f"a{character}b") == "ab"] + ["\xad"]
    assert {"\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u2066"} < {*hidden}
    # In one text, because a table for each would take seconds; those of few bytes alone, where nothing else is decoded.
    assert words_of("\n".join([f"wi{character}d-get" for character in hidden])) == ["wid", "get"] * len(hidden)
    for character in [character for character in hidden if character < "\u3000"]:
        assert words_of(f"wi{character}d-get →") == pieces(f"wi{character}d-get") == ["wid", "get"]
    assert words_of("葛\U000e0100城") == words_of("葛城")


def test_a_joiner_divides_words_of_scripts_that_use_it() -> None:
    assert words_of("می\u200cروم") == words_of("می روم") == pieces("می\u200cروم") == ["می", "روم"]


def test_texts_and_queries_agree_about_combining_accents() -> None:
    for mark in map(chr, range(0x300, 0x370)):
        written = f"wx{mark}d"
        assert words_of(written) == words_of(" ".join(pieces(written))), ascii(mark)


def test_nul_separates_words() -> None:
    assert words_of("before\0after") == ["before", "after"]


@pytest.mark.parametrize("mark", ["→", "\t"])
def test_line_numbers_of_a_listing_are_no_words(mark: str) -> None:
    text = f"   98{mark}first 98\n   99{mark}\n  100{mark}second\n\nnote 101"
    assert words_of(text) == ["first", "98", "second", "note", "101"]


@pytest.mark.parametrize("text", ["17\tred\n23\tblue", "1→ only one line", "step 1\n2\tx", "1\ta\n2→b"])
def test_numbers_that_do_not_count_lines_are_words(text: str) -> None:
    assert to_index_text(text.encode()) == text.encode()


def test_invalid_utf8_at_the_end_of_a_piece_does_no_harm() -> None:
    assert to_index_text("中文".encode()[:-1]).decode().split() == ["中", "\ufffd"]


def test_pieces_of_a_term() -> None:
    assert pieces("ECONNRESET_4711") == ["ECONNRESET", "4711"]
    assert pieces("foo::bar.baz-qux/0") == ["foo", "bar", "baz", "qux", "0"]
    assert pieces("用React框") == ["用", "React", "框"]
    assert pieces("\ue000x →—_ \0") == ["x"]


def test_folding_keeps_positions_and_loses_case_and_accents() -> None:
    assert without_case_or_accents("Résumé ÄÖÜ İ ẞ Ệ") == "resume aou i ß e"
    assert without_case_or_accents("ASCII") == "ascii"
    assert without_case_or_accents("がギ한") == "がギ한"


@given(st.text())
def test_folding_is_character_by_character(text: str) -> None:
    assert len(without_case_or_accents(text)) == len(text)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=40))
def test_the_pieces_of_a_text_are_its_words(text: str) -> None:
    """Queries and texts are split alike, for every character that Python's and SQLite's Unicode both know."""
    known = "".join(character for character in text if _is_common(character))
    expected = [word for piece in pieces(known) for word in (split_cjk(piece) if is_cjk(piece) else [piece])]
    assert len(words_of(known)) == len(expected)


def _is_common(character: str) -> bool:
    """Latin, Greek, Cyrillic, CJK, what separates them there, and emoji."""
    if unicodedata.category(character).startswith(("M", "C")):
        return False
    code = ord(character)
    return code < 0x530 or is_cjk(character) or 0x2000 <= code < 0x2C00 or 0x1F000 <= code < 0x1FB00
